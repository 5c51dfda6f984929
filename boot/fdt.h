/* SPDX-License-Identifier: MIT */
/*
 * A reader of flattened device trees (Devicetree Specification 0.4, chapter 5), for
 * ports whose firmware hands one over. Every read is checked against the tree's size,
 * so a broken tree ends in boot_fail(). A port takes it by BOOT_SRCS in its port.mk.
 * Context of all functions: boot, a single CPU.
 */
#ifndef BOOT_FDT_H
#define BOOT_FDT_H

#include <boot/boot_info.h>

#define FDT_DEPTH 8 /* nodes on a path, the root included */

struct fdt_node {
	const char *name;
	u32 at;			       /* of its first property */
	u32 address_cells, size_cells; /* for the reg of nodes below it */
	int mark; /* the visitor's, for nodes below it. -1 at first */
};

/* From the root to the node that is visited, which is fdt_path[fdt_depth]. */
extern struct fdt_node fdt_path[FDT_DEPTH];
extern unsigned int fdt_depth;

/* A property's value: its bytes, and how many. */
struct fdt_prop {
	const char *data;
	u32 len;
};

/* Use the tree at physical address pa from now on. */
void fdt_open(u64 pa);

/* Call visit(arg) for each node but the root, parents first. */
void fdt_walk(void (*visit)(u32 arg), u32 arg);

/* Is the visited node at depth d, and the node above it of that name? */
bool fdt_under(unsigned int d, const char *name);

/* A property of a node. False when there is none. */
bool fdt_property(const struct fdt_node *n, const char *name,
		  struct fdt_prop *p);

/* The big-endian number of `cells` words at word i of a property. */
u64 fdt_cells(const struct fdt_prop *p, u32 i, u32 cells);

/* A property of one word. `otherwise` when the node does not have it. */
u32 fdt_u32(const struct fdt_node *n, const char *name, u32 otherwise);

/* Does a list-of-strings property contain s? */
bool fdt_has(const struct fdt_node *n, const char *name, const char *s);

/* The i-th (address, size) of the visited node's reg. False: no more. */
bool fdt_reg(u32 i, struct boot_range *r);

/* The visited node is one of memory: add it to boot_info. */
void fdt_add_memory(void);

/* The visited node is /chosen: the initrd and the command line, into boot_info. */
void fdt_read_chosen(void);

/* Take the memory that the tree's own list reserves (5.3), and the tree itself, out of
 * boot_info's memory. */
void fdt_remove_reserved(void);

#endif
