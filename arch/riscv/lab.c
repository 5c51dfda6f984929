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

/* ---- the bytes of the forms ---- */

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

#define TWO(...) SITE(__VA_ARGS__), FORMS(PAIR)

#define FIRST(to) ONE_STORE(0, 4, to)
#define SECOND(to) ONE_STORE(4, 4, to)
#define FIRST_SECOND(to) TWO_STORES(0, 4, 4, 4, to)
#define SECOND_FIRST(to) TWO_STORES(4, 4, 0, 4, to)

/* ---- one word of two ---- */

#define ONE_WORD(ident, scheme, origin, victim, encoder, off, word, why)       \
	SCHEME(ident##_stop_on, SITE(scheme, origin, victim, encoder), OFF,    \
	       ON, STOP, word, 0, why, FORMS(off));                            \
	SCHEME(ident##_stop_off, SITE(scheme, origin, victim, encoder), ON,    \
	       OFF, STOP, word, 0, why, FORMS(off));                           \
	SCHEME(ident##_live_on, SITE(scheme, origin, victim, encoder), OFF,    \
	       ON, LIVE, word, 0, why, FORMS(off));                            \
	SCHEME(ident##_live_off, SITE(scheme, origin, victim, encoder), ON,    \
	       OFF, LIVE, word, 0, why, FORMS(off))

ONE_WORD(auipc, "nop=auipc", "H2", lab_pair, auipc, PAIR, SECOND,
	 "t0 is right for either second word");
ONE_WORD(jump, "nop=jump", "H2", lab_pair, jump, PASSED, FIRST,
	 "a task on the jalr has executed the auipc");
ONE_WORD(far, "far mcount", "H2", lab_far, far, PAIR, SECOND,
	 "ra is right for either second word");

/* ---- both words (H2, H3) ---- */

SCHEME(nops_stop_on, TWO("auipc+jalr", "H2", lab_pair, nops), OFF, ON, STOP,
       FIRST_SECOND, LAB_FAULT, "a jalr without its auipc; cure: nop=auipc");
SCHEME(nops_stop_off, TWO("auipc+jalr", "H2", lab_pair, nops), ON, OFF, STOP,
       FIRST_SECOND, 0, "an auipc without its jalr does nothing");
SCHEME(nops_01_on, TWO("auipc+jalr 0 1", "H2", lab_pair, nops), OFF, ON, LIVE,
       FIRST_SECOND, LAB_FAULT, "a jalr without its auipc; cure: nop=auipc");
SCHEME(nops_10_on, TWO("auipc+jalr 1 0", "H3", lab_pair, nops), OFF, ON, LIVE,
       SECOND_FIRST, LAB_FAULT, "a jalr without its auipc; cure: nop=auipc");
SCHEME(nops_01_off, TWO("auipc+jalr 0 1", "H3", lab_pair, nops), ON, OFF, LIVE,
       FIRST_SECOND, LAB_FAULT, "a jalr without its auipc; cure: nop=auipc");
SCHEME(nops_10_off, TWO("auipc+jalr 1 0", "H3", lab_pair, nops), ON, OFF, LIVE,
       SECOND_FIRST, 0, "an auipc without its jalr does nothing");

SCHEME(far_nops_on, TWO("far both", "H2", lab_far, far_nops), OFF, ON, STOP,
       FIRST_SECOND, LAB_FAULT, "a jalr without its auipc; cure: far mcount");
SCHEME(far_nops_off, TWO("far both", "H2", lab_far, far_nops), ON, OFF, STOP,
       FIRST_SECOND, 0, "an auipc without its jalr does nothing");

/* ---- from one target to another ---- */

#define RETARGET(scheme, origin)                                               \
	SITE(scheme, origin, lab_pair, jump), FORMS(PASSED)
#define HALVES "half of each target; cure: a datum, or 3 steps"

