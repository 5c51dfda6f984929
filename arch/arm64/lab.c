/* SPDX-License-Identifier: MIT */
/*
 * The lab's schemes on arm64: tracer/lab/lab.h. One word, two words, breakpoints.
 *
 * | form          | word 0           | word 1      |
 * |---------------|------------------|-------------|
 * | off, fixed    | mov x9, x30      | nop         |
 * | off, nops     | nop              | nop         |
 * | off, jump     | b . + 8          | bl          |
 * | on            | mov x9, x30      | bl          |
 * | far, off      | adr x16          | nop         |
 * | far, on       | adr x16          | blr x16     |
 */
#include <frame.h>
#include <kernel/patch_path.h>
#include <kernel/lib/string.h>
#include <tracer/lab/lab.h>
#include <tracer/lab/lab_scheme.h>
#include <tracer/sites/sites.h>

extern const struct lab_victim lab_pair, lab_word, lab_far;
extern const char lab_count_entry[], lab_count_entry2[], lab_call[],
	lab_call2[];

#define INSN_JUMP_8 (INSN_B | 2) /* b . + 8 */
#define INSN_BLR_X16 0xd63f0200u
#define INSN_ADR_X16                                                           \
	0x10000010u /* | bits 20..2 of the distance << 5 | 1..0 << 29 */

/* ---- the bytes of the forms ---- */

static void put_words(u8 *bytes, u32 word0, u32 word1)
{
	memcpy(bytes, &word0, 4);
	memcpy(bytes + 4, &word1, 4);
}

static u32 lab_bl(unsigned long at, const char *target)
{
	return insn_branch(INSN_BL, at, (unsigned long)target);
}

static u32 lab_adr(unsigned long at, const char *target)
{
	u64 distance = (unsigned long)target - at;

	return INSN_ADR_X16 | (u32)(distance & 3) << 29 |
	       (u32)(distance >> 2 & 0x7ffff) << 5;
}

static u32 entry_call(unsigned long site, unsigned int form)
{
	return lab_bl(site + 4,
		      form == ON2 ? lab_count_entry2 : lab_count_entry);
}

static void encode_fixed(unsigned long site, unsigned int form, u8 *bytes)
{
	put_words(bytes, INSN_MOV_X9_LR,
		  form == OFF ? INSN_NOP : entry_call(site, form));
}

static void encode_nops(unsigned long site, unsigned int form, u8 *bytes)
{
	if (form == OFF)
		put_words(bytes, INSN_NOP, INSN_NOP);
	else
		encode_fixed(site, form, bytes);
}

static void encode_jump(unsigned long site, unsigned int form, u8 *bytes)
{
	put_words(bytes, form == OFF ? INSN_JUMP_8 : INSN_MOV_X9_LR,
		  entry_call(site, form));
}

static void encode_word(unsigned long site, unsigned int form, u8 *bytes)
{
	u32 word = form == OFF ?
			   INSN_NOP :
			   lab_bl(site, form == ON2 ? lab_call2 : lab_call);

	memcpy(bytes, &word, 4);
}

static void encode_far(unsigned long site, unsigned int form, u8 *bytes)
{
	put_words(bytes, lab_adr(site, form == ON2 ? lab_call2 : lab_call),
		  form == OFF ? INSN_NOP : INSN_BLR_X16);
}

static void encode_far_nops(unsigned long site, unsigned int form, u8 *bytes)
{
	if (form == OFF)
		put_words(bytes, INSN_NOP, INSN_NOP);
	else
		encode_far(site, form, bytes);
}

/* The lengths of the instructions off and on. One that is passed over is negative. */
#define FORMS(off0, off1, on0, on1)                                            \
	.form = {                                                              \
		{ "off", { off0, off1 }, { 0, 0 } },                           \
		{ "on", { on0, on1 }, { 1, 0 } },                              \
		{ "on2", { on0, on1 }, { 0, 1 } },                             \
	}
#define PAIR FORMS(4, 4, 4, 4)
#define SITE(scheme, origin, on, encoder, size)                                \
	.name = scheme, .from = origin, .victim = &(on), .length = size,       \
	.encode = encode_##encoder

