/* SPDX-License-Identifier: MIT */
/*
 * Conformance of a port with arch_trace.h: a test for every function there, by
 * its name. They show that a port recognises its sites and nothing else, that
 * the live instruction is all that differs between on and off, and that text is
 * written through the alias alone. Whether a port synchronises enough cannot be
 * seen under QEMU: tests/plugin and the order log have the rest.
 */
#include <arch/conform/conform.h>
#include <tracer/testing.h>

#include <kernel/image/symbols.h>
#include <kernel/init.h>
#include <kernel/lock/mutex.h>
#include <kernel/printk.h>
#include <tracer/ring/ring.h>

/* ---- Sites ---------------------------------------------------------------------- */

static u64 buffer[8];

static void fill_text_buffer(u8 byte)
{
	memset(buffer, byte, sizeof(buffer));
}

static bool buffer_is_filled(u8 byte, size_t from, size_t to)
{
	const u8 *b = (const u8 *)buffer;

	for (; from < to; from++)
		if (b[from] != byte)
			return false;
	return true;
}

/* The first word of s. */
static void first_word(char *word, size_t size, const char *s)
{
	const char *end = strchr(s, ' ');

	string_copy(word, s, end ? min(size, (size_t)(end - s) + 1) : size);
}

/* A description such as "p6 0f1f440000" is the name and the bytes of "off". */
static void expect_description(struct ktest_run *t, const char *said,
			       const char *name)
{
	size_t length = strlen(name);

	KASSERT(t, said && !strncmp(said, name, length));
	KASSERT(t, said[length] == ' ');
	KEXPECT_EQ(t, strlen(said + length + 1), 2 * arch_live_length);
}

KTEST(nop_select, "arch_trace.arch_nop_select")
{
	char now[32], name[32];
	const char *p = arch_nop_names;
	irq_state_t state;

	/* No site may be patched while the choice is another one than the sites have. */
	mutex_lock(&trace_mutex);
	state = arch_irq_save();
	first_word(now, sizeof(now), site_boot.nop);
	KEXPECT(t, !arch_nop_select("no-such-nop"));
	KEXPECT(t, !arch_nop_select(""));
	while (p) {
		first_word(name, sizeof(name), p);
		expect_description(t, arch_nop_select(name), name);
		p = strchr(p, ' ');
		p += !!p;
	}
	expect_description(t, arch_nop_select(now), now);
	arch_irq_restore(state);
	mutex_unlock(&trace_mutex);
}

KTEST(nop_names, "arch_trace.arch_nop_names")
{
	char now[32];

	first_word(now, sizeof(now), site_boot.nop);
	KEXPECT(t, arch_nop_names[0] && arch_nop_names[0] != ' ');
	KEXPECT(t, strstr(arch_nop_names, now));
}

KTEST(recognise, "arch_trace.arch_site_recognise")
{
	unsigned int i, n = 0;
	struct symbol s;

	fill_text_buffer(0x00);
	KEXPECT(t, !arch_site_recognise((unsigned long)(buffer + 4)));
	fill_text_buffer(0xff);
	KEXPECT(t, !arch_site_recognise((unsigned long)(buffer + 4)));
	/* A prepared site is none as the linker left it, unless boot chose
	 * the compiler's own bytes for "off": then all of them are. */
	for (i = 0; i < site_count; i++)
		if (site_test(live_calls.patchable, i))
			n += !!arch_site_recognise(site_address(i));
	KEXPECT(t, n == 0 || n == site_boot.patched);
	for (i = 0; symbol_get(i, &s); i++)
		KEXPECT(t, !arch_site_recognise(s.start) ||
				   site_find(s.start) >= 0 || !sites_all_known);
}

/* ---- ... bit by bit -------------------------------------------------------- */

#define AROUND 16 /* bytes before and behind a site that a format may look at */

/* victim_other()'s site and the bytes around it, as the linker left them. */
static struct {
	u8 bytes[AROUND + 32 + AROUND];
	unsigned long
		site; /* 0: the linker's table has it not (RECORD=runtime) */
} compiled;

