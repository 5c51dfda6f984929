# x86-64: toolchain, flags, and the compiler front ends that make sites.

CROSS_COMPILE ?= x86_64-linux-gnu-

# No vector or floating point registers and no red zone: interrupts use the
# interrupted stack and save integer registers only. Frame pointers, and no
# shrink-wrapped prologues, so that the unwinder finds every caller.
ARCH_CFLAGS := -m64 -march=x86-64 -mcmodel=kernel -mgeneral-regs-only \
	-mno-red-zone -fcf-protection=none \
	-fno-omit-frame-pointer -fno-shrink-wrap
ARCH_LDFLAGS := -Wl,-m,elf_x86_64

SITES_DEFAULT := fentry
SITES_CHOICES := fentry
SITES ?= $(SITES_DEFAULT)

SITE_CFLAGS_fentry := -pg -mfentry
SITE_CFLAGS = $(SITE_CFLAGS_$(SITES))

ifeq ($(filter $(SITES),$(SITES_CHOICES)),)
$(error SITES=$(SITES) is unknown on x86_64; choose one of: $(SITES_CHOICES))
endif