SCHEME(retarget_stop, RETARGET("retarget", "H2"), ON, ON2, STOP, FIRST_SECOND,
       LAB_FAULT, HALVES);
SCHEME(retarget_01, RETARGET("retarget 0 1", "H3"), ON, ON2, LIVE, FIRST_SECOND,
       LAB_FAULT, HALVES);
SCHEME(retarget_10, RETARGET("retarget 1 0", "H3"), ON, ON2, LIVE, SECOND_FIRST,
       LAB_FAULT, HALVES);
SCHEME(retarget_near, TWO("retarget near", "H2", lab_pair, auipc), ON, ON2,
       LIVE, SECOND, 0, "the auipc is right for both: one word");

/*
 * Proposed in 2025 for retargeting a two-word call: word 0 := j, word 1, word 0. In
 * between a task calls nothing, as `window` allows.
 */
#define THREE_STEPS(to)                                                        \
	{                                                                      \
		{ 0, 4, OFF }, { 4, 4, to },                                   \
		{                                                              \
			0, 4, to                                               \
		}                                                              \
	}

/* A trap that would return to the jalr returns to the word before it instead. */
static void step_back(struct trap_frame *f, unsigned long site)
{
	if (arch_frame_pc(f) == site + 4)
		arch_frame_set_pc(f, site);
}

#define WINDOW .window = OFF, .has_window = true

SCHEME(three_steps, RETARGET("3 steps", "H2"), ON, ON2, LIVE, THREE_STEPS, 0,
       "traps step back to the auipc; a window without calls", WINDOW,
       .trap_return = step_back);
SCHEME(three_steps_strict, RETARGET("3 steps strict", "H13"), ON, ON2, LIVE,
       THREE_STEPS, LAB_CALLS, "calls in between are lost; cure: a datum",
       .trap_return = step_back);
SCHEME(three_steps_only, RETARGET("3 steps only", "H2"), ON, ON2, LIVE,
       THREE_STEPS, LAB_FAULT,
       "the old auipc with the new jalr; cure: step back", WINDOW);

/* ---- a live word that no single store reaches (H10) ---- */

#ifdef __riscv_compressed
#define LOW_HIGH(to) TWO_STORES(4, 2, 6, 2, to)
#define HIGH_LOW(to) TWO_STORES(6, 2, 4, 2, to)
#define ODD(scheme) SITE(scheme, "H10", lab_odd, auipc), FORMS(PAIR)

SCHEME(odd_stop_on, ODD("odd"), OFF, ON, STOP, LOW_HIGH, 0,
       "no CPU fetches in between");
SCHEME(odd_stop_off, ODD("odd"), ON, OFF, STOP, LOW_HIGH, 0,
       "no CPU fetches in between");
SCHEME(odd_low_on, ODD("odd low high"), OFF, ON, LIVE, LOW_HIGH, LAB_FAULT,
       "jalr t0, 0(ra) in between; cure: aligned, or c.ebreak");
SCHEME(odd_high_on, ODD("odd high low"), OFF, ON, LIVE, HIGH_LOW, 0,
       "in between a nop with an operand");
SCHEME(odd_low_off, ODD("odd low high"), ON, OFF, LIVE, LOW_HIGH, 0,
       "in between a nop with an operand");
SCHEME(odd_high_off, ODD("odd high low"), ON, OFF, LIVE, HIGH_LOW, LAB_FAULT,
       "jalr t0, 0(ra) in between; cure: aligned, or c.ebreak");
#endif

/* ---- one word, relaxed ---- */

#define JAL                                                                    \
	.name = "jal", .from = "seed 2", .victim = &lab_jal, .length = 4,      \
	.form = { { "off", { 4 }, { 0, 0 } },                                  \
		  { "on", { 4 }, { 1, 0 } },                                   \
		  { "on2", { 4 }, { 0, 1 } } },                                \
	.encode = encode_jal

