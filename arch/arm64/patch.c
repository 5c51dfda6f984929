/* SPDX-License-Identifier: MIT */
/*
 * The sites of this kernel's front end (SITES=), one kind in a kernel: site.h has their
 * table. All have one NOP, and a breakpoint as long as the live instruction.
 */
#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>

const char arch_nop_names[] = "nop";
const char arch_site_expected[] = SITE_EXPECTED;

const char *arch_word_refused; /* for no CPU: arch_live_word() says why */

const char *arch_nop_select(const char *wanted)
{
	return wanted && strcmp(wanted, arch_nop_names) ? NULL : "nop d503201f";
}

notrace const char *arch_site_recognise(unsigned long site)
{
	return site % 4 || !site_is_compiled((const u32 *)site) ? NULL :
								  SITE_FORMAT;
}

static int prepare_jump(struct live l, long delta)
{
	if (l.at % 4 || arch_live_read(l) != INSN_NOP)
		return -EINVAL;
	if (!branch_reaches(l.at, l.target))
		return -ERANGE;
	arch_live_write(l, delta, INSN_NOP);
	return 0;
}

/* notrace: it runs once for each site, while its own would still call the stub. */
notrace int arch_site_prepare(unsigned long site, unsigned long target,
			      long delta)
{
	struct live l = live_of_site(site);

	if (target)
		return prepare_jump((struct live){ site, target }, delta);
	if (__builtin_expect(!arch_site_recognise(site), 0))
		return -EINVAL;
	if (!branch_reaches(l.at, (unsigned long)trace_entry))
		return -ERANGE;
	site_write_fixed(site, delta);
	arch_live_write(l, delta, INSN_NOP);
	return 0;
}

void arch_break_resume(struct trap_frame *f, struct live l, bool on)
{
	arch_frame_set_pc(f, l.at + 4);
	if (on && !l.target)
		f->reg[REG_LR] = l.at + 4;
	if (on)
		arch_frame_set_pc(f, l.target ? l.target :
						(unsigned long)trace_entry);
}

/*
 * The dsb waits for stores and maintenance of another CPU that this CPU has been told of. The
 * isb discards the instructions that this CPU has fetched already.
 */
notrace void arch_text_sync(void)
{
	asm volatile("dsb ish\n\tisb" ::: "memory");
}
