/* SPDX-License-Identifier: MIT */
/*
 * MIPS: the sites that GCC's -pg makes for o32 with a `jal`. They stand after the
 * prologue. +0 is the address that a site is recorded by. With -mmcount-ra-address
 * (SITES=mcount-ra) the row in brackets is there too. It tells _mcount where ra was
 * saved (`move t4, zero` in a leaf), and costs one more instruction a call in both
 * states.
 *
 *	      compiled             fixed, from boot on   off   on
 *	 -4   move at, ra          the same              (*)   (*)
 *	[-4]  addiu t4, sp, N      the same              (*)   (*)
 *	 +0   jal _mcount          LIVE                  nop   jal trace_entry
 *	 +4   addiu sp, sp, -8     nop                   (*)   (*)
 *
 * (*) never written after boot.
 *
 * The delay slot's `addiu` is for the o32 _mcount, which gives the 8 bytes back. If it
 * were kept, "off" would have to be two words, and a task that is preempted between
 * them would lose 8 bytes of stack with every switch (the 2013 proposal to restore
 * both, seed 1). So the slot is a nop for good, and trace_entry takes nothing back.
 *
 * A task stands at +0, before the live instruction, and executes it whole in whichever
 * state it then is, or at +8, after it. It never stands at +4. With the `jal`, +4 is
 * its delay slot, and an interrupt there sets Cause.BD and returns to +0, with ra as
 * before the `jal` (undo_link() in irq.c). With the `nop`, +4 is an instruction that
 * does nothing on the way to +8.
 *
 * The same holds for a conversion while tasks run (RECORD=runtime): the two words are
 * written with all CPUs held, and no task stands between them. A task that is in the
 * stub then has given the 8 bytes by its old delay slot, gets them back, and returns
 * to +8.
 *
 * In a function with a static chain GCC keeps the chain in v0 over the call: `move v0,
 * t7` stands before the call (or the addiu t4), `move t7, v0` behind the site. Both
 * stay, and our trampolines keep t7.
 */
#ifndef ARCH_MIPS_SITES_JAL_H
#define ARCH_MIPS_SITES_JAL_H

#ifndef __ASSEMBLER__
#define SITE_NOP "nop 00000000"
#define SITE_LENGTH 8
#define RESUME_OFF 4

static inline u64 site_insn(unsigned long live, bool on)
{
	(void)live;
	return on ? insn_jal((unsigned long)trace_entry) : INSN_NOP;
}

/* Do the instructions before insn save ra, and perhaps a static chain? */
static inline bool saves_ra(const u32 *insn)
{
	return insn[-1] == INSN_MOVE_AT_RA ||
	       (insn[-1] == INSN_MOVE_V0_T7 && insn[-2] == INSN_MOVE_AT_RA);
}

static inline bool calls_stub(const u32 *insn)
{
	return insn[0] == insn_jal((unsigned long)trace_stub) &&
	       insn[1] == INSN_ADDIU_SP_8;
}

static inline bool site_reaches(unsigned long site, unsigned long target)
{
	return jump_reaches(site, target);
}

static inline void site_write_fixed(volatile u32 *insn)
{
	insn[1] = INSN_NOP;
}

/* As the `jal` and its delay slot leave it: a call's ra is behind both. */
static inline void site_resume_on(struct trap_frame *f, unsigned long live)
{
	f->reg[REG_RA] = live + SITE_LENGTH;
	f->epc = (u32)trace_entry;
}

/* Two instructions, on and off. */
#define SITE_FORM_ON                                                           \
	{                                                                      \
		4, 4                                                           \
	}
#define SITE_FORM_OFF                                                          \
	{                                                                      \
		4, 4                                                           \
	}
#endif

#endif
