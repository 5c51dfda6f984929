/* SPDX-License-Identifier: MIT */
/*
 * Sites on x86-64: 5 bytes in front of everything else in a function, all of
 * them the live instruction. SITES= chooses the bytes that GCC leaves there (sites/):
 *
 * | SITES=     | compiled                     | fixed         | off     | on          |
 * |------------|------------------------------|---------------|---------|-------------|
 * | fentry     | e8 rel32  call __fentry__    | none          | one NOP | e8 rel32    |
 * |            |                              |               |         | trace_entry |
 * | fentry-nop | 0f 1f 44 00 00  one NOP      | none          | as      | as fentry   |
 * |            |                              |               | fentry  |             |
 * | patchable  | 90 90 90 90 90  five NOPs    | none: the     | as      | as fentry   |
 * |            |                              | five made one | fentry  |             |
 *
 * Two NOPs leave the distance to trace_entry, or its end, where it is. With nop=jmp,
 * off is eb 03, a jump over its last three bytes. With nop=test, off is a9, which
 * takes the whole distance as a number to compare eax with, so off differs from on
 * in one byte. Flags carry nothing into a function.
 *
 * No task may ever stand between two of the five NOPs of patchable when they become
 * one. So boot does that, while no other CPU and no other task runs.
 *
 * A jump label is one instruction as well: e9 and the distance, or the NOP. In front of it
 * stand up to four prefixes 2e, which mean nothing to either, so that the five bytes that
 * change lie in one aligned word of eight. Control never stands behind the prefixes, so
 * they and the five bytes are executed as one instruction.
 *
 * A site may lie across a cache line, so no alignment makes a store of it atomic for
 * other CPUs that fetch. arch_live_word() asks for more than alignment.
 */
#include <boot/boot_info.h>
#include <arch/arch_trace.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

const char arch_site_expected[] = SITE_EXPECTED;

/*
 * NOPs of one instruction: several short ones would let a preempted task stand
 * between them, inside the future call.
 */
