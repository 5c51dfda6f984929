/* SPDX-License-Identifier: MIT */
/*
 * The contract between nopl and a port: every function that a port supplies to the
 * kernel. arch_trace.h is the tracer's half. Each comment says how the function
 * must act, which facts it may assume, and which failure a mistake in it causes.
 *
 * The port defines the functions marked "inline" in its arch_inline.h, which is
 * included at the bottom, and the others in its .c and .S files. A missing function
 * fails the build. A wrong one fails its test in arch/conform.
 *
 * A port may include these headers of the kernel, and no others (tools/check):
 *	assert.h console.h cpu/cpu.h cpu/hotplug.h errno.h image/symbols.h
 *	image/unwind.h irq.h lib/string.h lock/lock.h main.h mm/page.h panic.h
 *	patch_path.h printk.h sched/task.h trap.h types.h
 *
 * A CPU index is a dense unsigned int. An hwid_t is the hardware's own number of a CPU.
 * "Interrupts off" means on the calling CPU.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <arch/cpu_head.h>
#include <kernel/types.h>
#include <kernel/image/unwind.h>

struct cpu;
struct task;
struct trap_frame; /* the port's frame.h. Generic code uses the accessors */

/* ---- Boot and end ------------------------------------------------------ */

/* The port's name as in `make ARCH=`, for the banner and for tests. */
extern const char arch_name[];

/*
 * Make arch_console_putc() work, from boot_info alone. This is the kernel's first
 * call to the port, so nothing else is ready. boot/<arch> prints through
 * arch_console_putc() even earlier. A byte that the console has received before
 * must not be lost: arch_console_getc() returns it later.
 */
void arch_console_init(void);

/* Send one byte, by polling. Takes no lock. Any context, traps and NMIs included. */
void arch_console_putc(char c);

/* Return the next byte received, or -1. Never waits. Called from the console's
 * event. */
int arch_console_getc(void);

/*
 * Let received bytes raise an interrupt. The port then calls irq_event(IRQ_CONSOLE)
 * (kernel/irq.h), once or more until arch_console_getc() returns -1. A console that is polled
 * would keep an idle CPU busy. Called once on the boot CPU, after arch_irq_init().
 */
void arch_console_irq_enable(void);

/*
 * The status with which QEMU must end when the kernel ends with `status`: odd, from 33
 * on. QEMU itself gives 0 when the machine resets and when a signal or its monitor ends
 * it, and 1 when it fails. tools/lib/qemu.py believes no status below 33.
 */
#define POWER_STATUS_MOST 110
static inline u32 power_status(int status)
{
	bool fits = status >= 0 && status <= POWER_STATUS_MOST;

	return 33 + 2 * (u32)(fits ? status : 1);
}

/*
 * End the machine with an exit status: 0 is success, 1 to POWER_STATUS_MOST is failure.
 * QEMU's own exit status becomes power_status(status). Never returns. Any context.
 */
noreturn void arch_power_off(int status);

/* ---- CPUs -------------------------------------------------------------- */

/* inline: this CPU's struct, by one instruction. So the answer is exact, but it is
 * out of date at once if the task can be preempted. The port sets the CPU register
 * before the CPU runs any C code that asks. */
static inline struct cpu *arch_this_cpu(void);

/* inline: the running task, by one load relative to the CPU register. So the answer
 * is right wherever the task is preempted. */
static inline struct task *arch_current(void);

/* inline: set this CPU's `current`, before its first arch_switch(): head.current, and where the
 * CPU register is memory, that word too. */
static inline void arch_set_current(struct task *t);

/*
 * Set up traps on the calling CPU: vectors, and all else that a trap needs (descriptor
 * tables, the emergency stack head.trap_stack). Afterwards every fault on this CPU
 * reaches trap_fault(), a stack overflow included. Its words name the access as the
 * machine tells it: read or load, write or store, execute or fetch. Interrupts off.
 */
void arch_trap_init(void);

