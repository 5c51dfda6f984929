/* SPDX-License-Identifier: MIT */
/*
 * The lab's schemes on RISC-V: tracer/lab/lab.h. Calls of two words, toggled and
 * retargeted in every way, live words that are misaligned, breakpoints.
 *
 * | form         | word 0        | word 1        |
 * |--------------|---------------|---------------|
 * | off, auipc   | auipc t0      | nop           |
 * | off, jump    | j . + 8       | jalr t0 of on |
 * | off, nops    | nop           | nop           |
 * | on           | auipc t0      | jalr t0       |
 * | on2          | auipc t0      | jalr t0       |
 *
 * on2 is the second target: near, where the auipc is that of `on`, or a page
 * further, where both words differ. Through ra for the calls of -pg.
 */
#include <frame.h>
#include <kernel/test/ktest.h>
#include <kernel/patch_path.h>
#include <kernel/lib/string.h>
#include <tracer/lab/lab.h>
#include <tracer/lab/lab_scheme.h>
#include <tracer/sites/sites.h>

extern const struct lab_victim lab_pair, lab_odd, lab_far, lab_jal;
extern const char lab_pair_a[], lab_pair_near[], lab_pair_b[];
extern const char lab_call[], lab_call2[];

/* ---- what the forms are ---- */

static void put_words(u8 *bytes, u32 word0, u32 word1)
{
	memcpy(bytes, &word0, 4);
	memcpy(bytes + 4, &word1, 4);
}

static void put_lab_call(u8 *bytes, unsigned long site, const char *target,
			 unsigned int link)
{
	long rounded = distance_rounded(site, target);

	put_words(bytes, insn_auipc(link, rounded), insn_jalr(link, rounded));
}

static void encode_auipc(unsigned long site, unsigned int form, u8 *bytes)
{
	const u32 nop = INSN_NOP;

	put_lab_call(bytes, site, form == ON2 ? lab_pair_near : lab_pair_a,
		     REG_T0);
	if (form == OFF)
		memcpy(bytes + 4, &nop, 4);
}

static void encode_jump(unsigned long site, unsigned int form, u8 *bytes)
{
	const u32 jump = INSN_JUMP_8;

	put_lab_call(bytes, site, form == ON2 ? lab_pair_b : lab_pair_a,
		     REG_T0);
	if (form == OFF)
		memcpy(bytes, &jump, 4);
}

static void encode_nops(unsigned long site, unsigned int form, u8 *bytes)
{
	if (form == OFF)
		put_words(bytes, INSN_NOP, INSN_NOP);
	else
		put_lab_call(bytes, site, lab_pair_a, REG_T0);
}

static void encode_far(unsigned long site, unsigned int form, u8 *bytes)
{
	const u32 nop = INSN_NOP;

	put_lab_call(bytes, site, lab_call, REG_RA);
	if (form == OFF)
		memcpy(bytes + 4, &nop, 4);
}

static void encode_far_nops(unsigned long site, unsigned int form, u8 *bytes)
{
	if (form == OFF)
		put_words(bytes, INSN_NOP, INSN_NOP);
	else
		put_lab_call(bytes, site, lab_call, REG_RA);
}

static void encode_jal(unsigned long site, unsigned int form, u8 *bytes)
{
	const char *target = form == ON2 ? lab_call2 : lab_call;
	u32 word = insn_jal_ra((long)((unsigned long)target - site));

	if (form == OFF)
		word = INSN_NOP;
	memcpy(bytes, &word, 4);
}

#define PAIR 4, 4
#define PASSED 4, -4 /* the second word is passed over */
#define FORMS(...)                                                             \
	.form = {                                                              \
		{ "off", { __VA_ARGS__ }, { 0, 0 } },                          \
		{ "on", { PAIR }, { 1, 0 } },                                  \
		{ "on2", { PAIR }, { 0, 1 } },                                 \
	}
#define SITE(scheme, origin, on, encoder)                                      \
	.name = scheme, .from = origin, .victim = &(on), .length = 8,          \
	.encode = encode_##encoder

#define FIRST(to) ONE_STORE(0, 4, to)
#define SECOND(to) ONE_STORE(4, 4, to)
#define FIRST_SECOND(to) TWO_STORES(0, 4, 4, 4, to)
#define SECOND_FIRST(to) TWO_STORES(4, 4, 0, 4, to)

/* ---- one word of two ---- */

