/*
 * Traps and interrupts, from the vector to trap_dispatch() and back; and the
 * switch between two tasks.
 */
#include <arch/cpu_head.h>
#include <frame.h>
#include <regs.h>

.macro trap_pop
	.irp reg, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
	popq %\reg
	.endr
.endm

/*
 * One stub for each vector: the CPU does not say which one it took. Vectors
 * 8, 10 to 14, 17, 21, 29 and 30 come with an error code (SDM 3A, 6.15); for
 * the others a 0 makes the frames alike.
 */
	.section .text.vectors, "ax"
	.globl trap_vectors
	.type trap_vectors, @function
	.balign VECTOR_STUB_SIZE
trap_vectors:
	vector = 0
	.rept NR_VECTORS
	.balign VECTOR_STUB_SIZE
	.if vector == VECTOR_BREAKPOINT
	jmp trap_breakpoint
	.else
	.if !((vector == 8) || (vector >= 10 && vector <= 14) || \
	      (vector == 17) || (vector == 21) || \
	      (vector == 29) || (vector == 30))
	pushq $0
	.endif
	pushq $vector
	jmp trap_common
	.endif
	vector = vector + 1
	.endr
	.size trap_vectors, . - trap_vectors

/*
 * A breakpoint's handler may push a return address on the interrupted stack,
 * which in ring 0 ends where the CPU's part of the frame begins. So that part
 * goes 48 bytes further down (a multiple of 16, for the alignment): room for
 * the return address, and for what trap_return_nmi puts below it.
 */
	.type trap_breakpoint, @function
trap_breakpoint:
	pushq $0
	.rept 5
	pushq 40(%rsp)		/* ss, rsp, rflags, cs, rip */
	.endr
	pushq $0
	pushq $VECTOR_BREAKPOINT
	jmp trap_common
	.size trap_breakpoint, . - trap_breakpoint

/*
 * The gs base is never touched: the kernel's own value is always in it. The
 * frame pointer stays the interrupted code's, so a walk goes on across.
 */
	.type trap_common, @function
trap_common:
	.irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	pushq %\reg
	.endr
	cld
	movq %rsp, %rdi
	call trap_dispatch
	.globl trap_return
trap_return:
	testl $PREEMPT_NMI, %gs:CPU_HEAD_PREEMPT(8)
	jnz trap_return_nmi
	trap_pop
	addq $16, %rsp		/* vector, error */
	iretq
	.size trap_common, . - trap_common

/*
 * Back into an NMI, from a breakpoint, the one trap that such code survives.
 * IRET would end the blocking of NMIs (SDM 3A, 6.7.1), and the next one would
 * begin on the stack that the interrupted one is still using. So: flags and rip
 * onto the interrupted stack, in trap_breakpoint's room, and an ordinary return.
 */
	.type trap_return_nmi, @function
trap_return_nmi:
	movq FRAME_RSP(%rsp), %rax
	subq $16, %rax
	movq FRAME_RIP(%rsp), %rcx
	movq FRAME_RFLAGS(%rsp), %rdx
	movq %rcx, 8(%rax)
	movq %rdx, (%rax)
	movq %rax, FRAME_RSP(%rsp)
	trap_pop
	movq FRAME_RSP - FRAME_VECTOR(%rsp), %rsp
	popfq
	ret
	.size trap_return_nmi, . - trap_return_nmi

/*
 * struct task *arch_switch(struct task *prev, struct task *next): what a call
 * must preserve goes on prev's stack, in the order of struct switch_frame.
 */
	.text
	.globl arch_switch
	.type arch_switch, @function
arch_switch:
	.irp reg, rbp, rbx, r12, r13, r14, r15
	pushq %\reg
	.endr
	movq %rsp, CONTEXT_SP(%rdi)
	movq CONTEXT_SP(%rsi), %rsp
	movq %rsi, %gs:CPU_HEAD_CURRENT(8)
	.irp reg, r15, r14, r13, r12, rbx, rbp
	popq %\reg
	.endr
	movq %rdi, %rax
	ret
	.size arch_switch, . - arch_switch
