/* SPDX-License-Identifier: MIT */
/* Snapshots, and their control files: snapshot.h. */
#include <tracer/show/snapshot.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/patch_path.h>
#include <kernel/test/fault.h>
#include <tracer/show/files_buffer.h>
#include <tracer/core/client.h>
#include <tracer/core/command.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/core/tracer.h>

/* Of each instance. All atomic. */
static struct snapshot {
	u32 holds;
	u32 begins; /* a CPU is in snapshot_trigger() */
	u32 wanted; /* CPUs that are still to exchange their pages */
	u32 taken;  /* CPUs that have done it in the last snapshot */
} snapshots[INSTANCES];

static inline struct snapshot *snapshot_of(const struct trace_instance *in)
{
	return &snapshots[instance_number(in)];
}

static void exchange_rings(unsigned int cpu, void *arg)
{
	struct trace_instance *in = arg;

	ring_exchange(&in->buffer[cpu], &in->spares[cpu]);
	__atomic_fetch_or(&snapshot_of(in)->taken, 1u << cpu, __ATOMIC_RELEASE);
}

static void exchange_if_wanted(unsigned int cpu, void *arg)
{
	u32 me = 1u << cpu;

	if (__atomic_fetch_and(&snapshot_of(arg)->wanted, ~me,
			       __ATOMIC_ACQ_REL) &
	    me)
		exchange_rings(cpu, arg);
}

void snapshot_answer(void)
{
	for (unsigned int i = 0; i < INSTANCES; i++)
		if (READ_ONCE(snapshots[i].wanted))
			exchange_if_wanted(cpu_index(), &trace_instances[i]);
}
/* With a site, its calls would be in the ring that it exchanges. */
PATCH_ROOT(snapshot_answer);

FAULT(snapshot_late,
      "a CPU begins a snapshot 1 ms after it has looked whether it may");

/* A CPU that is still to exchange its pages for the snapshot before does it once, for both. */
bool snapshot_trigger(struct trace_instance *in, cpumask_t mask)
{
	u32 me = 1u << cpu_index();
	/* A CPU that is away has a part, too: exchange_if_wanted() for it in snapshot_hold(), or
	 * itself when it comes back. */
	u32 others = mask & cpus_present() & ~me;
	struct snapshot *snap = snapshot_of(in);

	/* Acquire: pairs with snapshot_release(). A task that frees the pages, or makes them, holds
	 * the snapshots, and the next hold waits for this CPU. So this look comes first. */
	if ((ring_context(true) & PREEMPT_NMI) ||
	    __atomic_load_n(&snap->holds, __ATOMIC_ACQUIRE) ||
	    !READ_ONCE(in->spares[0].pages) ||
	    __atomic_exchange_n(&snap->begins, 1, __ATOMIC_ACQUIRE))
		return false;
	if (fault_happens(&fault_snapshot_late))
		fault_dawdle();
	WRITE_ONCE(snap->taken, 0);
	__atomic_store_n(&snap->wanted, others, __ATOMIC_RELEASE);
	exchange_rings(cpu_index(), in);
	ipi_trace(others);
	__atomic_store_n(&snap->begins, 0, __ATOMIC_RELEASE);
	return true;
}

/*
 * After the first round every CPU has seen the count, so none begins a snapshot. The second
 * completes a snapshot that a CPU has begun before it answered the first.
 */
void snapshot_hold(struct trace_instance *in)
{
	__atomic_fetch_add(&snapshot_of(in)->holds, 1, __ATOMIC_SEQ_CST);
	ring_call(cpus_present(), exchange_if_wanted, in);
	ring_call(cpus_present(), exchange_if_wanted, in);
}

void snapshot_release(struct trace_instance *in)
{
	__atomic_fetch_sub(&snapshot_of(in)->holds, 1, __ATOMIC_RELEASE);
}

cpumask_t snapshot_cpus(const struct trace_instance *in)
{
	return READ_ONCE(snapshot_of(in)->taken);
}

int snapshot_make(struct ctl_handle *h, struct trace_instance *in)
{
	int err;

	mutex_assert_held(&trace_mutex);
	/* A trigger would exchange the pages of a CPU that has none yet. */
	snapshot_hold(in);
	err = ring_spares_make(in);
	snapshot_release(in);
	if (!err)
		return 0;
	return ctl_error(h, -ENOMEM,
			 "no memory for a snapshot: it needs as much as "
			 "buffer_total_size_kb says");
}

