/* SPDX-License-Identifier: MIT */
/* Types that every file of the kernel uses, and the few GCC attributes. */
#ifndef KERNEL_TYPES_H
#define KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <attributes.h> /* the port's: notrace */

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef long ssize_t;

/* The most CPUs that nopl runs on. A cpumask_t holds one bit for each. */
#define MAX_CPUS 32
typedef u32 cpumask_t;

/* The first n CPUs, from 1 to all: a shift by 32 would be undefined. */
static inline cpumask_t cpus_below(unsigned int n)
{
	return ~0u >> (32 - n);
}

/*
 * How firmware and interrupt controllers name a CPU: a hart id, an APIC id, a VP
 * number. These need not be dense, nor begin with 0. A CPU's index is a plain unsigned
 * int instead: indices are dense, and 0 is the boot CPU.
 */
typedef struct {
	u32 id;
} hwid_t;

/* A CPU's interrupt state between arch_irq_save() and arch_irq_restore(). */
typedef struct {
	unsigned long opaque;
} irq_state_t;

#define PAGE_SHIFT 12
#define PAGE_SIZE (1ul << PAGE_SHIFT)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ALIGN_UP(x, a) (((x) + (a)-1) & ~((__typeof__(x))(a)-1))
#define ALIGN_DOWN(x, a) ((x) & ~((__typeof__(x))(a)-1))
#define container_of(ptr, type, member)                                        \
	((type *)((char *)(ptr)-offsetof(type, member)))
#define min(a, b)                                                              \
	({                                                                     \
		__typeof__(a) min_a = (a);                                     \
		__typeof__(b) min_b = (b);                                     \
		min_a < min_b ? min_a : min_b;                                 \
	})
#define max(a, b)                                                              \
	({                                                                     \
		__typeof__(a) max_a = (a);                                     \
		__typeof__(b) max_b = (b);                                     \
		max_a > max_b ? max_a : max_b;                                 \
	})

#define noreturn __attribute__((noreturn))
#define noinline __attribute__((noinline))
#define always_inline inline __attribute__((always_inline))
#define printf_like(f, a) __attribute__((format(printf, f, a)))

/*
 * One read or write that the compiler may neither tear, repeat nor drop. It
 * orders nothing: where order matters, __atomic_* builtins with a named order
 * stand, and both ends say which their pair is.
 */
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

/* Add one to a counter that several CPUs count in. It orders nothing. */
static inline void count_up(u32 *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#define static_assert _Static_assert

/*
 * Registries: an object placed by REGISTER() into the linker section NAME,
 * which must be a C identifier, is found between __start_NAME and __stop_NAME.
 * No central list is edited to add a command, a control file or a test. Objects stand
 * there in the order of linking and, within a file, of the source.
 */
#define REGISTER(name)                                                         \
	__attribute__((section(#name), used, no_reorder,                       \
		       aligned(sizeof(void *))))
#define REGISTRY(type, name) extern const type __start_##name[], __stop_##name[]
#define for_each_registered(p, name)                                           \
	for ((p) = __start_##name; (p) < __stop_##name; (p)++)

#endif
