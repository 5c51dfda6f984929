/* SPDX-License-Identifier: MIT */
/* Instances of the tracer: instances.h. */
#include <tracer/core/instances.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/sched/task.h>
#include <tracer/core/client.h>
#include <tracer/core/error_log.h>
#include <tracer/core/filter.h>
#include <tracer/ops/ops.h>
#include <tracer/core/options.h>
#include <tracer/core/pids.h>
#include <tracer/ring/ring_control.h>
#include <tracer/ring/ring_internal.h>
#include <tracer/core/tracer.h>

const struct tracer tracer_nop REGISTER(tracers) = { .name = "nop" };

static void make_filter(struct site_filter *f, struct trace_instance *in,
			u32 **bits, const char *file, const char *empty)
{
	*f = (struct site_filter){
		.name = file,
		.empty = empty,
		.bits = bits,
		.in = in,
	};
}

static void instances_start(void)
{
	for (unsigned int i = 0; i < INSTANCES; i++) {
		struct trace_instance *in = &trace_instances[i];

		make_filter(&in->filter, in, &site_bits.filter[i],
			    "set_ftrace_filter",
			    "#### all functions enabled ####");
		make_filter(&in->left_out, in, &site_bits.left_out[i],
			    "set_ftrace_notrace",
			    "#### no functions disabled ####");
	}
	trace_top.tracer = &tracer_nop;
	trace_top.on = trace_top.overwrites = true;
	trace_top.options = trace_options_at_boot;
	trace_top.buffer_percent = BUFFER_PERCENT_AT_BOOT;
	trace_top.buffer = rings;
	trace_top.spares = ring_spares;
}
INIT_HOOK(INIT_SITES, instances_start);

/* Those beside the top level that trace functions: a bit for each. Written under trace_mutex. */
static u32 instances_tracing;

/* ---- Recording -------------------------------------------------------------- */

void instances_call(unsigned int site, unsigned long ip, unsigned long parent,
		    bool irqs_off)
{
	u32 all = READ_ONCE(instances_tracing);

	for (unsigned int i = 1; all >> i; i++) {
		const struct trace_instance *in = &trace_instances[i];

		if ((all >> i & 1) && instance_takes(in, site) &&
		    pid_is_traced(in, arch_current()->pid))
			ring_put_call(&in->buffer[cpu_index()], ip, parent,
				      ring_context(irqs_off));
	}
}

bool instances_trace(void)
{
	mutex_assert_held(&trace_mutex);
	return instances_tracing;
}

u32 instances_want(unsigned int w)
{
	u32 bits = 0;

	for (unsigned int i = 1; instances_tracing >> i; i++)
		if (instances_tracing >> i & 1)
			bits |= instance_takes_word(&trace_instances[i], w);
	return bits;
}

unsigned int instances_users(unsigned int site)
{
	unsigned int n = 0;

	mutex_assert_held(&trace_mutex);
	for (unsigned int i = 1; instances_tracing >> i; i++)
		n += (instances_tracing >> i & 1) &&
		     instance_takes(&trace_instances[i], site);
	return n;
}

/* ---- Tracer, tracing_on, tracing_cpumask --------------------------------------- */

int instance_cpus_parse(const char *text, cpumask_t *mask)
{
	u64 value = 0;
	int err = !*text       ? 0 :
		  *text == '+' ? -EINVAL :
				 parse_in_base(text, 16, &value);

	if (err == -ERANGE || (!err && value & ~(u64)cpus_present()))
		err = -EOVERFLOW;
	*mask = value;
	return err;
}

bool instance_has(const struct trace_instance *in, const struct tracer *tracer)
{
	return in == &trace_top || tracer == &tracer_nop ||
	       (tracer->ops == &trace_ops_ring && !tracer->latency);
}

void instance_refresh(struct trace_instance *in)
{
	mutex_assert_held(&trace_mutex);
	/* Each writer looks at tracing_on itself, for a trigger may change it. */
	if (in == &trace_top)
		trace_refresh();
	else
		ring_record(in->buffer, in->pauses ? 0 : in->cpumask, false,
			    NULL);
}

void instance_record(struct trace_instance *in, bool on, cpumask_t mask)
{
	mutex_assert_held(&trace_mutex);
	in->on = on;
	in->cpumask = mask;
	instance_refresh(in);
}

/* Let the instance trace functions, or not. */
static int trace_functions(struct ctl_handle *h, struct trace_instance *in,
			   bool on)
{
	u32 before = instances_tracing, bit = 1u << instance_number(in);
	int err;

	WRITE_ONCE(instances_tracing, on ? before | bit : before & ~bit);
	/* The calls go to C before the first site is on, until after the last. */
	if (on)
		trace_refresh();
	err = trace_update(h, 0, site_words);
	if (err)
		WRITE_ONCE(instances_tracing, before);
	trace_refresh();
	return err;
}

int instance_select(struct ctl_handle *h, struct trace_instance *in,
		    const char *name)
{
	const struct tracer *t = trace_find(name), *old = in->tracer;
	int err = 0;

	mutex_assert_held(&trace_mutex);
	if (in == &trace_top)
		return trace_select(h, name);
	if (!t || !instance_has(in, t))
		return trace_unknown(h, in, name);
	if (t == old)
		return 0;
	if (in->pipes)
		return ctl_error(h, -EBUSY, "trace_pipe is being read");
	if (t->ops && trace_ops_refuse(h))
		return -EBUSY;
	in->tracer = t;
	err = trace_functions(h, in, t->ops);
	if (err)
		in->tracer = old;
	else
		ring_clear(in->buffer, cpus_present());
	return err;
}

