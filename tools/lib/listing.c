/* The disassembly of a linked image, and where each instruction goes: image.h. */
#define _GNU_SOURCE /* asprintf, getline */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
		errx(1, "out of memory");
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
		errx(1, "--objdump %s: a program ...objdump is expected",
		     objdump);
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
			errx(1, "out of memory");
		if (system(command))
			errx(1, "%s does not disassemble %s", objdump,
			     im->path);
		free(command);
	}
	f = fopen(listing, "r");
	if (!f)
		errx(1, "cannot read %s", listing);
	return f;
}

void image_read_insns(struct image *im, const struct arch *arch,
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
		errx(1, "%s shows no instructions of %s", objdump, im->path);
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
