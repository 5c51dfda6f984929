/* The writer's half of the trace buffer: everything but the common case, which
 * is trace_entry_ring in the port's trampoline.S. */
#include <tracer/ring/ring_internal.h>
#include <tracer/ring/ring_event.h>

#include <arch/arch_trace.h>
#include <tracer/options.h>
#include <tracer/pids.h>
#include <tracer/tracer.h>
#include <kernel/image/unwind.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/patch_path.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>

struct ring rings[MAX_CPUS], ring_spares[MAX_CPUS];
bool ring_gated, ring_by_c, ring_triggers;

static inline struct ring_page *current_page(const struct ring *r)
{
	return r->pages[r->head % r->nr];
}

/*
 * What the trampoline may use: nothing unless the CPU records and is not inside
 * the tracer. ring_cur keeps its place all the while.
 */
static inline void open_page(const struct ring *r, struct cpu_head *head)
{
	head->ring_end = r->recording && !r->busy && !r->passed_over &&
					 !r->full && !ring_by_c ?
				 (char *)(current_page(r)->slots + RING_SLOTS) :
				 NULL;
}

/* Take a page from its readers, and settle the books for what it held. */
static void take_back(struct ring *r, struct ring_page *p)
{
	u32 old = __atomic_exchange_n(&p->state, RING_STATE(RING_NOBODY, 0, 0),
				      __ATOMIC_ACQ_REL);
	u32 entries = p->used - p->inner;

	if (RING_STATE_GEN(old) == RING_NOBODY)
		return;
	r->read += RING_STATE_ENTRIES(old);
	r->overwritten += entries - RING_STATE_ENTRIES(old);
	/* New slots after the new state: pairs with the fence in
	 * ring_read.c's copy_slots(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Make page number seq the one being written, its times counting from now. */
static void begin_page(struct ring *r, struct cpu_head *head, u32 seq,
		       u64 before)
{
	struct ring_page *p = r->pages[seq % r->nr];

	take_back(r, p);
	r->full = false;
	head->ring_base = arch_clock();
	p->base = head->ring_base;
	p->before = before;
	p->used = 0;
	p->inner = 0;
	p->pid = r->pid;
	p->seq = seq;
	if (seq - r->tail >= r->nr)
		WRITE_ONCE(r->tail, seq - r->nr + 1);
	/* The header before the state, both before ring_cur and head: pairs
	 * with the acquires in ring_read.c. */
	__atomic_store_n(&p->state, RING_STATE(RING_GEN(seq), 0, 0),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&head->ring_cur, (char *)p->slots, __ATOMIC_RELEASE);
	__atomic_store_n(&r->head, seq, __ATOMIC_RELEASE);
	open_page(r, head);
}

static void close_page(struct ring *r, struct cpu_head *head)
{
	struct ring_page *p = current_page(r);

	p->used = ring_slots_used(p, head->ring_cur);
}

static void take_back_all(struct ring *r)
{
	u32 i;

	for (i = 0; i < r->nr; i++)
		take_back(r, r->pages[i]);
}

static void next_page(struct ring *r, struct cpu_head *head)
{
	struct ring_page *p = current_page(r);
	u64 before;

	close_page(r, head);
	before = p->before + p->used - p->inner;
	if (r->head == ~0u) {
		/* Page numbers run over after 2^32 pages: start again. */
		take_back_all(r);
		r->head = r->tail = 0;
		begin_page(r, head, 0, before);
	} else {
		begin_page(r, head, r->head + 1, before);
	}
}

static inline void publish(struct cpu_head *head, u32 slots)
{
	/* Pairs with the acquire of ring_cur in ring_read.c. */
	__atomic_store_n(&head->ring_cur,
			 head->ring_cur + slots * RING_EVENT_SIZE,
			 __ATOMIC_RELEASE);
}

/* Does the oldest page, which would be written next, hold entries that no reader has consumed
 * and that option overwrite does not give up? */
static bool must_keep(const struct ring *r)
{
	const struct ring_page *p;
	u32 state;

	if (trace_option(OPT_OVERWRITE) || r->head + 1 - r->tail < r->nr)
		return false;
	p = r->pages[(r->head + 1) % r->nr];
	state = READ_ONCE(p->state);
	return RING_STATE_GEN(state) != RING_NOBODY &&
	       RING_STATE_ENTRIES(state) < (u32)(p->used - p->inner);
}

/*
 * Room for n slots in one page, and a clock base that 32 bits reach from; NULL: the ring is
 * full, and must keep what it has. From then on every entry goes through here until a reader
 * has freed a page, so that none finds room after another that has not.
 */
static struct ring_event *reserve(struct ring *r, struct cpu_head *head, u32 n,
				  u32 *delta)
{
	struct ring_page *p = current_page(r);
	u64 now = arch_clock();
	struct ring_event *e;

	if (head->ring_cur + (n + 1) * RING_EVENT_SIZE >
		    (char *)(p->slots + RING_SLOTS) ||
	    r->full) {
		if (must_keep(r)) {
			r->full = true;
			open_page(r, head);
			return NULL;
		}
		next_page(r, head);
		now = head->ring_base;
	} else if ((now - head->ring_base) >> 32) {
		e = (struct ring_event *)head->ring_cur;
		e->delta = now;
		e->ip = RING_TIME << 8;
		e->parent = now >> 32;
		p->inner++;
		publish(head, 1);
		head->ring_base = now;
	}
	*delta = now - head->ring_base;
	return (struct ring_event *)head->ring_cur;
}

static void mark_task(struct ring *r, struct cpu_head *head, s32 pid)
{
	struct ring_event *e;
	u32 delta;

	e = reserve(r, head, 1, &delta);
	r->pid = pid;
	if (!e)
		return; /* the next page's header says it */
	e->delta = delta;
	e->ip = RING_TASK << 8;
	e->parent = pid;
	current_page(r)->inner++;
	publish(head, 1);
}

/* A task that is passed over may write a marker, so it is marked then. */
void ring_task(s32 pid, bool traced)
{
	struct ring *r = &rings[cpu_index()];
	struct cpu_head *head = &arch_this_cpu()->head;

	if (r->recording && pid != r->pid && traced)
		mark_task(r, head, pid);
	r->passed_over = !traced;
	open_page(r, head);
}

/* An entry's first slot; `more` are there for the caller to fill and publish. NULL: there is no
 * room, and the entry has been counted as dropped. */
static struct ring_event *begin_entry(struct ring *r, struct cpu_head *head,
				      u32 ip, u32 parent, u32 context, u32 more)
{
	u32 delta;
	struct ring_event *e = reserve(r, head, 1 + more, &delta);

	if (!e) {
		r->dropped++;
		return NULL;
	}
	e->delta = delta;
	e->ip = ip << 8 | (context & 0xff);
	e->parent = parent << 8 | (context >> 8 & 0xff);
	current_page(r)->inner += more;
	return e;
}

/* Asked where pids are listed, or where triggers may just have changed tracing_on. */
static bool may_record(const struct ring *r)
{
	return r->recording && !r->passed_over && READ_ONCE(trace_state.on);
}

bool ring_write(u32 ip, u32 parent, u32 context, const struct ring_event *more)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	struct ring *r = &rings[head->index];
	struct ring_event *e;

	if (__builtin_expect(READ_ONCE(ring_gated), 0) && !may_record(r))
		return false;
	/* An NMI may have come while the ring was being written. */
	if (r->busy || (context & PREEMPT_NMI)) {
		r->dropped++;
		return false;
	}
	if (!r->recording)
		return false;
	e = begin_entry(r, head, ip, parent, context, !!more);
	if (!e)
		return false;
	if (more)
		e[1] = *more;
	publish(head, more ? 2 : 1);
	return true;
}

