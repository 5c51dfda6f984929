/* SPDX-License-Identifier: MIT */
/* From boot_info to the first task: the boot order, in one place. */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/init.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/time.h>
#include <kernel/console.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/main.h>
#include <kernel/mm/page.h>

#define NOPL_VERSION "0.1"

REGISTRY(struct init_hook, init_hooks);

static void run_hooks(enum init_stage stage)
{
	const struct init_hook *h;

	for_each_registered (h, init_hooks)
		if (h->stage == stage)
			h->fn();
}

/* The first task: the rest of the boot, which may sleep. */
static void init_main(void *arg)
{
	(void)arg;
	arch_console_irq_enable();
	console_interrupt(); /* bytes typed before raise no interrupt */
	/* The tracer that ftrace= names sees the other CPUs come up. */
	run_hooks(INIT_TASK);
	cpu_start_others();
	task_set_affinity(current_task(), ~0u);
	run_hooks(INIT_LATE);
	run_hooks(INIT_SHELL);
}

static void print_banner(void)
{
	printk("nopl %s %s: %u CPU%s, %llu MiB\n", NOPL_VERSION, arch_name,
	       nr_cpus, nr_cpus == 1 ? "" : "s",
	       (unsigned long long)(boot_info.ram_bytes + (1 << 19)) >> 20);
}

/*
 * The boot context becomes a dead task: the first switch leaves it, and its
 * stack, for good. CPU 0's idle task has a stack of its own like all others.
 */
static noreturn void start_tasks(void)
{
	struct cpu *cpu = &cpus[0];

	if (task_init_idle(0))
		panic("no memory for the first tasks");
	task_start_reaper();
	if (!task_create("init", PRIO_NORMAL, 1, init_main, NULL))
		panic("no memory for the first tasks");
	cpu->rq.switched_at = arch_clock();
	cpu->head.current->state = TASK_DEAD;
	cpu->head.preempt_count++;
	schedule();
	panic("the boot context runs again");
}

/*
 * The boot order. Each call stands where it is for the reason beside it. Interrupts
 * are off and this is the only CPU until start_tasks().
 */
void kernel_main(void)
{
	/* First: arch_this_cpu(), which everything below uses, needs the structs. */
	cpu_init_boot();
	/* Locks and current_task() need run queues and a task that "runs" now. */
	sched_init();
	task_init_boot();
	/* From here on a mistake can be said. */
	arch_console_init();
	/* The calls below depend on the parameters. Bad ones are printed. */
	param_parse();
	/* maxcpus= has been read. The banner says how many CPUs there are. */
	cpu_count();
	print_banner();
	/* Before memory is touched that may not be there: faults are reported. */
	arch_trap_init();
	/* Page tables are made of pages. */
	mm_init();
	arch_mmu_init();
	/* Sites are written through the alias that arch_mmu_init() has made, and
	 * before a second CPU or a second task could run one of them. */
	run_hooks(INIT_SITES);
	/* Timers need the clock's rate and the interrupt controller. This stands
	 * behind the sites' conversion, because an interrupt's handler runs sites. */
	time_init();
	arch_irq_init();
	time_init_cpu();
	/* Leaves this stack for good. */
	start_tasks();
}
