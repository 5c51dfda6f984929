/*
 * Calls through a register that the compiler has just loaded with a constant
 * (MIPS, -mlong-calls): "lui R,hi; addiu R,R,lo; ...; jalr R" goes to one known
 * function, and is made a direct call of it. What is not certain stays indirect.
 */
#include "longcall.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH 4 /* registers that a constant comes through */

/* What is known of a register at a place. */
enum known {
	NOTHING,  /* no path comes here, but those looked at already */
	CONSTANT, /* the same on every path */
	UNKNOWN,
};

struct code {
	struct image *im;
	bool *join; /* by index of insns: control may come from elsewhere */
	size_t first, end;     /* of the function */
	size_t *seen[DEPTH];   /* joins: the query that has been there */
	size_t query, queries; /* the one that is asked; how many there were */
};

/* Does the comma-separated operand list begin with the register? */
static bool first_is(const char *operands, const char *reg)
{
	size_t n = strlen(reg);

	return !strncmp(operands, reg, n) &&
	       (operands[n] == ',' || !operands[n]);
}

/* Conservative: whatever is not known to leave its first operand alone writes it.
 */
static bool writes(const struct insn *in, const char *reg)
{
	static const char *const readers[] = { "sw",  "sh",   "sb",   "swl",
					       "swr", "mtc0", "cache" };
	size_t i;

	if (in->flow != FLOW_NEXT || !first_is(in->operands, reg))
		return false;
	for (i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if (!strcmp(in->mnemonic, readers[i]))
			return false;
	return true;
}

static bool kept_by_calls(const char *reg)
{
	return reg[0] == 's';
}

static bool is_call(const struct insn *in)
{
	return in->flow == FLOW_CALL || in->flow == FLOW_INDIRECT_CALL;
}

/* Does control never go on behind its delay slot? */
static bool leaves(const struct insn *in)
{
	return in->flow == FLOW_JUMP || in->flow == FLOW_STOP ||
	       in->flow == FLOW_INDIRECT_JUMP;
}

static enum known value_before(struct code *c, size_t i, const char *reg,
			       unsigned int depth, uint32_t *value);

/* What instruction i puts into its register. */
static enum known value_of(struct code *c, size_t i, unsigned int depth,
			   uint32_t *value)
{
	const struct insn *in = &c->im->insns[i];
	const char *source = strchr(in->operands, ','), *imm;
	size_t outer = c->query;
	enum known known;
	char reg[8];

	if (!source)
		return UNKNOWN;
	imm = strchr(++source, ',');
	if (!strcmp(in->mnemonic, "lui")) {
		*value = strtoul(source, NULL, 0) << 16;
		return CONSTANT;
	}
	if (strcmp(in->mnemonic, "addiu") || !imm || !depth ||
	    (size_t)(imm - source) >= sizeof(reg))
		return UNKNOWN;
	memcpy(reg, source, imm - source);
	reg[imm - source] = '\0';
	c->query = ++c->queries;
	known = value_before(c, i, reg, depth - 1, value);
	c->query = outer;
	*value += strtol(imm + 1, NULL, 0);
	return known;
}

static enum known merge(enum known a, uint32_t *value, enum known b,
			uint32_t other)
{
	if (b == NOTHING)
		return a;
	if (a == NOTHING) {
		*value = other;
		return b;
	}
	return a == CONSTANT && b == CONSTANT && *value == other ? CONSTANT :
								   UNKNOWN;
}

/* Back along the text from i, whatever else may lead to i itself. */
static enum known value_behind(struct code *c, size_t i, const char *reg,
			       unsigned int depth, uint32_t *value)
{
	while (i-- > c->first) {
		const struct insn *in = &c->im->insns[i];

		/* A delay slot is executed before the call. */
		if (i > c->first && is_call(in - 1) && !kept_by_calls(reg))
			return UNKNOWN;
		if (writes(in, reg))
			return value_of(c, i, depth, value);
		if (c->join[i])
			return value_before(c, i, reg, depth, value);
	}
	return UNKNOWN;
}

/* What reg holds before instruction i runs, on all paths that lead there. */
static enum known value_before(struct code *c, size_t i, const char *reg,
			       unsigned int depth, uint32_t *value)
{
	enum known known = NOTHING, more;
	uint32_t other = 0;
	size_t b;

	if (!c->join[i])
		return value_behind(c, i, reg, depth, value);
	if (c->seen[depth][i] == c->query)
		return NOTHING;
	c->seen[depth][i] = c->query;
	for (b = c->first; b + 1 < c->end; b++) {
		const struct insn *in = &c->im->insns[b];

		if ((in->flow != FLOW_JUMP && in->flow != FLOW_BRANCH) ||
		    in->target != c->im->insns[i].addr)
			continue;
		more = value_behind(c, b + 2, reg, depth, &other);
		known = merge(known, value, more, other);
	}
	if (i < c->first + 2)
		return UNKNOWN;
	if (leaves(&c->im->insns[i - 2]))
		return known;
	more = value_behind(c, i, reg, depth, &other);
	return merge(known, value, more, other);
}

static void find_joins(struct code *c)
{
	const struct image *im = c->im;
	size_t i, target;

	for (i = 0; i < im->nr_insns; i++) {
		const struct insn *in = &im->insns[i];

		if (leaves(in))
			c->join[i + 2] = true;
		if (in->flow != FLOW_JUMP && in->flow != FLOW_BRANCH)
			continue;
		target = image_insn(im, in->target);
		if (target < im->nr_insns)
			c->join[target] = true;
	}
}

static void resolve(struct code *c, size_t i)
{
	struct insn *in = &c->im->insns[i];
	bool call = in->flow == FLOW_INDIRECT_CALL;
	uint32_t target = 0;

	if ((!call && in->flow != FLOW_INDIRECT_JUMP) ||
	    strpbrk(in->operands, ",("))
		return;
	c->query = ++c->queries;
	if (value_before(c, i, in->operands, DEPTH - 1, &target) != CONSTANT)
		return;
	in->flow = call ? FLOW_CALL : FLOW_JUMP;
	in->target = target;
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("out of memory");
	return p;
}

void longcall_resolve(struct image *im)
{
	struct code c = { .im = im };
	size_t n = im->nr_insns + 2, f, i;

	c.join = zeroed(n, sizeof(*c.join));
	for (i = 0; i < DEPTH; i++)
		c.seen[i] = zeroed(n, sizeof(*c.seen[i]));
	find_joins(&c);
	for (f = 0; f < im->nr_symbols; f++) {
		const struct symbol *s = &im->symbols[f];

		c.first = image_insn(im, s->addr);
		c.end = image_insn(im, s->addr + s->size);
		for (i = c.first; i < c.end; i++)
			resolve(&c, i);
	}
	for (i = 0; i < DEPTH; i++)
		free(c.seen[i]);
	free(c.join);
}
