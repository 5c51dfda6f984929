/* SPDX-License-Identifier: MIT */
/*
 * Linux's ftrace.c, patch.c and jump_label.c for RISC-V, as the lab asks for patch code. Linux
 * calls ftrace.c's functions while stop_machine() holds all CPUs, between modify_prepare and
 * post_process.
 */
#include <linux/ftrace.h>
#include <linux/jump_label.h>

extern const struct lab_victim lab_pair;
extern const char lab_pair_a[], lab_pair_b[];

/* ftrace.c switches calls of its own trampoline too, which are not judged here. */
char ftrace_call[MCOUNT_INSN_SIZE], ftrace_regs_call[MCOUNT_INSN_SIZE];

/* 6.12 switches a label in two calls, 6.1 in one. */
#define WEAK __attribute__((weak))
extern WEAK bool arch_jump_label_transform_queue(struct jump_entry *entry,
						 enum jump_label_type type);
extern WEAK void arch_jump_label_transform_apply(void);

static int with_text_mutex(int (*change)(struct dyn_ftrace *rec),
			   unsigned long site)
{
	struct dyn_ftrace rec = { site };
	int err;

	ftrace_arch_code_modify_prepare();
	err = change(&rec);
	/* In 6.12 each held CPU synchronises itself when it leaves. */
	if (arch_jump_label_transform_apply)
		patcher_sync_all();
	ftrace_arch_code_modify_post_process();
	return err;
}

static int init_site(unsigned long site)
{
	struct dyn_ftrace rec = { site };

	return ftrace_init_nop(NULL, &rec);
}

static int make_call(struct dyn_ftrace *rec)
{
	return ftrace_make_call(rec, (unsigned long)lab_pair_a);
}

static int make_nop(struct dyn_ftrace *rec)
{
	return ftrace_make_nop(NULL, rec, (unsigned long)lab_pair_a);
}

static int modify_call(struct dyn_ftrace *rec)
{
	return ftrace_modify_call(rec, (unsigned long)lab_pair_a,
				  (unsigned long)lab_pair_b);
}

static int switch_on(unsigned long site)
{
	return with_text_mutex(make_call, site);
}

static int switch_off(unsigned long site)
{
	return with_text_mutex(make_nop, site);
}

static int go_elsewhere(unsigned long site)
{
	return with_text_mutex(modify_call, site);
}

LAB_PATCHER(linux_ftrace, "ftrace.c", .from = "Linux", .victim = &lab_pair,
	    .length = 8, .prepare = init_site, .on = switch_on,
	    .off = switch_off, .retarget = go_elsewhere, .all_held = true);

WEAK void arch_jump_label_transform(struct jump_entry *entry,
				    enum jump_label_type type)
{
	arch_jump_label_transform_queue(entry, type);
	arch_jump_label_transform_apply();
}

/* Linux switches jump labels while the other CPUs run. */
extern const char label_yes[]; /* label.S */
LABEL_PATCHER(arch_jump_label_transform, 8, &lab_pair, label_yes, label_off);
