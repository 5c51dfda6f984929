/* SPDX-License-Identifier: MIT */
/*
 * The lab's victims: arch/arch_lab.h. Every register holds a canary at the site,
 * but for rsp, and the canaries are addresses that are not canonical: no stray
 * instruction can write through them. The stack pointer that a victim returns
 * with is in lab_saved, one slot a CPU.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/arch_lab.h>
#define VICTIM_INSN nopl (%rax)
#include <arch/lab_victim.h>
#include <regs.h>
#include <site.h>

	.section .rodata
	.balign 8
lab_canary:
	canary = 0
	.irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, \
		r14, r15, result, result2
	canary_\reg = canary * 8
	.quad 0x5ab0c0de70000001 + canary * 0x0101010100
	canary = canary + 1
	.endr

	.text
	.balign 4096
lab_page:
	/*
	 * A victim loses its stack pointer and its return address on purpose, so
	 * every stack walk ends in it.
	 */
	.cfi_startproc
	.cfi_undefined rip
/* As trace_entry: r11 and the flags are all that it may change. */
	.type lab_count, @function
lab_count:
	lock incl lab_calls(%rip)
	movl $-1, %r11d
	ret
	.size lab_count, . - lab_count
	.type lab_count_second, @function
lab_count_second:
	lock incl lab_calls + 4(%rip)
	movl $-1, %r11d
	ret
	.size lab_count_second, . - lab_count_second

.macro compare_canaries differs, regs:vararg
	.irp reg, \regs
	cmpq lab_canary + canary_\reg(%rip), %\reg
	jne \differs
	.endr
.endm

.macro victim_begin
	pushq %rbx
	pushq %rbp
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movl %gs:CPU_HEAD_INDEX, %eax
	movq %rsp, lab_saved(, %rax, 8)
	testq %rdi, %rdi
	jz 2f
1:	decq %rdi
	jnz 1b
2:	testq %rsi, %rsi
	jz 2f
1:	nop
	decq %rsi
	jnz 1b
2:	.irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	movq lab_canary + canary_\reg(%rip), %\reg
	.endr
.endm

/* A jump to the next 1 means that a register has changed. */
.macro victim_end regs:vararg
	compare_canaries 1f, \regs
	xorl %ecx, %ecx
	jmp 2f
1:	movl $LAB_REGS, %ecx
2:	movl %gs:CPU_HEAD_INDEX, %eax
	cmpq %rsp, lab_saved(, %rax, 8)
	je 1f
	orl $LAB_SP, %ecx
1:	movq lab_saved(, %rax, 8), %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbp
	popq %rbx
	movl %ecx, %eax
	ret
.endm

/* Behind a site: r11 is its to change where it calls. */
.macro victim_site_end
	victim_end rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r12, r13, r14, r15
.endm

/*
 * A site of five bytes. Its target stands exactly 0x170 before its end, so
 * that a call is e8 90 fe ff ff, and e8 98 fe ff ff for the second target. The
 * bytes inside are known, and do no harm up to one that is no instruction.
 */
	.balign 16
	.type lab_five_run, @function
lab_five_targets:
	jmp lab_count
	.balign 8
	jmp lab_count_second
lab_five_run:
	victim_begin
	jmp lab_five_b0
	.org lab_five_targets + 0x170 - 5 - 6, 0xcc
before lab_five
	.globl lab_five_site
lab_five_site:
	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
behind lab_five
	victim_site_end
	.size lab_five_run, . - lab_five_run
victim_data lab_five

/* A locked increment of an unmapped address: the fault tells which form executed. */
	.balign 16
	.type lab_lock_run, @function
lab_lock_run:
	victim_begin
before lab_lock
lab_lock_site:
	lock incl 0x12345000
behind lab_lock
	victim_site_end
	.size lab_lock_run, . - lab_lock_run
victim_data lab_lock

/*
 * run(n, behind): n locked increments, where no register matters, all but the
 * first one byte into the site if `behind`. The prefix is a page's last byte:
 * QEMU translates no block of instructions over a page's end, so that interrupts
 * come behind a 90 without -icount too.
 */
	.org lab_page + 4095, 0xcc
	.type lab_adds_run, @function
lab_adds_run:
lab_adds_site:
	lock incl lab_sum
	testq %rsi, %rsi
	jnz 1f
	decq %rdi
	jnz lab_adds_site
	ret
