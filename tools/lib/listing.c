/* SPDX-License-Identifier: MIT */
/* The disassembly of a linked image, and where each instruction goes: image.h. */
#define _GNU_SOURCE /* asprintf, getline */
#include "image.h"

#include <fnmatch.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Of a stripped image objdump writes the target of a direct transfer as its last
 * operand, "0x80100240", and the address that a far pair computes as "# 0x80200010". An
 * immediate operand may be "#3", without a blank. A note of objdump's stands behind "//".
 */
static bool parse_target(const char *operands, uint64_t *target)
{
	const char *p = strstr(operands, "# ");
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

/* Which of the port's lists a mnemonic is in. */
enum kind {
	KIND_UNKNOWN,
	KIND_STOP,
	KIND_CALL,
	KIND_JUMP,
	KIND_BRANCH,
	KIND_PLAIN
};

struct known {
	const char *mnemonic;
	enum kind kind;
};

static int compare_known(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->mnemonic, y->mnemonic);
}

/* Patterns are matched once for each mnemonic, not for each instruction. */
static enum kind kind_of(const struct arch *arch, const char *mnemonic)
{
	static void *seen;
	struct known key = { .mnemonic = mnemonic }, *new, **found;

	found = tfind(&key, &seen, compare_known);
	if (found)
		return (*found)->kind;
	new = malloc(sizeof(*new));
	if (!new)
		errx(1, "out of memory");
	new->mnemonic = mnemonic;
	new->kind = arch_lists(arch->stops, mnemonic)	 ? KIND_STOP :
		    arch_lists(arch->calls, mnemonic)	 ? KIND_CALL :
		    arch_lists(arch->jumps, mnemonic)	 ? KIND_JUMP :
		    arch_lists(arch->branches, mnemonic) ? KIND_BRANCH :
		    arch_lists(arch->plain, mnemonic)	 ? KIND_PLAIN :
							   KIND_UNKNOWN;
	if (!tsearch(new, &seen, compare_known))
		errx(1, "out of memory");
	return new->kind;
}

bool insn_matches(const struct insn *in, const char *pattern)
{
	char text[200];

	snprintf(text, sizeof(text), "%s%s%s", in->mnemonic,
		 *in->operands ? " " : "", in->operands);
	return !fnmatch(pattern, text, 0);
}

static bool matches_any(const struct insn *in, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (insn_matches(in, *patterns))
			return true;
	return false;
}

/* A jump or a branch through a register: it returns, or the port lists it with its operands as one
 * that goes nowhere. */
static bool classify_indirect(struct insn *in, const struct arch *arch,
			      bool branch)
{
	if (matches_any(in, arch->returns))
		in->flow = branch ? FLOW_MAY_RETURN : FLOW_STOP;
	else if (matches_any(in, arch->plain))
		in->flow = FLOW_NEXT;
	else
		return false;
	return true;
}

/* Where the instruction goes. False: the port does not say. */
static bool classify(struct insn *in, const struct arch *arch)
{
	/* objdump marks an indirect operand of x86 by a star. */
	bool target = !strchr(in->operands, '*') &&
		      parse_target(in->operands, &in->target);

	switch (kind_of(arch, in->mnemonic)) {
	case KIND_UNKNOWN:
		return false;
	case KIND_STOP:
		in->flow = FLOW_STOP;
		return true;
	case KIND_CALL:
		in->flow = target ? FLOW_CALL : FLOW_INDIRECT_CALL;
		return true;
	case KIND_JUMP:
		if (!target && classify_indirect(in, arch, false))
			return true;
		in->flow = target ? FLOW_JUMP : FLOW_INDIRECT_JUMP;
		if (arch->return_operand &&
		    !strcmp(in->operands, arch->return_operand))
			in->flow = FLOW_STOP;
		return true;
	case KIND_BRANCH:
		if (!target)
			return classify_indirect(in, arch, true);
		in->flow = FLOW_BRANCH;
		return true;
	case KIND_PLAIN:
		in->flow = FLOW_NEXT;
		return true;
	}
	return false;
}

