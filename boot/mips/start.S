/* SPDX-License-Identifier: MIT */
/*
 * The boot VP, from the monitor (QEMU's stand-in for YAMON): a0 argc, a1 argv,
 * a2 pairs of environment names and values, a3 bytes of memory, interrupts off,
 * in kseg0, memory above the image's file contents cleared by the loader.
 */
#include <arch/asm.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.set noreorder
	.section .text.start, "ax", @progbits
FUNCTION(_start)
	.cfi_undefined 31	/* nothing called it: walks end here */
	/*
	 * Release 2 or a later one that is not 6: Config.AR. Code for another
	 * release would end in an exception, which nothing can report yet.
	 */
	mfc0	$t0, C0_CONFIG
	srl	$t0, $t0, CONFIG_AR_SHIFT
	andi	$t0, $t0, CONFIG_AR_MASK
	li	$t1, CONFIG_AR_RELEASE_2
	bne	$t0, $t1, wrong_release
	nop
	/* On a machine that does not hold further CPUs in reset they come here
	 * as well, and the firmware's stack and data are the first one's. */
	mfc0	$t0, C0_EBASE
	andi	$t0, $t0, EBASE_CPUNUM
	bnez	$t0, park_cpu
	nop
	/* BEV until there are vectors, ERL off, or kuseg would be memory. */
	li	$t0, STATUS_BEV
	mtc0	$t0, C0_STATUS
	ehb
	lui	$sp, %hi(boot_stack + BOOT_STACK_SIZE - 16)
	addiu	$sp, %lo(boot_stack + BOOT_STACK_SIZE - 16)
	lui	$gp, %hi(cpus)
	addiu	$gp, %lo(cpus)
	j	boot_main
	move	$ra, $zero
park_cpu:
	wait
	b	park_cpu
	nop

	/* Without the instructions that C was compiled to: the UART, polled. */
wrong_release:
	lui	$t0, %hi(ISA_BASE + UART)
	ori	$t0, %lo(ISA_BASE + UART)
	lui	$t1, %hi(wrong_release_text)
	addiu	$t1, %lo(wrong_release_text)
1:	lbu	$t2, 0($t1)
	beqz	$t2, 3f
	addiu	$t1, $t1, 1
2:	lbu	$t3, 5($t0)		/* line status: can it send? */
	andi	$t3, $t3, 0x20
	beqz	$t3, 2b
	nop
	b	1b
	sb	$t2, 0($t0)
	/* malta's reset register ends QEMU, whose status is no pass. */
3:	lui	$t0, %hi(KSEG1 + 0x1f000500)
	li	$t1, 0x42
	sb	$t1, %lo(KSEG1 + 0x1f000500)($t0)
4:	b	4b
	nop
END(_start)

	.section .rodata
wrong_release_text:
	.asciz	"boot: this CPU is not of MIPS32 release 2 to 5; nopl mips needs one\r\n"

	/* The boot CPU's idle task keeps this stack. */
	.section .bss.page_aligned, "aw", @nobits
	.balign 4096
	.globl boot_stack_guard, boot_stack
boot_stack_guard:
	.space 4096
boot_stack:
	.space BOOT_STACK_SIZE