/*
 * Start CPU `cpu`, whose struct (index, hwid, idle task with its stack) is ready.
 * The CPU must enter cpu_secondary_main() (kernel/cpu/hotplug.h) on its idle task's
 * stack, with arch_this_cpu() set, paging as on the boot CPU, interrupts off, and
 * its instruction fetch synchronised. Returns at once: 0, or -EIO when the firmware
 * refused. Any CPU, preemptible. The caller starts one CPU at a time.
 */
int arch_cpu_start(unsigned int cpu);

/*
 * Wait for an interrupt. Called with interrupts off, returns with them on. Enabling
 * and waiting must be one step: an interrupt that is pending, or that comes in
 * between, ends the wait. Otherwise a wake-up is lost until the next tick.
 */
void arch_cpu_idle(void);

/*
 * inline: called in spin loops, so that other CPUs can run. Under -icount
 * (boot_info.icount) QEMU runs one CPU at a time until its next timer.
 * There this function must make that happen soon, or every rendezvous costs a time
 * slice. It changes nothing that the kernel sees. It must return by itself: if a
 * CPU sleeps here past its own timer, its spin loop may never end.
 */
static inline void arch_cpu_relax(void);

/* Stop this CPU for good: interrupts off, asleep. Any context. Has no site. */
noreturn void arch_cpu_halt(void);

/*
 * arch_cpu_park(): take this CPU, which is not the boot CPU, out of the machine.
 * arch_cpu_start() must be able to start it again as if for the first time. Called
 * on its idle task's stack, interrupts off, with nothing pending that another CPU
 * waits for. Has no site.
 *
 * arch_cpu_parked(), from another CPU: true once that CPU uses no memory any more,
 * its stack included. If this returned true too early, two CPUs would run on one
 * stack.
 */
noreturn void arch_cpu_park(void);
bool arch_cpu_parked(unsigned int cpu);

/*
 * From now on the kernel's atomic instructions must be atomic for other CPUs (smp),
 * or need not be. Where that is a prefix of the instruction, change it in place
 * everywhere. Elsewhere this function is empty. No other CPU runs or is about to
 * arrive, interrupts are off, and any task may be preempted anywhere.
 */
void arch_smp_atomics(bool smp);

/* ---- Interrupts -------------------------------------------------------- */

/* inline: turn interrupts off and return their state before, and restore that state. Both are
 * compiler barriers. */
static inline irq_state_t arch_irq_save(void);
static inline void arch_irq_restore(irq_state_t state);
/* inline: turn them on. */
static inline void arch_irq_enable(void);
/* inline: are interrupts off now? And were they, when arch_irq_save() returned state? */
static inline bool arch_irqs_off(void);
static inline bool arch_irq_was_off(irq_state_t state);

/*
 * Set up the interrupt controller and interrupts between CPUs, for the calling CPU.
 * The boot CPU's call comes first, and also makes the settings that the machine needs once.
 * Interrupts off.
 */
void arch_irq_init(void);

/*
 * Raise the inter-processor interrupt on CPU `cpu`, which is never the caller. The
 * port there calls irq_event(IRQ_IPI). The reason for the interrupt is in memory, so
 * stores before the call must be visible to the CPU that takes it. Any context.
 */
void arch_ipi_send(unsigned int cpu);

/*
 * Raise a non-maskable interrupt on CPU `cpu`, which may be the caller. The port
 * there calls irq_nmi() (kernel/irq.h). 0, or -ENOSYS where the machine has no NMI.
 * Any context, but from an NMI only while the interrupted code sends nothing.
 */
int arch_nmi_send(unsigned int cpu);

/* ---- Time -------------------------------------------------------------- */

/*
 * inline: ticks of a 64-bit clock that is the same on all CPUs and never runs
 * backwards. Before arch_clock_init() only differences are used. Any context.
 */
static inline u64 arch_clock(void);

/* Return arch_clock()'s ticks a second, measured if boot_info does not say. */
u64 arch_clock_init(void);

/* Make the calling CPU's one-shot timer ready, and silent. Interrupts off. */
void arch_timer_init(void);

/*
 * Raise irq_event(IRQ_TIMER) on the calling CPU once, when arch_clock() reaches
 * `deadline`. This replaces any earlier request. A deadline that has passed raises
 * the event at once. If the port loses a request, every sleeper of this CPU hangs.
 * Interrupts off.
 */