/* The instructions that no list has: the first one, and the mnemonics of the others. */
struct unknown {
	struct insn first;
	char others[400]; /* each behind a blank, once */
};

/* An instruction of a function must be one that the port's file lists: what it does
 * not know might go anywhere. */
static void note_unknown(const struct image *im, const struct insn *in,
			 struct unknown *u)
{
	size_t n = strlen(u->others);
	char name[64];
	const char *at;

	if (!image_symbol_at(im, in->addr))
		return;
	if (!u->first.mnemonic)
		u->first = *in;
	snprintf(name, sizeof(name), " %s", in->mnemonic);
	at = strstr(u->others, name);
	while (at && at[strlen(name)] != ' ' && at[strlen(name)])
		at = strstr(at + 1, name);
	if (!at && strcmp(in->mnemonic, u->first.mnemonic) &&
	    n + strlen(name) < sizeof(u->others))
		strcpy(u->others + n, name);
}

/* All at once: a port that is new has many of them. */
static void check_known(const struct image *im, const struct arch *arch,
			const struct unknown *u)
{
	const struct insn *in = &u->first;

	if (in->mnemonic)
		errx(1,
		     "%#llx (%s): %s: code: no list has the instruction "
		     "\"%s %s\"%s%s; it goes into one of: calls jumps branches "
		     "stops plain, and if it goes where a register says, with "
		     "its operands into returns or plain",
		     (unsigned long long)in->addr, image_name(im, in->addr),
		     arch->file, in->mnemonic, in->operands,
		     u->others[0] ? ", nor:" : "", u->others);
}

/* Behind the prefixes that objdump writes before the instruction they modify. */
static char *skip_prefixes(char *p, const struct arch *arch)
{
	const char **prefix = arch->prefixes;
	size_t n;

	for (; *prefix; prefix++) {
		n = strlen(*prefix);
		if (!strncmp(p, *prefix, n) && p[n] == ' ')
			return skip_prefixes(p + n + 1, arch);
	}
	return p;
}

/* "  80100000:\tjal\t80100240 <trace_stub>". False for any other line. */
static bool parse_line(char *line, const struct arch *arch, struct insn *in)
{
	char *end, *text;

	in->addr = strtoull(line, &end, 16);
	if (end == line || end[0] != ':' || end[1] != '\t')
		return false;
	in->lock = !strncmp(end + 2, "lock ", 5);
	text = strdup(skip_prefixes(end + 2, arch));
	if (!text)
		errx(1, "out of memory");
	text[strcspn(text, "\n")] = '\0';
	if (strstr(text, "//"))
		*strstr(text, "//") = '\0';
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
	char strip[256], listing[512], own[560], *command;
	FILE *f;

	strip_name(objdump, strip, sizeof(strip));
	snprintf(listing, sizeof(listing), "%s.dis", im->path);
	/* Two programs may make it at the same time. */
	snprintf(own, sizeof(own), "%s.%d", listing, (int)getpid());
	if (!is_fresh(listing, im->path)) {
		if (asprintf(&command,
			     "%s -s '%s' -o '%s.bare' && "
			     "%s -d -z -w --no-show-raw-insn '%s.bare' "
			     ">'%s.new'; s=$?; rm -f '%s.bare'; "
			     "[ $s = 0 ] && mv '%s.new' '%s'",
			     strip, im->path, own, objdump, own, own, own, own,
			     listing) < 0)
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
	struct unknown unknown = { 0 };
	char *line = NULL;
	struct insn in;
	size_t size = 0;

	while (getline(&line, &size, listing) >= 0) {
		if (!parse_line(line, arch, &in))
			continue;
		in.flow = FLOW_STOP;
		if (!classify(&in, arch))
			note_unknown(im, &in, &unknown);
		im->insns = array_grow(im->insns, im->nr_insns,
				       sizeof(im->insns[0]));
		im->insns[im->nr_insns++] = in;
	}
	check_known(im, arch, &unknown);
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
