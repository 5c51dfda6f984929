/* SPDX-License-Identifier: MIT */
/*
 * The one linker script, preprocessed with the port's layout.h. The tables that
 * tools/mksites makes from the linked image stand at the very end, so that the
 * second link, which has them, moves nothing of what the first one placed.
 */
#include <layout.h>

#define REGISTRY(name)                                                         \
	__start_##name = .;                                                    \
	KEEP(*(name))                                                          \
	__stop_##name = .;

PHDRS
{
	/* Its address also when it is empty: QEMU enters riscv at the lowest. */
	boot PT_LOAD AT(KERNEL_PHYS) FLAGS(7);
	text PT_LOAD FLAGS(5);
	rodata PT_LOAD FLAGS(4);
	data PT_LOAD FLAGS(6);
	tables PT_LOAD FLAGS(4);
	note PT_NOTE FLAGS(4);
}

ENTRY(_entry)

SECTIONS
{
	/* What runs before the image is where it was linked. */
	. = KERNEL_PHYS;
	.boot : { KEEP(*(.boot.*)) } :boot
	. = ALIGN(4096);
	_boot_end = .;

	. += KERNEL_OFFSET;
	_text = .;
	.text : AT(ADDR(.text) - KERNEL_OFFSET) {
		*(.text.start)
		*(.text.vectors)
		*(.text .text.*)
		. = ALIGN(4096);
	} :text
	_etext = .;

	_rodata = .;
	.rodata : AT(ADDR(.rodata) - KERNEL_OFFSET) {
		*(.rodata .rodata.* .srodata .srodata.*)
		. = ALIGN(16);
		REGISTRY(kernel_params)
		REGISTRY(init_hooks)
		REGISTRY(ktests)
		REGISTRY(ktest_resources)
		REGISTRY(ctl_files)
		REGISTRY(ctl_folders)
		REGISTRY(shell_cmds)
		REGISTRY(tracers)
		REGISTRY(trace_clients)
		REGISTRY(trace_commands)
		REGISTRY(trace_lines)
		REGISTRY(patch_strategies)
		REGISTRY(lab_schemes)
		REGISTRY(lab_patchers)
		REGISTRY(faults)
		REGISTRY(cpu_comes)
		REGISTRY(cpu_arrays)
		REGISTRY(patch_roots)
		REGISTRY(patch_indirect)
		REGISTRY(event_words)
	} :rodata
	.notes : AT(ADDR(.notes) - KERNEL_OFFSET) { KEEP(*(.note.nopl)) } :rodata :note
	. = ALIGN(4096);
	_erodata = .;

	_data = .;
	.data : AT(ADDR(.data) - KERNEL_OFFSET) {
		*(.data.page_aligned)
		. = ALIGN(32);
		_data_entry = .;
		*(.data.entry)
		ASSERT(. - _data_entry <= 32, "DATA_ENTRY: more than 32 bytes");
		*(.data .data.*)
		. = ALIGN(16);
		REGISTRY(static_keys)
		REGISTRY(events)
		__global_pointer$ = . + 0x800;
		*(.sdata .sdata.* .got .got.* .igot .igot.* ARCH_DATA)
	} :data
	. = ALIGN(4096);
	.bss (NOLOAD) : AT(ADDR(.bss) - KERNEL_OFFSET) {
		_bss = .;
		*(.sbss .sbss.* .scommon)
		*(.bss.page_aligned)
		*(.bss .bss.* COMMON)
		. = ALIGN(4096);
		_ebss = .;
	} :data

	_tables = .;
	.tables : AT(ADDR(.tables) - KERNEL_OFFSET) {
		*(.tables)
		. = ALIGN(4096);
	} :tables
	_etables = .;
	_end = .;

	/* Records of jump labels, and the compiler's own of sites: read by tools/, not
	 * loaded. */
	.jump_labels 0 (INFO) : { KEEP(*(.jump_labels)) }
	__mcount_loc 0 (INFO) : { KEEP(*(__mcount_loc)) }
	__patchable_function_entries 0 (INFO) : {
		KEEP(*(__patchable_function_entries))
	}

	/* For debuggers, not loaded. */
	.debug_info 0 : { *(.debug_info) }
	.debug_abbrev 0 : { *(.debug_abbrev) }
	.debug_aranges 0 : { *(.debug_aranges) }
	.debug_line 0 : { *(.debug_line) }
	.debug_line_str 0 : { *(.debug_line_str) }
	.debug_str 0 : { *(.debug_str) }
	.debug_str_offsets 0 : { *(.debug_str_offsets) }
	.debug_addr 0 : { *(.debug_addr) }
	.debug_ranges 0 : { *(.debug_ranges) }
	.debug_rnglists 0 : { *(.debug_rnglists) }
	.debug_loc 0 : { *(.debug_loc) }
	.debug_loclists 0 : { *(.debug_loclists) }
	/* Stack frames, for tools/ and debuggers. libgcc has them in .eh_frame. */
	.debug_frame 0 : { *(.debug_frame) }
	.eh_frame 0 (INFO) : { *(.eh_frame) }

	/DISCARD/ : {
		*(.rela.* .rel.* .iplt .plt)
		*(.comment .eh_frame_hdr .note.GNU-stack .note.gnu.*)
		*(.interp .dynamic .dynsym .dynstr .hash .gnu.hash)
		*(.gnu.attributes ARCH_DISCARD)
	}
}

#ifdef ENTRY_IS_PHYSICAL
_entry = _start;
#else
_entry = _start - KERNEL_OFFSET;
#endif

/* An event keeps 24 bits of a text offset, less its own types: ring_event.h. */
ASSERT(_etext - _text < 0x1000000 - 256,
       "text is larger than the 16 MiB in which an event can name an address")
