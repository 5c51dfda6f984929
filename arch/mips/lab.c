/* SPDX-License-Identifier: MIT */
/*
 * The lab's schemes on MIPS: tracer/lab/lab.h. The instruction in the `jal`'s delay slot,
 * long calls, breakpoints.
 *
 * | victim   | form          | +0       | +4       | +8      | +12     | +16 |
 * |----------|---------------|----------|----------|---------|---------|-----|
 * | lab_jal  | off           | nop      | nop      |         |         |     |
 * |          | on            | jal      | nop      |         |         |     |
 * |          | on, compiled  | jal      | addiu sp |         |         |     |
 * | lab_long | off           | b +20    | addiu v1 | move at | jalr v1 | nop |
 * |          | off, both     | b +20    | nop      | move at | jalr v1 | nop |
 * |          | on            | lui v1   | addiu v1 | move at | jalr v1 | nop |
 *
 * A task that is held in a delay slot returns to the jump. But a `jal` has written
 * ra by then. Is it not there any more when the task goes on, ra stays wrong, so
 * the port's interrupts undo it (irq.c), where they know a site by its `move at,
 * ra`. lab_link is lab_jal with that move too far ahead for them.
 */
#include <boot/boot_info.h>
#include <frame.h>
#include <kernel/cpu/cpu.h>
#include <kernel/patch_path.h>
#include <kernel/lib/string.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <tracer/lab/lab.h>
#include <tracer/lab/lab_scheme.h>
#include <tracer/testing.h>

#define INSN_J 0x08000000u

extern const struct lab_victim lab_jal, lab_link, lab_long;
extern const char lab_count[], lab_count2[], lab_count_stub[];

/* ---- the bytes of the forms ---- */

static void put_lab_word(u8 *bytes, unsigned int at, u32 word)
{
	memcpy(bytes + at, &word, 4);
}

static void encode_nop(unsigned long site, unsigned int form, u8 *bytes)
{
	const char *target = form == ON2 ? lab_count2 : lab_count;

	(void)site;
	put_lab_word(bytes, 0,
		     form == OFF ? INSN_NOP : insn_jal((unsigned long)target));
	put_lab_word(bytes, 4, INSN_NOP);
}

static void encode_addiu(unsigned long site, unsigned int form, u8 *bytes)
{
	(void)site;
	put_lab_word(bytes, 0,
		     form == OFF ? INSN_NOP :
				   insn_jal((unsigned long)lab_count_stub));
	put_lab_word(bytes, 4, form == OFF ? INSN_NOP : INSN_ADDIU_SP_8);
}

/*
 * The target of long calls. A call with half the address reaches far[0], where a breakpoint
 * stands that belongs to no site: otherwise it would run any code that lies at that multiple
 * of 64 KiB. No CPU has ever fetched from here when it is written, so this CPU's synci is
 * enough.
 */
#define FAR_AT 16
static u32 far[FAR_AT + 2] __attribute__((aligned(1 << 16)));

/* For brought patch code, too (tests/patchers/linux/mips). */
unsigned long lab_far_target(void);
unsigned long lab_far_target(void)
{
	if (!far[0]) {
		far[FAR_AT] = INSN_J |
			      ((unsigned long)lab_count >> 2 & INSN_JAL_TARGET);
		far[FAR_AT + 1] = INSN_NOP;
		far[0] = INSN_BREAK;
		for (unsigned int i = 0; i < ARRAY_SIZE(far); i++)
			arch_text_sync_site((unsigned long)&far[i]);
		arch_text_sync();
	}
	return (unsigned long)&far[FAR_AT];
}

static void encode_long(unsigned long site, unsigned int form, u8 *bytes)
{
	unsigned long target = lab_far_target();

	(void)site;
	put_lab_word(bytes, 0,
		     form == OFF ? INSN_BRANCH | 4 : insn_lui_v1(target));
	put_lab_word(bytes, 4, INSN_ADDIU_V1 | (target & 0xffff));
	put_lab_word(bytes, 8, INSN_MOVE_AT_RA);
	put_lab_word(bytes, 12, INSN_JALR_V1);
	put_lab_word(bytes, 16, INSN_NOP);
}

static void encode_long_both(unsigned long site, unsigned int form, u8 *bytes)
{
	encode_long(site, form, bytes);
	if (form == OFF)
		put_lab_word(bytes, 4, INSN_NOP);
}

