/* SPDX-License-Identifier: MIT */
/*
 * The changes of a guest's code: each store that changed it, and how many of these
 * changes each CPU has synchronised with. Places are offsets in the guest's RAM. All
 * functions end QEMU when memory is short.
 */
#ifndef TOOLS_CHANGES_H
#define TOOLS_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ram.h"

#define MAX_CPUS 256
#define STORE_MOST 16 /* bytes of one store */

struct change {
	uint32_t time; /* 1, 2, ... */
	uint8_t n;     /* bytes */
	uint8_t cpu;
	uint64_t offset; /* of its first byte */
	uint64_t pc;	 /* of the store */
	uint8_t before[STORE_MOST], after[STORE_MOST];
};

extern uint32_t now;	/* changes so far */
extern uint32_t unseen; /* bytes of code that changed by no store that was seen */
extern uint32_t
	synced[MAX_CPUS]; /* the CPU has synchronised with so many changes */

/* Find the RAM: QEMU's mapping of the file at path. `cpus`: how many can ever run. */
void changes_begin(const char *path, unsigned int cpus);

/* The CPU has stored n bytes at offset, by the instruction at pc. */
void changes_stored(unsigned int cpu, uint64_t pc, uint64_t offset, size_t n);

/* An instruction of n bytes stands at offset: from now on its pages count as code. */
void changes_code(uint64_t offset, size_t n);

/* When a byte of [offset, offset + n) changed last. 0: never. */
uint32_t changes_last(uint64_t offset, size_t n);

/* The length of the longest instruction that was ever seen at offset. */
size_t changes_longest(uint64_t offset);

/*
 * The changes of [offset, offset + n) that the CPU has not synchronised with, the
 * latest first. If own is false, without the CPU's own stores. Returns how many there
 * are. At most `room` of them go to found.
 */
unsigned int changes_missed(unsigned int cpu, uint64_t offset, size_t n,
			    bool own, const struct change **found,
			    unsigned int room);

/* p, unless it is NULL: then QEMU ends. */
void *checked(void *p);

#endif
