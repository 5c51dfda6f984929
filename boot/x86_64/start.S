/* SPDX-License-Identifier: MIT */
/*
 * From the PVH entry (Xen's docs/misc/pvh.pandoc: 32-bit protected mode, no
 * paging, flat segments, ebx = physical address of the start info), or multiboot2's
 * (the same, but ebx = its tags and eax = its magic), to C in the higher half. Other
 * CPUs join at secondary_protected.
 */
#include <arch/asm.h>
#include <layout.h>
#include <regs.h>

#define BOOT_STACK_SIZE 16384
#define XEN_ELFNOTE_PHYS32_ENTRY 18
#define MULTIBOOT2_HEADER_MAGIC 0xe85250d6
#define MULTIBOOT2_ENTRY_TAG 3

	.section .note.nopl, "a", @note
	.balign 4
	.long 4			/* "Xen" and its NUL */
	.long 8
	.long XEN_ELFNOTE_PHYS32_ENTRY
	.asciz "Xen"
	.quad _start

	.section .boot.text, "ax"
	/* Multiboot2 3.1: on 8 bytes, within the first 32 KiB of the file. */
	.balign 8
multiboot_header:
	.long MULTIBOOT2_HEADER_MAGIC
	.long 0			/* i386 */
	.long multiboot_end - multiboot_header
	.long -(MULTIBOOT2_HEADER_MAGIC + (multiboot_end - multiboot_header))
	.short MULTIBOOT2_ENTRY_TAG, 0
	.long 12
	.long multiboot_start
	.balign 8
	.short 0, 0		/* no further tag */
	.long 8
multiboot_end:

	.code32
multiboot_start:
	movl %eax, %edi
	jmp 1f
	.globl _start
_start:
	xorl %edi, %edi
1:	cli
	cld
	lgdt boot_gdt_pointer
	movl %ebx, %esi
	ljmp $SEG_CODE32, $enter_long_mode

/* From SECONDARY_PAGE, with boot_gdt loaded. esi = 0 tells them apart. */
	.globl secondary_protected
secondary_protected:
	xorl %esi, %esi

enter_long_mode:
	movl $SEG_DATA, %eax
	movl %eax, %ds
	movl %eax, %es
	movl %eax, %ss
	movl $0x80000000, %eax
	cpuid
	cmpl $0x80000001, %eax
	jb no_long_mode
	movl $0x80000001, %eax
	cpuid
	btl $29, %edx		/* long mode */
	jnc no_long_mode

	movl $CR4_PAE, %eax
	movl %eax, %cr4
	movl $boot_pml4, %eax
	movl %eax, %cr3
	movl $EFER_LME, %eax
	btl $20, %edx		/* NX: a set bit 63 faults without EFER.NXE */
	jnc 1f
	orl $EFER_NXE, %eax
1:	xorl %edx, %edx
	movl $MSR_EFER, %ecx
	wrmsr
	movl $(CR0_PG | CR0_WP | CR0_NE | CR0_ET | CR0_PE), %eax
	movl %eax, %cr0
	ljmp $SEG_CODE64, $long_mode

/* Such a CPU cannot run the console's code, so this prints the line. */
no_long_mode:
	movl $no_long_mode_text, %esi
1:	movw $(COM1 + 5), %dx
2:	inb %dx, %al
	testb $0x20, %al
	jz 2b
	lodsb
	testb %al, %al
	jz 3f
	movw $COM1, %dx
	outb %al, %dx
	jmp 1b
3:	movl $(33 + 2 * 1) >> 1, %eax	/* power_status(1) */
	movw $DEBUG_EXIT, %dx
	outl %eax, %dx
4:	hlt
	jmp 4b

	.code64
long_mode:
	testl %esi, %esi
	jz 1f
	movq $boot_high, %rax
	jmp *%rax
1:	movq $secondary_high, %rax
	jmp *%rax

	.text
LOCAL_FUNCTION(boot_high)
	.cfi_undefined rip	/* nothing called it: every walk ends here */
	xorl %eax, %eax
	movl %eax, %fs
	movl %eax, %gs
	movq $boot_stack_top, %rsp
	xchgl %esi, %edi
	call firmware_main
	ud2			/* room for the return address in boot_high */
END(boot_high)

	.section .boot.data, "aw"
no_long_mode_text:
	.asciz "boot: this CPU has no 64-bit mode; nopl x86_64 needs one\r\n"

	.balign 8
	.globl boot_gdt
boot_gdt:
	.quad 0
	.quad DESC_CODE32
	.quad DESC_CODE64
	.quad DESC_DATA
	.globl boot_gdt_pointer
boot_gdt_pointer:
	.word . - boot_gdt - 1
	.long boot_gdt

/*
 * The first page tables: 4 GiB where they are, for firmware's data and for code
 * below, the first GiB also at KERNEL_OFFSET. Writable and executable: from
 * arch_mmu_init() on only a CPU that starts sees them, for a few instructions.
 */
	.balign 4096
boot_pml4:
	.quad boot_pdpt_low + PTE_PRESENT + PTE_WRITE
	.fill 510, 8, 0
	.quad boot_pdpt_high + PTE_PRESENT + PTE_WRITE
boot_pdpt_low:
	page = 0
	.rept 4
	.quad boot_pd + 4096 * page + PTE_PRESENT + PTE_WRITE
	page = page + 1
	.endr
	.fill 508, 8, 0
boot_pdpt_high:
	.fill 510, 8, 0
	.quad boot_pd + PTE_PRESENT + PTE_WRITE
	.quad 0
boot_pd:
	page = 0
	.rept 2048
	.quad (page << 21) + PTE_PRESENT + PTE_WRITE + PTE_LARGE
	page = page + 1
	.endr

	.bss
	.balign 4096
	.skip BOOT_STACK_SIZE
boot_stack_top:
