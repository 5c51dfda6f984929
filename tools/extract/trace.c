/* SPDX-License-Identifier: MIT */
/* The trace in a guest's memory: trace.h. */
#include "ring.h"

#include <stdlib.h>
#include <string.h>

/* ---- Time ------------------------------------------------------------------------ */

/* As ratio_apply() of kernel/time.c. */
u64 trace_delta_ns(const struct trace *t, u64 ticks)
{
	return (unsigned __int128)ticks * t->mult >> t->shift;
}

u64 trace_ns(const struct trace *t, u64 clock)
{
	u64 since = clock - t->clock_base;

	return (s64)since < 0 ? 0 : trace_delta_ns(t, since);
}

#define UPTIME_NS 10000000

bool trace_is_in_ns(const struct trace *t)
{
	return strcmp(t->clock_name, "counter") &&
	       strcmp(t->clock_name, "uptime");
}

u64 trace_stamp(const struct trace *t, u64 when)
{
	if (!strcmp(t->clock_name, "counter"))
		return when;
	return trace_ns(t, when) / (trace_is_in_ns(t) ? 1 : UPTIME_NS);
}

/* The word of trace_clock_names that the instance's clock has. */
static void read_clock_name(struct trace *t)
{
	const char *word =
		guest_text(t->g, guest_symbol(t->g, NULL, "trace_clock_names"));

	for (unsigned int i = 0; i < t->clock && *word; i++) {
		word += strcspn(word, " ");
		word += strspn(word, " ");
	}
	if (!*word)
		errx(1, "the guest's clock is number %u, which has no name",
		     t->clock);
	snprintf(t->clock_name, sizeof(t->clock_name), "%.*s",
		 (int)strcspn(word, " "), word);
}

static void read_clock(struct trace *t)
{
	u64 at = guest_symbol(t->g, "time.c", "to_ns");

	t->mult = guest_get(t->g, at, "ratio", "mult");
	t->shift = guest_get(t->g, at, "ratio", "shift");
	if (t->shift > 63)
		errx(1,
		     "the guest's clock makes no sense: it is shifted by "
		     "%llu bits",
		     (unsigned long long)t->shift);
	at = guest_symbol(t->g, "time.c", "clock_base");
	t->clock_base = guest_number(t->g, at, 8);
}

/* ---- Names ----------------------------------------------------------------------- */

#define COMM_SLOTS 256

static void read_names(struct trace *t)
{
	u64 at = guest_symbol(t->g, "options.c", "names");

	t->comms = guest_symbol(t->g, "comm.c", "comms");
	t->comm_size = guest_size(t->g, "comm");
	t->comm_name = guest_member(t->g, "comm", "name").at;
	for (unsigned int i = 0; i < MAX_OPTIONS; i++)
		t->option_names[i] = guest_text(
			t->g,
			guest_pointer(t->g, at + i * t->g->im.pointer_size));
}

const char *trace_saved(const struct trace *t, unsigned int i, s32 *pid)
{
	u64 at = t->comms + i * t->comm_size;

	const char *name = guest_text(t->g, at + t->comm_name);

	if (i >= COMM_SLOTS)
		return NULL;
	*pid = guest_number(t->g, at, 4);
	/* A name that does not end in its place is none. */
	return strlen(name) < t->comm_size - t->comm_name ? name : "<...>";
}

const char *trace_comm(const struct trace *t, s32 pid)
{
	const char *name;
	s32 has;

	if (!pid)
		return "<idle>";
	name = trace_saved(t, (u32)pid % COMM_SLOTS, &has);
	return has == pid ? name : "<...>";
}

bool trace_option(const struct trace *t, const char *name)
{
	for (unsigned int i = 0; i < MAX_OPTIONS; i++)
		if (!strcmp(t->option_names[i], name))
			return t->options >> i & 1;
	return false;
}

void put_function(const struct trace *t, u64 addr, u64 at, FILE *f)
{
	const struct symbol *s = image_symbol_at(&t->g->im, at);

	if (s)
		fputs(s->name, f);
	else
		fprintf(f, "0x%08llx", (unsigned long long)addr);
}

/* ---- Entries --------------------------------------------------------------------- */

static struct cursor *first(struct trace *t)
{
	struct cursor *c, *found = NULL;

	for (c = t->cursors; c < t->cursors + t->nr_cursors; c++)
		if (cursor_peek(t, c) &&
		    (!found ||
		     trace_when(&c->entry) < trace_when(&found->entry)))
			found = c;
	return found;
}

