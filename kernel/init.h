/* SPDX-License-Identifier: MIT */
/*
 * Hooks that other floors register to run at named points of the boot, so that
 * kernel_main() names none of them. Within a stage the order is link order.
 */
#ifndef KERNEL_INIT_H
#define KERNEL_INIT_H

#include <kernel/types.h>

enum init_stage {
	INIT_SITES, /* boot CPU, interrupts off, pages and kmalloc ready */
	INIT_TASK, /* the first task, which may sleep. The other CPUs start behind it */
	INIT_LATE, /* the same task, with all CPUs up, before tests and shell */
	INIT_SHELL, /* the same task, which this may keep until the machine ends */
};

struct init_hook {
	enum init_stage stage;
	const char *name;
	void (*fn)(void);
};

#define INIT_HOOK(st, func)                                                    \
	static const struct init_hook init_hook_##func REGISTER(               \
		init_hooks) = { st, #func, func }

#endif
