/*
 * patchpath: proves on the linked image that nothing that runs while text is
 * being patched, or while CPUs are stopped for it, is a site itself, or has a jump label. It would
 * execute an instruction that is just being changed (hazard seen on MIPS in
 * 2013 and on RISC-V in 2020). The closure is computed from the disassembly:
 * nobody keeps a list by hand.
 *
 *   patchpath --arch A --sites F --objdump P image.elf
 *
 * It also proves that the functions which synchronise a CPU's instruction fetch
 * execute the instruction for it on every way through them, and that the fences which
 * comments speak of are there, also those which belong behind an instruction wherever it
 * stands (machine.json: sync, fences, behind). No test in the kernel can see any of this:
 * QEMU needs none of them.
 *
 * Roots are in the section patch_roots (function addresses), calls through
 * pointers in patch_indirect (pairs of caller and target); kernel/patch_path.h
 * fills both. Sites are what the scan finds, and mksites puts into the table. An
 * indirect call or jump in the closure that nobody annotated is an error: it
 * could lead anywhere.
 */
#include "lib/scan.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Calls of these are not followed. panic() never comes back, so that no patching
 * goes on after it. The others are the kernel's entry points from a port's trap:
 * what has got there has dealt with breakpoints, and is an ordinary interrupt or
 * fault, which comes only where interrupts are on or something is broken; or an
 * NMI's hook, whose owner answers for what it calls (kernel/irq.h).
 */
static const char *const ends[] = { "panic",	 "trap_fault", "irq_enter",
				    "irq_event", "irq_exit",   "irq_nmi" };

/* Roots beside those in patch_roots: where every trap begins, breakpoints and NMIs
 * among them. */
static const char trap_root[] = "trap_vectors";

#define NOT_REACHED ((size_t)-1)
#define ROOT ((size_t)-2)

struct graph {
	struct image im;
	const struct arch *arch;
	/* By index of im.symbols: has a site, or a jump label. */
	bool *is_site, *has_label;
	size_t *from; /* the function that led here: its index, ROOT or NOT_REACHED */
	size_t *queue;
	size_t head, tail;
	uint64_t *pairs; /* patch_indirect: caller, target, caller, ... */
	size_t nr_pairs;
	unsigned int errors;
};

static size_t index_of(const struct graph *g, const struct symbol *s)
{
	return s - g->im.symbols;
}

/* "stop_cpus -> foo -> bar", outermost first. */
static void print_path(const struct graph *g, size_t i)
{
	if (g->from[i] != ROOT) {
		print_path(g, g->from[i]);
		fprintf(stderr, " -> ");
	}
	fprintf(stderr, "%s", g->im.symbols[i].name);
}

static void say(struct graph *g, size_t i, const char *what)
{
	fprintf(stderr, "patchpath: %s: ", what);
	print_path(g, i);
	g->errors++;
}

static void reach(struct graph *g, uint64_t addr, size_t from)
{
	const struct symbol *s = image_symbol_at(&g->im, addr);
	size_t i;

	if (!s) {
		if (from == ROOT)
			errx(1, "root %#llx is no function",
			     (unsigned long long)addr);
		say(g, from, "leads out of all functions");
		fprintf(stderr, " -> %#llx\n", (unsigned long long)addr);
		return;
	}
	i = index_of(g, s);
	if (g->from[i] != NOT_REACHED)
		return;
	for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++)
		if (!strcmp(s->name, ends[e]))
			return;
	g->from[i] = from;
	g->queue[g->tail++] = i;
}

/* Follow what the source says an indirect call of function i may reach. */
static bool reach_annotated(struct graph *g, size_t i)
{
	bool found = false;
	size_t p;

	for (p = 0; p + 1 < g->nr_pairs; p += 2)
		if (image_symbol_at(&g->im, g->pairs[p]) == &g->im.symbols[i]) {
			reach(g, g->pairs[p + 1], i);
			found = true;
		}
	return found;
}

static void visit_insn(struct graph *g, size_t i, const struct insn *in)
{
	const struct symbol *s = &g->im.symbols[i];

	switch (in->flow) {
	case FLOW_BRANCH:
	case FLOW_JUMP:
	case FLOW_CALL:
		if (in->target < s->addr || in->target >= s->addr + s->size)
			reach(g, in->target, i);
		break;
	case FLOW_INDIRECT_CALL:
	case FLOW_INDIRECT_JUMP:
		if (reach_annotated(g, i))
			break;
		say(g, i, "indirect call that nobody annotated");
		fprintf(stderr,
			" (at %#llx; PATCH_INDIRECT(%s, target) says where "
			"it leads)\n",
			(unsigned long long)in->addr, s->name);
		break;
	case FLOW_NEXT:
	case FLOW_STOP:
		break;
	}
}

