/* SPDX-License-Identifier: MIT */
/*
 * mksites: finds every site and every function of the linked kernel, and writes
 * them as the tables that the second link adds, then proves that the second
 * link moved nothing and that the tables agree with the disassembly.
 *
 *   mksites --empty [--record R] -o tables.S
 *   mksites --arch A --sites F --objdump P [--record R] [--objects FILE] image.elf -o tables.S
 *   mksites --arch A --sites F --objdump P [--record R] [--objects FILE] --verify first.elf
 *           image.elf
 *
 * A site is a pattern of the linked text, not a compiler's intention: with linker
 * relaxation the two differ. Where the compiler records the sites itself
 * (__patchable_function_entries, __mcount_loc), its record must name the same addresses, and so
 * must FILE, which mkrecord wrote before the link, unless the linker relaxes.
 * --record says which one makes the table:
 *
 *   link      the scan (default)
 *   compiler  the compiler's record. If this front end has none there is no table
 *   object    FILE. If the linker relaxed it there is no table
 *   runtime   no table: the kernel finds its sites by itself
 *
 * Each function's name stands once in the image, and has two words (lib/names.h), but with
 * --any-names, for an image with code from elsewhere.
 *
 * A record that names the scan's addresses and no others IS the scan's list, so
 * that one is written whoever recorded it.
 *
 * Tables, in section .tables, as kernel/image/symbols.h and the tracer declare them:
 * site_table holds, ascending, one u32 a site: the offset from _text. kept_off_table holds those of
 * functions that run while text is patched: boot turns them off for good (lib/path.h), and
 * path_symbol and path_from say why. jump_table
 * holds the same of the jump labels, jump_distance how far each one jumps, and
 * jump_key_number whose label it is. lock_table
 * holds, ascending, the offsets from _text of x86's lock prefixes. unwind_rows and
 * unwind_rules say where each function keeps its return address (kernel/image/unwind.h).
 */
#include "lib/names.h"
#include "lib/path.h"
#include "lib/record.h"
#include "lib/unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
	const char *arch, *sites, *objdump, *record, *objects, *output,
		*image[2];
	unsigned int images;
	bool empty, verify, any_names;
};

/* All that the tables say of an image. */
struct findings {
	struct addresses all;	/* sites: `sites` and `kept` */
	struct addresses sites; /* which can be switched */
	struct addresses
		kept; /* of functions on the patching path: off for good */
	struct addresses locks;
	struct path path;
	struct jump_labels labels;
	struct unwind_table unwind;
};

static void scan(const struct image *im, const struct arch *arch,
		 const struct format *format, struct findings *f)
{
	scan_sites(im, arch, format, &f->all);
	path_find(im, arch, &f->path);
	path_part(im, &f->path, &f->all, &f->kept, &f->sites);
	scan_locks(im, &f->locks);
	scan_labels(im, arch, &f->labels);
}

static bool is_runtime(const char *record)
{
	return !strcmp(record, "runtime");
}

/* Each record that there is, against the scan, and the one that --record names must be there. */
static void check_records(const struct image *im, const struct arch *arch,
			  const struct format *format, const struct options *o,
			  const struct findings *f)
{
	struct addresses compiler = { 0 }, objects = { 0 };

	if (format->section || !strcmp(o->record, "compiler")) {
		if (!record_compiler(im, format, &compiler))
			errx(1, "%s: no record of the compiler's: %s", im->path,
			     format->section ?
				     format->section :
				     "the compiler records no such sites");
		record_compare(im, &f->all, &compiler);
	}
	if (o->objects && (!arch->relaxes || !strcmp(o->record, "object"))) {
		record_objects(im, o->objects, &objects);
		record_judge(im, arch, &f->all, &objects);
	}
}

/* ---- Output ------------------------------------------------------------ */

static const struct image *sorted_image;

static int compare_names(const void *a, const void *b)
{
	return strcmp(sorted_image->symbols[*(const uint32_t *)a].name,
		      sorted_image->symbols[*(const uint32_t *)b].name);
}

static void label(FILE *f, const char *name)
{
	fprintf(f, "\n\t.balign 4\n\t.globl %s\n\t.type %s, @object\n%s:\n",
		name, name, name);
}

