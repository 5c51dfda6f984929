/* The symbol table that tools/ makes from the linked image. */
#ifndef KERNEL_SYMBOLS_H
#define KERNEL_SYMBOLS_H

#include <kernel/types.h>

/*
 * Made by tools/mksites as build/<arch>/tables.S. Offsets count from _text; functions only,
 * ascending; symbol_names holds NUL-terminated names, symbol_name[i] is where
 * the i-th begins; symbol_by_name lists indices in strcmp() order; symbol_size
 * is in bytes.
 */
extern const u32 symbol_count;
extern const u32 symbol_offset[];
extern const u32 symbol_size[];
extern const u32 symbol_name[];
extern const u32 symbol_by_name[];
extern const char symbol_names[];

/* Offsets from _text, ascending, of x86's lock prefixes; elsewhere none. */
extern const u32 lock_count;
extern const u32 lock_table[];

extern char _text[], _etext[], _end[];

#define SYMBOL_BUF 96 /* fits any name+0xoff/0xsize; longer names are cut */

struct symbol {
	unsigned int index;
	const char *name;
	unsigned long start, size;
};

/* The function that contains addr; false if none. Any context, no site. */
bool symbol_at(unsigned long addr, struct symbol *s);
/* By exact name; the first of several. */
bool symbol_find(const char *name, struct symbol *s);
bool symbol_get(unsigned int index, struct symbol *s);
/* "name+0x12/0x40", or "0x..." for an address in no function. */
int symbol_format(char *buf, size_t size, unsigned long addr);

#endif
