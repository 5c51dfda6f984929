/* SPDX-License-Identifier: MIT */
/*
 * The compiler's description of stack frames (DWARF call frame information), as
 * the compact table that kernel/image/unwind.c walks with. libdw reads the DWARF.
 */
#ifndef TOOLS_UNWIND_H
#define TOOLS_UNWIND_H

#include "scan.h"

#include <stdio.h>

/* As in kernel/image/unwind.h. */
enum unwind_where {
	UNWIND_NONE,
	UNWIND_END,
	UNWIND_LOST,
	UNWIND_LINK,
	UNWIND_ALT,
	UNWIND_STACK,
	UNWIND_TAKEN,
	UNWIND_TRAP,
};

/* The same fields as the kernel's struct unwind_rule. */
struct unwind_rule {
	int cfa;	       /* the CFA less the stack pointer */
	int pc_at, link_at;    /* of UNWIND_STACK, from the CFA */
	unsigned int pc, link; /* enum unwind_where */
	unsigned int exact;    /* 1: the caller was interrupted */
};

#define UNWIND_RULES 256
#define UNWIND_BLOCK 256 /* bytes of text, as in kernel/image/unwind.h */

struct unwind_row {
	uint64_t addr; /* the first instruction that the rule is for */
	unsigned int rule;
};

struct unwind_table {
	struct unwind_row *row; /* ascending */
	size_t count;
	struct unwind_rule rule[UNWIND_RULES];
	unsigned int nr_rules;
};

/*
 * Read the frame information of every function of the image. Complains, by
 * name, about a function that has none and about a frame that the table cannot
 * express (complain()).
 */
void unwind_read(const struct image *im, const struct arch *arch,
		 const struct addresses *sites, struct unwind_table *t);

/* Write the table as assembly. t may be empty. */
void unwind_emit(FILE *f, const struct image *im, const struct unwind_table *t);

#endif