static const struct nop {
	const char *name;
	u8 bytes[SITE_LENGTH];
	u8 length; /* the rest of a site is as in a call */
} nops[] = {
	/* nopl 0(%rax,%rax): Intel since the Pentium Pro, AMD since K7 */
	{ "p6", { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 5 },
	/* nop with operand size prefixes: one decoder slot on AMD's K8, where
	 * the long form takes the slow path */
	{ "k8", { 0x66, 0x66, 0x66, 0x66, 0x90 }, 5 },
	/*
	 * ds lea 0(%rsi),%rsi: needs nothing beyond the base instruction set.
	 * The REX prefix 48 matters: the well-known 3e 8d 74 26 00 is a NOP in
	 * 32-bit code only. In 64-bit code it clears the upper half of rsi, the
	 * second argument.
	 */
	{ "generic", { 0x3e, 0x48, 0x8d, 0x76, 0x00 }, 5 },
	/* jmp .+5 */
	{ "jmp", { 0xeb, 0x03 }, 2 },
	/* test $distance,%eax */
	{ "test", { 0xa9 }, 1 },
};

const char arch_nop_names[] = "p6 k8 generic jmp test";

u64 patch_nop, patch_nop_keep;
static char nop_description[24];

static void nop_choose(const struct nop *nop)
{
	unsigned int length = nop->length;
	size_t n = snprintf(nop_description, sizeof(nop_description), "%s ",
			    nop->name);

	patch_nop = arch_live_read(
		(struct live){ (unsigned long)nop->bytes, LIVE_CALL });
	patch_nop_keep = LIVE_MASK & LIVE_MASK << 8 * length;
	for (unsigned int i = 0; i < SITE_LENGTH; i++, n += 2)
		snprintf(nop_description + n, sizeof(nop_description) - n,
			 i < length ? "%02x" : "xx", nop->bytes[i]);
}

static bool cpu_is_amd(void)
{
	struct cpuid vendor = cpuid(0);

	return vendor.ebx == 0x68747541 && vendor.edx == 0x69746e65 &&
	       vendor.ecx == 0x444d4163; /* "Auth" "enti" "cAMD" */
}

/* By the vendor and family of CPUID (SDM 2A, CPUID, AMD 25481). */
static const struct nop *nop_best(void)
{
	u32 signature = cpuid(1).eax;
	unsigned int family = signature >> 8 & 0xf;
	bool amd = cpu_is_amd();

	if (family == 0xf)
		family += signature >> 20 & 0xff;
	if (amd && family == 0xf)
		return &nops[1];
	return family >= 6 ? &nops[0] : &nops[2];
}

/*
 * QEMU's translator loads the first byte of an instruction, then the operand:
 * seen with four CPUs under load, the first byte of a call with the tail of the
 * NOP. With -icount all CPUs are one thread, which stores at another time.
 */
static bool cpu_fetches_bytes(void)
{
	struct cpuid maker;

	if (boot_info.icount || !cpu_is_virtual())
		return false;
	maker = cpuid(0x40000000);
	return maker.ebx == 0x54474354 && maker.ecx == 0x43544743 &&
	       maker.edx == 0x47435447; /* "TCGT" "CGTC" "GTCG" */
}

int patch_word_last = -1;

/*
 * AMD (APM vol. 2, 7.6.1, asynchronous modification): other CPUs may fetch
 * while code is modified by one store within a naturally aligned quadword: each
 * executes the old or the new. Intel (SDM 3A, 8.1.3) promises nothing to a CPU
 * that has not executed a serialising instruction in between.
 */
const char *arch_word_refused;

static const char *refuse_word_here(void)
{
	if (!cpu_is_amd())
		return "only AMD promises that others may fetch 8 aligned "
		       "bytes while they are stored";
	if (cpu_fetches_bytes() && patch_nop_keep != (LIVE_MASK & ~0xffull))
		return "QEMU fetches an instruction's bytes one after another, "
		       "whatever AMD promises, unless -icount or nop=test";
	return NULL;
}

const char *arch_nop_select(const char *wanted)
{
	const struct nop *nop = wanted ? NULL : nop_best();

	for (unsigned int i = 0; wanted && i < ARRAY_SIZE(nops); i++)
		if (!strcmp(nops[i].name, wanted))
			nop = &nops[i];
	if (!nop)
		return NULL;
	nop_choose(nop);
	arch_word_refused = refuse_word_here();
	patch_word_last = arch_word_refused ? -1 : 8 - SITE_LENGTH;
	return nop_description;
}

notrace const char *arch_site_recognise(unsigned long site)
{
	struct live l = { site, LIVE_CALL };

	return arch_live_read(l) == site_compiled(site) ? SITE_FORMAT : NULL;
}

/* Kernel text is less than 2 GiB (-mcmodel=kernel): every jump and every call reaches. */
static int prepare_jump(struct live l, long delta)
{
	if (arch_live_read(l) != JUMP_COMPILED)
		return -EINVAL;
	arch_live_write(l, delta, arch_live_bytes(l, false));
	return 0;
}

/* notrace: it runs once for each site, while its own would still call the stub. */
notrace int arch_site_prepare(unsigned long site, unsigned long target,
			      long delta)
{
	struct live l = { site, target };

	if (target)
		return prepare_jump(l, delta);
	if (__builtin_expect(!arch_site_recognise(site), 0))
		return -EINVAL;
	arch_live_write(l, delta, arch_live_bytes(l, false));
	return 0;
}

/*
 * The call's return address goes below the interrupted stack pointer, where
 * trap_breakpoint (entry.S) has left room.
 */
void arch_break_resume(struct trap_frame *f, struct live l, bool on)
{
	f->rip = on && l.target ? l.target : l.at + SITE_LENGTH;
	if (!on || l.target)
		return;
	f->rsp -= sizeof(f->rip);
	*(unsigned long *)f->rsp = f->rip;
	f->rip = (unsigned long)trace_entry;
}

/* Interrupt state between open and close. Each CPU touches its own. */
static irq_state_t text_irq_state[MAX_CPUS];

/*
 * alias_root maps all that kernel_root does and the image once more, writable.
 * Interrupts stay off, so that nothing but the caller runs on it, and no other
 * CPU loads it. Leaving it drops every translation of the alias, since none is
 * global (SDM 3A, 4.10.4.1).
 */
long arch_text_open(void)
{
	irq_state_t state = arch_irq_save();

	text_irq_state[cpu_index()] = state;
	write_cr3(alias_root);
	return (long)(ALIAS_BASE - KERNEL_OFFSET);
}

void arch_text_close(void)
{
	write_cr3(kernel_root);
	arch_irq_restore(text_irq_state[cpu_index()]);
}

/* SDM 3A, 8.1.3, cross-modifying code: a serialising instruction. */
notrace void arch_text_sync(void)
{
	cpuid(0);
}
