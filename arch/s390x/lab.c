/* SPDX-License-Identifier: MIT */
/*
 * The lab's schemes on s390x: tracer/lab/lab.h. One halfword of a brcl, three nopr, breakpoints.
 *
 * | form         | halfword 0 | halfwords 1 and 2              |
 * |--------------|------------|--------------------------------|
 * | off, fixed   | brcl 0     | the distance to the target     |
 * | off, zero    | brcl 0     | 0                              |
 * | off, nopr    | nopr       | nopr, nopr                     |
 * | on           | brasl %r1  | the distance to the target     |
 */
#include <frame.h>
#include <kernel/lib/string.h>
#include <kernel/patch_path.h>
#include <tracer/lab/lab.h>
#include <tracer/lab/lab_scheme.h>

extern const struct lab_victim lab_six;
extern const char lab_count_entry[], lab_count_entry2[];

#define INSN_NOPR 0x0700u

/* ---- the bytes of the forms ---- */

static void put_halfwords(u8 *bytes, u16 half0, u16 half1, u16 half2)
{
	u16 half[] = { half0, half1, half2 };

	memcpy(bytes, half, sizeof(half));
}

static void encode_fixed(unsigned long site, unsigned int form, u8 *bytes)
{
	const char *to = form == ON2 ? lab_count_entry2 : lab_count_entry;
	u32 distance = (u32)(((unsigned long)to - site) / 2);

	put_halfwords(bytes, form == OFF ? INSN_BRCL_NEVER : INSN_BRASL_R1,
		      (u16)(distance >> 16), (u16)distance);
}

static void encode_zero(unsigned long site, unsigned int form, u8 *bytes)
{
	if (form == OFF)
		put_halfwords(bytes, INSN_BRCL_NEVER, 0, 0);
	else
		encode_fixed(site, form, bytes);
}

static void encode_nopr(unsigned long site, unsigned int form, u8 *bytes)
{
	if (form == OFF)
		put_halfwords(bytes, INSN_NOPR, INSN_NOPR, INSN_NOPR);
	else
		encode_fixed(site, form, bytes);
}

/* The lengths of the instructions off. On there is one of six bytes. */
#define FORMS(...)                                                             \
	.form = {                                                              \
		{ "off", { __VA_ARGS__ }, { 0, 0 } },                          \
		{ "on", { SITE_LENGTH }, { 1, 0 } },                           \
		{ "on2", { SITE_LENGTH }, { 0, 1 } },                          \
	}
#define SITE(scheme, origin, encoder)                                          \
	.name = scheme, .from = origin, .victim = &lab_six,                    \
	.length = SITE_LENGTH, .encode = encode_##encoder

#define FIRST(to) ONE_STORE(0, 2, to)
#define FIRST_REST(to) TWO_STORES(0, 2, 2, 4, to)
#define REST_FIRST(to) TWO_STORES(2, 4, 0, 2, to)

/* ---- one halfword ---- */

#define FIXED SITE("brcl/brasl", "seed 4", fixed), FORMS(SITE_LENGTH)
#define ONE_HALF "one halfword of one instruction"

SCHEME(fixed_stop_on, FIXED, OFF, ON, STOP, FIRST, 0, ONE_HALF);
SCHEME(fixed_stop_off, FIXED, ON, OFF, STOP, FIRST, 0, ONE_HALF);
SCHEME(fixed_live_on, FIXED, OFF, ON, LIVE, FIRST, 0, ONE_HALF);
SCHEME(fixed_live_off, FIXED, ON, OFF, LIVE, FIRST, 0, ONE_HALF);

/* ---- the distance too (H2) ---- */

#define ZERO(scheme) SITE(scheme, "H2", zero), FORMS(SITE_LENGTH)
#define NEVER_TAKEN "a brcl 0 goes nowhere, however far"
#define TO_ITSELF "a brasl to itself; cure: the distance first"

