/* SPDX-License-Identifier: MIT */
/*
 * Filters of events: `prev_pid == 0 && (next_prio > 3 || next_comm ~ "ping*")`. A filter is
 * parsed as a whole before it is used, into a tree whose nodes stand in an array. It is
 * evaluated where the event happens, so it takes no lock and calls nothing that has a site.
 */
#include <tracer/events/event_filter.h>
#include <tracer/events/event_trigger.h>
#include <tracer/core/error_log.h>

#include <kernel/cpu/cpu.h>
#include <kernel/lib/glob.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/sched/task.h>
#include <tracer/ring/ring_decode.h>
#include <tracer/ring/ring_internal.h>

/* A marker is no event of list.h: a write of trace_marker makes it. */
struct event event_marker = {
	.system = "ftrace",
	.name = "print",
	.path = "ftrace/print",
	.fields = (const struct event_field[]){ { "ip", EVENT_ULONG },
						{ "buf", EVENT_TEXT },
						{ NULL } },
};

#define FILTER_NODES 64
#define FILTER_VALUE 64 /* bytes of a text to compare with, the NUL included */
#define FILTER_DEPTH 16 /* ( and ! in each other */

enum node_kind { NODE_AND, NODE_OR, NODE_NOT, NODE_TEST };

/* The left sides of comparisons: the event's own fields, and others. */
enum subject {
	SUBJECT_FIELD,
	SUBJECT_TYPE,
	SUBJECT_FLAGS,
	SUBJECT_PREEMPT_COUNT,
	SUBJECT_PID,
	SUBJECT_CPU,
	SUBJECT_COMM,
};

/* The common fields of each event's `format` among them. */
static const struct {
	const char *name;
	enum subject subject;
} subjects[] = {
	{ "common_type", SUBJECT_TYPE },
	{ "common_flags", SUBJECT_FLAGS },
	{ "common_preempt_count", SUBJECT_PREEMPT_COUNT },
	{ "common_pid", SUBJECT_PID },
	{ "CPU", SUBJECT_CPU },
	{ "cpu", SUBJECT_CPU },
	{ "COMM", SUBJECT_COMM },
	{ "comm", SUBJECT_COMM },
};

enum operator{ OP_EQ, OP_NE, OP_LE, OP_GE, OP_LT, OP_GT, OP_BITS, OP_GLOB };

struct node {
	u8 kind;
	u8 left, right; /* of NODE_AND, NODE_OR, left of NODE_NOT */
	/* Of a test: */
	u8 subject, op;
	const struct event_field *field;
	s64 number;
	char *text; /* NULL: a number */
};

struct event_filter {
	char *text;
	unsigned int root, count;
	struct node node[FILTER_NODES];
};

struct parser {
	struct event_filter *filter;
	const struct event *event;
	const char *text, *p;
	const char *error;
	unsigned int at, depth;
};

static const char no_field[] = "Field not found";
static const char no_memory[] = ""; /* which is no mistake of the text's */

/* Note the first mistake, and where it is. -1. */
static int filter_wrong(struct parser *ps, const char *where, const char *error)
{
	if (!ps->error) {
		ps->error = error;
		ps->at = where - ps->text;
	}
	return -1;
}

static void skip_blanks(struct parser *ps)
{
	while (*ps->p == ' ' || *ps->p == '\t' || *ps->p == '\n')
		ps->p++;
}

static bool accept_word(struct parser *ps, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(ps);
	if (strncmp(ps->p, word, n))
		return false;
	ps->p += n;
	return true;
}

static int new_node(struct parser *ps, enum node_kind kind, int left, int right)
{
	struct event_filter *f = ps->filter;

	if (f->count == FILTER_NODES)
		return filter_wrong(ps, ps->p,
				    "Too many terms in predicate expression");
	f->node[f->count] =
		(struct node){ .kind = kind, .left = left, .right = right };
	return f->count++;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_';
}

static size_t field_name_length(const char *text)
{
	size_t n = 0;

	while (is_name_char(text[n]))
		n++;
	return n;
}

/* The field's name, which the node takes. */
static int parse_subject(struct parser *ps, struct node *node)
{
	const char *name = ps->p;
	size_t n = field_name_length(name), i = 0;

	ps->p += n;
	node->field = event_field_find(ps->event->fields, name, n);
	if (node->field)
		return 0;
	while (i < ARRAY_SIZE(subjects) && (strlen(subjects[i].name) != n ||
					    strncmp(name, subjects[i].name, n)))
		i++;
	if (i == ARRAY_SIZE(subjects))
		return filter_wrong(ps, name,
				    n ? no_field :
					"Meaningless filter expression");
	node->subject = subjects[i].subject;
	return 0;
}

static bool subject_is_text(const struct node *node)
{
	return node->subject == SUBJECT_COMM ||
	       (node->subject == SUBJECT_FIELD && event_is_text(node->field));
}

