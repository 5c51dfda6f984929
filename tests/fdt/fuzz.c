/* SPDX-License-Identifier: MIT */
/*
 * The kernel's reader of device trees (boot/fdt.c) on the host, with damaged trees. The
 * compiler's sanitizers see every byte that is read outside of the tree. A tree is read
 * to its end, or boot_fail() says in one line why not. A reader that does neither is
 * ended by an alarm.
 *
 *   fuzz TREE.dtb COUNT     that many damaged copies, the same ones every time
 */
/* The needs of fdt.c of a port: here a tree lies where it lies. */
#define ARCH_ARCH_H
#include <kernel/types.h>

static inline void *arch_phys_to_virt(u64 pa)
{
	return (void *)(unsigned long)pa;
}

static inline u64 arch_virt_to_phys(const void *va)
{
	return (u64)(unsigned long)va;
}

#include "../../boot/fdt.c"

#include "../iso/refusal.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define TREE_MOST (1 << 20)
#define HEADER 40 /* bytes, of a tree */

struct boot_info boot_info;

static unsigned long copy; /* that is being read */
static unsigned long touched;

void boot_add_memory(u64 start, u64 end)
{
	touched += start ^ end;
}

void boot_remove_memory(u64 start, u64 end)
{
	touched += start ^ end;
}

void boot_set_cmdline(const char *s, size_t len)
{
	while (len--)
		touched += *s++;
}

/* Ask for all that a port asks, of every node. */
static void visit(u32 arg)
{
	struct fdt_node *n = &fdt_path[fdt_depth];
	struct boot_range r;
	struct fdt_prop p;

	touched += arg + strlen(n->name);
	if (fdt_under(1, "") && fdt_has(n, "device_type", "memory"))
		fdt_add_memory();
	if (fdt_under(1, "") && !strcmp(n->name, "chosen"))
		fdt_read_chosen();
	if (fdt_has(n, "compatible", "ns16550a") && fdt_reg(0, &r))
		touched += r.start;
	if (fdt_property(n, "reg", &p))
		touched +=
			fdt_cells(&p, 0, fdt_path[fdt_depth - 1].address_cells);
	touched += fdt_u32(n, "phandle", 7);
}

/* Was it read to its end? */
static bool read_tree(const char *tree)
{
	why[0] = '\0';
	if (setjmp(given_up))
		return false;
	fdt_open((u64)(unsigned long)tree);
	fdt_walk(visit, 0);
	fdt_remove_reserved();
	return true;
}

static u32 next(u32 *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void put(char *at, u32 v)
{
	for (int i = 0; i < 4; i++)
		at[i] = v >> (24 - 8 * i);
}

#define WORDS 10
static const u32 words[WORDS] = { 0,	      1,	 2,	     3,
				  4,	      9,	 0x7fffffff, 0x80000000,
				  0xfffffff8, 0xffffffff };

/* Where the root says how many words an address and a size have. */
static u32 cells[2];

static void find_cells(const char *tree)
{
	struct fdt_prop p;

	if (fdt_property(&fdt_path[0], "#address-cells", &p))
		cells[0] = p.data - tree;
	if (fdt_property(&fdt_path[0], "#size-cells", &p))
		cells[1] = p.data - tree;
}

/* The first copies have every pair of these numbers, and no other damage. */
static void damage(char *tree, u32 size, u32 seed)
{
	u32 at, n = 1 + next(&seed) % 6;

	if (copy < WORDS * WORDS) {
		put(tree + cells[0], words[copy % WORDS]);
		put(tree + cells[1], words[copy / WORDS]);
		return;
	}
	if (next(&seed) % 4 == 0)
		put(tree + 4, next(&seed) % size); /* it ends too early */
	while (n--) {
		at = next(&seed) % size;
		if (next(&seed) % 8 == 0)
			at %= HEADER;
		if (next(&seed) % 2)
			tree[at] ^= 1 << next(&seed) % 8;
		else if ((at &= ~3u) + 4 <= size)
			put(tree + at, words[next(&seed) % WORDS]);
	}
	/* A size that is larger than the memory is the firmware's lie. */
	if (fdt_get32(tree + 4) > size)
		put(tree + 4, size);
}

/*
 * QEMU leaves room behind the tree, to 1 MiB in all. Damage there would show nothing, so
 * the tree is made to end where its last block does: its nodes or its strings.
 */
static u32 without_room(char *tree, u32 size)
{
	u32 nodes = fdt_get32(tree + 8) + fdt_get32(tree + 36);
	u32 strings = fdt_get32(tree + 12) + fdt_get32(tree + 32);
	u32 end = max(nodes, strings);

	if (end >= size)
		return size;
	put(tree + 4, end);
	return end;
}

static void too_long(int sig)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "copy %lu: no end\n", copy);

	(void)sig;
	_exit(write(2, text, n) < 0 ? 2 : 1);
}

int main(int argc, char **argv)
{
	static char original[TREE_MOST], damaged[TREE_MOST];
	FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
	unsigned long read_through = 0, refused = 0;
	u32 size, room;
	char *tree;

	if (!f)
		return 2;
	size = fread(original, 1, sizeof(original), f);
	if (!read_tree(original)) {
		fprintf(stderr, "the tree itself: %s\n", why);
		return 1;
	}
	size = without_room(original, size);
	if (!read_tree(original)) {
		fprintf(stderr, "the tree without its room: %s\n", why);
		return 1;
	}
	find_cells(original);
	signal(SIGALRM, too_long);
	for (copy = 0; copy < strtoul(argv[2], NULL, 0); copy++) {
		memcpy(damaged, original, size);
		damage(damaged, size, copy);
		/*
		 * A byte read behind the size that the tree states is seen, because
		 * its place on the heap is no larger. Each has a whole header.
		 */
		room = max(fdt_get32(damaged + 4), (u32)HEADER);
		tree = malloc(room);
		memcpy(tree, damaged, room);
		alarm(20);
		if (read_tree(tree))
			read_through++;
		else if (why[0] && !strchr(why, '\n'))
			refused++;
		else
			return 1;
		free(tree);
	}
	printf("%lu read, %lu refused, the last: %s\n", read_through, refused,
	       why);
	return touched == 1;
}
