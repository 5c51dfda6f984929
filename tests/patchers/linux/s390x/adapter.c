/* SPDX-License-Identifier: MIT */
/*
 * Linux's ftrace.c and jump_label.c for s390, as the lab asks for patch code. They change text
 * while all CPUs run. Another target is a store to the data of a site's trampoline, not to the
 * site.
 */
/* Before Linux's words, some of which are macros. */
#include <tracer/lab/lab_internal.h>

#include <linux/ftrace.h>
#include <linux/jump_label.h>
#include "ftrace.h"

#define SITE_BYTES 6
#define UNIT 8ul

extern const struct lab_victim lab_six;

static bool is_trampoline(const void *at)
{
	return at >= (void *)__ftrace_hotpatch_trampolines_start &&
	       at < (void *)__ftrace_hotpatch_trampolines_end;
}

/* As Linux's: one store of each aligned doubleword, whose other bytes stay as they are. */
void *s390_kernel_write(void *dst, const void *src, size_t size)
{
	size_t piece;

	for (size_t i = 0; i < size; i += piece) {
		unsigned long at = (unsigned long)dst + i;

		piece = min(size - i, UNIT - at % UNIT);
		/* No CPU comes to a trampoline before its site leads there. */
		if (is_trampoline(dst))
			lab_store_text(at, (const u8 *)src + i, piece);
		else
			patcher_write_once(at, (const u8 *)src + i, piece);
	}
	return dst;
}

/* ---- ftrace.c ---- */

static int entry_init(unsigned long site)
{
	struct dyn_ftrace rec = { site };
	const u16 compiled[] = { 0xc004, 0, 0 };

	patcher_write(site, compiled, sizeof(compiled));
	return ftrace_init_nop(NULL, &rec);
}

static int entry_on(unsigned long site)
{
	struct dyn_ftrace rec = { site };
	int err = ftrace_make_call(&rec, FTRACE_ADDR);

	ftrace_arch_code_modify_post_process();
	return err;
}

static int entry_off(unsigned long site)
{
	struct dyn_ftrace rec = { site };
	int err = ftrace_make_nop(NULL, &rec, FTRACE_ADDR);

	ftrace_arch_code_modify_post_process();
	return err;
}

LAB_PATCHER(linux_ftrace, "ftrace.c", .from = "Linux", .victim = &lab_six,
	    .length = SITE_BYTES, .prepare = entry_init, .on = entry_on,
	    .off = entry_off);

/* ---- jump_label.c ---- */

extern const char label_yes[]; /* called.S */

/* As the compiler leaves it: brcl 0 to where the label leads. */
static int label_init(unsigned long site)
{
	u32 distance = (u32)(((unsigned long)label_yes - site) / 2);
	u16 compiled[] = { 0xc004, (u16)(distance >> 16), (u16)distance };

	return patcher_write(site, compiled, sizeof(compiled));
}

LABEL_PATCHER(arch_jump_label_transform, SITE_BYTES, &lab_six, label_yes,
	      label_init);
