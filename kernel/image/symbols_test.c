/* SPDX-License-Identifier: MIT */
/*
 * Proves that the symbol table finds functions by name and by address, and that a
 * backtrace names the callers.
 */
#include <kernel/test/ktest.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/image/unwind.h>
#include <kernel/test/again.h>

/* Its entry in the table, not a pointer to it: nothing is inlined into these. */
static noinline unsigned int innermost_function(unsigned long *pcs,
						unsigned int max)
{
	unsigned int n = backtrace_get(NULL, NULL, pcs, max);

	asm volatile("" : "+r"(n)); /* no tail call */
	return n;
}

static noinline unsigned int middle_function(unsigned long *pcs,
					     unsigned int max)
{
	unsigned int n = innermost_function(pcs, max);

	asm volatile("" : "+r"(n));
	return n;
}

KTEST(symbols_lookup, "symbols.lookup")
{
	unsigned long middle_at = (unsigned long)middle_function;
	struct symbol s, by_name, next;

	KASSERT(t, symbol_at(middle_at, &s));
	KEXPECT(t, !strcmp(s.name, "middle_function"));
	KEXPECT_EQ(t, s.start, middle_at);
	KASSERT(t, symbol_at(s.start + s.size - 1, &next));
	KEXPECT_EQ(t, next.index, s.index);
	KEXPECT(t, symbol_find("schedule", &by_name));
	KEXPECT_EQ(t, by_name.start, (unsigned long)schedule);
	KEXPECT(t, !symbol_find("schedule_", &by_name));
	KEXPECT(t, !symbol_find("", &by_name));
	KEXPECT(t, !symbol_at(0, &s));
	KEXPECT(t, !symbol_at((unsigned long)_text - 1, &s));
	KEXPECT(t, !symbol_at((unsigned long)_end, &s));
	KEXPECT(t, !symbol_get(symbol_count, &s));
}

KTEST(symbols_sorted, "symbols.sorted")
{
	struct symbol s, last = { 0 }, found;

	KEXPECT(t, symbol_count > 100);
	for (unsigned int i = 0; i < symbol_count; i++) {
		KASSERT(t, symbol_get(i, &s));
		KEXPECT(t, s.start >= last.start + last.size);
		KEXPECT(t, symbol_find(s.name, &found) &&
				   !strcmp(found.name, s.name));
		last = s;
	}
	KEXPECT(t, last.start + last.size <= (unsigned long)_etext);
}

static bool stands_in(unsigned long pc, const char *name)
{
	struct symbol s;

	return symbol_at(pc, &s) && !strcmp(s.name, name);
}

KTEST(symbols_backtrace, "symbols.backtrace")
{
	unsigned long pcs[16];
	unsigned int n = middle_function(pcs, 16), i = 0;

	KASSERT(t, n >= 4);
	while (i < n && !stands_in(pcs[i], "innermost_function"))
		i++;
	KASSERT(t, i + 3 <= n);
	KEXPECT(t, stands_in(pcs[i + 1], "middle_function"));
	KEXPECT(t, stands_in(pcs[i + 2], "ktest_symbols_backtrace"));
	KEXPECT_EQ(t, middle_function(pcs, 2), 2);
}

static void sleep_in(void *arg)
{
	(void)arg;
	task_sleep(1000 * NSEC_PER_SEC);
	asm volatile(""); /* no tail call */
}

KTEST(symbols_backtrace_task, "symbols.backtrace_of_task")
{
	struct task *s = task_create("sleeper", PRIO_LOW, ~0u, sleep_in, NULL);
	unsigned long pcs[16];
	unsigned int n;
	bool found = false;

	KEXPECT(t, KWAIT(READ_ONCE(s->state) == TASK_BLOCKED &&
			 !READ_ONCE(s->on_cpu)));
	n = backtrace_get(NULL, s, pcs, 16);
	for (unsigned int i = 0; i < n; i++)
		found |= stands_in(pcs[i], "sleep_in");
	KEXPECT(t, found);
	task_stop(s);
	task_join(s);
}
