/* SPDX-License-Identifier: MIT */
/*
 * The sites of this kernel's front end (SITES=), one kind in a kernel: site.h has their
 * table. Each kind has one NOP.
 */
#include <arch/arch_trace.h>
#include <boot/boot_info.h>
#include <kernel/errno.h>
#include <kernel/patch_path.h>
#include <kernel/lib/string.h>

const char arch_nop_names[] = "nop";
const char arch_site_expected[] = SITE_EXPECTED;

/*
 * No MIPS manual that this port can cite says which instruction a CPU fetches while
 * another CPU stores the word. So `word` is refused. A manual that does say it belongs here, and
 * would let `word` in. Under -icount QEMU runs one CPU at a time.
 */
const char *arch_word_refused;

const char *arch_nop_select(const char *wanted)
{
	if (!boot_info.icount)
		arch_word_refused =
			"no MIPS manual is known to say what a CPU fetches "
			"while the word is stored; only -icount allows it";
	return wanted && strcmp(wanted, arch_nop_names) ? NULL : SITE_NOP;
}

notrace const char *arch_site_recognise(unsigned long site)
{
	return site % 4 || !site_is_compiled((const u32 *)site) ? NULL :
								  SITE_FORMAT;
}

/*
 * A jump label is two words. The first is live: `nop`, or `j target`. The second is a
 * `nop` for good. It is the jump's delay slot, or an instruction that does nothing.
 */
static int prepare_jump(struct live l)
{
	const u32 *insn = (const u32 *)l.at;

	if (l.at % 4 || insn[0] != INSN_NOP || insn[1] != INSN_NOP)
		return -EINVAL;
	return jump_reaches(l.at, l.target) ? 0 : -ERANGE;
}

/* notrace: it runs once for each site, while its own would still call the stub. */
notrace int arch_site_prepare(unsigned long site, unsigned long target,
			      long delta)
{
	if (target)
		return prepare_jump((struct live){ site, target });
	if (!arch_site_recognise(site))
		return -EINVAL;
	if (!site_reaches(site, (unsigned long)trace_entry))
		return -ERANGE;
	site_write_fixed((volatile u32 *)(site + delta));
	arch_live_write((struct live){ site, LIVE_CALL }, delta,
			site_insn(site, false));
	return 0;
}

/* The live instruction is never in a delay slot, so EPC is its own address, and
 * Cause.BD is clear. */
void arch_break_resume(struct trap_frame *f, struct live l, bool on)
{
	if (l.target)
		f->epc = on ? l.target : l.at + 4;
	else if (on)
		site_resume_on(f, l.at);
	else
		f->epc = l.at + RESUME_OFF;
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
 * sync: the synci before it have been carried out. jr.hb: the next
 * instructions are fetched after that (PRA, "Instruction Hazards").
 */
notrace void arch_text_sync(void)
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