static void emit_symbols(FILE *f, const struct image *im)
{
	uint32_t *by_name = calloc(im->nr_symbols + 1, sizeof(*by_name));
	size_t i, at = 0;

	if (!by_name)
		errx(1, "out of memory");
	label(f, "symbol_offset");
	for (i = 0; i < im->nr_symbols; i++)
		fprintf(f, "\t.4byte 0x%llx\n",
			(unsigned long long)(im->symbols[i].addr - im->text));
	label(f, "symbol_size");
	for (i = 0; i < im->nr_symbols; i++)
		fprintf(f, "\t.4byte %llu\n",
			(unsigned long long)im->symbols[i].size);
	label(f, "symbol_name");
	for (i = 0; i < im->nr_symbols; i++) {
		fprintf(f, "\t.4byte %zu\n", at);
		at += strlen(im->symbols[i].name) + 1;
		by_name[i] = i;
	}
	sorted_image = im;
	qsort(by_name, im->nr_symbols, sizeof(*by_name), compare_names);
	label(f, "symbol_by_name");
	for (i = 0; i < im->nr_symbols; i++)
		fprintf(f, "\t.4byte %u\n", by_name[i]);
	label(f, "symbol_names");
	for (i = 0; i < im->nr_symbols; i++)
		fprintf(f, "\t.asciz \"%s\"\n", im->symbols[i].name);
	free(by_name);
}

/* `count`, then the offsets from _text as `table`. */
static void emit_offsets(FILE *f, const struct image *im, const char *count,
			 const char *table, const struct addresses *a)
{
	size_t i;

	label(f, count);
	fprintf(f, "\t.4byte %zu\n", a->count);
	label(f, table);
	for (i = 0; i < a->count; i++)
		fprintf(f, "\t.4byte 0x%08llx\t/* %s */\n",
			(unsigned long long)(a->addr[i] - im->text),
			image_name(im, a->addr[i]));
}

/* A kernel that finds its sites at run time counts them itself. It keeps its table elsewhere. */
static void emit_sites(FILE *f, const struct image *im,
		       const struct addresses *sites, bool at_run_time)
{
	const struct addresses none = { 0 };

	if (at_run_time)
		fprintf(f, "\t.data\n");
	emit_offsets(f, im, "site_count", "site_table",
		     at_run_time ? &none : sites);
	fprintf(f, "\t.section .tables\n");
	label(f, "sites_all_known");
	fprintf(f, "\t.byte %d\n", !at_run_time);
}

/* The number of a label's key among all keys: struct static_key is two pointers long. */
static unsigned int label_key(const struct image *im,
			      const struct jump_label *l)
{
	unsigned int size = 2 * im->pointer_size;
	uint64_t first;

	if (!image_value(im, "__start_static_keys", &first))
		errx(1, "%s: no symbol __start_static_keys", im->path);
	if (l->key < first || (l->key - first) % size ||
	    (l->key - first) / size > UINT8_MAX)
		complain(im, l->addr,
			 "a jump label of no STATIC_KEY(), or of "
			 "more than 256");
	return (l->key - first) / size;
}

static int label_distance(const struct image *im, const struct jump_label *l)
{
	int64_t distance = l->target - l->addr;

	if (distance != (int16_t)distance)
		complain(im, l->addr,
			 "a jump label that goes farther than 32 "
			 "KiB");
	return distance;
}

static void emit_labels(FILE *f, const struct image *im,
			const struct jump_labels *l)
{
	struct addresses a = { 0 };
	size_t i;

	for (i = 0; i < l->count; i++)
		add_address(&a, l->label[i].addr);
	emit_offsets(f, im, "jump_count", "jump_table", &a);
	label(f, "jump_distance");
	for (i = 0; i < l->count; i++)
		fprintf(f, "\t.2byte %d\n", label_distance(im, &l->label[i]));
	label(f, "jump_key_number");
	for (i = 0; i < l->count; i++)
		fprintf(f, "\t.byte %u\n", label_key(im, &l->label[i]));
	free(a.addr);
}

/* The functions on the patching path by their numbers in the symbol table, the roots first, and
 * of each which one led there: its number in this table, or 0xffff for a root. */
static void emit_path(FILE *f, const struct path *p)
{
	label(f, "path_count");
	fprintf(f, "\t.4byte %zu\n", p->count);
	label(f, "path_symbol");
	for (size_t i = 0; i < p->count; i++)
		fprintf(f, "\t.4byte %zu\n", p->symbol[i]);
	label(f, "path_from");
	for (size_t i = 0; i < p->count; i++)
		fprintf(f, "\t.2byte %zu\n",
			p->from[i] == PATH_ROOT ? 0xffff : p->from[i]);
}

