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

static void put_common(const struct ring_entry *e, const char *phase, u64 ns,
		       FILE *f)
{
	fprintf(f, ",\n{\"ph\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%llu.%03llu",
		phase, task_of(e)->pid, (unsigned long long)(ns / 1000),
		(unsigned long long)(ns % 1000));
}

static void put_name(u64 ip, FILE *f)
{
	fputs(",\"name\":\"", f);
	put_function(ip, ip, f);
	fputs("\"", f);
}

static void put_text(const struct ring_entry *e, const struct event *event,
		     FILE *f)
{
	struct seq s = { 0 };

	if (event)
		record_text(event, e, &s);
	else
		trace_marker_text(&s, e, e->len);
	fprintf(f, ",\"name\":\"%s\",\"args\":{\"text\":",
		event  ? event->name :
		e->raw ? "raw_data" :
			 "tracing_mark_write");
	put_string(s.buf, s.len, f);
	fprintf(f, ",\"cpu\":%u}", e->cpu);
}

/* A moment of a task. */
static void put_instant(const struct ring_entry *e, const struct event *event,
			FILE *f)
{
	put_common(e, "i", clock_to_ns(e->clock), f);
	if (is_call(e)) {
		put_name(e->ip, f);
		fputs(",\"args\":{\"caller\":\"", f);
		put_function(e->parent, e->parent - 1, f);
		fprintf(f, "\",\"cpu\":%u}", e->cpu);
	} else {
		put_text(e, event, f);
	}
	fputs(",\"s\":\"t\"}", f);
}

/* A mark across all tasks: from here back, so many entries of the CPU are missing. */
static void put_lost(const struct ring_entry *e, u64 lost, FILE *f)
{
	put_common(e, "i", clock_to_ns(e->clock), f);
	fprintf(f,
		",\"name\":\"CPU:%u [%llu EVENTS DROPPED]\","
		"\"args\":{\"cpu\":%u,\"lost\":%llu},\"s\":\"g\"}",
		e->cpu, (unsigned long long)lost, e->cpu,
		(unsigned long long)lost);
}

static void put_entry(const struct trace *t, const struct ring_entry *e,
		      FILE *f)
{
	const struct event *event = e->event ? find_event(e->event) : NULL;
	u64 time;

	if (t->lost)
		put_lost(e, t->lost, f);
	if (e->graph == RING_GRAPH_RETURN) {
		time = call_time(e);
		put_common(e, "X", clock_to_ns(e->clock) - time, f);
		put_name(e->ip, f);
		fprintf(f, ",\"dur\":%llu.%03llu,\"args\":{\"cpu\":%u}}",
			(unsigned long long)(time / 1000),
			(unsigned long long)(time % 1000), e->cpu);
	} else if (is_call(e) || e->text || event) {
		put_instant(e, event, f);
	}
}

void write_chrome(struct trace *t, FILE *f)
{
	const struct ring_entry *e;

	fprintf(f,
		"{\"displayTimeUnit\":\"ns\","
		"\"otherData\":{\"tracer\":\"%s\",\"clock\":\"%s\"},"
		"\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\","
		"\"args\":{\"name\":\"nopl\"}}",
		t->in->tracer->name, t->clock_name);
	while ((e = trace_next(t)))
		put_entry(t, e, f);
	for (size_t i = 0; i < nr_tasks; i++) {
		const char *name = task_name(tasks[i]);

		fprintf(f,
			",\n{\"ph\":\"M\",\"pid\":0,\"tid\":%d,"
			"\"name\":\"thread_name\",\"args\":{\"name\":",
			tasks[i]->pid);
		put_string(name, strlen(name), f);
		fputs("}}", f);
	}
	fputs("\n]}\n", f);
}
