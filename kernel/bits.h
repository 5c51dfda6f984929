/* Bits of a 32-bit word. No compiler builtins: where the CPU has no instruction
 * for them they call a library that not every toolchain can link here. */
#ifndef KERNEL_BITS_H
#define KERNEL_BITS_H

#include <kernel/types.h>

/* Number of the highest bit set; v is not 0. */
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

/* Number of the lowest bit set; v is not 0. */
static always_inline unsigned int bit_lowest(u32 v)
{
	return bit_highest(v & -v);
}

#endif
