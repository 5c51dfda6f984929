/* SPDX-License-Identifier: MIT */
/* Finding sites and lock prefixes in the disassembly: see scan.h. */
#include "scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR_CALL_MAX 5 /* instructions */

unsigned int errors;

void complain(const struct image *im, uint64_t addr, const char *what)
{
	warnx("%#llx (%s): %s", (unsigned long long)addr, image_name(im, addr),
	      what);
	errors++;
}

void add_address(struct addresses *a, uint64_t addr)
{
	a->addr = array_grow(a->addr, a->count, sizeof(a->addr[0]));
	a->addr[a->count++] = addr;
}

struct difference compare_addresses(const struct image *im,
				    const struct addresses *found,
				    const struct addresses *named,
				    const char *lacks, const char *strange)
{
	struct difference d = { 0 };
	size_t i = 0, j = 0;

	while (i < found->count || j < named->count) {
		uint64_t a = i < found->count ? found->addr[i] : UINT64_MAX;
		uint64_t b = j < named->count ? named->addr[j] : UINT64_MAX;

		if (a < b && lacks)
			complain(im, a, lacks);
		if (b < a && strange)
			complain(im, b, strange);
		d.lacking += a < b;
		d.strange += b < a;
		i += a <= b;
		j += b <= a;
	}
	return d;
}

const uint8_t *table_bytes(const struct image *im, const char *name, size_t len)
{
	uint64_t addr;
	const uint8_t *p;

	if (!image_value(im, name, &addr))
		errx(1, "%s: no symbol %s", im->path, name);
	p = image_bytes(im, addr, len);
	if (!p)
		errx(1, "%s: %s does not lie in the image", im->path, name);
	return p;
}

struct addresses table_addresses(const struct image *im, const char *count,
				 const char *name)
{
	size_t n = image_number(im, table_bytes(im, count, 4), 4), i;
	const uint8_t *p = table_bytes(im, name, 4 * n);
	struct addresses a = { 0 };

	for (i = 0; i < n; i++)
		add_address(&a, im->text + image_number(im, p + 4 * i, 4));
	return a;
}

/* ---- Calls ------------------------------------------------------------- */

static void add_call(const struct image *im, size_t i, struct addresses *s)
{
	uint64_t addr = im->insns[i].addr;

	if (addr < im->text || addr >= im->etext)
		complain(im, addr, "a site outside kernel text");
	else
		add_address(s, addr);
}

/*
 * The first instruction of the call at i, which is the site: itself, or of a far
 * call what begins its address, with the saving of ra and of a static chain in
 * between. nr_insns: it is not called as a site calls.
 */
static size_t call_start(const struct image *im, const struct arch *arch,
			 const struct format *format, size_t i)
{
	const char *call = format->far ? arch->far_call : arch->call;
	size_t n;

	if (!call || strcmp(im->insns[i].mnemonic, call))
		return im->nr_insns;
	if (!format->far)
		return i;
	for (n = i; n-- > 0 && n + FAR_CALL_MAX > i;)
		if (!strcmp(im->insns[n].mnemonic, arch->far_first))
			return n;
	return im->nr_insns;
}

/* A call that the linker found out of reach of one instruction. */
static bool is_far(const struct arch *arch, const struct insn *in)
{
	return arch->far_call && !strcmp(in->mnemonic, arch->far_call);
}

/*
 * Calls of the stub. Its address is compared, not its name: of several names for
 * one address objdump shows any one.
 */
static void scan_calls(const struct image *im, const struct arch *arch,
		       const struct format *format, uint64_t stub,
		       struct addresses *s)
{
	size_t i, start;

	for (i = 0; i < im->nr_insns; i++) {
		const struct insn *in = &im->insns[i];

		if (in->flow != FLOW_CALL && in->flow != FLOW_JUMP &&
		    in->flow != FLOW_BRANCH)
			continue;
		if (in->target != stub)
			continue;
		start = call_start(im, arch, format, i);
		if (start == im->nr_insns)
			complain(im, in->addr,
				 is_far(arch, in) ?
					 "calls the stub from too far for this "
					 "front end: use the far one" :
					 "reaches the stub by another "
					 "instruction than a site's");
		else
			add_call(im, start, s);
	}
}

/* ---- NOPs at the entry -------------------------------------------------- */

static bool has_bytes(const char *hex, const uint8_t *p, size_t len)
{
	unsigned int byte;
	size_t i;

	for (i = 0; hex[2 * i]; i++)
		if (i == len || sscanf(hex + 2 * i, "%2x", &byte) != 1 ||
		    p[i] != byte)
			return false;
	return true;
}