#define FIRST(to) ONE_STORE(0, 4, to)
#define SECOND(to) ONE_STORE(4, 4, to)
#define FIRST_SECOND(to) TWO_STORES(0, 4, 4, 4, to)
#define SECOND_FIRST(to) TWO_STORES(4, 4, 0, 4, to)

/* ---- one word of one or two ---- */

#define FIXED SITE("mov/nop", "seed 4", lab_pair, fixed, 8), PAIR
#define WORD SITE("nop/bl", "seed 4", lab_word, word, 4), FORMS(4, 0, 4, 0)
#define FAR SITE("adr/blr", "H2", lab_far, far, 8), PAIR
#define X9_RIGHT "x9 is right for either second word"
#define ONE_WORD "one word"
#define X16_RIGHT "x16 is right for either second word"

SCHEME(fixed_stop_on, FIXED, OFF, ON, STOP, SECOND, 0, X9_RIGHT);
SCHEME(fixed_stop_off, FIXED, ON, OFF, STOP, SECOND, 0, X9_RIGHT);
SCHEME(fixed_live_on, FIXED, OFF, ON, LIVE, SECOND, 0, X9_RIGHT);
SCHEME(fixed_live_off, FIXED, ON, OFF, LIVE, SECOND, 0, X9_RIGHT);
SCHEME(fixed_retarget, FIXED, ON, ON2, LIVE, SECOND, 0, X9_RIGHT);
SCHEME(word_stop_on, WORD, OFF, ON, STOP, FIRST, 0, ONE_WORD);
SCHEME(word_stop_off, WORD, ON, OFF, STOP, FIRST, 0, ONE_WORD);
SCHEME(word_live_on, WORD, OFF, ON, LIVE, FIRST, 0, ONE_WORD);
SCHEME(word_live_off, WORD, ON, OFF, LIVE, FIRST, 0, ONE_WORD);
SCHEME(word_retarget, WORD, ON, ON2, LIVE, FIRST, 0, ONE_WORD);
SCHEME(far_live_on, FAR, OFF, ON, LIVE, SECOND, 0, X16_RIGHT);
SCHEME(far_live_off, FAR, ON, OFF, LIVE, SECOND, 0, X16_RIGHT);

/*
 * The other word of two: off is a jump over the call, so the call stays. A task on the call
 * has saved x30 before it.
 */
#define JUMP SITE("b/mov", "H2", lab_pair, jump, 8), FORMS(4, -4, 4, 4)
#define SAVED "a task on the bl has executed the mov"

SCHEME(jump_live_on, JUMP, OFF, ON, LIVE, FIRST, 0, SAVED);
SCHEME(jump_live_off, JUMP, ON, OFF, LIVE, FIRST, 0, SAVED);
SCHEME(jump_stop_on, JUMP, OFF, ON, STOP, FIRST, 0, SAVED);

/* ---- both words (H2, H3) ---- */

#define NOPS(scheme, origin) SITE(scheme, origin, lab_pair, nops, 8), PAIR
#define UNSAVED "a bl that no mov was before; cure: mov/nop"
#define FAR_NOPS SITE("adr+blr", "H2", lab_far, far_nops, 8), PAIR

SCHEME(nops_stop_on, NOPS("mov+bl", "H2"), OFF, ON, STOP, FIRST_SECOND,
       LAB_REGS, UNSAVED);
SCHEME(nops_stop_off, NOPS("mov+bl", "H2"), ON, OFF, STOP, FIRST_SECOND, 0,
       "a mov without its bl does nothing");
SCHEME(nops_01_on, NOPS("mov+bl 0 1", "H2"), OFF, ON, LIVE, FIRST_SECOND,
       LAB_REGS, UNSAVED);
SCHEME(nops_10_on, NOPS("mov+bl 1 0", "H3"), OFF, ON, LIVE, SECOND_FIRST,
       LAB_REGS, UNSAVED);
