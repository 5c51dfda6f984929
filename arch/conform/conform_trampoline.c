/* SPDX-License-Identifier: MIT */
/*
 * Conformance of a port's trampolines with arch_trace.h: each of them keeps every
 * register that may carry something there. conform_return.c has the tests of returns.
 */
#include <arch/conform/conform.h>
#include <tracer/testing.h>

#include <kernel/image/symbols.h>
#include <kernel/lock/mutex.h>
#include <tracer/ring/ring_control.h>

u32 conform_hits; /* atomic: calls of hit_with_all_registers() */
static struct {
	unsigned long ip, parent;
	bool irqs_off;
	u32 misaligned; /* atomic: calls with a stack that is not aligned as by the ABI */
} last;

/* Uses all registers that a called function may change. */
static void hit_with_all_registers(unsigned long ip, unsigned long parent,
				   struct trace_ops *ops)
{
	char text[40] __attribute__((aligned));
	unsigned long at = (unsigned long)text;

	(void)ops;
	/*
	 * The asm keeps the compiler from relying on the alignment. GCC for x86-64
	 * pushes a nested function's static chain before its site, so that neither the
	 * alignment nor the parent is right there.
	 */
	asm volatile("" : "+r"(at));
	if (at % __BIGGEST_ALIGNMENT__ &&
	    parent - (unsigned long)_text < (unsigned long)(_etext - _text))
		count_up(&last.misaligned);
	snprintf(text, sizeof(text), "%lx %lx %d", ip, parent, 12345);
	last.ip = ip;
	last.parent = parent;
	last.irqs_off = arch_irqs_off();
	count_up(&conform_hits);
}
struct trace_ops conform_ops = { .entry = trace_entry_call,
				 .func = hit_with_all_registers };

/* Every site in kernel/test/victim.c, also that of its nested function. */
static u32 want_victims(unsigned int w, const void *arg)
{
	unsigned int end = min(32 * w + 32, site_count);
	u32 bits = 0;

	(void)arg;
	for (unsigned int i = 32 * w; i < end; i++) {
		const char *name = site_function(i);

		if (!strncmp(name, "victim_", 7) || !strncmp(name, "inner", 5))
			bits |= 1u << i % 32;
	}
	return bits;
}

int conform_switch_victims(bool on)
{
	struct patch_batch b;

	return patch_apply(&b, 0, site_words,
			   on ? want_victims : patch_want_off, NULL);
}

void conform_expect_values(struct ktest_run *t)
{
	const u64 big = 0x123456789abcdef0ull;
	struct victim_pair p = victim_struct(77);
	struct victim_two two = victim_two(6);

	KEXPECT_EQ(t, victim_call(5), 8);
	KEXPECT_EQ(t, victim_outer(5), 9);
	KEXPECT_EQ(t,
		   victim_arguments(1, big, 3, 4, 5, ~big, 7, big + 1, 9, 10),
		   victim_arguments_notrace(1, big, 3, 4, 5, ~big, 7, big + 1,
					    9, 10));
	KEXPECT_EQ(t, two.first, 7);
	KEXPECT_EQ(t, two.second, ~6ul);
	KEXPECT(t, p.first == 78 && p.second == ~0ull - 77 && p.third == 154);
	KEXPECT_EQ(t, victim_varargs(9, 1, 2, 3, 4, 5, 6, 7, 8, 9), 45);
	KEXPECT_EQ(t, victim_nested(10), 15 + 1 + 20 + 2);
}

void conform_expect_kept(struct ktest_run *t)
{
	irq_state_t state;

	for (unsigned int i = 0; i < CONFORM_ROUNDS; i++)
		conform_expect_values(t);
	state = arch_irq_save();
	conform_expect_values(t);
	KEXPECT(t, arch_irqs_off());
	arch_irq_restore(state);
	KEXPECT(t, !arch_irqs_off());
}

