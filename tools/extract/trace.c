/* The rings in a guest's memory: trace.h. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- Numbers of a page ----------------------------------------------------------- */

static u32 word(const struct trace *t, const uint8_t *p)
{
	return image_number(&t->g->im, p, 4);
}

static u64 field_of(const struct trace *t, u64 at, const char *name)
{
	return guest_get(t->g, at, "ring", name);
}

/* A member of the page that has been copied. */
static u64 in_page(const struct trace *t, const struct cursor *c,
		   const char *name)
{
	struct member m = guest_member(t->g, "ring_page", name);

	return image_number(&t->g->im, c->page + m.at, m.size);
}

static const uint8_t *slot(const struct trace *t, const struct cursor *c, u32 i)
{
	return c->page + t->slots_at + (size_t)i * RING_EVENT_SIZE;
}

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

static void read_clock(struct trace *t)
{
	u64 at = guest_symbol(t->g, "time.c", "to_ns");

	t->mult = guest_get(t->g, at, "ratio", "mult");
	t->shift = guest_get(t->g, at, "ratio", "shift");
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

	if (i >= COMM_SLOTS)
		return NULL;
	*pid = guest_number(t->g, at, 4);
	return guest_text(t->g, at + t->comm_name);
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

/* ---- Pages ----------------------------------------------------------------------- */

static bool page_is(const struct trace *t, const struct cursor *c, u64 addr)
{
	u64 state = guest_get(t->g, addr, "ring_page", "state");

	return RING_STATE_GEN((u32)state) == RING_GEN(c->seq);
}

/* The pages of a snapshot that was cleared are nobody's, and the last one says that it is empty. */
static bool is_empty(const struct trace *t, u64 addr)
{
	u64 state = guest_get(t->g, addr, "ring_page", "state");

	return RING_STATE_GEN((u32)state) == RING_NOBODY &&
	       !guest_get(t->g, addr, "ring_page", "used");
}

/* How many slots of the page at addr are written. */
static u32 slots_used(const struct trace *t, const struct cursor *c, u64 addr)
{
	u64 first = addr + guest_member(t->g, "ring_page", "slots").at;

	if (c->writer >= first &&
	    c->writer <= first + RING_SLOTS * RING_EVENT_SIZE)
		return (c->writer - first) / RING_EVENT_SIZE;
	return guest_get(t->g, addr, "ring_page", "used");
}

/*
 * Copy page number seq. false: it does not hold what it should. The guest may be running:
 * what says whether the page is still the same is looked at after the copy, too.
 */
static bool copy_page(const struct trace *t, struct cursor *c)
{
	u64 addr = guest_pointer(
		t->g, c->pages + (u64)(c->seq % c->nr) * t->g->im.pointer_size);
	const uint8_t *p = guest_at(t->g, addr, PAGE_BYTES);

	c->used = c->consumed = 0;
	if (p && c->seq == c->head && is_empty(t, addr))
		return true;
	if (!p || !page_is(t, c, addr))
		return false;
	c->used = slots_used(t, c, addr);
	if (c->used > RING_SLOTS)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(c->page, p, PAGE_BYTES);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!page_is(t, c, addr))
		return false;
	c->consumed = RING_STATE_SLOTS((u32)in_page(t, c, "state"));
	return c->consumed <= c->used;
}

static void begin_page(const struct trace *t, struct cursor *c)
{
	u64 before;

	c->at = 0;
	if (!c->used)
		return;
	before = in_page(t, c, "before");
	c->base = in_page(t, c, "base");
	c->pid = in_page(t, c, "pid");
	if (!c->fresh && before > c->position)
		c->lost += before - c->position;
	c->position = before;
	c->fresh = false;
}

/* ---- Entries --------------------------------------------------------------------- */

static u32 more_slots(enum kind kind, u32 ip, u32 len)
{
	if (kind == GRAPH_RETURN)
		return 1;
	if (kind == MARKER || kind == RAW || kind == STACK || kind == EVENT ||
	    ip == RING_REPEATS)
		return RING_MORE_SLOTS(len);
	return 0;
}

static enum kind kind_of(u32 ip, u32 parent)
{
	if (ip == RING_MARK)
		return MARKER;
	if (ip == RING_RAW)
		return RAW;
	if (ip == RING_STACK)
		return STACK;
	if (ip == RING_RETURN)
		return GRAPH_RETURN;
	if (RING_IS_EVENT(ip))
		return EVENT;
	return parent >= RING_ENTRY(0) && ip != RING_REPEATS ? GRAPH_ENTRY :
							       CALL;
}

/*
 * Decode the slot at c->at, and go behind it. 1: an entry; 0: not one; -1: the rest of the
 * page makes no sense.
 */
