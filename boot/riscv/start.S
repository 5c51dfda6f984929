/* SPDX-License-Identifier: MIT */
/*
 * The boot hart, from OpenSBI: a0 hart id, a1 the device tree's physical
 * address, interrupts and paging off, this code at its physical address. To C
 * at its linked address, on boot_stack, with paging.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <frame.h>
#include <layout.h>
#include <regs.h>

#define GIGABYTE_SHIFT 30
#define PTE_GIGABYTE (PTE_V | PTE_R | PTE_W | PTE_X | PTE_A | PTE_D)

	/* gp is not set yet, so the linker must not use it. */
	.option	norelax
	.section .text.start, "ax"
FUNCTION(_start)
	.cfi_undefined ra	/* nothing called it: walks end here */
	/*
	 * Not the first hart here? OpenSBI 1.1 lets a hart go on that
	 * arch_cpu_start() asks for before it has stored where to. One that is
	 * not yet asleep then comes here, as the boot hart did.
	 */
	lla	t0, boot_begun
	li	t1, 1
	amoswap.w.aqrl	t1, t1, (t0)
	beqz	t1, 1f
	ld	a1, riscv_starting
	tail	secondary_start

1:	csrw	sie, zero
	li	t0, SSTATUS_SIE | SSTATUS_FS_VS
	csrc	sstatus, t0

	/*
	 * Boot page table: 256 GiB of physical memory at KERNEL_OFFSET, and the
	 * gigabyte that we run in once more where we run. arch_mmu_init()
	 * replaces it.
	 */
	lla	t0, boot_root
	li	t1, PTE_GIGABYTE
	li	t2, 1 << (GIGABYTE_SHIFT - 12 + PTE_PPN_SHIFT)
	li	t3, 256
	li	t4, 2048
	add	t4, t0, t4
1:	sd	t1, (t4)
	add	t1, t1, t2
	addi	t4, t4, 8
	addi	t3, t3, -1
	bnez	t3, 1b
	li	t1, PTE_GIGABYTE | \
		(KERNEL_PHYS >> GIGABYTE_SHIFT) << \
		(GIGABYTE_SHIFT - 12 + PTE_PPN_SHIFT)
	sd	t1, 8 * (KERNEL_PHYS >> GIGABYTE_SHIFT)(t0)

	/* A hart without Sv39 traps here, or reads back another value. */
	lla	t1, no_sv39
	csrw	stvec, t1
	srli	t0, t0, 12
	li	t1, SATP_SV39
	or	t0, t0, t1
	sfence.vma
	csrw	satp, t0
	sfence.vma
	csrr	t1, satp
	bne	t0, t1, no_sv39

	li	t1, KERNEL_OFFSET
	lla	t0, 1f
	add	t0, t0, t1
	jr	t0
1:	/* From here lla gives linked addresses. */
	lla	gp, __global_pointer$
	lla	t0, boot_trap
	csrw	stvec, t0
	lla	sp, boot_stack + STACK_SIZE
	lla	tp, cpus
	tail	boot_main

	.balign	4
boot_trap:
	csrr	a0, scause
	csrr	a1, sepc
	csrr	a2, stval
	lla	sp, boot_stack + STACK_SIZE
	call	boot_trapped

	/* Without paging no C can run: the firmware prints. */
	.balign	4
no_sv39:
	lla	s1, no_sv39_text
1:	lbu	a0, (s1)
	li	a7, SBI_CONSOLE_PUTCHAR
	beqz	a0, 2f
	ecall
	addi	s1, s1, 1
	j	1b
2:	li	a7, SBI_SRST
	li	a6, SBI_SRST_RESET
	li	a0, 0
	li	a1, 1
	ecall
3:	wfi
	j	3b
END(_start)

	.section .rodata
no_sv39_text:
	.asciz	"boot: this hart has no Sv39 paging\n"

	.section .bss
	.balign	4
boot_begun:
	.space	4

	.section .bss.page_aligned, "aw", @nobits
	.balign	4096
boot_root:
	.space	4096
	.globl	boot_stack_guard, boot_stack
boot_stack_guard:
	.space	4096
boot_stack:
	.space	STACK_SIZE
