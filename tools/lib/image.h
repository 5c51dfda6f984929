/* SPDX-License-Identifier: MIT */
/*
 * A linked kernel image as the host tools see it: symbols and bytes through
 * libelf, instructions through objdump, which is the only disassembler that
 * knows every architecture the compiler does. An error ends the program: errx().
 */
#ifndef TOOLS_IMAGE_H
#define TOOLS_IMAGE_H

#include "arch.h"

#include <err.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function. One per address: of aliases the one that sorts first. */
struct symbol {
	uint64_t addr,
		size; /* bytes, up to the next where assembly gave none */
	const char *name;
	const char *file; /* its source. "a file that exports it": unknown */
	bool global;
};

/* Where an instruction may go next. */
enum flow {
	FLOW_NEXT,	 /* only to the next one */
	FLOW_BRANCH,	 /* to target, or to the next one */
	FLOW_MAY_RETURN, /* or to the next one */
	FLOW_JUMP,	 /* to target */
	FLOW_CALL,	 /* to target, and back */
	FLOW_INDIRECT_JUMP,
	FLOW_INDIRECT_CALL,
	FLOW_STOP, /* returns, traps, or waits for ever */
};

struct insn {
	uint64_t addr;
	const char *mnemonic, *operands;
	bool lock; /* has x86's lock prefix */
	enum flow flow;
	uint64_t target; /* of FLOW_BRANCH, FLOW_JUMP, FLOW_CALL */
};

/* Does "mnemonic operands" match the pattern (fnmatch)? */
struct insn;
bool insn_matches(const struct insn *in, const char *pattern);

struct image {
	const char *path;
	Elf *elf;
	unsigned int pointer_size;
	bool big_endian;
	uint64_t text, etext;	/* _text, _etext */
	struct symbol *symbols; /* in [text, etext), ascending */
	size_t nr_symbols;
	struct insn *insns; /* of all executable sections, ascending */
	size_t nr_insns;
};

/* Read an image without its instructions, and with them. */
void image_open_data(struct image *im, const char *path);
void image_open(struct image *im, const char *path, const struct arch *arch,
		const char *objdump);

/* Symbol that contains addr, and symbol by exact name. NULL if none. */
const struct symbol *image_symbol_at(const struct image *im, uint64_t addr);
const char *image_name(const struct image *im, uint64_t addr);
/* Value of any symbol, aliases and labels too. False if there is none. */
bool image_value(const struct image *im, const char *name, uint64_t *value);
/* The same, but the symbol of a source file. NULL: of any. */
bool image_value_in(const struct image *im, const char *file, const char *name,
		    uint64_t *value);
/* How many bytes an object of that name has. 0 if there is none. */
uint64_t image_size(const struct image *im, const char *name);
/* How many entries of `size` bytes a table has, from one symbol to another, and where the first one
 * is. A table that is not whole ends the program. */
uint64_t image_entries(const struct image *im, const char *start,
		       const char *stop, uint64_t size, uint64_t *first);
/* Index of the instruction at exactly addr, or of the first after it. */
size_t image_insn(const struct image *im, uint64_t addr);
/* len bytes at a loaded address, NULL if the file has none. */
const uint8_t *image_bytes(const struct image *im, uint64_t addr, size_t len);
/* The contents of a section, loaded or not. NULL if there is none. */
const uint8_t *image_section(const struct image *im, const char *name,
			     size_t *len);
/* Read all instructions through objdump, a part of image_open(): listing.c. */
void image_read_insns(struct image *im, const struct arch *arch,
		      const char *objdump);
/* Find out where calls through registers go, as far as it is certain: far.c. */
void image_resolve_far(struct image *im);
/* A number of the target's byte order. */
uint64_t image_number(const struct image *im, const uint8_t *p, unsigned int n);

/* A section's header, and a string of a section, out of the file `path`. What libelf cannot
 * give ends the program, with a line that names the file and the section. */
void elf_header(const char *path, Elf_Scn *scn, GElf_Shdr *sh);
const char *elf_text(const char *path, Elf *elf, size_t section, size_t at);

/* realloc() for arrays, counted in elements. Never returns NULL. */
void *array_grow(void *array, size_t count, size_t size);

#endif
