/* SPDX-License-Identifier: MIT */
/* Bits of a 32-bit word. No compiler builtins: where the CPU has no instruction
 * for them they call a library that not every toolchain can link here. */
#ifndef KERNEL_BITS_H
#define KERNEL_BITS_H

#include <kernel/types.h>

/* Number of the highest bit set. v is not 0. */
static always_inline unsigned int bit_highest(u32 v)
{
	unsigned int n = 0;

	for (unsigned int step = 16; step; step /= 2)
		if (v >> step) {
			v >>= step;
			n += step;
		}
	return n;
}

/* How many bits are set: sums of neighbours, in fields twice as wide each time. */
static always_inline unsigned int bit_count(u32 v)
{
	v -= v >> 1 & 0x55555555;
	v = (v & 0x33333333) + (v >> 2 & 0x33333333);
	v = (v + (v >> 4)) & 0x0f0f0f0f;
	return v * 0x01010101 >> 24;
}

/* Number of the lowest bit set. v is not 0. */
static always_inline unsigned int bit_lowest(u32 v)
{
	return bit_highest(v & -v);
}

#endif