static int parse_operator(struct parser *ps, struct node *node)
{
	static const char *const words[] = {
		[OP_EQ] = "==",	 [OP_NE] = "!=",  [OP_LE] = "<=",
		[OP_GE] = ">=",	 [OP_LT] = "<",	  [OP_GT] = ">",
		[OP_BITS] = "&", [OP_GLOB] = "~",
	};
	const char *where;
	unsigned int i = 0;

	skip_blanks(ps);
	where = ps->p;
	/* "&&" is no operator of a test. */
	while (i < ARRAY_SIZE(words) &&
	       (!strncmp(where, "&&", 2) || !accept_word(ps, words[i])))
		i++;
	if (i == ARRAY_SIZE(words))
		return filter_wrong(ps, where, "Invalid operator");
	node->op = i;
	if (subject_is_text(node) ? i != OP_EQ && i != OP_NE && i != OP_GLOB :
				    i == OP_GLOB)
		return filter_wrong(ps, where,
				    "Illegal operation for field type");
	return 0;
}

static int take_text(struct parser *ps, struct node *node, const char *from,
		     size_t n)
{
	if (n >= FILTER_VALUE)
		return filter_wrong(ps, from, "Operand too long");
	node->text = kmalloc_zeroed(n + 1);
	if (!node->text)
		return filter_wrong(ps, from, no_memory);
	memcpy(node->text, from, n);
	return 0;
}

static int parse_text(struct parser *ps, struct node *node)
{
	const char *from = ps->p;
	char quote = *from == '"' || *from == '\'' ? *from : 0;
	size_t n = 0;

	if (!quote) {
		while (from[n] && !strchr(" \t\n)&|", from[n]))
			n++;
		ps->p = from + n;
		if (!n)
			return filter_wrong(
				ps, from,
				"Invalid value (did you forget quotes)?");
		return take_text(ps, node, from, n);
	}
	for (from++; from[n] && from[n] != quote; n++)
		;
	if (!from[n])
		return filter_wrong(ps, ps->p, "Missing matching quote");
	ps->p = from + n + 1;
	return take_text(ps, node, from, n);
}

static int parse_number(struct parser *ps, struct node *node)
{
	const char *from = ps->p;
	bool negative = *from == '-';
	size_t n = negative;
	char text[24];
	u64 v;

	while (is_name_char(from[n]))
		n++;
	string_copy(text, from + negative, min(n - negative + 1, sizeof(text)));
	if (text[0] < '0' || text[0] > '9')
		return filter_wrong(ps, from,
				    "Invalid value (did you forget quotes)?");
	if (n >= sizeof(text) || parse_in_base(text, 0, &v))
		return filter_wrong(ps, from, "Illegal integer value");
	node->number = negative ? -v : v;
	ps->p = from + n;
	return 0;
}

static int parse_test(struct parser *ps)
{
	int i = new_node(ps, NODE_TEST, 0, 0);
	struct node *node;

	if (i < 0)
		return -1;
	node = &ps->filter->node[i];
	if (parse_subject(ps, node) || parse_operator(ps, node))
		return -1;
	skip_blanks(ps);
	if (subject_is_text(node) ? parse_text(ps, node) :
				    parse_number(ps, node))
		return -1;
	return i;
}

static int parse_any(struct parser *ps);
static int parse_one(struct parser *ps);

static int parse_not(struct parser *ps)
{
	int inner;

	ps->p++;
	inner = parse_one(ps);
	return inner < 0 ? -1 : new_node(ps, NODE_NOT, inner, 0);
}

static int parse_group(struct parser *ps)
{
	const char *open = ps->p++;
	int inner = parse_any(ps);

	return inner < 0 || accept_word(ps, ")") ?
		       inner :
		       filter_wrong(ps, open, "Too many '('");
}

/* Each ( and ! takes a piece of the stack. */
static int parse_one(struct parser *ps)
{
	bool negated, group;
	int i;

	skip_blanks(ps);
	negated = *ps->p == '!' && ps->p[1] != '=';
	group = *ps->p == '(';
	if (!negated && !group)
		return parse_test(ps);
	if (ps->depth == FILTER_DEPTH)
		return filter_wrong(ps, ps->p,
				    group ? "Too many '('" : "Too many '!'");
	ps->depth++;
	i = group ? parse_group(ps) : parse_not(ps);
	ps->depth--;
	return i;
}

static int parse_all(struct parser *ps)
{
	int left = parse_one(ps), right;

	while (left >= 0 && accept_word(ps, "&&")) {
		right = parse_one(ps);
		left = right < 0 ? -1 : new_node(ps, NODE_AND, left, right);
	}
	return left;
}

static int parse_any(struct parser *ps)
{
	int left = parse_all(ps), right;

	while (left >= 0 && accept_word(ps, "||")) {
		right = parse_all(ps);
		left = right < 0 ? -1 : new_node(ps, NODE_OR, left, right);
	}
	return left;
}

