/*
 * mksites: finds every site and every function of the linked kernel, and writes
 * them as the tables that the second link adds; then proves that the second
 * link moved nothing and that the tables say what the disassembly says.
 *
 *   mksites --empty -o tables.S
 *   mksites --arch A --sites F --objdump P image.elf -o tables.S
 *   mksites --arch A --sites F --objdump P --verify first.elf image.elf
 *
 * A site is what the linked text shows, not what a compiler meant: with linker
 * relaxation the two differ. Where the compiler left a record of its own
 * (__patchable_function_entries), it must name the same addresses.
 *
 * Tables, in section .tables, as kernel/symbols.h and the tracer declare them:
 * site_table holds, ascending, one u32 a site: bits 0..23 the offset from _text,
 * bits 24..31 a note. The note of a MIPS site is where its function saved ra,
 * in words above the stack pointer at the site; 0 = not saved there.
 */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *program = "mksites";

#define OFFSET_BITS 24
#define NOTE_MAX 255

struct site {
	uint64_t addr;
	unsigned int note;
};

struct sites {
	struct site *site;
	size_t count;
};

struct format {
	const char *arch, *name;
	/* Sites that call this function at boot; NULL: NOPs at the entry. */
	const char *stub;
	unsigned int length; /* of entry NOPs, in bytes */
	bool note_ra;
};

static const struct format formats[] = {
	{ "x86_64", "fentry", "__fentry__", 0, false },
	{ "riscv", "patchable", NULL, 8, false },
	{ "riscv", "patchable-nc", NULL, 8, false },
	{ "riscv", "mcount", "_mcount", 0, false },
	{ "riscv", "mcount-far", "_mcount", 0, false },
	{ "mips", "mcount", "_mcount", 0, true },
};

#define NR_FORMATS (sizeof(formats) / sizeof(formats[0]))

static unsigned int errors;

/* One line for one thing that is wrong; all of them are said. */
static void complain(const struct image *im, uint64_t addr, const char *what)
{
	fprintf(stderr, "mksites: %#llx (%s): %s\n", (unsigned long long)addr,
		image_name(im, addr), what);
	errors++;
}

static const struct format *find_format(const char *arch, const char *name)
{
	size_t i;

	for (i = 0; i < NR_FORMATS; i++)
		if (!strcmp(formats[i].arch, arch) &&
		    !strcmp(formats[i].name, name))
			return &formats[i];
	fprintf(stderr, "mksites: unknown --sites %s for %s; known:", name,
		arch);
	for (i = 0; i < NR_FORMATS; i++)
		if (!strcmp(formats[i].arch, arch))
			fprintf(stderr, " %s", formats[i].name);
	fputc('\n', stderr);
	exit(1);
}

static void add_site(struct sites *s, uint64_t addr, unsigned int note)
{
	s->site = array_grow(s->site, s->count, sizeof(s->site[0]));
	s->site[s->count++] = (struct site){ addr, note };
}

/* ---- Scan -------------------------------------------------------------- */

/* Decode "sw ra,N(sp)" between the function's start and the site. */
static unsigned int saved_ra(const struct image *im, size_t site)
{
	const struct symbol *f = image_symbol_at(im, im->insns[site].addr);
	size_t i;

	for (i = site; f && i-- > 0 && im->insns[i].addr >= f->addr;) {
		const struct insn *in = &im->insns[i];
		long offset;
		char *end;

		if (strcmp(in->mnemonic, "sw") ||
		    strncmp(in->operands, "ra,", 3))
			continue;
		offset = strtol(in->operands + 3, &end, 10);
		if (strcmp(end, "(sp)"))
			continue;
		if (offset <= 0 || offset % 4 || offset / 4 > NOTE_MAX) {
			complain(im, in->addr,
				 "ra is saved too far from sp for a site's "
				 "note (1020 bytes)");
			return 0;
		}
		return offset / 4;
	}
	return 0;
}

/*
 * Calls of the stub. Its address is compared, not its name: of several names
 * for one address objdump shows any one.
 */
static void scan_calls(const struct image *im, const struct arch *arch,
		       const struct format *format, struct sites *s)
{
	uint64_t stub;
	size_t i;

	if (!image_value(im, format->stub, &stub))
		die("%s: no symbol %s", im->path, format->stub);
	for (i = 0; i < im->nr_insns; i++) {
		const struct insn *in = &im->insns[i];

		if (in->flow != FLOW_CALL && in->flow != FLOW_JUMP &&
		    in->flow != FLOW_BRANCH)
			continue;
		if (in->target != stub)
			continue;
		if (in->addr < im->text || in->addr >= im->etext)
			complain(im, in->addr, "a site outside kernel text");
		else if (!strcmp(format->name, "mcount-far") &&
			 !strcmp(in->mnemonic, "jalr") && i &&
			 !strcmp(im->insns[i - 1].mnemonic, "auipc"))
			add_site(s, im->insns[i - 1].addr, 0);
		else if (strcmp(in->mnemonic, arch->call))
			complain(im, in->addr,
				 "reaches the stub by another instruction "
				 "than a site's");
		else
			add_site(s, in->addr,
				 format->note_ra ? saved_ra(im, i) : 0);
	}
}

