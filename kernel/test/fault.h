/* SPDX-License-Identifier: MIT */
/*
 * Faults: mistakes that the kernel makes on purpose, so that a test can see that
 * the check for it notices. One list has them all: `cat /proc/faults`. A test plants
 * one and clears it. `fault=NAME` on the command line plants one at boot, `fault=NAME:N`
 * one that happens from the N-th time on, `fault=NAME@N` one that happens the N-th time alone.
 */
#ifndef KERNEL_FAULT_H
#define KERNEL_FAULT_H

#include <kernel/types.h>

struct fault {
	const char *name;
	const char *what; /* that goes wrong, one line */
	u32 from;	  /* the time from which on it happens. 0: never */
	u32 times;	  /* that the place has been passed since, atomic */
	bool once;	  /* it happens that time alone, and not from it on */
	u32 cpu; /* for a fault of one CPU: its index. A test sets it, else 0 */
	const u32 *
		read; /* a word that the place reads then. A test sets it, else NULL */
};

/* Define the fault `fault_IDENT`. Other files declare it by FAULT_DECLARE(). */
#define FAULT(ident, fault_what)                                               \
	struct fault fault_##ident = { .name = #ident, .what = (fault_what) }; \
	static struct fault *const fault_reg_##ident REGISTER(faults) =        \
		&fault_##ident
#define FAULT_DECLARE(ident) extern struct fault fault_##ident

/* Does the fault happen here, now? Any context. No site. */
bool fault_happens(struct fault *f);
/* The same where a call would cost too much. In a loop the compiler would keep the function's
 * address in a register, and the proof of the patching path does not follow it there. */
#define fault_happens_here(f) (READ_ONCE((f)->from) && fault_happens(f))

/* Be 1 ms late. Any context. */
void fault_dawdle(void);

/* Let it happen from the from-th time on, 1 being the next. 0: never again. */
void fault_plant(struct fault *f, u32 from);
/* Let it happen the nth time alone, 1 being the next. */
void fault_plant_once(struct fault *f, u32 nth);
/* "NAME", "NAME:N" or "NAME@N", as above: the fault that is planted, or NULL. */
struct fault *fault_plant_text(const char *value);

#endif
