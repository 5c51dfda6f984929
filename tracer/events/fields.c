/* SPDX-License-Identifier: MIT */
/* Fields of events: places, values, and how they are shown. */
#include <tracer/events/fields.h>

#include <kernel/cpu/cpu.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/format.h>
#include <kernel/lib/string.h>
#include <tracer/base/stored.h>
#include <tracer/show/output.h>

/* The numbers of Linux's task states, and their letters. */
static const struct {
	unsigned int bit;
	char letter;
} states[] = { { 1, 'S' },    { 2, 'D' },    { 4, 'T' },    { 8, 't' },
	       { 0x10, 'X' }, { 0x20, 'Z' }, { 0x40, 'P' }, { 0x80, 'I' } };
#define STATE_PREEMPTED 0x100

#define IS_SIGNED 1
#define IS_TEXT 2

static const struct field_kind {
	const char *type, *suffix; /* as in a format file */
	u8 size, align, flags;
	const char *format; /* of the text, where the template names none */
	const char *value;  /* in a print fmt. %s is the field's name */
} field_kinds[EVENT_ALL_KINDS] = {
#define LONG STORED_LONGS(1)
	[EVENT_COMM] = { "char", "[16]", 16, 1, IS_TEXT, "%s", "REC->%s" },
	[EVENT_PID] = { "pid_t", "", 4, 4, IS_SIGNED, "%d", "REC->%s" },
	[EVENT_INT] = { "int", "", 4, 4, IS_SIGNED, "%d", "REC->%s" },
	[EVENT_USHORT] = { "unsigned short", "", 2, 2, 0, "%u", "REC->%s" },
	[EVENT_UINT] = { "unsigned int", "", 4, 4, 0, "%u", "REC->%s" },
	[EVENT_BOOL] = { "bool", "", 1, 1, 0, "%s",
			 "REC->%s ? \"true\" : \"false\"" },
	[EVENT_HANDLED] = { "int", "", 4, 4, IS_SIGNED, "%s",
			    "REC->%s ? \"handled\" : \"unhandled\"" },
	[EVENT_STATE] = { "long", "", LONG, LONG, IS_SIGNED, "%s%s", NULL },
	[EVENT_ULONG] = { "unsigned long", "", LONG, LONG, 0, "%lu",
			  "REC->%s" },
	[EVENT_SIZE] = { "size_t", "", LONG, LONG, 0, "%zu", "REC->%s" },
	[EVENT_POINTER] = { "void *", "", LONG, LONG, 0, "%p", "REC->%s" },
	[EVENT_CPOINTER] = { "const void *", "", LONG, LONG, 0, "%p",
			     "REC->%s" },
	[EVENT_FUNCTION] = { "void *", "", LONG, LONG, 0, "%ps", "REC->%s" },
	[EVENT_CALLER] = { "unsigned long", "", LONG, LONG, 0, "%pS",
			   "(void *)REC->%s" },
	[EVENT_REASON] = { "const char *", "", LONG, LONG, IS_TEXT, "%s",
			   "REC->%s" },
	[EVENT_STRING] = { "__data_loc char[]", "", 4, 4, IS_TEXT, "%s",
			   "__get_str(%s)" },
	[EVENT_CPUS] = { "__data_loc unsigned long[]", "", 4, 4, 0, "%s",
			 "__get_bitmask(%s)" },
	[EVENT_UCHAR] = { "unsigned char", "", 1, 1, 0, "%u", "REC->%s" },
	[EVENT_U64] = { "unsigned long long", "", 8, 8, 0, "%llx", "REC->%s" },
	[EVENT_CALLERS] = { "unsigned long", "[8]", STORED_LONGS(8), LONG, 0,
			    "%ps", NULL },
	[EVENT_BYTES] = { "char", "[]", 0, 1, 0, "%08x", NULL },
	[EVENT_TEXT] = { "char", "[]", 0, 1, IS_TEXT, "%s", "REC->%s" },
};

struct event_place event_place(const struct event_field *fields,
			       const struct event_field *f)
{
	unsigned int at = 0;
	const struct field_kind *k;

	for (;; fields++) {
		k = &field_kinds[fields->kind];
		at = ALIGN_UP(at, (unsigned int)STORED_SIZE(k->align));
		if (fields == f)
			return (struct event_place){ at, STORED_SIZE(k->size),
						     STORED_SIZE(k->align) };
		at += STORED_SIZE(k->size);
	}
}

