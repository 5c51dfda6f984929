# MIPS32r5, o32, little endian, in kseg0; read by the Makefile.

CROSS_COMPILE ?= mipsel-linux-gnu-

SITES_DEFAULT := mcount
SITES_CHOICES := mcount
SITES ?= $(SITES_DEFAULT)

# -mno-abicalls -G0: nothing may use gp, which holds struct cpu. Without shrink
# wrapping a function's frame is made before its first branch: unwind.c decodes
# it there. libgcc is built for hard float; its integer functions, all that is
# used, neither care nor touch gp.
ARCH_CFLAGS := -EL -march=mips32r5 -mabi=32 -msoft-float -mno-abicalls -G0 \
	-mno-mips16 -mno-micromips -fno-shrink-wrap
ARCH_LDFLAGS := -Wl,--no-warn-mismatch

ifeq ($(SITES),mcount)
SITE_CFLAGS := -pg
else
$(error SITES=$(SITES) is unknown for mips; choose one of: $(SITES_CHOICES))
endif
