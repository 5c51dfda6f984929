/* SPDX-License-Identifier: MIT */
/*
 * The bypass of a scheme: its old instructions out of line, in kernel text, which nothing maps
 * writable once arch_text_close() has returned. A breakpoint behind the copy leads back to behind
 * the site, so the port needs no jump that reaches.
 *
 * A call is not copied. It would return into the bypass, and a task that sleeps in the called
 * function would need it for ever. The scheme's resume() does as the old call does instead.
 */
#include <kernel/lib/string.h>
#include <kernel/patch_path.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/lab/lab_scheme.h>
#include <tracer/ops/ops.h>

#define WAIT_NS (2 * NSEC_PER_MSEC)

extern const u8 lab_bypass[];
asm("	.pushsection .text\n"
    "	.balign 64\n"
    "	.globl lab_bypass\n"
    "lab_bypass:\n"
    "	.zero 64\n"
    "	.popsection\n");

static const struct lab_scheme *bypassed;

unsigned long lab_bypass_at(void)
{
	return (unsigned long)lab_bypass;
}

static bool inside_site(unsigned long pc)
{
	unsigned long site = bypassed->victim->site;

	return pc > site && pc < site + bypassed->length;
}

static bool inside_bypass(unsigned long pc)
{
	return pc - lab_bypass_at() < LAB_SITE_MAX;
}

static void write_bypass(const u8 *bytes)
{
	lab_store_text(lab_bypass_at(), bytes, LAB_BYPASS_SIZE);
	lab_sync_all(lab_bypass_at());
}

/* Bytes that every CPU traps on, behind the copy and where there is none. */
static void fill_breaks(u8 *bytes, unsigned int from)
{
	for (unsigned int i = from; i < LAB_BYPASS_SIZE; i += arch_break_length)
		lab_break_bytes(bytes + i);
}

void lab_bypass_copy(const struct lab_scheme *s, const u8 *old)
{
	u8 bytes[LAB_BYPASS_SIZE + 4];

	bypassed = s;
	fill_breaks(bytes, s->length);
	memcpy(bytes, old, s->length);
	write_bypass(bytes);
}

static void free_bypass(void)
{
	u8 bytes[LAB_BYPASS_SIZE + 4];

	fill_breaks(bytes, 0);
	write_bypass(bytes);
}

static int wait_outside(bool (*inside)(unsigned long pc))
{
	struct trace_left left;

	return bypassed->way == LAB_NO_WAIT ?
		       0 :
		       trace_quiesce_code(inside, WAIT_NS, &left);
}

int lab_bypass_wait(void)
{
	return wait_outside(inside_site);
}

int lab_bypass_free(void)
{
	int err = wait_outside(inside_bypass);

	if (!err)
		free_bypass();
	return err;
}

bool lab_bypass_trap(struct trap_frame *f)
{
	const struct lab_scheme *s = bypassed;
	unsigned long pc = arch_frame_pc(f), site = s->victim->site;

	if (pc == lab_bypass_at() + s->length)
		arch_frame_set_pc(f, site + s->length);
	else if (pc != site)
		return false;
	else if (s->way == LAB_IN_PLACE)
		arch_frame_set_pc(f,
				  site + (unsigned int)s->form[s->old].insn[0]);
	else if (s->form[s->old].calls[0] + s->form[s->old].calls[1])
		return false;
	else
		arch_frame_set_pc(f, lab_bypass_at());
	return true;
}