/* ---- mkdir, rmdir -------------------------------------------------------------- */

/* Of users and names. */
static struct mutex instances_lock = MUTEX_INIT(instances_lock);

static const char *folder_name(unsigned int i)
{
	return i < INSTANCES ? trace_instances[i].name : NULL;
}

static bool folder_use(unsigned int i, int by)
{
	struct trace_instance *in = &trace_instances[i];
	bool there;

	mutex_lock(&instances_lock);
	there = in->name[0];
	if (there || by < 0)
		in->users += by;
	mutex_unlock(&instances_lock);
	return there;
}

/* No file of it can be opened any more. False: one is open. */
static bool hide_folder(struct trace_instance *in)
{
	bool unused;

	mutex_lock(&instances_lock);
	unused = !in->users;
	if (unused)
		in->name[0] = '\0';
	mutex_unlock(&instances_lock);
	return unused;
}

static void show_folder(struct trace_instance *in, const char *name)
{
	mutex_lock(&instances_lock);
	string_copy(in->name, name, sizeof(in->name));
	mutex_unlock(&instances_lock);
}

/* Nothing uses it any more. */
static void drop_instance(struct trace_instance *in)
{
	unsigned int i = instance_number(in);

	clients_instance_gone(in);
	pids_forget(in);
	error_log_clear(in);
	if (in->buffer)
		ring_free(in->buffer);
	kfree(in->buffer);
	kfree(site_bits.filter[i]);
	kfree(site_bits.left_out[i]);
	site_bits.filter[i] = site_bits.left_out[i] = NULL;
	filter_forget(&in->filter);
	filter_forget(&in->left_out);
	in->on = false;
	in->buffer = NULL;
}

static int make_in(struct ctl_handle *h, struct trace_instance *in)
{
	unsigned int i = instance_number(in);

	in->buffer = kmalloc_zeroed(2 * nr_cpus * sizeof(*in->buffer));
	in->spares = in->buffer + nr_cpus;
	site_bits.filter[i] = site_bitmap_alloc();
	site_bits.left_out[i] = site_bitmap_alloc();
	for (unsigned int n = 0; in->buffer && n < 2 * nr_cpus; n++)
		in->buffer[n].in = in;
	in->tracer = &tracer_nop;
	in->options = trace_options_at_boot;
	instance_settle(in);
	in->clock = 0;
	in->buffer_percent = BUFFER_PERCENT_AT_BOOT;
	if (!in->buffer || !site_bits.filter[i] || !site_bits.left_out[i] ||
	    ring_resize(in->buffer, cpus_present(), RING_DEFAULT_KB)) {
		drop_instance(in);
		return ctl_error(h, -ENOMEM,
				 "no memory for another buffer of %u KiB on "
				 "each of %u CPUs",
				 RING_DEFAULT_KB, nr_cpus);
	}
	instance_record(in, true, cpus_present());
	return 0;
}

struct trace_instance *instance_find(const char *name)
{
	for (unsigned int i = 1; i < INSTANCES; i++)
		if (!strcmp(trace_instances[i].name, name))
			return &trace_instances[i];
	return NULL;
}

/* An instance that is not there, or NULL. */
static struct trace_instance *find_free(void)
{
	for (unsigned int i = 1; i < INSTANCES; i++)
		if (!trace_instances[i].buffer)
			return &trace_instances[i];
	return NULL;
}

static int folder_make(struct ctl_handle *h, const char *name)
{
	struct trace_instance *in;
	int err;

	if (strlen(name) >= sizeof(in->name))
		return ctl_error(h, -EINVAL, "a name has at most %u characters",
				 (unsigned int)sizeof(in->name) - 1);
	mutex_lock(&trace_mutex);
	in = find_free();
	if (instance_find(name))
		err = -EEXIST; /* another task has just made it */
	else if (!in)
		err = ctl_error(h, -ENOSPC, "there are %u instances already",
				INSTANCES - 1);
	else
		err = make_in(h, in);
	if (!err)
		show_folder(in, name);
	mutex_unlock(&trace_mutex);
	return err;
}

static int remove_in(struct ctl_handle *h, struct trace_instance *in,
		     const char *name)
{
	u32 options = in->options;
	int err;

	if (!hide_folder(in))
		return ctl_error(h, -EBUSY, "a file in it is open");
	err = instance_select(h, in, "nop");
	if (!err)
		err = clients_instance_leaves(h, in);
	if (!err)
		WRITE_ONCE(in->options, 0);
	if (!err)
		err = clients_instance_ends(h, in);
	if (!err) {
		trace_refresh(); /* after this no CPU writes there */
		drop_instance(in);
		return 0;
	}
	WRITE_ONCE(in->options, options);
	show_folder(in, name);
	return err;
}

static int folder_remove(struct ctl_handle *h, const char *name)
{
	struct trace_instance *in;
	int err;

	mutex_lock(&trace_mutex);
	in = instance_find(name);
	/* Another task may just have removed it. */
	err = in ? remove_in(h, in, name) : -ENOENT;
	mutex_unlock(&trace_mutex);
	return err;
}

CTL_FOLDERS(trace_folders, .path = TRACING "instances",
	    .root = "/sys/kernel/tracing", .name = folder_name,
	    .make = folder_make, .remove = folder_remove, .use = folder_use);
