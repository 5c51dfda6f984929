/* SPDX-License-Identifier: MIT */
/* Reading a linked image: see image.h. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *array_grow(void *array, size_t count, size_t size)
{
	/* At powers of two only, so that a loop of n costs O(n). */
	if (count & (count - 1))
		return array;
	array = realloc(array, (count ? 2 * count : 1) * size);
	if (!array)
		errx(1, "out of memory");
	return array;
}

/* ---- ELF --------------------------------------------------------------- */

void elf_header(const char *path, Elf_Scn *scn, GElf_Shdr *sh)
{
	if (!gelf_getshdr(scn, sh))
		errx(1, "%s: section %zu: its header cannot be read", path,
		     elf_ndxscn(scn));
}

const char *elf_text(const char *path, Elf *elf, size_t section, size_t at)
{
	const char *text = elf_strptr(elf, section, at);

	if (!text)
		errx(1, "%s: section %zu: it has no string at %#zx", path,
		     section, at);
	return text;
}

static void elf_open(struct image *im)
{
	int fd = open(im->path, O_RDONLY);
	GElf_Ehdr eh;

	if (fd < 0)
		errx(1, "%s: %s", im->path, strerror(errno));
	elf_version(EV_CURRENT);
	im->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!im->elf || !gelf_getehdr(im->elf, &eh))
		errx(1, "%s: not an ELF file", im->path);
	im->pointer_size = eh.e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4;
	im->big_endian = eh.e_ident[EI_DATA] == ELFDATA2MSB;
}

/* As objdump prints them: 32-bit addresses without sign extension. */
static uint64_t elf_addr(const struct image *im, uint64_t addr)
{
	return im->pointer_size == 4 ? (uint32_t)addr : addr;
}

static Elf_Scn *find_section(const struct image *im, const char *name,
			     Elf64_Word type, GElf_Shdr *sh)
{
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(im->elf, &strings))
		errx(1, "%s: no section names", im->path);
	while ((scn = elf_nextscn(im->elf, scn))) {
		elf_header(im->path, scn, sh);
		if (name ? !strcmp(elf_text(im->path, im->elf, strings,
					    sh->sh_name),
				   name) :
			   sh->sh_type == type)
			return scn;
	}
	return NULL;
}

const uint8_t *image_section(const struct image *im, const char *name,
			     size_t *len)
{
	GElf_Shdr sh;
	Elf_Scn *scn = find_section(im, name, 0, &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

	if (!data || !data->d_buf)
		return NULL;
	*len = data->d_size;
	return data->d_buf;
}

const uint8_t *image_bytes(const struct image *im, uint64_t addr, size_t len)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr sh;
	uint64_t start;

	while ((scn = elf_nextscn(im->elf, scn))) {
		elf_header(im->path, scn, &sh);
		start = elf_addr(im, sh.sh_addr);
		if (!(sh.sh_flags & SHF_ALLOC) || sh.sh_type == SHT_NOBITS ||
		    addr < start || len > sh.sh_size ||
		    addr - start > sh.sh_size - len)
			continue;
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf || data->d_size < len ||
		    addr - start > data->d_size - len)
			return NULL;
		return (uint8_t *)data->d_buf + (addr - start);
	}
	return NULL;
}

uint64_t image_number(const struct image *im, const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * (im->big_endian ? n - 1 - i : i);
	return v;
}

/* ---- Symbols ----------------------------------------------------------- */

