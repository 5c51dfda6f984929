/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds and timers. Each CPU has one queue of timers and one one-shot
 * timer, set to the soonest of its queue and, while a task runs, the end of the
 * time slice: an idle CPU has no tick.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/event/event.h>
#include <kernel/event/latency.h>
#include <kernel/printk.h>
#include <kernel/sched/sched_internal.h>
#include <kernel/time.h>

#define NEVER (~0ull)
/* 36 years. The fastest clock that time_init() takes counts less than 2^64 ticks meanwhile. */
#define NS_MOST (1ull << 60)

/* ticks * mult >> shift, mult below 2^32 and as large as fits, shift <= 32. */
struct ratio {
	u32 mult;
	unsigned int shift;
};

static struct ratio to_ns, from_ns;
static u64 clock_base;

/* num / den as a ratio. Exact to 2^-31, so a second in 60 years. */
static struct ratio ratio_make(u64 num, u64 den)
{
	struct ratio r = { 0, 32 };

	while (r.shift && (num << r.shift >> r.shift != num ||
			   (num << r.shift) / den >> 32))
		r.shift--;
	r.mult = (num << r.shift) / den;
	return r;
}

/*
 * 96 bits wide, so that no number of ticks overflows on the way, exact, so that
 * more ticks never give less time. The part of the product above bit 32 is a
 * multiple of 2^shift: nothing is lost by shifting both parts separately.
 */
static notrace u64 ratio_apply(const struct ratio *r, u64 v)
{
	u64 high = (v >> 32) * r->mult, low = (v & 0xffffffff) * r->mult;

	return (high << (32 - r->shift)) + (low >> r->shift);
}

notrace u64 clock_delta_to_ns(u64 ticks)
{
	return ratio_apply(&to_ns, ticks);
}

notrace u64 ns_to_clock_delta(u64 ns)
{
	return ratio_apply(&from_ns, min(ns, NS_MOST)) + 1;
}

/* A clock of before the start counts as the start. */
notrace u64 clock_to_ns(u64 clock)
{
	return (s64)(clock - clock_base) < 0 ?
		       0 :
		       clock_delta_to_ns(clock - clock_base);
}

notrace u64 time_ns(void)
{
	return clock_to_ns(arch_clock());
}

notrace struct spin_limit spin_limit_begin(u64 ns)
{
	return (struct spin_limit){ arch_clock(), ns_to_clock_delta(ns) };
}

notrace bool spin_limit_over(struct spin_limit *l)
{
	u64 now = arch_clock();
	u64 passed = min(now - l->seen, ns_to_clock_delta(SPIN_LOOK_NS));

	l->seen = now;
	l->left -= min(passed, l->left);
	return !l->left;
}

void time_init(void)
{
	u64 hz = arch_clock_init();

	if (!hz || hz > 1ull << 33)
		panic("clock: %llu Hz makes no sense", (unsigned long long)hz);
	to_ns = ratio_make(NSEC_PER_SEC, hz);
	from_ns = ratio_make(hz, NSEC_PER_SEC);
	clock_base = arch_clock();
	for (unsigned int c = 0; c < MAX_CPUS; c++) {
		spin_init(&cpus[c].timers.lock, "timers");
		list_init(&cpus[c].timers.timers);
	}
}

/* A CPU that comes up calls it before its fetch is synchronised: no site. */
notrace void time_init_cpu(void)
{
	arch_this_cpu()->timers.programmed = NEVER;
	arch_timer_init();
}

static u64 first_deadline(struct timer_queue *q)
{
	return list_empty(&q->timers) ?
		       NEVER :
		       list_entry(q->timers.next, struct timer, link)->deadline;
}

FAULT(timer_early, "a timer's interrupt comes before any timer is due");

/* Set only when sooner than it is: an interrupt too many does no harm, and
 * setting it costs a trap into firmware on some machines. */
void time_program(void)
{
	struct timer_queue *q = &arch_this_cpu()->timers;
	irq_state_t state = spin_lock(&q->lock);
	u64 deadline = min(first_deadline(q), sched_slice_end());

	if (deadline < q->programmed) {
		q->programmed = deadline;
		arch_timer_set(fault_happens(&fault_timer_early) ?
				       arch_clock() :
				       deadline);
	}
	spin_unlock(&q->lock, state);
}

