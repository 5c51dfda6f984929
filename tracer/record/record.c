/* SPDX-License-Identifier: MIT */
/*
 * The run-time recorder: record.h.
 *
 * A record is one word: the return address of a compiled call, as an offset from
 * _text. 0 is a free record. The records are a hash table: a call is looked for in
 * RECORD_PROBES places, and stored in the first free one by a compare-and-swap. So
 * recording needs no lock and no memory.
 *
 * Conversion writes the fixed parts of sites while tasks may stand in them, which
 * conversion at boot does not. It is safe for three reasons:
 *
 * - Every CPU is held, with interrupts off, in code without sites. So no CPU fetches
 *   the text that changes, and each synchronises before it goes on.
 * - A task that was preempted before a site's call finds the site converted. A task that was
 *   preempted in the stub returns behind the site, where nothing changes. A task can stand within
 *   the call only where the call is several instructions. There the port keeps the first one's
 *   result good for the rest, even if the site has changed (RISC-V, mcount-far), or the Makefile
 *   refuses (MIPS, mcount-long). record_sweep_test.c holds a task at each of these places.
 * - site_seen() runs with interrupts off, so no CPU is held inside it, and no record
 *   changes while the records are emptied or exchanged. NMIs do not record.
 *
 * A task that was in the stub, or a CPU that was about to call site_seen(), may record
 * a site again after its conversion. The daemon knows that site, and drops the record.
 */
#include <tracer/record/record.h>

#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/test/ktest.h>
#include <kernel/param.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/cpu/stop.h>
#include <kernel/lib/sort.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/sites/kept_off.h>
#include <tracer/sites/sites.h>
#include <tracer/core/tracer.h>
#include <tracer/core/filter.h>
#include <tracer/core/client.h>

/* All that is called before there is a daemon, or while tests keep it from its turns: some 1,300
 * functions have a site. */
#define RECORDS_FIRST 2048
#define RECORDS_MIN RECORD_PROBES
#define RECORDS_MAX 65536
#define TURN_NS NSEC_PER_SEC

static u32 *table; /* live_calls.table, with room for a site in every function */

static u32 first_records[RECORDS_FIRST];
/* Exchanged only while all CPUs are held. */
static u32 *records = first_records;
static u32 records_mask = RECORDS_FIRST - 1;

/* `waiting` and `skipped` are atomic. The rest is under trace_mutex. */
static struct record_stats stats = { .records = RECORDS_FIRST };

FAULT(record_in_tests, "the recorder's daemon works while tests count");

