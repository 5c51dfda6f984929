/* SPDX-License-Identifier: MIT */
/*
 * The trace as trace.dat, version 6, for trace-cmd and KernelShark (trace-cmd.dat.v6(5)). Its
 * pages are those of Linux's ring buffer, as trace_pipe_raw gives them.
 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <tracer/show/raw.h>

/* Of the file's options. */
enum { OPTION_DONE = 0, OPTION_CLOCK = 4 };

static void write_number(u64 v, unsigned int n, FILE *f)
{
	u8 bytes[sizeof(v)];

	store_number(bytes, v, n);
	fwrite(bytes, n, 1, f);
}

/* The pages of one CPU. */
static void write_cpu(struct trace_iter *it, unsigned int cpu, FILE *f)
{
	static char page[PAGE_SIZE] __attribute__((aligned(8)));

	for (unsigned int i = 0; i < it->nr; i++)
		while (it->cursors[i].cpu == cpu &&
		       raw_page_fill(&it->cursors[i], page))
			fwrite(page, PAGE_SIZE, 1, f);
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
	write_number(len, n, f);
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
	(void)t;
	event_format(arg, f);
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

	(void)t;
	(void)arg;
	for (unsigned int i = 0; (name = comm_saved(i, &pid)); i++)
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
	write_number(systems, 4, f);
	for (e = first; e < end; e++) {
		if (IS_FIRST(e)) {
			for (next = e + 1; next < end && !IS_FIRST(next);)
				next++;
			fwrite(e->system, strlen(e->system) + 1, 1, f);
			write_number(next - e, 4, f);
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
	write_number(OPTION_CLOCK, 2, f);
	write_number(len, 4, f);
	fwrite(clock, len, 1, f);
	write_number(OPTION_DONE, 2, f);
}

static void write_head(const struct trace *t, FILE *f)
{
	fwrite("\x17\x08\x44tracing6", 11, 1, f);
	fputc(0, f);
	fputc(t->g->im.big_endian ? 1 : 0, f);
	fputc(t->g->im.pointer_size, f);
	write_number(PAGE_SIZE, 4, f);
	fwrite("header_page", 12, 1, f);
	write_part(t, 8, f, header, "page");
	fwrite("header_event", 13, 1, f);
	write_part(t, 8, f, header, NULL);
	write_number(t->nr_own, 4, f);
	for (unsigned int i = 0; i < t->nr_own; i++)
		write_part(t, 8, f, format, &t->events[i]);
	write_systems(t, f);
	write_part(t, 4, f, symbols, NULL);
	write_part(t, 4, f, words, NULL);
	write_part(t, 8, f, names, NULL);
	write_number(nr_cpus, 4, f);
	write_options(t, f);
	fwrite("flyrecord", 10, 1, f);
}

void write_trace_dat(struct trace *t, FILE *f)
{
	off_t table, start, end;

	write_head(t, f);
	/* Where each CPU's pages begin and how long they are: known later. */
	table = ftello(f);
	for (unsigned int i = 0; i < 2 * nr_cpus; i++)
		write_number(0, 8, f);
	while (ftello(f) % PAGE_SIZE)
		fputc(0, f);
	for (unsigned int i = 0; i < nr_cpus; i++) {
		start = ftello(f);
		write_cpu(t->it, i, f);
		end = ftello(f);
		fseeko(f, table + 16 * (off_t)i, SEEK_SET);
		write_number(start, 8, f);
		write_number(end - start, 8, f);
		fseeko(f, end, SEEK_SET);
	}
}