static int decode(const struct trace *t, struct cursor *c)
{
	const uint8_t *p = slot(t, c, c->at), *more = p + RING_EVENT_SIZE;
	u32 delta = word(t, p), w1 = word(t, p + 4), w2 = word(t, p + 8);
	u32 ip = w1 >> 8, parent = w2 >> 8; /* parent, or a length */
	u64 text = t->g->im.text;
	struct trace_entry *e = &c->entry;
	u64 lost = e->lost;
	u32 skip;

	if (ip == RING_TIME || ip == RING_TASK) {
		if (ip == RING_TIME)
			c->base = (u64)w2 << 32 | delta;
		else
			c->pid = w2;
		c->at++;
		return 0;
	}
	*e = (struct trace_entry){
		.kind = kind_of(ip, parent),
		.clock = c->base + delta,
		.cpu = c->cpu,
		.pid = c->pid,
		.context = (w1 & 0xff) | (w2 & 0xff) << 8,
		.lost = lost,
	};
	skip = more_slots(e->kind, ip, parent);
	if (c->at + 1 + skip > c->used)
		return -1;
	c->at += 1 + skip;
	c->position++;
	e->ns = trace_ns(t, e->clock);
	if (ip == RING_REPEATS) {
		e->ip = text + word(t, more);
		e->parent = text + word(t, more + 4);
		e->repeats = word(t, more + 8);
		e->last = (u64)word(t, more + 16) << 32 | word(t, more + 12);
	} else if (e->kind == GRAPH_RETURN) {
		e->ip = text + parent;
		e->ticks = (u64)word(t, more + 4) << 32 | word(t, more);
		e->depth = word(t, more + 8) & 0xff;
		e->missed = word(t, more + 8) >> 8;
	} else if (e->kind == GRAPH_ENTRY) {
		e->ip = text + ip;
		e->depth = parent - RING_ENTRY(0);
	} else if (e->kind == CALL) {
		e->ip = text + ip;
		e->parent = text + parent;
	} else {
		e->bytes = more;
		e->len = parent;
	}
	if (e->kind == EVENT) {
		/* The record is aligned to 8, as its page is. */
		u32 pad = (more - c->page) & 4;

		e->id = ip - (u32)RING_TYPE(0);
		e->bytes += pad;
		e->len -= e->len < 4 ? e->len : 4;
		if (!trace_event(t, e->id))
			e->kind = UNKNOWN;
	}
	return 1;
}

/* The rest of the page is passed over. */
static void spoilt(struct cursor *c, const char *why)
{
	fprintf(stderr, "extract: CPU %u, page %u: %s; skipped\n", c->cpu,
		c->seq, why);
	c->lost_pages++;
	c->at = c->used = 0;
}

/* Make c->entry the next one that is not consumed, unless there is one; false: none. */
static bool peek(const struct trace *t, struct cursor *c)
{
	int found;

	while (!c->has) {
		while (c->at < c->used && !c->has) {
			found = decode(t, c);
			if (found < 0)
				spoilt(c, "an entry is not whole");
			c->has = found > 0 && c->at > c->consumed;
		}
		if (c->has)
			break;
		c->at = c->used = 0;
		if (!c->pages || c->next - c->tail > c->head - c->tail)
			return false;
		c->seq = c->next++;
		if (copy_page(t, c))
			begin_page(t, c);
		else
			spoilt(c, "it is being written, or is no page of the "
				  "ring");
	}
	c->entry.lost = c->lost;
	return true;
}

static const struct trace_entry *take(struct cursor *c)
{
	c->has = false;
	c->lost = 0;
	return &c->entry;
}

const struct trace_entry *cursor_next(struct trace *t, struct cursor *c)
{
	return peek(t, c) ? take(c) : NULL;
}

static struct cursor *first(struct trace *t)
{
	struct cursor *c, *found = NULL;

	for (c = t->cursors; c < t->cursors + t->nr_cursors; c++)
		if (peek(t, c) &&
		    (!found || c->entry.clock < found->entry.clock))
			found = c;
	return found;
}

const struct trace_entry *trace_next(struct trace *t)
{
	struct cursor *c = first(t);

	return c ? take(c) : NULL;
}

/* If the entry's return comes next in the page, take it as well. */
static void join(struct trace *t, struct cursor *c)
{
	struct trace_entry entry = c->entry;
	u64 base = c->base, position = c->position;
	u32 at = c->at;
	s32 pid = c->pid;
	int found = 0;

	while (!found && c->at < c->used)
		found = decode(t, c);
	if (found > 0 && c->entry.kind == GRAPH_RETURN &&
	    c->entry.ip == entry.ip && c->entry.pid == entry.pid &&
	    c->entry.depth == entry.depth) {
		entry.kind = GRAPH_LEAF;
		entry.ticks = c->entry.ticks;
	} else {
		c->at = at;
		c->base = base;
		c->position = position;
		c->pid = pid;
	}
	c->entry = entry;
}