#define ONE_WORD(ident, scheme, origin, victim, encoder, off, word, why)       \
	LAB_SCHEME(ident##_stop_on, SITE(scheme, origin, victim, encoder),     \
		   FORMS(off), MOVE(OFF, ON), .way = LAB_STOP,                 \
		   .store = word(ON), .because = why);                         \
	LAB_SCHEME(ident##_stop_off, SITE(scheme, origin, victim, encoder),    \
		   FORMS(off), MOVE(ON, OFF), .way = LAB_STOP,                 \
		   .store = word(OFF), .because = why);                        \
	LAB_SCHEME(ident##_live_on, SITE(scheme, origin, victim, encoder),     \
		   FORMS(off), MOVE(OFF, ON), .way = LAB_LIVE,                 \
		   .store = word(ON), .because = why);                         \
	LAB_SCHEME(ident##_live_off, SITE(scheme, origin, victim, encoder),    \
		   FORMS(off), MOVE(ON, OFF), .way = LAB_LIVE,                 \
		   .store = word(OFF), .because = why)

ONE_WORD(auipc, "nop=auipc", "H2", lab_pair, auipc, PAIR, SECOND,
	 "t0 is right for either second word");
ONE_WORD(jump, "nop=jump", "H2", lab_pair, jump, PASSED, FIRST,
	 "a task on the jalr has executed the auipc");
ONE_WORD(far, "far mcount", "H2", lab_far, far, PAIR, SECOND,
	 "ra is right for either second word");

/* ---- both words (H2, H3) ---- */

LAB_SCHEME(nops_stop_on, SITE("auipc+jalr", "H2", lab_pair, nops), FORMS(PAIR),
	   MOVE(OFF, ON), .way = LAB_STOP, .store = FIRST_SECOND(ON),
	   .breaks = LAB_FAULT,
	   .because = "a jalr without its auipc; cure: nop=auipc");
LAB_SCHEME(nops_stop_off, SITE("auipc+jalr", "H2", lab_pair, nops), FORMS(PAIR),
	   MOVE(ON, OFF), .way = LAB_STOP, .store = FIRST_SECOND(OFF),
	   .because = "an auipc without its jalr does nothing");
LAB_SCHEME(nops_01_on, SITE("auipc+jalr 0 1", "H2", lab_pair, nops),
	   FORMS(PAIR), MOVE(OFF, ON), .way = LAB_LIVE,
	   .store = FIRST_SECOND(ON), .breaks = LAB_FAULT,
	   .because = "a jalr without its auipc; cure: nop=auipc");
LAB_SCHEME(nops_10_on, SITE("auipc+jalr 1 0", "H3", lab_pair, nops),
	   FORMS(PAIR), MOVE(OFF, ON), .way = LAB_LIVE,
	   .store = SECOND_FIRST(ON), .breaks = LAB_FAULT,
	   .because = "a jalr without its auipc; cure: nop=auipc");
LAB_SCHEME(nops_01_off, SITE("auipc+jalr 0 1", "H3", lab_pair, nops),
	   FORMS(PAIR), MOVE(ON, OFF), .way = LAB_LIVE,
	   .store = FIRST_SECOND(OFF), .breaks = LAB_FAULT,
	   .because = "a jalr without its auipc; cure: nop=auipc");
LAB_SCHEME(nops_10_off, SITE("auipc+jalr 1 0", "H3", lab_pair, nops),
	   FORMS(PAIR), MOVE(ON, OFF), .way = LAB_LIVE,
	   .store = SECOND_FIRST(OFF),
	   .because = "an auipc without its jalr does nothing");

LAB_SCHEME(far_nops_on, SITE("far both", "H2", lab_far, far_nops), FORMS(PAIR),
	   MOVE(OFF, ON), .way = LAB_STOP, .store = FIRST_SECOND(ON),
	   .breaks = LAB_FAULT,
	   .because = "a jalr without its auipc; cure: far mcount");
LAB_SCHEME(far_nops_off, SITE("far both", "H2", lab_far, far_nops), FORMS(PAIR),
	   MOVE(ON, OFF), .way = LAB_STOP, .store = FIRST_SECOND(OFF),
	   .because = "an auipc without its jalr does nothing");

/* ---- from one target to another ---- */

#define RETARGET(scheme, origin)                                               \
	SITE(scheme, origin, lab_pair, jump), MOVE(ON, ON2), FORMS(PASSED)

LAB_SCHEME(retarget_stop, RETARGET("retarget", "H2"), .way = LAB_STOP,
	   .store = FIRST_SECOND(ON2), .breaks = LAB_FAULT,
	   .because = "half of each target; cure: a datum, or 3 steps");