void arch_timer_set(u64 deadline);

/* inline: how many instructions this CPU has executed under `-icount shift=0`, as
 * exactly as the machine can tell. Only differences count. For `make bench`. */
static inline u64 arch_instructions(void);

/* ---- Memory ------------------------------------------------------------ */

/*
 * Replace the boot page tables. Afterwards text is read-only and executable, all
 * other memory is never executable, no other mapping of the text is writable. Address 0
 * is unmapped, and so is all from 1 MiB to the direct map. Called once, with the page
 * allocator ready, interrupts off, before other CPUs start. On a machine that cannot
 * protect text this does nothing, and arch_protects_text is false.
 */
void arch_mmu_init(void);

/* inline constant: does the hardware protect text and guard pages here? */
extern const bool arch_protects_text;

/* inline: the physical address of a pointer into the kernel's direct map or image,
 * and the pointer of a physical address. */
static inline u64 arch_virt_to_phys(const void *va);
static inline void *arch_phys_to_virt(u64 pa);

/*
 * Make the page at `page` (in the direct map, owned by the caller) fault on any
 * access by any CPU, or make it usable again (on = false). 0, or -ENOSYS where the
 * hardware cannot: kernel/sched/task.c then keeps a canary. Where it does not reach
 * CPUs that are not online, CPU_COMES() has a CPU that comes forget all translations
 * (kernel/cpu/hotplug.h). Preemptible and with interrupts on, except during boot, when
 * this CPU is the only one.
 */
int arch_guard_page(void *page, bool on);

/* ---- Tasks ------------------------------------------------------------- */

/*
 * Prepare t->context (the port's struct arch_context, first in struct task), so that
 * the first arch_switch() to t calls task_start() (kernel/sched/task.h) on t's stack
 * with interrupts off. A stack walk must end there, and its return address is 0.
 */
void arch_task_init(struct task *t, void *stack_top);

/*
 * Save in prev the registers that a call must preserve, load them from next, and set this CPU's
 * `current`. Returns in next's context, with the task that ran before. Interrupts
 * off, preemption off. The CPU register is not part of a context. At every
 * instruction the frame information must describe a stack pointer and a return
 * address of the same task.
 */
struct task *arch_switch(struct task *prev, struct task *next);

/* ---- Traps ------------------------------------------------------------- */

/* inline: the address of the instruction that was interrupted or has faulted, and
 * set it. The new one may be a function's first instruction: then set, too, the register in
 * which a call through a pointer leaves that address, if the ABI has one. */
static inline unsigned long arch_frame_pc(const struct trap_frame *f);
static inline void arch_frame_set_pc(struct trap_frame *f, unsigned long pc);
/*
 * inline: the address of the first instruction that has not been executed. This is
 * the pc, except in a branch's delay slot: there the pc is the branch, which runs
 * again, and the first instruction not executed is the slot's.
 */
static inline unsigned long arch_frame_boundary(const struct trap_frame *f);

/* Print all registers of a frame with printk(), several on a line. */
void arch_frame_print(const struct trap_frame *f);

/* constant: the address of a page fault is a multiple of so many bytes: 1, or PAGE_SIZE where the
 * CPU tells the page alone. */
extern const unsigned int arch_fault_unit;

/*
 * inline: the registers that a stack walk begins with (kernel/image/unwind.h).
 * arch_frame_regs(): all of them, of the code that a trap has interrupted.
 * arch_context_regs(): pc and sp of a task that arch_switch() has left, where pc is
 * the address that arch_switch() will return to. Where each register is at each
 * instruction, the .cfi directives of the port's assembly say. A wrong directive
 * makes backtraces wrong, and tests/test_unwind.py finds it.
 */
static inline void arch_frame_regs(const struct trap_frame *f,
				   struct unwind_regs *r);
static inline void arch_context_regs(const struct arch_context *c,
				     struct unwind_regs *r);

#include <arch_inline.h>

/* For a caller that turns interrupts on again even if they were off before. */
static inline void arch_irq_disable(void)
{
	arch_irq_save();
}

#endif
