/* SPDX-License-Identifier: MIT */
/*
 * Conformance of a port with the part of arch_trace.h that lets sites be switched
 * while others run them: that a unit, a tail and a word are stored as such and
 * nothing beside them, that the breakpoint traps where it stands, that a frame
 * which is resumed has lost nothing, and runs on as the site's new state would.
 */
#include <arch/conform/conform.h>
#include <tracer/testing.h>

#include <kernel/patch_path.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/patch_break.h>
#include <tracer/patch/patch_live.h>
#include <tracer/patch/keys.h>

static u8 buffer[64] __attribute__((aligned(16)));

static void fill_break_buffer(u8 byte)
{
	memset(buffer, byte, sizeof(buffer));
}

/* Does the buffer hold `byte` everywhere except in [from, to)? */
static bool filled_but(u8 byte, size_t from, size_t to)
{
	for (size_t i = 0; i < sizeof(buffer); i++)
		if ((i < from || i >= to) && buffer[i] != byte)
			return false;
	return true;
}

/* Run a test of the live instruction of every patchable site, and jump label. */
static void each_live(struct ktest_run *t,
		      void (*test)(struct ktest_run *t, struct live live))
{
	for (unsigned int i = 0; i < site_count; i++)
		if (site_test(live_calls.patchable, i))
			test(t, live_of_site(site_address(i)));
	for (unsigned int i = 0; i < jump_count; i++)
		if (site_test(live_jumps.patchable, i))
			test(t, jump_live(i));
}

/* ---- Words -------------------------------------------------------------------- */

static void live_in_a_word(struct ktest_run *t, struct live live)
{
	if (arch_live_word(live))
		KEXPECT(t, live.at % 8 + live_length(live) <= 8);
	/* Jump labels are placed so that they always can be, where any can. */
	if (live.target && !arch_word_refused)
		KEXPECT(t, arch_live_word(live));
}

/*
 * No live instruction that lies across two words of the port's largest store is one
 * that arch_live_word() allows.
 */
KTEST(live_word, "arch_trace.arch_live_word")
{
	unsigned long at = (unsigned long)buffer;

	each_live(t, live_in_a_word);
	for (unsigned int i = 9 - arch_live_length; i < 8; i++)
		KEXPECT(t, !arch_live_word((struct live){ at + i, LIVE_CALL }));
}

KTEST(live_write_word, "arch_trace.arch_live_word.write")
{
	unsigned long at = (unsigned long)buffer + 16;
	unsigned int i, words = 0;

	for (i = 0; i < 8; i++) {
		struct live l = { at + i, LIVE_CALL };

		if (!arch_live_word(l))
			continue;
		words++;
		fill_break_buffer(0x5a);
		arch_live_write(l, 0, arch_live_bytes(l, true));
		KEXPECT_EQ(t, arch_live_read(l), arch_live_bytes(l, true));
		KEXPECT(t, filled_but(0x5a, 16 + i, 16 + i + arch_live_length));
	}
	KEXPECT(t, words || arch_word_refused);
}

KTEST(word_refused, "arch_trace.arch_word_refused")
{
	const char *why = arch_word_refused;

	/* The reason is one line, which is printed behind "word: ". */
	KEXPECT(t, !why || (why[0] && !strchr(why, '\n')));
}

/* ---- Units and tails ------------------------------------------------------------ */

static void live_on_a_unit(struct ktest_run *t, struct live live)
{
	KEXPECT_EQ(t, live.at % arch_break_length, 0);
}

KTEST(break_length, "arch_trace.arch_break_length")
{
	unsigned int length = arch_break_length;

	KEXPECT(t, length && length <= arch_live_length);
	KEXPECT_EQ(t, length & (length - 1), 0);
	each_live(t, live_on_a_unit);
}

/* In the middle step unit and tail are of different instructions: the unit must
 * be that of neither. */
