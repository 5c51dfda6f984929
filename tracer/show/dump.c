/* SPDX-License-Identifier: MIT */
/*
 * The trace on the console.
 *
 * When the machine panics, its end: ftrace_dump_on_oops, a boot parameter and a file, as Linux has
 * them. The last events come first, because a screen may be all that is left. Everything that this
 * dump needs is allocated when it is asked for, for a panic may come from anywhere. It takes no
 * mutex: the other CPUs have stopped, and may hold any mutex.
 *
 * When a function with the trigger `dump` is called, all of it. The caller may hold any lock,
 * the console's too. So a task does it, which looks for such a call now and then.
 */

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/panic.h>
#include <kernel/param.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <tracer/core/client.h>
#include <tracer/core/command.h>
#include <tracer/core/instances.h>
#include <tracer/ring/ring_more.h>
#include <tracer/show/output.h>
#include <tracer/core/tracer.h>

#define EVENTS 200 /* shown at most */
#define TEXT 128   /* bytes of a marker, a stack or a record that are kept */

enum { NONE, ALL, THIS_CPU }; /* as Linux's numbers */

static struct dump {
	struct trace_iter *it;
	struct seq s;
	unsigned int nr; /* events seen. Event n is in last[n % EVENTS] */
	struct {
		struct ring_entry e;
		u32 text[TEXT / sizeof(u32)];
	} last[EVENTS];
} * dump; /* NULL: none is wanted. Written under trace_mutex */

static unsigned int wanted; /* under trace_mutex */

static void keep_entry(struct dump *d, const struct ring_entry *e)
{
	unsigned int i = d->nr++ % EVENTS;
	struct ring_entry *kept = &d->last[i].e;

	*kept = *e;
	if (!e->text && !e->stack && !e->event)
		return;
	kept->len = min(e->len, (u32)TEXT);
	memcpy(d->last[i].text,
	       e->text	? e->text :
	       e->stack ? (const void *)e->stack :
			  e->record,
	       kept->len);
	if (e->text)
		kept->text = (const char *)d->last[i].text;
	else if (e->stack)
		kept->stack = d->last[i].text;
	else
		kept->record = d->last[i].text;
}

static void show_dump(struct dump *d)
{
	unsigned int shown = min(d->nr, EVENTS + 0u);

	printk("Dumping ftrace buffer: the last %u of %u events, the newest "
	       "first\n"
	       "---------------------------------\n",
	       shown, d->nr);
	for (unsigned int i = 1; i <= shown; i++) {
		d->s.len = 0;
		trace_line(&d->s, d->it, &d->last[(d->nr - i) % EVENTS].e);
		printk("%.*s", (int)d->s.len, d->s.buf);
	}
	printk("---------------------------------\n");
}

/* On the CPU that panics. The others have stopped, and interrupts are off. */
static void dump_at_panic(void)
{
	struct dump *d = dump;
	const struct ring_entry *e;
	irq_state_t state;

	/* This CPU's calls in here are not recorded. */
	if (!d || (!ring_enter(&state) && !panic_here()))
		return;
	WRITE_ONCE(panic_hook, NULL); /* a panic in here shows no more */
	trace_iter_restart(d->it, wanted == THIS_CPU ? 1u << cpu_index() : ~0u);
	while ((e = trace_iter_peek(d->it))) {
		/* This CPU's calls since then are the panic's own, which prints. */
		if (e->cpu != cpu_index() ||
		    (s64)(e->clock - arch_this_cpu()->broken_at) < 0)
			keep_entry(d, e);
		trace_iter_next(d->it);
	}
	show_dump(d);
}

static void free_dump(struct dump *d)
{
	if (d)
		trace_iter_close(d->it);
	kfree(d);
}

/* 0 or -ENOMEM. Context: trace_mutex held. */
static int want_dump(unsigned int what)
{
	struct dump *d = dump;

	if (what && !d) {
		d = kmalloc_zeroed(sizeof(*d));
		if (d)
			d->it = trace_iter_open(rings, cpus_present(), false);
		if (!d || !d->it) {
			kfree(d);
			return -ENOMEM;
		}
	}
	wanted = what;
	WRITE_ONCE(panic_hook, what ? dump_at_panic : NULL);
	if (!what)
		free_dump(d);
	dump = what ? d : NULL;
	return 0;
}

/* ---- The trigger -------------------------------------------------------------- */

#define LOOK_NS (20 * NSEC_PER_MSEC)

