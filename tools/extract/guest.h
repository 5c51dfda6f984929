/* SPDX-License-Identifier: MIT */
/*
 * A guest's memory, read from outside, without any help of the guest: where the kernel's
 * objects lie stands in its ELF file, symbols and DWARF. An error ends the program.
 */
#ifndef EXTRACT_GUEST_H
#define EXTRACT_GUEST_H

#include "../lib/image.h"

typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

struct guest {
	struct image im;
	const uint8_t *memory; /* of the machine, from its first byte of RAM */
	size_t size;
	u64 base; /* the kernel's address of that byte */
	u64 moved; /* from the image's physical addresses to where it was loaded */
};

/* Open the kernel's ELF file. */
void guest_open(struct guest *g, const char *elf);
/* Take the memory from a file. The kernel in it must be that of the ELF file. */
void guest_map(struct guest *g, const char *file);
/* Take it from QEMU, through the QMP socket. The machine stands still meanwhile. */
void guest_save(struct guest *g, const char *socket);

/* len bytes at an address of the kernel's. NULL if it is in no RAM. */
const uint8_t *guest_at(const struct guest *g, u64 addr, u64 len);
/* A number of n bytes there. 0 if it is in no RAM. And a pointer. */
u64 guest_number(const struct guest *g, u64 addr, unsigned int n);
u64 guest_pointer(const struct guest *g, u64 addr);
/* A text there. "" if it is in no RAM, or longer than a page. */
const char *guest_text(const struct guest *g, u64 addr);

/* The address of a variable, of a file's own (or NULL: any file's). */
u64 guest_symbol(const struct guest *g, const char *file, const char *name);

/* A struct's size, and where a member of it lies ("head.ring"). */
u64 guest_size(const struct guest *g, const char *type);
struct member {
	u64 at, size;
};
struct member guest_member(const struct guest *g, const char *type,
			   const char *name);
/* A member's value in the struct at addr, as a number. */
u64 guest_get(const struct guest *g, u64 addr, const char *type,
	      const char *name);
/* The value of an enumerator. */
s64 guest_enumerator(const struct guest *g, const char *type, const char *name);

/* Have QEMU write RAM from physical address `from` on into a file (qmp.c). */
struct qmp;
struct qmp *qmp_stop(const char *socket);
void qmp_save(struct qmp *q, u64 from, u64 size, const char *file);
/* The physical address of what CPU 0 sees at `addr`. false: nothing is there. */
bool qmp_place(struct qmp *q, u64 addr, u64 *at);
/* Let the machine go on, if it ran before. */
void qmp_continue(struct qmp *q);

#endif