/* Call fn for each symbol of the table until it returns true. */
static bool for_each_symbol(const struct image *im,
			    bool (*fn)(const char *name, const GElf_Sym *sym,
				       void *arg),
			    void *arg)
{
	GElf_Shdr sh;
	Elf_Scn *scn = find_section(im, NULL, SHT_SYMTAB, &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	GElf_Sym sym;
	int i;

	if (!data)
		errx(1, "%s: no symbol table", im->path);
	for (i = 1; gelf_getsym(data, i, &sym); i++) {
		sym.st_value = elf_addr(im, sym.st_value);
		if (fn(elf_text(im->path, im->elf, sh.sh_link, sym.st_name),
		       &sym, arg))
			return true;
	}
	return false;
}

struct wanted {
	const char *name;
	const char *file; /* that has the local symbol. NULL: any symbol */
	bool here;	  /* the symbols seen now are that file's */
	uint64_t value, size;
};

static bool is_wanted(const char *name, const GElf_Sym *sym, void *arg)
{
	struct wanted *w = arg;

	const char *base = strrchr(name, '/');

	/* Some ports' assemblers write a file's path, the others only its name. */
	if (w->file && GELF_ST_TYPE(sym->st_info) == STT_FILE)
		w->here = !strcmp(name, w->file) ||
			  (base && !strcmp(base + 1, w->file));
	w->value = sym->st_value;
	w->size = sym->st_size;
	return sym->st_shndx != SHN_UNDEF && !strcmp(name, w->name) &&
	       (!w->file || w->here);
}

bool image_value(const struct image *im, const char *name, uint64_t *value)
{
	return image_value_in(im, NULL, name, value);
}

bool image_value_in(const struct image *im, const char *file, const char *name,
		    uint64_t *value)
{
	struct wanted w = { .name = name, .file = file };

	if (!for_each_symbol(im, is_wanted, &w))
		return false;
	*value = w.value;
	return true;
}

uint64_t image_size(const struct image *im, const char *name)
{
	struct wanted w = { .name = name };

	return for_each_symbol(im, is_wanted, &w) ? w.size : 0;
}

uint64_t image_entries(const struct image *im, const char *start,
		       const char *stop, uint64_t size, uint64_t *first)
{
	uint64_t end;
	size_t file;

	if (!image_value(im, start, first) || !image_value(im, stop, &end))
		errx(1, "%s: it has no '%s' or no '%s'; is it nopl's kernel?",
		     im->path, start, stop);
	elf_rawfile(im->elf, &file);
	if (end < *first || end - *first > file || !size ||
	    (end - *first) % size)
		errx(1, "%s: %s to %s is no table of %llu bytes an entry",
		     im->path, start, stop, (unsigned long long)size);
	return (end - *first) / size;
}

/* The image, and the source whose local symbols are seen now. */
struct reader {
	struct image *im;
	const char *file;
};

static bool add_function(const char *name, const GElf_Sym *sym, void *arg)
{
	struct reader *r = arg;
	struct image *im = r->im;

	if (GELF_ST_TYPE(sym->st_info) == STT_FILE)
		r->file = name;
	if (GELF_ST_TYPE(sym->st_info) != STT_FUNC ||
	    sym->st_value < im->text || sym->st_value >= im->etext)
		return false;
	if (sym->st_size > im->etext - sym->st_value)
		errx(1, "%s: function %s of %llu bytes goes beyond _etext",
		     im->path, name, (unsigned long long)sym->st_size);
	if (strpbrk(name, "\"\\\n") || strstr(name, "*/"))
		errx(1, "%s: the name of the function at %#llx is no symbol's",
		     im->path, (unsigned long long)sym->st_value);
	im->symbols =
		array_grow(im->symbols, im->nr_symbols, sizeof(im->symbols[0]));
	im->symbols[im->nr_symbols++] = (struct symbol){
		.addr = sym->st_value,
		.size = sym->st_size,
		.name = name,
		.file = GELF_ST_BIND(sym->st_info) == STB_LOCAL ?
				r->file :
				"a file that exports it",
		.global = GELF_ST_BIND(sym->st_info) != STB_LOCAL,
	};
	return false;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->global != y->global)
		return x->global ? -1 : 1;
	/* trace_stub before __fentry__ and _mcount: plain names first. */
	if ((x->name[0] == '_') != (y->name[0] == '_'))
		return x->name[0] == '_' ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void read_symbols(struct image *im)
{
	struct reader r = { im, "" };
	size_t i, n = 0;

	if (!image_value(im, "_text", &im->text) ||
	    !image_value(im, "_etext", &im->etext))
		errx(1, "%s: no _text or _etext", im->path);
	for_each_symbol(im, add_function, &r);
	if (!im->nr_symbols)
		errx(1, "%s: no function between _text and _etext", im->path);
	qsort(im->symbols, im->nr_symbols, sizeof(im->symbols[0]),
	      compare_symbols);
	for (i = 0; i < im->nr_symbols; i++) {
		struct symbol *s = &im->symbols[i];

		if (n && im->symbols[n - 1].addr == s->addr) {
			if (!im->symbols[n - 1].size)
				im->symbols[n - 1].size = s->size;
			continue;
		}
		im->symbols[n++] = *s;
	}
	im->nr_symbols = n;
	for (i = 0; i < n; i++) {
		struct symbol *s = &im->symbols[i];
		uint64_t next = i + 1 < n ? s[1].addr : im->etext;

		if (!s->size || s->size > next - s->addr)
			s->size = next - s->addr;
	}
}

const struct symbol *image_symbol_at(const struct image *im, uint64_t addr)
{
	size_t lo = 0, hi = im->nr_symbols;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct symbol *s = &im->symbols[mid];

		if (addr < s->addr)
			hi = mid;
		else if (addr >= s->addr + s->size)
			lo = mid + 1;
		else
			return s;
	}
	return NULL;
}

const char *image_name(const struct image *im, uint64_t addr)
{
	const struct symbol *s = image_symbol_at(im, addr);

	return s ? s->name : "no function";
}

void image_open_data(struct image *im, const char *path)
{
	memset(im, 0, sizeof(*im));
	im->path = path;
	elf_open(im);
	read_symbols(im);
}

void image_open(struct image *im, const char *path, const struct arch *arch,
		const char *objdump)
{
	image_open_data(im, path);
	image_read_insns(im, arch, objdump);
	if (arch->delay_slots)
		image_resolve_far(im);
}
