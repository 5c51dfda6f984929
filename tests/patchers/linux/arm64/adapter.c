/* SPDX-License-Identifier: MIT */
/*
 * Linux's ftrace.c, patching.c and jump_label.c for arm64, as the lab asks for patch code. They
 * change text while all CPUs run. A record of Linux's points to the second word, the bl.
 */
#include <linux/ftrace.h>
#include <linux/jump_label.h>
#include <asm/insn.h>
#include <asm/patching.h>

extern const struct lab_victim lab_pair;
extern const char lab_count_entry[], lab_count_entry2[];

char ftrace_call[AARCH64_INSN_SIZE];
extern typeof(ftrace_modify_call) ftrace_modify_call __attribute__((weak));

#define RECORD_OF(site)                                                        \
	{                                                                      \
		(site) + AARCH64_INSN_SIZE                                     \
	}

static int entry_init(unsigned long site)
{
	struct dyn_ftrace rec = RECORD_OF(site);
	const u32 nops[2] = { INSN_NOP, INSN_NOP };

	/* As the compiler leaves them. */
	patcher_write(site, nops, sizeof(nops));
	return ftrace_init_nop(NULL, &rec);
}

/* Linux knows from its own books where a site calls to. */
static unsigned long called;

static int entry_on(unsigned long site)
{
	struct dyn_ftrace rec = RECORD_OF(site);

	called = (unsigned long)lab_count_entry;
	return ftrace_make_call(&rec, called);
}

static int entry_off(unsigned long site)
{
	struct dyn_ftrace rec = RECORD_OF(site);

	return ftrace_make_nop(NULL, &rec, called);
}

static int entry_modify(unsigned long site)
{
	struct dyn_ftrace rec = RECORD_OF(site);
	unsigned long before = called;

	/* 6.12 has it only with CONFIG_DYNAMIC_FTRACE_WITH_CALL_OPS, whose sites are others. */
	if (!ftrace_modify_call)
		return -ENOSYS;
	called = (unsigned long)lab_count_entry2;
	return ftrace_modify_call(&rec, before, called);
}

LAB_PATCHER(linux_ftrace, "ftrace.c", .from = "Linux", .victim = &lab_pair,
	    .length = 8, .prepare = entry_init, .on = entry_on,
	    .off = entry_off, .retarget = entry_modify);

static void transform(struct jump_entry *entry, enum jump_label_type type)
{
	arch_jump_label_transform_queue(entry, type);
	arch_jump_label_transform_apply();
}

JUMP_LABEL_PATCHER(transform, 4);