static bool begins_with_nops(const struct image *im, uint64_t addr,
			     unsigned int length)
{
	size_t i = image_insn(im, addr);
	uint64_t at = addr;

	for (; i < im->nr_insns && at < addr + length; i++) {
		if (im->insns[i].addr != at ||
		    strcmp(im->insns[i].mnemonic, "nop") ||
		    im->insns[i].operands[0] || i + 1 == im->nr_insns)
			return false;
		at = im->insns[i + 1].addr;
	}
	return at == addr + length;
}

static void scan_entries(const struct image *im, const struct format *format,
			 struct sites *s)
{
	size_t i;

	for (i = 0; i < im->nr_symbols; i++)
		if (begins_with_nops(im, im->symbols[i].addr, format->length))
			add_site(s, im->symbols[i].addr, 0);
}

static int compare_addrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The compiler's own record, if the image kept it: both must name the same. */
static void check_record(const struct image *im, const struct sites *s)
{
	size_t len, i = 0, j = 0, n;
	const uint8_t *p =
		image_section(im, "__patchable_function_entries", &len);
	uint64_t *record;

	if (!p)
		return;
	n = len / im->pointer_size;
	record = calloc(n + 1, sizeof(*record));
	if (!record)
		die("out of memory");
	for (i = 0; i < n; i++)
		record[i] = image_number(im, p + i * im->pointer_size,
					 im->pointer_size);
	qsort(record, n, sizeof(*record), compare_addrs);
	for (i = 0; i < s->count || j < n;) {
		if (j == n || (i < s->count && s->site[i].addr < record[j])) {
			complain(im, s->site[i++].addr,
				 "a site that the compiler did not record");
		} else if (i == s->count || record[j] < s->site[i].addr) {
			complain(im, record[j++],
				 "recorded by the compiler, but no site");
		} else {
			i++;
			j++;
		}
	}
	free(record);
}

static void scan(const struct image *im, const struct arch *arch,
		 const struct format *format, struct sites *s)
{
	size_t i;

	if (im->etext - im->text >= 1ull << OFFSET_BITS)
		die("%s: text is larger than a site's %d-bit offset", im->path,
		    OFFSET_BITS);
	if (im->nr_symbols > UINT16_MAX)
		die("%s: more than %d functions", im->path, UINT16_MAX);
	if (format->stub)
		scan_calls(im, arch, format, s);
	else
		scan_entries(im, format, s);
	check_record(im, s);
	for (i = 0; i < s->count; i++)
		if (!image_symbol_at(im, s->site[i].addr))
			complain(im, s->site[i].addr, "a site in no function");
	if (!s->count)
		die("%s: no site found", im->path);
}

/* ---- Output ------------------------------------------------------------ */

static const struct image *sorted_image;

static int compare_names(const void *a, const void *b)
{
	return strcmp(sorted_image->symbols[*(const uint16_t *)a].name,
		      sorted_image->symbols[*(const uint16_t *)b].name);
}

static void label(FILE *f, const char *name)
{
	fprintf(f, "\n\t.balign 4\n\t.globl %s\n\t.type %s, @object\n%s:\n",
		name, name, name);
}

static void emit_symbols(FILE *f, const struct image *im)
{
	uint16_t *by_name = calloc(im->nr_symbols + 1, sizeof(*by_name));
	size_t i, at = 0;

	if (!by_name)
		die("out of memory");
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
		fprintf(f, "\t.2byte %u\n", by_name[i]);
	label(f, "symbol_names");
	for (i = 0; i < im->nr_symbols; i++)
		fprintf(f, "\t.asciz \"%s\"\n", im->symbols[i].name);
	free(by_name);
}

static uint32_t site_word(const struct image *im, const struct site *s)
{
	return (s->addr - im->text) | (uint32_t)s->note << OFFSET_BITS;
}

/* An empty image and no sites give the tables of the first link. */
static void emit(const char *path, const struct image *im,
		 const struct sites *s)
{
	FILE *f = fopen(path, "w");
	size_t i;

	if (!f)
		die("cannot write %s", path);
	fprintf(f, "/* Made by tools/mksites. */\n\t.section .tables,\"a\"\n");
	label(f, "site_count");
	fprintf(f, "\t.4byte %zu\n", s->count);
	label(f, "site_table");
	for (i = 0; i < s->count; i++)
		fprintf(f, "\t.4byte 0x%08x\t/* %s */\n",
			site_word(im, &s->site[i]),
			image_name(im, s->site[i].addr));
	label(f, "symbol_count");
	fprintf(f, "\t.4byte %zu\n", im->nr_symbols);
	emit_symbols(f, im);
	if (fclose(f))
		die("cannot write %s", path);
}

/* ---- Verification ------------------------------------------------------ */

/*
 * Text must not have moved: the same functions, and the same instructions at
 * the same addresses. Operands may differ, for some refer to the tables.
 */
