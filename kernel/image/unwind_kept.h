/*
 * The rules that were looked up last. function_graph asks for the frame of each call, and
 * mostly where it has asked before. So the answers are kept: each is a word, the offset from
 * _text plus 1 and the rule's number, and is right for ever. unwind_frame() looks here first;
 * function_graph itself does so without calling it.
 */
#ifndef KERNEL_UNWIND_KEPT_H
#define KERNEL_UNWIND_KEPT_H

#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>

#define UNWIND_KEPT 256
extern u32 unwind_kept[UNWIND_KEPT];

static always_inline u32 *unwind_kept_place(unsigned long offset)
{
	return &unwind_kept[(offset >> 4 ^ offset >> 12) % UNWIND_KEPT];
}

/* The rule that is kept for an address, or NULL. Any context. */
static always_inline const struct unwind_rule *
unwind_kept_rule(unsigned long pc)
{
	unsigned long offset = pc - (unsigned long)_text;
	u32 word = READ_ONCE(*unwind_kept_place(offset));

	return word >> 8 == offset + 1 ? &unwind_rules[word & 0xff] : NULL;
}

/*
 * The frame that a rule describes, of a function whose stack pointer is sp: its CFA,
 * and where its return address lies, or 0 if that is in a register. false: the
 * rule is of no function.
 */
static always_inline bool unwind_frame_by(const struct unwind_rule *r,
					  unsigned long sp, unsigned long *cfa,
					  unsigned long *slot)
{
	*cfa = sp + r->cfa;
	*slot = r->pc == UNWIND_STACK ? *cfa + r->pc_at : 0;
	return r->pc == UNWIND_STACK || r->pc == UNWIND_LINK;
}

#endif