void trace_ring_slow(unsigned long ip, unsigned long parent, u32 context)
{
	ring_write(ip - (unsigned long)_text, parent - (unsigned long)_text,
		   context, NULL);
}
PATCH_ROOT(trace_ring_slow);

bool ring_enter(irq_state_t *state)
{
	struct ring *r;

	*state = arch_irq_save();
	r = &rings[cpu_index()];
	if (r->busy) {
		r->dropped++;
		arch_irq_restore(*state);
		return false;
	}
	r->busy = true;
	arch_this_cpu()->head.ring_end = NULL;
	return true;
}

void ring_leave(irq_state_t state)
{
	struct ring *r = &rings[cpu_index()];

	r->busy = false;
	open_page(r, &arch_this_cpu()->head);
	arch_irq_restore(state);
}

static int write_mark(struct ring *r, u32 type, u32 context, const void *text,
		      size_t len)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	u32 more = RING_MORE_SLOTS(len);
	struct ring_event *e = begin_entry(r, head, type, len, context, more);

	if (!e)
		return -ENOSPC;
	memcpy(e + 1, text, len);
	publish(head, 1 + more);
	return 0;
}

int ring_mark(const char *text, size_t len)
{
	bool irqs_off = arch_irqs_off();
	irq_state_t state;
	struct ring *r;
	int err = -EBUSY;

	if (!ring_enter(&state))
		return -EBUSY;
	r = &rings[cpu_index()];
	if (r->recording && READ_ONCE(trace_state.on)) {
		if (current_task()->pid != r->pid)
			mark_task(r, &arch_this_cpu()->head,
				  current_task()->pid);
		err = write_mark(r, RING_MARK, ring_context(irqs_off), text,
				 len);
	}
	ring_leave(state);
	return err;
}

