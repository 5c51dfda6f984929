/* SPDX-License-Identifier: MIT */
/*
 * mkrecord: records sites the old way, as Linux's recordmcount did: in each
 * object file, before the link, by a base symbol of the section and the site's
 * offset from it, which is constant as long as the linker moves sections whole.
 * A linker that relaxes does not, and mksites compares.
 *
 *   mkrecord --arch A --sites F -o FILE object.o ...
 *
 * FILE has a line for each site: the base symbol's source file, or "-" if it is
 * global, the base symbol, the offset in bytes.
 */
#include "lib/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct object {
	const char *path;
	Elf *elf;
	Elf_Data *symbols;
	size_t strings; /* section of the symbols' names */
	const struct arch *arch;
	const struct format *format;
	FILE *out;
};

/* One section of code. */
struct code {
	size_t index;
	const char *file, *base; /* base symbol, file NULL if it is global */
	uint64_t base_value;
	unsigned int score; /* how good a base it is */
};

static const char *symbol_name(const struct object *o, const GElf_Sym *sym)
{
	return elf_text(o->path, o->elf, o->strings, sym->st_name);
}

/*
 * Any function of the section will do. A global one has its name for itself. A
 * weak one may lose it to another object's.
 */
static void find_base(const struct object *o, struct code *c)
{
	const char *file = NULL;
	GElf_Sym sym;
	int i;

	for (i = 1; gelf_getsym(o->symbols, i, &sym); i++) {
		unsigned int bind = GELF_ST_BIND(sym.st_info);
		unsigned int score = bind == STB_GLOBAL ? 2 : 1;

		if (GELF_ST_TYPE(sym.st_info) == STT_FILE)
			file = symbol_name(o, &sym);
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
		    sym.st_shndx != c->index || bind == STB_WEAK ||
		    score <= c->score)
			continue;
		c->score = score;
		c->file = bind == STB_GLOBAL ? NULL : file;
		c->base = symbol_name(o, &sym);
		c->base_value = sym.st_value;
	}
}

static void put_record(const struct object *o, const struct code *c,
		       uint64_t offset)
{
	if (!c->base)
		errx(1, "%s: a site in a section that has no base symbol",
		     o->path);
	fprintf(o->out, "%s %s %lld\n", c->file ? c->file : "-", c->base,
		(long long)(offset - c->base_value));
}

/* Functions that begin with the front end's NOPs. */
static void record_entries(const struct object *o, const struct code *c,
			   Elf_Scn *scn)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;
	int i, at;

	for (i = 1; data && data->d_buf && gelf_getsym(o->symbols, i, &sym);
	     i++) {
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
		    sym.st_shndx != c->index || sym.st_value >= data->d_size)
			continue;
		at = format_nops_at(o->format,
				    (uint8_t *)data->d_buf + sym.st_value,
				    data->d_size - sym.st_value);
		if (at >= 0)
			put_record(o, c, sym.st_value + at);
	}
}

static void record_relocation(const struct object *o, const struct code *c,
			      const GElf_Rela *r)
{
	int type = GELF_R_TYPE(r->r_info);
	GElf_Sym sym;

	if (type != o->format->second_relocation &&
	    gelf_getsym(o->symbols, GELF_R_SYM(r->r_info), &sym) &&
	    !strcmp(symbol_name(o, &sym), o->format->stub))
		put_record(o, c, r->r_offset - o->arch->call_field);
}

/* Relocations of the section that refer to the stub. */
static void record_calls(const struct object *o, const struct code *c)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Rela rela;
	GElf_Rel rel;
	Elf_Data *data;
	int i;

	while ((scn = elf_nextscn(o->elf, scn))) {
		elf_header(o->path, scn, &sh);
		if (sh.sh_info != c->index ||
		    (sh.sh_type != SHT_RELA && sh.sh_type != SHT_REL))
			continue;
		data = elf_getdata(scn, NULL);
		for (i = 0; data && sh.sh_type == SHT_RELA &&
			    gelf_getrela(data, i, &rela);
		     i++)
			record_relocation(o, c, &rela);
		for (i = 0; data && sh.sh_type == SHT_REL &&
			    gelf_getrel(data, i, &rel);
		     i++) {
			rela.r_offset = rel.r_offset;
			rela.r_info = rel.r_info;
			record_relocation(o, c, &rela);
		}
	}
}

static void record_code(const struct object *o)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(o->elf, scn))) {
		struct code c = { .index = elf_ndxscn(scn) };

		elf_header(o->path, scn, &sh);
		if (sh.sh_type != SHT_PROGBITS ||
		    !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		find_base(o, &c);
		if (o->format->stub)
			record_calls(o, &c);
		else
			record_entries(o, &c, scn);
	}
}

static void record_object(struct object *o)
{
	int fd = open(o->path, O_RDONLY);
	Elf_Scn *scn = NULL;
	GElf_Ehdr eh;
	GElf_Shdr sh;

	if (fd < 0)
		errx(1, "%s: %s", o->path, strerror(errno));
	o->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!o->elf || !gelf_getehdr(o->elf, &eh) || eh.e_type != ET_REL)
		errx(1, "%s: not an object file", o->path);
	o->symbols = NULL;
	while ((scn = elf_nextscn(o->elf, scn))) {
		elf_header(o->path, scn, &sh);
		if (sh.sh_type == SHT_SYMTAB) {
			o->symbols = elf_getdata(scn, NULL);
			o->strings = sh.sh_link;
		}
	}
	if (o->symbols)
		record_code(o);
	elf_end(o->elf);
	close(fd);
}

int main(int argc, char **argv)
{
	struct object o = { 0 };
	int i;

	if (argc < 8 || strcmp(argv[1], "--arch") ||
	    strcmp(argv[3], "--sites") || strcmp(argv[5], "-o"))
		errx(1, "usage: mkrecord --arch NAME --sites FORMAT -o FILE "
			"OBJECT...");
	o.arch = arch_find(argv[2]);
	o.format = format_find(o.arch, argv[4]);
	o.out = fopen(argv[6], "w");
	if (!o.out)
		errx(1, "%s: %s", argv[6], strerror(errno));
	elf_version(EV_CURRENT);
	for (i = 7; i < argc; i++) {
		o.path = argv[i];
		record_object(&o);
	}
	if (fclose(o.out))
		errx(1, "cannot write %s", argv[6]);
	return 0;
}
