/* SPDX-License-Identifier: MIT */
/*
 * The tools' knowledge of a port: arch/NAME/machine.json, its keys "code" and "sites".
 * arch/README.md explains each field. The tools run in the project's folder.
 */
#ifndef TOOLS_ARCH_H
#define TOOLS_ARCH_H

#include <jansson.h>
#include <stdbool.h>

/*
 * How the disassembler writes the instructions that move control. Lists of mnemonics
 * end with NULL. A mnemonic may be a pattern (fnmatch).
 */
struct arch {
	const char *file; /* that all this stands in */
	json_t *root;	  /* its contents, which the strings below belong to */
	const char **calls, **jumps, **branches, **stops;
	const char **plain;    /* go on to the next instruction */
	const char **prefixes; /* written before the mnemonic they modify */
	const char *call;      /* a site's, if it is direct */
	const char *far_call;  /* of one through a register, whose ... */
	const char *far_first; /* ... upper half this loads */
	const char
		*return_operand; /* of a jump through a register that returns */
	/* Patterns of jumps and branches through a register that return ("mnemonic
	 * operands"). A branch that does so is a conditional return. */
	const char **returns;
	/* By function, a pattern of instructions ("mnemonic operands"): one is executed
	 * on every way through the function (sync). Or by function and by such a pattern, how
	 * many stand in it, and why (fences). */
	json_t *sync, *fences;
	const char **barriers; /* patterns of those that must be claimed */
	/* By such a pattern, the one of each next, and of each previous instruction. */
	json_t *behind, *before;
	int call_field; /* bytes from a call to what its relocation changes */
	const char *
		*labels; /* bytes of a jump label as compiled, in hexadecimal */
	bool relaxes;	 /* the linker shortens instructions */
	bool delay_slots; /* one instruction runs after a jump */
	/* For the unwind table: DWARF's numbers of the stack pointer, of the
	 * register that a call leaves its return address in, and of the one
	 * that a site leaves another in. -1: none. */
	int sp, link, alt;
	int cfa;	 /* from a caller's stack pointer to the CFA */
	int cfi_machine; /* e_machine for libdw, 0: the image's own */
};

/* A compiler front end of an architecture (make SITES=). */
struct format {
	/* Sites that call this function at boot. NULL: NOPs at the entry. */
	const char *stub;
	const char *nops;   /* ... and their bytes, in hexadecimal */
	const char *before; /* ... and instructions that may stand before them */
	const char *section; /* the compiler's own record. NULL: it makes none */
	int record_before; /* ... names an address so many bytes before the site */
	/* A relocation that is a call's second one, and marks no site. 0: none. */
	int second_relocation;
	bool far; /* the call is of several instructions */
};

/* The port of that name, or the end of the program. */
const struct arch *arch_find(const char *name);

/* The port's front end of that name, or the end of the program. */
const struct format *format_find(const struct arch *arch, const char *name);

/* Is the mnemonic in the list, or does it match a pattern there? */
bool arch_lists(const char *const *list, const char *mnemonic);

#endif
