# SPDX-License-Identifier: MIT
# arm64: QEMU `virt`, from Armv8.0 on (cortex-a57, max), 4 KiB pages.
CROSS_COMPILE ?= aarch64-linux-gnu-
BOOT_SRCS := boot/fdt.c

# Front ends. sites/ has the layout of each.
#   patchable      two nop at a function's entry
#   patchable-4-2  two more before the entry, which stay as they are
#   mcount         -pg: bl _mcount behind the prologue. GCC wants a frame pointer there
SITES_CHOICES := patchable patchable-4-2 mcount
SITE_CFLAGS_patchable := -fpatchable-function-entry=2 -fomit-frame-pointer
SITE_CFLAGS_patchable-4-2 := -fpatchable-function-entry=4,2 -fomit-frame-pointer
SITE_CFLAGS_mcount := -pg

# x28 is the CPU register. x18 cannot be: GCC passes the static chain in it, -ffixed-x18 or
# not. +nofp: no code has a vector register, so nothing in this image can change one.
ARCH_CFLAGS := -march=armv8-a+nofp -mgeneral-regs-only -mcmodel=small -ffixed-x28 \
	-mno-outline-atomics -mbranch-protection=none -fno-unwind-tables
# For an erratum of Cortex-A53 the linker would move an adrp at the end of a page, where one falls
# there, into a stub of its own, without frame information. The port runs on no such CPU.
ARCH_CFLAGS += -mno-fix-cortex-a53-843419 -mno-fix-cortex-a53-835769

compiled_nops := patchable sites are NOPs that call nothing, so nothing can \
	record at run time; use SITES=mcount
REFUSED_patchable_runtime := $(compiled_nops)
REFUSED_patchable-4-2_runtime := $(compiled_nops)
REFUSED_mcount_compiler := GCC: unrecognized command-line option '-mrecord-mcount'
REFUSED_fentry := GCC: unrecognized command-line option '-mfentry'
REFUSED_big := nopl runs arm64 little-endian only
