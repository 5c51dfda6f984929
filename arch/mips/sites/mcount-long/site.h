/* SPDX-License-Identifier: MIT */
/*
 * MIPS, SITES=mcount-long: the sites that GCC's -pg -mlong-calls makes for o32, for code
 * that a `jal` does not reach. They stand after the prologue. +0 is the address that a
 * site is recorded by.
 *
 *	      compiled             fixed, from boot on   off   on
 *	 +0   lui v1, %hi          LIVE                  b +20 lui v1, %hi
 *	 +4   addiu v1, v1, %lo    that of trace_entry   (*)   (*)
 *	 +8   move at, ra          the same              (*)   (*)
 *	+12   jalr v1              the same              (*)   (*)
 *	+16   addiu sp, sp, -8     nop                   (*)   (*)
 *
 * (*) never written after boot. sites/jal.h says why the delay slot becomes a nop.
 *
 * A task that has executed the `lui` stands at +4 to +12. It finds the rest of its call
 * there, even if +0 has changed by then. (If "off" were a `b` at +0 and a nop at +4, the task
 * would come to the `jalr` with half an address: H5b.) The `b` has the `addiu` in its
 * delay slot, where v1 is free. Only the boot CPU converts such a site, because a task
 * at +4 to +12 would go on with the other half of it.
 *
 * The price of "off" is two instructions, b and addiu. Of a `jal`'s site, three: move,
 * nop, nop. That move must stay, because the site needs it as soon as it is on, and it
 * would be a second live word.
 *
 * In a function with a static chain GCC keeps the chain in v0 over the call: `move v0,
 * t7` stands before the jalr, `move t7, v0` behind the site. Neither stays, because
 * "off" would pass over the first one: the jalr moves up to +12, and the words that are
 * left over behind the site are nops. Our trampolines keep t7.
 */
#ifndef ARCH_MIPS_SITE_H
#define ARCH_MIPS_SITE_H

#ifndef __ASSEMBLER__
#define SITE_FORMAT "mcount-long"
#define SITE_EXPECTED                                                          \
	"lui v1; addiu v1 of _mcount; move at,ra; jalr v1; addiu sp,sp,-8"
#define SITE_NOP "nop 10000004"
#define SITE_LENGTH 20
#define RESUME_OFF SITE_LENGTH

static inline u64 site_insn(unsigned long live, bool on)
{
	(void)live;
	return on ? insn_lui_v1((unsigned long)trace_entry) :
		    INSN_BRANCH | (SITE_LENGTH / 4 - 1);
}

/* "lui; addiu; move at, ra" of the stub? */
static inline bool loads_stub(const u32 *insn)
{
	return insn[0] == insn_lui_v1((unsigned long)trace_stub) &&
	       insn[1] == insn_addiu_v1((unsigned long)trace_stub) &&
	       insn[2] == INSN_MOVE_AT_RA;
}

static inline bool has_chain(const volatile u32 *insn)
{
	return insn[3] == INSN_MOVE_V0_T7 && insn[6] == INSN_MOVE_T7_V0;
}

static inline bool site_is_compiled(const u32 *insn)
{
	const u32 *call = insn + (has_chain(insn) ? 4 : 3);

	return loads_stub(insn) && call[0] == INSN_JALR_V1 &&
	       call[1] == INSN_ADDIU_SP_8;
}

static inline bool site_reaches(unsigned long site, unsigned long target)
{
	(void)site, (void)target;
	return true;
}

static inline void site_write_fixed(volatile u32 *insn)
{
	if (has_chain(insn)) {
		insn[5] = insn[6] = INSN_NOP;
		/* This word may lie in a cache line of its own. */
		arch_text_sync_site((unsigned long)&insn[6]);
	}
	insn[1] = insn_addiu_v1((unsigned long)trace_entry);
	insn[3] = INSN_JALR_V1;
	insn[4] = INSN_NOP;
}

/* As the `lui` leaves it. */
static inline void site_resume_on(struct trap_frame *f, unsigned long live)
{
	f->reg[REG_V1] = (u32)site_insn(live, true) << 16;
	f->epc = live + 4;
}

/* Five instructions, of which the `b` passes over three. */
#define SITE_FORM_ON                                                           \
	{                                                                      \
		4, 4, 4, 4, 4                                                  \
	}
#define SITE_FORM_OFF                                                          \
	{                                                                      \
		4, 4, -4, -4, -4                                               \
	}
#else
/* clang-format off */

	/* The lab's: a site as the compiler makes it. */
	.macro	own_site name, slot:vararg
	before	\name
\name\()_site:
	lui	$v1, %hi(_mcount)
	addiu	$v1, $v1, %lo(_mcount)
	move	$at, $ra
	jalr	$v1
	addiu	$sp, $sp, -8
	behind	\name
	.endm
#endif

#endif
