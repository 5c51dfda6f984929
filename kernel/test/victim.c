/* SPDX-License-Identifier: MIT */
/* Functions to trace. victim.h says the purpose of each. */
#include <kernel/test/victim.h>

#include <arch/arch_lab.h>

#include <stdarg.h>

u32 lab_calls[2]; /* of the victims in lab.S */
unsigned long lab_saved[MAX_CPUS];

static noinline notrace unsigned long victim_last_call(unsigned long x)
{
	asm volatile("" : "+r"(x));
	return x + 1;
}

noinline unsigned long victim_call(unsigned long x)
{
	return victim_last_call(x) + 2;
}

noinline unsigned long victim_leaf(unsigned long x)
{
	asm volatile("" : "+r"(x));
	return x + 1;
}

noinline unsigned long victim_call_notrace(unsigned long x)
{
	return victim_last_call(x) + 2;
}

noinline unsigned long victim_other(unsigned long x)
{
	return victim_last_call(x + 1) + 1;
}

noinline unsigned long victim_callback(void (*fn)(unsigned long x),
				       unsigned long x)
{
	fn(x);
	return x + 1;
}

noinline unsigned long victim_outer(unsigned long x)
{
	return victim_call(x) + 1;
}

STATIC_KEY(victim);

static always_inline unsigned long add_one_or_two(unsigned long x)
{
	return static_branch(&key_victim) ? x + 2 : x + 1;
}

noinline unsigned long victim_label(unsigned long x)
{
	return add_one_or_two(x);
}

noinline unsigned long victim_no_label(unsigned long x)
{
	return x + 1;
}

noinline unsigned long victim_labels(unsigned long x)
{
	for (int i = 0; i < 2; i++) {
		x = add_one_or_two(x);
		asm volatile("" : "+r"(x));
		x = add_one_or_two(x);
	}
	return x;
}

static always_inline u64 weigh_arguments(u32 a, u64 b, u32 c, unsigned long d,
					 u16 e, u64 f, u32 g, u64 h,
					 unsigned long i, u8 j)
{
	return a + 3 * b + 5ull * c + 7ull * d + 11ull * e + 13 * f +
	       17ull * g + 19 * h + 23ull * i + 29ull * j;
}

noinline u64 victim_arguments(u32 a, u64 b, u32 c, unsigned long d, u16 e,
			      u64 f, u32 g, u64 h, unsigned long i, u8 j)
{
	return weigh_arguments(a, b, c, d, e, f, g, h, i, j);
}

noinline u64 victim_arguments_notrace(u32 a, u64 b, u32 c, unsigned long d,
				      u16 e, u64 f, u32 g, u64 h,
				      unsigned long i, u8 j)
{
	return weigh_arguments(a, b, c, d, e, f, g, h, i, j);
}

noinline struct victim_two victim_two(unsigned long x)
{
	return (struct victim_two){ victim_last_call(x), ~x };
}

noinline struct victim_pair victim_struct(unsigned long x)
{
	return (struct victim_pair){ x + 1, ~0ull - x, x * 2 };
}

noinline unsigned int victim_varargs(unsigned int n, ...)
{
	unsigned int sum = 0;
	va_list ap;

	va_start(ap, n);
	while (n--)
		sum += va_arg(ap, unsigned int);
	va_end(ap);
	return sum;
}

#ifndef NESTED_SITE /* notrace: the compiler makes no site in a nested function (port.mk) */
#define NESTED_SITE
#endif

unsigned long victim_nested(unsigned long x)
{
	/* Called directly, so that no trampoline on the stack is made. */
	noinline NESTED_SITE unsigned long inner_function(unsigned long y)
	{
		x += 5;
		return x + y;
	}
	unsigned long first = inner_function(1);

	return first + inner_function(2);
}
