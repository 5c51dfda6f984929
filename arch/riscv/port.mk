# RISC-V: QEMU `virt`, OpenSBI, rv64imac, Sv39. No floating point registers, so
# that the compiler cannot move integers through them.
CROSS_COMPILE ?= riscv64-linux-gnu-
ARCH_CFLAGS := -march=rv64imac_zicsr_zifencei -mabi=lp64 -mcmodel=medany \
	-fno-omit-frame-pointer
ARCH_LDFLAGS := -Wl,--relax

# patchable: four c.nop = 8 bytes at a function's entry. -falign-functions=4
# keeps the live word in one naturally aligned store; GCC ignores it for cold
# functions, which patch.c then writes by halves.
SITES_DEFAULT := patchable
SITES_CHOICES := patchable
SITES ?= $(SITES_DEFAULT)
SITE_CFLAGS_patchable := -fpatchable-function-entry=4 -falign-functions=4

ifeq ($(filter $(SITES),$(SITES_CHOICES)),)
$(error SITES=$(SITES) is unknown on riscv; choose one of: $(SITES_CHOICES))
endif
SITE_CFLAGS := $(SITE_CFLAGS_$(SITES))
