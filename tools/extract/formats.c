/* SPDX-License-Identifier: MIT */
/* Events of the kernel: their fields, and their records as text (tracer/events/fields.h). */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#define COMMON 8 /* bytes before a record: Linux's common fields */

/* How the kernel describes a kind of fields: its table field_kinds. */
struct kind_text {
	const char *type, *suffix, *format, *value;
	u32 size, align, flags;
};
#define IS_SIGNED 1
#define IS_TEXT 2

static struct kind_text kinds[64];
static unsigned int nr_kinds;

/* Kinds whose text is not just a number: the kernel's numbers of them. */
static s64 kind_state, kind_bool, kind_handled, kind_function, kind_caller,
	kind_pointer, kind_cpointer, kind_cpus, kind_pid, kind_int,
	kind_callers, kind_reason, kind_string, kind_bytes;

static void read_kinds(const struct trace *t)
{
	u64 at = guest_symbol(t->g, "fields.c", "field_kinds");
	u64 size = guest_size(t->g, "field_kind");
	static const struct {
		const char *name;
		s64 *value;
	} names[] = {
		{ "EVENT_STATE", &kind_state },
		{ "EVENT_BOOL", &kind_bool },
		{ "EVENT_HANDLED", &kind_handled },
		{ "EVENT_FUNCTION", &kind_function },
		{ "EVENT_CALLER", &kind_caller },
		{ "EVENT_POINTER", &kind_pointer },
		{ "EVENT_CPOINTER", &kind_cpointer },
		{ "EVENT_CPUS", &kind_cpus },
		{ "EVENT_PID", &kind_pid },
		{ "EVENT_INT", &kind_int },
		{ "EVENT_CALLERS", &kind_callers },
		{ "EVENT_REASON", &kind_reason },
		{ "EVENT_STRING", &kind_string },
		{ "EVENT_BYTES", &kind_bytes },
	};

	nr_kinds = guest_enumerator(t->g, "event_kind", "EVENT_ALL_KINDS");
	if (nr_kinds > sizeof(kinds) / sizeof(kinds[0]))
		errx(1, "%s: it has %u kinds of fields", t->g->im.path,
		     nr_kinds);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		*names[i].value =
			guest_enumerator(t->g, "event_kind", names[i].name);
	for (unsigned int i = 0; i < nr_kinds; i++, at += size) {
#define MEMBER(name) guest_get(t->g, at, "field_kind", #name)
#define TEXT(name) guest_text(t->g, MEMBER(name))
		kinds[i] = (struct kind_text){
			TEXT(type),   TEXT(suffix),  TEXT(format),  TEXT(value),
			MEMBER(size), MEMBER(align), MEMBER(flags),
		};
		if (!kinds[i].align)
			kinds[i].align = 1;
	}
}

static void read_fields(const struct trace *t, struct event *e, u64 at)
{
	u64 size = guest_size(t->g, "event_field"), name;
	u32 place = 0, kind;

	for (; e->nr_fields < 16; at += size) {
		name = guest_get(t->g, at, "event_field", "name");
		kind = guest_get(t->g, at, "event_field", "kind");
		if (!name)
			return;
		if (kind >= nr_kinds)
			errx(1, "event %s has a field of the unknown kind %u",
			     e->name, kind);
		place = (place + kinds[kind].align - 1) & -kinds[kind].align;
		e->fields[e->nr_fields++] =
			(struct field){ guest_text(t->g, name), kind, place,
					kinds[kind].size };
		place += kinds[kind].size;
	}
}

static struct event *more_events(struct event *events, unsigned int n)
{
	events = realloc(events, (n + 1) * sizeof(*events));
	if (!events)
		errx(1, "out of memory");
	events[n] = (struct event){ 0 };
	return events;
}

static void read_events(struct trace *t)
{
	u64 at = guest_symbol(t->g, NULL, "__start_events");
	u64 end = guest_symbol(t->g, NULL, "__stop_events");
	u64 size = guest_size(t->g, "event");
	struct event *e;

#undef MEMBER
#define MEMBER(name) guest_get(t->g, at, "event", #name)
	for (; at < end; at += size) {
		t->events = more_events(t->events, t->nr_events);
		e = &t->events[t->nr_events];
		e->id = 32 + t->nr_events++;
		e->system = TEXT(system);
		e->name = TEXT(name);
		e->text = TEXT(text);
		read_fields(t, e, MEMBER(fields));
	}
}

/* Linux's own entries, as the kernel describes them: tracer/events/files_format.c. */
static void read_own(struct trace *t)
{
	u64 at = guest_symbol(t->g, "files_format.c", "own_formats");
	u64 size = guest_size(t->g, "own_format");
	struct event *e;

#undef MEMBER
#define MEMBER(name) guest_get(t->g, at, "own_format", #name)
	/* The table ends where a word is no entry of it any more. */
	for (; !strncmp(TEXT(path), "ftrace/", 7) && t->nr_own < 16;
	     at += size) {
		t->own = more_events(t->own, t->nr_own);
		e = &t->own[t->nr_own++];
		e->system = "ftrace";
		e->id = MEMBER(id);
		e->name = TEXT(name);
		e->text = TEXT(text);
		read_fields(t, e,
			    at + guest_member(t->g, "own_format", "fields").at);
	}
}

