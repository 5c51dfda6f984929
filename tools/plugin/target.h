/* SPDX-License-Identifier: MIT */
/*
 * The promises of an architecture's manual to a CPU that fetches instructions which another
 * CPU stores: the object "fetch" of a port's machine.json, or of a file here for an
 * architecture that nopl has no port for. Its fields:
 *
 *   whole, line, barrier  instructions that synchronise the CPU's fetch with all earlier
 *                         stores: one of `whole`, or one of `line` (QEMU 7.2 does not tell
 *                         a plugin which line, so each is taken for one of every line) and
 *                         then one of `barrier`. Each is a regular expression on the
 *                         instruction in hexadecimal digits.
 *   words                 instructions are written as numbers, as manuals print them,
 *                         else as bytes in the order of their addresses
 *   broadcast             one CPU's `line` counts for all CPUs
 *   unit                  one store within an aligned unit of so many bytes may be fetched
 *                         by other CPUs at any time: they run the old instruction or the
 *                         new one. 0: none may
 *   only                  ... if both are of these, else any
 *   own_stores_seen       a CPU needs no synchronisation for its own stores
 *   breakpoint            a first byte that may come and go at any time
 */
#ifndef TOOLS_TARGET_H
#define TOOLS_TARGET_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum sync { SYNC_NO, SYNC_WHOLE, SYNC_LINE, SYNC_BARRIER };

struct target {
	unsigned int unit;
	bool own_stores_seen, broadcast, words, big;
	int breakpoint; /* -1: none */
	bool has[SYNC_BARRIER + 1], has_only;
	regex_t regex[SYNC_BARRIER + 1], only;
	/* Has an instruction matched? And has any been held against `only`? */
	bool matched[SYNC_BARRIER + 1], only_asked, only_matched;
};

/*
 * Read the rules of a file. mode: "" (the architecture's), "intel" (without the promise
 * that AMD alone makes), "shared" (the CPUs are of one core, and share its caches) or "none" (no
 * CPU may fetch bytes that another CPU has stored until it has synchronised, as a rendezvous makes
 * sure of). big: numbers are big-endian. Ends QEMU when something is wrong.
 */
void target_read(struct target *t, const char *path, const char *mode,
		 bool big);

/* The effect of the instruction of n bytes at p. */
enum sync target_sync(struct target *t, const uint8_t *p, size_t n);

/* May the instruction of n bytes at p be stored or replaced while CPUs fetch it? */
bool target_may_change(struct target *t, const uint8_t *p, size_t n);

/* The names of fields that no instruction has matched, as a list in JSON. */
void target_print_unmatched(const struct target *t, FILE *out);

#endif