static void live_is_no_break(struct ktest_run *t, struct live live)
{
	KEXPECT(t, patch_break_unit(arch_live_bytes(live, true)) !=
			   arch_break_insn);
	KEXPECT(t, patch_break_unit(arch_live_bytes(live, false)) !=
			   arch_break_insn);
}

KTEST(break_insn, "arch_trace.arch_break_insn")
{
	KEXPECT_EQ(t, patch_break_unit(arch_break_insn), arch_break_insn);
	each_live(t, live_is_no_break);
}

KTEST(unit_write, "arch_trace.break_unit")
{
	struct live at = { (unsigned long)buffer + 16, LIVE_CALL };

	fill_break_buffer(0x5a);
	patch_break_write_unit(at.at, arch_break_insn);
	KEXPECT_EQ(t, patch_break_unit(arch_live_read(at)), arch_break_insn);
	KEXPECT(t, filled_but(0x5a, 16, 16 + arch_break_length));
	patch_break_write_unit(at.at, arch_live_bytes(at, true));
	KEXPECT_EQ(t, patch_break_unit(arch_live_read(at)),
		   patch_break_unit(arch_live_bytes(at, true)));
	KEXPECT(t, filled_but(0x5a, 16, 16 + arch_break_length));
}

KTEST(tail_write, "arch_trace.break_tail")
{
	struct live at = { (unsigned long)buffer + 16, LIVE_CALL };

	fill_break_buffer(0x5a);
	patch_break_write_tail(at, 0, arch_live_bytes(at, true));
	KEXPECT(t, filled_but(0x5a, 16 + arch_break_length,
			      16 + arch_live_length));
	patch_break_write_unit(at.at, arch_live_bytes(at, true));
	KEXPECT_EQ(t, arch_live_read(at), arch_live_bytes(at, true));
}

/* ---- Traps ---------------------------------------------------------------------- */

/* Victims run while their sites hold breakpoints. Their failures are reported here. */
static struct ktest_run *run;
static bool state; /* that the sites get */

static void victims_trap(enum patch_step step, bool synced)
{
	u32 before = conform_hits;
	irq_state_t irqs;

	(void)synced;
	conform_expect_values(run);
	irqs = arch_irq_save();
	conform_expect_values(run);
	KEXPECT(run, arch_irqs_off());
	arch_irq_restore(irqs);
	/*
	 * This CPU wrote the step, so it may run the victims before it has
	 * synchronised. It then fetches one of two states.
	 */
	if (step != PATCH_WORD)
		KEXPECT_EQ(run, conform_hits > before, state);
}

static void switch_by_breakpoint(struct ktest_run *t)
{
	struct patch_stats old, new;

	run = t;
	mutex_lock(&trace_mutex);
	patch_stats(&old);
	trace_test_ops(&conform_ops);
	patch_step_hook = victims_trap;
	for (unsigned int i = 0; i < 10; i++) {
		state = i % 2 == 0;
		KEXPECT_EQ(t, conform_switch_victims(state), 0);
	}
	patch_step_hook = NULL;
	trace_test_ops(NULL);
	patch_stats(&new);
	mutex_unlock(&trace_mutex);
	KEXPECT(t, new.traps >= old.traps + 10 * 8);
}

KTEST(break_resume, "arch_trace.arch_break_resume")
{
	trace_test_strategy(t, "breakpoint", switch_by_breakpoint);
}

/*
 * The same for a jump label: between the steps, and when the batch is done, every CPU
 * takes the way of the new state.
 */
static u32 strays; /* atomic: calls that took the other way, or none */

static void take_label(void *arg)
{
	const bool *on = arg;

	for (unsigned long x = 0; x < 8; x++)
		if (victim_label(x) != x + 1 + *on)
			count_up(&strays);
}

static void label_traps(enum patch_step step, bool synced)
{
	if (synced && step != PATCH_WORD)
		cpu_call(~0u, take_label, &state);
}

