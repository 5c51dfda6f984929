/* SPDX-License-Identifier: MIT */
/*
 * The smallest image that tools/mksites and tools/patchpath take: a function of each kind that they
 * ask for, a site, a jump label, a root, an indirect call. tools/fuzz-tools damages it.
 */
#include <arch/jump_label.h>
#include <kernel/patch_path.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

STATIC_KEY(seed);
static void (*seed_hook)(int);

notrace void trace_stub(void)
{
}
notrace void _mcount(void) __attribute__((alias("trace_stub")));
notrace void __fentry__(void) __attribute__((alias("trace_stub")));

notrace void sites_convert_all(void)
{
}

notrace void trace_entry(void)
{
	trace_stub();
}

notrace void trampoline_end(void)
{
}

noinline notrace int seed_sync(int n)
{
	if (n)
		asm volatile("nop");
	asm volatile("nop");
	return n;
}

noinline int seed_leaf(int n)
{
	return n + seed_sync(n);
}

noinline void seed_site(int n)
{
	static int count __attribute__((used));

	__atomic_fetch_add(&count, n, __ATOMIC_SEQ_CST);
	while (seed_leaf(n) > 1)
		n /= 2;
}
void trap_vectors(void);
PATCH_INDIRECT(trap_vectors, seed_site);

noinline int seed_branch(int n)
{
	return static_branch(&key_seed) ? seed_leaf(n) : n;
}

notrace void trap_vectors(void)
{
	if (seed_hook)
		seed_hook(1);
}
PATCH_ROOT(trap_vectors);

void _start(void)
{
	seed_branch(2);
	trace_entry();
}
