/* SPDX-License-Identifier: MIT */
/* /proc: uptime kallsyms interrupts meminfo cmdline, in Linux's formats. */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/mm/page.h>

static void print_seconds(struct seq *s, u64 ns, char after)
{
	seq_printf(s, "%llu.%02u%c", (unsigned long long)(ns / NSEC_PER_SEC),
		   (unsigned int)(ns % NSEC_PER_SEC / (NSEC_PER_SEC / 100)),
		   after);
}

/* How long a CPU has been idle, this very moment included. */
static u64 idle_ns(struct cpu *c)
{
	irq_state_t irq = spin_lock(&c->rq.lock);
	u64 ticks = c->idle->run_ticks;

	if (c->head.current == c->idle)
		ticks += arch_clock() - c->rq.switched_at;
	spin_unlock(&c->rq.lock, irq);
	return clock_delta_to_ns(ticks);
}

static void uptime_show(struct ctl_handle *h, struct seq *s)
{
	u64 idle = 0;
	unsigned int c;

	(void)h;
	for_each_online_cpu (c)
		idle += idle_ns(&cpus[c]);
	print_seconds(s, time_ns(), ' ');
	print_seconds(s, idle, '\n');
}
CTL_FILE(uptime, .path = "/proc/uptime", .show = uptime_show);

static int kallsyms_read(struct ctl_handle *h, struct seq *s)
{
	const int digits = 2 * sizeof(long);
	struct symbol sym;

	if (symbol_get(h->pos, &sym))
		seq_printf(s, "%0*lx T %s\n", digits, sym.start, sym.name);
	else if (h->pos == symbol_count)
		/* Readers take a function to end where the next one begins. */
		seq_printf(s, "%0*lx T _etext\n", digits,
			   (unsigned long)_etext);
	else
		return 0;
	h->pos++;
	return 1;
}
CTL_FILE(kallsyms, .path = "/proc/kallsyms", .read = kallsyms_read);

static void interrupts_header(struct seq *s)
{
	unsigned int c;

	seq_printf(s, "    ");
	for_each_online_cpu (c)
		seq_printf(s, "       CPU%u", c);
	seq_printf(s, "\n");
}

static int interrupts_read(struct ctl_handle *h, struct seq *s)
{
	unsigned long kind = h->pos++;
	unsigned int c;

	if (!kind) {
		interrupts_header(s);
		return 1;
	}
	if (--kind >= NR_IRQ_KINDS)
		return 0;
	seq_printf(s, "%3lu:", kind);
	for_each_online_cpu (c)
		seq_printf(s, " %10llu",
			   (unsigned long long)cpus[c].irq_counts[kind]);
	seq_printf(s, "  %s\n", irq_kind_names[kind]);
	return 1;
}
CTL_FILE(interrupts, .path = "/proc/interrupts", .read = interrupts_read);

static void print_kb(struct seq *s, const char *name, u64 bytes)
{
	seq_printf(s, "%-12s%12llu kB\n", name,
		   (unsigned long long)(bytes / 1024));
}

static void meminfo_show(struct ctl_handle *h, struct seq *s)
{
	struct mm_stats m;

	(void)h;
	mm_stats(&m);
	print_kb(s, "MemTotal:", boot_info.ram_bytes);
	print_kb(s, "MemManaged:", (u64)m.pages_total * PAGE_SIZE);
	print_kb(s, "MemFree:", (u64)m.pages_free * PAGE_SIZE);
	print_kb(s, "Slab:", m.kmalloc_bytes);
	seq_printf(s, "%-12s%12lu\n", "SlabObjects:", m.kmalloc_objects);
	seq_printf(s, "%-12s%12lu\n", "SlabPages:", m.slab_pages);
	seq_printf(s, "%-12s%12lu\n", "AllocFail:", m.failures);
}
CTL_FILE(meminfo, .path = "/proc/meminfo", .show = meminfo_show);

static void cmdline_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%s\n", boot_info.cmdline);
}
CTL_FILE(cmdline, .path = "/proc/cmdline", .show = cmdline_show);
