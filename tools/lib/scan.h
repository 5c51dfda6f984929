/* SPDX-License-Identifier: MIT */
/*
 * The scan of a kernel's linked text: its sites and its lock prefixes. The
 * truth that every record is compared with.
 */
#ifndef TOOLS_SCAN_H
#define TOOLS_SCAN_H

#include "image.h"

#define OFFSET_BITS 24 /* of a text offset in the ring's events, unwind rows */

/* Addresses in text, of sites or others, ascending. */
struct addresses {
	uint64_t *addr;
	size_t count;
};
void add_address(struct addresses *a, uint64_t addr);

/* Find all sites, ascending. Mistakes are said (complain()). */
void scan_sites(const struct image *im, const struct arch *arch,
		const struct format *format, struct addresses *s);

/*
 * Where the format's NOPs stand in a function of len bytes at p: the offset, or
 * -1 where the function has none.
 */
int format_nops_at(const struct format *format, const uint8_t *p, size_t len);

/* Find all instructions with a lock prefix in [_text, _etext). */
void scan_locks(const struct image *im, struct addresses *a);

/*
 * The jump labels, ascending by address, from the records that static_branch() makes
 * (arch/jump_label.h). Each must stand in a function, be compiled as the port says
 * (machine.json: labels), and jump to an instruction of the same function.
 */
struct jump_label {
	uint64_t addr, target, key;
};
struct jump_labels {
	struct jump_label *label;
	size_t count;
};
void scan_labels(const struct image *im, const struct arch *arch,
		 struct jump_labels *l);

/* One line for one thing that is wrong. All are said, and counted. */
void complain(const struct image *im, uint64_t addr, const char *what);
extern unsigned int errors;

struct difference {
	size_t lacking; /* of found, not in named */
	size_t strange; /* of named, not in found */
};

/*
 * Compare the sites of the scan with the addresses that a table or a record names. Both
 * are ascending.
 * Complains of each difference: `lacks` and `strange` are its texts. NULL: no line.
 */
struct difference compare_addresses(const struct image *im,
				    const struct addresses *found,
				    const struct addresses *named,
				    const char *lacks, const char *strange);

/* len bytes of a table of the image, and the addresses that one names: `count` of them, as
 * offsets from _text. An image without them ends the program. */
const uint8_t *table_bytes(const struct image *im, const char *name,
			   size_t len);
struct addresses table_addresses(const struct image *im, const char *count,
				 const char *name);

#endif
