/* SPDX-License-Identifier: MIT */
/* The end of the machine, with a reason. */
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/panic.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/image/unwind.h>

#define PANIC_STOP_NS (100 * NSEC_PER_MSEC)

static int panic_cpu = -1; /* atomic: the CPU that panics first */
static u32 panic_stopped;  /* atomic: CPUs that are quiet */
static bool panic_exits;
void (*panic_hook)(void);

static int panic_param(const char *value)
{
	if (!strcmp(value, "exit"))
		panic_exits = true;
	else if (!strcmp(value, "halt"))
		panic_exits = false;
	else
		return -EINVAL;
	return 0;
}
KERNEL_PARAM(panic, "panic", "exit or halt", panic_param);

bool panic_here(void)
{
	int cpu = READ_ONCE(panic_cpu);

	return cpu >= 0 && (unsigned int)cpu == cpu_index();
}

void panic_stop_cpu(void)
{
	__atomic_fetch_or(&panic_stopped, 1u << cpu_index(), __ATOMIC_RELAXED);
	arch_cpu_halt();
}

/* Either the CPU that panicked has found this one in cpus_online, or this one finds
 * the panic here. */
void panic_check(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with stop_others() */
	if (READ_ONCE(panic_cpu) >= 0)
		panic_stop_cpu();
}

/* A CPU that has interrupts off does not answer. It is not waited for long. */
static void stop_others(void)
{
	cpumask_t others;
	struct spin_limit limit = spin_limit_begin(PANIC_STOP_NS);
	unsigned int c;

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with panic_check() */
	others = READ_ONCE(cpus_online) & ~(1u << cpu_index());
	for_each_online_cpu (c) {
		if (!(others & (1u << c)))
			continue;
		__atomic_fetch_or(&cpus[c].ipi_pending, IPI_PANIC,
				  __ATOMIC_RELEASE);
		arch_ipi_send(c);
	}
	while ((READ_ONCE(panic_stopped) & others) != others &&
	       !spin_limit_over(&limit))
		arch_cpu_relax();
}

static noreturn void end_machine(void)
{
	if (panic_exits)
		arch_power_off(1);
	printk("panic: halted\n");
	arch_cpu_halt();
}

static void say_panic(const char *fmt, va_list ap)
{
	char text[256];

	format_args(text, sizeof(text), fmt, ap);
	printk("panic: %s (CPU %u, task %s%s%s)\n", text, cpu_index(),
	       current_task()->name, ktest_running ? ", test " : "",
	       ktest_running ? ktest_running : "");
}

void panic(const char *fmt, ...)
{
	int nobody = -1;
	bool first;
	va_list ap;

	arch_irq_disable();
	first = __atomic_compare_exchange_n(&panic_cpu, &nobody,
					    (int)cpu_index(), false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	if (!first && !panic_here())
		panic_stop_cpu();
	if (first && !arch_this_cpu()->in_fault)
		arch_this_cpu()->broken_at = arch_clock();
	if (first)
		stop_others();
	va_start(ap, fmt);
	say_panic(fmt, ap);
	va_end(ap);
	/* A fault has shown where it was. A second panic shows no more. */
	if (first && !arch_this_cpu()->in_fault)
		backtrace_print(NULL, NULL);
	if (panic_hook)
		panic_hook();
	end_machine();
}