/*
 * Does control run off the end of the function into the one that follows, as
 * it may in assembly? Trailing NOPs are padding.
 */
static bool falls_through(const struct graph *g, const struct symbol *s)
{
	size_t first = image_insn(&g->im, s->addr);
	size_t i = image_insn(&g->im, s->addr + s->size);

	while (i > first && !strcmp(g->im.insns[i - 1].mnemonic, "nop"))
		i--;
	if (i == first || g->im.insns[i - 1].flow != FLOW_NEXT)
		return false;
	return !g->arch->delay_slots || i - 1 == first ||
	       g->im.insns[i - 2].flow == FLOW_NEXT;
}

static void visit(struct graph *g, size_t i)
{
	const struct symbol *s = &g->im.symbols[i];
	size_t n;

	if (g->is_site[i]) {
		say(g, i, "site on the patching path");
		fprintf(stderr, " (%s is a site)\n", s->name);
		return;
	}
	if (g->has_label[i]) {
		say(g, i, "jump label on the patching path");
		fprintf(stderr, " (%s has a static_branch())\n", s->name);
		return;
	}
	for (n = image_insn(&g->im, s->addr);
	     n < g->im.nr_insns && g->im.insns[n].addr < s->addr + s->size; n++)
		visit_insn(g, i, &g->im.insns[n]);
	if (i + 1 < g->im.nr_symbols && falls_through(g, s))
		reach(g, s[1].addr, i);
}

static void mark_sites(struct graph *g, const struct format *format)
{
	struct jump_labels labels = { 0 };
	struct addresses s = { 0 };
	size_t i;

	scan_sites(&g->im, g->arch, format, &s);
	for (i = 0; i < s.count; i++)
		g->is_site[index_of(g, image_symbol_at(&g->im, s.addr[i]))] =
			true;
	free(s.addr);
	scan_labels(&g->im, g->arch, &labels);
	for (i = 0; i < labels.count; i++) {
		const struct symbol *f =
			image_symbol_at(&g->im, labels.label[i].addr);

		if (f)
			g->has_label[index_of(g, f)] = true;
	}
	free(labels.label);
}

/* The pointers between __start_NAME and __stop_NAME; how many. */
static size_t read_registry(const struct image *im, const char *start,
			    const char *stop, uint64_t **values)
{
	uint64_t a, b;
	const uint8_t *p;
	size_t n, i;

	if (!image_value(im, start, &a) || !image_value(im, stop, &b))
		errx(1, "%s: no symbols %s and %s", im->path, start, stop);
	n = (b - a) / im->pointer_size;
	p = image_bytes(im, a, b - a);
	*values = calloc(n + 1, sizeof(**values));
	if (!*values || (n && !p))
		errx(1, "%s: cannot read %s", im->path, start);
	for (i = 0; i < n; i++)
		(*values)[i] = image_number(im, p + i * im->pointer_size,
					    im->pointer_size);
	return n;
}

static void check_graph(struct graph *g, const struct format *format)
{
	size_t n = g->im.nr_symbols + 1, i;
	uint64_t *roots, trap;

	g->is_site = calloc(n, sizeof(*g->is_site));
	g->has_label = calloc(n, sizeof(*g->has_label));
	g->from = malloc(n * sizeof(*g->from));
	g->queue = malloc(n * sizeof(*g->queue));
	if (!g->is_site || !g->has_label || !g->from || !g->queue)
		errx(1, "out of memory");
	for (i = 0; i < n; i++)
		g->from[i] = NOT_REACHED;
	mark_sites(g, format);
	if (errors)
		exit(1);
	g->nr_pairs = read_registry(&g->im, "__start_patch_indirect",
				    "__stop_patch_indirect", &g->pairs);
	n = read_registry(&g->im, "__start_patch_roots", "__stop_patch_roots",
			  &roots);
	if (!n)
		errx(1, "%s: section patch_roots is empty: nothing to prove",
		     g->im.path);
	for (i = 0; i < n; i++)
		reach(g, roots[i], ROOT);
	if (!image_value(&g->im, trap_root, &trap))
		errx(1, "%s: no symbol %s", g->im.path, trap_root);
	reach(g, trap, ROOT);
	while (g->head < g->tail)
		visit(g, g->queue[g->head++]);
	free(roots);
}

