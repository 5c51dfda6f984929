/* SPDX-License-Identifier: MIT */
/*
 * Linux's ftrace.c for MIPS, as the lab asks for patch code. It changes text while all CPUs run:
 * arch_ftrace_update_code() says so. A site in a module calls through v1, from five instructions.
 */
#define NO_LAYOUT
#include "linux/ftrace.c"

extern const struct lab_victim lab_jal, lab_long;

/* ---- in the kernel: jal and its slot ---- */

static int make_nop(unsigned long site, bool in_kernel)
{
	struct dyn_ftrace rec = { site };

	site_in_kernel = in_kernel;
	return ftrace_make_nop(NULL, &rec, MCOUNT_ADDR);
}

static int make_call(unsigned long site, bool in_kernel)
{
	struct dyn_ftrace rec = { site };

	site_in_kernel = in_kernel;
	return ftrace_make_call(&rec, FTRACE_ADDR);
}

static int kernel_prepare(unsigned long site)
{
	ftrace_dyn_arch_init_insns();
	return make_nop(site, true);
}

static int kernel_off(unsigned long site)
{
	return make_nop(site, true);
}

static int kernel_on(unsigned long site)
{
	return make_call(site, true);
}

LAB_PATCHER(linux_kernel, "ftrace.c, kernel", .from = "Linux",
	    .victim = &lab_jal, .length = 8, .prepare = kernel_prepare,
	    .on = kernel_on, .off = kernel_off);

/* ---- in a module: lui, addiu, move at, jalr v1 and its slot ---- */

static int module_prepare(unsigned long site)
{
	unsigned int compiled[5], *next = compiled;

	ftrace_dyn_arch_init_insns();
	UASM_i_LA(&next, 3, MCOUNT_ADDR);
	compiled[2] = 0x03e00825; /* move at, ra */
	compiled[3] = 0x0060f809; /* jalr v1 */
	compiled[4] = INSN_NOP;
	for (int i = 0; i < 5; i++)
		patcher_write(site + 4 * i, &compiled[i], 4);
	return make_nop(site, false);
}

static int module_off(unsigned long site)
{
	return make_nop(site, false);
}

static int module_on(unsigned long site)
{
	return make_call(site, false);
}

LAB_PATCHER(linux_module, "ftrace.c, module", .from = "Linux",
	    .victim = &lab_long, .length = 20, .prepare = module_prepare,
	    .on = module_on, .off = module_off);
