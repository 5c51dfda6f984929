/* SPDX-License-Identifier: MIT */
/*
 * The sites of this kernel's front end (SITES=), one kind in a kernel: site.h has their
 * table. All have one NOP, and a breakpoint as long as the live part.
 */
#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>

const char arch_nop_names[] = "brcl";
const char arch_site_expected[] = SITE_EXPECTED;

const char *arch_word_refused; /* for no CPU: arch_live_word() says why */

const char *arch_nop_select(const char *wanted)
{
	return wanted && strcmp(wanted, arch_nop_names) ? NULL : "brcl c004";
}

notrace const char *arch_site_recognise(unsigned long site)
{
	return site % 2 || !site_is_compiled(site) ? NULL : SITE_FORMAT;
}

/* `brc 0` to itself. The distance fits 16 bits of halfwords. */
static int prepare_jump(unsigned long label, unsigned long target, long delta)
{
	const u16 *half = (const u16 *)label;
	long distance = (long)(target - label) / 2;

	if (label % 2 || half[0] != INSN_BRC_NEVER || half[1])
		return -EINVAL;
	if (distance != (s16)distance)
		return -ERANGE;
	*(volatile u16 *)(label + (unsigned long)delta + 2) = (u16)distance;
	return 0;
}

/* notrace: it runs once for each site, while its own would still call the stub. */
notrace int arch_site_prepare(unsigned long site, unsigned long target,
			      long delta)
{
	volatile u16 *half = (volatile u16 *)(site + (unsigned long)delta);
	u32 distance = (u32)(((unsigned long)trace_entry - site) >> 1);

	if (target)
		return prepare_jump(site, target, delta);
	if (!arch_site_recognise(site))
		return -EINVAL;
	if (!branch_reaches(site, (unsigned long)trace_entry))
		return -ERANGE;
	half[1] = (u16)(distance >> 16);
	half[2] = (u16)distance;
	half[0] = INSN_BRCL_NEVER;
	return 0;
}

void arch_break_resume(struct trap_frame *f, struct live l, bool on)
{
	unsigned long next = l.at + (l.target ? JUMP_LENGTH : SITE_LENGTH);

	arch_frame_set_pc(f, next);
	if (!on)
		return;
	if (!l.target)
		f->reg[REG_IP] = next;
	arch_frame_set_pc(f, l.target ? l.target : (unsigned long)trace_entry);
}

/* PoP, chapter 5, "CPU serialization": instructions that the CPU has fetched before are
 * fetched anew. */
notrace void arch_text_sync(void)
{
	asm volatile("bcr 15,0" ::: "memory");
}
