/* SPDX-License-Identifier: MIT */
/*
 * Where a VP that arch_cpu_start() runs leaves reset: at a 4 KiB boundary,
 * which CO_RESET_BASE asks for, with BEV and ERL set and perhaps in kseg1.
 */
#include <arch/asm.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

	.set noreorder
	.section .text.vectors, "ax", @progbits
	.balign 4096
FUNCTION(secondary_entry)
	.cfi_undefined 31	/* nothing called it: walks end here */
	li	$t0, STATUS_BEV
	mtc0	$t0, C0_STATUS
	ehb
	/* This VP's entry of secondary_boot[]: cpu, sp, Config. */
	mfc0	$t0, C0_EBASE
	andi	$t0, $t0, EBASE_CPUNUM
	sll	$t0, $t0, 4
	lui	$t1, %hi(secondary_boot)
	addiu	$t1, %lo(secondary_boot)
	addu	$t0, $t0, $t1
	/* kseg0 cached as on the boot CPU, before anything is read that a cache
	 * may hold. All VPs share one core's caches. */
	mfc0	$t2, C0_CONFIG
	lw	$t3, 8($t0)
	ins	$t2, $t3, 0, 3
	mtc0	$t2, C0_CONFIG
	ehb
	lw	$gp, 0($t0)
	lw	$sp, 4($t0)
	/*
	 * Sites were written before this VP ran: forget the instructions that it may
	 * have fetched ahead, on the way to kseg0 and to the first function with a site.
	 */
	sync
	lui	$t0, %hi(cpu_secondary_main)
	addiu	$t0, %lo(cpu_secondary_main)
	move	$ra, $zero
	jr.hb	$t0
	nop
END(secondary_entry)