static void compiled_note(void)
{
	unsigned int i = site_lower_bound((unsigned long)victim_other);

	if (i == site_count)
		return;
	compiled.site = site_address(i);
	memcpy(compiled.bytes, (const void *)(compiled.site - AROUND),
	       sizeof(compiled.bytes));
}
/* Before the sites are converted: this file is linked before the tracer. */
INIT_HOOK(INIT_SITES, compiled_note);

/* Store bytes over victim_other()'s site. No CPU runs that function meanwhile. The caller
 * has interrupts off. */
static void store_site(const u8 *bytes)
{
	long delta = arch_text_open();

	for (unsigned int i = 0; i < arch_site_length; i++)
		*(volatile u8 *)(compiled.site + delta + i) = bytes[i];
	arch_text_close();
}

static void sync_site(void *arg)
{
	(void)arg;
	site_sync(compiled.site);
	arch_text_sync();
}

/* A site with any bit changed is none: the port does not guess. */
KTEST(recognise_bits, "arch_trace.arch_site_recognise.bits")
{
	u8 now[32], changed[32];
	const char *whole;
	irq_state_t state;
	u32 accepted = 0;

	if (!compiled.site)
		KSKIP(t, "the sites are recorded while the kernel runs");
	mutex_lock(&trace_mutex);
	state = arch_irq_save();
	memcpy(now, (const void *)compiled.site, sizeof(now));
	memcpy(changed, compiled.bytes + AROUND, sizeof(changed));
	store_site(changed);
	whole = arch_site_recognise(compiled.site);
	for (unsigned int bit = 0; bit < 8 * arch_site_length; bit++) {
		changed[bit / 8] ^= 1 << bit % 8;
		store_site(changed);
		changed[bit / 8] ^= 1 << bit % 8;
		if (arch_site_recognise(compiled.site) && !accepted++)
			printk("# bit %u of byte %u may have either value\n",
			       bit % 8, bit / 8);
	}
	store_site(now);
	arch_irq_restore(state);
	mutex_unlock(&trace_mutex);
	cpu_call(~0u, sync_site, NULL);
	KEXPECT(t, whole);
	KEXPECT_EQ(t, accepted, 0);
	/* Another address is another site, or none. */
	for (int i = 1 - (int)arch_site_length; i < (int)arch_site_length; i++)
		KEXPECT(t, !arch_site_recognise(compiled.site + i));
}

KTEST(expected, "arch_trace.arch_site_expected")
{
	KEXPECT(t, arch_site_expected[0]);
}

KTEST(prepare, "arch_trace.arch_site_prepare")
{
	unsigned int i;

	/* Boot has prepared each site, wherever it stands. */
	KEXPECT_EQ(t, site_boot.failed, 0);
	fill_text_buffer(0xa5);
	KEXPECT_EQ(t,
		   arch_site_prepare((unsigned long)(buffer + 4), LIVE_CALL, 0),
		   -EINVAL);
	KEXPECT(t, buffer_is_filled(0xa5, 0, sizeof(buffer)));
	KEXPECT_EQ(t,
		   arch_site_prepare((unsigned long)(buffer + 4),
				     (unsigned long)(buffer + 6), 0),
		   -EINVAL);
	KEXPECT(t, buffer_is_filled(0xa5, 0, sizeof(buffer)));
	if (!arch_site_recognise(site_address(0)))
		KEXPECT_EQ(t, arch_site_prepare(site_address(0), LIVE_CALL, 0),
			   -EINVAL);
	KEXPECT(t, site_boot.patched > 0);
	for (i = 0; i < site_count; i++) {
		struct live live = live_of_site(site_address(i));

		if (site_test(live_calls.patchable, i))
			KEXPECT_EQ(t, arch_live_read(live),
				   arch_live_bytes(live, false));
	}
}

/* A jump label is prepared once, and recognised by its bytes. */
KTEST(prepare_jump, "arch_trace.arch_site_prepare.jump_label")
{
	for (unsigned int i = 0; i < jump_count; i++) {
		struct live l = jump_live(i);

		KEXPECT(t, site_test(live_jumps.patchable, i));
		KEXPECT_EQ(t, arch_live_read(l), arch_live_bytes(l, false));
	}
}

KTEST(live, "arch_trace.arch_site_live")
{
	unsigned long site = site_address(0), live = arch_site_live(site);

	KEXPECT(t, live >= site);
	KEXPECT(t, live + arch_live_length <= site + arch_site_length);
}