void formats_read(struct trace *t)
{
	read_kinds(t);
	read_events(t);
	read_own(t);
}

const struct event *trace_event(const struct trace *t, u32 id)
{
	for (unsigned int i = 0; i < t->nr_own; i++)
		if (t->own[i].id == id)
			return &t->own[i];
	return id - 32 < t->nr_events ? &t->events[id - 32] : NULL;
}

void for_each_word(const struct trace *t,
		   void (*fn)(u64 addr, const char *text, FILE *f), FILE *f)
{
	u64 at = guest_symbol(t->g, NULL, "__start_event_words"), name;
	u64 end = guest_symbol(t->g, NULL, "__stop_event_words");

	for (; at < end; at += t->g->im.pointer_size) {
		name = guest_pointer(t->g, at);
		fn(name, guest_text(t->g, name), f);
	}
	at = guest_symbol(t->g, NULL, "__start_patch_strategies");
	end = guest_symbol(t->g, NULL, "__stop_patch_strategies");
	for (; at < end; at += guest_size(t->g, "patch_strategy")) {
		name = guest_get(t->g, at, "patch_strategy", "name");
		fn(name, guest_text(t->g, name), f);
	}
}

/* ---- Templates ------------------------------------------------------------------- */

/* One {...} of a template: {field}, {field:%x}, {field-less:%d}, {field[1]}. */
struct piece {
	const struct field *field, *less;
	char format[16]; /* "": the kind's own */
	char index;
};

static const struct field *find_field(const struct event *e, const char *name,
				      size_t len)
{
	for (unsigned int i = 0; i < e->nr_fields; i++)
		if (strlen(e->fields[i].name) == len &&
		    !strncmp(e->fields[i].name, name, len))
			return &e->fields[i];
	errx(1, "event %s has no field '%.*s'", e->name, (int)len, name);
}

/* Read the piece at *text, and go behind it. */
static struct piece read_piece(const struct event *e, const char **text)
{
	struct piece piece = { 0 };
	const char *p = *text + 1;
	size_t n = strcspn(p, "}:-[");

	if (!strchr(p, '}'))
		errx(1, "event %s: its text '%s' makes no sense", e->name,
		     e->text);
	piece.field = find_field(e, p, n);
	p += n;
	if (*p == '[') {
		if (strncmp(p + 2, "]", 1) || !strchr(p + 3, '}'))
			errx(1, "event %s: its text '%s' makes no sense",
			     e->name, e->text);
		piece.index = p[1];
		p += 3;
	}
	if (*p == '-') {
		n = strcspn(++p, "}:");
		piece.less = find_field(e, p, n);
		p += n;
	}
	n = strcspn(p, "}");
	if (n && *p == ':')
		snprintf(piece.format, sizeof(piece.format), "%.*s", (int)n - 1,
			 p + 1);
	*text = p + n + 1;
	return piece;
}

/* ---- Records --------------------------------------------------------------------- */

/* The numbers of Linux's task states, and their letters. */
static const struct {
	unsigned int bit;
	char letter;
} states[] = { { 1, 'S' },    { 2, 'D' },    { 4, 'T' },    { 8, 't' },
	       { 0x10, 'X' }, { 0x20, 'Z' }, { 0x40, 'P' }, { 0x80, 'I' } };
#define NR_STATES (sizeof(states) / sizeof(states[0]))
#define STATE_PREEMPTED 0x100

struct record {
	const struct trace *t;
	const uint8_t *bytes;
	u32 len;
};

static u64 number_at(const struct record *r, u32 at, u32 size)
{
	if (at > r->len || r->len - at < size || size > 8)
		return 0;
	return image_number(&r->t->g->im, r->bytes + at, size);
}

static s64 number_of(const struct record *r, const struct field *f)
{
	u64 v = number_at(r, f->at, f->size);

	if (f->kind == kind_cpus)
		return number_at(r, (v & 0xffff) - COMMON,
				 r->t->g->im.pointer_size);
	if (kinds[f->kind].flags & IS_SIGNED && f->size == 4)
		return (s32)v;
	return v;
}

static void put_words(const struct record *r, const struct field *f, FILE *out)
{
	u32 at = f->at, room;

	if (f->kind == kind_reason) {
		fputs(guest_text(r->t->g, number_at(r, at, f->size)), out);
		return;
	}
	if (f->kind == kind_string)
		at = (number_at(r, at, 4) & 0xffff) - COMMON;
	room = at < r->len ? r->len - at : 0;
	fprintf(out, "%.*s",
		(int)(f->size > 4 && f->size < room ? f->size : room),
		at < r->len ? (const char *)r->bytes + at : "");
}

static void put_state(u64 state, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < NR_STATES; i++)
		if (state & states[i].bit) {
			fprintf(out, any ? "|%c" : "%c", states[i].letter);
			any = true;
		}
	fputs(any ? "" : "R", out);
	fputs(state & STATE_PREEMPTED ? "+" : "", out);
}