/* ---- Synchronising instructions ------------------------------------------ */

static bool matches(const struct insn *in, const char *pattern)
{
	char text[200];

	snprintf(text, sizeof(text), "%s%s%s", in->mnemonic,
		 *in->operands ? " " : "", in->operands);
	return !fnmatch(pattern, text, 0);
}

/*
 * Can control get from instruction i of a function of n out of it, or to its end,
 * without an instruction that matches? A delay slot counts as executed with its jump.
 */
static bool gets_past(const struct graph *g, const struct insn *in, size_t n,
		      size_t i, const char *pattern, bool *seen)
{
	uint64_t first = in[0].addr, last = in[n - 1].addr, to;

	for (; i < n; i++) {
		if (seen[i])
			return false;
		seen[i] = true;
		if (matches(&in[i], pattern))
			return false;
		if (in[i].flow == FLOW_NEXT || in[i].flow == FLOW_CALL ||
		    in[i].flow == FLOW_INDIRECT_CALL)
			continue;
		if (g->arch->delay_slots && i + 1 < n &&
		    matches(&in[i + 1], pattern))
			return false;
		to = in[i].target;
		if (in[i].flow == FLOW_STOP ||
		    in[i].flow == FLOW_INDIRECT_JUMP || to < first || to > last)
			return true;
		if (gets_past(g, in, n,
			      image_insn(&g->im, to) - (in - g->im.insns),
			      pattern, seen))
			return true;
		if (in[i].flow == FLOW_JUMP)
			return false;
	}
	return true;
}

static bool stands_in(const struct insn *in, size_t n, const char *pattern)
{
	for (size_t i = 0; i < n; i++)
		if (matches(&in[i], pattern))
			return true;
	return false;
}

/* A list of the port's: of each function, what must be there, or be passed. */
static void check_list(struct graph *g, json_t *list, const char *key,
		       bool every_path)
{
	const struct symbol *s;
	const char *name;
	const struct insn *in;
	json_t *value;
	uint64_t addr;
	bool *seen;
	size_t n;

	json_object_foreach (list, name, value) {
		const char *pattern = json_string_value(value);

		if (!image_value(&g->im, name, &addr) ||
		    !(s = image_symbol_at(&g->im, addr)))
			errx(1, "%s: code: %s: there is no function %s",
			     g->arch->file, key, name);
		in = &g->im.insns[image_insn(&g->im, s->addr)];
		n = image_insn(&g->im, s->addr + s->size) - (in - g->im.insns);
		seen = calloc(n + 1, sizeof(*seen));
		if (!seen)
			errx(1, "out of memory");
		if (every_path ? gets_past(g, in, n, 0, pattern, seen) :
				 !stands_in(in, n, pattern)) {
			fprintf(stderr, "patchpath: %s: %s \"%s\" (%s: %s)\n",
				name,
				every_path ? "a way through it has no" :
					     "there is no",
				pattern, g->arch->file, key);
			g->errors++;
		}
		free(seen);
	}
}

/* Of a kind of instruction, what must stand behind each one. */
static void check_behind(struct graph *g)
{
	const char *pattern;
	json_t *value;

	json_object_foreach (g->arch->behind, pattern, value) {
		const char *next = json_string_value(value);

		for (size_t i = 0; i + 1 < g->im.nr_insns; i++) {
			const struct insn *in = &g->im.insns[i];
			const struct symbol *s;

			if (!matches(in, pattern) || matches(in + 1, next))
				continue;
			s = image_symbol_at(&g->im, in->addr);
			fprintf(stderr,
				"patchpath: %s: behind the \"%s\" at 0x%" PRIx64
				" stands no \"%s\" (%s: behind)\n",
				s ? s->name : "?", in->mnemonic, in->addr, next,
				g->arch->file);
			g->errors++;
		}
	}
}

int main(int argc, char **argv)
{
	struct graph g = { 0 };

	if (argc != 8 || strcmp(argv[1], "--arch") ||
	    strcmp(argv[3], "--sites") || strcmp(argv[5], "--objdump"))
		errx(1, "usage: patchpath --arch NAME --sites FORMAT "
			"--objdump PROGRAM IMAGE");
	g.arch = arch_find(argv[2]);
	image_open(&g.im, argv[7], g.arch, argv[6]);
	check_graph(&g, format_find(g.arch, argv[4]));
	check_list(&g, g.arch->sync, "sync", true);
	check_list(&g, g.arch->fences, "fences", false);
	check_behind(&g);
	return g.errors != 0;
}
