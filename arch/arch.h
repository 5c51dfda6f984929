/*
 * The contract between nopl and a port: every function that a port supplies to
 * the kernel. arch_trace.h is the tracer's half. Each comment says what the
 * function must do, what it may assume, and what breaks otherwise. The port's
 * arch_inline.h, included at the bottom, defines those marked "inline"; the
 * rest stands in its .c and .S files. A function that is missing fails the
 * build; one that is wrong fails its test in arch/conform/conform.c.
 *
 * Words: a CPU index is a dense unsigned int, an hwid_t is what the hardware
 * calls a CPU. "Interrupts off" means on the calling CPU.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <arch/cpu_head.h>
#include <kernel/types.h>
#include <kernel/unwind.h>

struct cpu;
struct task;
struct trap_frame; /* the port's frame.h; generic code uses the accessors */

/* ---- Boot and end ------------------------------------------------------ */

/* Name as in `make ARCH=`, for the banner and for tests. */
extern const char arch_name[];

/*
 * Make arch_console_putc() work, from boot_info alone. First of all calls, may
 * assume nothing; before it, boot/<arch> prints through the same function.
 */
void arch_console_init(void);

/* Send one byte, polled. Any context, traps and NMIs included; takes no lock. */
void arch_console_putc(char c);

/* The next byte received, or -1. Never waits. Called from the console event. */
int arch_console_getc(void);

/*
 * Let received bytes raise an interrupt: the port then calls
 * irq_event(IRQ_CONSOLE) (kernel/irq.h) until arch_console_getc() says -1.
 * Called once, on the boot CPU, after arch_irq_init(). A polled console would
 * keep an idle CPU busy.
 */
void arch_console_irq_enable(void);

/*
 * End the machine with an exit status: 0 is success, 1..127 failure. Under
 * tools/run QEMU's own status tells which. Never returns; any context.
 */
noreturn void arch_power_off(int status);

/* ---- CPUs -------------------------------------------------------------- */

/* inline: this CPU's struct, one instruction, so exact even when preemptible
 * (the answer may be stale at once unless preemption is off). */
static inline struct cpu *arch_this_cpu(void);

/* inline: the running task: one load relative to the CPU register, so right
 * whatever preempts it. */
static inline struct task *arch_current(void);

/* inline: point this CPU's register at cpu. Boot and CPU start only. */
static inline void arch_set_this_cpu(struct cpu *cpu);

/*
 * Per-CPU set-up on the calling CPU, interrupts off: trap vectors and anything
 * a trap needs (descriptor tables, emergency stack head.trap_stack). After it a
 * fault on this CPU reaches trap_fault(), stack overflow included.
 */
void arch_trap_init(void);

/*
 * Start CPU `cpu`, whose struct (index, hwid, idle task with its stack) is
 * ready. It must enter cpu_secondary_main() (kernel/cpu/cpu.h) on its idle task's
 * stack, arch_this_cpu() set, paging as on the boot CPU, interrupts off, its
 * instruction fetch synchronised. Returns at once: 0, or -EIO when the firmware
 * refused. Any CPU, preemptible; one start at a time.
 */
int arch_cpu_start(unsigned int cpu);

/*
 * Wait for an interrupt. Called with interrupts off and returns with them on;
 * enabling and waiting must be one step: an interrupt that is pending or that
 * comes in between ends the wait. Otherwise a wake-up is lost until the next
 * tick.
 */
void arch_cpu_idle(void);

/*
 * inline: in a spin loop: let others run. Under -icount (ktest_icount, a boot
 * parameter) QEMU runs one CPU at a time until its next timer: there it must
 * make that soon, or every rendezvous costs a time slice. Changes nothing that
 * the kernel sees.
 */
extern bool ktest_icount;
static inline void arch_cpu_relax(void);

/* Stop this CPU for good: interrupts off, asleep. Any context. Has no site. */
noreturn void arch_cpu_halt(void);

/*
 * Take this CPU, not the boot CPU, out of the machine so that arch_cpu_start()
 * can start it again, as if for the first time. Interrupts off, on its idle
 * task's stack; nothing is pending that anybody waits for. Has no site.
 * arch_cpu_parked(), from another CPU: has it let go of its stack and of all
 * memory, so that it may be started again? Started too early, two CPUs would run
 * on one stack.
 */
noreturn void arch_cpu_park(void);
bool arch_cpu_parked(unsigned int cpu);

/*
 * The kernel's atomic instructions from now on need (smp) or need not be atomic
 * for other CPUs: where that is a prefix of an instruction, change it in place
 * everywhere; elsewhere empty. One CPU is online, interrupts are off, any task
 * may be preempted anywhere.
 */
void arch_smp_atomics(bool smp);

/* ---- Interrupts -------------------------------------------------------- */

/* inline: turn interrupts off, return what they were; and put that back. A
 * compiler barrier both. */
static inline irq_state_t arch_irq_save(void);
static inline void arch_irq_restore(irq_state_t state);
/* inline: unconditional forms. */
static inline void arch_irq_enable(void);
static inline void arch_irq_disable(void);
/* inline: are interrupts off now? */
static inline bool arch_irqs_off(void);