SCHEME(nops_01_off, NOPS("mov+bl 0 1", "H3"), ON, OFF, LIVE, FIRST_SECOND,
       LAB_REGS, UNSAVED);
SCHEME(nops_10_off, NOPS("mov+bl 1 0", "H3"), ON, OFF, LIVE, SECOND_FIRST, 0,
       "a mov without its bl does nothing");
SCHEME(far_nops_on, FAR_NOPS, OFF, ON, STOP, FIRST_SECOND, LAB_FAULT,
       "a blr without its adr; cure: adr/blr");
SCHEME(far_nops_off, FAR_NOPS, ON, OFF, STOP, FIRST_SECOND, 0,
       "an adr without its blr does nothing");

/* ---- breakpoints (H13) ---- */

/* As the second word in that form would. */
static void act_as(struct trap_frame *f, unsigned long site, unsigned int form)
{
	arch_frame_set_pc(f, site + 8);
	if (form == OFF)
		return;
	f->reg[REG_LR] = site + 8;
	arch_frame_set_pc(f, (unsigned long)(form == ON2 ? lab_count_entry2 :
							   lab_count_entry));
}
LAB_RESUME(act_as);

static void act_as_nop(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	arch_frame_set_pc(f, site + 8);
}
LAB_RESUME(act_as_nop);

#define BRK(scheme) SITE(scheme, "H13", lab_pair, fixed, 8), PAIR
#define AS_NEW "the trap acts as the new form"

SCHEME(brk_on, BRK("brk"), OFF, ON, BREAK, SECOND, 0, AS_NEW, .resume = act_as);
SCHEME(brk_off, BRK("brk"), ON, OFF, BREAK, SECOND, 0, AS_NEW,
       .resume = act_as);
SCHEME(brk_retarget, BRK("brk"), ON, ON2, BREAK, SECOND, 0, AS_NEW,
       .resume = act_as);
SCHEME(brk_nop, BRK("brk-nop"), ON, ON2, BREAK, SECOND, LAB_CALLS,
       "neither the old nor the new call; cure: brk", .resume = act_as_nop);

/* ---- both words by a bypass ---- */

/* As both words do. */
static void act_as_pair(struct trap_frame *f, unsigned long site,
			unsigned int form)
{
	f->reg[9] = f->reg[REG_LR];
	act_as(f, site, form);
}
LAB_RESUME(act_as_pair);

static void act_as_far(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	f->reg[REG_LR] = site + 8;
	f->reg[16] = (unsigned long)lab_call;
	arch_frame_set_pc(f, (unsigned long)lab_call);
}
LAB_RESUME(act_as_far);

#define MOV_BL NOPS("mov+bl", "H2")

BYPASS(nops_on, MOV_BL, OFF, ON, FIRST_SECOND, act_as_pair);
BYPASS(nops_off, MOV_BL, ON, OFF, FIRST_SECOND, act_as_pair);
BYPASS(far_nops_on, FAR_NOPS, OFF, ON, FIRST_SECOND, act_as_far);
BYPASS(far_nops_off, FAR_NOPS, ON, OFF, FIRST_SECOND, act_as_far);
NO_WAIT(nops, MOV_BL, OFF, ON, FIRST_SECOND, act_as_pair, LAB_REGS);
NO_WAIT(far_nops, FAR_NOPS, OFF, ON, FIRST_SECOND, act_as_far, LAB_FAULT);
IN_PLACE(nops, MOV_BL, OFF, ON, FIRST_SECOND, act_as_pair, LAB_REGS);
IN_PLACE(far_nops, FAR_NOPS, OFF, ON, FIRST_SECOND, act_as_far, LAB_FAULT);

/* ---- the port's own ---- */

const struct lab_form *lab_own_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { SITE_FORM }, { 0, 0 } },
		{ "on", { SITE_FORM }, { 1, 0 } },
	};

	return &forms[on];
}

const struct lab_form *lab_jump_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { arch_jump_length }, { 0, 0 } },
		{ "on", { arch_jump_length }, { 1, 0 } },
	};

	return &forms[on];
}
