/* SPDX-License-Identifier: MIT */
/* The symbol table that tools/mksites makes from the linked image. */
#ifndef KERNEL_SYMBOLS_H
#define KERNEL_SYMBOLS_H

#include <kernel/types.h>

/* From build/<arch>/tables.S: all functions, in the order of their addresses. */
extern const u32 symbol_count;
extern const u32 symbol_offset[];  /* from _text, ascending */
extern const u32 symbol_size[];	   /* in bytes */
extern const u32 symbol_name[];	   /* where the name begins in symbol_names */
extern const u32 symbol_by_name[]; /* indices, in the names' strcmp() order */
extern const char symbol_names[];  /* each name ends with a NUL */

/* On x86 the lock prefixes: offsets from _text, ascending. No other port has any. */
extern const u32 lock_count;
extern const u32 lock_table[];

extern char _text[], _etext[], _end[];

struct symbol {
	unsigned int index;
	const char *name;
	unsigned long start, size;
};

/* The function that contains addr. False if none. Any context, no site. */
bool symbol_at(unsigned long addr, struct symbol *s);
/* The function of that name: tools/mksites lets no two have the same. False if none. */
bool symbol_find(const char *name, struct symbol *s);
/* The function of that index. False from symbol_count on. */
bool symbol_get(unsigned int index, struct symbol *s);

#endif