1:	decq %rdi
	jnz lab_adds_site + 1
	ret
	.size lab_adds_run, . - lab_adds_run
	.pushsection .rodata
	.balign 8
	.globl lab_adds
lab_adds:
	.quad lab_adds_run, lab_adds_site, 0, 0, 0, 0
	.popsection

	.balign 16
	.type lab_victim_own_run, @function
	.type lab_victim_own_site, @function
lab_victim_own_run:
	victim_begin
before lab_victim_own
	.size lab_victim_own_run, . - lab_victim_own_run
own_site lab_victim_own
behind lab_victim_own
	victim_site_end
	.size lab_victim_own_site, . - lab_victim_own_site
victim_data lab_victim_own

/* A jump label with two prefixes before the bytes that change. */
	.balign 8
	.type lab_victim_jump_run, @function
lab_victim_jump_run:
	victim_begin
	.balign 8		/* two instructions of three bytes, and two prefixes */
before lab_victim_jump
lab_victim_jump_site:
	.balign 8, 0x2e, 4
9:	.byte 0x0f, 0x1f, 0x44, 0x00, 0x02
	jump_record lab_victim_jump_yes
behind lab_victim_jump
	victim_end rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
lab_victim_jump_yes:
	lock incl lab_calls(%rip)
	jmp lab_victim_jump_b2
	.size lab_victim_jump_run, . - lab_victim_jump_run
victim_data lab_victim_jump

/*
 * A function whose return address is taken, and its caller. The function looks at its
 * arguments. If one has changed, it returns no results, and its caller sees that.
 */
	.balign 16
	.type lab_victim_return_run, @function
	.type lab_victim_return_site, @function
lab_victim_return_run:
	victim_begin
	call lab_victim_return_b0
	cmpq lab_canary + canary_result(%rip), %rax
	jne 1f
	cmpq lab_canary + canary_result2(%rip), %rdx
	jne 1f
	victim_end rbx, rbp, r12, r13, r14, r15
	.cfi_endproc
	.cfi_startproc		/* a function like any, and its site */
before lab_victim_return
	.size lab_victim_return_run, . - lab_victim_return_run
own_site lab_victim_return
behind lab_victim_return
	compare_canaries 1f, rax, rcx, rdx, rsi, rdi, r8, r9, r10
	movq lab_canary + canary_result(%rip), %rax
	movq lab_canary + canary_result2(%rip), %rdx
1:	ret
	.cfi_endproc
	.size lab_victim_return_site, . - lab_victim_return_site
victim_data lab_victim_return

/*
 * unsigned int lab_registers(unsigned long turns, unsigned long seed): see
 * arch/arch_lab.h. rdi counts the turns. The seed is on the stack, too.
 */
	.text
FUNCTION(lab_registers)
	.irp reg, rbx, rbp, r12, r13, r14, r15, rsi
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.endr
	value = 1
	.irp reg, rax, rcx, rdx, rbx, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	leaq value(%rsi), %\reg
	value = value + 1
	.endr
1:	decq %rdi
	jnz 1b
	movl $14, %edi
	cmpq (%rsp), %rsi
	jne 9f
	value = 1
	.irp reg, rax, rcx, rdx, rbx, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	leaq value(%rsi), %rdi
	cmpq %rdi, %\reg
	movl $value, %edi
	jne 9f
	value = value + 1
	.endr
	xorl %edi, %edi
9:	movl %edi, %eax
	.irp reg, rsi, r15, r14, r13, r12, rbp, rbx
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.endr
	ret
END(lab_registers)

/* void lab_lose_stack(void *sp): see arch/arch_lab.h. */
FUNCTION(lab_lose_stack)
	.cfi_undefined rip
	movq %rdi, %rsp
	movq $0, 0
1:	jmp 1b
END(lab_lose_stack)

/*
 * void lab_wait_behind_nmi(void): wait_irq() as it goes on behind an NMI that has come between its
 * STI and its NOP. An interrupt that is pending comes before the NOP.
 */
FUNCTION(lab_wait_behind_nmi)
	movq %rsp, %rdx
	movl %ss, %eax
	pushq %rax
	.cfi_adjust_cfa_offset 8
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	pushfq
	.cfi_adjust_cfa_offset 8
	orq $RFLAGS_IF, (%rsp)
	movl %cs, %eax
	pushq %rax
	.cfi_adjust_cfa_offset 8
	pushq $wait_nop
	.cfi_adjust_cfa_offset 8
	iretq
END(lab_wait_behind_nmi)
