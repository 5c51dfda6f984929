/*
 * The sites that GCC's -pg makes for o32, one kind in a kernel (SITES=). They stand
 * after the prologue. +0 is the address that a site is recorded by.
 *
 * SITES=mcount. With -mmcount-ra-address (mcount-ra) the row in brackets is there
 * too. It tells _mcount where ra was saved (`move t4, zero` in a leaf), and costs one
 * more instruction a call in both states.
 *
 *	      compiled             fixed, from boot on   off   on
 *	 -4   move at, ra          the same              (*)   (*)
 *	[-4]  addiu t4, sp, N      the same              (*)   (*)
 *	 +0   jal _mcount          LIVE                  nop   jal trace_entry
 *	 +4   addiu sp, sp, -8     nop                   (*)   (*)
 *
 * SITES=mcount-long, -mlong-calls: for code that a jal does not reach.
 *
 *	      compiled             fixed, from boot on   off   on
 *	 +0   lui v1, %hi          LIVE                  b +20 lui v1, %hi
 *	 +4   addiu v1, v1, %lo    that of trace_entry   (*)   (*)
 *	 +8   move at, ra          the same              (*)   (*)
 *	+12   jalr v1              the same              (*)   (*)
 *	+16   addiu sp, sp, -8     nop                   (*)   (*)
 *
 * (*) never written after boot.
 *
 * The delay slot's `addiu` is for the o32 _mcount, which gives the 8 bytes back. If it
 * were kept, "off" would have to be two words, and a task that is preempted between
 * them would lose 8 bytes of stack with every switch (the 2013 proposal to restore
 * both, seed 1). So the slot is a nop for good, and trace_entry takes nothing back.
 *
 * mcount: a task stands at +0, before the live instruction, and executes it whole in
 * whichever state it then is; or at +8, after it. It never stands at +4. With the
 * `jal`, +4 is its delay slot, and an interrupt there sets Cause.BD and returns to +0,
 * with ra as before the `jal` (undo_link() in irq.c). With the `nop`, +4 is an
 * instruction that does nothing on the way to +8.
 *
 * The same holds for a conversion while tasks run (RECORD=runtime): the two words are
 * written with all CPUs held, and no task stands between them. A task that is in the
 * stub then has given the 8 bytes by its old delay slot, gets them back, and returns
 * to +8.
 *
 * mcount-long: a task that has executed the `lui` stands at +4 to +12. It finds the
 * rest of its call there, whatever +0 says by then. (If "off" were a `b` at +0 and a
 * nop at +4, the task would come to the `jalr` with half an address: H5b.) The `b` has
 * the `addiu` in its delay slot, where v1 is free. Only the boot CPU converts such a
 * site, because a task at +4 to +12 would go on with the other half of it.
 *
 * The price of "off" is three instructions, move, nop, nop; or two, b and addiu. The
 * move must stay, because the site needs it as soon as it is on, and it would be a
 * second live word.
 *
 * In a function with a static chain GCC keeps the chain in v0 over the call: `move v0,
 * t7` stands before the call (or the addiu t4), `move t7, v0` behind the site. Our
 * trampolines keep t7. With mcount both moves stay. With mcount-long neither stays,
 * because "off" would pass over the first one: the jalr moves up to +12, and what is
 * left over behind the site is nops.
 */
#include <arch/arch_trace.h>
#include <boot/boot_info.h>
#include <kernel/errno.h>
#include <kernel/patch_path.h>
#include <kernel/lib/string.h>

#define INSN_MOVE_AT_RA 0x03e00825u /* or at, ra, zero */
#define INSN_MOVE_V0_T7 0x01e01025u
#define INSN_MOVE_T7_V0 0x00407825u
#define INSN_MOVE_T4_0 0x00006025u
#define INSN_ADDIU_T4_SP 0x27ac0000u /* addiu t4, sp, N */
#define INSN_ADDIU_SP_8 0x27bdfff8u  /* addiu sp, sp, -8 */
#define INSN_ADDIU_V1 0x24630000u    /* addiu v1, v1, N */
#define INSN_JALR_V1 0x0060f809u
#define INSN_UPPER 0xffff0000u

const char arch_nop_names[] = "nop";

#ifdef SITES_mcount_long
#define FORMAT_NAME "mcount-long"

const char arch_site_expected[] = "lui v1; addiu v1 of _mcount; move at,ra; "
				  "jalr v1; addiu sp,sp,-8";

static const char nop_description[] = "nop 10000004";

static u32 insn_addiu_v1(unsigned long target)
{
	return INSN_ADDIU_V1 | (target & 0xffff);
}

/* "lui; addiu; move at, ra" of the stub? */
static bool loads_stub(const u32 *insn)
{
	return insn[0] == insn_lui_v1((unsigned long)trace_stub) &&
	       insn[1] == insn_addiu_v1((unsigned long)trace_stub) &&
	       insn[2] == INSN_MOVE_AT_RA;
}