void snapshot_forget(struct trace_instance *in, cpumask_t mask)
{
	snapshot_hold(in);
	ring_spares_clear(in, mask);
	__atomic_fetch_and(&snapshot_of(in)->taken, ~mask, __ATOMIC_RELAXED);
	snapshot_release(in);
}

void snapshot_free(struct trace_instance *in)
{
	mutex_assert_held(&trace_mutex);
	snapshot_hold(in);
	snapshot_forget(in, ~0u);
	ring_free(in->spares);
	snapshot_release(in);
}

static void forget_instance(struct trace_instance *in)
{
	if (in->buffer)
		snapshot_free(in);
}
static int prepare_snapshot(struct ctl_handle *h)
{
	return snapshot_make(h, instance_of(h));
}

/* A latency tracer has its longest latency there. */
static void act_snapshot(struct trace_instance *in)
{
	if (!READ_ONCE(in->tracer)->latency)
		snapshot_trigger(in, ~0u);
}
PATCH_INDIRECT(command_act, act_snapshot);

TRACE_COMMAND(snapshot, .kind = COMMAND_SNAPSHOT, .prepare = prepare_snapshot,
	      .act = act_snapshot);

TRACE_CLIENT(snapshot, .instance_gone = forget_instance);

static void tracer_snapshot_start(void)
{
	ipi_trace_hook = snapshot_answer;
}
INIT_HOOK(INIT_SITES, tracer_snapshot_start);

/* ---- snapshot, per_cpu/cpuN/snapshot -------------------------------------------------- */

int snapshot_check(struct ctl_handle *h)
{
	const struct tracer *tracer = READ_ONCE(instance_of(h)->tracer);

	if (!tracer->latency)
		return 0;
	return ctl_error(h, -EBUSY,
			 "the tracer %s keeps its longest latency there: cat "
			 "trace",
			 tracer->name);
}

static int snapshot_open(struct ctl_handle *h)
{
	return snapshot_check(h) ?:
				   trace_show_open(h, instance_of(h)->spares,
						   cpus_of_file(h));
}

/* clang-format off */
static const char help[] =
"# echo 1 > snapshot : sets aside what `trace` holds, and records on\n"
"# echo 0 > snapshot : forgets that, and gives its memory back\n"
"# echo 2 > snapshot : forgets that, and keeps the memory\n";
/* clang-format on */

static int snapshot_read(struct ctl_handle *h, struct seq *s)
{
	if (!trace_show_is_empty(h))
		return trace_show_read(h, s);
	if (h->pos++)
		return 0;
	seq_printf(s, "# tracer: %s\n#\n# * Snapshot is %s *\n#\n%s",
		   READ_ONCE(instance_of(h)->tracer)->name,
		   instance_of(h)->spares[0].pages ? "allocated" : "freed",
		   help);
	return 1;
}

/* A second hold is that of a reader. */
static int take_snapshot(struct ctl_handle *h, cpumask_t mask)
{
	struct trace_instance *in = instance_of(h);
	int err = snapshot_make(h, in);

	if (err)
		return err;
	snapshot_hold(in);
	if (READ_ONCE(snapshot_of(in)->holds) > 1)
		err = ctl_error(h, -EBUSY, "the last snapshot is being read");
	else
		ring_call(mask, exchange_rings, in);
	snapshot_release(in);
	return err;
}

static int snapshot_write(struct ctl_handle *h, char *text)
{
	struct trace_instance *in = instance_of(h);
	cpumask_t mask = cpus_of_file(h);
	u64 v;
	int err = ctl_number(h, text, ~0ull,
			     "number; 0 frees the memory of a snapshot, 1 "
			     "takes one, 2 forgets it",
			     &v);

	if (!err && !v && h->file->data)
		err = ctl_error(h, -EINVAL,
				"0 frees the memory of all CPUs: only "
				"/sys/kernel/tracing/snapshot takes it");
	if (err)
		return err;
	mutex_lock(&trace_mutex);
	err = snapshot_check(h);
	if (err) {
		/* As it is. */
	} else if (v == 1) {
		err = take_snapshot(h, mask);
	} else if (v) {
		snapshot_hold(in);
		snapshot_forget(in, mask);
		snapshot_release(in);
	} else {
		snapshot_free(in);
	}
	mutex_unlock(&trace_mutex);
	return err;
}

CPU_FILES(CTL_FILE, snapshot, .open = snapshot_open,
	  .release = trace_show_release, .read = snapshot_read,
	  .write = snapshot_write, .at_boot = "0");
