/*
 * Sites, one kind in an image (SITES=). In each, one row differs between off and
 * on: the live word, all that is written after boot.
 *
 * patchable: four c.nop at a function's entry, or in an image without compressed
 * instructions (patchable-nc) two nop. t0 carries the return address, site + 8.
 * Two ways to leave the call out, one chosen for all sites at boot:
 *
 *	nop=auipc	compiled	fixed		off	on
 *	site + 0	c.nop; c.nop	auipc t0, hi
 *	site + 4	c.nop; c.nop			HINT	jalr t0, lo(t0)
 *
 *	nop=jump	compiled	fixed		off	on
 *	site + 0	c.nop; c.nop			j . + 8	auipc t0, hi
 *	site + 4	c.nop; c.nop	jalr t0, lo(t0)
 *
 * A task preempted between the two words has executed the first one whole. With
 * nop=auipc it finds either second word, and t0 is right for both. With nop=jump
 * it is there only if the first was auipc, so jalr finds its t0, whatever the
 * first word has become since.
 *
 * mcount: behind the prologue; a0 holds the function's return address, and every
 * other register that a call may change is dead or saved.
 *
 *			compiled	fixed		off	on
 *	site + 0	jal ra, _mcount			HINT	jal ra, trace_entry
 *
 * mcount-far: the same call where the linker did not relax it.
 *
 *			compiled	fixed		off	on
 *	site + 0	auipc ra, hi	as compiled
 *	site + 4	jalr ra, lo(ra)			HINT	jalr ra, near(ra)
 *
 * Its auipc, made for _mcount, also reaches trace_entry, which stands right
 * behind _mcount, or else trace_entry_below, right before it. So nothing fixed
 * has to be written, and a task that stands between the words while a site is
 * converted (RECORD=runtime) has the same ra as after it. ra itself is lost in
 * either state, as the compiler expects of its call.
 *
 * With compressed instructions a site may be 2-aligned: cold functions' at their
 * entry, and any behind a prologue. Its live word is then no single store (H10)
 * and is left to the strategies that need none.
 */
#include <boot/boot_info.h>
#include <arch/arch_trace.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

#ifdef SITE_AT_ENTRY
#ifdef __riscv_compressed
#define COMPILED 0x00010001u /* c.nop; c.nop */
const char arch_site_expected[] = "01 00 four times, four c.nop";
#else
#define COMPILED INSN_NOP
const char arch_site_expected[] = "13 00 00 00 twice, two nop";
#endif

struct nop_choice {
	const char *name;
	unsigned long live; /* of the live instruction from the site */
	void (*measure)(unsigned long turns);
};

static const struct nop_choice choices[] = {
	{ "auipc", 4, nop_measure_auipc },
	{ "jump", 0, nop_measure_jump },
};
const char arch_nop_names[] = "auipc jump";

unsigned long riscv_site_live = 4;
static const struct nop_choice *choice = &choices[0];

/*
 * Ticks that `turns` of the loop take: the least of several runs, because an interrupt
 * of the firmware or of the emulator's host can only add to it.
 */
static u64 measure(const struct nop_choice *c, unsigned long turns)
{
	u64 best = ~0ull;
	unsigned int run;

	for (run = 0; run < 5; run++) {
		u64 start = arch_clock();

		c->measure(turns);
		best = min(best, arch_clock() - start);
	}
	return best;
}

static const struct nop_choice *choice_fastest(void)
{
	/* time ticks every 100 ns on virt: make a run 50 ticks long at least. */
	unsigned long turns = 16;

	while (measure(&choices[0], turns) < 50 && turns < 1ul << 20)
		turns *= 4;
	return measure(&choices[1], turns) < measure(&choices[0], turns) ?
		       &choices[1] :
		       &choices[0];
}

const char *arch_nop_select(const char *wanted)
{
	const struct nop_choice *c = NULL;
	unsigned int i;

	for (i = 0; wanted && i < ARRAY_SIZE(choices); i++)
		if (strcmp(wanted, choices[i].name) == 0)
			c = &choices[i];
	if (wanted && !c)
		return NULL;
	choice = c ? c : choice_fastest();
	riscv_site_live = choice->live;
	/* The upper halfword is the site's. */
	return SITE_LIVE ? "auipc 00028013" : "jump 0080006f";
}

const char *arch_site_recognise(unsigned long site)
{
	if (site % 2 || arch_live_read(site) != COMPILED ||
	    arch_live_read(site + 4) != COMPILED)
		return NULL;
	return "patchable";
}

