/* SPDX-License-Identifier: MIT */
/* The closure of the call graph from where text is patched: see path.h. */
#include "path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Calls of these are not followed. panic() never comes back, so that no patching
 * goes on after it. The others are the kernel's entry points from a port's trap:
 * what has got there has dealt with breakpoints, and is an ordinary interrupt or
 * fault, which comes only where interrupts are on or something is broken, or an
 * NMI's hook, whose owner answers for its calls (kernel/irq.h), or where a CPU that
 * starts gets to, which joins by cpu_join(), a root.
 */
static const char *const ends[] = {
	"panic",    "trap_fault", "irq_enter",	       "irq_event",
	"irq_exit", "irq_nmi",	  "cpu_secondary_main"
};

/* Never on the path: they wait for a task or a lock of a CPU that is held, perhaps. */
static const char *const waits[] = { "schedule", "mutex_lock", "spin_lock",
				     "spin_acquire" };

/* A root beside those in patch_roots: where every trap begins, breakpoints and NMIs
 * among them. */
static const char trap_root[] = "trap_vectors";

struct search {
	const struct image *im;
	const struct arch *arch;
	struct path *path;
	uint64_t stub;
	uint64_t *pairs; /* patch_indirect: caller, target, caller, ... */
	size_t nr_pairs;
};

static void print_path(const struct image *im, const struct path *p,
		       size_t node)
{
	if (p->from[node] != PATH_ROOT) {
		print_path(im, p, p->from[node]);
		fprintf(stderr, " -> ");
	}
	fprintf(stderr, "%s", im->symbols[p->symbol[node]].name);
}

void path_say(const struct image *im, const struct path *p, size_t node,
	      const char *what)
{
	fprintf(stderr, "patchpath: %s: ", what);
	print_path(im, p, node);
	errors++;
}

size_t path_node(const struct image *im, const struct path *p, uint64_t addr)
{
	const struct symbol *s = image_symbol_at(im, addr);

	return s ? p->node[s - im->symbols] : PATH_NONE;
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

static void reach(struct search *g, uint64_t addr, size_t from)
{
	const struct symbol *s = image_symbol_at(g->im, addr);
	struct path *p = g->path;

	if (!s) {
		if (from == PATH_ROOT)
			errx(1, "root %#llx is no function",
			     (unsigned long long)addr);
		path_say(g->im, p, from, "leads out of all functions");
		fprintf(stderr, " -> %#llx\n", (unsigned long long)addr);
		return;
	}
	if (p->node[s - g->im->symbols] != PATH_NONE)
		return;
	if (addr == g->stub && from != PATH_ROOT)
		return;
	if (is_one_of(s->name, ends, sizeof(ends) / sizeof(ends[0])))
		return;
	p->node[s - g->im->symbols] = p->count;
	p->symbol[p->count] = s - g->im->symbols;
	p->from[p->count++] = from;
	if (is_one_of(s->name, waits, sizeof(waits) / sizeof(waits[0]))) {
		path_say(g->im, p, p->count - 1, "waits on the patching path");
		fprintf(stderr, " (%s)\n", s->name);
	}
}

/* Follow the targets that the source names for an indirect call of a node. */
static bool reach_annotated(struct search *g, size_t node)
{
	const struct symbol *s = &g->im->symbols[g->path->symbol[node]];
	bool found = false;

	for (size_t i = 0; i + 1 < g->nr_pairs; i += 2)
		if (image_symbol_at(g->im, g->pairs[i]) == s) {
			if (g->pairs[i + 1]) /* PATCH_INDIRECT_OPEN() has none */
				reach(g, g->pairs[i + 1], node);
			found = true;
		}
	return found;
}

static void visit_insn(struct search *g, size_t node, const struct insn *in)
{
	const struct symbol *s = &g->im->symbols[g->path->symbol[node]];

	switch (in->flow) {
	case FLOW_BRANCH:
	case FLOW_JUMP:
	case FLOW_CALL:
		if (in->target < s->addr || in->target >= s->addr + s->size)
			reach(g, in->target, node);
		break;
	case FLOW_INDIRECT_CALL:
	case FLOW_INDIRECT_JUMP:
		if (reach_annotated(g, node))
			break;
		path_say(g->im, g->path, node,
			 "indirect call that nobody annotated");
		fprintf(stderr,
			" (at %#llx; PATCH_INDIRECT(%s, target) says where "
			"it leads)\n",
			(unsigned long long)in->addr, s->name);
		break;
	case FLOW_NEXT:
	case FLOW_MAY_RETURN:
	case FLOW_STOP:
		break;
	}
}

/*
 * Does control run off the end of the function into the one that follows, as
 * it may in assembly? Trailing NOPs are padding.
 */
static bool falls_through(const struct search *g, const struct symbol *s)
{
	const struct insn *insns = g->im->insns;
	size_t first = image_insn(g->im, s->addr);
	size_t i = image_insn(g->im, s->addr + s->size);

	while (i > first && !strcmp(insns[i - 1].mnemonic, "nop"))
		i--;
	if (i == first || insns[i - 1].flow != FLOW_NEXT)
		return false;
	return !g->arch->delay_slots || i - 1 == first ||
	       insns[i - 2].flow == FLOW_NEXT;
}

static void visit(struct search *g, size_t node)
{
	const struct image *im = g->im;
	size_t i = g->path->symbol[node], n;
	const struct symbol *s = &im->symbols[i];

	for (n = image_insn(im, s->addr);
	     n < im->nr_insns && im->insns[n].addr < s->addr + s->size; n++)
		visit_insn(g, node, &im->insns[n]);
	if (i + 1 < im->nr_symbols && falls_through(g, s))
		reach(g, s[1].addr, node);
}

/* The pointers between __start_NAME and __stop_NAME, and return how many. */
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
	if (n && !p)
		errx(1, "%s: %s to %s does not lie in the image", im->path,
		     start, stop);
	*values = calloc(n + 1, sizeof(**values));
	if (!*values)
		errx(1, "out of memory");
	for (i = 0; i < n; i++)
		(*values)[i] = image_number(im, p + i * im->pointer_size,
					    im->pointer_size);
	return n;
}

