/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch.h: more CPUs, and CPUs that go and come back. Section 6
 * of the guide. */
#include <arch/arch.h>
#include <arch/conform/conform.h>
#include <boot/boot_info.h>
#include <kernel/errno.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/test/ktest.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/mm/page.h>
#include <kernel/test/again.h>

KTEST(arch_cpu_start, "arch.cpu_start")
{
	unsigned int c;

	KEXPECT_EQ(t, cpus_online, cpus_present());
	for_each_online_cpu (c)
		KEXPECT(t, cpus[c].hwid.id == boot_info.cpu_hwid[c].id);
}

static void ipi_others(void *arg)
{
	struct ktest_run *t = arg;
	unsigned int c, me = cpu_index();

	for_each_online_cpu (c) {
		u32 before = conform_irq_count(c, IRQ_IPI);

		if (c == me)
			continue;
		arch_ipi_send(c);
		KEXPECT(t, KWAIT(conform_irq_count(c, IRQ_IPI) != before));
	}
}

KTEST(arch_ipi_send, "arch.ipi_send")
{
	KNEED_TWO(t);
	conform_on_each_cpu(ipi_others, t);
}

#define SENDS 2000
#define SEND_NS (10 * NSEC_PER_USEC)

static struct {
	struct timer timer;
	bool fired;
} to_third;

static void send_to_third(struct timer *timer)
{
	(void)timer;
	arch_ipi_send(2);
	WRITE_ONCE(to_third.fired, true);
}

/* An interrupt at any instruction sends one to another CPU: none goes where it should not. */
KTEST(arch_ipi_interrupted, "arch.ipi_send.interrupted")
{
	u32 seed = 1;

	if (!boot_info.icount || (cpus_online & 7) != 7)
		KSKIP(t, "three CPUs, and interrupts at any instruction, so "
			 "icount, are needed");
	task_set_affinity(current_task(), 1);
	timer_setup(&to_third.timer, send_to_third);
	for (unsigned int i = 0; i < SENDS && !t->failures; i++) {
		u32 second, third;
		u64 start;

		preempt_disable();
		second = conform_irq_count(1, IRQ_IPI);
		third = conform_irq_count(2, IRQ_IPI);
		to_third.fired = false;
		start = time_ns();
		timer_start(&to_third.timer, SEND_NS);
		/* It comes about then, a nanosecond an instruction. A look takes some, so
		 * the short loop lets each of them be met. */
		while (time_ns() - start < SEND_NS - SENDS / 8 + i / 4)
			;
		for (unsigned int n = ktest_random(&seed) % 16; n; n--)
			asm volatile("");
		arch_ipi_send(1);
		preempt_enable();
		KEXPECT(t, KWAIT(READ_ONCE(to_third.fired)));
		KEXPECT(t, KWAIT(conform_irq_count(1, IRQ_IPI) != second));
		KEXPECT(t, KWAIT(conform_irq_count(2, IRQ_IPI) != third));
	}
	task_set_affinity(current_task(), ~0u);
}

int conform_nmi(void)
{
	irq_state_t state = arch_irq_save();
	unsigned int c = cpu_index();
	u32 before = conform_irq_count(c, IRQ_NMI);
	int err = arch_nmi_send(c);

	for (unsigned int i = 0; !err && i < 1000; i++)
		arch_cpu_relax();
	arch_irq_restore(state);
	return err ? err : (int)(conform_irq_count(c, IRQ_NMI) - before);
}

/* One NMI comes to the CPU that it was sent to, with interrupts off or on. */
KTEST(arch_nmi_send, "arch.nmi_send")
{
	int came = conform_nmi();
	unsigned int c;
	u32 before;

	if (came == -ENOSYS)
		KSKIP(t, "this machine has no NMI");
	KEXPECT_EQ(t, came, 1);
	for_each_online_cpu (c) {
		before = conform_irq_count(c, IRQ_NMI);
		KEXPECT_EQ(t, arch_nmi_send(c), 0);
		KEXPECT(t, KWAIT(conform_irq_count(c, IRQ_NMI) == before + 1));
	}
}

/* ---- CPUs that go and come back ---- */

#define POISON 0x5a

static bool stack_is_poisoned(const char *stack)
{
	for (size_t i = 0; i < TASK_STACK_SIZE; i++)
		if (stack[i] != POISON)
			return false;
	return true;
}

static u64 interrupts_of(const struct cpu *cpu)
{
	u64 sum = 0;

	for (unsigned int k = 0; k < NR_IRQ_KINDS; k++)
		sum += READ_ONCE(cpu->irq_counts[k]);
	return sum;
}

/*
 * A parked CPU takes no interrupt, not even one from a CPU that was too slow to
 * notice that it has gone. It does not use its stack any more. And yet it can come
 * back.
 */
KTEST(arch_cpu_park, "arch.cpu_park")
{
	struct cpu *cpu = &cpus[ktest_last_cpu()];
	unsigned int c = cpu->head.index;
	u64 before;

	KNEED_TWO(t);
	for (int i = 0; i < 3; i++) {
		KASSERT(t, !cpu_down(c));
		memset(cpu->idle->stack, POISON, TASK_STACK_SIZE);
		before = interrupts_of(cpu);
		arch_ipi_send(c);
		task_sleep(2 * TICK_NS);
		KEXPECT_EQ(t, interrupts_of(cpu), before);
		KEXPECT(t, stack_is_poisoned(cpu->idle->stack));
		KASSERT(t, !cpu_up(c));
		KEXPECT(t, !stack_is_poisoned(cpu->idle->stack));
	}
}