/* Call all victims while their sites lead to `ops`. */
static void expect_kept(struct ktest_run *t, struct trace_ops *ops)
{
	mutex_lock(&trace_mutex);
	trace_test_ops(ops);
	KEXPECT_EQ(t, conform_switch_victims(true), 0);
	conform_expect_kept(t);
	KEXPECT_EQ(t, conform_switch_victims(false), 0);
	KEXPECT_EQ(t, last.misaligned, 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
}

/*
 * Compiled calls reach the stub before conversion: every traced function that ran
 * before INIT_SITES went through it, and returned. This test shows the rest: the stub
 * is not trace_entry, and is no site itself.
 */
KTEST(stub, "arch_trace.trace_stub")
{
	struct symbol s;

	KEXPECT(t, trace_stub != trace_entry);
	KEXPECT(t, symbol_at((unsigned long)trace_stub, &s));
	KEXPECT(t, site_lower_bound(s.start) ==
			   site_lower_bound(s.start + s.size));
}

/* All trampolines stand between the first and the end. */
KTEST(trampoline_end, "arch_trace.trampoline_end")
{
	void (*const all[])(void) = { trace_entry_off,	  trace_entry_ring,
				      trace_entry_call,	  trace_entry_choose,
				      trace_entry_return, trace_return };

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		KEXPECT(t, (unsigned long)all[i] > (unsigned long)trace_entry);
		KEXPECT(t,
			(unsigned long)all[i] < (unsigned long)trampoline_end);
	}
	KEXPECT(t, (unsigned long)trampoline_end <= (unsigned long)_etext);
}

KTEST(entry, "arch_trace.trace_entry")
{
	int site = trace_test_site(victim_call);
	struct patch_batch b;
	u32 before = conform_hits;

	KASSERT(t, site >= 0);
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	for (unsigned int i = 0; i < 10; i++) {
		trace_test_ops(i % 2 ? &conform_ops : &trace_ops_off);
		KEXPECT_EQ(t, victim_call(i), i + 3);
		KEXPECT_EQ(t, conform_hits - before, (i + 1) / 2);
	}
	trace_test_ops(NULL);
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	mutex_unlock(&trace_mutex);
}

KTEST(entry_off, "arch_trace.trace_entry_off")
{
	struct ring_stats s;

	trace_test_reset();
	expect_kept(t, &trace_ops_off);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 0);
}

static void record_calls(void)
{
	mutex_lock(&trace_mutex);
	ring_set_mode(ring_mode | RING_CALLS);
	ring_record(rings, cpus_present(), true, NULL);
	mutex_unlock(&trace_mutex);
}

KTEST(entry_ring, "arch_trace.trace_entry_ring")
{
	static struct trace_ops ring_ops = { .entry = trace_entry_ring };
	const struct ring_entry *e;
	unsigned int wrong = 0;
	struct ring_stats s;
	struct symbol sym;
	struct trace_iter *it;

	trace_test_reset();
	record_calls();
	expect_kept(t, &ring_ops);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.dropped, 0);
	KEXPECT(t, s.written > CONFORM_ROUNDS * 8);
	it = trace_iter_open(rings, cpus_present(), true);
	KASSERT(t, it);
	while ((e = trace_iter_peek(it))) {
		int site = site_find(e->ip - arch_site_length);

		/*
		 * In a nested function GCC for x86-64 pushes the static chain
		 * before the site, where the parent's address should be.
		 */
		wrong +=
			site < 0 || (strncmp(site_function(site), "inner", 5) &&
				     (!symbol_at(e->parent - 1, &sym) ||
				      (strncmp(sym.name, "conform_", 8) &&
				       strncmp(sym.name, "victim_", 7))));
		trace_iter_next(it);
	}
	trace_iter_close(it);
	KEXPECT_EQ(t, wrong, 0);
	trace_test_reset();
}

/* Where calls are not to be recorded the trampoline goes back by itself: C code, which sees
 * a ring that records, would write. */
KTEST(entry_ring_pass, "arch_trace.trace_entry_ring.pass")
{
	static struct trace_ops ring_ops = { .entry = trace_entry_ring };
	struct ring_stats s;

	trace_test_reset();
	KEXPECT(t, arch_this_cpu()->head.ring.calls == (char *)RING_PASS);
	expect_kept(t, &ring_ops);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 0);
	trace_test_reset();
}