/* The entry, after which t->whole_from holds for those that follow. */
static const struct trace_entry *take(struct trace *t, struct cursor *c)
{
	const struct trace_entry *e = c ? cursor_take(c) : NULL;

	if (e && e->lost)
		t->whole_from = e->clock;
	return e;
}

/* Where the last of the rings begins from which an entry is missing. */
static void find_whole(struct trace *t)
{
	const struct cursor *c;

	t->whole_from = 1;
	for (c = t->cursors; c < t->cursors + t->nr_cursors; c++)
		if (c->has && c->position > 1 && c->entry.clock > t->whole_from)
			t->whole_from = c->entry.clock;
}

const struct trace_entry *trace_next(struct trace *t)
{
	struct cursor *c = first(t);

	if (!t->whole_from)
		find_whole(t);
	return take(t, c);
}

const struct trace_entry *trace_next_line(struct trace *t)
{
	struct cursor *c = first(t);

	if (c && c->entry.kind == GRAPH_ENTRY)
		cursor_join(t, c);
	return take(t, c);
}

u64 cursor_lost(const struct cursor *c)
{
	return c->overwritten + c->gaps;
}

void trace_say_lost(const struct trace *t)
{
	const struct cursor *c;
	u64 pages = 0;

	for (c = t->cursors; c < t->cursors + t->nr_cursors; c++) {
		pages += c->lost_pages;
		if (cursor_lost(c) || c->dropped)
			fprintf(stderr,
				"extract: CPU %u: %llu entries were "
				"overwritten, %llu skipped, %llu dropped\n",
				c->cpu, (unsigned long long)c->overwritten,
				(unsigned long long)c->gaps,
				(unsigned long long)c->dropped);
	}
	if (pages)
		fprintf(stderr, "extract: %llu pages were skipped\n",
			(unsigned long long)pages);
}

/* ---- Opening --------------------------------------------------------------------- */

static u64 find_instance(const struct trace *t, const char *name)
{
	u64 at = guest_symbol(t->g, NULL, "trace_instances"), rings, end;
	u64 size = guest_size(t->g, "trace_instance");
	struct member n = guest_member(t->g, "trace_instance", "name");

	if (!name)
		return at;
	end = at + image_size(&t->g->im, "trace_instances");
	for (at += size; at < end; at += size) {
		rings = guest_get(t->g, at, "trace_instance", "buffer");
		if (rings && !strcmp(guest_text(t->g, at + n.at), name))
			return at;
	}
	errx(1, "the guest has no instance '%s'", name);
}

/*
 * The CPUs whose rings hold the trace. A latency tracer keeps the longest latency in the
 * spare pages of those CPUs that it is about. The others' spare pages are of one before.
 */
static u64 cpus_of(const struct trace *t)
{
	/* Latency tracers are of the top level alone: the first of the snapshots is its. */
	return t->latency ?
		       guest_get(t->g,
				 guest_symbol(t->g, "snapshot.c", "snapshots"),
				 "snapshot", "taken") :
		       ~0ull;
}

void trace_open(struct trace *t, struct guest *g, const char *instance)
{
	u64 rings, tracer, name, cpus;

	*t = (struct trace){ .g = g };
	machine_open(g);
	t->nr_cpus = guest_number(g, guest_symbol(g, NULL, "nr_cpus"), 4);
	if (!t->nr_cpus || t->nr_cpus > MAX_TRACE_CPUS)
		errx(1, "the guest has just begun: it does not know its CPUs");
	nr_cpus = t->nr_cpus;
	t->slots_at = guest_member(g, "ring_page", "slots").at;
	read_clock(t);
	read_names(t);
	t->instance = find_instance(t, instance);
	tracer = guest_get(g, t->instance, "trace_instance", "tracer");
	name = guest_get(g, tracer, "tracer", "name");
	t->tracer = guest_text(g, name);
	t->graph = guest_get(g, tracer, "tracer", "graph");
	t->latency = guest_get(g, tracer, "tracer", "latency");
	t->options = guest_get(g, t->instance, "trace_instance", "options");
	t->clock = guest_get(g, t->instance, "trace_instance", "clock");
	read_clock_name(t);
	t->sleep_time = trace_option(t, "sleep-time");
	formats_read(t);
	rings = guest_get(g, t->instance, "trace_instance",
			  t->latency ? "spares" : "buffer");
	if (!rings || !t->mult)
		errx(1, "the guest has just begun: it has no trace buffer");
	cpus = cpus_of(t);
	t->nr_cursors = t->nr_cpus;
	for (unsigned int i = 0; i < t->nr_cursors; i++) {
		t->cursors[i].cpu = i;
		if (cpus >> i & 1)
			cursor_open(t, &t->cursors[i],
				    rings + i * guest_size(g, "ring"));
	}
}
