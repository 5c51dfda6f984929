/*
 * Traps and interrupts, from the vector to trap_dispatch() and back; and the
 * switch between two tasks.
 */
#include <arch/cpu_head.h>
#include <frame.h>
#include <regs.h>

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
	.if !((vector == 8) || (vector >= 10 && vector <= 14) || \
	      (vector == 17) || (vector == 21) || \
	      (vector == 29) || (vector == 30))
	pushq $0
	.endif
	pushq $vector
	jmp trap_common
	vector = vector + 1
	.endr
	.size trap_vectors, . - trap_vectors

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
	.irp reg, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
	popq %\reg
	.endr
	addq $16, %rsp		/* vector, error */
	iretq
	.size trap_common, . - trap_common

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