int format_nops_at(const struct format *format, const uint8_t *p, size_t len)
{
	size_t at = 0;

	if (format->before && has_bytes(format->before, p, len))
		at = strlen(format->before) / 2;
	return has_bytes(format->nops, p + at, len - at) ? (int)at : -1;
}

static void scan_entries(const struct image *im, const struct format *format,
			 struct addresses *s)
{
	size_t i;

	for (i = 0; i < im->nr_symbols; i++) {
		const struct symbol *f = &im->symbols[i];
		const uint8_t *p = image_bytes(im, f->addr, f->size);
		int at = p ? format_nops_at(format, p, f->size) : -1;

		if (at >= 0)
			add_address(s, f->addr + at);
	}
}

void scan_sites(const struct image *im, const struct arch *arch,
		const struct format *format, struct addresses *s)
{
	uint64_t stub = 0;
	size_t i;

	if (im->etext - im->text >= 1ull << OFFSET_BITS)
		errx(1, "%s: text is larger than a site's %d-bit offset",
		     im->path, OFFSET_BITS);
	if (format->stub && !image_value(im, format->stub, &stub))
		errx(1, "%s: no symbol %s", im->path, format->stub);
	if (!format->stub)
		scan_entries(im, format, s);
	else
		scan_calls(im, arch, format, stub, s);
	for (i = 0; i < s->count; i++)
		if (!image_symbol_at(im, s->addr[i]))
			complain(im, s->addr[i], "a site in no function");
	if (!s->count)
		errx(1, "%s: no site found", im->path);
}

/* ---- Lock prefixes ------------------------------------------------------ */

void scan_locks(const struct image *im, struct addresses *a)
{
	const uint8_t *p;
	size_t i;

	for (i = 0; i < im->nr_insns; i++) {
		const struct insn *in = &im->insns[i];

		if (!in->lock || in->addr < im->text || in->addr >= im->etext)
			continue;
		p = image_bytes(im, in->addr, 1);
		if (!p || *p != 0xf0)
			complain(im, in->addr,
				 "the lock prefix is not the first byte");
		else
			add_address(a, in->addr);
	}
}

/* ---- Jump labels -------------------------------------------------------- */

static int compare_labels(const void *a, const void *b)
{
	const struct jump_label *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Do the bytes of one of the port's labels stand there? */
static bool is_label(const struct image *im, const struct arch *arch,
		     uint64_t addr)
{
	for (const char *const *hex = arch->labels; *hex; hex++) {
		size_t len = strlen(*hex) / 2;
		const uint8_t *p = image_bytes(im, addr, len);

		if (p && has_bytes(*hex, p, len))
			return true;
	}
	return false;
}

/* Does GCC's name of the part that it moved away, "f.cold", begin with f's? */
static bool same_function(const struct symbol *a, const struct symbol *b)
{
	size_t n = strlen(a->name);

	return a == b || (!strncmp(a->name, b->name, n) && b->name[n] == '.');
}

static void check_label(const struct image *im, const struct arch *arch,
			const struct jump_label *l)
{
	const struct symbol *f = image_symbol_at(im, l->addr);
	const struct symbol *to = image_symbol_at(im, l->target);
	size_t insn = image_insn(im, l->target);

	if (!f)
		complain(im, l->addr, "a jump label in no function");
	else if (!is_label(im, arch, l->addr))
		complain(im, l->addr,
			 "a jump label that is not compiled as "
			 "machine.json says (labels)");
	else if (!to || !same_function(f, to))
		complain(im, l->addr,
			 "a jump label that leads out of its function");
	else if (insn == im->nr_insns || im->insns[insn].addr != l->target)
		complain(im, l->addr,
			 "a jump label that leads into an instruction");
}

void scan_labels(const struct image *im, const struct arch *arch,
		 struct jump_labels *l)
{
	unsigned int size = im->pointer_size;
	size_t len = 0, i;
	const uint8_t *p = image_section(im, ".jump_labels", &len);

	l->count = p ? len / (3 * size) : 0;
	l->label = calloc(l->count + 1, sizeof(*l->label));
	if (!l->label)
		errx(1, "out of memory");
	for (i = 0; i < l->count; i++, p += 3 * size)
		l->label[i] = (struct jump_label){
			.addr = image_number(im, p, size),
			.target = image_number(im, p + size, size),
			.key = image_number(im, p + 2 * size, size),
		};
	qsort(l->label, l->count, sizeof(*l->label), compare_labels);
	for (i = 0; i < l->count; i++)
		check_label(im, arch, &l->label[i]);
}