/* True if offset is recorded now. False if this place is another's. */
static notrace bool try_record(u32 *place, u32 offset)
{
	u32 now = READ_ONCE(*place);

	/* Relaxed: a record is one word, and only read with all CPUs held. */
	if (!now &&
	    __atomic_compare_exchange_n(place, &now, offset, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		count_up(&stats.waiting);
		return true;
	}
	return now == offset;
}

/* The functions that it calls have no site either: the stub would call it again
 * (tools/patchpath). */
notrace void site_seen(unsigned long ip)
{
	irq_state_t state = arch_irq_save();
	u32 offset = ip - (unsigned long)_text;
	u32 hash = offset * 0x9e3779b1u >> 16, i;

	for (i = 0; i < RECORD_PROBES; i++)
		if (try_record(&records[(hash + i) & records_mask], offset))
			break;
	if (i == RECORD_PROBES)
		count_up(&stats.skipped);
	arch_irq_restore(state);
}

/* ---- Conversion ------------------------------------------------------------ */

/* In a word of `found`, above the site's offset: the outcome of conversion. */
#define FOUND_SKIPPED (1u << 24)
#define FOUND_FAILED (1u << 25)
#define FOUND_OFFSET (FOUND_SKIPPED - 1)

struct turn {
	u32 *found; /* room for all records */
	unsigned int n;
	u32 known;
	u32 *more; /* records to take the place of those there are, or NULL */
	u32 more_mask;
};

static unsigned long found_address(u32 word)
{
	return (unsigned long)_text + (word & FOUND_OFFSET);
}

static void convert_one(struct turn *turn, u32 offset, long delta)
{
	unsigned long site = (unsigned long)_text + offset - arch_site_length;
	u32 word = site - (unsigned long)_text;
	int err;

	/* Boot has dealt with those that are kept, but it began before. */
	if (site_find(site) >= 0 || site_is_kept_off(site)) {
		turn->known++;
		return;
	}
	err = arch_site_prepare(site, LIVE_CALL, delta);
	if (err)
		word |= err == -ERANGE ? FOUND_SKIPPED : FOUND_FAILED;
	turn->found[turn->n++] = word;
}

static void turn_change(void *arg)
{
	struct turn *turn = arg;
	long delta = arch_text_open();
	u32 i;

	for (i = 0; i <= records_mask; i++) {
		if (!records[i])
			continue;
		convert_one(turn, records[i], delta);
		records[i] = 0;
	}
	arch_text_close();
	stats.waiting = 0;
	if (turn->more) {
		records = turn->more;
		records_mask = turn->more_mask;
	}
}

static void turn_sync(void *arg)
{
	const struct turn *turn = arg;
	unsigned int i;

	for (i = 0; arch_sync_each_site && i < turn->n; i++)
		site_sync(found_address(turn->found[i]));
	arch_text_sync();
}

PATCH_INDIRECT(stop_lead, turn_change);
PATCH_INDIRECT(stop_lead, turn_sync);
PATCH_INDIRECT(stop_hold, turn_sync);

static bool lies_below(const void *a, const void *b)
{
	return (*(const u32 *)a & FOUND_OFFSET) <
	       (*(const u32 *)b & FOUND_OFFSET);
}

static void set_bit(u32 *bits, unsigned int i, bool on)
{
	u32 bit = 1u << (i % 32);

	bits[i / 32] = on ? bits[i / 32] | bit : bits[i / 32] & ~bit;
}

static void move_site(unsigned int to, unsigned int from)
{
	u32 *const *maps = (u32 *const *)&site_bits;

	table[to] = table[from];
	for (unsigned int m = 0; m < NR_SITE_BITMAPS; m++)
		if (maps[m])
			set_bit(maps[m], to, site_test(maps[m], from));
	set_bit(live_calls.patchable, to,
		site_test(live_calls.patchable, from));
	set_bit(live_calls.enabled, to, site_test(live_calls.enabled, from));
	set_bit(live_calls.touched, to, site_test(live_calls.touched, from));
}

static void place_site(unsigned int to, u32 word)
{
	bool failed = word & FOUND_FAILED, skipped = word & FOUND_SKIPPED;
	u32 *const *maps = (u32 *const *)&site_bits;

	table[to] = word & FOUND_OFFSET;
	for (unsigned int m = 0; m < NR_SITE_BITMAPS; m++)
		if (maps[m])
			set_bit(maps[m], to, false);
	set_bit(live_calls.enabled, to, false);
	set_bit(live_calls.touched, to, false);
	set_bit(live_calls.patchable, to, !failed && !skipped);
	site_boot.failed += failed;
	site_boot.skipped += skipped;
	site_boot.patched += !failed && !skipped;
}

/* The words that a filter has something in, after its sites have moved. */
static void refit_filter(struct site_filter *f)
{
	const u32 *bits = *f->bits;

	if (!f->count)
		return;
	f->lo = f->hi = 0;
	for (unsigned int w = 0; w < site_words; w++)
		if (bits[w]) {
			f->lo = f->hi ? f->lo : w;
			f->hi = w + 1;
		}
}

/*
 * Merge from the end, so that nothing is overwritten before it has moved. A reader of
 * the table that does not hold trace_mutex (a list of functions, ps) may see a site
 * twice, or miss one, once.
 */
static void add_found_sites(const u32 *found, unsigned int n)
{
	unsigned int old = site_count, to = old + n;

	while (n) {
		to--;
		if (!old || (table[old - 1] & FOUND_OFFSET) <
				    (found[n - 1] & FOUND_OFFSET))
			place_site(to, found[--n]);
		else
			move_site(to, --old);
	}
}

static void insert_found(struct turn *turn)
{
	unsigned int n = turn->n;
	u32 left = site_boot.failed + site_boot.skipped;

	sort_rows(turn->found, n, sizeof(turn->found[0]), lies_below);
	add_found_sites(turn->found, n);
	WRITE_ONCE(site_count, site_count + n);
	site_words = (site_count + 31) / 32;
	for (unsigned int i = 0; i < INSTANCES; i++) {
		refit_filter(&trace_instances[i].filter);
		refit_filter(&trace_instances[i].left_out);
	}
	refit_filter(&filter_graph);
	refit_filter(&filter_graph_hidden);
	refit_filter(&filter_stack);
	clients_sites_moved();
	left = site_boot.failed + site_boot.skipped - left;
	stats.left += left;
	stats.converted += n - left;
	stats.known += turn->known;
}

static void records_free(u32 *old)
{
	if (old != first_records)
		kfree(old);
}

static int take_record_turn(u32 *more, u32 more_mask)
{
	struct turn turn = { .more = more, .more_mask = more_mask };
	struct stop_work work = {
		.change = turn_change,
		.sync = turn_sync,
		.arg = &turn,
	};
	u64 clock = arch_clock();
	u32 *old = records;
	int err;

	turn.found = kmalloc((records_mask + 1) * sizeof(u32));
	err = turn.found ? stop_cpus(&work) : -ENOMEM;
	if (!err) {
		stats.turns++;
		stats.records = records_mask + 1;
		insert_found(&turn);
		site_boot.clock += arch_clock() - clock;
		if (more)
			records_free(old);
	}
	if (turn.found)
		kfree(turn.found);
	return err;
}

int record_resize(unsigned int n)
{
	u32 *more = n == RECORDS_FIRST && records != first_records ?
			    first_records :
			    kmalloc_zeroed(n * sizeof(u32));
	int err;

	if (!more)
		return -ENOMEM;
	err = take_record_turn(more, n - 1);
	if (err)
		records_free(more);
	return err;
}

/* All users of calls get the new sites too, unless their filter names the sites. */
static void trace_new(void)
{
	static struct ctl_handle h; /* trace_mutex */

	if (trace_update(&h, 0, site_words))
		printk("record: %s\n", h.error);
}

int record_convert(void)
{
	static u32 skipped_before; /* trace_mutex */
	u32 skipped = READ_ONCE(stats.skipped), size = records_mask + 1;
	int err;

	if (skipped != skipped_before && size < RECORDS_MAX)
		err = record_resize(2 * size);
	else if (READ_ONCE(stats.waiting))
		err = take_record_turn(NULL, 0);
	else
		return 0;
	if (err)
		return err;
	skipped_before = skipped;
	trace_new();
	return 0;
}

void record_stats(struct record_stats *s)
{
	*s = stats;
	s->found = s->converted + s->left + s->known + s->waiting;
}

static void learn_jump(void)
{
	mutex_lock(&trace_mutex);
	record_convert();
	mutex_unlock(&trace_mutex);
}

/* A test has begun: the turn that is under way ends before the test counts memory. */
static void turn_end(void)
{
	mutex_lock(&trace_mutex);
	mutex_unlock(&trace_mutex);
}

static void record_daemon(void *arg)
{
	(void)arg;
	ktest_begin_hook = turn_end;
	for (;;) {
		task_sleep(TURN_NS);
		mutex_lock(&trace_mutex);
		if (!READ_ONCE(ktest_running) ||
		    fault_happens(&fault_record_in_tests))
			record_convert();
		mutex_unlock(&trace_mutex);
	}
}

/* ---- Boot, and a file that shows the books --------------------------------- */

/* Early: the boot CPU alone. A call recorded so far is found when it comes again. */
static int set_records(const char *value)
{
	u64 n;

	if (parse_u64(value, &n) || n < RECORDS_MIN || n > RECORDS_FIRST ||
	    n & (n - 1))
		return -EINVAL;
	memset(first_records, 0, sizeof(first_records));
	records_mask = n - 1;
	stats = (struct record_stats){ .records = n };
	return 0;
}
KERNEL_PARAM(records, "records",
	     "records that boot begins with, a power of two, 16 to 2048",
	     set_records);

static void start_recording(void)
{
	struct task *t;

	learn_jump();
	t = task_create("recordd", PRIO_LOW, ~0u, record_daemon, NULL);
	if (!t)
		panic("no memory for the recorder's task");
	task_detach(t);
}

static void record_boot(void)
{
	table = kmalloc_zeroed(symbol_count * sizeof(u32));
	if (!table)
		panic("no memory for the sites of %u functions", symbol_count);
	live_calls.table = table;
	site_recorder = (struct site_recorder){ start_recording, learn_jump };
}
INIT_HOOK(INIT_SITES, record_boot);

static void record_info_show(struct ctl_handle *h, struct seq *s)
{
	struct record_stats n;

	(void)h;
	record_stats(&n);
	seq_printf(s,
		   "%u found = %u converted + %u left alone + %u known before "
		   "+ %u waiting\n"
		   "%u calls skipped, %u records, %u turns\n",
		   n.found, n.converted, n.left, n.known, n.waiting, n.skipped,
		   n.records, n.turns);
}
TRACE_FILE(record_info, .path = TRACING "record_info",
	   .show = record_info_show);
