/* SPDX-License-Identifier: MIT */
/*
 * tp_printk: each event of the top level on the console as well, as Linux writes it there. A
 * boot parameter, and the file tracepoint_printk.
 *
 * Linux prints where the event happens. Here events happen while text is patched, and functions
 * that an event calls can have no site. So a task prints, which follows the buffer and consumes
 * nothing. It reports entries that were overwritten before it came as lost.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <tracer/show/output.h>
#include <tracer/core/tracer.h>

#define LOOK_NS (10 * NSEC_PER_MSEC)

struct printer {
	struct trace_iter *it;
	struct seq s;
};

/* Under trace_mutex: events are to be printed, a task is there that prints them. */
static bool wanted, has_printer;
static u64 since; /* arch_clock() of the first event that is wanted */

static void print_new(struct printer *p)
{
	const struct ring_entry *e;
	u64 lost;

	while (READ_ONCE(wanted) && (e = trace_iter_peek(p->it))) {
		lost = trace_iter_lost(p->it);
		if (lost)
			printk("CPU:%u [LOST %llu EVENTS]\n", e->cpu,
			       (unsigned long long)lost);
		if (e->event && e->clock >= READ_ONCE(since)) {
			p->s.len = 0;
			trace_event(&p->s, e);
			printk("%.*s\n", (int)p->s.len, p->s.buf);
		}
		trace_iter_next(p->it);
	}
}

static void free_printer(struct printer *p)
{
	if (p)
		trace_iter_close(p->it);
	kfree(p);
}

static void print_events(void *arg)
{
	struct printer *p = arg;
	bool goes_on = true;

	while (goes_on) {
		task_sleep(LOOK_NS);
		print_new(p);
		mutex_lock(&trace_mutex);
		goes_on = has_printer = wanted;
		mutex_unlock(&trace_mutex);
	}
	free_printer(p);
}

/* From that time on. 0 or -ENOMEM. */
static int start_printer(u64 from)
{
	struct printer *p;
	struct task *t;

	mutex_assert_held(&trace_mutex);
	if (!wanted)
		WRITE_ONCE(since, from);
	if (!has_printer) {
		p = kmalloc_zeroed(sizeof(*p));
		if (p)
			p->it = trace_iter_open(rings, cpus_present(), false);
		t = p && p->it ? task_create("tp_printk", PRIO_NORMAL, ~0u,
					     print_events, p) :
				 NULL;
		if (!t) {
			free_printer(p);
			return -ENOMEM;
		}
		task_detach(t);
		has_printer = true;
	}
	WRITE_ONCE(wanted, true);
	return 0;
}

static void printk_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%d\n", READ_ONCE(wanted));
}

static int printk_write(struct ctl_handle *h, char *text)
{
	int on, err = ctl_int(h, text, CTL_SWITCH, &on);

	if (err)
		return err;
	if (on)
		err = start_printer(arch_clock());
	else
		WRITE_ONCE(wanted, false);
	return err ? ctl_error(h, err, "out of memory") : 0;
}
TRACE_FILE(tracepoint_printk, .path = "/proc/sys/kernel/tracepoint_printk",
	   .show = printk_show, .write = printk_write);

static bool at_boot;

static int set_at_boot(const char *value)
{
	return param_switch(value, &at_boot);
}
KERNEL_PARAM(tp_printk, "tp_printk", PARAM_SWITCH, set_at_boot);

static void printk_start(void)
{
	mutex_lock(&trace_mutex);
	if (at_boot && start_printer(0))
		printk("param: tp_printk: out of memory\n");
	mutex_unlock(&trace_mutex);
}
INIT_HOOK(INIT_TASK, printk_start);
