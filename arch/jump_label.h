/* SPDX-License-Identifier: MIT */
/*
 * Jump labels: a test that costs one instruction while its answer is no. Where
 * static_branch(&key) stands, the compiler leaves an instruction that does nothing. When
 * the key is on, a jump stands there instead. tools/mksites finds all of these places
 * after the link, and the tracer switches them as it switches sites
 * (tracer/patch/keys.h).
 */
#ifndef ARCH_JUMP_LABEL_H
#define ARCH_JUMP_LABEL_H

#include <kernel/types.h>

struct static_key {
	const char *name;
	bool on; /* its labels' state, now or after static_keys_apply() */
};

/* Define a key of that name: key_NAME. Every key is off at boot. */
#define STATIC_KEY(ident)                                                      \
	struct static_key key_##ident REGISTER(static_keys) = { .name = #ident }
#define STATIC_KEY_DECLARE(ident) extern struct static_key key_##ident

/*
 * Is the key on? The key must be a constant address. The answer changes while a CPU runs
 * the function, so each call of static_branch() may have another one. Any context, but
 * no function on the patching path: the build refuses it there, by name.
 */
static always_inline bool static_branch(const struct static_key *key)
{
	asm goto(JUMP_LABEL_INSN ".pushsection .jump_labels, \"\", %%progbits\n"
				 ".dc.a 1b, %l[yes], " JUMP_LABEL_KEY "\n"
				 ".popsection\n"
		 :
		 : "i"(key)
		 :
		 : yes);
	return false;
yes:
	return true;
}

#endif
