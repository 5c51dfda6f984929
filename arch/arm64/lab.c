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

/* ---- what the forms are ---- */

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

/* A scheme with its site and its forms: from one form to another. */
#define SCHEME(ident, site, from, to, how, stores, ...)                        \
	LAB_SCHEME(ident, site, MOVE(from, to), .way = how,                    \
		   .store = stores(to), __VA_ARGS__)
#define SAFE(why) .because = why
#define BREAKS(damage, why) .breaks = damage, .because = why

/* ---- one word of one or two ---- */

#define FIXED SITE("mov/nop", "seed 4", lab_pair, fixed, 8), PAIR
#define WORD SITE("nop/bl", "seed 4", lab_word, word, 4), FORMS(4, 0, 4, 0)
#define FAR SITE("adr/blr", "H2", lab_far, far, 8), PAIR
#define X9_RIGHT SAFE("x9 is right for either second word")
#define ONE_WORD SAFE("one word")
#define X16_RIGHT SAFE("x16 is right for either second word")

SCHEME(fixed_stop_on, FIXED, OFF, ON, LAB_STOP, SECOND, X9_RIGHT);
SCHEME(fixed_stop_off, FIXED, ON, OFF, LAB_STOP, SECOND, X9_RIGHT);
SCHEME(fixed_live_on, FIXED, OFF, ON, LAB_LIVE, SECOND, X9_RIGHT);
SCHEME(fixed_live_off, FIXED, ON, OFF, LAB_LIVE, SECOND, X9_RIGHT);
SCHEME(fixed_retarget, FIXED, ON, ON2, LAB_LIVE, SECOND, X9_RIGHT);
SCHEME(word_stop_on, WORD, OFF, ON, LAB_STOP, FIRST, ONE_WORD);
SCHEME(word_stop_off, WORD, ON, OFF, LAB_STOP, FIRST, ONE_WORD);
SCHEME(word_live_on, WORD, OFF, ON, LAB_LIVE, FIRST, ONE_WORD);
SCHEME(word_live_off, WORD, ON, OFF, LAB_LIVE, FIRST, ONE_WORD);
SCHEME(word_retarget, WORD, ON, ON2, LAB_LIVE, FIRST, ONE_WORD);
SCHEME(far_live_on, FAR, OFF, ON, LAB_LIVE, SECOND, X16_RIGHT);
SCHEME(far_live_off, FAR, ON, OFF, LAB_LIVE, SECOND, X16_RIGHT);

/*
 * The other word of two: off is a jump over the call, so the call stays. A task on the call
 * has saved x30 before it.
 */
#define JUMP SITE("b/mov", "H2", lab_pair, jump, 8), FORMS(4, -4, 4, 4)
#define SAVED SAFE("a task on the bl has executed the mov")

SCHEME(jump_live_on, JUMP, OFF, ON, LAB_LIVE, FIRST, SAVED);
SCHEME(jump_live_off, JUMP, ON, OFF, LAB_LIVE, FIRST, SAVED);
SCHEME(jump_stop_on, JUMP, OFF, ON, LAB_STOP, FIRST, SAVED);

/* ---- both words (H2, H3) ---- */

#define NOPS(scheme, origin) SITE(scheme, origin, lab_pair, nops, 8), PAIR
#define UNSAVED BREAKS(LAB_REGS, "a bl that no mov was before; cure: mov/nop")
#define FAR_NOPS SITE("adr+blr", "H2", lab_far, far_nops, 8), PAIR

SCHEME(nops_stop_on, NOPS("mov+bl", "H2"), OFF, ON, LAB_STOP, FIRST_SECOND,
       UNSAVED);
SCHEME(nops_stop_off, NOPS("mov+bl", "H2"), ON, OFF, LAB_STOP, FIRST_SECOND,
       SAFE("a mov without its bl does nothing"));
SCHEME(nops_01_on, NOPS("mov+bl 0 1", "H2"), OFF, ON, LAB_LIVE, FIRST_SECOND,
       UNSAVED);
SCHEME(nops_10_on, NOPS("mov+bl 1 0", "H3"), OFF, ON, LAB_LIVE, SECOND_FIRST,
       UNSAVED);
SCHEME(nops_01_off, NOPS("mov+bl 0 1", "H3"), ON, OFF, LAB_LIVE, FIRST_SECOND,
       UNSAVED);
SCHEME(nops_10_off, NOPS("mov+bl 1 0", "H3"), ON, OFF, LAB_LIVE, SECOND_FIRST,
       SAFE("a mov without its bl does nothing"));
SCHEME(far_nops_on, FAR_NOPS, OFF, ON, LAB_STOP, FIRST_SECOND,
       BREAKS(LAB_FAULT, "a blr without its adr; cure: adr/blr"));
SCHEME(far_nops_off, FAR_NOPS, ON, OFF, LAB_STOP, FIRST_SECOND,
       SAFE("an adr without its blr does nothing"));

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
PATCH_INDIRECT(lab_trap, act_as);

static void act_as_nop(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	arch_frame_set_pc(f, site + 8);
}
PATCH_INDIRECT(lab_trap, act_as_nop);

#define BRK(scheme) SITE(scheme, "H13", lab_pair, fixed, 8), PAIR
#define AS_NEW .resume = act_as, .because = "the trap acts as the new form"

SCHEME(brk_on, BRK("brk"), OFF, ON, LAB_BREAK, SECOND, AS_NEW);
SCHEME(brk_off, BRK("brk"), ON, OFF, LAB_BREAK, SECOND, AS_NEW);
SCHEME(brk_retarget, BRK("brk"), ON, ON2, LAB_BREAK, SECOND, AS_NEW);
SCHEME(brk_nop, BRK("brk-nop"), ON, ON2, LAB_BREAK, SECOND,
       .resume = act_as_nop,
       BREAKS(LAB_CALLS, "neither the old nor the new call; cure: brk"));

/* ---- the port's own ---- */

const char *const lab_register_names[] = {
	[1] = "x1",   [2] = "x2",   [3] = "x3",	  [4] = "x4",	[5] = "x5",
	[6] = "x6",   [7] = "x7",   [8] = "x8",	  [9] = "x9",	[10] = "x10",
	[11] = "x11", [12] = "x12", [13] = "x13", [14] = "x14", [15] = "x15",
	[16] = "x16", [17] = "x17", [18] = "x18", [19] = "x19", [20] = "x20",
	[21] = "x21", [22] = "x22", [23] = "x23", [24] = "x24", [25] = "x25",
	[26] = "x26", [27] = "x27", [29] = "x29", [30] = "x30",
};

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