KTEST(arch_cpu_parked, "arch.cpu_parked")
{
	for (unsigned int c = 1; c < nr_cpus; c++) {
		KEXPECT(t, !arch_cpu_parked(c));
		KEXPECT_EQ(t, cpu_down(c), 0);
		KEXPECT(t, arch_cpu_parked(c));
		for (unsigned int d = 1; d < nr_cpus; d++)
			KEXPECT_EQ(t, arch_cpu_parked(d), d == c);
		KEXPECT_EQ(t, cpu_up(c), 0);
		KEXPECT(t, !arch_cpu_parked(c));
	}
	KNEED_TWO(t);
}

/* A page, and the CPU that is to read it. */
struct late_page {
	const u32 *page;
	unsigned int cpu;
};

static void read_late_page(void *arg)
{
	struct late_page *l = arg;

	while (cpu_index() != READ_ONCE(l->cpu))
		task_sleep(TICK_NS);
	(void)READ_ONCE(*l->page);
}

/* Keep the CPU from arriving, and have it read a word until it surely has. */
static bool keep_late(unsigned int c, const u32 *word)
{
	u64 usual = cpu_start_ns;
	struct fault *late = &fault_cpu_join_late;
	u32 before;
	int err;

	late->cpu = c;
	late->read = word;
	fault_plant(late, 1);
	cpu_start_ns = 20 * NSEC_PER_MSEC;
	err = cpu_up(c);
	cpu_start_ns = usual;
	if (err != -ETIMEDOUT || !KWAIT(READ_ONCE(late->times)))
		return false;
	WRITE_ONCE(late->read, NULL);
	before = READ_ONCE(late->times);
	return KWAIT(READ_ONCE(late->times) - before > 1);
}

/*
 * A CPU that is late has used a page, which becomes a guard page before it arrives. Its task is
 * made before the CPU comes: a new task's guard page would have the CPU forget this one, too.
 */
KTEST(arch_late_guard, "arch.cpu_start.guard_page")
{
	unsigned int c = ktest_last_cpu();
	struct late_page l = { .cpu = MAX_CPUS };
	struct task *reader;

	KNEED_TWO(t);
	l.page = page_alloc(0);
	reader = task_create_expendable("reader", PRIO_NORMAL, ~0u,
					read_late_page, &l);
	KASSERT(t, l.page && reader && !cpu_down(c));
	KEXPECT(t, keep_late(c, l.page));
	KEXPECT_EQ(t, arch_guard_page((void *)l.page, true),
		   arch_protects_text ? 0 : -ENOSYS);
	fault_plant(&fault_cpu_join_late, 0);
	KEXPECT_EQ(t, cpu_up(c), 0);
	WRITE_ONCE(l.cpu, c);
	task_set_affinity(reader, 1u << c);
	KEXPECT_EQ(t, task_join(reader), arch_protects_text ? -EFAULT : 0);
	if (arch_protects_text)
		arch_guard_page((void *)l.page, false);
	page_free((void *)l.page, 0);
}

/* ---- atomics for one CPU, and for several ---- */

static u32 counter;
#define COUNTS 100000

static void count_shared(void *arg)
{
	(void)arg;
	for (u32 i = 0; i < COUNTS; i++) {
		__atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
		if (i % 1024 == 0)
			arch_cpu_relax();
	}
}

/* Two tasks add on each CPU that is online: are all counts there? */
static bool counts_right(void)
{
	struct task *task[2 * MAX_CPUS];
	unsigned int c, n = 0;

	counter = 0;
	for_each_online_cpu (c)
		for (int i = 0; i < 2; i++)
			task[n++] = task_create("count", PRIO_LOW, 1u << c,
						count_shared, NULL);
	for (unsigned int i = 0; i < n; i++)
		task_join(task[i]);
	return counter == n * COUNTS;
}

static bool is_lock(u32 offset)
{
	u32 lo = 0, hi = lock_count;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (lock_table[mid] < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < lock_count && lock_table[lo] == offset;
}

/* How many bytes of text differ from the copy. -1 if one of them is no lock prefix. */
static int text_changes(const char *copy)
{
	int n = 0;

	u32 size = _etext - _text;

	for (u32 i = 0; i < size; i++) {
		if (_text[i] == copy[i])
			continue;
		if (!is_lock(i))
			return -1;
		n++;
	}
	return n;
}

static void all_down(struct ktest_run *t)
{
	for (unsigned int c = 1; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_down(c), 0);
}

static void all_up(struct ktest_run *t)
{
	for (unsigned int c = 1; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_up(c), 0);
}

/*
 * With one CPU every lock prefix has changed, and no other byte of the text. With two
 * CPUs all bytes are as before. No count is ever lost.
 */
KTEST(arch_smp_atomics, "arch.smp_atomics")
{
	size_t size = _etext - _text;
	unsigned int order = 0;
	char *copy;

	KEXPECT(t, counts_right());
	KNEED_TWO(t);
	while ((PAGE_SIZE << order) < size)
		order++;
	copy = page_alloc(order);
	KASSERT(t, copy);
	memcpy(copy, _text, size);
	all_down(t);
	KEXPECT_EQ(t, text_changes(copy), lock_count);
	KEXPECT(t, counts_right());
	KEXPECT_EQ(t, cpu_up(1), 0);
	KEXPECT_EQ(t, text_changes(copy), 0);
	KEXPECT(t, counts_right());
	all_up(t);
	KEXPECT_EQ(t, text_changes(copy), 0);
	page_free(copy, order);
}
