# RISC-V: QEMU `virt`, OpenSBI, rv64imac, Sv39. No floating point registers, so
# that the compiler cannot move integers through them.
CROSS_COMPILE ?= riscv64-linux-gnu-
SITES_DEFAULT := patchable
SITES_CHOICES := patchable patchable-nc mcount mcount-far

# Without relaxation the assembler aligns by itself, and leaves the linker
# nothing to delete.
march := rv64ima$(if $(filter patchable-nc,$(SITES)),,c)_zicsr_zifencei
ARCH_CFLAGS := -march=$(march) -mabi=lp64 -mcmodel=medany \
	-fno-omit-frame-pointer $(if $(filter mcount-far,$(SITES)),-mno-relax)
ARCH_LDFLAGS := -Wl,$(if $(filter mcount-far,$(SITES)),--no-relax,--relax)

# patchable: four c.nop = 8 bytes at a function's entry. -falign-functions=4
# keeps the live word in one naturally aligned store; GCC ignores it for cold
# functions, which patch.c then writes by halves.
SITE_CFLAGS_patchable := -fpatchable-function-entry=4 -falign-functions=4
SITE_CFLAGS_patchable-nc := -fpatchable-function-entry=2
SITE_CFLAGS_mcount := -pg
SITE_CFLAGS_mcount-far := -pg

compiled_nops := compiled as NOPs, a site calls nobody who could record it
REFUSED_patchable_runtime := $(compiled_nops)
REFUSED_patchable-nc_runtime := $(compiled_nops)
REFUSED_mcount-far_runtime := a task preempted between auipc and jalr would \
	take one half of each call, were the site converted while tasks run
REFUSED_mcount_compiler := GCC records no sites of -pg there
REFUSED_mcount-far_compiler := $(REFUSED_mcount_compiler)
REFUSED_big := QEMU has no big-endian RISC-V