static uint64_t value_of(const struct image *im, const char *name)
{
	uint64_t value;

	if (!image_value(im, name, &value))
		errx(1, "%s: no symbol %s", im->path, name);
	return value;
}

static struct search begin(const struct image *im, const struct arch *arch,
			   struct path *p)
{
	struct search g = { .im = im, .arch = arch, .path = p };
	size_t n = im->nr_symbols + 1;

	p->count = 0;
	p->symbol = malloc(n * sizeof(*p->symbol));
	p->from = malloc(n * sizeof(*p->from));
	p->node = malloc(n * sizeof(*p->node));
	if (!p->symbol || !p->from || !p->node)
		errx(1, "out of memory");
	for (size_t i = 0; i < n; i++)
		p->node[i] = PATH_NONE;
	g.stub = value_of(im, "trace_stub");
	g.nr_pairs = read_registry(im, "__start_patch_indirect",
				   "__stop_patch_indirect", &g.pairs);
	return g;
}

static void follow(struct search *g)
{
	for (size_t node = 0; node < g->path->count; node++)
		visit(g, node);
	free(g->pairs);
}

void path_find(const struct image *im, const struct arch *arch, struct path *p)
{
	struct search g = begin(im, arch, p);
	uint64_t *roots;
	size_t n = read_registry(im, "__start_patch_roots",
				 "__stop_patch_roots", &roots);

	if (!n)
		errx(1, "%s: section patch_roots is empty: nothing to prove",
		     im->path);
	for (size_t i = 0; i < n; i++)
		reach(&g, roots[i], PATH_ROOT);
	reach(&g, value_of(im, trap_root), PATH_ROOT);
	follow(&g);
	free(roots);
}

void path_find_from(const struct image *im, const struct arch *arch,
		    const char *root, struct path *p)
{
	struct search g = begin(im, arch, p);

	reach(&g, value_of(im, root), PATH_ROOT);
	follow(&g);
}

void path_part(const struct image *im, const struct path *p,
	       const struct addresses *all, struct addresses *on_path,
	       struct addresses *others)
{
	for (size_t i = 0; i < all->count; i++)
		add_address(path_node(im, p, all->addr[i]) == PATH_NONE ?
				    others :
				    on_path,
			    all->addr[i]);
}
