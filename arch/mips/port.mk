# SPDX-License-Identifier: MIT
# MIPS32r5, o32, in kseg0, read by the Makefile.

CROSS_COMPILE ?= $(if $(filter big,$(ENDIAN)),mips,mipsel)-linux-gnu-

SITES_CHOICES := mcount mcount-ra mcount-long

# -mno-abicalls -G0: nothing may use gp, which holds struct cpu. libgcc is built for
# hard float. Its integer functions, all that is
# used, neither care nor touch gp.
ARCH_CFLAGS := $(if $(filter big,$(ENDIAN)),-EB,-EL) -march=mips32r5 \
	-mabi=32 -msoft-float -mno-abicalls -G0 -mno-mips16 -mno-micromips
ARCH_LDFLAGS := -Wl,--no-warn-mismatch
# Sections of the object files that the image does not need.
ARCH_DISCARD := .reginfo .MIPS.abiflags .MIPS.options .pdr .mdebug.*

SITE_CFLAGS_mcount := -pg
SITE_CFLAGS_mcount-ra := -pg -mmcount-ra-address
SITE_CFLAGS_mcount-long := -pg -mlong-calls

REFUSED_patchable := -fpatchable-function-entry puts its NOPs before the \
	function's label
REFUSED_mcount_compiler := GCC records no sites of -pg there
REFUSED_mcount-ra_compiler := $(REFUSED_mcount_compiler)
REFUSED_mcount-long_compiler := $(REFUSED_mcount_compiler)
REFUSED_mcount-long_runtime := a task preempted between lui and jalr would \
	take one half of each call, were the site converted while tasks run
