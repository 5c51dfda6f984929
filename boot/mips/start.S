/*
 * The boot VP, from the monitor (QEMU's stand-in for YAMON): a0 argc, a1 argv,
 * a2 pairs of environment names and values, a3 bytes of memory; interrupts off,
 * in kseg0, memory above the image's file contents cleared by the loader.
 */
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.set noreorder
	.section .text.start, "ax", @progbits
	.globl _start
	.type _start, @function
_start:
	.cfi_sections .debug_frame
	CFI_STARTPROC
	.cfi_undefined 31	/* nothing called it: walks end here */
	/* BEV until there are vectors; ERL off, or kuseg would be memory. */
	li	$t0, STATUS_BEV
	mtc0	$t0, C0_STATUS
	ehb
	lui	$sp, %hi(boot_stack + BOOT_STACK_SIZE - 16)
	addiu	$sp, %lo(boot_stack + BOOT_STACK_SIZE - 16)
	lui	$gp, %hi(cpus)
	addiu	$gp, %lo(cpus)
	j	boot_main
	move	$ra, $zero
	.cfi_endproc
	.size _start, . - _start

	/* The boot CPU's idle task keeps this stack. */
	.section .bss.page_aligned, "aw", @nobits
	.balign 4096
	.globl boot_stack_guard, boot_stack
boot_stack_guard:
	.space 4096
boot_stack:
	.space BOOT_STACK_SIZE
