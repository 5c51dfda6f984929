/* SPDX-License-Identifier: MIT */
/* Trap entry and return, and task switch. */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

#define SCRATCH(n) (CPU_HEAD_SCRATCH + 8 * (n))
#define FRAME(field) (SAVE_AREA + FRAME_##field)
#define FRAME_ALL (SAVE_AREA + FRAME_SIZE)

/*
 * Frame information for stack walks (kernel/image/unwind.h). While the interrupted pc and
 * registers are only in the CPU, no walk can begin: a trap that began one would have
 * overwritten them. The frame information says so by naming a register that no walk follows
 * (r10). While the trap frame is complete its return address is undefined, and the CFA
 * is where struct trap_frame begins.
 */
.macro frame_incomplete
	.cfi_signal_frame
	.cfi_register %r14, %r10
.endm
.macro frame_complete
	.cfi_undefined %r14
.endm

/* Of a trap: r0 its kind, r3 and r4 where the CPU has left the PSW and the cause. */
.macro vector kind, old, cause
	stmg	%r0, %r15, LC_REGS
	llihl	%r1, KERNEL_OFFSET >> 32
	lghi	%r0, \kind
	la	%r3, \old(%r1)
	la	%r4, \cause(%r1)
.endm

	.section .text.vectors, "ax"
FUNCTION(trap_vectors)
	frame_incomplete
	vector	KIND_PROGRAM, LOW_PROGRAM_OLD, LOW_PROGRAM
	jg	trap_entry
END(trap_vectors)

FUNCTION(trap_external)
	frame_incomplete
	vector	KIND_EXTERNAL, LOW_EXTERNAL_OLD, LOW_EXTERNAL
	jg	trap_entry
END(trap_external)

FUNCTION(trap_machine)
	frame_incomplete
	vector	KIND_OTHER, LOW_MACHINE_OLD, LOW_PROGRAM
	jg	trap_entry
END(trap_machine)

	.text
/*
 * r15 may be anything: it is used only if a whole frame fits between it and the bottom of
 * the running task's stack. Otherwise storing the frame would fault in the guard page,
 * and that trap's frame too, for ever. No room, or a wild r15: the CPU's emergency stack,
 * from its top, but if r15 already lies in there (a fault while a fault is being reported),
 * from where it is.
 */
FUNCTION(trap_entry)
	frame_incomplete
	lg	%r2, LC_CPU
	lgr	%r5, %r15
	slg	%r5, SCRATCH(SCRATCH_STACK)(%r2)
	clgfi	%r5, STACK_SIZE
	jh	3f
	clgfi	%r5, FRAME_ALL
	jl	3f
1:	nill	%r15, 0xfff8		/* there is room */
2:	aghi	%r15, -FRAME_ALL
	lay	%r5, LC_REGS(%r1)
	mvc	SAVE_AREA(128, %r15), 0(%r5)
	mvc	FRAME(MASK)(16, %r15), 0(%r3)
	mvc	FRAME(CAUSE)(8, %r15), 0(%r4)
	mvc	FRAME(ADDRESS)(8, %r15), LOW_ADDRESS(%r1)
	stg	%r0, FRAME(KIND)(%r15)
	frame_complete
	ni	FRAME(MASK) + 1(%r15), ~(PSW_WAIT >> 48) & 0xff	/* a wait has ended */
	tmll	%r0, KIND_PROGRAM
	jz	4f
	/* The old PSW names the next instruction, but of a fault of translation. */
	llgh	%r1, FRAME(CAUSE) + 6(%r15)
	cghi	%r1, PROGRAM_TRANSLATION
	jhe	4f
	llgh	%r2, FRAME(CAUSE) + 4(%r15)
	lg	%r3, FRAME(PC)(%r15)
	sgr	%r3, %r2
	stg	%r3, FRAME(PC)(%r15)
	/*
	 * A breakpoint may stand in any site, so no function with a site runs before
	 * patch_trap(). That holds on a lost stack too, for a call in place of the
	 * breakpoint would not have lost it.
	 */
	cghi	%r1, PROGRAM_OPERATION
	jne	4f
	la	%r2, SAVE_AREA(%r15)
	brasl	%r14, patch_trap
	tmll	%r2, 1
	jnz	trap_resume
4:	la	%r2, SAVE_AREA(%r15)
	brasl	%r14, trap_handler
trap_resume:
	/* Perhaps on another CPU than before: nothing was kept. frame.h says why the PSW
	 * is copied. */
	lg	%r1, SAVE_AREA + FRAME_REG(15)(%r15)
	mvc	0(16, %r1), FRAME(MASK)(%r15)
	lmg	%r0, %r15, SAVE_AREA(%r15)
	frame_incomplete
	lpswe	0(%r15)

3:	lg	%r5, CPU_HEAD_TRAP_STACK(%r2)
	aghi	%r5, -TRAP_STACK_SIZE
	lgr	%r6, %r15
	sgr	%r6, %r5
	clgfi	%r6, TRAP_STACK_SIZE
	jh	5f
	clgfi	%r6, FRAME_ALL
	jhe	1b			/* nested, with room */
5:	lg	%r15, CPU_HEAD_TRAP_STACK(%r2)	/* the task's stack is lost */
	oill	%r0, KIND_LOST
	j	2b
END(trap_entry)

/*
 * struct task *arch_switch(struct task *prev, struct task *next). One instruction loads the
 * stack pointer and the way back, so that at every instruction the frame information
 * tells a stack and a return address of the same task.
 */
FUNCTION(arch_switch)
	stmg	%r6, %r15, CONTEXT_REG(6)(%r2)
	lg	%r4, LC_CPU
	lg	%r5, SCRATCH(SCRATCH_STACK)(%r4)
	stg	%r5, CONTEXT_STACK(%r2)
	lg	%r5, CONTEXT_STACK(%r3)
	stg	%r5, SCRATCH(SCRATCH_STACK)(%r4)
	stg	%r3, CPU_HEAD_CURRENT(%r4)
	stg	%r3, LC_CURRENT
	lmg	%r6, %r15, CONTEXT_REG(6)(%r3)
	br	%r14			/* r2: the task that ran before */
END(arch_switch)

/* Where a new task's first arch_switch() returns to. */
LOCAL_FUNCTION(task_begin)
	.cfi_undefined %r14		/* nothing called it: walks end here */
	nopr				/* room for the call before task_first */
	.globl	task_first
task_first:
	lghi	%r14, 0
	jg	task_start
END(task_begin)