SCHEME(zero_stop_on, ZERO("brcl0"), OFF, ON, STOP, REST_FIRST, 0, NEVER_TAKEN);
SCHEME(zero_live_on, ZERO("brcl0"), OFF, ON, LIVE, REST_FIRST, 0, NEVER_TAKEN);
SCHEME(zero_live_off, ZERO("brcl0"), ON, OFF, LIVE, FIRST_REST, 0, NEVER_TAKEN);
SCHEME(zero_off_rest, ZERO("brcl0 rest first"), ON, OFF, LIVE, REST_FIRST,
       LAB_HUNG, TO_ITSELF);

/* ---- three instructions become one ---- */

#define NOPR(scheme) SITE(scheme, "H2", nopr), FORMS(2, 2, 2)
#define INSIDE "a task on the second nopr; cure: brcl/brasl"

SCHEME(nopr_stop_on, NOPR("nopr*3"), OFF, ON, STOP, REST_FIRST, LAB_FAULT,
       INSIDE);
SCHEME(nopr_live_on, NOPR("nopr*3"), OFF, ON, LIVE, REST_FIRST, LAB_FAULT,
       INSIDE);
SCHEME(nopr_stop_off, NOPR("nopr*3"), ON, OFF, STOP, FIRST_REST, 0,
       "no task stands inside one instruction");

/* ---- breakpoints (H13) ---- */

/* As the whole instruction in that form would. */
static void act_as(struct trap_frame *f, unsigned long site, unsigned int form)
{
	arch_frame_set_pc(f, site + SITE_LENGTH);
	if (form == OFF)
		return;
	f->reg[REG_IP] = site + SITE_LENGTH;
	arch_frame_set_pc(f, (unsigned long)(form == ON2 ? lab_count_entry2 :
							   lab_count_entry));
}
LAB_RESUME(act_as);

static void act_as_nop(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	arch_frame_set_pc(f, site + SITE_LENGTH);
}
LAB_RESUME(act_as_nop);

#define BRK(scheme) SITE(scheme, "H13", fixed), FORMS(SITE_LENGTH)
#define AS_NEW "the trap acts as the new form"

SCHEME(brk_on, BRK("brk"), OFF, ON, BREAK, FIRST, 0, AS_NEW, .resume = act_as);
SCHEME(brk_off, BRK("brk"), ON, OFF, BREAK, FIRST, 0, AS_NEW, .resume = act_as);
SCHEME(brk_retarget, BRK("brk"), ON, ON2, BREAK, FIRST_REST, 0, AS_NEW,
       .resume = act_as);
SCHEME(brk_nop, BRK("brk-nop"), ON, ON2, BREAK, FIRST_REST, LAB_CALLS,
       "neither the old nor the new call; cure: brk", .resume = act_as_nop);

/* ---- three instructions by a bypass ---- */

BYPASS(nopr_on, NOPR("nopr*3"), OFF, ON, FIRST_REST, act_as);
BYPASS(nopr_off, NOPR("nopr*3"), ON, OFF, FIRST_REST, act_as);
BYPASS(nopr_retarget, NOPR("nopr*3"), ON, ON2, FIRST_REST, act_as);
NO_WAIT(nopr, NOPR("nopr*3"), OFF, ON, FIRST_REST, act_as, LAB_FAULT);
IN_PLACE(nopr, NOPR("nopr*3"), OFF, ON, FIRST_REST, act_as, LAB_FAULT);

/* ---- the port's own ---- */

const struct lab_form *lab_own_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { SITE_LENGTH }, { 0, 0 } },
		{ "on", { SITE_LENGTH }, { 1, 0 } },
	};

	return &forms[on];
}

const struct lab_form *lab_jump_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { JUMP_LENGTH }, { 0, 0 } },
		{ "on", { JUMP_LENGTH }, { 1, 0 } },
	};

	return &forms[on];
}
