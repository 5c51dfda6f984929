/* SPDX-License-Identifier: MIT */
/*
 * The contract's third part: the data that a port supplies so that the lab can prove its table
 * of sites, by enumeration (tracer/lab/README.md). With these data alone, the lab
 * switches the port's own sites by every strategy. A port adds the schemes that its
 * architecture invites in its lab.c (tracer/lab/lab.h).
 */
#ifndef ARCH_ARCH_LAB_H
#define ARCH_ARCH_LAB_H

/* The failures that can be seen of a victim, as bits. */
#define LAB_FAULT 1   /* a trap that is not the strategy's */
#define LAB_HUNG 2    /* it never came to its end */
#define LAB_SP 4      /* the stack pointer was off behind the site */
#define LAB_REGS 8    /* a register that the ABI keeps has changed */
#define LAB_RETURN 16 /* it came back to the wrong place */
/* Called twice, or not, though the new form, or the old one, was there as a
 * whole. */
#define LAB_CALLS 32
#define LAB_ATOMIC 64 /* an instruction ran without its lock prefix */

#ifndef __ASSEMBLER__
#include <kernel/types.h>

#define LAB_INSNS 8

/*
 * A victim is an assembly function, run(), that runs one site once:
 *
 * 1. It makes `twos` turns of a loop of two instructions and `threes` of one of
 *    three, so that every number of instructions from 2 on can pass before the site.
 * 2. It puts canaries into every register that the ABI lets it hold at the site, and
 *    notes sp. A canary is an address where nothing is mapped, so that a stray
 *    instruction faults and does not write.
 * 3. It runs two instructions of its own, the site, and two more. `boundary` has the
 *    addresses of these four.
 * 4. It checks canaries and sp, puts the caller's registers back, and returns the
 *    damage that it saw (LAB_SP, LAB_REGS, LAB_RETURN).
 *
 * run() saves the address that it returns to where a wrong sp does not matter.
 */
struct lab_victim {
	u32 (*run)(unsigned long twos, unsigned long threes);
	unsigned long site;
	unsigned long boundary[4];
};

/*
 * Counts of the port's lab.S. A site that is on calls a target there, as it would
 * call trace_entry. The target adds one to lab_calls[0], changes every register that
 * the ABI lets it change, and returns. A second target, for schemes that change where
 * a site calls to, counts in lab_calls[1].
 */
extern u32 lab_calls[2];
/* The stack pointer that a victim returns with, by the CPU's index: it uses its CPU's alone. */
extern unsigned long lab_saved[MAX_CPUS];

/* One form of a site: off, on, or something in between. */
struct lab_form {
	const char *name;
	/* Bytes of each instruction, in order. 0 behind the last. Together they
	 * are the whole site. Negative: control never stands on that one in this
	 * form, because a jump passes over it or it is in a delay slot. */
	s8 insn[LAB_INSNS];
	/* Calls that a run through the whole of it makes: of lab_calls[0], [1]. */
	u8 calls[2];
};

/* A victim whose site is as the compiler makes them (SITES=), and stands in the site
 * table. The lab switches it on and off by each strategy of the tracer. */
extern const struct lab_victim lab_victim_own;

/* The form that this site has after boot, on or off: arch_live_bytes() in words. */
const struct lab_form *lab_own_form(bool on);

/*
 * A function whose return address the tracer takes. run(), which has no site, calls
 * it, with canaries in every register that a function keeps for its caller, and in
 * every register that the ABI lets carry something to a function. The function is a
 * site of the same shape between its four instructions. Behind them it checks the
 * canaries that it was given. If all of them are right, it puts canaries into every register that a
 * result may be in. run() checks those, its own registers, and sp.
 */
extern const struct lab_victim lab_victim_return;

/*
 * A victim with a jump label of key_lab_jump as its site. Where the label jumps to, the
 * victim adds one to lab_calls[0], and jumps behind the site. And the form of the label,
 * on or off.
 */
extern const struct lab_victim lab_victim_jump;
const struct lab_form *lab_jump_form(bool on);

/*
 * Puts values of its own, made of the seed, into every register that a task may use but
 * the stack pointer, loops so many times (at least once), and looks. Returns 0, or the
 * number of a register that has another value: arch_register_names has its name.
 * Preemptible: every interrupt, fault and task switch in the loop must keep all of them.
 */
unsigned int lab_registers(unsigned long turns, unsigned long seed);
extern const char *const arch_register_names[];

/* Makes sp the stack pointer and stores to address 0, in a task that the fault may end. */
noreturn void lab_lose_stack(void *sp);

/* In the port's trampoline.S: pairs of addresses [from, to) between which interrupts
 * are off, so that no task can be held there. 0 ends. */
extern const unsigned long trampoline_masked[];

#endif /* !__ASSEMBLER__ */

#endif
