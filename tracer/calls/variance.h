/* SPDX-License-Identifier: MIT */
/* How much the times of a function's calls differ. */
#ifndef TRACER_VARIANCE_H
#define TRACER_VARIANCE_H

#include <kernel/lib/string.h>

/* Add the square of v to a sum, which stays at the largest number that it can hold. */
static inline void add_square(u64 *sum, u64 v)
{
	if (__builtin_mul_overflow(v, v, &v) ||
	    __builtin_add_overflow(*sum, v, sum))
		*sum = ~0ull;
}

/*
 * The variance of n values, which are `sum` in all, and their squares `squares`: as Linux computes
 * it, where no product of Linux's overflows. With sum = mean * n + rest, sum * sum / n has three
 * parts, of which none overflows while n is below 2^32.
 */
static inline u64 call_variance(u64 n, u64 sum, u64 squares)
{
	u64 mean, rest, of_means;

	if (n < 2)
		return 0;
	mean = sum / n;
	rest = sum % n;
	of_means = mean * sum + mean * rest + (rest * rest + n - 1) / n;
	return (squares - min(of_means, squares)) / (n - 1);
}

#endif
