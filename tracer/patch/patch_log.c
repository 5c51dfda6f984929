/* SPDX-License-Identifier: MIT */
/* The order log: appending to it, and the hooks that tell it something. */
#include <tracer/patch/patch_log.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/init.h>
#include <kernel/cpu/order.h>
#include <kernel/param.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/cpu/stop.h>
#include <kernel/lib/string.h>
#include <kernel/time.h>
#include <kernel/mm/page.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/patch/patch.h>
#include <tracer/base/instance.h>

static_assert(PATCH_CHECK_CPUS == MAX_CPUS, "patch_check.h has its own");
static_assert(sizeof(struct patch_log_entry) == 24,
	      "LOG_PAGE_ORDER gives 43690");

#define LOG_PAGE_ORDER 8 /* pages, as a power of two */
#define LOG_ENTRIES                                                            \
	((PAGE_SIZE << LOG_PAGE_ORDER) / sizeof(struct patch_log_entry))

bool patch_log_on;
static struct patch_log_entry *entries; /* LOG_ENTRIES, or NULL */
static u32 next_entry;			/* its number, atomic */
static bool kept_on;			/* patchlog=on */

/* ---- Appending ------------------------------------------------------------- */

/*
 * Interrupts off: patch_log_stop() waits for appenders by a call of every CPU.
 * Release: the entry before its kind. Pairs with the acquire in patch_log_get().
 */
void patch_log_add(enum patch_log_what what, u32 a, u32 b)
{
	irq_state_t state = arch_irq_save();
	struct patch_log_entry *e;
	u32 i;

	if (!READ_ONCE(patch_log_on))
		goto out;
	i = __atomic_fetch_add(&next_entry, 1, __ATOMIC_ACQ_REL);
	if (i >= LOG_ENTRIES)
		goto out;
	e = &entries[i];
	e->time = arch_clock();
	e->a = a;
	e->b = b;
	e->cpu = cpu_index();
	__atomic_store_n(&e->what, what, __ATOMIC_RELEASE);
out:
	arch_irq_restore(state);
}

void patch_log_store(unsigned long live, enum patch_store_kind kind, bool on)
{
	patch_log_add(LOG_STORE, live - (unsigned long)_text,
		      kind | on * STORE_ON);
}

static void log_order_event(enum order_event event, u32 arg)
{
	static const u8 what[] = {
		[ORDER_HELD] = LOG_HELD,     [ORDER_FREE] = LOG_FREE,
		[ORDER_WAIT] = LOG_WAIT,     [ORDER_WAITED] = LOG_WAITED,
		[ORDER_JOINED] = LOG_JOINED, [ORDER_SYNCED] = LOG_SYNC,
		[ORDER_LEFT] = LOG_LEFT,
	};

	patch_log(what[event], arg, 0);
}
PATCH_INDIRECT(order_tell, log_order_event);

static void log_run(unsigned long ip, unsigned long parent,
		    struct trace_ops *ops)
{
	unsigned long live = arch_site_live(ip - arch_site_length);

	(void)parent, (void)ops;
	patch_log(LOG_RUN, live - (unsigned long)_text, 0);
}
PATCH_INDIRECT(trace_entry_call, log_run);
struct trace_ops patch_log_ops = { .entry = trace_entry_call, .func = log_run };

/* ---- Beginning and ending --------------------------------------------------- */

static void switch_on(void)
{
	memset(entries, 0, LOG_ENTRIES * sizeof(*entries));
	next_entry = 0;
	PATCH_HOOK_SET(order_hook, order_tell, log_order_event);
	/* Release: the empty log before the first entry. Pairs with the acquire
	 * in patch_log_add()'s counting. */
	__atomic_store_n(&patch_log_on, true, __ATOMIC_RELEASE);
	patch_log_add(LOG_ONLINE, cpus_online, 0);
}

static void passed_by(void *arg)
{
	(void)arg;
}

static void switch_log_off(void)
{
	WRITE_ONCE(order_hook, NULL);
	WRITE_ONCE(patch_log_on, false);
	cpu_call(~0u, passed_by, NULL);
}

/* No CPU comes or goes and none is held, so that the log begins with all that
 * there is to know. */