const u32 conform_contexts[] = { 0, 2 | PREEMPT_IRQ_ONE,
				 PREEMPT_DEPTH_MASK | 3 * PREEMPT_IRQ_ONE,
				 0x51 | PREEMPT_RESCHED };

/* One call at this count, with interrupts off, which its event tells. */
static void expect_context(struct ktest_run *t, u32 count, bool slow)
{
	struct cpu_head *head = &arch_this_cpu()->head;
	const struct ring_event *e = (const struct ring_event *)head->ring.cur;
	u32 before = head->preempt_count;
	char *calls = head->ring.calls;

	if (slow)
		head->ring.calls = NULL;
	head->preempt_count = count;
	victim_call(1);
	head->preempt_count = before;
	head->ring.calls = calls;
	KEXPECT_EQ(t, head->ring.cur - (const char *)e, RING_EVENT_SIZE);
	KEXPECT_EQ(t, e->ip & 0xff, count & 0xff);
	KEXPECT_EQ(t, e->parent & 0xff, count >> 8 | RING_IRQS_OFF);
}

/* Each of the bytes that say where the call came from, by the trampoline and by C code. */
KTEST(entry_ring_context, "arch_trace.trace_entry_ring.context")
{
	irq_state_t state;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	state = arch_irq_save();
	victim_call(1); /* the ring knows the task now */
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(conform_contexts); i++)
		expect_context(t, conform_contexts[i / 2], i % 2);
	arch_irq_restore(state);
	trace_test_reset();
}

/* Each call has its event. */
KTEST(entry_ring_interrupts, "arch_trace.trace_entry_ring.interrupts")
{
	struct ring_stats s;
	u64 calls;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	calls = conform_interrupted_calls();
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, calls);
	trace_test_reset();
}

/* 32 bits cannot say how much later than its page the event is: C gives the page another time. */
KTEST(entry_ring_old_page, "arch_trace.trace_entry_ring.old_page")
{
	struct ring_place *at;
	irq_state_t state;
	u64 base;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	victim_call(1);
	state = arch_irq_save();
	at = &arch_this_cpu()->head.ring;
	at->base -= 1ull << 33;
	base = at->base;
	KEXPECT_EQ(t, victim_call(5), 8);
	KEXPECT(t, at->base != base);
	arch_irq_restore(state);
	trace_test_reset();
}

/* The slow path: every event must ask C, as on a page that is full. */
KTEST(ring_slow, "arch_trace.trace_ring_slow")
{
	struct ring_stats s;
	irq_state_t state;

	KEXPECT_EQ(t, trace_test_victim(), 0);
	for (unsigned int i = 0; i < 2 * RING_SLOTS; i++) {
		state = arch_irq_save();
		arch_this_cpu()->head.ring.calls = NULL;
		KEXPECT_EQ(t, victim_call(i), i + 3);
		arch_irq_restore(state);
	}
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 2 * RING_SLOTS);
	trace_test_reset();
}

KTEST(entry_call, "arch_trace.trace_entry_call")
{
	int site = trace_test_site(victim_call);
	struct patch_batch b;
	struct symbol s;
	irq_state_t state;

	KASSERT(t, site >= 0);
	expect_kept(t, &conform_ops);
	mutex_lock(&trace_mutex);
	trace_test_ops(&conform_ops);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	victim_outer(1);
	KEXPECT(t, symbol_at(last.parent - 1, &s));
	KEXPECT(t, s.start == (unsigned long)victim_outer);
	KEXPECT(t, !last.irqs_off);
	state = arch_irq_save();
	victim_outer(1);
	arch_irq_restore(state);
	KEXPECT(t, last.irqs_off);
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
}

static u32 strays;

static void stray_call(unsigned long ip, unsigned long parent,
		       struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
	count_up(&strays);
}

/* It takes no time, so that the timer finds the task in the trampoline. */
static void quick_call(unsigned long ip, unsigned long parent,
		       struct trace_ops *ops)
{
	(void)ip, (void)parent, (void)ops;
}
static struct trace_ops choose_ops = { .entry = trace_entry_choose,
				       .func = hit_with_all_registers };

static void fill_in_c(u32 word)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(trace_in_c); i++)
		trace_in_c[i] = word;
}

