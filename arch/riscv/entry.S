/* SPDX-License-Identifier: MIT */
/* Trap entry and return, task switch, and reads of registers that may not be. */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <regs.h>

#define SCRATCH(n) (CPU_HEAD_SCRATCH + 8 * (n))(tp)

/*
 * Frame information for stack walks (kernel/image/unwind.h). While the interrupted pc
 * and registers are only in the CPU, no walk can begin: a trap that began one would
 * have overwritten them. The frame information says so by naming a register that no
 * walk follows (65). While the trap frame is complete its return address is undefined,
 * and the CFA is where struct trap_frame begins.
 */
.macro frame_incomplete
	.cfi_signal_frame
	.cfi_register ra, 65
.endm
.macro frame_complete
	.cfi_undefined ra
.endm

/* All but x0, sp, tp, t0, t1, which trap_entry handles one by one. */
.macro each_register op
	.irp	n, 1, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, \
		21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	\op	x\n, FRAME_REG(\n)(sp)
	.endr
.endm

	.text
/*
 * Every trap comes here, from kernel code, with interrupts off and tp right. sp
 * may be anything: it is used only if a whole frame fits between it and the
 * bottom of the running task's stack. Otherwise storing the frame would fault
 * in the guard page, and that trap's frame too, for ever. No room, or a wild
 * sp: the CPU's emergency stack, from its top, but if sp already lies in there
 * (a fault while a fault is being reported), from where it is.
 */
	.globl	trap_vectors
	.balign	4
trap_vectors:			/* stvec's: there is one */
FUNCTION(trap_entry)
	frame_incomplete
	sd	t0, SCRATCH(SCRATCH_T0)
	sd	t1, SCRATCH(SCRATCH_T1)
	ld	t0, SCRATCH(SCRATCH_STACK)
	sub	t0, sp, t0
	addi	t0, t0, -FRAME_SIZE
	li	t1, STACK_SIZE - FRAME_SIZE
	bgtu	t0, t1, 2f
	li	t1, 0			/* there was room */
	mv	t0, sp
	addi	sp, sp, -FRAME_SIZE
1:
	each_register sd
	sd	t0, FRAME_REG(2)(sp)
	sd	gp, FRAME_REG(3)(sp)
	sd	tp, FRAME_REG(4)(sp)
	ld	t0, SCRATCH(SCRATCH_T0)
	sd	t0, FRAME_REG(5)(sp)
	ld	t0, SCRATCH(SCRATCH_T1)
	sd	t0, FRAME_REG(6)(sp)
	csrr	t0, sepc
	sd	t0, FRAME_PC(sp)
	csrr	t0, sstatus
	sd	t0, FRAME_STATUS(sp)
	csrr	t0, stval
	sd	t0, FRAME_TVAL(sp)
	csrr	t0, scause
	sd	t0, FRAME_CAUSE(sp)
	frame_complete
	mv	a0, sp
	mv	s1, t1
	/*
	 * A breakpoint may stand in any site, so no function with a site runs before
	 * patch_trap(). That holds on a lost stack too, for a call in place of the
	 * breakpoint would not have lost it.
	 */
	ori	t0, t0, SCAUSE_ILLEGAL ^ SCAUSE_BREAKPOINT
	li	t1, SCAUSE_BREAKPOINT
	bne	t0, t1, 4f
	call	patch_trap
	bnez	a0, trap_resume
	mv	a0, sp
4:	mv	a1, s1
	call	trap_handler
trap_resume:
	/* Perhaps on another CPU than before: nothing was kept. */
	ld	t0, FRAME_STATUS(sp)
	csrw	sstatus, t0
	ld	t0, FRAME_PC(sp)
	csrw	sepc, t0
	/*
	 * End a load reservation: the interrupted code's own, which another
	 * task's lr on the same word may have renewed in between. If this
	 * store succeeds, it writes the value that is already there.
	 */
	sc.d	zero, t0, (sp)
	each_register ld
	ld	t0, FRAME_REG(5)(sp)
	ld	t1, FRAME_REG(6)(sp)
	ld	sp, FRAME_REG(2)(sp)
	frame_incomplete
	sret

2:	ld	t0, CPU_HEAD_TRAP_STACK(tp)
	sub	t0, t0, sp
	li	t1, TRAP_STACK_SIZE - FRAME_SIZE
	bgtu	t0, t1, 3f
	li	t1, 0			/* nested, with room */
	mv	t0, sp
	addi	sp, sp, -FRAME_SIZE
	andi	sp, sp, -16
	j	1b
3:	li	t1, 1			/* the task's stack is lost */
	mv	t0, sp
	ld	sp, CPU_HEAD_TRAP_STACK(tp)
	addi	sp, sp, -FRAME_SIZE
	j	1b
END(trap_entry)

.macro each_saved op, context
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	\op	s\n, CONTEXT_S(\n)(\context)
	.endr
.endm

/*
 * struct task *arch_switch(struct task *prev, struct task *next). The way back is in
 * t0, and the stack pointer changes last, so that at every instruction the frame
 * information tells a stack and a return address of the same task.
 */
FUNCTION(arch_switch)
	sd	ra, CONTEXT_RA(a0)
	sd	sp, CONTEXT_SP(a0)
	each_saved sd, a0
	ld	t0, SCRATCH(SCRATCH_STACK)
	sd	t0, CONTEXT_STACK(a0)
	each_saved ld, a1
	ld	t0, CONTEXT_STACK(a1)
	sd	t0, SCRATCH(SCRATCH_STACK)
	sd	a1, CPU_HEAD_CURRENT(tp)
	ld	t0, CONTEXT_RA(a1)
	ld	sp, CONTEXT_SP(a1)
	.cfi_register ra, t0
	jr	t0			/* a0: the task that ran before */
END(arch_switch)

/* Where a new task's first arch_switch() returns to. */
LOCAL_FUNCTION(task_begin)
	.cfi_undefined ra		/* nothing called it: walks end here */
	nop				/* room for the call before task_first */
	.globl	task_first
task_first:
	li	ra, 0
	tail	task_start
END(task_begin)

/*
 * bool csr_probe_*(void): may this mode use the register? An access that may
 * not be traps. stvec leads it back here. Interrupts off.
 */
.macro probe name, instruction:vararg
FUNCTION(\name)
	lla	t0, 1f
	csrrw	t0, stvec, t0
	li	a0, 0
	\instruction
	li	a0, 1
	.balign	4			/* as stvec wants it */
1:	csrw	stvec, t0
	ret
END(\name)
.endm

probe csr_probe_instret, csrr t1, instret
probe csr_probe_stimecmp, csrr t1, CSR_STIMECMP