/* A site in a function that GCC did not align: cold ones (H10). */
static noinline int prepare_unaligned(unsigned long site, long delta, u32 first,
				      u32 second)
{
	if (!arch_site_recognise(site))
		return -EINVAL;
	arch_live_write(site + delta, first);
	arch_live_write(site + delta + 4, second);
	return 0;
}

int arch_site_prepare(unsigned long site, long delta)
{
	long rounded = distance_rounded(site, trace_entry);
	const u32 *word = (const u32 *)site;
	u32 *alias = (u32 *)(site + delta);
	u32 first = INSN_JUMP_8, second = insn_jalr(REG_T0, rounded);

	/* The two words reach 2 GiB. Nothing is that far; half will do. */
	if ((rounded + (1l << 30)) >> 31)
		return arch_site_recognise(site) ? -ERANGE : -EINVAL;
	if (SITE_LIVE) {
		first = insn_auipc(REG_T0, rounded);
		second ^= JALR_TO_HINT(REG_T0);
	}
	if (site % 4)
		return prepare_unaligned(site, delta, first, second);
	if (word[0] != COMPILED || word[1] != COMPILED)
		return -EINVAL;
	alias[0] = first;
	alias[1] = second;
	return 0;
}
#else /* -pg */
const char arch_nop_names[] = "nop";

const char *arch_nop_select(const char *wanted)
{
	if (wanted && strcmp(wanted, arch_nop_names))
		return NULL;
	/* The upper halfword is the site's. */
	return SITE_LENGTH == 4 ? "nop 00000037" : "nop 00008013";
}

#ifdef SITES_mcount
#define FORMAT_NAME "mcount"
const char arch_site_expected[] = "jal ra,_mcount; a call that the linker "
				  "could not relax needs SITES=mcount-far";

static bool is_compiled_call(unsigned long site)
{
	long distance = (long)((unsigned long)trace_stub - site);

	return jal_reaches(distance) &&
	       arch_live_read(site) == insn_jal_ra(distance);
}

static bool in_reach(unsigned long site)
{
	return jal_reaches((long)((unsigned long)trace_entry - site));
}
#else
#define FORMAT_NAME "mcount-far"
const char arch_site_expected[] = "auipc ra; jalr ra to _mcount";

static bool is_compiled_call(unsigned long site)
{
	long rounded = distance_rounded(site, trace_stub);

	return arch_live_read(site) == insn_auipc(REG_RA, rounded) &&
	       arch_live_read(site + 4) == insn_jalr(REG_RA, rounded);
}

/* Does the compiled auipc reach trace_entry or trace_entry_below? */
static bool in_reach(unsigned long site)
{
	(void)site;
	return true;
}
#endif

const char *arch_site_recognise(unsigned long site)
{
	return site % 2 == 0 && is_compiled_call(site) ? FORMAT_NAME : NULL;
}

int arch_site_prepare(unsigned long site, long delta)
{
	if (site % 2 || !is_compiled_call(site))
		return -EINVAL;
	if (!in_reach(site))
		return -ERANGE;
	arch_live_write(arch_site_live(site) + delta, site_off(site));
	return 0;
}
#endif

const char *arch_word_refused(void)
{
#ifdef SITE_AT_ENTRY
	/*
	 * Ziccif promises whole words for both. But here off and on have no halfword in
	 * common.
	 */
	if (!SITE_LIVE && !boot_info.icount)
		return "QEMU fetches a word by halves, whatever Ziccif "
		       "promises, unless -icount or nop=auipc";
#endif
	return NULL;
}

void arch_break_resume(struct trap_frame *f, unsigned long live, bool on)
{
	unsigned long site = live - SITE_LIVE;
	unsigned long behind = site + SITE_LENGTH, pc = behind;

	if (on && arch_live_bytes(live, true) % 128 == INSN_AUIPC) {
		long rounded = distance_rounded(site, trace_entry);

		f->reg[SITE_LINK] = site + ALIGN_DOWN(rounded, 4096l);
		pc = site + 4; /* where the fixed jalr goes on */
	} else if (on) {
		f->reg[SITE_LINK] = behind;
		pc = (unsigned long)trace_entry;
	}
	arch_frame_set_pc(f, pc);
}

void arch_text_sync(void)
{
	/*
	 * Unprivileged manual, Zifencei: fence.i orders this hart's own earlier
	 * stores, and whatever it has already seen of others', before its later
	 * fetches. The writer's stores have been seen because the caller was
	 * told of them with an acquire.
	 */
	asm volatile("fence rw, rw\n\tfence.i" ::: "memory");
}
