/* SPDX-License-Identifier: MIT */
/* A panic, and its effects on the rest of the kernel. */
#ifndef KERNEL_PANIC_H
#define KERNEL_PANIC_H

#include <kernel/types.h>

/* Is this CPU the one that panics? It takes locks that are not released. */
bool panic_here(void);

/* A CPU that comes up when another one has panicked stops here. */
void panic_check(void);

/* The end of every CPU but the panicking one: from its IPI. */
noreturn void panic_stop_cpu(void);

/* Called at the end of a panic, if it is not NULL, when the other CPUs have stopped.
 * Interrupts are off. */
extern void (*panic_hook)(void);

/*
 * An invariant is broken. Print the text and a backtrace, and stop the other CPUs. Under
 * panic=exit end the machine with status 1, else halt. Any context.
 */
noreturn void panic(const char *fmt, ...) printf_like(1, 2);

#define BUG_ON(cond)                                                           \
	do {                                                                   \
		if (__builtin_expect(!!(cond), 0))                             \
			panic("%s:%d: %s", __FILE__, __LINE__, #cond);         \
	} while (0)

#endif