static void verify_unmoved(const struct image *a, const struct image *b)
{
	size_t i;

	if (a->text != b->text || a->etext != b->etext ||
	    a->nr_symbols != b->nr_symbols)
		die("%s: functions are not as in %s: the second link moved "
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
		    strcmp(a->insns[i].mnemonic, b->insns[i].mnemonic)) {
			complain(a, a->insns[i].addr,
				 "another instruction after the second link");
			return;
		}
}

static void verify_sites_same(const struct image *im, const struct sites *a,
			      const struct sites *b)
{
	size_t i;

	for (i = 0; i < a->count || i < b->count; i++) {
		const struct site *s = i < a->count ? &a->site[i] : &b->site[i];

		if (i < a->count && i < b->count &&
		    s->addr == b->site[i].addr && s->note == b->site[i].note)
			continue;
		complain(im, s->addr,
			 "the second scan differs from the first "
			 "from here on");
		return;
	}
}

static const uint8_t *table(const struct image *im, const char *name,
			    size_t len)
{
	uint64_t addr;
	const uint8_t *p;

	if (!image_value(im, name, &addr))
		die("%s: no symbol %s", im->path, name);
	p = image_bytes(im, addr, len);
	if (!p)
		die("%s: %s does not lie in the image", im->path, name);
	return p;
}

/* Table and disassembly are both ascending, so one walk compares both ways. */
static void verify_table(const struct image *im, const struct sites *s)
{
	size_t n = image_number(im, table(im, "site_count", 4), 4);
	const uint8_t *p = table(im, "site_table", 4 * n);
	size_t i = 0, j = 0;

	while (i < s->count || j < n) {
		uint32_t word = j < n ? image_number(im, p + 4 * j, 4) : 0;
		uint64_t addr = im->text + (word & ((1u << OFFSET_BITS) - 1));

		if (j == n || (i < s->count && s->site[i].addr < addr)) {
			complain(im, s->site[i++].addr,
				 "a site that the table lacks");
			continue;
		}
		if (i == s->count || addr < s->site[i].addr) {
			complain(im, addr, "in the table, but no site");
			j++;
			continue;
		}
		if (word != site_word(im, &s->site[i]))
			complain(im, addr, "the table has another note");
		i++;
		j++;
	}
}

static void verify_symbols(const struct image *im)
{
	size_t n = image_number(im, table(im, "symbol_count", 4), 4), i;
	const uint8_t *p = table(im, "symbol_offset", 4 * n);

	if (n != im->nr_symbols)
		die("%s: symbol_count is %zu, the image has %zu functions",
		    im->path, n, im->nr_symbols);
	for (i = 0; i < n; i++)
		if (im->text + image_number(im, p + 4 * i, 4) !=
		    im->symbols[i].addr)
			complain(im, im->symbols[i].addr,
				 "not as in the symbol table");
}

static void verify(const struct image *first, const struct sites *before,
		   const char *path, const struct arch *arch,
		   const struct format *format, const char *objdump)
{
	struct image im;
	struct sites s = { 0 };

	image_open(&im, path, arch, objdump);
	scan(&im, arch, format, &s);
	verify_unmoved(first, &im);
	verify_sites_same(&im, before, &s);
	verify_table(&im, &s);
	verify_symbols(&im);
}

/* ---- Command line ------------------------------------------------------ */

struct options {
	const char *arch, *sites, *objdump, *output, *image[2];
	unsigned int images;
	bool empty, verify;
};

static void usage(void)
{
	die("usage: mksites --empty -o FILE | --arch NAME --sites FORMAT "
	    "--objdump PROGRAM (IMAGE -o FILE | --verify FIRST IMAGE)");
}

static void parse(struct options *o, char **argv)
{
	while (*++argv) {
		const char **value = !strcmp(*argv, "--arch")	 ? &o->arch :
				     !strcmp(*argv, "--sites")	 ? &o->sites :
				     !strcmp(*argv, "--objdump") ? &o->objdump :
				     !strcmp(*argv, "-o")	 ? &o->output :
								   NULL;

		if (value && argv[1])
			*value = *++argv;
		else if (!strcmp(*argv, "--empty"))
			o->empty = true;
		else if (!strcmp(*argv, "--verify"))
			o->verify = true;
		else if (**argv != '-' && o->images < 2)
			o->image[o->images++] = *argv;
		else
			usage();
	}
	if (o->empty ? !o->output || o->images :
		       !o->arch || !o->sites || !o->objdump ||
			       o->images != 1u + o->verify ||
			       !o->output != o->verify)
		usage();
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct image im = { 0 };
	struct sites s = { 0 };
	const struct arch *arch;
	const struct format *format;

	(void)argc;
	parse(&o, argv);
	if (o.empty) {
		emit(o.output, &im, &s);
		return 0;
	}
	arch = arch_find(o.arch);
	format = find_format(o.arch, o.sites);
	image_open(&im, o.image[0], arch, o.objdump);
	scan(&im, arch, format, &s);
	if (errors)
		return 1;
	if (o.verify)
		verify(&im, &s, o.image[1], arch, format, o.objdump);
	else
		emit(o.output, &im, &s);
	return errors != 0;
}