static void put_caller(const struct guest *g, u64 addr, FILE *out)
{
	const struct symbol *s = image_symbol_at(&g->im, addr);

	if (s)
		fprintf(out, "%.64s+0x%llx/0x%llx", s->name,
			(unsigned long long)(addr - s->addr),
			(unsigned long long)s->size);
	else
		fprintf(out, "0x%llx", (unsigned long long)addr);
}

static void put_field(const struct record *r, const struct field *f, FILE *out)
{
	unsigned int kind = f->kind;
	s64 v;

	if (kinds[kind].flags & IS_TEXT) {
		put_words(r, f, out);
		return;
	}
	v = number_of(r, f);
	if (kind == kind_bool)
		fputs(v ? "true" : "false", out);
	else if (kind == kind_handled)
		fputs(v ? "handled" : "unhandled", out);
	else if (kind == kind_state)
		put_state(v, out);
	else if (kind == kind_function)
		put_function(r->t, v, v, out);
	else if (kind == kind_caller)
		put_caller(r->t->g, v, out);
	else if (kind == kind_pointer || kind == kind_cpointer)
		fprintf(out, "%#llx", (unsigned long long)v);
	else if (kind == kind_cpus)
		fprintf(out, "%0*llx", (int)(r->t->nr_cpus + 3) / 4,
			(unsigned long long)v);
	else if (kind == kind_pid || kind == kind_int)
		fprintf(out, "%d", (int)v);
	else
		fprintf(out, "%llu", (unsigned long long)v);
}

static void put_as(const struct trace *t, const char *format, s64 v, FILE *out)
{
	bool is_long = t->g->im.pointer_size == 8;
	unsigned long long u = is_long ? (u64)v : (u32)v;

	if (!strcmp(format, "%03d") || !strcmp(format, "%03u"))
		fprintf(out, "%03d", (int)v);
	else if (!strcmp(format, "%ld"))
		fprintf(out, "%lld", is_long ? (long long)v : (s32)v);
	else
		fprintf(out, strcmp(format, "%lx") ? "0x%llx" : "%llx", u);
}

void event_text(const struct trace *t, const struct event *e,
		const uint8_t *record, u32 len, FILE *f)
{
	struct record r = { t, record, len };
	const char *p = e->text;
	struct piece piece;

	while (*p) {
		if (*p != '{') {
			fputc(*p++, f);
			continue;
		}
		piece = read_piece(e, &p);
		if (!piece.format[0])
			put_field(&r, piece.field, f);
		else
			put_as(t, piece.format,
			       number_of(&r, piece.field) -
				       (piece.less ? number_of(&r, piece.less) :
						     0),
			       f);
	}
}

/* ---- Format files ---------------------------------------------------------------- */

static const char common[] =
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"
	"\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

static void put_value(const struct piece *p, FILE *f)
{
	const char *name = p->field->name, *v = kinds[p->field->kind].value;

	if (p->field->kind == kind_state) {
		fprintf(f,
			", (REC->%s & 0xff) ? __print_flags(REC->%s & 0xff, "
			"\"|\"",
			name, name);
		for (size_t i = 0; i < NR_STATES; i++)
			fprintf(f, ", { %#x, \"%c\" }", states[i].bit,
				states[i].letter);
		fprintf(f, ") : \"R\", REC->%s & %#x ? \"+\" : \"\"", name,
			STATE_PREEMPTED);
	} else if (p->field->kind == kind_bytes) {
		fprintf(f, ", (int)REC->%s[%c]", name, p->index);
	} else if (p->field->kind == kind_callers) {
		fprintf(f, ", (void *)REC->%s[%c]", name, p->index);
	} else if (p->less) {
		fprintf(f, ", REC->%s - REC->%s", name, p->less->name);
	} else {
		/* `value` has one %s, for the name. */
		fprintf(f, ", %.*s%s%s", (int)strcspn(v, "%"), v, name,
			strstr(v, "%s") ? strstr(v, "%s") + 2 : "");
	}
}

void event_format(const struct trace *t, const struct event *e, FILE *f)
{
	const char *p;
	struct piece piece;

	(void)t;
	fprintf(f, "name: %s\nID: %u\nformat:\n%s", e->name, e->id, common);
	for (unsigned int i = 0; i < e->nr_fields; i++) {
		const struct field *field = &e->fields[i];
		const struct kind_text *k = &kinds[field->kind];

		fprintf(f,
			"\tfield:%s %s%s;\toffset:%u;\tsize:%u;\tsigned:%u;\n",
			k->type, field->name, k->suffix, COMMON + field->at,
			field->size, k->flags & IS_SIGNED);
	}
	fprintf(f, "\nprint fmt: \"");
	for (p = e->text; *p;)
		if (*p == '{') {
			piece = read_piece(e, &p);
			fputs(piece.format[0] ? piece.format :
						kinds[piece.field->kind].format,
			      f);
		} else {
			fputc(*p++, f);
		}
	fprintf(f, "\"");
	for (p = e->text; *p;)
		if (*p == '{') {
			piece = read_piece(e, &p);
			put_value(&piece, f);
		} else {
			p++;
		}
	fprintf(f, "\n");
}
