/* Reading a linked image: see image.h. */
#define _GNU_SOURCE /* asprintf, getline */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const struct arch arches[] = {
	{
		.name = "x86_64",
		.call = "call",
		.jumps = LIST("jmp"),
		.calls = LIST("call"),
		.indirect = LIST("jmp", "call"),
		.stops = LIST("ret", "lret", "iretq", "iret", "ud2", "hlt"),
		.sp = 7,
		.link = -1,
		.alt = -1,
	},
	{
		.name = "riscv",
		.call = "jal",
		.far_call = "jalr",
		.far_first = "auipc",
		.jumps = LIST("j", "jr"),
		.calls = LIST("jal", "jalr"),
		.indirect = LIST("jr", "jalr"),
		.stops = LIST("ret", "sret", "mret", "ebreak", "unimp"),
		.return_operand = "ra",
		.relaxes = true,
		.sp = 2,
		.link = 1,
		.alt = 5,
	},
	{
		.name = "mips",
		.call = "jal",
		.far_call = "jalr",
		.far_first = "lui",
		.jumps = LIST("j", "b", "bc"),
		.calls = LIST("jal", "bal", "jalx", "balc"),
		.indirect = LIST("jr", "jalr", "jr.hb", "jalr.hb"),
		.stops = LIST("eret", "deret", "break", "sdbbp"),
		.return_operand = "ra",
		.delay_slots = true,
		.sp = 29,
		.link = 31,
		.alt = 1,
		.cfi_machine = EM_PPC, /* its $31 is preserved, too */
	},
};

void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void *array_grow(void *array, size_t count, size_t size)
{
	/* At powers of two only, so that a loop of n costs O(n). */
	if (count & (count - 1))
		return array;
	array = realloc(array, (count ? 2 * count : 1) * size);
	if (!array)
		die("out of memory");
	return array;
}

const struct arch *arch_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(arches) / sizeof(arches[0]); i++)
		if (!strcmp(arches[i].name, name))
			return &arches[i];
	die("unknown --arch %s: x86_64, riscv and mips are known", name);
}

/* ---- ELF --------------------------------------------------------------- */