const struct trace_entry *trace_next_line(struct trace *t)
{
	struct cursor *c = first(t);

	if (c && c->entry.kind == GRAPH_ENTRY)
		join(t, c);
	return c ? take(c) : NULL;
}

u64 trace_lost_pages(const struct trace *t)
{
	u64 n = 0;

	for (unsigned int i = 0; i < t->nr_cursors; i++)
		n += t->cursors[i].lost_pages;
	return n;
}

/* ---- Opening --------------------------------------------------------------------- */

/* How many entries of a ring are not consumed: as ring_stats() of the kernel counts. */
static u64 count(const struct trace *t, const struct cursor *c)
{
	u64 n = 0, addr, state;

	for (u32 seq = c->tail; c->pages && seq - c->tail <= c->head - c->tail;
	     seq++) {
		addr = guest_pointer(t->g,
				     c->pages + (u64)(seq % c->nr) *
							t->g->im.pointer_size);
		state = guest_get(t->g, addr, "ring_page", "state");
		n += slots_used(t, c, addr) -
		     guest_get(t->g, addr, "ring_page", "inner") -
		     RING_STATE_ENTRIES((u32)state);
	}
	return n;
}

static void open_ring(const struct trace *t, struct cursor *c, u64 ring)
{
	u64 at = field_of(t, ring, "at");

	c->ring = ring;
	c->pages = field_of(t, ring, "pages");
	c->nr = field_of(t, ring, "nr");
	c->head = field_of(t, ring, "head");
	c->tail = field_of(t, ring, "tail");
	c->overwritten = field_of(t, ring, "overwritten");
	c->dropped = field_of(t, ring, "dropped");
	c->writer = at ? guest_get(t->g, at, "ring_place", "cur") : 0;
	if (c->nr < 2 || c->nr > t->g->size / PAGE_BYTES ||
	    c->head - c->tail >= c->nr) {
		if (c->pages)
			fprintf(stderr,
				"extract: CPU %u: its ring makes no "
				"sense; skipped\n",
				c->cpu);
		c->lost_pages = !!c->pages;
		c->pages = 0;
	}
	c->entries = count(t, c);
}

/* Every cursor to its ring's oldest page. */
static void rewind_all(struct trace *t)
{
	for (unsigned int i = 0; i < t->nr_cursors; i++) {
		struct cursor *c = &t->cursors[i];

		c->next = c->tail;
		c->at = c->used = c->lost = c->position = c->lost_pages = 0;
		c->has = false;
		c->fresh = true;
	}
}

static u64 find_instance(const struct trace *t, const char *name)
{
	u64 at = guest_symbol(t->g, NULL, "trace_instances"), rings;
	u64 size = guest_size(t->g, "trace_instance");
	struct member n = guest_member(t->g, "trace_instance", "name");

	if (!name)
		return at;
	for (unsigned int i = 1; i <= 8; i++) {
		rings = guest_get(t->g, at + i * size, "trace_instance",
				  "rings");
		if (rings &&
		    !strcmp(guest_text(t->g, at + i * size + n.at), name))
			return at + i * size;
	}
	errx(1, "the guest has no instance '%s'", name);
}

/*
 * The CPUs whose rings hold the trace. A latency tracer keeps the longest latency in the
 * spare pages of those CPUs that it is about; the others' spare pages are of one before.
 */
static u64 cpus_of(const struct trace *t)
{
	u64 first = guest_symbol(t->g, NULL, "trace_instances");
	u64 nr = (t->instance - first) / guest_size(t->g, "trace_instance");

	if (!t->latency)
		return ~0ull;
	return guest_get(t->g,
			 guest_symbol(t->g, "snapshot.c", "snapshots") +
				 nr * guest_size(t->g, "snapshot"),
			 "snapshot", "taken");
}

void trace_open(struct trace *t, struct guest *g, const char *instance)
{
	u64 rings, tracer, name, cpus;

	*t = (struct trace){ .g = g };
	t->nr_cpus = guest_number(g, guest_symbol(g, NULL, "nr_cpus"), 4);
	if (!t->nr_cpus || t->nr_cpus > MAX_TRACE_CPUS)
		errx(1, "the guest has just begun: it does not know its CPUs");
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
	formats_read(t);
	rings = guest_get(g, t->instance, "trace_instance",
			  t->latency ? "spares" : "rings");
	if (!rings || !t->mult)
		errx(1, "the guest has just begun: it has no trace buffer");
	cpus = cpus_of(t);
	t->nr_cursors = t->nr_cpus;
	for (unsigned int i = 0; i < t->nr_cursors; i++) {
		t->cursors[i].cpu = i;
		if (cpus >> i & 1)
			open_ring(t, &t->cursors[i],
				  rings + i * guest_size(g, "ring"));
	}
	rewind_all(t);
}
