# SPDX-License-Identifier: MIT
# nopl: `make help` lists targets and variables.

# A port is a folder of arch/ that has a port.mk. The default is the host's own.
ARCHES := $(patsubst arch/%/port.mk,%,$(wildcard arch/*/port.mk))
ifeq ($(origin ARCH),undefined)
ARCH := $(firstword $(filter $(shell uname -m),$(ARCHES)) $(ARCHES))
endif
SMP ?= 4
V ?= 0
PYTHON := /usr/bin/python3

.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:
SHELL := /bin/bash

ifeq ($(filter $(ARCH),$(ARCHES)),)
$(error ARCH=$(ARCH) is unknown; choose one of: $(ARCHES) (a new port begins \
	with arch/$(ARCH)/port.mk))
endif

RECORDS := link compiler object runtime
RECORD ?= link
ifeq ($(filter $(RECORD),$(RECORDS)),)
$(error RECORD=$(RECORD) is unknown; choose one of: $(RECORDS))
endif
ICOUNT ?= 0
ifeq ($(filter $(ICOUNT),0 1),)
$(error ICOUNT=$(ICOUNT) is unknown; choose one of: 0 1)
endif

# The port's flags, its front ends (SITES_CHOICES), and what it cannot have, with
# the reason: REFUSED_<value of SITES or ENDIAN>, REFUSED_<SITES>_<RECORD>.
include arch/$(ARCH)/port.mk

# The byte orders that are not refused. The first is the default.
endians := $(strip $(foreach x,little big,$(if $(REFUSED_$(x)),,$(x))))
ENDIAN ?= $(firstword $(endians))
ifeq ($(filter $(ENDIAN),little big),)
$(error ENDIAN=$(ENDIAN) is unknown; choose one of: little big)
endif
SITES ?= $(firstword $(SITES_CHOICES))
refused := $(firstword $(foreach x,$(SITES) $(ENDIAN) $(SITES)_$(RECORD),\
	$(if $(REFUSED_$(x)),$(x))))
ifneq ($(refused),)
$(error $(ARCH): $(REFUSED_$(refused)))
endif
ifeq ($(filter $(SITES),$(SITES_CHOICES)),)
$(error SITES=$(SITES) is unknown on $(ARCH); choose one of: $(SITES_CHOICES))
endif

# Rooms of the tracer that are left out: whatever lies above core registers itself, so the others
# know nothing of it. Tests that include a room's headers, or the lab's, go with it.
rooms := graph events calls latency record lab
without := $(sort $(WITHOUT))
ifneq ($(filter-out $(rooms),$(without)),)
$(error WITHOUT=$(firstword $(filter-out $(rooms),$(without))) is unknown; choose some of: $(rooms))
endif
ifneq ($(and $(filter record,$(without)),$(filter runtime,$(RECORD))),)
$(error RECORD=runtime needs the room `record`, which WITHOUT leaves out)
endif
space := $() $()

# Somebody else's patch code, for the lab (tests/patchers/README.md): a folder of C and assembly.
PATCHER ?=
patcher_srcs := $(wildcard $(PATCHER:%/=%)/*.[cS])
ifneq ($(PATCHER),)
ifeq ($(patcher_srcs),)
$(error PATCHER=$(PATCHER) holds no .c file; tests/patchers/README.md says how to bring patch code)
endif
endif

# Functions beside the kernel's own, to see what grows with their number: a folder of C files, which
# tools/bench-scale writes.
MORE ?=
more_srcs := $(wildcard $(MORE:%/=%)/*.c)

# `make -j setup test`: what is installed must be there before it is used.
ifneq ($(filter setup,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# Every way of building that differs from the port's default has its own folder.
other_endian := $(patsubst %,-%,$(filter-out $(firstword $(endians)),$(ENDIAN)))
variant := $(other_endian)$(\
	)$(if $(filter-out $(firstword $(SITES_CHOICES)),$(SITES)),-$(SITES))
record_variant := $(if $(filter runtime,$(RECORD)),-runtime)
less := $(if $(without),-without-$(subst $(space),-,$(without)))
foreign := $(if $(PATCHER),-patcher-$(notdir $(PATCHER:%/=%)))$(\
	)$(if $(MORE),-more-$(notdir $(MORE:%/=%)))
O ?= build/$(ARCH)$(variant)$(record_variant)$(less)$(foreign)
# Neither who records the sites makes a difference to object files, but to the stub's, nor do
# rooms that are left out. So all others stand once, in this folder.
by_any_recorder := $(if $(filter file,$(origin O)),build/$(ARCH)$(variant),$(O))
own_srcs := $(if $(filter runtime,$(RECORD)),arch/$(ARCH)/trampoline.S) $(patcher_srcs) $(more_srcs)
host := build/host
ELF := $(O)/nopl.elf

Q := $(if $(filter 0,$(V)),@)
# One word of the shell's, whatever quotes are in it.
quote = '$(subst ','\'',$(1))'
say = $(if $(filter 0,$(V)),$(info $()  $(1)	$(2)))

CC := $(CROSS_COMPILE)gcc
OBJDUMP := $(CROSS_COMPILE)objdump
HOSTCC ?= gcc

# One line, not one for each file. `make setup` itself must run without.
ifeq ($(filter setup help clean,$(MAKECMDGOALS)),)
ifeq ($(shell command -v $(CC)),)
$(error $(CC) is missing; make setup installs what is)
endif
endif

CFLAGS := -std=gnu2x -O2 -g -pipe -ffreestanding -fno-common -fno-pic -fno-ipa-ra \
	-fno-stack-protector -fno-asynchronous-unwind-tables \
	-fno-strict-aliasing -fno-jump-tables -fno-delete-null-pointer-checks \
	-Wall -Wextra -Wmissing-prototypes -Wvla -Werror=implicit \
	-I. -Iarch/$(ARCH) $(ARCH_CFLAGS)
# For what knows the bytes of this front end's sites. Variants compile a tenth faster, and
# gdb finds fewer of their local variables.
LAYOUT_CFLAGS := -Iarch/$(ARCH)/sites/$(or $(SITE_LAYOUT_$(SITES)),$(SITES)) \
	$(if $(variant),-fno-var-tracking)
LDFLAGS := -nostdlib -static -Wl,--build-id=none -Wl,-z,max-page-size=4096 \
	-Wl,--no-warn-rwx-segments -Wl,--orphan-handling=error \
	-Wl,-z,noexecstack $(ARCH_LDFLAGS)
HOSTCFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Itools/extract

SRCS := boot/boot.c $(BOOT_SRCS) arch/conform/conform.c
# In the order of the porting guide: tests run in the order of linking.
SRCS += $(patsubst %,arch/conform/conform%.c,_console _cpu _task _mm _time _irq _smp \
	_stacks _trace _trampoline _return _graph _leaf _break _nmi)
SRCS += $(wildcard boot/$(ARCH)/*.[cS] \
	arch/$(ARCH)/*.[cS] tracer/*.c tracer/*/*.c kernel/*.c kernel/*/*.c)
ifneq ($(RECORD),runtime)
SRCS := $(filter-out tracer/record/%,$(SRCS))
endif
ifeq ($(filter events,$(without)),)
SRCS := $(filter-out kernel/event/no_events.c,$(SRCS))
endif
ifneq ($(without),)
SRCS := $(filter-out $(without:%=tracer/%/%) \
	$(if $(filter lab,$(without)),arch/$(ARCH)/lab.% arch/$(ARCH)/lab_%),$(SRCS))
SRCS := $(filter-out $(shell grep -lE 'include <(tracer/($(subst $(space),|,$(without)))/$(\
	)$(if $(filter lab,$(without)),|arch/arch_lab))' \
	$(filter %_test.c arch/conform/%,$(SRCS))),$(SRCS))
endif
SRCS += $(patcher_srcs) $(more_srcs)
OWN_OBJS := $(patsubst %,$(O)/%.o,$(filter $(own_srcs),$(SRCS)))
# All functions have sites but those of the tracer's own tests, which trampolines call.
no_sites := $(patcher_srcs) $(filter arch/conform/%,$(SRCS)) \
	$(filter tracer/%_test.c %/testing.c,$(SRCS))
# Most of these do not know the bytes of a site either: arch_trace.h leaves its inline half
# out (NO_LAYOUT). So their objects are the same for all front ends, and stand once.
no_layout := $(filter-out $(patcher_srcs) $(patsubst %,arch/conform/conform_%.c,\
	trace trampoline return graph leaf break nmi) tracer/patch/% tracer/sites/% \
	tracer/record/% %/probe_test.c %/testing.c,$(no_sites))
by_any_front_end := $(if $(filter file,$(origin O)),build/$(ARCH)$(\
	)$(other_endian)$(\
	)$(patsubst %,-%,$(filter $(SITES),$(SITES_APART))),$(O))
OBJS := $(OWN_OBJS) $(foreach src,$(filter-out $(own_srcs),$(SRCS)),\
	$(if $(filter $(no_layout),$(src)),$(by_any_front_end),$(by_any_recorder))/$(src).o)
FILE_CFLAGS = $(if $(filter $(no_layout),$<),-DNO_LAYOUT,$(LAYOUT_CFLAGS) \
	$(if $(filter $(no_sites),$<),,$(SITE_CFLAGS_$(SITES))))
$(filter-out $(patcher_srcs:%=$(O)/%.o),$(OWN_OBJS)): CFLAGS += -DRECORD_RUNTIME
$(more_srcs:%=$(O)/%.o): CFLAGS += -Wno-missing-prototypes
$(patcher_srcs:%=$(O)/%.o): CFLAGS += $(patsubst %,-I%,$(wildcard $(PATCHER:%/=%)/include)) \
	-Itests/patchers/include -Wno-missing-prototypes -Wno-unused-parameter

.PHONY: all
all: $(ELF) ## build the kernel of ARCH, its tables made and proved (default)

# A process less for each file: the folders are made once, and say() runs none.
folders := $(sort $(dir $(OBJS)))
$(folders):
	@mkdir -p $@

define compile
$(1)/%.c.o: %.c Makefile arch/$(ARCH)/port.mk | $(folders)
	$$(call say,CC,$$<)
	$(Q)$$(CC) $$(CFLAGS) $$(FILE_CFLAGS) -MMD -MP -c $$< -o $$@

$(1)/%.S.o: %.S Makefile arch/$(ARCH)/port.mk | $(folders)
	$$(call say,AS,$$<)
	$(Q)$$(CC) $$(CFLAGS) $$(LAYOUT_CFLAGS) -D__ASSEMBLER__ -MMD -MP -c $$< -o $$@
endef
$(foreach folder,$(sort $(O) $(by_any_recorder) $(by_any_front_end)),\
	$(eval $(call compile,$(folder))))

$(O)/nopl.ld: linker/nopl.ld.S arch/$(ARCH)/layout.h arch/$(ARCH)/port.mk
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -x c $(CFLAGS) -D__ASSEMBLER__ -D__LINKER__ \
		-D'ARCH_DISCARD=$(ARCH_DISCARD)' -D'ARCH_DATA=$(ARCH_DATA)' $< -o $@

link = $(CC) $(CFLAGS) $(LDFLAGS) -T $(O)/nopl.ld $(OBJS) $(1) -lgcc -o $(2)

# First link without tables, tables from its disassembly, second link with them,
# and the proof that the second link moved nothing and that the tables are true.
$(O)/empty.S: $(host)/mksites
	@mkdir -p $(@D)
	$(Q)$(host)/mksites --empty --record $(RECORD) -o $@

$(O)/object.sites: $(OBJS) $(host)/mkrecord
	$(call say,RECORD,$@)
	$(Q)$(host)/mkrecord --arch $(ARCH) --sites $(SITES) -o $@ $(OBJS)

$(O)/tables.o $(O)/empty.o: $(O)/%.o: $(O)/%.S
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

$(O)/first.elf: $(OBJS) $(O)/empty.o $(O)/nopl.ld
	$(call say,LINK,$@)
	$(Q)$(call link,$(O)/empty.o,$@)

tool_args = --arch $(ARCH) --sites $(SITES) --objdump $(OBJDUMP)
# The names of somebody else's functions are not ours to judge.
mksites = $(host)/mksites $(tool_args) --record $(RECORD) --objects $(O)/object.sites \
	$(if $(PATCHER),--any-names)

# RECORD=compiler and object are proofs: their record makes the tables of the same kernel again.
$(O)/tables.S $(O)/tables-$(RECORD).S: $(O)/first.elf $(O)/object.sites $(host)/mksites \
	arch/$(ARCH)/machine.json
	$(call say,SITES,$@)
	$(Q)$(mksites) $< -o $@
$(ELF): | $(patsubst %,$(O)/tables-%.S,$(filter compiler object,$(RECORD)))

$(ELF): $(O)/first.elf $(O)/tables.o $(host)/mksites $(host)/patchpath
	$(call say,LINK,$@)
	$(Q)$(call link,$(O)/tables.o,$@.new) -Wl,-Map=$(O)/nopl.map
	$(call say,VERIFY,$@)
	$(Q)$(mksites) --verify $(O)/first.elf $@.new
	$(Q)$(host)/patchpath $(tool_args) $@.new
	$(Q)mv $@.new $@
	$(Q)rm -f $@.new.dis
	@echo 'gdb.execute("source $(CURDIR)/tools/gdb/nopl.py")' > $@-gdb.py

# Programs that call make may run side by side: none sees a half written file of another's.
to_target = -o $@.$$$$ && mv $@.$$$$ $@
tool_objs := $(patsubst %.c,$(host)/%.o,$(wildcard tools/lib/*.c))
$(host)/%.o: %.c $(wildcard tools/*/*.h tests/fuzz/*.h kernel/*/*.h tracer/*/*.h)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(HOSTCFLAGS) -I. -c $< $(to_target)

.SECONDARY: $(patsubst %.c,$(host)/%.o,$(wildcard tools/*.c))
$(host)/%: $(host)/tools/%.o $(tool_objs)
	$(call say,HOSTCC,$@)
	$(Q)$(HOSTCC) $^ -ldw -lelf -ljansson $(to_target)

# A guest's control files, mounted on this machine.
tracefs_srcs := $(wildcard tools/tracefs/*.c)
$(host)/tracefs: $(tracefs_srcs) $(wildcard tools/tracefs/*.h) kernel/p9/p9_numbers.h
	$(call say,HOSTCC,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(HOSTCFLAGS) -I. $(tracefs_srcs) -lfuse3 $(to_target)

# A trace read out of a guest's memory, by the tracer's own readers. The kernel's functions of the
# C library's names have others here.
tracer_srcs := kernel/lib/format.c kernel/lib/seq.c tracer/ring/ring_decode.c \
	$(patsubst %,tracer/show/%.c,output listing raw) tracer/events/fields.c \
	tracer/events/formats.c tracer/graph/output_graph.c tracer/latency/output_latency.c
tracer_objs := $(patsubst %.c,$(host)/%.o,$(tracer_srcs))
$(tracer_objs): HOSTCFLAGS += -std=gnu2x -include tools/extract/machine.h \
	-Dsnprintf=kernel_snprintf -Dvsnprintf=kernel_vsnprintf
$(host)/extract: $(patsubst %.c,$(host)/%.o,$(wildcard tools/extract/*.c)) $(tracer_objs) \
		$(tool_objs)
	$(call say,HOSTCC,$@)
	$(Q)$(HOSTCC) $^ -ldw -lelf -ljansson $(to_target)

# Harnesses of tools/fuzz-tools, which sets host and HOSTCC.
$(host)/fuzz-stale: $(patsubst %,$(host)/%.o,tests/fuzz/stale tools/plugin/target)
$(host)/fuzz-tracefs: $(patsubst %,$(host)/%.o,tests/fuzz/tracefs $(addprefix tools/tracefs/,\
	file folder node reads))
$(host)/fuzz-extract: $(patsubst %.c,$(host)/%.o,tests/fuzz/extract.c $(filter-out %/main.c,\
	$(wildcard tools/extract/*.c))) $(tracer_objs) $(tool_objs)
$(host)/fuzz-stale $(host)/fuzz-tracefs $(host)/fuzz-extract:
	$(call say,HOSTCC,$@)
	$(Q)$(HOSTCC) $^ -ldw -lelf -ljansson -lfuse3 $(to_target)

# Plugins for QEMU: tools/stale, tools/sections.
$(host)/stale.so: $(patsubst %,tools/plugin/%.c,stale changes target ram)
$(host)/sections.so: $(patsubst %,tools/plugin/%.c,sections ram)
$(host)/stale.so $(host)/sections.so: $(wildcard tools/plugin/*.h)
	$(call say,HOSTCC,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(HOSTCFLAGS) -shared -fPIC $(filter %.c,$^) -ljansson $(to_target)

-include $(OBJS:.o=.d)

.PHONY: setup run iso mount quick test bench soak fuzz fuzz-tools lab lab-linux features report \
	mutations choices debug check clean help
setup: ## install what is missing from Debian's packages, and say what
	$(Q)tools/setup $(filter test,$(MAKECMDGOALS))

run: all ## boot ARCH with SMP CPUs, console on this terminal (Ctrl-A x ends)
	$(Q)tools/run --arch $(ARCH) --smp $(SMP) --elf $(ELF) --interactive \
		$(if $(filter 1,$(ICOUNT)),--icount lab) \
		$(if $(APPEND),--append $(call quote,$(APPEND)))

# Of a port that says so in machine.json.
iso: all ## a CD image with GRUB that boots ARCH's kernel on a PC, with APPEND: O/nopl.iso
	$(Q)$(PYTHON) tools/lib/iso.py $(ARCH) $(ELF) $(O)/nopl.iso $(call quote,$(APPEND))

mount: all $(host)/tracefs ## run, with the guest's control files at DIR on this machine
	$(Q)tools/run --arch $(ARCH) --smp $(SMP) --elf $(ELF) --interactive \
		--mount $(call quote,$(DIR)) \
		$(if $(APPEND),--append $(call quote,$(APPEND)))

quick: ## a minute, ARCH alone: build, run the tests in the kernel, its own sites in the lab
	$(Q)$(MAKE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) all
	$(Q)tools/run --arch $(ARCH) --smp 2 --elf $(ELF)
	$(Q)tools/lab --arch $(ARCH) --elf $(ELF) --schemes 'own*'

# T names files of tests/, without test_ and .py.
test_files := $(patsubst tests/test_%.py,%,$(sort $(wildcard tests/test_*.py)))
not_a_test := $(filter-out $(test_files),$(T))
test: ## build all architectures, boot them, run every test (T=graph: tests/test_graph.py)
	$(if $(not_a_test),$(error T=$(firstword $(not_a_test)) is unknown; choose some of: \
		$(test_files)))
	$(Q)$(PYTHON) -m pytest -v --no-header --durations=10 -n 3 --dist loadgroup \
		$(or $(T:%=tests/test_%.py),tests) $(PYTEST_ARGS)

bench: ## instructions of everything that has a limit, on every architecture
	$(Q)for a in $(ARCHES); do $(MAKE) ARCH=$$a all || exit 1; done
	$(Q)tools/bench

bench-scale: ## the same figures with up to 100,000 functions more: how each grows (long)
	$(Q)tools/bench-scale $(if $(filter command environment,$(origin ARCH)),$(ARCH))

soak: all $(host)/tracefs ## MINUTES of random use of ARCH's kernel, its books every minute
	$(Q)tools/soak --arch $(ARCH) --smp $(SMP) --elf $(ELF) \
		$(if $(MINUTES),--minutes $(call quote,$(MINUTES))) \
		$(if $(SEED),--seed $(call quote,$(SEED)))

fuzz: all ## INPUTS of nonsense for ARCH's kernel, the machine as before
	$(Q)tools/fuzz --arch $(ARCH) --elf $(ELF) \
		$(if $(INPUTS),--inputs $(call quote,$(INPUTS))) \
		$(if $(BY),--by $(call quote,$(BY))) \
		$(if $(SEED),--seed $(call quote,$(SEED)))

fuzz-tools: ## MINUTES of damaged files and a hostile guest for the tools (AFL++, sanitizers)
	$(Q)tools/fuzz-tools $(if $(filter command environment,$(origin ARCH)),--arch $(ARCH)) \
		$(if $(MINUTES),--minutes $(call quote,$(MINUTES))) \
		$(if $(SEED),--seed $(call quote,$(SEED)))

lab: all ## hold tasks at every instruction and patch under them: ARCH's schemes, or PATCHER's code
	$(Q)tools/lab --arch $(ARCH) --elf $(ELF) \
		$(if $(PATCHER),--patcher $(call quote,$(PATCHER)))

lab-linux: ## judge Linux's own patch code, from Debian's linux-source-6.1, in the lab
	$(Q)tools/lab-linux

features: ## make and boot every kernel there can be; what works, what is refused
	$(Q)tools/features

report: $(host)/extract ## pictures of the lab, the figures, a boot, all kernels: build/report.html
	$(Q)for a in $(ARCHES); do $(MAKE) ARCH=$$a lab || exit 1; done
	$(Q)tools/lab-linux
	$(Q)tools/bench
	$(Q)for a in $(ARCHES); do [ build/features.json -nt build/$$a/nopl.elf ] || \
		{ tools/features && break; } || exit 1; done
	$(Q)tools/report/report.py

# For tools/features: what the variables may be, and what is refused, and the kernel.
choices:
	@echo 'sites: $(SITES_CHOICES)'
	@echo 'records: $(RECORDS)'
	@echo 'endians: $(endians)'
	@echo 'refused: $(patsubst REFUSED_%,%,$(filter REFUSED_%,$(.VARIABLES)))'
	@echo 'elf: $(ELF)'

mutations: ## plant porting mistakes, one at a time; who catches each (M=NAME; long)
	$(Q)tools/mutations $(if $(filter command environment,$(origin ARCH)),--arch $(ARCH)) $(M)

debug: all $(host)/extract ## QEMU stopped at the first instruction, gdb-multiarch on it
	$(Q)tools/run --arch $(ARCH) --smp $(SMP) --elf $(ELF) --debug

check: ## format and static checks
	$(Q)tools/check

compile_commands.json: ## for editors and static analysers, of ARCH
	$(Q)$(PYTHON) tools/compile_commands.py '$(CC) $(CFLAGS) $(LAYOUT_CFLAGS)' \
		'$(SITE_CFLAGS_$(SITES))' $(filter %.c,$(SRCS)) > $@

clean: ## remove build/
	$(Q)rm -rf build compile_commands.json

help: ## this list
	@echo 'make TARGET [VARIABLE=...]'
	@sed -n 's/^\([a-z_.-]*\):[^#]*## /  \1\t/p' Makefile | expand -t 26
	@echo 'Variables'
	@echo '  ARCH           $(ARCHES) (default $(ARCH))'
	@echo '  SMP            CPUs for run and debug, at most 32 (default 4)'
	@echo '  SITES          compiler front end of ARCH: $(SITES_CHOICES)'
	@echo '  APPEND         kernel command line for run, mount and iso'
	@echo '  MINUTES        for soak (default 1) and fuzz-tools (default: 10 s each)'
	@echo '  INPUTS         for fuzz (default 5000)'
	@echo '  BY             for fuzz, the way in: shell, 9p or boot (default shell)'
	@echo '  SEED           for soak, fuzz, fuzz-tools, of an earlier run (default: by chance)'
	@echo '  ICOUNT         1: run counts instructions, as the lab needs it (default 0)'
	@echo '  T              files of tests/ for test: T=graph, T="graph trace" (default all)'
	@echo "  PYTEST_ARGS    more for pytest: PYTEST_ARGS='-k NAME'"
	@echo '  EVERYTHING     1: test runs also what each commit has a part of (default 0)'
	@echo '  NEWCOMERS      1: test runs also on ports that are being taken in (default 0)'
	@echo '  RECORD         who records the sites: $(RECORDS)'
	@echo '  ENDIAN         byte order of ARCH: $(endians)'
	@echo '  WITHOUT        rooms of tracer/ that are left out: some of $(rooms)'
	@echo '  PATCHER        for lab: a folder of patch code that somebody brings'
	@echo '  CROSS_COMPILE  toolchain prefix (default $(CROSS_COMPILE))'
	@echo '  O              build folder (default build/ARCH)'
	@echo '  V              1 shows the commands'
