/*
 * The site that GCC's -pg makes for o32. It stands after the prologue, and is
 * recorded by the address of its `jal`, here +0.
 *
 *	     compiled              fixed, from boot on  off    on
 *	-4   move at, ra           the same             (*)    (*)
 *	+0   jal _mcount           LIVE                 nop    jal trace_entry
 *	+4   addiu sp, sp, -8      nop                  (*)    (*)
 *
 * (*) never written after boot. In a function with a static chain a
 * `move v0, t7` stands between the first two, and the function itself moves v0
 * back after the site, so v0 is not a trampoline's to use.
 *
 * The delay slot's `addiu` is for the o32 _mcount, which gives the 8 bytes back.
 * Were it kept, "off" would have to be two words, and a task preempted between
 * them would lose 8 bytes of stack with every switch (the 2013 proposal to
 * restore both). So it is a nop for good, and trace_entry takes nothing back.
 *
 * A task stands at +0 before the live instruction, and executes it whole in
 * whichever state it then is; or at +8 after. It never stands at +4: with the
 * `jal` that is its delay slot, an interrupt there sets Cause.BD and returns to
 * +0; with the `nop` it is an instruction that does nothing, on the way to +8.
 *
 * The price of "off" is three instructions: move, nop, nop. The move cannot go:
 * it is needed as soon as the site is on, and would be a second live word.
 *
 * The recorder notes with each site where the prologue saved ra: bits 24..31 of
 * its table word are the offset from sp / 4, as in `sw ra, 20(sp)` = 5, or 0 in
 * a leaf, which keeps ra in ra. Nothing here reads it; a tracer of returns does.
 */
#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/patch_path.h>
#include <kernel/string.h>

#define INSN_MOVE_AT_RA 0x03e00825u /* or at, ra, zero */
#define INSN_MOVE_V0_T7 0x01e01025u
#define INSN_ADDIU_SP_8 0x27bdfff8u /* addiu sp, sp, -8 */

const char arch_nop_names[] = "nop";
const char arch_site_expected[] = "move at,ra; jal _mcount; addiu sp,sp,-8";

static const struct site_format site_mcount = {
	.name = "mcount",
	.length = SITE_LENGTH,
	.live_offset = 0,
	.live_length = 4,
	.live_align = 4,
};

/* There is one: `nop` is all zeros, and known to every MIPS as such. */
int arch_nop_select(const char *wanted)
{
	return wanted && strcmp(wanted, arch_nop_names) ? -EINVAL : 0;
}

const char *arch_nop_describe(void)
{
	return "nop 00000000";
}

static bool has_move(const u32 *jal)
{
	return jal[-1] == INSN_MOVE_AT_RA ||
	       (jal[-1] == INSN_MOVE_V0_T7 && jal[-2] == INSN_MOVE_AT_RA);
}

const struct site_format *arch_site_recognise(unsigned long site)
{
	const u32 *insn = (const u32 *)site;

	if (site % 4 || insn[0] != insn_jal((unsigned long)trace_stub) ||
	    insn[1] != INSN_ADDIU_SP_8 || !has_move(insn))
		return NULL;
	return &site_mcount;
}

/* `jal` keeps the upper 4 bits of the address of its delay slot. */
static bool in_reach(unsigned long site, unsigned long target)
{
	return ((site + 4) ^ target) >> 28 == 0;
}

int arch_site_prepare(unsigned long site, long delta)
{
	if (!arch_site_recognise(site))
		return -EINVAL;
	if (!in_reach(site, (unsigned long)trace_entry))
		return -ERANGE;
	*(volatile u32 *)(site + 4 + delta) = INSN_NOP;
	arch_live_write(site + delta, INSN_NOP);
	return 0;
}

const char *arch_word_refused(void)
{
	return NULL;
}

/*
 * As the `jal` and its delay slot leave it: a call's ra is behind both. "Off":
 * behind the `nop`. The live instruction is never in a delay slot, so EPC is its
 * own address, and Cause.BD is clear.
 */
void arch_break_resume(struct trap_frame *f, unsigned long live, bool on)
{
	if (!on) {
		f->epc = live + 4;
		return;
	}
	f->reg[REG_RA] = live + SITE_LENGTH;
	f->epc = (u32)trace_entry;
}
/* The strategy's trap is its only caller. */
PATCH_ROOT(arch_break_resume);

/* kseg0 has no protection: text is written where it stands. */
long arch_text_open(void)
{
	return 0;
}

void arch_text_close(void)
{
}

/*
 * sync: the synci before it have been carried out. jr.hb: what follows is
 * fetched after that (PRA, "Instruction Hazards").
 */
void arch_text_sync(void)
{
	unsigned long next;

	asm volatile("	.set push\n"
		     "	.set noreorder\n"
		     "	sync\n"
		     "	la	%0, 1f\n"
		     "	jr.hb	%0\n"
		     "	nop\n"
		     "1:\n"
		     "	.set pop\n"
		     : "=&r"(next)
		     :
		     : "memory");
}

/* The jr.hb: to its own next line. */
PATCH_INDIRECT(arch_text_sync, arch_text_sync);