/* On and off differ, and neither has more bytes than the live instruction. */
static void bytes_differ(struct ktest_run *t, struct live l)
{
	const u64 beyond = ~(~0ull >> (64 - 8 * live_length(l)));
	u64 on = arch_live_bytes(l, true), off = arch_live_bytes(l, false);

	KEXPECT(t, on != off);
	KEXPECT_EQ(t, (on | off) & beyond, 0);
}

KTEST(live_bytes, "arch_trace.arch_live_bytes")
{
	unsigned int i;

	for (i = 0; i < site_count; i++)
		bytes_differ(t, live_of_site(site_address(i)));
	for (i = 0; i < jump_count; i++)
		bytes_differ(t, jump_live(i));
}

KTEST(live_read, "arch_trace.arch_live_read")
{
	struct live at = { (unsigned long)(buffer + 4), LIVE_CALL };

	fill_text_buffer(0x00);
	arch_live_write(at, 0, arch_live_bytes(at, true));
	KEXPECT_EQ(t, arch_live_read(at), arch_live_bytes(at, true));
	arch_live_write(at, 0, arch_live_bytes(at, false));
	KEXPECT_EQ(t, arch_live_read(at), arch_live_bytes(at, false));
	/* Wherever a site stands. None is on now. */
	for (unsigned int i = 0; i < site_count; i++) {
		struct live live = live_of_site(site_address(i));

		if (site_test(live_calls.patchable, i))
			KEXPECT_EQ(t, arch_live_read(live),
				   arch_live_bytes(live, false));
	}
}

/* The live instruction's bytes and not one more. */
KTEST(live_write, "arch_trace.arch_live_write")
{
	struct live at = { (unsigned long)(buffer + 4), LIVE_CALL };
	size_t from = at.at - (unsigned long)buffer;

	fill_text_buffer(0x5a);
	arch_live_write(at, 0, arch_live_bytes(at, true));
	KEXPECT(t, buffer_is_filled(0x5a, 0, from));
	KEXPECT(t, buffer_is_filled(0x5a, from + arch_live_length,
				    sizeof(buffer)));
	KEXPECT(t, !buffer_is_filled(0x5a, from, from + arch_live_length));
}

KTEST(live_insns, "arch_trace.arch_live_insns")
{
	KEXPECT(t, arch_live_insns >= 1);
	KEXPECT(t, arch_live_insns <= arch_live_length);
	KEXPECT_EQ(t, patch_refused(PATCH_STRATEGY_DEFAULT) == NULL, true);
	KEXPECT_EQ(t, patch_refused(&patch_strategy_stop) == NULL,
		   arch_live_insns == 1);
}

KTEST(live_length, "arch_trace.arch_live_length")
{
	KEXPECT(t, arch_live_length >= 1 && arch_live_length <= sizeof(u64));
}

/* The same of a jump label: the written bytes are read back, and no others change. */
KTEST(jump_length, "arch_trace.arch_jump_length")
{
	struct live l = { (unsigned long)(buffer + 4),
			  (unsigned long)(buffer + 6) };
	size_t from = l.at - (unsigned long)buffer;
	size_t to = from + arch_jump_length;

	KEXPECT(t, arch_jump_length >= arch_break_length &&
			   arch_jump_length <= sizeof(u64));
	for (int on = 0; on < 2; on++) {
		fill_text_buffer(0x5a);
		arch_live_write(l, 0, arch_live_bytes(l, on));
		KEXPECT_EQ(t, arch_live_read(l), arch_live_bytes(l, on));
		KEXPECT(t, buffer_is_filled(0x5a, 0, from));
		KEXPECT(t, buffer_is_filled(0x5a, to, sizeof(buffer)));
	}
}

/* ---- Writing text ------------------------------------------------------------------ */

/*
 * Switch victim_other()'s site by hand, on this CPU alone, interrupts off: no
 * other CPU runs it meanwhile. Returns how often a call then hits.
 */
