/* SPDX-License-Identifier: MIT */
/*
 * Functions that nothing calls but the tests of the run-time recorder
 * (RECORD=runtime), which need some that it has never met.
 */
#ifndef KERNEL_RECORD_VICTIM_H
#define KERNEL_RECORD_VICTIM_H

#include <kernel/types.h>

#define RECORD_VICTIMS 64

/* record_victim[i](x) returns x + i. */
extern unsigned long (*const record_victim[RECORD_VICTIMS])(unsigned long x);

/* A weighted sum of more arguments than any port passes in registers. */
u64 record_victim_arguments(u32 a, u64 b, u32 c, unsigned long d, u16 e, u64 f,
			    u32 g, u64 h, unsigned long i, u8 j);
#define RECORD_VICTIM_SUM(a, b, c, d, e, f, g, h, i, j)                        \
	((a) + 3ull * (b) + 5ull * (c) + 7ull * (d) + 11ull * (e) +            \
	 13ull * (f) + 17ull * (g) + 19ull * (h) + 23ull * (i) + 29ull * (j))

#endif
