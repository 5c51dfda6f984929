/* SPDX-License-Identifier: MIT */
/*
 * How another CPU starts: in real mode at SECONDARY_PAGE, where arch_cpu_start()
 * puts a copy of the first few bytes, protected and long mode as the boot CPU,
 * then by its APIC id to its stack.
 */
#include <arch/asm.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.section .rodata, "a"
	.globl secondary_begin, secondary_end
	.code16
secondary_begin:
	cli
	cld
	movw %cs, %ax
	movw %ax, %ds
	lgdtl pointer - secondary_begin
	movl $CR0_PE, %eax	/* caches on, too */
	movl %eax, %cr0
	ljmpl $SEG_CODE32, $secondary_protected
pointer:
	.word 4 * 8 - 1
	.long boot_gdt
secondary_end:

	.code64
	.text
FUNCTION(secondary_high)
	.cfi_undefined rip	/* nothing called it: every walk ends here */
	movq kernel_root(%rip), %rax
	movq %rax, %cr3
	xorl %eax, %eax
	movl %eax, %fs
	movl %eax, %gs
	movl $1, %eax
	cpuid
	shrl $24, %ebx		/* APIC id */
	orl $SLOT_VALID, %ebx
	leaq secondary_slots(%rip), %rax
	movl $SECONDARY_SLOTS, %ecx
1:	cmpq %rbx, SLOT_KEY(%rax)
	je 2f
	addq $SLOT_SIZE, %rax
	loop 1b
3:	hlt			/* no CPU has started this one */
	jmp 3b
2:	movq SLOT_STACK(%rax), %rsp
	movq SLOT_CPU(%rax), %rdi
	call secondary_main
	ud2			/* room for the return address in secondary_high */
END(secondary_high)