LAB_SCHEME(retarget_01, RETARGET("retarget 0 1", "H3"), .way = LAB_LIVE,
	   .store = FIRST_SECOND(ON2), .breaks = LAB_FAULT,
	   .because = "half of each target; cure: a datum, or 3 steps");
LAB_SCHEME(retarget_10, RETARGET("retarget 1 0", "H3"), .way = LAB_LIVE,
	   .store = SECOND_FIRST(ON2), .breaks = LAB_FAULT,
	   .because = "half of each target; cure: a datum, or 3 steps");
LAB_SCHEME(retarget_near, SITE("retarget near", "H2", lab_pair, auipc),
	   FORMS(PAIR), MOVE(ON, ON2), .way = LAB_LIVE, .store = SECOND(ON2),
	   .because = "the auipc is right for both: one word");

/*
 * Proposed in 2025 for retargeting a two-word call: word 0 := j, word 1, word 0. In
 * between a task calls nothing, as `window` allows.
 */
#define THREE_STEPS                                                            \
	.way = LAB_LIVE,                                                       \
	.store = { { 0, 4, OFF }, { 4, 4, ON2 }, { 0, 4, ON2 } }

/* A trap that would return to the jalr returns to the word before it instead. */
static void step_back(struct trap_frame *f, unsigned long site)
{
	if (arch_frame_pc(f) == site + 4)
		arch_frame_set_pc(f, site);
}

LAB_SCHEME(three_steps, RETARGET("3 steps", "H2"), THREE_STEPS, .window = OFF,
	   .has_window = true, .trap_return = step_back,
	   .because = "traps step back to the auipc; a window without calls");
LAB_SCHEME(three_steps_strict, RETARGET("3 steps strict", "H13"), THREE_STEPS,
	   .trap_return = step_back, .breaks = LAB_CALLS,
	   .because = "calls in between are lost; cure: a datum");
LAB_SCHEME(three_steps_only, RETARGET("3 steps only", "H2"), THREE_STEPS,
	   .window = OFF, .has_window = true, .breaks = LAB_FAULT,
	   .because = "the old auipc with the new jalr; cure: step back");

/* ---- a live word that no single store reaches (H10) ---- */

#ifdef __riscv_compressed
#define LOW_HIGH(to) TWO_STORES(4, 2, 6, 2, to)
#define HIGH_LOW(to) TWO_STORES(6, 2, 4, 2, to)
#define ODD(scheme) SITE(scheme, "H10", lab_odd, auipc), FORMS(PAIR)

LAB_SCHEME(odd_stop_on, ODD("odd"), MOVE(OFF, ON), .way = LAB_STOP,
	   .store = LOW_HIGH(ON), .because = "no CPU fetches in between");
LAB_SCHEME(odd_stop_off, ODD("odd"), MOVE(ON, OFF), .way = LAB_STOP,
	   .store = LOW_HIGH(OFF), .because = "no CPU fetches in between");
LAB_SCHEME(odd_low_on, ODD("odd low high"), MOVE(OFF, ON), .way = LAB_LIVE,
	   .store = LOW_HIGH(ON), .breaks = LAB_FAULT,
	   .because = "jalr t0, 0(ra) in between; cure: aligned, or c.ebreak");
LAB_SCHEME(odd_high_on, ODD("odd high low"), MOVE(OFF, ON), .way = LAB_LIVE,
	   .store = HIGH_LOW(ON),
	   .because = "in between a nop with an operand");
LAB_SCHEME(odd_low_off, ODD("odd low high"), MOVE(ON, OFF), .way = LAB_LIVE,
	   .store = LOW_HIGH(OFF),
	   .because = "in between a nop with an operand");
LAB_SCHEME(odd_high_off, ODD("odd high low"), MOVE(ON, OFF), .way = LAB_LIVE,
	   .store = HIGH_LOW(OFF), .breaks = LAB_FAULT,
	   .because = "jalr t0, 0(ra) in between; cure: aligned, or c.ebreak");
#endif

/* ---- one word, relaxed ---- */

#define JAL(...)                                                               \
	.name = "jal", .from = "seed 2", .victim = &lab_jal, .length = 4,      \
	.form = { { "off", { 4 }, { 0, 0 } },                                  \
		  { "on", { 4 }, { 1, 0 } },                                   \
		  { "on2", { 4 }, { 0, 1 } } },                                \
	.encode = encode_jal, __VA_ARGS__, .because = "one word"

LAB_SCHEME(jal_stop_on,
	   JAL(MOVE(OFF, ON), .way = LAB_STOP, .store = FIRST(ON)));
LAB_SCHEME(jal_stop_off,
	   JAL(MOVE(ON, OFF), .way = LAB_STOP, .store = FIRST(OFF)));
