/* SPDX-License-Identifier: MIT */
/*
 * The trace as trace.dat, version 6, for trace-cmd and KernelShark (trace-cmd.dat.v6(5)). Its
 * pages are those of Linux's ring buffer, as trace_pipe_raw gives them.
 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of Linux's own entries. */
enum {
	RAW_FUNCTION = 1,
	RAW_STACK = 4,
	RAW_PRINT = 5,
	RAW_RETURN = 10,
	RAW_CALL = 11,
	RAW_DATA_ENTRY = 18,
	RAW_REPEATS = 19
};

/* Of the file's options. */
enum { OPTION_DONE = 0, OPTION_CLOCK = 4 };

#define TYPE_EXTEND 30
#define TYPE_MAX 28 /* words. A longer entry has its length in the next word */
#define DELTA_BITS 27
#define LOST_FLAG (1u << 31)
#define LOST_COUNT (1u << 30)
#define STACK_CALLERS 8

/* Bytes that are being made, in the guest's byte order. */
struct bytes {
	const struct trace *t;
	uint8_t data[PAGE_BYTES];
	u32 len;
};

static void put(struct bytes *b, u64 v, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		b->data[b->len + i] =
			v >> 8 * (b->t->g->im.big_endian ? n - 1 - i : i);
	b->len += n;
}

static void put_bytes(struct bytes *b, const void *from, u32 len)
{
	memcpy(b->data + b->len, from, len);
	b->len += len;
}

static void write_number(const struct trace *t, u64 v, unsigned int n, FILE *f)
{
	struct bytes b = { .t = t };

	put(&b, v, n);
	fwrite(b.data, n, 1, f);
}

/* ---- Entries --------------------------------------------------------------------- */

static void begin(struct bytes *b, const struct trace_entry *e, u32 type)
{
	u32 c = e->context;

	b->len = 0;
	put(b, type, 2);
	put(b,
	    (c & RING_CONTEXT_IRQS_OFF ? 1 : 0) |
		    (c & PREEMPT_RESCHED ? 4 : 0) |
		    (c & PREEMPT_IRQ_MASK ? 8 : 0) |
		    (c & PREEMPT_NMI ? 0x40 : 0),
	    1);
	put(b, c & PREEMPT_DEPTH_MASK, 1);
	put(b, (u32)e->pid, 4);
}

/* Programs name an address by the function that it lies in: tracer/show/raw.c. */
static u64 nameable(const struct image *im, u64 ret)
{
	const struct symbol *s = image_symbol_at(im, ret);

	return s && s->addr == ret ? ret - 1 : ret;
}

static void encode_stack(struct bytes *b, const struct trace_entry *e)
{
	const struct image *im = &b->t->g->im;
	u32 n = e->len / 4, size = im->pointer_size;

	n = n < STACK_CALLERS ? n : STACK_CALLERS;
	put(b, n, 4);
	put(b, 0, size - 4); /* a long is aligned */
	for (u32 i = 0; i < STACK_CALLERS; i++)
		put(b,
		    i < n ? nameable(im,
				     im->text + image_number(im,
							     e->bytes + 4 * i,
							     4)) :
			    0,
		    size);
}

static void encode_return(struct bytes *b, const struct trace_entry *e)
{
	put(b, e->depth, 4);
	put(b, e->missed, 4);
	while (b->len % 8) /* a u64 is aligned */
		put(b, 0, 4);
	put(b, trace_ns(b->t, e->clock - e->ticks), 8);
	put(b, e->ns, 8);
}

static void encode_call(struct bytes *b, const struct trace_entry *e)
{
	u64 since =
		trace_stamp(b->t, trace_when(e)) - trace_stamp(b->t, e->last);

	put(b, nameable(&b->t->g->im, e->parent), b->t->g->im.pointer_size);
	if (!e->repeats)
		return;
	put(b, e->repeats, 2);
	put(b, since >> 32, 2);
	put(b, since, 4);
}

/* Its writer's address, as in the guest's own pages: programs show the function's name. */
static u64 marker_ip(const struct trace *t)
{
	u64 ip = 0;

	image_value(&t->g->im, "tracing_mark_write", &ip);
	return ip;
}

