/* SPDX-License-Identifier: MIT */
/*
 * The stack tracer: the deepest stack that any function was called with since it began, and
 * which functions used it. Files: stack_max_size, stack_trace, stack_trace_filter, and
 * /proc/sys/kernel/stack_tracer_enabled.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/image/unwind.h>
#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/param.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <tracer/core/client.h>
#include <tracer/core/files_functions.h>
#include <tracer/core/filter.h>
#include <tracer/ops/ops.h>
#include <tracer/sites/sites.h>
#include <tracer/core/tracer.h>

#define LEVELS 48

static bool enabled; /* under trace_mutex */

/* The deepest stack so far. The CPU that writes or copies it holds `busy`, with interrupts off. */
static struct deepest {
	unsigned long size; /* bytes used */
	unsigned long
		here; /* the same, up to the stack pointer of stack_check() */
	unsigned int nr;
	struct {
		unsigned long pc, depth;
	} level[LEVELS];
} deepest;
static u32 busy;

/* A CPU that wants to measure a call does not wait for `busy`: it leaves that call out. */
static bool stack_try_lock(void)
{
	return !__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE);
}

static void stack_unlock(void)
{
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

/* Walks the stack from here, and keeps the function that ip is in and its callers. */
static void note_deepest(unsigned long ip, unsigned long top)
{
	struct unwind u;

	deepest.nr = 0;
	for (unwind_start(&u, NULL, NULL);
	     unwind_next(&u) && deepest.nr < LEVELS;) {
		if (!deepest.nr && u.regs.pc != ip)
			continue;
		deepest.level[deepest.nr].pc = u.regs.pc;
		deepest.level[deepest.nr++].depth = top - u.regs.sp;
	}
	deepest.size = deepest.nr ? deepest.level[0].depth : 0;
}

/* The bits of an empty filter are given back, at any moment: they are asked for once. */
static bool is_filtered_out(unsigned int site)
{
	const u32 *bits = READ_ONCE(site_bits.stack);

	return bits && filter_stack.count && !site_test(bits, site);
}

static void stack_check(unsigned int site, unsigned long ip)
{
	const struct task *t = current_task();
	volatile char here;
	unsigned long sp = (unsigned long)&here;
	unsigned long bottom = (unsigned long)t->stack;
	unsigned long top = bottom + TASK_STACK_SIZE;

	if (!READ_ONCE(enabled) || sp <= bottom || sp > top ||
	    top - sp <= READ_ONCE(deepest.here) || is_filtered_out(site) ||
	    (preempt_count() & PREEMPT_NMI) || !stack_try_lock())
		return;
	if (top - sp > deepest.here) {
		WRITE_ONCE(deepest.here, top - sp);
		note_deepest(ip, top);
	}
	stack_unlock();
}

static bool stack_is_traced(void)
{
	mutex_assert_held(&trace_mutex);
	return enabled;
}

static u32 stack_want(unsigned int w)
{
	if (!enabled)
		return 0;
	return filter_stack.count ? site_bits.stack[w] : ~0u;
}

static u32 stack_need(void)
{
	return stack_is_traced() ? NEED_CALLS : 0;
}
PATCH_INDIRECT(clients_called, stack_check);
TRACE_CLIENT(stack, .needs = stack_need, .wants = stack_want,
	     .called = stack_check);

/* ---- Control files ----------------------------------------------------------- */

FILTER_FILE(stack_trace_filter, &filter_stack);

/* A copy that no CPU changes. NULL: all of it to 0. */
static void copy_deepest(struct deepest *copy)
{
	irq_state_t state = arch_irq_save();

	while (!stack_try_lock())
		arch_cpu_relax();
	if (copy)
		*copy = deepest;
	else
		memset(&deepest, 0, sizeof(deepest));
	stack_unlock();
	arch_irq_restore(state);
}

static void stack_max_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%lu\n", READ_ONCE(deepest.size));
}

/* Linux takes any number as the size to exceed. 0 begins anew. */
static int stack_max_write(struct ctl_handle *h, char *text)
{
	u64 v;
	int err = ctl_number(h, text, ~0ul, "number", &v);

	if (!err && v)
		err = ctl_error(h, -EINVAL, "%llu is not 0, which begins anew",
				(unsigned long long)v);
	if (!err)
		copy_deepest(NULL);
	return err;
}
CTL_FILE(stack_max_size, .path = TRACING "stack_max_size",
	 .show = stack_max_show, .write = stack_max_write);

static const char disabled[] =
	"#\n"
	"#  Stack tracer disabled\n"
	"#\n"
	"# To enable the stack tracer, either add 'stacktrace' to the\n"
	"# kernel command line\n"
	"# or 'echo 1 > /proc/sys/kernel/stack_tracer_enabled'\n"
	"#\n";

/* A line each time. A deeper stack that is found meanwhile does not mix with this one. */
static int trace_read(struct ctl_handle *h, struct seq *s)
{
	const struct deepest *d = h->priv;
	unsigned long i = h->pos++, size;

	if (!i) {
		seq_printf(s,
			   "        Depth    Size   Location    (%u entries)\n"
			   "        -----    ----   --------\n",
			   d->nr);
		if (!d->nr && !READ_ONCE(enabled))
			seq_printf(s, "%s", disabled);
		return 1;
	}
	if (--i >= d->nr)
		return 0;
	size = d->level[i].depth - (i + 1 < d->nr ? d->level[i + 1].depth : 0);
	seq_printf(s, "%3lu) %8lu   %5lu   %pS\n", i, d->level[i].depth, size,
		   (void *)d->level[i].pc);
	return 1;
}

static int stack_trace_open(struct ctl_handle *h)
{
	h->priv = kmalloc(sizeof(struct deepest));
	if (!h->priv)
		return -ENOMEM;
	copy_deepest(h->priv);
	return 0;
}

static void trace_release(struct ctl_handle *h)
{
	kfree(h->priv);
}
CTL_FILE(stack_trace, .path = TRACING "stack_trace", .open = stack_trace_open,
	 .release = trace_release, .read = trace_read);

/* 0 or patch_apply()'s error. Context: trace_mutex held. */
static int stack_enable(struct ctl_handle *h, bool on)
{
	bool before = enabled;
	int err;

	if (on == before)
		return 0;
	if (trace_ops_refuse(h))
		return -EBUSY;
	WRITE_ONCE(enabled, on);
	/* The calls go to C before the first site is on, until after the last: else the tracer
	 * would record calls that its filter leaves out. */
	if (on)
		trace_refresh();
	err = trace_update(h, 0, site_words);
	if (err)
		WRITE_ONCE(enabled, before);
	trace_refresh();
	return err;
}

static void stack_enabled_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%d\n", READ_ONCE(enabled));
}

static int stack_enabled_write(struct ctl_handle *h, char *text)
{
	int on, err = ctl_int(h, text, CTL_SWITCH, &on);

	return err ?: stack_enable(h, on);
}
TRACE_FILE(stack_tracer_enabled,
	   .path = "/proc/sys/kernel/stack_tracer_enabled",
	   .show = stack_enabled_show, .write = stack_enabled_write);

static bool at_boot;

static int set_stacktrace(const char *value)
{
	at_boot = !*value;
	return at_boot ? 0 : -EINVAL;
}
KERNEL_PARAM(stacktrace, "stacktrace", "nothing", set_stacktrace);

static void stack_start(void)
{
	char error[160];

	if (at_boot && ctl_echo("/proc/sys/kernel/stack_tracer_enabled", "1",
				false, error, sizeof(error)))
		printk("param: stacktrace: %s\n", error);
}
INIT_HOOK(INIT_TASK, stack_start);
