/* SPDX-License-Identifier: MIT */
/*
 * Small functions that tests, conformance and bench trace. They stand in kernel/, so
 * they have sites. Each has a twin without a site, which shows the cost of the site.
 */
#ifndef KERNEL_VICTIM_H
#define KERNEL_VICTIM_H

#include <arch/jump_label.h>
#include <kernel/types.h>

/* Returns x + 3. It calls a function without a site, so it keeps its return address on
 * the stack whether it has a site itself or not. */
unsigned long victim_call(unsigned long x);
notrace unsigned long victim_call_notrace(unsigned long x);

/* x + 1. It calls no function and needs no stack, so its return address stays where
 * its caller put it. */
unsigned long victim_leaf(unsigned long x);

/* Another with the same result, for a second name to filter by. */
unsigned long victim_other(unsigned long x);

/* Calls victim_call(x), so that it is a traced function's traced parent. */
unsigned long victim_outer(unsigned long x);

/* Calls fn(x), and returns x + 1. */
unsigned long victim_callback(void (*fn)(unsigned long x), unsigned long x);

/* x + 1, or x + 2 when key_victim is on. The twin has no jump label. No sites. */
STATIC_KEY_DECLARE(victim);
notrace unsigned long victim_label(unsigned long x);
notrace unsigned long victim_no_label(unsigned long x);

/* x + 4, and one more for each of four labels of key_victim that are on. A call that
 * comes while the key is switched may find some of them on. */
unsigned long victim_labels(unsigned long x);

/* A weighted sum of more arguments than any port passes in registers. */
u64 victim_arguments(u32 a, u64 b, u32 c, unsigned long d, u16 e, u64 f, u32 g,
		     u64 h, unsigned long i, u8 j);
notrace u64 victim_arguments_notrace(u32 a, u64 b, u32 c, unsigned long d,
				     u16 e, u64 f, u32 g, u64 h,
				     unsigned long i, u8 j);

/* A struct returned in two registers, where the ABI allows it. */
struct victim_two {
	unsigned long first, second;
};
struct victim_two victim_two(unsigned long x);

/* A struct that is too large for registers. */
struct victim_pair {
	u64 first, second;
	unsigned long third;
};
struct victim_pair victim_struct(unsigned long x);

/* The sum of n unsigned ints: variable arguments. */
unsigned int victim_varargs(unsigned int n, ...);

/* A nested function's result: the static chain register at its entry. */
unsigned long victim_nested(unsigned long x);

#endif