int event_filter_refuse(const struct trace_instance *in, const char *text,
			const char *error, unsigned int at)
{
	if (!error)
		return -ENOMEM;
	/* Linux marks the character behind the name, and programs look for the mark. */
	if (error == no_field)
		at += field_name_length(text + at) + 1;
	error_log_add(in, text, error, at);
	return -EINVAL;
}

void event_filter_free(struct event_filter *f)
{
	if (!f)
		return;
	for (unsigned int i = 0; i < f->count; i++)
		kfree(f->node[i].text);
	kfree(f->text);
	kfree(f);
}

struct event_filter *event_filter_parse(const struct event *e, const char *text,
					const char **error, unsigned int *at)
{
	struct event_filter *f = kmalloc_zeroed(sizeof(*f));
	struct parser ps = { f, e, text, text, NULL, 0, 0 };
	int root = -1;

	if (f)
		f->text = kmalloc_zeroed(strlen(text) + 1);
	if (!f || !f->text) {
		filter_wrong(&ps, text, no_memory);
	} else {
		string_copy(f->text, text, strlen(text) + 1);
		root = parse_any(&ps);
		skip_blanks(&ps);
		if (root >= 0 && *ps.p)
			filter_wrong(&ps, ps.p,
				     *ps.p == ')' ? "Too few '('" :
						    "Invalid operator");
	}
	if (!ps.error) {
		f->root = root;
		return f;
	}
	event_filter_free(f);
	*error = ps.error == no_memory ? NULL : ps.error;
	*at = ps.at;
	return NULL;
}

const char *event_filter_text(const struct event_filter *f)
{
	return f->text;
}

/* Of a class, each try looks at all its characters: `event_filter.worst_time`. */
unsigned int event_filter_cost(const struct event_filter *f)
{
	unsigned int cost = f ? f->count * 100 : 0;

	for (unsigned int i = 0; f && i < f->count; i++)
		if (f->node[i].text)
			cost += strlen(f->node[i].text) *
				(strchr(f->node[i].text, '[') ? 600 : 60);
	return cost;
}

/* ---- Where the event happens ---------------------------------------------------------- */

static bool text_matches(const struct node *n, const char *value)
{
	if (n->op == OP_GLOB)
		return glob_match(n->text, value);
	return !strcmp(n->text, value) == (n->op == OP_EQ);
}

static bool number_matches(const struct node *n, s64 v, bool is_signed)
{
	switch (n->op) {
	case OP_EQ:
		return v == n->number;
	case OP_NE:
		return v != n->number;
	case OP_BITS:
		return v & n->number;
	case OP_LE:
		return is_signed ? v <= n->number : (u64)v <= (u64)n->number;
	case OP_GE:
		return is_signed ? v >= n->number : (u64)v >= (u64)n->number;
	case OP_LT:
		return is_signed ? v < n->number : (u64)v < (u64)n->number;
	default:
		return is_signed ? v > n->number : (u64)v > (u64)n->number;
	}
}

/* The place where the event happened, beside the record. */
static s64 common_number(const struct node *n, const struct event *e,
			 bool irqs_off)
{
	switch (n->subject) {
	case SUBJECT_TYPE:
		return e == &event_marker ? MARKER_ID : event_id(e);
	case SUBJECT_FLAGS:
		return event_common_flags(ring_context(irqs_off));
	case SUBJECT_PREEMPT_COUNT:
		return ring_context(irqs_off) & PREEMPT_DEPTH_MASK;
	case SUBJECT_PID:
		return arch_current()->pid;
	default:
		return arch_this_cpu()->head.index;
	}
}

/* A record that a filter is asked about. */
struct happened {
	const struct event *event;
	const void *record;
	bool irqs_off;
};

static bool test_matches(const struct node *n, const struct happened *h)
{
	const struct event_field *fields = h->event->fields;

	if (n->subject == SUBJECT_COMM)
		return text_matches(n, arch_current()->name);
	if (n->subject != SUBJECT_FIELD)
		return number_matches(
			n, common_number(n, h->event, h->irqs_off), true);
	if (n->text)
		return text_matches(n, event_text(fields, n->field, h->record));
	return number_matches(n, event_number(fields, n->field, h->record),
			      event_is_signed(n->field));
}

static bool node_matches(const struct event_filter *f, unsigned int i,
			 const struct happened *h)
{
	const struct node *n = &f->node[i];

	switch (n->kind) {
	case NODE_AND:
		return node_matches(f, n->left, h) &&
		       node_matches(f, n->right, h);
	case NODE_OR:
		return node_matches(f, n->left, h) ||
		       node_matches(f, n->right, h);
	case NODE_NOT:
		return !node_matches(f, n->left, h);
	default:
		return test_matches(n, h);
	}
}

bool event_filter_matches(const struct event_filter *f, const struct event *e,
			  const void *record, bool irqs_off)
{
	struct happened h = { e, record, irqs_off };

	return node_matches(f, f->root, &h);
}
