/* SPDX-License-Identifier: MIT */
/*
 * Linux's ftrace.c, jump_label.c and alternative.c for x86-64, as the lab asks for patch code. All
 * of them switch by text_poke_bp_batch(), while all CPUs run. text_poke() alone is judged, too.
 */
#include <asm/ftrace.h>
#include <asm/insn.h>
#include <asm/text-patching.h>
#define LABEL_TRAP .trap = poke_trap
#include <linux/jump_label.h>

extern const struct lab_victim lab_five;

/* lab.S: the victim's site ends so far behind its two targets. */
#define FIRST_TARGET(site) ((site) + 5 - 0x170)
#define SECOND_TARGET(site) ((site) + 5 - 0x168)

/* alternative.c's tables and self-test, which nothing here uses. */
s32 __retpoline_sites[1], __retpoline_sites_end[1], __return_sites[1],
	__return_sites_end[1], __ibt_endbr_seal[1], __ibt_endbr_seal_end[1],
	__smp_locks[1], __smp_locks_end[1];
struct alt_instr __alt_instructions[1], __alt_instructions_end[1];
void int3_magic(unsigned int *ptr);
void int3_magic(unsigned int *ptr)
{
	*ptr = 1;
}

char ftrace_call[MCOUNT_INSN_SIZE], ftrace_regs_call[MCOUNT_INSN_SIZE];
const void *ftrace_expected;
struct ftrace_rec_iter one_record;

/* The breakpoint's trap: Linux's regs->ip lies behind it. */
static bool poke_trap(struct trap_frame *f)
{
	struct pt_regs regs = { f->rip + INT3_INSN_SIZE, f->rsp, f->rflags };

	if (!poke_int3_handler(&regs))
		return false;
	f->rip = regs.ip;
	f->rsp = regs.sp;
	return true;
}
LAB_PATCHER_TRAP(poke_trap);

/* The text's page is its own writable mapping, where patcher_write() finds the alias. */
static void map_text(unsigned long site)
{
	poking_addr = site & PAGE_MASK;
}

/* ---- ftrace.c ---- */

static int change_record(unsigned long site, int update, unsigned long next)
{
	map_text(site);
	one_record.rec.ip = site;
	one_record.update = update;
	one_record.next = next;
	one_record.error = 0;
	ftrace_arch_code_modify_prepare();
	ftrace_replace_code(update != FTRACE_UPDATE_MAKE_NOP);
	ftrace_arch_code_modify_post_process();
	one_record.now = next;
	return one_record.error;
}

/* From the call that the compiler leaves. */
static int entry_init(unsigned long site)
{
	struct dyn_ftrace rec = { site };

	map_text(site);
	patcher_write(site,
		      text_gen_insn(CALL_INSN_OPCODE, (void *)site,
				    (void *)MCOUNT_ADDR),
		      CALL_INSN_SIZE);
	return ftrace_make_nop(NULL, &rec, MCOUNT_ADDR);
}

static int entry_on(unsigned long site)
{
	return change_record(site, FTRACE_UPDATE_MAKE_CALL, FIRST_TARGET(site));
}

static int entry_off(unsigned long site)
{
	return change_record(site, FTRACE_UPDATE_MAKE_NOP, 0);
}

static int entry_modify(unsigned long site)
{
	return change_record(site, FTRACE_UPDATE_MODIFY_CALL,
			     SECOND_TARGET(site));
}

LAB_PATCHER(linux_ftrace, "ftrace.c", .from = "Linux", .victim = &lab_five,
	    .length = 5, .prepare = entry_init, .on = entry_on,
	    .off = entry_off, .retarget = entry_modify, .trap = poke_trap);

/* ---- text_poke() alone ---- */

static int poke_bytes(unsigned long site, const void *bytes)
{
	map_text(site);
	text_poke((void *)site, bytes, 5);
	text_poke_sync();
	return 0;
}

static int poke_off(unsigned long site)
{
	return poke_bytes(site, x86_nops[5]);
}

static int poke_on(unsigned long site)
{
	return poke_bytes(site, text_gen_insn(CALL_INSN_OPCODE, (void *)site,
					      (void *)FIRST_TARGET(site)));
}

static int poke_modify(unsigned long site)
{
	return poke_bytes(site, text_gen_insn(CALL_INSN_OPCODE, (void *)site,
					      (void *)SECOND_TARGET(site)));
}

LAB_PATCHER(linux_poke, "text_poke() alone", .from = "Linux",
	    .victim = &lab_five, .length = 5, .prepare = poke_off,
	    .on = poke_on, .off = poke_off, .retarget = poke_modify);

/* ---- jump_label.c, of a label of five bytes ---- */

extern const char label_yes[]; /* label.S */

static int label_init(unsigned long site)
{
	map_text(site);
	text_poke_early((void *)site, x86_nops[5], 5);
	return 0;
}

static void label_transform(struct jump_entry *entry, enum jump_label_type type)
{
	map_text(entry->code);
	arch_jump_label_transform_queue(entry, type);
	arch_jump_label_transform_apply();
}

LABEL_PATCHER(label_transform, 5, &lab_five, label_yes, label_init);
