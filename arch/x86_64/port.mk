# SPDX-License-Identifier: MIT
# x86-64: toolchain, flags, and the compiler front ends that make sites.

CROSS_COMPILE ?= x86_64-linux-gnu-

# No vector or floating point registers and no red zone: interrupts use the
# interrupted stack and save integer registers only. Static functions, too, are called
# with an aligned stack: a site calls C from wherever it stands.
ARCH_CFLAGS := -m64 -march=x86-64 -mcmodel=kernel -mgeneral-regs-only \
	-fno-ipa-stack-alignment -mno-red-zone -fcf-protection=none
ARCH_LDFLAGS := -Wl,-m,elf_x86_64

BOOT_SRCS := boot/multiboot.c

SITES_CHOICES := fentry fentry-nop patchable

SITE_CFLAGS_fentry := -pg -mfentry -mrecord-mcount
SITE_CFLAGS_fentry-nop := -pg -mfentry -mnop-mcount -mrecord-mcount
SITE_CFLAGS_patchable := -fpatchable-function-entry=5

compiled_nops := compiled as NOPs, a site calls nobody who could record it
REFUSED_fentry-nop_runtime := $(compiled_nops)
REFUSED_patchable_runtime := $(compiled_nops)
REFUSED_big := there is no big-endian x86