void timer_setup(struct timer *t, void (*fn)(struct timer *t))
{
	list_init(&t->link);
	t->fn = fn;
	t->cpu = 0;
	t->armed = false;
}

/* Behind all that are not due later, and before pos: all from there on are due later. */
static void insert_timer(struct timer_queue *q, struct timer *t,
			 struct list *pos)
{
	while (pos->prev != &q->timers &&
	       list_entry(pos->prev, struct timer, link)->deadline >
		       t->deadline)
		pos = pos->prev;
	list_add_before(pos, &t->link);
	t->armed = true;
}

void timer_start(struct timer *t, u64 ns)
{
	irq_state_t irq = irq_save(), state;
	struct cpu *cpu = arch_this_cpu();
	u64 now = arch_clock(), ticks = ns_to_clock_delta(ns);

	timer_cancel(t);
	state = spin_lock(&cpu->timers.lock);
	t->cpu = cpu->head.index;
	t->deadline = ticks < NEVER - now ? now + ticks : NEVER - 1;
	insert_timer(&cpu->timers, t, &cpu->timers.timers);
	trace_timer_start(t, t->cpu);
	spin_unlock(&cpu->timers.lock, state);
	time_program();
	irq_restore(irq);
}

/* One look: true if t was undone or is over, false while its fn runs, or when it
 * has gone to another CPU's queue meanwhile. */
static bool try_cancel(struct timer *t)
{
	unsigned int c = READ_ONCE(t->cpu);
	struct timer_queue *q = &cpus[c].timers;
	irq_state_t state = spin_lock(&q->lock);
	bool here = c == READ_ONCE(t->cpu), done = here && q->running != t;

	if (here && t->armed) {
		list_del(&t->link);
		t->armed = false;
	}
	spin_unlock(&q->lock, state);
	return done;
}

/* A timer's own fn need not wait for itself: it restarts its own timer. */
void timer_cancel(struct timer *t)
{
	while (!try_cancel(t)) {
		if (in_interrupt() && arch_this_cpu()->timers.running == t)
			return;
		arch_cpu_relax();
	}
}

void time_take_over(unsigned int c)
{
	struct timer_queue *from = &cpus[c].timers, *to;
	irq_state_t state = irq_save();
	unsigned int me = cpu_index();
	struct list *pos;

	to = &cpus[me].timers;
	spin_acquire(&cpus[min(c, me)].timers.lock);
	spin_acquire(&cpus[max(c, me)].timers.lock);
	pos = &to->timers;
	/* From the last on, so that the two queues are passed through once, however long. */
	while (!list_empty(&from->timers)) {
		struct timer *t =
			list_entry(from->timers.prev, struct timer, link);

		list_del(&t->link);
		WRITE_ONCE(t->cpu, me);
		insert_timer(to, t, pos);
		pos = &t->link;
	}
	spin_release(&from->lock);
	spin_release(&to->lock);
	time_program();
	irq_restore(state);
}

/* Take the first timer that is due off the queue, and remember it as running. NULL: none is. */
static struct timer *take_due(struct timer_queue *q, u64 now)
{
	irq_state_t state = spin_lock(&q->lock);
	struct timer *t = NULL;

	if (first_deadline(q) <= now) {
		t = list_entry(q->timers.next, struct timer, link);
		list_del(&t->link);
		t->armed = false;
	}
	q->running = t;
	spin_unlock(&q->lock, state);
	return t;
}

/* An interrupt handles so many timers: a timer that wakes a task takes 700 to 900 instructions. */
#define TIMERS_AT_ONCE 32u

/* After fn(t) has returned, t may be gone. */
void timer_interrupt(void)
{
	struct timer_queue *q = &arch_this_cpu()->timers;
	u64 now = arch_clock();
	unsigned int left = TIMERS_AT_ONCE;
	struct timer *t;

	q->programmed = NEVER;
	/* Those that are left are due: the next interrupt comes at once. */
	while ((t = take_due(q, left-- ? now : 0))) {
		trace_timer_expire_entry(t, now);
		t->fn(t);
		trace_timer_expire_exit(t);
	}
	scheduler_tick(now);
	time_program();
}