const struct event_field *event_field_find(const struct event_field *fields,
					   const char *name, size_t len)
{
	for (; fields->name; fields++)
		if (strlen(fields->name) == len &&
		    !strncmp(fields->name, name, len))
			return fields;
	return NULL;
}

bool event_is_text(const struct event_field *f)
{
	return field_kinds[f->kind].flags & IS_TEXT;
}

bool event_is_signed(const struct event_field *f)
{
	return field_kinds[f->kind].flags & IS_SIGNED;
}

/* A record has the alignment of its slots, which is 4. */
static u64 read_number(const char *p, unsigned int size)
{
	u64 v = 0;
	unsigned int i;

	for (i = 0; i < size; i++)
		v |= (u64)(u8)p[STORED_BIG_ENDIAN ? size - 1 - i : i] << 8 * i;
	return v;
}

/* The value behind the fields that a word of a record leads to. */
static const char *far_value(const void *record, u32 word)
{
	return (const char *)record + (word & 0xffff) - EVENT_COMMON;
}

s64 event_number(const struct event_field *fields, const struct event_field *f,
		 const void *record)
{
	struct event_place at = event_place(fields, f);
	u64 v = read_number((const char *)record + at.offset, at.size);

	if (f->kind == EVENT_CPUS)
		return read_number(far_value(record, v), STORED_LONG);
	if (event_is_signed(f) && at.size == 4)
		return (s32)v;
	return v;
}

const char *event_text(const struct event_field *fields,
		       const struct event_field *f, const void *record)
{
	struct event_place at = event_place(fields, f);
	const char *p = (const char *)record + at.offset;

	switch (f->kind) {
	case EVENT_REASON:
		return stored_text(read_number(p, at.size));
	case EVENT_STRING:
		return far_value(record, read_number(p, at.size));
	default:
		return p;
	}
}

/* ---- A record as text ------------------------------------------------------------ */

static void show_state(struct seq *s, unsigned long state)
{
	bool any = false;

	for (unsigned int i = 0; i < ARRAY_SIZE(states); i++)
		if (state & states[i].bit) {
			seq_printf(s, any ? "|%c" : "%c", states[i].letter);
			any = true;
		}
	if (!any)
		seq_printf(s, "R");
	if (state & STATE_PREEMPTED)
		seq_printf(s, "+");
}

static void show_field(struct seq *s, const struct event_field *fields,
		       const struct event_field *f, const void *record)
{
	unsigned long v;

	if (event_is_text(f)) {
		seq_printf(s, "%s", event_text(fields, f, record));
		return;
	}
	v = event_number(fields, f, record);
	switch (f->kind) {
	case EVENT_BOOL:
		seq_printf(s, v ? "true" : "false");
		break;
	case EVENT_HANDLED:
		seq_printf(s, v ? "handled" : "unhandled");
		break;
	case EVENT_STATE:
		show_state(s, v);
		break;
	case EVENT_FUNCTION:
		trace_function(s, v, v);
		break;
	case EVENT_CALLER:
		seq_printf(s, "%pS", (void *)v);
		break;
	case EVENT_POINTER:
	case EVENT_CPOINTER:
		seq_printf(s, "%p", (void *)v);
		break;
	case EVENT_CPUS:
		/* As wide as the CPUs that there are: Linux's bitmask. */
		seq_printf(s, "%0*lx", (int)(nr_cpus + 3) / 4, v);
		break;
	case EVENT_PID:
	case EVENT_INT:
		seq_printf(s, "%d", (int)v);
		break;
	default:
		seq_printf(s, "%lu", v);
	}
}

/* The formats that templates name. */
static void show_as(struct seq *s, const char *format, size_t len, s64 v)
{
	static const char *const known[] = { "%03d", "%03u", "%lx", "0x%lx",
					     "%ld" };
	unsigned int i = 0;

	while (i < ARRAY_SIZE(known) - 1 &&
	       (strncmp(known[i], format, len) || known[i][len]))
		i++;
	if (i < 2)
		seq_printf(s, "%03d", (int)v);
	else if (i == 4)
		seq_printf(s, "%ld", stored_long(v));
	else
		seq_printf(s, i == 2 ? "%lx" : "0x%lx", (unsigned long)v);
}

/* One {...} of a template. */
struct piece {
	const struct event_field *field, *less; /* less: subtracted from it */
	const char *format;			/* NULL: the kind's own */
	size_t format_len;
	char index;	 /* of EVENT_CALLERS, EVENT_BYTES: a digit */
	const char *end; /* behind it */
};