LAB_SCHEME(jal_live_on,
	   JAL(MOVE(OFF, ON), .way = LAB_LIVE, .store = FIRST(ON)));
LAB_SCHEME(jal_live_off,
	   JAL(MOVE(ON, OFF), .way = LAB_LIVE, .store = FIRST(OFF)));
LAB_SCHEME(jal_retarget,
	   JAL(MOVE(ON, ON2), .way = LAB_LIVE, .store = FIRST(ON2)));

/* ---- breakpoints (H13) ---- */

/* Where the breakpoint goes, and the rest of the word. */
#ifdef __riscv_compressed
#define UNITS(at, to) TWO_STORES(at, 2, at + 2, 2, to)
#else
#define UNITS(at, to) ONE_STORE(at, 4, to)
#endif

/* As the second word in that form would, with nop=auipc. */
static void act_as(struct trap_frame *f, unsigned long site, unsigned int form)
{
	arch_frame_set_pc(f, site + 8);
	if (form == OFF)
		return;
	f->reg[REG_T0] = site + 8;
	arch_frame_set_pc(f, (unsigned long)(form == ON2 ? lab_pair_near :
							   lab_pair_a));
}
PATCH_INDIRECT(lab_trap, act_as);

static void act_as_nop(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	arch_frame_set_pc(f, site + 8);
}
PATCH_INDIRECT(lab_trap, act_as_nop);

#define EBREAK(ident, scheme, on, from, to, ...)                               \
	LAB_SCHEME(ident, SITE(scheme, "H13", on, auipc), FORMS(PAIR),         \
		   MOVE(from, to), .way = LAB_BREAK, .store = UNITS(4, to),    \
		   __VA_ARGS__)
#define AS_NEW .resume = act_as, .because = "the trap acts as the new form"

EBREAK(ebreak_on, "ebreak", lab_pair, OFF, ON, AS_NEW);
EBREAK(ebreak_off, "ebreak", lab_pair, ON, OFF, AS_NEW);
EBREAK(ebreak_retarget, "ebreak", lab_pair, ON, ON2, AS_NEW);
EBREAK(ebreak_nop, "ebreak-nop", lab_pair, ON, ON2, .resume = act_as_nop,
       .breaks = LAB_CALLS,
       .because = "neither the old nor the new call; cure: ebreak");
#ifdef __riscv_compressed
EBREAK(ebreak_odd_on, "ebreak odd", lab_odd, OFF, ON, AS_NEW);
EBREAK(ebreak_odd_off, "ebreak odd", lab_odd, ON, OFF, AS_NEW);
#endif

/* ---- the port's own ---- */

const char *const lab_register_names[] = {
	[1] = "ra",  [5] = "t0",   [6] = "t1",	 [7] = "t2",  [8] = "s0",
	[9] = "s1",  [11] = "a1",  [12] = "a2",	 [13] = "a3", [14] = "a4",
	[15] = "a5", [16] = "a6",  [17] = "a7",	 [18] = "s2", [19] = "s3",
	[20] = "s4", [21] = "s5",  [22] = "s6",	 [23] = "s7", [24] = "s8",
	[25] = "s9", [26] = "s10", [27] = "s11", [28] = "t3", [29] = "t4",
	[30] = "t5", [31] = "t6",
};

const struct lab_form *lab_own_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { 4, SITE_LENGTH - 4 }, { 0, 0 } },
		{ "off", { PASSED }, { 0, 0 } },
		{ "on", { 4, SITE_LENGTH - 4 }, { 1, 0 } },
	};

	return on ? &forms[2] :
		    &forms[site_off(lab_victim_own.site) == INSN_JUMP_8];
}

const struct lab_form *lab_jump_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { arch_jump_length }, { 0, 0 } },
		{ "on", { arch_jump_length }, { 1, 0 } },
	};

	return &forms[on];
}

/*
 * A CPU that fetches an instruction by halves, while `word` stores it, must get a whole
 * instruction: off and on may differ in one half alone.
 */
KTEST(lab_halves, "lab.on_and_off_share_a_half")
{
	unsigned int wrong = 0;

	if (site_off(site_address(0)) == INSN_JUMP_8)
		KSKIP(t, "nop=jump: `word` is for -icount alone");
	for (unsigned int i = 0; i < site_count; i++) {
		struct live l = live_of_site(site_address(i));
		u64 differs =
			arch_live_bytes(l, true) ^ arch_live_bytes(l, false);

		wrong += differs >> 16 != 0;
	}
	KEXPECT_EQ(t, wrong, 0);
}