/* Registers are kept on both ways. */
KTEST(entry_choose, "arch_trace.trace_entry_choose")
{
	struct ring_stats s;
	u32 before = conform_hits;

	trace_test_reset();
	record_calls();
	fill_in_c(0);
	expect_kept(t, &choose_ops);
	KEXPECT_EQ(t, conform_hits, before);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT(t, s.written > CONFORM_ROUNDS * 8);
	trace_test_reset();
	fill_in_c(~0u);
	expect_kept(t, &choose_ops);
	KEXPECT(t, conform_hits - before > CONFORM_ROUNDS * 8);
	KEXPECT(t, trace_test_books(&s));
	KEXPECT_EQ(t, s.written, 0);
}

/* The number of bits for which trace_entry_choose sends a call of this function the wrong way.
 * Only the site's own bit sends it to C. */
static unsigned int wrong_bits(unsigned long (*fn)(unsigned long x))
{
	int site = trace_test_site(fn);
	unsigned int wrong = 0, own;
	struct patch_batch b;

	if (site < 0 || patch_site(&b, site, true))
		return ~0u;
	own = (site_address(site) + arch_site_length) / 4 % TRACE_IN_C_BITS;
	for (unsigned int n = 0; n < TRACE_IN_C_BITS; n++) {
		u32 hits = conform_hits;

		trace_in_c[n / 32] = 1u << n % 32;
		fn(n);
		trace_in_c[n / 32] = 0;
		wrong += conform_hits - hits != (n == own);
	}
	return patch_site(&b, site, false) ? ~0u : wrong;
}

/* Several functions: at some addresses a wrong shift finds the right bit. */
KTEST(entry_choose_bits, "arch_trace.trace_entry_choose.bits")
{
	fill_in_c(0);
	mutex_lock(&trace_mutex);
	trace_test_ops(&choose_ops);
	KEXPECT_EQ(t, wrong_bits(victim_call), 0);
	KEXPECT_EQ(t, wrong_bits(victim_other), 0);
	KEXPECT_EQ(t, wrong_bits(victim_leaf), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	trace_test_reset();
}

static struct trace_ops quick_ops = { .entry = trace_entry_call,
				      .func = quick_call };

/* The tracer is exchanged while a call is on its way through the trampoline. */
static void exchange_ops(struct timer *timer)
{
	static struct trace_ops no_call = { .entry = trace_entry_off,
					    .func = stray_call };

	(void)timer;
	trace_test_ops(&no_call);
}

#define EXCHANGES 1000

/*
 * The trampolines take entry and func from one load of trace_ops. A call that has come to
 * trace_entry_call through one tracer's entry never calls another tracer's function.
 */
KTEST(one_load, "arch_trace.trace_ops.one_load")
{
	int site = trace_test_site(victim_call);
	struct patch_batch b;
	struct timer timer;

	KASSERT(t, site >= 0);
	strays = 0;
	timer_setup(&timer, exchange_ops);
	mutex_lock(&trace_mutex);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	for (unsigned int i = 0; i < EXCHANGES; i++) {
		trace_test_ops(&quick_ops);
		preempt_disable();
		timer_start(&timer, 5 * NSEC_PER_USEC);
		/* The timer comes at another instruction each time. */
		for (unsigned int n = i % 64; n--;)
			asm volatile("");
		while (trace_ops == &quick_ops)
			victim_call(1);
		preempt_enable();
	}
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, strays, 0);
}

/* The ip that the live call hands over leads back to its site. */
KTEST(site_length, "arch_trace.arch_site_length")
{
	int site = trace_test_site(victim_call);
	struct patch_batch b;

	KASSERT(t, site >= 0);
	mutex_lock(&trace_mutex);
	trace_test_ops(&conform_ops);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	victim_call(1);
	KEXPECT_EQ(t, last.ip - arch_site_length, site_address(site));
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
}

KTEST(ops, "arch_trace.trace_ops")
{
	KEXPECT(t, trace_ops == &trace_ops_off);
	KEXPECT(t, trace_ops->entry == trace_entry_off);
	KEXPECT_EQ(t, offsetof(struct trace_ops, entry), 0);
}