SCHEME(jal_stop_on, JAL, OFF, ON, STOP, FIRST, 0, "one word");
SCHEME(jal_stop_off, JAL, ON, OFF, STOP, FIRST, 0, "one word");
SCHEME(jal_live_on, JAL, OFF, ON, LIVE, FIRST, 0, "one word");
SCHEME(jal_live_off, JAL, ON, OFF, LIVE, FIRST, 0, "one word");
SCHEME(jal_retarget, JAL, ON, ON2, LIVE, FIRST, 0, "one word");

/* ---- breakpoints (H13) ---- */

/* Where the breakpoint goes, and the rest of the word. */
#ifdef __riscv_compressed
#define UNITS(to) TWO_STORES(4, 2, 6, 2, to)
#else
#define UNITS(to) ONE_STORE(4, 4, to)
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
LAB_RESUME(act_as);

static void act_as_nop(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	arch_frame_set_pc(f, site + 8);
}
LAB_RESUME(act_as_nop);

#define AS_NEW "the trap acts as the new form"
#define EBREAK(scheme) TWO(scheme, "H13", lab_pair, auipc)

SCHEME(ebreak_on, EBREAK("ebreak"), OFF, ON, BREAK, UNITS, 0, AS_NEW,
       .resume = act_as);
SCHEME(ebreak_off, EBREAK("ebreak"), ON, OFF, BREAK, UNITS, 0, AS_NEW,
       .resume = act_as);
SCHEME(ebreak_retarget, EBREAK("ebreak"), ON, ON2, BREAK, UNITS, 0, AS_NEW,
       .resume = act_as);
SCHEME(ebreak_nop, EBREAK("ebreak-nop"), ON, ON2, BREAK, UNITS, LAB_CALLS,
       "neither the old nor the new call; cure: ebreak", .resume = act_as_nop);
#ifdef __riscv_compressed
#define EBREAK_ODD TWO("ebreak odd", "H13", lab_odd, auipc)

SCHEME(ebreak_odd_on, EBREAK_ODD, OFF, ON, BREAK, UNITS, 0, AS_NEW,
       .resume = act_as);
SCHEME(ebreak_odd_off, EBREAK_ODD, ON, OFF, BREAK, UNITS, 0, AS_NEW,
       .resume = act_as);
#endif

/* ---- both words by a bypass ---- */

/* As both words do. */
static void act_as_far(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	f->reg[REG_RA] = site + 8;
	arch_frame_set_pc(f, (unsigned long)lab_call);
}
LAB_RESUME(act_as_far);

#define UNIT_REST(to) TWO_STORES(0, 2, 2, 6, to)
#define NOPS TWO("auipc+jalr", "H2", lab_pair, nops)
#define FAR_NOPS TWO("far both", "H2", lab_far, far_nops)

BYPASS(nops_on, NOPS, OFF, ON, UNIT_REST, act_as);
BYPASS(nops_off, NOPS, ON, OFF, UNIT_REST, act_as);
BYPASS(far_nops_on, FAR_NOPS, OFF, ON, UNIT_REST, act_as_far);
BYPASS(far_nops_off, FAR_NOPS, ON, OFF, UNIT_REST, act_as_far);
BYPASS(retarget, RETARGET("retarget", "H2"), ON, ON2, UNIT_REST, act_as);
NO_WAIT(nops, NOPS, OFF, ON, UNIT_REST, act_as, LAB_FAULT);
NO_WAIT(far_nops, FAR_NOPS, OFF, ON, UNIT_REST, act_as_far, LAB_FAULT);
NO_WAIT(retarget, RETARGET("retarget", "H2"), ON, ON2, UNIT_REST, act_as,
	LAB_FAULT);
IN_PLACE(nops, NOPS, OFF, ON, UNIT_REST, act_as, LAB_FAULT);
IN_PLACE(far_nops, FAR_NOPS, OFF, ON, UNIT_REST, act_as_far, LAB_FAULT);

/* ---- the port's own ---- */

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