static size_t name_length(const char *p)
{
	size_t n = 0;

	while (p[n] && !strchr("}:-[", p[n]))
		n++;
	return n;
}

static struct piece read_piece(const struct event_field *fields, const char *p)
{
	struct piece piece = { 0 };
	size_t n = name_length(++p);

	piece.field = event_field_find(fields, p, n);
	p += n;
	if (*p == '[') {
		piece.index = p[1];
		p += 3;
	}
	if (*p == '-') {
		n = name_length(++p);
		piece.less = event_field_find(fields, p, n);
		p += n;
	}
	if (*p == ':') {
		piece.format = ++p;
		while (*p != '}')
			p++;
		piece.format_len = p - piece.format;
	}
	piece.end = p + 1;
	return piece;
}

void event_show(struct seq *s, const struct event_field *fields,
		const char *text, const void *record)
{
	struct piece piece;
	size_t n;

	while (*text) {
		for (n = 0; text[n] && text[n] != '{'; n++)
			;
		seq_printf(s, "%.*s", (int)n, text);
		text += n;
		if (!*text)
			return;
		piece = read_piece(fields, text);
		text = piece.end;
		if (!piece.format) {
			show_field(s, fields, piece.field, record);
			continue;
		}
		show_as(s, piece.format, piece.format_len,
			event_number(fields, piece.field, record) -
				(piece.less ? event_number(fields, piece.less,
							   record) :
					      0));
	}
}

/* ---- A format file ------------------------------------------------------------------ */

void event_show_field(struct seq *s, const struct event_field *fields,
		      const struct event_field *f)
{
	const struct field_kind *k = &field_kinds[f->kind];
	struct event_place at = event_place(fields, f);

	seq_printf(s, "\tfield:%s %s%s;\toffset:%u;\tsize:%u;\tsigned:%u;\n",
		   k->type, f->name, k->suffix, EVENT_COMMON + at.offset,
		   at.size, k->flags & IS_SIGNED);
}

static void show_state_value(struct seq *s, const char *name)
{
	seq_printf(s,
		   ", (REC->%s & 0xff) ? __print_flags(REC->%s & 0xff, \"|\"",
		   name, name);
	for (unsigned int i = 0; i < ARRAY_SIZE(states); i++)
		seq_printf(s, ", { %#x, \"%c\" }", states[i].bit,
			   states[i].letter);
	seq_printf(s, ") : \"R\", REC->%s & %#x ? \"+\" : \"\"", name,
		   STATE_PREEMPTED);
}

static void show_value(struct seq *s, const struct piece *p)
{
	if (p->field->kind == EVENT_STATE) {
		show_state_value(s, p->field->name);
		return;
	}
	seq_printf(s, ", ");
	if (p->field->kind == EVENT_BYTES) {
		seq_printf(s, "(int)REC->%s[%c]", p->field->name, p->index);
		return;
	}
	if (p->field->kind == EVENT_CALLERS) {
		seq_printf(s, "(void *)REC->%s[%c]", p->field->name, p->index);
		return;
	}
	if (p->less) {
		seq_printf(s, "REC->%s - REC->%s", p->field->name,
			   p->less->name);
		return;
	}
	for (const char *v = field_kinds[p->field->kind].value; *v; v++)
		if (v[0] == '%' && v[1] == 's') {
			seq_printf(s, "%s", p->field->name);
			v++;
		} else {
			seq_printf(s, "%c", *v);
		}
}

void event_show_format(struct seq *s, const struct event_field *fields,
		       const char *text)
{
	struct piece piece;
	const char *p;

	seq_printf(s, "\nprint fmt: \"");
	for (p = text; *p;) {
		if (*p != '{') {
			seq_printf(s, "%c", *p++);
			continue;
		}
		piece = read_piece(fields, p);
		if (piece.format)
			seq_printf(s, "%.*s", (int)piece.format_len,
				   piece.format);
		else
			seq_printf(s, "%s",
				   field_kinds[piece.field->kind].format);
		p = piece.end;
	}
	seq_printf(s, "\"");
	for (p = text; *p;) {
		if (*p != '{') {
			p++;
			continue;
		}
		piece = read_piece(fields, p);
		show_value(s, &piece);
		p = piece.end;
	}
	seq_printf(s, "\n");
}