#define JAL(scheme, origin, slot) AT(lab_jal, scheme, origin, slot)
#define AT(on, scheme, origin, slot)                                           \
	.name = scheme, .from = origin, .victim = &(on), .length = 8,          \
	.encode = encode_##slot,                                               \
	.form = {                                                              \
		{ "off", { 4, 4 }, { 0, 0 } },                                 \
		{ "on", { 4, 4 }, { 1, 0 } },                                  \
		{ "on2", { 4, 4 }, { 0, 1 } },                                 \
	}
#define LONG(scheme, encoder)                                                  \
	.name = scheme, .from = "H5b", .victim = &lab_long, .length = 20,      \
	.encode = encode_##encoder,                                            \
	.form = {                                                              \
		{ "off", { 4, 4, -4, -4, -4 }, { 0, 0 } },                     \
		{ "on", { 4, 4, 4, 4, 4 }, { 1, 0 } },                         \
	}

#define FIRST(to) ONE_STORE(0, 4, to)
#define FIRST_SECOND(to) TWO_STORES(0, 4, 4, 4, to)
#define SECOND_FIRST(to) TWO_STORES(4, 4, 0, 4, to)

/* ---- the delay slot (seed 1) ---- */

#define CURE "8 bytes of stack lost or won; cure: jal/nop"

SCHEME(addiu_stop_on, JAL("jal/addiu", "seed 1", addiu), OFF, ON, STOP,
       FIRST_SECOND, LAB_SP, CURE);
SCHEME(addiu_stop_off, JAL("jal/addiu", "seed 1", addiu), ON, OFF, STOP,
       FIRST_SECOND, 0,
       "a slot is no place to go on from: RECORD=runtime's start");
SCHEME(addiu_link, AT(lab_link, "jal/addiu link", "seed 1", addiu), ON, OFF,
       STOP, FIRST_SECOND, LAB_REGS,
       "held in the slot, ra is the jal's; cure: undo it");
SCHEME(addiu_01_on, JAL("jal/addiu 0 1", "seed 1", addiu), OFF, ON, LIVE,
       FIRST_SECOND, LAB_SP, CURE);
SCHEME(addiu_10_on, JAL("jal/addiu 1 0", "seed 1", addiu), OFF, ON, LIVE,
       SECOND_FIRST, LAB_SP, CURE);
SCHEME(addiu_01_off, JAL("jal/addiu 0 1", "seed 1", addiu), ON, OFF, LIVE,
       FIRST_SECOND, LAB_SP, CURE);
SCHEME(addiu_10_off, JAL("jal/addiu 1 0", "seed 1", addiu), ON, OFF, LIVE,
       SECOND_FIRST, LAB_SP, CURE);

#define NOP_SLOT JAL("jal/nop", "seed 1", nop)
#define SLOT_STAYS "one word; the slot is a nop for good"

SCHEME(nop_stop_on, NOP_SLOT, OFF, ON, STOP, FIRST, 0, SLOT_STAYS);
SCHEME(nop_stop_off, NOP_SLOT, ON, OFF, STOP, FIRST, 0, SLOT_STAYS);
SCHEME(nop_live_on, NOP_SLOT, OFF, ON, LIVE, FIRST, 0, SLOT_STAYS);
SCHEME(nop_live_off, NOP_SLOT, ON, OFF, LIVE, FIRST, 0, SLOT_STAYS);
SCHEME(nop_live_retarget, NOP_SLOT, ON, ON2, LIVE, FIRST, 0, SLOT_STAYS);
SCHEME(nop_link, AT(lab_link, "jal/nop link", "seed 1", nop), ON, OFF, STOP,
       FIRST, LAB_REGS, "held in the slot, ra is the jal's; cure: undo it");

/* ---- long calls (H5b) ---- */

#define HALF "a jalr with half an address; cure: long b/lui"

SCHEME(both_stop_on, LONG("long both", long_both), OFF, ON, STOP, FIRST_SECOND,
       0, "off, no task stands behind the b");
SCHEME(both_stop_off, LONG("long both", long_both), ON, OFF, STOP, FIRST_SECOND,
       LAB_FAULT, HALF);
SCHEME(both_01_on, LONG("long both 0 1", long_both), OFF, ON, LIVE,
       FIRST_SECOND, LAB_FAULT, HALF);