static u32 asked;	/* atomic: a bit for each instance */
static bool has_dumper; /* under trace_mutex */

/* With trace_mutex held, so that the instance stays. */
static void dump_all(const struct trace_instance *in)
{
	struct trace_iter *it =
		trace_iter_open(in->buffer, cpus_present(), true);
	struct seq *s = kmalloc(sizeof(*s));
	const struct ring_entry *e;
	unsigned int n = 0;

	printk("Dumping ftrace buffer:\n---------------------------------\n");
	for (; it && s && (e = trace_iter_peek_line(it)); n++) {
		s->len = 0;
		trace_line(s, it, e);
		trace_iter_next(it);
		printk("%.*s", (int)s->len, s->buf);
	}
	if (!it || !s)
		printk("   (out of memory)\n");
	else if (!n)
		printk("   (ftrace buffer empty)\n");
	printk("---------------------------------\n");
	kfree(s);
	trace_iter_close(it);
}

static void dump_when_asked(void *arg)
{
	bool goes_on = true;
	u32 which;

	(void)arg;
	while (goes_on) {
		task_sleep(LOOK_NS);
		mutex_lock(&trace_mutex);
		which = __atomic_exchange_n(&asked, 0, __ATOMIC_ACQUIRE);
		for (unsigned int i = 0; which >> i; i++)
			if (which >> i & 1)
				dump_all(&trace_instances[i]);
		goes_on = clients_need() & NEED_DUMPER;
		has_dumper = goes_on;
		mutex_unlock(&trace_mutex);
	}
}

static int prepare_dump(struct ctl_handle *h)
{
	struct task *t;

	mutex_assert_held(&trace_mutex);
	if (has_dumper)
		return 0;
	t = task_create("dump", PRIO_NORMAL, ~0u, dump_when_asked, NULL);
	if (!t)
		return ctl_error(h, -ENOMEM, "out of memory");
	task_detach(t);
	has_dumper = true;
	return 0;
}

/* The command ends the recording, and the task puts it on the console. */
static void ask_for_dump(struct trace_instance *in)
{
	WRITE_ONCE(in->on, false);
	/* Release: the recording's end comes before. */
	__atomic_fetch_or(&asked, 1u << instance_number(in), __ATOMIC_RELEASE);
}

PATCH_INDIRECT(command_act, ask_for_dump);

TRACE_COMMAND(dump, .kind = COMMAND_DUMP, .prepare = prepare_dump,
	      .act = ask_for_dump);

/* The dump that its triggers, which have gone, asked for goes with it. */
static void dump_forget_instance(struct trace_instance *in)
{
	mutex_assert_held(&trace_mutex);
	__atomic_fetch_and(&asked, ~(1u << instance_number(in)),
			   __ATOMIC_RELAXED);
}
TRACE_CLIENT(dump, .instance_gone = dump_forget_instance);

/* ---- The file, and the boot parameter ---------------------------------------- */

static void dump_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%u\n", READ_ONCE(wanted));
}

#define DUMP_NUMBERS                                                           \
	"number from 0 (no dump), 1 (all CPUs), 2 (the CPU that panics)"

static int dump_write(struct ctl_handle *h, char *text)
{
	int what, err = ctl_int(h, text, DUMP_NUMBERS, &what);

	if (!err && (what < 0 || what > THIS_CPU))
		err = ctl_error(h, -EINVAL, "%d is no " DUMP_NUMBERS, what);
	if (err)
		return err;
	err = want_dump(what);
	return err ? ctl_error(h, err, "out of memory") : 0;
}
TRACE_FILE(ftrace_dump_on_oops, .path = "/proc/sys/kernel/ftrace_dump_on_oops",
	   .show = dump_show, .write = dump_write);

static unsigned int at_boot;

static int set_dump(const char *value)
{
	if (!*value || !strcmp(value, "1"))
		at_boot = ALL;
	else if (!strcmp(value, "orig_cpu") || !strcmp(value, "2"))
		at_boot = THIS_CPU;
	else
		return -EINVAL;
	return 0;
}
KERNEL_PARAM(ftrace_dump_on_oops, "ftrace_dump_on_oops",
	     "nothing, 1, orig_cpu or 2", set_dump);

static void dump_start(void)
{
	mutex_lock(&trace_mutex);
	if (want_dump(at_boot))
		printk("param: ftrace_dump_on_oops: out of memory\n");
	mutex_unlock(&trace_mutex);
}
INIT_HOOK(INIT_TASK, dump_start);