/*
 * Where a task may be preempted in the trampolines: each instruction, as an
 * offset from trace_entry, but for those in delay slots and what pads.
 */
static void emit_trampoline(FILE *f, const struct image *im,
			    const struct arch *arch)
{
	uint64_t begin, end, addr;
	const struct symbol *s;
	size_t i;

	label(f, "trampoline_insns");
	if (im->nr_insns && (!image_value(im, "trace_entry", &begin) ||
			     !image_value(im, "trampoline_end", &end)))
		errx(1, "%s: no trampoline", im->path);
	for (i = 0; i < im->nr_insns; i++) {
		addr = im->insns[i].addr;
		s = image_symbol_at(im, addr);
		if (addr < begin || addr >= end || !s ||
		    addr >= s->addr + s->size ||
		    (arch->delay_slots && i &&
		     im->insns[i - 1].flow != FLOW_NEXT))
			continue;
		fprintf(f, "\t.2byte %u\n", (unsigned int)(addr - begin));
	}
	fprintf(f, "\t.2byte 0xffff\n");
}

/* An empty image and no findings give the tables of the first link. */
static void emit(const char *path, const struct image *im, const char *record,
		 const struct findings *found, const struct arch *arch)
{
	FILE *f = fopen(path, "w");

	if (!f)
		errx(1, "cannot write %s", path);
	fprintf(f, "/* Made by tools/mksites. */\n\t.section .tables,\"a\"\n");
	emit_sites(f, im, &found->sites, is_runtime(record));
	emit_offsets(f, im, "kept_off_count", "kept_off_table", &found->kept);
	emit_labels(f, im, &found->labels);
	emit_offsets(f, im, "lock_count", "lock_table", &found->locks);
	label(f, "symbol_count");
	fprintf(f, "\t.4byte %zu\n", im->nr_symbols);
	emit_symbols(f, im);
	emit_path(f, &found->path);
	unwind_emit(f, im, &found->unwind);
	emit_trampoline(f, im, arch);
	if (fclose(f))
		errx(1, "cannot write %s", path);
}

/* ---- Verification ------------------------------------------------------ */

/* objdump calls RISC-V's `addi a, b, 0` mv: an operand in a mnemonic. */
static bool same_mnemonic(const char *a, const char *b)
{
	return !strcmp(a, b) || (!strcmp(a, "mv") && !strcmp(b, "add")) ||
	       (!strcmp(a, "add") && !strcmp(b, "mv"));
}

/*
 * Text must not have moved: the same functions, and the same instructions at
 * the same addresses. Operands may differ, for some refer to the tables.
 */
static void verify_unmoved(const struct image *a, const struct image *b)
{
	size_t i;

	if (a->text != b->text || a->etext != b->etext ||
	    a->nr_symbols != b->nr_symbols)
		errx(1,
		     "%s: functions are not as in %s: the second link moved "
		     "them",
		     b->path, a->path);
	for (i = 0; i < a->nr_symbols; i++)
		if (a->symbols[i].addr != b->symbols[i].addr ||
		    strcmp(a->symbols[i].name, b->symbols[i].name)) {
			complain(a, a->symbols[i].addr,
				 "moved in the second link");
			return;
		}
	for (i = 0; i < a->nr_insns; i++)
		if (i >= b->nr_insns || a->insns[i].addr != b->insns[i].addr ||
		    !same_mnemonic(a->insns[i].mnemonic,
				   b->insns[i].mnemonic)) {
			complain(a, a->insns[i].addr,
				 "another instruction after the second link");
			return;
		}
}

static void verify_offsets(const struct image *im,
			   const struct addresses *found, const char *count,
			   const char *name)
{
	struct addresses named = table_addresses(im, count, name);
	char lacks[64], strange[64];

	snprintf(lacks, sizeof(lacks), "%s lacks it", name);
	snprintf(strange, sizeof(strange), "%s must not have it", name);
	compare_addresses(im, found, &named, lacks, strange);
	free(named.addr);
}

static void verify_labels(const struct image *im, const struct jump_labels *l)
{
	struct addresses a = { 0 };
	const uint8_t *distance =
		table_bytes(im, "jump_distance", 2 * l->count);
	const uint8_t *key = table_bytes(im, "jump_key_number", l->count);

	for (size_t i = 0; i < l->count; i++) {
		const struct jump_label *at = &l->label[i];

		add_address(&a, at->addr);
		if ((int16_t)image_number(im, distance + 2 * i, 2) !=
			    label_distance(im, at) ||
		    key[i] != label_key(im, at))
			complain(im, at->addr, "not as the tables say");
	}
	verify_offsets(im, &a, "jump_count", "jump_table");
	free(a.addr);
}