static void switch_label(struct ktest_run *t)
{
	struct patch_stats old, new;
	struct patch_batch b;

	strays = 0;
	mutex_lock(&trace_mutex);
	patch_stats(&old);
	patch_step_hook = label_traps;
	for (unsigned int i = 0; i < 4; i++) {
		state = i % 2 == 0;
		KEXPECT_EQ(t, static_key_set(&b, &key_victim, state), 0);
		cpu_call(~0u, take_label, &state);
	}
	patch_step_hook = NULL;
	patch_stats(&new);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, strays, 0);
	KEXPECT(t, new.traps >= old.traps + 4 * 8);
	KEXPECT_EQ(t, new.late, old.late);
}

KTEST(break_resume_jump, "arch_trace.arch_break_resume.jump_label")
{
	trace_test_strategy(t, "breakpoint", switch_label);
}

/*
 * The port's trap asks patch_trap() before all else, with the pc at the breakpoint and
 * interrupts off. Where no breakpoint of the tracer's stands, the answer is no and the
 * frame stays as it was. A breakpoint that is gone from memory is acted for all the same: a CPU
 * that still fetches it, and has interrupts off, would trap there for ever.
 */
static struct {
	unsigned long pc;
	struct live gone; /* off, and in no batch */
	unsigned int asked, accepted, moved, late;
	bool irqs_off;
} trap;

static unsigned long pc_after(struct trap_frame *f, struct live off)
{
	arch_frame_set_pc(f, off.at);
	arch_break_resume(f, off, false);
	return arch_frame_pc(f);
}

static bool look_at_trap(struct trap_frame *f)
{
	unsigned long pc = arch_frame_pc(f);

	trap.asked++;
	trap.pc = pc;
	trap.irqs_off = arch_irqs_off();
	WRITE_ONCE(patch_trap_hook, NULL);
	arch_frame_set_pc(f, (unsigned long)buffer);
	trap.accepted += patch_trap(f);
	trap.moved += arch_frame_pc(f) != (unsigned long)buffer;
	arch_frame_set_pc(f, trap.gone.at);
	if (patch_trap(f) && arch_frame_pc(f) != trap.gone.at &&
	    arch_frame_pc(f) == pc_after(f, trap.gone))
		trap.late++;
	arch_frame_set_pc(f, pc);
	WRITE_ONCE(patch_trap_hook, look_at_trap);
	return false;
}
PATCH_INDIRECT(patch_trap, look_at_trap);

static void call_with_hook(enum patch_step step, bool synced)
{
	if (step != PATCH_BREAK || !synced)
		return;
	/* This CPU alone, because other CPUs would run into the hook's own changes. */
	preempt_disable();
	PATCH_HOOK_SET(patch_trap_hook, patch_trap, look_at_trap);
	victim_other(1);
	WRITE_ONCE(patch_trap_hook, NULL);
	preempt_enable();
}

static void trap_at_victim(struct ktest_run *t)
{
	int site = trace_test_site(victim_other);
	int gone = trace_test_site(victim_call);
	struct patch_stats old, new;
	struct patch_batch b;

	KASSERT(t, site >= 0 && gone >= 0);
	memset(&trap, 0, sizeof(trap));
	trap.gone = live_of_site(site_address(gone));
	mutex_lock(&trace_mutex);
	patch_stats(&old);
	patch_step_hook = call_with_hook;
	KEXPECT_EQ(t, patch_site(&b, site, true), 0);
	KEXPECT_EQ(t, patch_site(&b, site, false), 0);
	patch_step_hook = NULL;
	patch_stats(&new);
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, trap.asked, 2);
	KEXPECT_EQ(t, trap.late, 2);
	KEXPECT_EQ(t, new.late - old.late, 2);
	KEXPECT_EQ(t, trap.pc, live_of_site(site_address(site)).at);
	KEXPECT(t, trap.irqs_off);
	KEXPECT_EQ(t, trap.accepted + trap.moved, 0);
}

KTEST(trap, "arch_trace.patch_trap")
{
	trace_test_strategy(t, "breakpoint", trap_at_victim);
}
