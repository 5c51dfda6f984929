/* SPDX-License-Identifier: MIT */
/* Reading a flattened device tree: fdt.h. */
#include <arch/arch.h>
#include <boot/boot.h>
#include <boot/fdt.h>
#include <kernel/lib/string.h>

#define FDT_MAGIC 0xd00dfeedu
#define FDT_VERSION 16 /* compatible since, the oldest with this layout */
enum { FDT_BEGIN_NODE = 1, FDT_END_NODE, FDT_PROP, FDT_NOP, FDT_END = 9 };

/* Byte offsets from the tree's start. */
static const char *dt;
static u32 dt_size, dt_struct, dt_strings;

struct fdt_node fdt_path[FDT_DEPTH];
unsigned int fdt_depth;

static u32 fdt_get32(const char *p)
{
	const u8 *b = (const u8 *)p;

	return (u32)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

static u32 dt_word(u32 at)
{
	if (at > dt_size - 4)
		boot_fail("device tree: structure ends outside its %u bytes",
			  dt_size);
	return fdt_get32(dt + at);
}

/* A string within the tree. */
static const char *dt_string(u32 at)
{
	if (at >= dt_size || strnlen(dt + at, dt_size - at) == dt_size - at)
		boot_fail("device tree: string at %#x not terminated", at);
	return dt + at;
}

/* Offset of the token after the one at `at`. */
static u32 dt_skip(u32 at)
{
	u32 token = dt_word(at), len;

	at += 4;
	if (token == FDT_BEGIN_NODE)
		at += strlen(dt_string(at)) + 1;
	else if (token == FDT_PROP) {
		len = dt_word(at);
		if ((u64)at + 8 + len > dt_size)
			boot_fail("device tree: property of %u bytes at %#x",
				  len, at);
		at += 8 + len;
	}
	return ALIGN_UP(at, 4u);
}

bool fdt_property(const struct fdt_node *n, const char *name,
		  struct fdt_prop *p)
{
	u32 at, token;

	for (at = n->at;; at = dt_skip(at)) {
		token = dt_word(at);
		if (token == FDT_NOP)
			continue;
		if (token != FDT_PROP)
			return false;
		if (strcmp(dt_string(dt_strings + dt_word(at + 8)), name))
			continue;
		p->len = dt_word(at + 4);
		p->data = dt + at + 12;
		dt_skip(at); /* checks the length */
		return true;
	}
}

u64 fdt_cells(const struct fdt_prop *p, u32 i, u32 cells)
{
	u64 v = 0;

	if (((u64)i + cells) * 4 > p->len)
		boot_fail("device tree: node %s: property too short",
			  fdt_path[fdt_depth].name);
	while (cells--)
		v = v << 32 | fdt_get32(p->data + 4 * i++);
	return v;
}

u32 fdt_u32(const struct fdt_node *n, const char *name, u32 otherwise)
{
	struct fdt_prop p;

	return fdt_property(n, name, &p) ? (u32)fdt_cells(&p, 0, 1) : otherwise;
}

bool fdt_has(const struct fdt_node *n, const char *name, const char *s)
{
	struct fdt_prop p;
	u32 i;

	if (!fdt_property(n, name, &p))
		return false;
	for (i = 0; i < p.len; i += strnlen(p.data + i, p.len - i) + 1)
		if (p.len - i > strlen(s) && strcmp(p.data + i, s) == 0)
			return true;
	return false;
}

bool fdt_reg(u32 i, struct boot_range *r)
{
	const struct fdt_node *parent = &fdt_path[fdt_depth - 1];
	u32 a = parent->address_cells, s = parent->size_cells;
	struct fdt_prop p;

	/* With no words at all there would be endlessly many. */
	if (a > 2 || s > 2 || !(a + s) ||
	    !fdt_property(&fdt_path[fdt_depth], "reg", &p) ||
	    (u64)(i + 1) * (a + s) * 4 > p.len)
		return false;
	r->start = fdt_cells(&p, i * (a + s), a);
	r->end = r->start + fdt_cells(&p, i * (a + s) + a, s);
	return r->end >= r->start;
}

void fdt_add_memory(void)
{
	struct boot_range r;
	u32 i;

	for (i = 0; fdt_reg(i, &r); i++) {
		boot_info.ram_bytes += r.end - r.start;
		boot_add_memory(r.start, r.end);
	}
}

/* An address in /chosen: one or two cells. */
static u64 chosen_address(const struct fdt_node *n, const char *name)
{
	struct fdt_prop p;

	if (!fdt_property(n, name, &p))
		return 0;
	return fdt_cells(&p, 0, p.len >= 8 ? 2 : 1);
}

void fdt_read_chosen(void)
{
	const struct fdt_node *n = &fdt_path[fdt_depth];
	struct fdt_prop p;

	boot_info.initrd.start = chosen_address(n, "linux,initrd-start");
	boot_info.initrd.end = chosen_address(n, "linux,initrd-end");
	if (boot_info.initrd.end < boot_info.initrd.start)
		boot_fail("device tree: initrd ends before it begins");
	if (fdt_property(n, "bootargs", &p))
		boot_set_cmdline(p.data, p.len);
}

bool fdt_under(unsigned int d, const char *name)
{
	return fdt_depth == d && strcmp(fdt_path[d - 1].name, name) == 0;
}

void fdt_walk(void (*visit)(u32 boot_hart), u32 boot_hart)
{
	u32 at, token;
	int d = -1;

	for (at = dt_struct; (token = dt_word(at)) != FDT_END;
	     at = dt_skip(at)) {
		if (token == FDT_BEGIN_NODE) {
			if (++d >= FDT_DEPTH)
				boot_fail("device tree: deeper than %u nodes",
					  FDT_DEPTH);
			fdt_depth = d;
			fdt_path[d] =
				(struct fdt_node){ dt_string(at + 4),
						   dt_skip(at), 2, 1, -1 };
			fdt_path[d].address_cells =
				fdt_u32(&fdt_path[d], "#address-cells", 2);
			fdt_path[d].size_cells =
				fdt_u32(&fdt_path[d], "#size-cells", 1);
			if (d > 0)
				visit(boot_hart);
		} else if (token == FDT_END_NODE && d >= 0) {
			d--;
		} else if (token != FDT_PROP && token != FDT_NOP) {
			boot_fail("device tree: token %#x at %#x", token, at);
		}
	}
}

void fdt_open(u64 pa)
{
	dt = arch_phys_to_virt(pa);
	if (!pa || pa % 8 || fdt_get32(dt) != FDT_MAGIC)
		boot_fail("no device tree at %#llx", (unsigned long long)pa);
	dt_size = fdt_get32(dt + 4);
	dt_struct = fdt_get32(dt + 8);
	dt_strings = fdt_get32(dt + 12);
	if (fdt_get32(dt + 24) > FDT_VERSION + 1 || dt_size < 40)
		boot_fail("device tree: version %u, %u bytes; known: up to %u",
			  fdt_get32(dt + 24), dt_size, FDT_VERSION + 1);
}

void fdt_remove_reserved(void)
{
	u64 tree = arch_virt_to_phys(dt);
	u32 at = fdt_get32(dt + 16);

	boot_remove_memory(tree, tree + dt_size);
	for (;; at += 16) {
		u64 start = (u64)dt_word(at) << 32 | dt_word(at + 4);
		u64 size = (u64)dt_word(at + 8) << 32 | dt_word(at + 12);

		if (!size)
			return;
		boot_remove_memory(start, start + size);
	}
}