static unsigned int write_and_call(u64 (*bytes)(struct live live))
{
	int site = trace_test_site(victim_other);
	struct live live = live_of_site(site_address(site));
	irq_state_t state = arch_irq_save();
	u32 before = conform_hits;
	long delta = arch_text_open();

	arch_live_write(live, delta, bytes(live));
	arch_text_close();
	if (arch_sync_each_site)
		arch_text_sync_site(live.at);
	arch_text_sync();
	victim_other(1);
	arch_irq_restore(state);
	return conform_hits - before;
}

static u64 bytes_on(struct live live)
{
	return arch_live_bytes(live, true);
}

static u64 bytes_off(struct live live)
{
	return arch_live_bytes(live, false);
}

/* On and off several times: each call obeys the last write. */
static void expect_obeyed(struct ktest_run *t)
{
	/* Finding it may take the mutex (RECORD=runtime). */
	KASSERT(t, trace_test_site(victim_other) >= 0);
	mutex_lock(&trace_mutex);
	trace_test_ops(&conform_ops);
	for (unsigned int i = 0; i < 10; i++) {
		KEXPECT_EQ(t, write_and_call(bytes_on), 1);
		KEXPECT_EQ(t, write_and_call(bytes_off), 0);
	}
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
}

KTEST(text_open, "arch_trace.arch_text_open")
{
	struct live live = live_of_site(site_address(0));
	irq_state_t state = arch_irq_save();
	long delta = arch_text_open();
	u64 seen = arch_live_read((struct live){ live.at + delta, LIVE_CALL });
	bool off;

	arch_text_close();
	arch_irq_restore(state);
	KEXPECT_EQ(t, seen, arch_live_bytes(live, false));
	KEXPECT_EQ(t, delta != 0, arch_protects_text);
	/* It turns interrupts off itself, and the close turns them on again. */
	arch_text_open();
	off = arch_irqs_off();
	arch_text_close();
	KEXPECT(t, off || !arch_protects_text);
	KEXPECT(t, !arch_irqs_off());
	expect_obeyed(t);
}

/*
 * Text can be opened again, and earlier writes stay. Afterwards no CPU can use the
 * alias (H30).
 */
KTEST(text_close, "arch_trace.arch_text_close")
{
	struct live live = live_of_site(site_address(0));
	irq_state_t state;
	unsigned int c;
	long delta = 0;

	for (unsigned int i = 0; i < 100; i++) {
		state = arch_irq_save();
		delta = arch_text_open();
		arch_live_write(live, delta, arch_live_bytes(live, false));
		arch_text_close();
		arch_irq_restore(state);
	}
	KEXPECT_EQ(t, arch_live_read(live), arch_live_bytes(live, false));
	if (!arch_protects_text)
		return;
	for_each_online_cpu (c) {
		void *alias = (void *)(ALIGN_DOWN(live.at, 4ul) + delta);

		task_set_affinity(current_task(), 1u << c);
		arch_text_open();
		arch_text_close();
		KEXPECT_EQ(t, conform_victim(conform_store_back, alias, c),
			   -EFAULT);
	}
	task_set_affinity(current_task(), ~0u);
}

KTEST(text_sync_site, "arch_trace.arch_text_sync_site")
{
	arch_text_sync_site(live_of_site(site_address(0)).at);
	expect_obeyed(t);
}

KTEST(sync_each_site, "arch_trace.arch_sync_each_site")
{
	KEXPECT(t, arch_sync_each_site == 0 || arch_sync_each_site == 1);
}

static void sync_and_call(void *arg)
{
	(void)arg;
	arch_text_sync();
	victim_call(1);
}

/* After the batch every CPU runs the new instruction. */
KTEST(text_sync, "arch_trace.arch_text_sync")
{
	int site = trace_test_site(victim_call);
	unsigned int cpu, online = 0;
	struct patch_batch b;
	u32 before = conform_hits;

	KASSERT(t, site >= 0);
	for_each_online_cpu (cpu)
		online++;
	mutex_lock(&trace_mutex);
	trace_test_ops(&conform_ops);
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	KEXPECT_EQ(t, cpu_call(cpus_online, sync_and_call, NULL), 0);
	KEXPECT_EQ(t, conform_hits - before, online);
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	KEXPECT_EQ(t, cpu_call(cpus_online, sync_and_call, NULL), 0);
	KEXPECT_EQ(t, conform_hits - before, online);
	trace_test_ops(NULL);
	mutex_unlock(&trace_mutex);
}
