/* SPDX-License-Identifier: MIT */
/*
 * Traps and interrupts, from the vector to trap_dispatch() and back, and the
 * switch between two tasks.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <regs.h>

/*
 * Frame information for the walker (kernel/image/unwind.h). A trap frame is described by
 * ".cfi_signal_frame" and an undefined return address: the CFA is then where
 * struct trap_frame begins. Of that, a walk reads rip and rsp alone, which the CPU
 * itself pushes. So it is right from the first instruction, while the rest of
 * the frame is yet to be pushed, to the last, when it has been popped.
 */
.macro trap_frame_at offset
	.cfi_signal_frame
	.cfi_undefined rip
	.cfi_def_cfa rsp, \offset
.endm

.macro push_value value:vararg
	pushq \value
	.cfi_adjust_cfa_offset 8
.endm

.macro trap_pop
	.irp reg, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.endr
.endm

/*
 * One stub for each vector: the CPU does not say which one it took. Vectors
 * 8, 10 to 14, 17, 21, 29 and 30 come with an error code (SDM 3A, 6.15). For
 * the others a 0 makes the frames alike.
 */
	.section .text.vectors, "ax"
	.globl trap_vectors
	.type trap_vectors, @function
	.balign VECTOR_STUB_SIZE
trap_vectors:
	.cfi_startproc
	trap_frame_at -FRAME_RIP
	vector = 0
	.rept NR_VECTORS
	.balign VECTOR_STUB_SIZE
	.cfi_def_cfa_offset -FRAME_RIP
	.if vector == VECTOR_BREAKPOINT
	jmp trap_breakpoint
	.elseif vector == VECTOR_NAP
	jmp trap_nap
	.else
	.if !((vector == 8) || (vector >= 10 && vector <= 14) || \
	      (vector == 17) || (vector == 21) || \
	      (vector == 29) || (vector == 30))
	push_value $0
	.else
	.cfi_def_cfa_offset 8 - FRAME_RIP
	.endif
	push_value $vector
	jmp trap_common
	.endif
	vector = vector + 1
	.endr
	.cfi_endproc
	.size trap_vectors, . - trap_vectors

/*
 * A breakpoint's handler may push a return address on the interrupted stack,
 * which in ring 0 ends where the CPU's part of the frame begins. So that part
 * goes 48 bytes further down (a multiple of 16, for the alignment): room for
 * the return address, and for the flags and rip that trap_return_nmi puts below it.
 */
LOCAL_FUNCTION(trap_breakpoint)
	trap_frame_at -FRAME_RIP
	push_value $0
	.rept 5
	push_value 40(%rsp)	/* ss, rsp, rflags, cs, rip */
	.endr
	.cfi_def_cfa_offset -FRAME_RIP	/* of the copy, from here on */
	push_value $0
	push_value $VECTOR_BREAKPOINT
	jmp trap_common
END(trap_breakpoint)

/* A nap with interrupts off is over (clock.c). The interrupted code still has them off, so to the
 * kernel nothing has happened. */
LOCAL_FUNCTION(trap_nap)
	trap_frame_at -FRAME_RIP
	push_value %rax
	movq lapic, %rax
	movl $0, LAPIC_EOI(%rax)
	movq 8(%rsp), %rax	/* as in interrupt(), trap.c */
	subq $wait_nop, %rax
	cmpq $(wait_hlt - wait_nop), %rax
	ja 1f
	movq $(wait_hlt + 1), 8(%rsp)
1:	popq %rax
	.cfi_adjust_cfa_offset -8
	iretq
END(trap_nap)

/* The gs base is never touched: the kernel's own value is always in it. */
LOCAL_FUNCTION(trap_common)
	trap_frame_at -FRAME_VECTOR
	.irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	push_value %\reg
	.endr
	cld
	movq %rsp, %rdi
	call trap_dispatch
	testl $PREEMPT_NMI, %gs:CPU_HEAD_PREEMPT
	jnz trap_return_nmi
	trap_pop
	addq $16, %rsp		/* vector, error */
	.cfi_adjust_cfa_offset -16
	iretq
END(trap_common)

/*
 * Back into an NMI, from a breakpoint, the one trap that such code survives.
 * IRET would end the blocking of NMIs (SDM 3A, 6.7.1), and the next one would
 * begin on the stack that the interrupted one is still using. So: flags and rip
 * onto the interrupted stack, in trap_breakpoint's room, and an ordinary return.
 * The new stack pointer travels in the frame's ss, which nothing needs any more.
 */
LOCAL_FUNCTION(trap_return_nmi)
	trap_frame_at 0
	movq FRAME_RSP(%rsp), %rax
	subq $16, %rax
	movq FRAME_RIP(%rsp), %rcx
	movq FRAME_RFLAGS(%rsp), %rdx
	movq %rcx, 8(%rax)
	movq %rdx, (%rax)
	movq %rax, FRAME_SS(%rsp)
	trap_pop
	movq FRAME_SS - FRAME_VECTOR(%rsp), %rsp
	.cfi_def_cfa rsp, 16
	.cfi_offset rip, -8
	popfq
	.cfi_adjust_cfa_offset -8
	ret
END(trap_return_nmi)

/*
 * void wait_irq(void): interrupts on, and sleep until one comes. An interrupt that comes before
 * HLT skips it, or the CPU would sleep on after it. STI takes effect after the next
 * instruction, but that is no help: an NMI may come in between, and its IRET ends the delay. The
 * NOP uses the delay up, so every wait is as after an NMI, and tests see it. Behind an
 * NMI an interrupt may come before the NOP, too.
 */
	.text
	.globl wait_nop, wait_hlt
FUNCTION(wait_irq)
	sti
wait_nop:
	nop
wait_hlt:
	hlt
	ret
END(wait_irq)

/*
 * struct task *arch_switch(struct task *prev, struct task *next): the registers
 * that a call must preserve go on prev's stack, in the order of struct switch_frame.
 */
	.text
FUNCTION(arch_switch)
	.irp reg, rbp, rbx, r12, r13, r14, r15
	push_value %\reg
	.endr
	movq %rsp, CONTEXT_SP(%rdi)
	movq CONTEXT_SP(%rsi), %rsp
	movq %rsi, %gs:CPU_HEAD_CURRENT
	.irp reg, r15, r14, r13, r12, rbx, rbp
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.endr
	movq %rdi, %rax
	ret
END(arch_switch)
