/* SPDX-License-Identifier: MIT */
/*
 * The boot CPU, from QEMU: 64-bit addresses, interrupts and paging off, this code at its physical
 * address, no register set. To C at its linked address, on boot_stack, with paging.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.section .boot.text, "awx"
	.globl	_start
_start:
	larl	%r7, boot_data
	lghi	%r0, 2			/* three words */
	stfle	boot_facilities - boot_data(%r7)
	lg	%r3, boot_facilities - boot_data(%r7)
	ng	%r3, boot_wanted - boot_data(%r7)
	clg	%r3, boot_wanted - boot_data(%r7)
	jne	wrong_cpu
	lg	%r3, boot_facilities + 16 - boot_data(%r7)
	ng	%r3, boot_wanted + 8 - boot_data(%r7)
	clg	%r3, boot_wanted + 8 - boot_data(%r7)
	jne	wrong_cpu

	/* The CPU's own storage is that of CPU 0, and nothing is in it yet. */
	spx	boot_prefix + 4 - boot_data(%r7)
	mvc	LOW_PROGRAM_NEW(16), boot_trap_psw - boot_data(%r7)
	mvc	LOW_EXTERNAL_NEW(16), boot_trap_psw - boot_data(%r7)
	lg	%r1, boot_cpu - boot_data(%r7)
	stg	%r1, LC_CPU
	sck	boot_zero - boot_data(%r7)	/* the clock counts from here, if it may be set */

	/*
	 * Page tables: the image's memory at KERNEL_OFFSET, until firmware.c has mapped all
	 * memory there, and page 1 at its own address.
	 */
	lmg	%r2, %r5, boot_tables - boot_data(%r7)
	lgr	%r8, %r2
	lghi	%r0, 512
	lghi	%r1, REGION3_INVALID
	brasl	%r14, fill_table
	lgr	%r8, %r4
	lghi	%r0, 512
	lghi	%r1, SEGMENT_INVALID
	brasl	%r14, fill_table
	lgr	%r8, %r5
	lghi	%r0, 256
	lghi	%r1, PTE_INVALID
	brasl	%r14, fill_table
	lghi	%r1, 0x1000 | PTE_NO_EXEC
	stg	%r1, 8(%r5)
	stg	%r5, 0(%r4)
	oill	%r4, REGION3_SHORT
	stg	%r4, 0(%r2)
	lgr	%r8, %r3
	lghi	%r0, 512
	lghi	%r1, SEGMENT_INVALID
	brasl	%r14, fill_table
	lgr	%r1, %r3
	oill	%r1, REGION3_SHORT
	stg	%r1, 8 * (KERNEL_OFFSET >> 31)(%r2)
	lg	%r1, boot_tables + 32 - boot_data(%r7)
	lghi	%r0, IMAGE_MIB
1:	stg	%r1, 0(%r3)
	aghi	%r1, 2048
	la	%r3, 8(%r3)
	brctg	%r0, 1b
	lg	%r3, boot_tables + 32 - boot_data(%r7)
	lghi	%r1, 0
	lghi	%r0, IMAGE_MIB * 256
1:	stg	%r1, 0(%r3)
	aghi	%r1, 4096
	la	%r3, 8(%r3)
	brctg	%r0, 1b

	lctlg	%c0, %c1, boot_controls - boot_data(%r7)
	lg	%r15, boot_stack_top - boot_data(%r7)
	lpswe	boot_psw - boot_data(%r7)

fill_table:
	stg	%r1, 0(%r8)
	la	%r8, 8(%r8)
	brctg	%r0, fill_table
	br	%r14

	/* Without paging no C can run. */
wrong_cpu:
	larl	%r2, wrong_cpu_block
	llilf	%r1, SCLP_WRITE_DATA
	.insn	rre, 0xb2200000, %r1, %r2
	larl	%r1, wrong_cpu_psw
	lpswe	0(%r1)

	/* What QEMU writes into the image. It takes the size of the room from 0x430. */
	.org	INITRD_START - KERNEL_PHYS
	.quad	0, 0
	.org	0x430
	.quad	COMMAND_LINE_SIZE
	.org	COMMAND_LINE - KERNEL_PHYS
	.space	COMMAND_LINE_SIZE

boot_data:
boot_zero:
	.quad	0
boot_facilities:
	.quad	0, 0, 0
/* Of bits 0 to 63: long displacement, the fast clock, and 45, z196. Of 128 to 191:
 * instruction-execution protection. */
boot_wanted:
	.quad	1 << (63 - 18) | 1 << (63 - 25) | 1 << (63 - 45)
	.quad	1 << (63 - 2)
boot_prefix:
	.quad	lowcores - KERNEL_OFFSET
boot_trap_psw:
	.quad	PSW_KERNEL, boot_trap
boot_cpu:
	.quad	cpus
boot_tables:
	.quad	kernel_root - KERNEL_OFFSET, image_segments - KERNEL_OFFSET
	.quad	low_segments - KERNEL_OFFSET, low_pages - KERNEL_OFFSET
	.quad	image_pages - KERNEL_OFFSET
boot_controls:
	.quad	CR0_KERNEL, kernel_root - KERNEL_OFFSET + ASCE_REGION3
boot_stack_top:
	.quad	boot_stack + STACK_SIZE - SAVE_AREA
boot_psw:
	.quad	PSW_KERNEL, boot_main
wrong_cpu_psw:
	.quad	PSW_64 | PSW_WAIT, 35	/* power_status(1) */
	.balign	256
wrong_cpu_block:
	.short	2f - wrong_cpu_block
	.byte	0, 0, 0, 0
	.short	0
1:	.short	2f - 1b
	.byte	0x1a, 0
	.short	0
	.ascii	"boot: this CPU is older than z196, or cannot protect data from execution\r\n"
2:

	.text
/* A trap before arch_trap_init(): the first pages of the direct map are the CPU's own. */
FUNCTION(boot_trap)
	.cfi_undefined %r14		/* nothing called it: walks end here */
	llihl	%r1, KERNEL_OFFSET >> 32
	llgf	%r2, LOW_PROGRAM + 4(%r1)
	lg	%r3, LOW_PROGRAM_OLD + 8(%r1)
	lg	%r4, LOW_ADDRESS(%r1)
	larl	%r15, boot_stack + STACK_SIZE - SAVE_AREA
	brasl	%r14, boot_trapped
	nopr
END(boot_trap)

	.section .bss.page_aligned, "aw", @nobits
	.balign	4096
	.globl	kernel_root, image_segments, image_pages
kernel_root:
	.space	4096
image_segments:
	.space	4096
image_pages:
	.space	IMAGE_MIB * 2048
low_segments:
	.space	4096
low_pages:
	.space	4096
	.globl	boot_stack_guard, boot_stack
boot_stack_guard:
	.space	4096
boot_stack:
	.space	STACK_SIZE
