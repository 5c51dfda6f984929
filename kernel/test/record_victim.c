/* SPDX-License-Identifier: MIT */
/* Functions for the run-time recorder to meet: record_victim.h. */
#include <kernel/test/record_victim.h>

#define EIGHT(do, n)                                                           \
	do                                                                     \
	(n##0) do(n##1) do(n##2) do(n##3) do(n##4) do(n##5) do(n##6) do(n##7)
#define SIXTY_FOUR(do)                                                         \
	EIGHT(do, 0)                                                           \
	EIGHT(do, 01)                                                          \
	EIGHT(do, 02)                                                          \
	EIGHT(do, 03) EIGHT(do, 04) EIGHT(do, 05) EIGHT(do, 06) EIGHT(do, 07)

/* n is octal. The asm keeps calls from being folded into their result. */
#define DEFINE(n)                                                              \
	static noinline unsigned long record_victim_##n(unsigned long x)       \
	{                                                                      \
		asm volatile("" : "+r"(x));                                    \
		return x + n;                                                  \
	}
SIXTY_FOUR(DEFINE)

#define NAME(n) record_victim_##n,
unsigned long (*const record_victim[RECORD_VICTIMS])(unsigned long x) = {
	SIXTY_FOUR(NAME)
};

noinline u64 record_victim_arguments(u32 a, u64 b, u32 c, unsigned long d,
				     u16 e, u64 f, u32 g, u64 h,
				     unsigned long i, u8 j)
{
	return RECORD_VICTIM_SUM(a, b, c, d, e, f, g, h, i, j);
}
