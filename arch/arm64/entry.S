/* SPDX-License-Identifier: MIT */
/* Trap entry and return, and task switch. */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <regs.h>

#define SCRATCH(n) (CPU_HEAD_SCRATCH + 8 * (n))

/*
 * Frame information for stack walks (kernel/image/unwind.h). While the interrupted pc and
 * registers are only in the CPU, no walk can begin: a trap that began one would have
 * overwritten them. The frame information says so by naming a register that no walk follows
 * (x10). While the trap frame is complete its return address is undefined, and the CFA
 * is where struct trap_frame begins.
 */
.macro frame_incomplete
	.cfi_signal_frame
	.cfi_register x30, x10
.endm
.macro frame_complete
	.cfi_undefined x30
.endm

/* All but x0, x1 and x28, which trap_entry handles one by one. */
.macro each_pair op
	\op	x2, x3, [sp, #FRAME_REG(2)]
	\op	x4, x5, [sp, #FRAME_REG(4)]
	\op	x6, x7, [sp, #FRAME_REG(6)]
	\op	x8, x9, [sp, #FRAME_REG(8)]
	\op	x10, x11, [sp, #FRAME_REG(10)]
	\op	x12, x13, [sp, #FRAME_REG(12)]
	\op	x14, x15, [sp, #FRAME_REG(14)]
	\op	x16, x17, [sp, #FRAME_REG(16)]
	\op	x18, x19, [sp, #FRAME_REG(18)]
	\op	x20, x21, [sp, #FRAME_REG(20)]
	\op	x22, x23, [sp, #FRAME_REG(22)]
	\op	x24, x25, [sp, #FRAME_REG(24)]
	\op	x26, x27, [sp, #FRAME_REG(26)]
	\op	x29, x30, [sp, #FRAME_REG(29)]
.endm

/*
 * Every trap comes from kernel code, with interrupts masked, x28 right and sp the stack
 * pointer of this level. So four of the sixteen vectors are taken: synchronous, interrupt,
 * fast interrupt and error.
 */
.macro vector kind
	.balign	128
	stp	x0, x1, [x28, #SCRATCH(SCRATCH_X0)]
	mov	x0, #\kind
	b	trap_entry
.endm

	.section .text.vectors, "ax"
	.balign	2048
FUNCTION(trap_vectors)
	frame_incomplete
	.fill	0x200 / 4, 4, 0	/* udf */
	vector	KIND_SYNC
	vector	KIND_IRQ
	vector	KIND_OTHER
	vector	KIND_OTHER
END(trap_vectors)

	.text
/*
 * sp may be anything: it is used only if a whole frame fits between it and the bottom of
 * the running task's stack. Otherwise storing the frame would fault in the guard page,
 * and that trap's frame too, for ever. No room, or a wild sp: the CPU's emergency stack,
 * from its top, but if sp already lies in there (a fault while a fault is being reported),
 * from where it is.
 */
FUNCTION(trap_entry)
	frame_incomplete
	ldr	x1, [x28, #SCRATCH(SCRATCH_STACK)]
	sub	x1, sp, x1
	cmp	x1, #STACK_SIZE
	b.hi	3f
	cmp	x1, #FRAME_SIZE
	b.lo	3f
1:	mov	x1, sp			/* there is room */
	and	sp, x1, #-16
2:	sub	sp, sp, #FRAME_SIZE
	each_pair stp
	str	x28, [sp, #FRAME_REG(28)]
	mrs	x2, elr_el1
	stp	x1, x2, [sp, #FRAME_SP]
	mrs	x2, spsr_el1
	mrs	x3, esr_el1
	stp	x2, x3, [sp, #FRAME_STATUS]
	mrs	x2, far_el1
	stp	x2, x0, [sp, #FRAME_ADDRESS]
	ldp	x4, x5, [x28, #SCRATCH(SCRATCH_X0)]
	stp	x4, x5, [sp, #FRAME_REG(0)]
	frame_complete
	/* The task that runs after the trap may be another: it must find interrupts
	 * masked, and nothing else. */
	msr	daifclr, #DAIF_SET_A
	/*
	 * A breakpoint may stand in any site, so no function with a site runs before
	 * patch_trap(). That holds on a lost stack too, for a call in place of the
	 * breakpoint would not have lost it.
	 */
	tst	x0, #KIND_IRQ | KIND_OTHER
	b.ne	4f
	lsr	w3, w3, #ESR_CLASS_SHIFT
	cmp	w3, #ESR_BRK
	b.ne	4f
	mov	x0, sp
	bl	patch_trap
	tbnz	w0, #0, trap_resume
4:	mov	x0, sp
	bl	trap_handler
trap_resume:
	/* Perhaps on another CPU than before: nothing was kept. The eret also ends an
	 * exclusive access that the interrupted code has begun. */
	ldp	x0, x1, [sp, #FRAME_PC]
	msr	elr_el1, x0
	msr	spsr_el1, x1
	each_pair ldp
	ldp	x0, x1, [sp, #FRAME_REG(0)]
	str	x0, [x28, #SCRATCH(SCRATCH_X0)]
	ldr	x0, [sp, #FRAME_SP]
	frame_incomplete
	mov	sp, x0
	ldr	x0, [x28, #SCRATCH(SCRATCH_X0)]
	eret

3:	ldr	x1, [x28, #CPU_HEAD_TRAP_STACK]
	sub	x1, sp, x1
	add	x1, x1, #TRAP_STACK_SIZE
	cmp	x1, #TRAP_STACK_SIZE
	b.hi	5f
	cmp	x1, #FRAME_SIZE
	b.hs	1b			/* nested, with room */
5:	mov	x1, sp			/* the task's stack is lost */
	str	x1, [x28, #SCRATCH(SCRATCH_START)]
	ldr	x1, [x28, #CPU_HEAD_TRAP_STACK]
	mov	sp, x1
	ldr	x1, [x28, #SCRATCH(SCRATCH_START)]
	orr	x0, x0, #KIND_LOST
	b	2b
END(trap_entry)

.macro each_saved op, context
	\op	x19, x20, [\context, #CONTEXT_X(19)]
	\op	x21, x22, [\context, #CONTEXT_X(21)]
	\op	x23, x24, [\context, #CONTEXT_X(23)]
	\op	x25, x26, [\context, #CONTEXT_X(25)]
.endm

/*
 * struct task *arch_switch(struct task *prev, struct task *next). The way back is in x9, and
 * the stack pointer changes last, so that at every instruction the frame information
 * tells a stack and a return address of the same task.
 */
FUNCTION(arch_switch)
	mov	x9, sp
	stp	x30, x9, [x0, #CONTEXT_LR]
	each_saved stp, x0
	str	x27, [x0, #CONTEXT_X(27)]
	ldr	x9, [x28, #SCRATCH(SCRATCH_STACK)]
	stp	x29, x9, [x0, #CONTEXT_X(29)]
	each_saved ldp, x1
	ldr	x27, [x1, #CONTEXT_X(27)]
	ldp	x29, x9, [x1, #CONTEXT_X(29)]
	str	x9, [x28, #SCRATCH(SCRATCH_STACK)]
	str	x1, [x28, #CPU_HEAD_CURRENT]
	ldp	x9, x10, [x1, #CONTEXT_LR]
	mov	sp, x10
	.cfi_register x30, x9
	ret	x9			/* x0: the task that ran before */
END(arch_switch)

/* Where a new task's first arch_switch() returns to. */
LOCAL_FUNCTION(task_begin)
	.cfi_undefined x30		/* nothing called it: walks end here */
	nop				/* room for the call before task_first */
	.globl	task_first
task_first:
	mov	x30, xzr
	b	task_start
END(task_begin)
