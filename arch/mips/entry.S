/* SPDX-License-Identifier: MIT */
/*
 * Exception vectors, the way in and out of a trap, task switch and idle.
 *
 * gp is struct cpu before, during and after: no trap and no switch restores it.
 * k0 and k1 are used only while Status.EXL holds interrupts off.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.set noreorder
	.set noat
	/*
	 * Frame information for stack walks (kernel/image/unwind.h). While the
	 * interrupted pc and registers are only in the CPU, no walk can begin: a trap
	 * that began one would have overwritten them. The frame information says so by
	 * naming a register that no walk follows (70). While the trap frame is complete
	 * its return address is undefined, and the CFA is where struct trap_frame
	 * begins.
	 */
	.macro	frame_incomplete
	.cfi_signal_frame
	.cfi_register 31, 70
	.endm
	.macro	frame_complete
	.cfi_undefined 31
	.endm

	/* All but k0, k1, which are lost, sp, kept apart, and gp. */
	.macro	each_register op
	.irp	n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, \
		18, 19, 20, 21, 22, 23, 24, 25, 30, 31
	\op	$\n, FRAME_REG(\n)($sp)
	.endr
	.endm

	/* Saved by arch_switch() at base, as in struct arch_context. */
	.macro	each_saved op, base
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8
	\op	$s\n, CONTEXT_S(\n)(\base)
	.endr
	.endm

/*
 * EBase points here. Vector 0x000 is the TLB refill: any access to kuseg or kseg2,
 * where nothing is mapped. Vector 0x180 is all else, interrupts too, since Cause.IV is
 * 0.
 */
	.section .text.vectors, "ax", @progbits
	.balign 4096
FUNCTION(trap_vectors)
	frame_incomplete
	b	trap_entry
	nop
	.org	0x100
	b	cache_error_entry
	nop
	.org	0x180
	/*
	 * Is sp usable: 8-byte aligned, in RAM, and above text and read-only
	 * data? A store through a wrong one would trap again, without end.
	 */
END(trap_vectors)
LOCAL_FUNCTION(trap_entry)
	frame_incomplete
	lui	$k0, %hi(_data)
	addiu	$k0, %lo(_data)
	subu	$k0, $sp, $k0
	lui	$k1, %hi(trap_stack_span)
	lw	$k1, %lo(trap_stack_span)($k1)
	sltu	$k1, $k0, $k1
	ext	$k0, $sp, 0, 3
	sltiu	$k0, $k0, 1
	and	$k1, $k1, $k0
	bnez	$k1, 1f
	move	$k0, $sp
	lw	$sp, CPU_HEAD_TRAP_STACK($gp)
1:	addiu	$sp, $sp, -FRAME_SIZE
	sw	$k0, FRAME_REG(29)($sp)
	each_register sw
	sw	$gp, FRAME_REG(28)($sp)	/* to print */
	mflo	$t0
	sw	$t0, FRAME_LO($sp)
	mfhi	$t0
	sw	$t0, FRAME_HI($sp)
	mfc0	$t0, C0_CAUSE
	sw	$t0, FRAME_CAUSE($sp)
	mfc0	$t0, C0_EPC
	sw	$t0, FRAME_EPC($sp)
	frame_complete
	mfc0	$t0, C0_BADVADDR
	sw	$t0, FRAME_BADVADDR($sp)
	mfc0	$t0, C0_STATUS
	sw	$t0, FRAME_STATUS($sp)
	/* Interrupts off, EXL clear: a trap in the handler is a trap like any. */
	ins	$t0, $zero, 0, 5
	mtc0	$t0, C0_STATUS
	ehb
	jal	trap_handle
	move	$a0, $sp

	/*
	 * Perhaps much later, on another CPU. The saved Status has EXL set, which
	 * holds interrupts off until eret clears it.
	 */
	lw	$t0, FRAME_STATUS($sp)
	mtc0	$t0, C0_STATUS
	ehb
	lw	$t1, FRAME_EPC($sp)
	mtc0	$t1, C0_EPC
	lw	$t0, FRAME_HI($sp)
	mthi	$t0
	lw	$t0, FRAME_LO($sp)
	mtlo	$t0
	each_register lw
	lw	$sp, FRAME_REG(29)($sp)
	frame_incomplete
	ehb
	eret
END(trap_entry)

/* A cache error sets ERL, not EXL, and no EPC: there is nothing to go back to. */
LOCAL_FUNCTION(cache_error_entry)
	.cfi_undefined 31
	lw	$sp, CPU_HEAD_TRAP_STACK($gp)
	mfc0	$t0, C0_STATUS
	ins	$t0, $zero, 0, 5
	mtc0	$t0, C0_STATUS
	ehb
	jal	trap_cache_error
	addiu	$sp, $sp, -16
END(cache_error_entry)

	.text

/*
 * struct task *arch_switch(struct task *prev, struct task *next): prev stays in v0
 * from one task to the other. The way back is in at, and the stack pointer changes
 * last, so that at every instruction the frame information tells a stack and a
 * return address of the same task.
 */
FUNCTION(arch_switch)
	each_saved sw, $a0
	sw	$sp, CONTEXT_SP($a0)
	sw	$ra, CONTEXT_RA($a0)
	sw	$a1, CPU_HEAD_CURRENT($gp)
	move	$v0, $a0
	each_saved lw, $a1
	lw	$at, CONTEXT_RA($a1)
	jr	$at
	lw	$sp, CONTEXT_SP($a1)
END(arch_switch)

/* task_entry: the first instruction of a task. */
LOCAL_FUNCTION(task_begin)
	.cfi_undefined 31		/* nothing called it: walks end here */
	nop				/* room for a call before task_entry */
	nop
	.globl task_entry
task_entry:
	j	task_start
	move	$ra, $zero
END(task_begin)

/*
 * void arch_cpu_idle(void): the wait would wait for an interrupt. After one in the
 * window irq_dispatch() returns to the window's end. An interrupt that is pending
 * already is taken at the latest at the ehb, inside the window.
 */
	.globl arch_cpu_idle, idle_window, idle_window_end
LOCAL_FUNCTION(arch_cpu_idle)
	ei
idle_window:
	ehb
	wait
idle_window_end:
	jr	$ra
	nop
END(arch_cpu_idle)

/*
 * void relax_wait(void): the same for arch_relax_nap(). Interrupts are always
 * off at the end. An interrupt in the window is not handled.
 */
	.globl relax_wait, relax_window, relax_window_end
LOCAL_FUNCTION(relax_wait)
	ei
relax_window:
	ehb
	wait
	di
	ehb
relax_window_end:
	jr	$ra
	nop
END(relax_wait)
