/* SPDX-License-Identifier: MIT */
/* Starting, idling and stopping CPUs, the first stack of a task. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>
#include <kernel/cpu/hotplug.h>

#include <arch/arch_trace.h>

/* secondary.S: the code that runs in SECONDARY_PAGE, in real mode. */
extern const char secondary_begin[], secondary_end[];

/* Set by arch_cpu_park(), cleared before the CPU is started again. */
static u32 parked[MAX_CPUS];

/* Where each starting CPU finds itself by its APIC id. */
struct secondary_slot secondary_slots[SECONDARY_SLOTS];

static void delay_us(u64 us)
{
	u64 end = arch_clock() + us * boot_info.clock_hz / 1000000;

	while (arch_clock() < end)
		arch_cpu_relax();
}

/*
 * INIT, then STARTUP twice (SDM 3A, 8.4.4.1). The manual's wait of 10 ms after
 * INIT is for APICs outside of the processor, which no 64-bit CPU has. Linux
 * does not wait at all there.
 */
int arch_cpu_start(unsigned int cpu)
{
	hwid_t id = cpus[cpu].hwid;
	struct secondary_slot *slot = &secondary_slots[cpu];

	memcpy(arch_phys_to_virt(SECONDARY_PAGE), secondary_begin,
	       secondary_end - secondary_begin);
	slot->stack = (u64)cpus[cpu].idle->stack + TASK_STACK_SIZE;
	slot->cpu = &cpus[cpu];
	slot->key = id.id | SLOT_VALID;
	parked[cpu] = 0;

	lapic_command(id, ICR_INIT);
	delay_us(200);
	lapic_command(id, ICR_STARTUP | SECONDARY_PAGE >> PAGE_SHIFT);
	delay_us(200);
	/* Ignored by a CPU that runs already. */
	lapic_command(id, ICR_STARTUP | SECONDARY_PAGE >> PAGE_SHIFT);
	return 0;
}

void secondary_main(struct cpu *cpu)
{
	set_this_cpu(cpu);
	arch_text_sync();
	cpu_secondary_main();
}
PATCH_ROOT(secondary_main);

/*
 * Once `parked` is set, another CPU may free the idle task's stack. So this CPU stores
 * nothing any more, and its stack pointer points elsewhere by then, for a machine check
 * would push a frame. NMIs that the machine raises on all CPUs are masked. INIT ends
 * the halt and undoes the mask.
 */
void arch_cpu_park(void)
{
	struct cpu *cpu = arch_this_cpu();

	lapic_write(LAPIC_LVT_LINT1, LVT_MASKED);
	clock_leave();
	/* Stores stay in order: pairs with the acquire in arch_cpu_parked(). */
	asm volatile("cli\n\t"
		     "movq %1, %%rsp\n\t"
		     "movl $1, %0\n"
		     "1:\thlt\n\t"
		     "jmp 1b"
		     : "=m"(parked[cpu->head.index])
		     : "r"(cpu->head.trap_stack)
		     : "memory");
	__builtin_unreachable();
}

bool arch_cpu_parked(unsigned int cpu)
{
	/* Acquire: pairs with the store in arch_cpu_park(). */
	return __atomic_load_n(&parked[cpu], __ATOMIC_ACQUIRE);
}

/*
 * f0 becomes 3e and back, never 90: DS: in front of such an instruction means
 * nothing in 64-bit code (SDM 1, 3.4.2.1, AMD APM vol. 3, 1.2.4), so it
 * stays ONE instruction, whole again for a task that was preempted before it.
 * 90 would be an instruction of its own: a task preempted behind it would run the next
 * one without the lock after the lock is put back.
 */
#define PREFIX_LOCK 0xf0
#define PREFIX_DS 0x3e

void arch_smp_atomics(bool smp)
{
	u8 from = smp ? PREFIX_DS : PREFIX_LOCK;
	u8 to = smp ? PREFIX_LOCK : PREFIX_DS;
	long delta = arch_text_open();

	for (unsigned int i = 0; i < lock_count; i++) {
		unsigned long at = (unsigned long)_text + lock_table[i];
		u8 found = *(const u8 *)at;

		if (found == to)
			continue;
		if (found != from)
			panic("%pS: found %02x, expected a lock prefix",
			      (void *)at, found);
		*(volatile u8 *)(at + delta) = to;
	}
	arch_text_close();
	arch_text_sync();
}
PATCH_ROOT(arch_smp_atomics);

void arch_cpu_idle(void)
{
	wait_irq();
}

void arch_cpu_halt(void)
{
	for (;;)
		asm volatile("cli; hlt" : : : "memory");
}

/*
 * rbp = 0 and a return address of 0 above task_start() end every walk, the
 * stack is aligned there as after a call.
 */
void arch_task_init(struct task *t, void *stack_top)
{
	u64 *top = stack_top;
	struct switch_frame *s;

	*--top = 0;
	*--top = 0;
	s = (struct switch_frame *)(top + 1) - 1;
	*s = (struct switch_frame){ .ret = (unsigned long)task_start };
	t->context.sp = (unsigned long)s;
}