/* The second image's own frame information must give the table that it has. */
static void verify_unwind(const struct image *im, const struct unwind_table *t)
{
	size_t n = image_number(im, table_bytes(im, "unwind_count", 4), 4), i;
	const uint8_t *p = table_bytes(im, "unwind_rows", 4 * n);

	if (n != t->count)
		errx(1, "%s: unwind_count is %zu, the image has %zu rows",
		     im->path, n, t->count);
	for (i = 0; i < n; i++)
		if (image_number(im, p + 4 * i, 4) !=
		    ((t->row[i].addr - im->text) << 8 | t->row[i].rule))
			complain(im, t->row[i].addr,
				 "not as in the unwind table");
}

static void verify(const struct image *first, const struct findings *before,
		   const struct options *o, const struct arch *arch,
		   const struct format *format)
{
	struct findings found = { 0 };
	struct addresses functions = { 0 }, none = { 0 };
	struct image im;

	image_open(&im, o->image[1], arch, o->objdump);
	for (size_t i = 0; i < im.nr_symbols; i++)
		add_address(&functions, im.symbols[i].addr);
	scan(&im, arch, format, &found);
	verify_unmoved(first, &im);
	compare_addresses(&im, &before->all, &found.all,
			  "a site of the first link alone",
			  "a site of the second link alone");
	verify_offsets(&im, is_runtime(o->record) ? &none : &found.sites,
		       "site_count", "site_table");
	verify_offsets(&im, &found.kept, "kept_off_count", "kept_off_table");
	verify_labels(&im, &found.labels);
	verify_offsets(&im, &found.locks, "lock_count", "lock_table");
	verify_offsets(&im, &functions, "symbol_count", "symbol_offset");
	unwind_read(&im, arch, &found.all, &found.unwind);
	verify_unwind(&im, &found.unwind);
}

/* ---- Command line ------------------------------------------------------ */

static void usage(void)
{
	errx(1, "usage: mksites --empty [--record R] -o FILE | --arch NAME "
		"--sites FORMAT --objdump PROGRAM [--record "
		"link|compiler|object|runtime] "
		"[--objects FILE] [--any-names] "
		"(IMAGE -o FILE | --verify FIRST IMAGE)");
}

static void parse(struct options *o, char **argv)
{
	while (*++argv) {
		const char **value = !strcmp(*argv, "--arch")	 ? &o->arch :
				     !strcmp(*argv, "--sites")	 ? &o->sites :
				     !strcmp(*argv, "--objdump") ? &o->objdump :
				     !strcmp(*argv, "--record")	 ? &o->record :
				     !strcmp(*argv, "--objects") ? &o->objects :
				     !strcmp(*argv, "-o")	 ? &o->output :
								   NULL;

		if (value && argv[1])
			*value = *++argv;
		else if (!strcmp(*argv, "--empty"))
			o->empty = true;
		else if (!strcmp(*argv, "--verify"))
			o->verify = true;
		else if (!strcmp(*argv, "--any-names"))
			o->any_names = true;
		else if (**argv != '-' && o->images < 2)
			o->image[o->images++] = *argv;
		else
			usage();
	}
	if (!strcmp(o->record, "object") && !o->empty && !o->objects)
		usage();
	if (o->empty ? !o->output || o->images :
		       !o->arch || !o->sites || !o->objdump ||
			       o->images != 1u + o->verify ||
			       !o->output != o->verify)
		usage();
}

int main(int argc, char **argv)
{
	struct options o = { .record = "link" };
	struct image im = { 0 };
	struct findings found = { 0 };
	const struct arch *arch;
	const struct format *format;

	(void)argc;
	parse(&o, argv);
	if (o.empty) {
		emit(o.output, &im, o.record, &found, NULL);
		return 0;
	}
	arch = arch_find(o.arch);
	format = format_find(arch, o.sites);
	image_open(&im, o.image[0], arch, o.objdump);
	scan(&im, arch, format, &found);
	check_records(&im, arch, format, &o, &found);
	unwind_read(&im, arch, &found.all, &found.unwind);
	if (!o.any_names)
		names_check(&im);
	if (errors)
		return 1;
	if (o.verify)
		verify(&im, &found, &o, arch, format);
	else
		emit(o.output, &im, o.record, &found, arch);
	return errors != 0;
}
