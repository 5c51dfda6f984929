# MIPS32r5, o32, in kseg0; read by the Makefile.

# The byte order: a GCC for either serves, but its libgcc is of one.
ENDIAN_CHOICES := little big
ENDIAN ?= little
ifeq ($(ENDIAN),little)
CROSS_COMPILE ?= mipsel-linux-gnu-
ENDIAN_FLAG := -EL
else ifeq ($(ENDIAN),big)
CROSS_COMPILE ?= mips-linux-gnu-
ENDIAN_FLAG := -EB
else
$(error ENDIAN=$(ENDIAN) is unknown for mips; choose one of: $(ENDIAN_CHOICES))
endif

SITES_DEFAULT := mcount
SITES_CHOICES := mcount mcount-ra mcount-long
SITES ?= $(SITES_DEFAULT)

# -mno-abicalls -G0: nothing may use gp, which holds struct cpu. Without shrink
# wrapping a function's frame is made before its first branch: unwind.c decodes
# it there. libgcc is built for hard float; its integer functions, all that is
# used, neither care nor touch gp.
ARCH_CFLAGS := $(ENDIAN_FLAG) -march=mips32r5 -mabi=32 -msoft-float \
	-mno-abicalls -G0 -mno-mips16 -mno-micromips -fno-shrink-wrap
ARCH_LDFLAGS := -Wl,--no-warn-mismatch

ifeq ($(SITES),mcount)
SITE_CFLAGS := -pg
else ifeq ($(SITES),mcount-ra)
SITE_CFLAGS := -pg -mmcount-ra-address
else ifeq ($(SITES),mcount-long)
SITE_CFLAGS := -pg -mlong-calls
else ifeq ($(SITES),patchable)
$(error mips: -fpatchable-function-entry puts its NOPs before the function's \
	label; choose one of: $(SITES_CHOICES))
else
$(error SITES=$(SITES) is unknown for mips; choose one of: $(SITES_CHOICES))
endif
