/* SPDX-License-Identifier: MIT */
/* The trace as Chrome's JSON, for Perfetto and chrome://tracing. */
#include "calls.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void put_string(const char *text, size_t len, FILE *f)
{
	json_t *s = json_stringn(text, len);

	/* A marker may be no UTF-8. */
	if (!s)
		s = json_sprintf("%zu bytes", len);
	json_dumpf(s, f, JSON_ENCODE_ANY);
	json_decref(s);
}

static void put_common(const struct trace_entry *e, const char *phase, u64 ns,
		       FILE *f)
{
	fprintf(f, ",\n{\"ph\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%llu.%03llu",
		phase, task_of(e)->pid, (unsigned long long)(ns / 1000),
		(unsigned long long)(ns % 1000));
}

static void put_name(const struct trace *t, u64 ip, FILE *f)
{
	fputs(",\"name\":\"", f);
	put_function(t, ip, ip, f);
	fputs("\"", f);
}

static void put_text(const struct trace *t, const struct trace_entry *e,
		     FILE *f)
{
	const struct event *event = find_event(t, e->id);
	char *text = NULL;
	size_t len = 0;
	FILE *to;

	if (e->kind == MARKER) {
		fputs(",\"name\":\"tracing_mark_write\",\"args\":{\"text\":",
		      f);
		put_string((const char *)e->bytes, e->len, f);
	} else {
		to = open_memstream(&text, &len);
		if (!to)
			errx(1, "out of memory");
		if (e->kind == RAW)
			text_of_raw(t, e, to);
		else
			record_text(t, event, e->bytes, e->len, to);
		fclose(to);
		fprintf(f, ",\"name\":\"%s\",\"args\":{\"text\":",
			e->kind == RAW ? "raw_data" : event->name);
		put_string(text, len, f);
		free(text);
	}
	fprintf(f, ",\"cpu\":%u}", e->cpu);
}

/* A moment of a task. */
static void put_instant(const struct trace *t, const struct trace_entry *e,
			FILE *f)
{
	put_common(e, "i", e->ns, f);
	if (e->kind == CALL) {
		put_name(t, e->ip, f);
		fputs(",\"args\":{\"caller\":\"", f);
		put_function(t, e->parent, e->parent - 1, f);
		fprintf(f, "\",\"cpu\":%u}", e->cpu);
	} else {
		put_text(t, e, f);
	}
	fputs(",\"s\":\"t\"}", f);
}

/* A mark across all tasks: from here back, so many entries of the CPU are missing. */
static void put_lost(const struct trace_entry *e, FILE *f)
{
	put_common(e, "i", e->ns, f);
	fprintf(f,
		",\"name\":\"CPU:%u [%llu EVENTS DROPPED]\","
		"\"args\":{\"cpu\":%u,\"lost\":%llu},\"s\":\"g\"}",
		e->cpu, (unsigned long long)(e->lost + e->overwritten), e->cpu,
		(unsigned long long)(e->lost + e->overwritten));
}

static void put_entry(struct trace *t, const struct trace_entry *e, FILE *f)
{
	u64 time;

	if (e->lost + e->overwritten)
		put_lost(e, f);
	if (e->kind == GRAPH_RETURN) {
		time = call_time(t, e);
		put_common(e, "X", e->ns - time, f);
		put_name(t, e->ip, f);
		fprintf(f, ",\"dur\":%llu.%03llu,\"args\":{\"cpu\":%u}}",
			(unsigned long long)(time / 1000),
			(unsigned long long)(time % 1000), e->cpu);
	} else if (e->kind == CALL || e->kind == MARKER || e->kind == RAW ||
		   e->kind == EVENT) {
		put_instant(t, e, f);
	}
}

void write_chrome(struct trace *t, FILE *f)
{
	const struct trace_entry *e;

	fprintf(f,
		"{\"displayTimeUnit\":\"ns\","
		"\"otherData\":{\"tracer\":\"%s\",\"clock\":\"%s\"},"
		"\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\","
		"\"args\":{\"name\":\"nopl\"}}",
		t->tracer, t->clock_name);
	while ((e = trace_next(t)))
		put_entry(t, e, f);
	for (size_t i = 0; i < nr_tasks; i++) {
		const char *name = task_name(t, tasks[i]);

		fprintf(f,
			",\n{\"ph\":\"M\",\"pid\":0,\"tid\":%d,"
			"\"name\":\"thread_name\",\"args\":{\"name\":",
			tasks[i]->pid);
		put_string(name, strlen(name), f);
		fputs("}}", f);
	}
	fputs("\n]}\n", f);
}