static void encode(struct bytes *b, const struct trace_entry *e)
{
	static const u32 types[] = {
		[GRAPH_ENTRY] = RAW_CALL, [GRAPH_RETURN] = RAW_RETURN,
		[MARKER] = RAW_PRINT,	  [RAW] = RAW_DATA_ENTRY,
		[STACK] = RAW_STACK,	  [CALL] = RAW_FUNCTION
	};
	u32 size = b->t->g->im.pointer_size;

	begin(b, e,
	      e->kind == EVENT ? e->id :
	      e->repeats       ? RAW_REPEATS :
				 types[e->kind]);
	if (e->kind == CALL || e->kind == GRAPH_ENTRY ||
	    e->kind == GRAPH_RETURN)
		put(b, e->ip, size);
	if (e->kind == CALL) {
		encode_call(b, e);
	} else if (e->kind == GRAPH_ENTRY) {
		put(b, e->depth, 4);
	} else if (e->kind == GRAPH_RETURN) {
		encode_return(b, e);
	} else if (e->kind == MARKER) {
		put(b, marker_ip(b->t), size);
		put_bytes(b, e->bytes, e->len);
		put_bytes(b, "\n", 2);
	} else if (e->kind == STACK) {
		encode_stack(b, e);
	} else {
		put_bytes(b, e->bytes, e->len);
	}
	while (b->len % 4)
		put(b, 0, 1);
}

/* ---- Pages ----------------------------------------------------------------------- */

static void put_head(struct bytes *page, u32 type, u64 delta)
{
	u32 low = delta & ((1u << DELTA_BITS) - 1);

	put(page,
	    page->t->g->im.big_endian ? type << DELTA_BITS | low :
					type | low << 5,
	    4);
}

static void put_entry(struct bytes *page, const struct bytes *b, u64 delta)
{
	bool is_long = b->len > 4 * TYPE_MAX;

	if (delta >> DELTA_BITS) {
		put_head(page, TYPE_EXTEND, delta);
		put(page, delta >> DELTA_BITS, 4);
		delta = 0;
	}
	put_head(page, is_long ? 0 : b->len / 4, delta);
	if (is_long)
		put(page, b->len + 4, 4); /* counts itself */
	put_bytes(page, b->data, b->len);
}

/* A page's head: the time of its first entry, and how much of it is used. */
static void write_page(struct bytes *page, u64 time, u64 lost, FILE *f)
{
	u32 size = page->t->g->im.pointer_size, used = page->len - 8 - size;

	if (lost)
		put(page, lost, size);
	memset(page->data + page->len, 0, PAGE_BYTES - page->len);
	page->len = 0;
	put(page, time, 8);
	put(page, used | (lost ? LOST_FLAG | LOST_COUNT : 0), size);
	fwrite(page->data, PAGE_BYTES, 1, f);
}

/* The pages of one CPU. */
static void write_cpu(struct trace *t, struct cursor *c, FILE *f)
{
	static struct bytes page, b;
	u32 head = 8 + t->g->im.pointer_size, need;
	u64 first = 0, last = 0, lost = 0, delta, now;
	const struct trace_entry *e;

	page.t = b.t = t;
	page.len = head;
	while ((e = cursor_next(t, c))) {
		if (e->kind == UNKNOWN)
			continue;
		encode(&b, e);
		now = trace_stamp(t, trace_when(e));
		delta = page.len == head ? 0 : now - last;
		need = b.len + (b.len > 4 * TYPE_MAX ? 8 : 4) +
		       (delta >> DELTA_BITS ? 8 : 0);
		/* A page's beginning says how many events were lost. */
		if (page.len > head &&
		    (page.len + need + (lost ? head - 8 : 0) > PAGE_BYTES ||
		     e->lost)) {
			write_page(&page, first, lost, f);
			page.len = head;
			lost = delta = 0;
		}
		lost += e->lost + e->overwritten;
		if (page.len == head)
			first = now;
		put_entry(&page, &b, delta);
		last = now;
	}
	if (page.len > head)
		write_page(&page, first, lost, f);
}

/* ---- The head of the file -------------------------------------------------------- */

/* A part that begins with its size: fn writes it, and the size has n bytes. */
static void write_part(const struct trace *t, unsigned int n, FILE *f,
		       void (*fn)(const struct trace *t, const void *arg,
				  FILE *f),
		       const void *arg)
{
	char *text = NULL;
	size_t len = 0;
	FILE *part = open_memstream(&text, &len);

	if (!part)
		errx(1, "out of memory");
	fn(t, arg, part);
	fclose(part);
	write_number(t, len, n, f);
	fwrite(text, len, 1, f);
	free(text);
}