static bool has_chain(const u32 *insn)
{
	return insn[3] == INSN_MOVE_V0_T7 && insn[6] == INSN_MOVE_T7_V0;
}

static bool is_site(const u32 *insn)
{
	const u32 *call = insn + (has_chain(insn) ? 4 : 3);

	return loads_stub(insn) && call[0] == INSN_JALR_V1 &&
	       call[1] == INSN_ADDIU_SP_8;
}

static bool in_reach(unsigned long site, unsigned long target)
{
	(void)site, (void)target;
	return true;
}

static void write_fixed(volatile u32 *insn)
{
	if (has_chain((const u32 *)insn)) {
		insn[5] = insn[6] = INSN_NOP;
		/* This word may lie in a cache line of its own. */
		arch_text_sync_site((unsigned long)&insn[6]);
	}
	insn[1] = insn_addiu_v1((unsigned long)trace_entry);
	insn[3] = INSN_JALR_V1;
	insn[4] = INSN_NOP;
}

static void resume_on(struct trap_frame *f, unsigned long live)
{
	f->reg[REG_V1] = (u32)arch_live_bytes(live, true) << 16;
	f->epc = live + 4;
}
#else
#ifdef SITES_mcount_ra
#define FORMAT_NAME "mcount-ra"
#else
#define FORMAT_NAME "mcount"
#endif

static const char nop_description[] = "nop 00000000";

/* Does what stands before insn save ra, and perhaps a static chain? */
static bool saves_ra(const u32 *insn)
{
	return insn[-1] == INSN_MOVE_AT_RA ||
	       (insn[-1] == INSN_MOVE_V0_T7 && insn[-2] == INSN_MOVE_AT_RA);
}

#ifdef SITES_mcount_ra
const char arch_site_expected[] =
	"move at,ra; addiu t4,sp,N; jal _mcount; addiu sp,sp,-8";

/* Does `insn` tell where ra is? */
static bool tells_ra(u32 insn)
{
	return insn == INSN_MOVE_T4_0 ||
	       (insn & INSN_UPPER) == INSN_ADDIU_T4_SP;
}

static bool has_moves(const u32 *jal)
{
	return tells_ra(jal[-1]) && saves_ra(jal - 1);
}
#else
const char arch_site_expected[] = "move at,ra; jal _mcount; addiu sp,sp,-8";

static bool has_moves(const u32 *jal)
{
	return saves_ra(jal);
}
#endif

static bool is_site(const u32 *insn)
{
	return insn[0] == insn_jal((unsigned long)trace_stub) &&
	       insn[1] == INSN_ADDIU_SP_8 && has_moves(insn);
}

/* `jal` keeps the upper 4 bits of the address of its delay slot. */
static bool in_reach(unsigned long site, unsigned long target)
{
	return ((site + 4) ^ target) >> 28 == 0;
}

static void write_fixed(volatile u32 *insn)
{
	insn[1] = INSN_NOP;
}

/* As the `jal` and its delay slot leave it: a call's ra is behind both. */
static void resume_on(struct trap_frame *f, unsigned long live)
{
	f->reg[REG_RA] = live + SITE_LENGTH;
	f->epc = (u32)trace_entry;
}
#endif

/* Each kind of site has one NOP; `nop`, all zeros, is one on every MIPS. */
const char *arch_nop_select(const char *wanted)
{
	return wanted && strcmp(wanted, arch_nop_names) ? NULL :
							  nop_description;
}

const char *arch_site_recognise(unsigned long site)
{
	return site % 4 || !is_site((const u32 *)site) ? NULL : FORMAT_NAME;
}

int arch_site_prepare(unsigned long site, long delta)
{
	if (!arch_site_recognise(site))
		return -EINVAL;
	if (!in_reach(site, (unsigned long)trace_entry))
		return -ERANGE;
	write_fixed((volatile u32 *)(site + delta));
	arch_live_write(site + delta, arch_live_bytes(site, false));
	return 0;
}

/*
 * No MIPS manual that this port can cite says what a CPU fetches while another CPU
 * stores the word. So `word` is refused. A manual that does say it belongs here, and
 * would let `word` in. Under -icount QEMU runs one CPU at a time.
 */
const char *arch_word_refused(void)
{
	if (boot_info.icount)
		return NULL;
	return "no MIPS manual is known to say what a CPU fetches while the "
	       "word is stored; only -icount allows it";
}

/* The live instruction is never in a delay slot, so EPC is its own address, and
 * Cause.BD is clear. */
void arch_break_resume(struct trap_frame *f, unsigned long live, bool on)
{
	if (on)
		resume_on(f, live);
	else
		f->epc = live + RESUME_OFF;
}

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
