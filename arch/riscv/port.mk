# SPDX-License-Identifier: MIT
# RISC-V: QEMU `virt`, OpenSBI, rv64imac, Sv39. No floating point registers, so
# that the compiler cannot move integers through them.
CROSS_COMPILE ?= riscv64-linux-gnu-
BOOT_SRCS := boot/fdt.c

# Front ends. sites/ has the layout of each.
#   patchable     four c.nop at a function's entry. -falign-functions=4 keeps the
#                 live word in one naturally aligned store. GCC ignores it for
#                 cold functions, which patch.c then writes by halves
#   patchable-nc  the same without compressed instructions: two nop
#   patchable-far both words change, by strategy bypass, and no word is fixed
#   mcount        -pg: jal ra,_mcount behind the prologue, relaxed by the linker
#   mcount-far    -pg unrelaxed, for text of more than 1 MiB: auipc ra; jalr ra
SITES_CHOICES := patchable patchable-nc patchable-far mcount mcount-far
# Those whose ARCH_CFLAGS, below, are not the others'.
SITES_APART := patchable-nc patchable-far mcount-far
SITE_CFLAGS_patchable := -fpatchable-function-entry=4 -falign-functions=4
SITE_CFLAGS_patchable-far := $(SITE_CFLAGS_patchable)
SITE_LAYOUT_patchable-nc := patchable
SITE_CFLAGS_patchable-nc := -fpatchable-function-entry=2
SITE_CFLAGS_mcount := -pg
SITE_CFLAGS_mcount-far := -pg

# Without relaxation the assembler aligns by itself, and leaves the linker
# nothing to delete.
ARCH_CFLAGS := -march=rv64ima$(if $(filter %-nc,$(SITES)),,c)_zicsr_zifencei \
	-mabi=lp64 -mcmodel=medany \
	$(if $(filter %-far,$(SITES)),-mno-relax)
ARCH_LDFLAGS := -Wl,--$(if $(filter %-far,$(SITES)),no-)relax
# Sections of the object files that the image does not need.
ARCH_DISCARD := .riscv.attributes

compiled_nops := patchable sites are NOPs that call nothing, so nothing can \
	record at run time; use SITES=mcount or mcount-far
no_record := GCC leaves no record of the sites of -pg here; use \
	SITES=patchable or patchable-nc
REFUSED_patchable_runtime := $(compiled_nops)
REFUSED_patchable-nc_runtime := $(compiled_nops)
REFUSED_patchable-far_runtime := $(compiled_nops)
REFUSED_mcount_compiler := $(no_record)
REFUSED_mcount-far_compiler := $(no_record)
REFUSED_big := QEMU has no big-endian RISC-V
