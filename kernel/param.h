/* SPDX-License-Identifier: MIT */
/* Kernel parameters: name=value words of the command line. */
#ifndef KERNEL_PARAM_H
#define KERNEL_PARAM_H

#include <kernel/types.h>

struct kernel_param {
	const char *name;
	/* The accepted values, for the line that names a bad one. */
	const char *accepts;
	/* 0, or an error: said, with `accepts`, and the default stays. Called at
	 * boot before anything is allocated. value stays valid for ever. */
	int (*set)(const char *value);
};

#define KERNEL_PARAM(ident, param_name, param_accepts, fn)                     \
	static const struct kernel_param kernel_param_##ident REGISTER(        \
		kernel_params) = { param_name, param_accepts, fn }

/* The value of a parameter that switches something on or off, as in Linux: 0, or -EINVAL and *on
 * stays. PARAM_SWITCH names the accepted values. */
int param_switch(const char *value, bool *on);
#define PARAM_SWITCH "nothing, 1, on, 0 or off"

/* Parse boot_info.cmdline, double quotes group, bad ones are said and skipped. A line that refuses
 * a parameter, here or where a later step of boot uses it, begins with "param: ": by that, programs
 * of the host see that a boot is not the one that was asked for. */
void param_parse(void);
/* The same with a text, which is taken apart in place: values point into it. */
void param_parse_text(char *text);

#endif
