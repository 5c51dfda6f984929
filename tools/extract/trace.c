/* SPDX-License-Identifier: MIT */
/* The trace in a guest's memory: trace.h. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <tracer/show/listing.h>

/* The word of trace_clock_names that the instance's clock has. */
static void read_clock_name(struct trace *t)
{
	const char *word = trace_clock_names;

	for (unsigned int i = 0; i < t->in->clock && *word; i++) {
		word += strcspn(word, " ");
		word += strspn(word, " ");
	}
	if (!*word)
		errx(1, "the guest's clock is number %u, which has no name",
		     t->in->clock);
	snprintf(t->clock_name, sizeof(t->clock_name), "%.*s",
		 (int)strcspn(word, " "), word);
}

void put_function(u64 addr, u64 at, FILE *f)
{
	struct seq s = { 0 };

	trace_function(&s, addr, at);
	fwrite(s.buf, s.len, 1, f);
}

/* ---- Entries --------------------------------------------------------------------- */

/* Where the last of the rings begins from which an entry is missing. */
static u64 find_whole(const struct trace_iter *it)
{
	u64 from = 1;

	for (unsigned int i = 0; i < it->nr; i++) {
		const struct ring_cursor *c = &it->cursors[i];

		if (c->after && c->position > 1)
			from = max(from, c->entry.clock);
	}
	return from;
}

const struct ring_entry *trace_next(struct trace *t)
{
	const struct ring_entry *e;

	if (t->taken)
		trace_iter_next(t->it);
	e = trace_iter_peek(t->it);
	t->taken = e;
	if (!e)
		return NULL;
	if (!t->whole_from)
		t->whole_from = find_whole(t->it);
	t->lost = trace_iter_lost(t->it);
	if (t->lost)
		t->whole_from = max(t->whole_from, e->clock);
	return e;
}

void write_text(struct trace *t, FILE *f)
{
	struct seq s = { 0 };

	listing_head(&t->it, &s);
	t->it->announced = 0; /* what is missing is said elsewhere */
	do {
		fwrite(s.buf, s.len, 1, f);
		s.len = 0;
	} while (listing_entry(t->it, &s));
}

/* ---- Opening --------------------------------------------------------------------- */

static u64 find_instance(const struct guest *g, const char *name)
{
	u64 at = guest_symbol(g, NULL, "trace_instances"), rings_at, end;
	u64 size = guest_size(g, "trace_instance");
	struct member n = guest_member(g, "trace_instance", "name");

	if (!name)
		return at;
	end = at + image_size(&g->im, "trace_instances");
	for (at += size; at < end && guest_at(g, at, size); at += size) {
		rings_at = guest_get(g, at, "trace_instance", "buffer");
		if (rings_at && !strcmp(guest_text(g, at + n.at), name))
			return at;
	}
	errx(1, "the guest has no instance '%s'", name);
}

/* Let `in` be as the guest's instance at an address. */
static void read_instance(const struct guest *g, u64 at,
			  struct trace_instance *in, struct tracer *tracer)
{
#define INSTANCE(member) guest_get(g, at, "trace_instance", #member)
#define OF_TRACER(member) guest_get(g, INSTANCE(tracer), "tracer", #member)
	*tracer = (struct tracer){ .name = guest_text(g, OF_TRACER(name)),
				   .graph = OF_TRACER(graph),
				   .latency = OF_TRACER(latency) };
	in->tracer = tracer;
	in->options = INSTANCE(options);
	in->clock = INSTANCE(clock);
}

/*
 * The CPUs whose rings hold the trace. A latency tracer keeps the longest latency in the
 * spare pages of those CPUs that it is about. The others' spare pages are of one before.
 */
static cpumask_t cpus_of(const struct trace *t)
{
	/* Latency tracers are of the top level alone: the first of the snapshots is its. */
	return t->in->tracer->latency ?
		       guest_get(t->g,
				 guest_symbol(t->g, "snapshot.c", "snapshots"),
				 "snapshot", "taken") :
		       ~0u;
}

void trace_open(struct trace *t, struct guest *g, const char *instance)
{
	static struct tracer top, own;
	struct trace_instance *in = &trace_instances[instance ? 1 : 0];
	u64 at, rings_at;
	cpumask_t cpus;

	*t = (struct trace){ .g = g, .in = in };
	machine_open(g);
	at = find_instance(g, NULL);
	read_instance(g, at, &trace_top, &top);
	at = find_instance(g, instance);
	if (instance)
		read_instance(g, at, in, &own);
	read_clock_name(t);
	formats_read(t);
	rings_at = in->tracer->latency ? INSTANCE(spares) : INSTANCE(buffer);
	if (!rings_at || !clock_delta_to_ns(1ull << 32))
		errx(1, "the guest has just begun: it has no trace buffer");
	if (in->tracer->latency)
		in->spares = rings;
	else
		in->buffer = rings;
	cpus = cpus_of(t);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		if (cpus >> cpu & 1) {
			ring_open(g, cpu,
				  rings_at + cpu * guest_size(g, "ring"));
			rings[cpu].in = in;
		}
	rings[0].in = in;
	t->it = trace_iter_open(rings, cpus & cpus_below(nr_cpus), false);
}