/*
 * Interrupt controller and inter-processor interrupts on the calling CPU,
 * interrupts off. The boot CPU's call comes first and also does what is global.
 */
void arch_irq_init(void);

/*
 * Raise the inter-processor interrupt on CPU `cpu` (never the caller itself).
 * There its port calls irq_event(IRQ_IPI). What it is for stands in memory;
 * stores before the call must be visible to the CPU that takes it. Any context.
 */
void arch_ipi_send(unsigned int cpu);

/*
 * Raise a non-maskable interrupt on CPU `cpu`, the caller itself included; there
 * irq_nmi_hook (kernel/irq.h) is called. 0, or -ENOSYS where the machine has
 * none. Any context; from an NMI only while what it interrupted sends nothing.
 */
int arch_nmi_send(unsigned int cpu);

/* ---- Time -------------------------------------------------------------- */

/*
 * inline: ticks of a 64-bit clock that never runs backwards and is the same on
 * all CPUs. Any context; used before arch_clock_init() for differences only.
 */
static inline u64 arch_clock(void);

/* Ticks a second of arch_clock(), measured if boot_info does not say. */
u64 arch_clock_init(void);

/* The one-shot timer of the calling CPU, interrupts off: made ready, silent. */
void arch_timer_init(void);

/*
 * Raise irq_event(IRQ_TIMER) on the calling CPU once, when arch_clock() reaches
 * `deadline`, replacing any earlier request; a deadline that has passed fires at
 * once. Interrupts off. Losing one hangs every sleeper of this CPU.
 */
void arch_timer_set(u64 deadline);

/* inline: instructions that this CPU executed under `-icount shift=0`, as near
 * as the machine has it; only differences count. For `make bench`. */
static inline u64 arch_instructions(void);

/* ---- Memory ------------------------------------------------------------ */

/*
 * Replace the boot page tables: text read-only and executable, everything else
 * never executable, text never writable by any other mapping of the same
 * memory, address 0 unmapped. Called once with the page allocator ready,
 * interrupts off, before other CPUs. On a machine where text cannot be
 * protected: nothing, and arch_protects_text is false.
 */
void arch_mmu_init(void);

/* inline constant: are text and guard pages protected by hardware here? */
extern const bool arch_protects_text;

/* inline: physical address of a pointer into the kernel's direct map or image,
 * and back. */
static inline u64 arch_virt_to_phys(const void *va);
static inline void *arch_phys_to_virt(u64 pa);

/*
 * Make the page at `page` (direct map, owned by the caller) fault on any access
 * on every CPU, or (on = false) usable again. -ENOSYS where hardware cannot:
 * then kernel/sched/task.c keeps a canary. Preemptible, interrupts on, once SMP is
 * up; before that any context.
 */
int arch_guard_page(void *page, bool on);

/* ---- Tasks ------------------------------------------------------------- */

/*
 * Prepare t->context (the port's struct arch_context, first in struct task) so
 * that the first arch_switch() to t calls task_start() (kernel/sched/task.h) on t's
 * stack, interrupts off. A stack walk must end there.
 */
void arch_task_init(struct task *t, void *stack_top);

/*
 * Save what a call must preserve into prev, load next's, set this CPU's
 * `current`; returns, in next's context, the task that ran before. Interrupts
 * off, preemption off. The CPU register is not part of a context.
 */
struct task *arch_switch(struct task *prev, struct task *next);

/* ---- Traps ------------------------------------------------------------- */

/* inline: the interrupted or faulting instruction's address; set it anew. */
static inline unsigned long arch_frame_pc(const struct trap_frame *f);
static inline void arch_frame_set_pc(struct trap_frame *f, unsigned long pc);
/* inline: the boundary that an interrupt came at: the address of the first
 * instruction that has not been executed. The pc; but in a branch's delay slot,
 * where the pc is that of the branch, which runs again, the slot's. */
static inline unsigned long arch_frame_boundary(const struct trap_frame *f);
/* inline: the stack pointer as it was at that instruction. */
static inline unsigned long arch_frame_sp(const struct trap_frame *f);
/* inline: were interrupts off there? */
static inline bool arch_frame_irqs_off(const struct trap_frame *f);

/* Print all registers of a frame with printk(), several on a line. */
void arch_frame_print(const struct trap_frame *f);

/*
 * inline: the registers that a stack walk begins with (kernel/unwind.h): those of
 * the interrupted code in a trap frame, all of them; and pc and sp of a task that
 * arch_switch() has left, pc being where arch_switch() will return to. Where a
 * register is, at each instruction, the frame information of the port's assembly
 * says (.cfi directives): a wrong one shows in every backtrace.
 */
static inline void arch_frame_regs(const struct trap_frame *f,
				   struct unwind_regs *r);
static inline void arch_context_regs(const struct arch_context *c,
				     struct unwind_regs *r);

#include <arch_inline.h>

#endif
