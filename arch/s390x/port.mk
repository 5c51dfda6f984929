# SPDX-License-Identifier: MIT
# s390x: QEMU `s390-ccw-virtio`, from z196 on, big-endian.
CROSS_COMPILE ?= s390x-linux-gnu-

# Front ends. sites/ has the layout of each.
#   patchable   three nopr, two bytes each, at a function's entry
#   hotpatch    -mhotpatch: one brcl of six bytes that does nothing
#   fentry      -mfentry: brasl %r0,__fentry__
#   fentry-nop  the same with -mnop-mcount: the brcl, with GCC's record
SITES_CHOICES := patchable hotpatch fentry fentry-nop
SITE_CFLAGS_patchable := -fpatchable-function-entry=3
SITE_CFLAGS_hotpatch := -mhotpatch=0,3
# GCC makes no call in a nested function, but records one.
SITE_CFLAGS_fentry := -pg -mfentry -mrecord-mcount -DNESTED_SITE=notrace
SITE_CFLAGS_fentry-nop := -pg -mfentry -mnop-mcount -mrecord-mcount
SITE_LAYOUT_fentry-nop := hotpatch

# Without floating point: no code of this image has such a register, so none can change.
# Address 0 is memory like any other.
ARCH_CFLAGS := -m64 -march=z196 -msoft-float -mno-packed-stack -mno-backchain \
	--param=min-pagesize=0

compiled_nops := s390x sites are NOPs that call nothing, so nothing can \
	record at run time; use SITES=fentry
REFUSED_patchable_runtime := $(compiled_nops)
REFUSED_hotpatch_runtime := $(compiled_nops)
REFUSED_fentry-nop_runtime := $(compiled_nops)
REFUSED_hotpatch_compiler := GCC records no sites of -mhotpatch
REFUSED_little := s390x is big-endian