SCHEME(both_10_on, LONG("long both 1 0", long_both), OFF, ON, LIVE,
       SECOND_FIRST, 0, "off, no task stands behind the b");
SCHEME(both_01_off, LONG("long both 0 1", long_both), ON, OFF, LIVE,
       FIRST_SECOND, LAB_FAULT, HALF);
SCHEME(both_10_off, LONG("long both 1 0", long_both), ON, OFF, LIVE,
       SECOND_FIRST, LAB_FAULT, HALF);

#define LONG_ONE LONG("long b/lui", long)
#define REST "behind the lui the rest of the call stands"

SCHEME(long_stop_on, LONG_ONE, OFF, ON, STOP, FIRST, 0, REST);
SCHEME(long_stop_off, LONG_ONE, ON, OFF, STOP, FIRST, 0, REST);
SCHEME(long_live_on, LONG_ONE, OFF, ON, LIVE, FIRST, 0, REST);
SCHEME(long_live_off, LONG_ONE, ON, OFF, LIVE, FIRST, 0, REST);

/* ---- breakpoints (H13) ---- */

/* As the first word in that form would, its delay slot with it. */
static void act_as(struct trap_frame *f, unsigned long site, unsigned int form)
{
	f->epc = site + 4;
	if (form == OFF)
		return;
	f->reg[REG_RA] = site + 8;
	f->epc = (u32)(form == ON2 ? lab_count2 : lab_count);
}
LAB_RESUME(act_as);

static void act_as_nop(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	f->epc = site + 4;
}
LAB_RESUME(act_as_nop);

#define BREAKS(scheme) JAL(scheme, "H13", nop)
#define AS_NEW "the trap acts as the new form"

SCHEME(break_on, BREAKS("break"), OFF, ON, BREAK, FIRST, 0, AS_NEW,
       .resume = act_as);
SCHEME(break_off, BREAKS("break"), ON, OFF, BREAK, FIRST, 0, AS_NEW,
       .resume = act_as);
SCHEME(break_retarget, BREAKS("break"), ON, ON2, BREAK, FIRST, 0, AS_NEW,
       .resume = act_as);
SCHEME(break_nop, BREAKS("break-nop"), ON, ON2, BREAK, FIRST, LAB_CALLS,
       "neither the old nor the new call; cure: break", .resume = act_as_nop);

/* ---- both words by a bypass ---- */

static void act_as_stub(struct trap_frame *f, unsigned long site,
			unsigned int form)
{
	(void)form;
	f->reg[REG_RA] = site + 8;
	f->reg[REG_SP] -= 8;
	f->epc = (u32)lab_count_stub;
}
LAB_RESUME(act_as_stub);

static void act_as_long(struct trap_frame *f, unsigned long site,
			unsigned int form)
{
	(void)form;
	f->reg[REG_AT] = f->reg[REG_RA];
	f->reg[REG_V1] = f->epc = (u32)lab_far_target();
	f->reg[REG_RA] = site + 20;
}
LAB_RESUME(act_as_long);

#define ADDIU JAL("jal/addiu", "seed 1", addiu)
#define LONG_BOTH LONG("long both", long_both)

BYPASS(addiu_on, ADDIU, OFF, ON, FIRST_SECOND, act_as_stub);
BYPASS(addiu_off, ADDIU, ON, OFF, FIRST_SECOND, act_as_stub);
BYPASS(both_on, LONG_BOTH, OFF, ON, FIRST_SECOND, act_as_long);
BYPASS(both_off, LONG_BOTH, ON, OFF, FIRST_SECOND, act_as_long);
NO_WAIT(addiu, ADDIU, OFF, ON, FIRST_SECOND, act_as_stub, LAB_SP);
NO_WAIT(both, LONG_BOTH, ON, OFF, FIRST_SECOND, act_as_long, LAB_FAULT);
IN_PLACE(addiu, ADDIU, OFF, ON, FIRST_SECOND, act_as_stub, LAB_SP);

/* ---- the port's own ---- */

const struct lab_form *lab_own_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", SITE_FORM_OFF, { 0, 0 } },
		{ "on", SITE_FORM_ON, { 1, 0 } },
	};

	return &forms[on];
}

const struct lab_form *lab_jump_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { 4, 4 }, { 0, 0 } },
		{ "on", { 4, 4 }, { 1, 0 } },
	};

	return &forms[on];
}
