/*
 * Sites on x86-64, SITES=fentry: gcc -pg -mfentry puts one call in front of
 * everything else in a function.
 *
 * | offset | compiled                 | fixed | off            | on          |
 * |--------|--------------------------|-------|----------------|-------------|
 * | 0      | e8 rel32 call __fentry__ | none  | one 5-byte NOP | e8 rel32    |
 * |        |                          |       |                | trace_entry |
 *
 * The whole site is the live instruction. It may lie across a cache line, so
 * that no alignment makes a store of it atomic for other CPUs that fetch
 * (live_align 0); arch_live_word() asks for more than that.
 */
#include <arch/arch_trace.h>
#include <kernel/cpu.h>
#include <kernel/errno.h>
#include <kernel/patch_path.h>
#include <kernel/printk.h>
#include <kernel/string.h>

static const struct site_format fentry_format = {
	.name = "fentry",
	.length = SITE_LENGTH,
	.live_offset = 0,
	.live_length = SITE_LENGTH,
	.live_align = 0,
};

const char arch_site_expected[] = "e8 and the distance to __fentry__";
const unsigned int arch_live_length = SITE_LENGTH;
const bool arch_sync_each_site = false;

/* int3. The unit is its one byte: what follows may be across a cache line. */
const unsigned int arch_break_length = 1;
const u64 arch_break_insn = OPCODE_INT3;

/*
 * NOPs of one instruction: several short ones would let a preempted task stand
 * between them, inside the future call.
 */
static const struct nop {
	const char *name;
	u8 bytes[SITE_LENGTH];
} nops[] = {
	/* nopl 0(%rax,%rax): Intel since the Pentium Pro, AMD since K7 */
	{ "p6", { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
	/* nop with operand size prefixes: one decoder slot on AMD's K8, where
	 * the long form takes the slow path */
	{ "k8", { 0x66, 0x66, 0x66, 0x66, 0x90 } },
	/*
	 * ds lea 0(%rsi),%rsi: needs nothing beyond the base instruction set.
	 * The REX prefix 48 matters: the well-known 3e 8d 74 26 00 is a NOP in
	 * 32-bit code only; in 64-bit code it clears the upper half of rsi, the
	 * second argument.
	 */
	{ "generic", { 0x3e, 0x48, 0x8d, 0x76, 0x00 } },
};

const char arch_nop_names[] = "p6 k8 generic";

u64 patch_nop;
static char nop_description[24];

static void nop_choose(const struct nop *nop)
{
	const u8 *b = nop->bytes;

	patch_nop = arch_live_read((unsigned long)b);
	snprintf(nop_description, sizeof(nop_description),
		 "%s %02x%02x%02x%02x%02x", nop->name, b[0], b[1], b[2], b[3],
		 b[4]);
}

static bool cpu_is_amd(void)
{
	struct cpuid vendor = cpuid(0);

	return vendor.ebx == 0x68747541 && vendor.edx == 0x69746e65 &&
	       vendor.ecx == 0x444d4163; /* "Auth" "enti" "cAMD" */
}

/* By the vendor and family of CPUID (SDM 2A, CPUID; AMD 25481). */
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

int patch_word_last = -1;

/*
 * AMD (APM vol. 2, 7.6.1, asynchronous modification): other CPUs may fetch
 * while code is modified by one store within a naturally aligned quadword: each
 * executes the old or the new. Intel (SDM 3A, 8.1.3) promises nothing to a CPU
 * that has not executed a serialising instruction in between.
 */
const char *arch_word_refused(void)
{
	return cpu_is_amd() ?
		       NULL :
		       "only AMD promises that others may fetch 8 aligned "
		       "bytes while they are stored";
}

int arch_nop_select(const char *wanted)
{
	patch_word_last = arch_word_refused() ? -1 : 8 - SITE_LENGTH;
	if (!wanted) {
		nop_choose(nop_best());
		return 0;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(nops); i++) {
		if (!strcmp(nops[i].name, wanted)) {
			nop_choose(&nops[i]);
			return 0;
		}
	}
	return -EINVAL;
}

const char *arch_nop_describe(void)
{
	return nop_description;
}

/* Where the call at `site` goes, if it is one. */
static unsigned long call_target(unsigned long site)
{
	s32 distance;

	__builtin_memcpy(&distance, (const void *)(site + 1), 4);
	return site + SITE_LENGTH + distance;
}

const struct site_format *arch_site_recognise(unsigned long site)
{
	if (*(const u8 *)site != OPCODE_CALL ||
	    call_target(site) != (unsigned long)trace_stub)
		return NULL;
	return &fentry_format;
}

int arch_site_prepare(unsigned long site, long delta)
{
	long distance = (unsigned long)trace_entry - (site + SITE_LENGTH);

	if (!arch_site_recognise(site))
		return -EINVAL;
	if (distance != (s32)distance)
		return -ERANGE;
	arch_live_write(site + delta, patch_nop);
	return 0;
}

/*
 * The call's return address goes below the interrupted stack pointer, where
 * trap_breakpoint (entry.S) has left room.
 */
void arch_break_resume(struct trap_frame *f, unsigned long live, bool on)
{
	f->rip = live + SITE_LENGTH;
	if (!on)
		return;
	f->rsp -= sizeof(f->rip);
	*(unsigned long *)f->rsp = f->rip;
	f->rip = (unsigned long)trace_entry;
}
PATCH_ROOT(arch_break_resume);

/* Interrupt state between open and close; each CPU touches its own. */
static irq_state_t text_irq_state[MAX_CPUS];

/*
 * patch_root maps all that kernel_root does and the image once more, writable.
 * Interrupts stay off, so that nothing but the caller runs on it, and no other
 * CPU loads it; leaving it drops every translation of the alias, since none is
 * global (SDM 3A, 4.10.4.1).
 */
long arch_text_open(void)
{
	irq_state_t state = arch_irq_save();

	text_irq_state[cpu_index()] = state;
	write_cr3(patch_root);
	return (long)(ALIAS_BASE - KERNEL_OFFSET);
}

void arch_text_close(void)
{
	write_cr3(kernel_root);
	arch_irq_restore(text_irq_state[cpu_index()]);
}

/* SDM 3A, 8.1.3, cross-modifying code: a serialising instruction. */
void arch_text_sync(void)
{
	cpuid(0);
}