static void elf_open(struct image *im)
{
	int fd = open(im->path, O_RDONLY);
	GElf_Ehdr eh;

	if (fd < 0)
		die("%s: %s", im->path, strerror(errno));
	elf_version(EV_CURRENT);
	im->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!im->elf || !gelf_getehdr(im->elf, &eh))
		die("%s: not an ELF file", im->path);
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
		die("%s: no section names", im->path);
	while ((scn = elf_nextscn(im->elf, scn))) {
		gelf_getshdr(scn, sh);
		if (name ? !strcmp(elf_strptr(im->elf, strings, sh->sh_name),
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

	if (!data)
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
		gelf_getshdr(scn, &sh);
		start = elf_addr(im, sh.sh_addr);
		if (!(sh.sh_flags & SHF_ALLOC) || sh.sh_type == SHT_NOBITS ||
		    addr < start || addr + len > start + sh.sh_size)
			continue;
		data = elf_getdata(scn, NULL);
		return data ? (uint8_t *)data->d_buf + (addr - start) : NULL;
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
		die("%s: no symbol table", im->path);
	for (i = 1; gelf_getsym(data, i, &sym); i++) {
		sym.st_value = elf_addr(im, sym.st_value);
		if (fn(elf_strptr(im->elf, sh.sh_link, sym.st_name), &sym, arg))
			return true;
	}
	return false;
}

struct wanted {
	const char *name;
	const char *file; /* that has the local symbol; NULL: any symbol */
	bool here;	  /* the symbols seen now are that file's */
	uint64_t value;
};

static bool is_wanted(const char *name, const GElf_Sym *sym, void *arg)
{
	struct wanted *w = arg;

	if (w->file && GELF_ST_TYPE(sym->st_info) == STT_FILE)
		w->here = !strcmp(name, w->file);
	w->value = sym->st_value;
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

static bool add_function(const char *name, const GElf_Sym *sym, void *arg)
{
	struct image *im = arg;

	if (GELF_ST_TYPE(sym->st_info) != STT_FUNC ||
	    sym->st_value < im->text || sym->st_value >= im->etext)
		return false;
	im->symbols =
		array_grow(im->symbols, im->nr_symbols, sizeof(im->symbols[0]));
	im->symbols[im->nr_symbols++] = (struct symbol){
		.addr = sym->st_value,
		.size = sym->st_size,
		.name = name,
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
	size_t i, n = 0;

	if (!image_value(im, "_text", &im->text) ||
	    !image_value(im, "_etext", &im->etext))
		die("%s: no _text or _etext", im->path);
	for_each_symbol(im, add_function, im);
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

		if (!s->size || s->addr + s->size > next)
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

/* ---- Disassembly ------------------------------------------------------- */

static bool in_list(const char *const *list, const char *word)
{
	for (; *list; list++)
		if (!strcmp(*list, word))
			return true;
	return false;
}

/*
 * Of a stripped image objdump writes the target of a direct transfer as its last
 * operand, "0x80100240"; and what a far pair of RISC-V computes as "# 0x80200010".
 */
static bool parse_target(const char *operands, uint64_t *target)
{
	const char *p = strchr(operands, '#');
	char *end;

	if (!p)
		p = strrchr(operands, ',');
	p = p ? p + 1 : operands;
	p += strspn(p, " ");
	if (strncmp(p, "0x", 2))
		return false;
	*target = strtoull(p, &end, 16);
	return *end == '\0' || *end == ' ';
}

static void classify(struct insn *in, const struct arch *arch)
{
	const char *m = in->mnemonic, *ops = in->operands;
	bool target = parse_target(ops, &in->target);
	bool call = in_list(arch->calls, m);

	in->flow = FLOW_NEXT;
	if (in_list(arch->stops, m)) {
		in->flow = FLOW_STOP;
	} else if (strchr(ops, '*')) {
		/* x86's mark of an indirect operand */
		if (in_list(arch->indirect, m))
			in->flow =
				call ? FLOW_INDIRECT_CALL : FLOW_INDIRECT_JUMP;
	} else if (target && (call || in_list(arch->jumps, m))) {
		in->flow = call ? FLOW_CALL : FLOW_JUMP;
	} else if (target &&
		   (m[0] == 'j' || m[0] == 'b' || !strncmp(m, "loop", 4)) &&
		   !strchr(ops, '#')) {
		in->flow = FLOW_BRANCH;
	} else if (in_list(arch->indirect, m) && ops[0]) {
		in->flow = FLOW_INDIRECT_JUMP;
		if (arch->return_operand && !strcmp(ops, arch->return_operand))
			in->flow = FLOW_STOP;
		else if (in_list(arch->calls, m) || !strncmp(m, "jalr", 4))
			in->flow = FLOW_INDIRECT_CALL;
	}
}

/* x86's prefixes, which objdump writes before the instruction they modify. */
static char *skip_prefixes(char *p)
{
	static const char *const prefixes[] = {
		"notrack ", "bnd ", "lock ", "rep ",   "repz ",
		"repnz ",   "cs ",  "ds ",   "data16 "
	};
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(p, prefixes[i], strlen(prefixes[i])))
			return skip_prefixes(p + strlen(prefixes[i]));
	return p;
}

/* "  80100000:\tjal\t80100240 <trace_stub>"; false for any other line. */
static bool parse_line(char *line, struct insn *in)
{
	char *end, *text;

	in->addr = strtoull(line, &end, 16);
	if (end == line || end[0] != ':' || end[1] != '\t')
		return false;
	in->lock = !strncmp(end + 2, "lock ", 5);
	text = strdup(skip_prefixes(end + 2));
	if (!text)
		die("out of memory");
	text[strcspn(text, "\n")] = '\0';
	in->mnemonic = text;
	text += strcspn(text, " \t");
	if (*text)
		*text++ = '\0';
	in->operands = text + strspn(text, " \t");
	return true;
}

static int compare_insns(const void *a, const void *b)
{
	const struct insn *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* "…-objdump" gives "…-strip". */
static void strip_name(const char *objdump, char *name, size_t size)
{
	size_t stem = strlen(objdump) - strlen("objdump");

	if (strlen(objdump) < strlen("objdump") ||
	    strcmp(objdump + stem, "objdump"))
		die("--objdump %s: a program ...objdump is expected", objdump);
	snprintf(name, size, "%.*sstrip", (int)stem, objdump);
}

/* Is the listing there, and not older than the image? */
static bool is_fresh(const char *listing, const char *image)
{
	struct stat a, b;

	return !stat(listing, &a) && !stat(image, &b) &&
	       (a.st_mtim.tv_sec > b.st_mtim.tv_sec ||
		(a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
		 a.st_mtim.tv_nsec >= b.st_mtim.tv_nsec));
}

/*
 * The disassembly of the image, in the file IMAGE.dis beside it, made at most once
 * for all tools. It is made from a stripped copy: objdump 2.40 for RISC-V searches
 * all symbols for each instruction, which takes a minute for 20,000 functions. The
 * names come from the symbol table.
 */
static FILE *open_listing(const struct image *im, const char *objdump)
{
	char strip[256], listing[512], *command;
	FILE *f;

	strip_name(objdump, strip, sizeof(strip));
	snprintf(listing, sizeof(listing), "%s.dis", im->path);
	if (!is_fresh(listing, im->path)) {
		if (asprintf(&command,
			     "%s -s '%s' -o '%s.bare' && "
			     "%s -d -z -w --no-show-raw-insn '%s.bare' "
			     ">'%s.new'; s=$?; rm -f '%s.bare'; "
			     "[ $s = 0 ] && mv '%s.new' '%s'",
			     strip, im->path, listing, objdump, listing,
			     listing, listing, listing, listing) < 0)
			die("out of memory");
		if (system(command))
			die("%s does not disassemble %s", objdump, im->path);
		free(command);
	}
	f = fopen(listing, "r");
	if (!f)
		die("cannot read %s", listing);
	return f;
}

static void read_insns(struct image *im, const struct arch *arch,
		       const char *objdump)
{
	FILE *listing = open_listing(im, objdump);
	char *line = NULL;
	struct insn in;
	size_t size = 0;

	while (getline(&line, &size, listing) >= 0) {
		if (!parse_line(line, &in))
			continue;
		classify(&in, arch);
		im->insns = array_grow(im->insns, im->nr_insns,
				       sizeof(im->insns[0]));
		im->insns[im->nr_insns++] = in;
	}
	qsort(im->insns, im->nr_insns, sizeof(im->insns[0]), compare_insns);
	if (!im->nr_insns)
		die("%s shows no instructions of %s", objdump, im->path);
	fclose(listing);
	free(line);
}

size_t image_insn(const struct image *im, uint64_t addr)
{
	size_t lo = 0, hi = im->nr_insns;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (im->insns[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void image_open(struct image *im, const char *path, const struct arch *arch,
		const char *objdump)
{
	memset(im, 0, sizeof(*im));
	im->path = path;
	elf_open(im);
	read_symbols(im);
	read_insns(im, arch, objdump);
	if (arch->delay_slots)
		image_resolve_far(im);
}