static void header(const struct trace *t, const void *arg, FILE *f)
{
	struct seq s = { 0 };

	(void)t;
	if (arg)
		format_header_page(NULL, &s);
	else
		format_header_event(NULL, &s);
	fwrite(s.buf, s.len, 1, f);
}

static void format(const struct trace *t, const void *arg, FILE *f)
{
	event_format(t, arg, f);
}

static void symbols(const struct trace *t, const void *arg, FILE *f)
{
	const struct image *im = &t->g->im;

	(void)arg;
	for (size_t i = 0; i < im->nr_symbols; i++)
		fprintf(f, "%016llx T %s\n",
			(unsigned long long)im->symbols[i].addr,
			im->symbols[i].name);
	/* trace-cmd finds no function that is the last one. */
	fprintf(f, "%016llx T _etext\n", (unsigned long long)im->etext);
}

static void put_word(u64 addr, const char *text, FILE *f)
{
	fprintf(f, "0x%llx : \"%s\"\n", (unsigned long long)addr, text);
}

static void words(const struct trace *t, const void *arg, FILE *f)
{
	(void)arg;
	for_each_word(t, put_word, f);
}

static void names(const struct trace *t, const void *arg, FILE *f)
{
	const char *name;
	s32 pid;

	(void)arg;
	for (unsigned int i = 0; (name = trace_saved(t, i, &pid)); i++)
		if (pid)
			fprintf(f, "%d %s\n", pid, name);
}

/* The events, a system at a time. They stand together in the kernel's list. */
static void write_systems(const struct trace *t, FILE *f)
{
	const struct event *e, *next, *first = t->events + t->nr_own;
	const struct event *end = t->events + t->nr_events;
	unsigned int systems = 0;

#define IS_FIRST(e) ((e) == first || strcmp((e)->system, (e)[-1].system))
	for (e = first; e < end; e++)
		systems += IS_FIRST(e);
	write_number(t, systems, 4, f);
	for (e = first; e < end; e++) {
		if (IS_FIRST(e)) {
			for (next = e + 1; next < end && !IS_FIRST(next);)
				next++;
			fwrite(e->system, strlen(e->system) + 1, 1, f);
			write_number(t, next - e, 4, f);
		}
		write_part(t, 8, f, format, e);
	}
}

/* The clock, as the control file trace_clock shows the chosen one. */
static void write_options(const struct trace *t, FILE *f)
{
	char clock[32];
	int len = snprintf(clock, sizeof(clock), "[%s]", t->clock_name) + 1;

	fwrite("options  ", 10, 1, f);
	write_number(t, OPTION_CLOCK, 2, f);
	write_number(t, len, 4, f);
	fwrite(clock, len, 1, f);
	write_number(t, OPTION_DONE, 2, f);
}

static void write_head(const struct trace *t, FILE *f)
{
	fwrite("\x17\x08\x44tracing6", 11, 1, f);
	fputc(0, f);
	fputc(t->g->im.big_endian ? 1 : 0, f);
	fputc(t->g->im.pointer_size, f);
	write_number(t, PAGE_BYTES, 4, f);
	fwrite("header_page", 12, 1, f);
	write_part(t, 8, f, header, "page");
	fwrite("header_event", 13, 1, f);
	write_part(t, 8, f, header, NULL);
	write_number(t, t->nr_own, 4, f);
	for (unsigned int i = 0; i < t->nr_own; i++)
		write_part(t, 8, f, format, &t->events[i]);
	write_systems(t, f);
	write_part(t, 4, f, symbols, NULL);
	write_part(t, 4, f, words, NULL);
	write_part(t, 8, f, names, NULL);
	write_number(t, t->nr_cpus, 4, f);
	write_options(t, f);
	fwrite("flyrecord", 10, 1, f);
}

void write_trace_dat(struct trace *t, FILE *f)
{
	off_t table, start, end;

	write_head(t, f);
	/* Where each CPU's pages begin and how long they are: known later. */
	table = ftello(f);
	for (unsigned int i = 0; i < 2 * t->nr_cpus; i++)
		write_number(t, 0, 8, f);
	while (ftello(f) % PAGE_BYTES)
		fputc(0, f);
	for (unsigned int i = 0; i < t->nr_cpus; i++) {
		start = ftello(f);
		write_cpu(t, &t->cursors[i], f);
		end = ftello(f);
		fseeko(f, table + 16 * (off_t)i, SEEK_SET);
		write_number(t, start, 8, f);
		write_number(t, end - start, 8, f);
		fseeko(f, end, SEEK_SET);
	}
}