int patch_log_start(void)
{
	if (patch_log_on)
		switch_log_off();
	if (!entries)
		entries = page_alloc(LOG_PAGE_ORDER);
	if (!entries)
		return -ENOMEM;
	cpus_read_lock();
	stop_turn_take();
	switch_on();
	stop_turn_give();
	cpus_read_unlock();
	return 0;
}

void patch_log_stop(void)
{
	if (kept_on || !entries)
		return;
	switch_log_off();
	page_free(entries, LOG_PAGE_ORDER);
	entries = NULL;
}

static int set_patchlog(const char *value)
{
	if (strcmp(value, "on") && strcmp(value, "off"))
		return -EINVAL;
	kept_on = !strcmp(value, "on");
	return 0;
}
KERNEL_PARAM(patchlog, "patchlog", "on or off", set_patchlog);

/* The boot CPU alone: it sees the others come. */
static void patch_log_boot(void)
{
	if (!kept_on)
		return;
	entries = page_alloc(LOG_PAGE_ORDER);
	kept_on = entries;
	if (entries)
		switch_on();
	else
		printk("param: patchlog: no memory for %lu entries\n",
		       (unsigned long)LOG_ENTRIES);
}
INIT_HOOK(INIT_SITES, patch_log_boot);

/* ---- Reading ---------------------------------------------------------------- */

void patch_log_stats(struct patch_log_stats *s)
{
	u32 n = READ_ONCE(next_entry);

	s->entries = min(n, (u32)LOG_ENTRIES);
	s->lost = n - s->entries;
}

const struct patch_log_entry *patch_log_get(u32 i)
{
	if (!entries || i >= LOG_ENTRIES ||
	    !__atomic_load_n(&entries[i].what, __ATOMIC_ACQUIRE))
		return NULL;
	return &entries[i];
}

static u32 power_of_two_above(u32 n)
{
	u32 p = 16;

	while (p <= n)
		p *= 2;
	return p;
}

/* Lab victims are not in the site table, but their stores are not logged. */
int patch_log_check(struct patch_check *c)
{
	const struct patch_log_entry *e;
	struct patch_log_stats s;

	*c = (struct patch_check){ .slots =
					   power_of_two_above(2 * site_count) };
	patch_log_stats(&s);
	if (s.lost)
		return -ENOSPC;
	c->sites = kmalloc_zeroed(c->slots * sizeof(*c->sites));
	if (!c->sites)
		return -ENOMEM;
	for (u32 i = 0; (e = patch_log_get(i)); i++)
		patch_check_entry(c, e);
	kfree(c->sites);
	c->sites = NULL;
	return 0;
}

/* ---- Breaking it on purpose -------------------------------------------------- */

FAULT(sync_skipped, "one CPU does not synchronise after a write");
FAULT(sync_early, "all CPUs synchronise before the write instead of after it");
FAULT(stop_waits, "the CPU that leads a rendezvous waits for another one");
FAULT(bypass_loose, "`bypass` does not wait for tasks inside its sites");
FAULT(bypass_wide, "`bypass` takes 256 bytes from each site for the site");
FAULT(stop_loose, "a batch of `stop` is written with no CPU held");
FAULT(batch_traps, "the task that patches takes a fault amid a batch");

bool patch_fault_no_sync(void)
{
	return fault_happens_here(&fault_sync_early) ||
	       (cpu_index() == fault_sync_skipped.cpu &&
		fault_happens_here(&fault_sync_skipped));
}

void patch_fault_trap(void)
{
	static unsigned long nowhere;

	if (fault_happens_here(&fault_batch_traps))
		*(volatile int *)READ_ONCE(nowhere) = 0;
}

/* Past ipi_send(), which would refuse: the test shows that no CPU answers. */
void patch_fault_wait(void)
{
	unsigned int other = cpu_index() ? 0 : 1;
	u64 seen = READ_ONCE(cpus[other].irq_counts[IRQ_IPI]);
	u64 end = arch_clock() + ns_to_clock_delta(NSEC_PER_MSEC);

	order_tell(ORDER_WAIT, 1u << other);
	arch_ipi_send(other);
	while (READ_ONCE(cpus[other].irq_counts[IRQ_IPI]) == seen &&
	       arch_clock() < end)
		arch_cpu_relax();
	order_tell(ORDER_WAITED, 0);
}