void *ring_event_slow(bool irqs_off, u32 size)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	struct ring *r = &rings[head->index];
	struct ring_event *e;
	u32 delta;

	if (!r->recording ||
	    (!READ_ONCE(trace_state.on) && !READ_ONCE(ring_triggers)))
		goto none;
	if (r->busy || (head->preempt_count & PREEMPT_NMI)) {
		r->dropped++;
		goto none;
	}
	/* A task that is passed over may have events. */
	if (head->current->pid != r->pid)
		mark_task(r, head, head->current->pid);
	e = reserve(r, head, 1 + RING_MORE_SLOTS(size + 4), &delta);
	if (!e) {
		r->dropped++;
		goto none;
	}
	e->delta = delta;
	return ring_event_record(e);
none:
	ring_event_drop(irqs_off);
	return NULL;
}
PATCH_ROOT(ring_event_slow);

void ring_stack(unsigned long ip, bool behind, bool irqs_off)
{
	u32 offsets[RING_STACK_MAX];
	unsigned int n = 0;
	bool begun = false;
	irq_state_t state;
	struct unwind u;
	struct ring *r;

	if (!ring_enter(&state))
		return;
	r = &rings[cpu_index()];
	if (may_record(r)) {
		/* The walk begins here; the tracer's own calls are left out. */
		for (unwind_start(&u, NULL, NULL);
		     unwind_next(&u) && n < RING_STACK_MAX;) {
			if (begun || (u.regs.pc == ip && !behind))
				offsets[n++] = u.regs.pc - (unsigned long)_text;
			begun |= u.regs.pc == ip;
		}
		write_mark(r, RING_STACK, ring_context(irqs_off), offsets,
			   n * sizeof(offsets[0]));
	}
	ring_leave(state);
}

void ring_restart(struct ring *r, struct cpu_head *head)
{
	take_back_all(r);
	r->read = r->overwritten = r->dropped = 0;
	r->began = arch_clock();
	r->tail = r->head == ~0u ? 0 : r->head + 1;
	begin_page(r, head, r->tail, 0);
}

void ring_exchange(struct ring *r, struct ring *spare, struct cpu_head *head)
{
	struct ring_page **pages = spare->pages;

	close_page(r, head);
	*spare = *r;
	r->pages = pages;
	ring_restart(r, head);
}

void ring_forget(struct ring *spare)
{
	struct ring_page *p = current_page(spare);

	take_back_all(spare);
	spare->read = spare->overwritten = spare->dropped = 0;
	spare->tail = spare->head;
	p->before = 0;
	p->used = p->inner = 0;
}

void ring_adopt(struct ring *r, struct cpu_head *head, struct ring_page **pages,
		u32 nr)
{
	struct ring_page **old = r->pages, *p;
	u32 old_nr = r->nr, first, seq, i;

	r->pages = pages;
	r->nr = nr;
	if (!old) {
		ring_restart(r, head);
		return;
	}
	first = r->head - min(r->head - r->tail, nr - 1);
	for (seq = first; seq != r->head + 1; seq++) {
		p = pages[seq % nr];
		pages[seq % nr] = old[seq % old_nr];
		old[seq % old_nr] = p;
	}
	for (i = 0; i < old_nr; i++)
		take_back(r, old[i]);
	WRITE_ONCE(r->tail, first);
}

void ring_switch(struct ring *r, struct cpu_head *head, bool on)
{
	s32 pid = head->current ? head->current->pid : 0;

	if (on && pid != r->pid)
		mark_task(r, head, pid);
	r->recording = on;
	r->passed_over = on && !pid_is_traced(pid);
	open_page(r, head);
}
