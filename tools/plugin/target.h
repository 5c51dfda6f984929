/*
 * What each architecture says of a CPU that fetches instructions which another CPU
 * stores. What synchronises a CPU's fetch with all earlier stores:
 *
 *   x86-64   a serialising instruction (SDM 3A, 8.3). A CPU's own stores need none.
 *   RISC-V   fence.i
 *   MIPS     synci, then jr.hb, jalr.hb or eret. QEMU 7.2 does not tell a plugin which
 *            line a synci is for, so each is taken for one of every line.
 */
#ifndef TOOLS_TARGET_H
#define TOOLS_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sync { SYNC_NO, SYNC_WHOLE, SYNC_LINE, SYNC_BARRIER };

struct target {
	const char *name; /* as QEMU names it */
	/* What the instruction of n bytes at p does. */
	enum sync (*sync)(const uint8_t *p, size_t n);
	/* One store within an aligned unit of so many bytes may be fetched by other
	 * CPUs at any time: they run the old instruction or the new one. 0: none. */
	unsigned int unit;
	bool own_stores_seen; /* a CPU needs no synchronisation for them */
	int breakpoint;	      /* a first byte that may come and go; -1: none */
};

/*
 * The target of that name, by those rules: "" (the architecture's), "intel" (without
 * the promise that AMD alone makes) or "none" (no CPU may fetch what another CPU has
 * stored until it has synchronised, as a rendezvous makes sure of). Ends QEMU when
 * there is none.
 */
struct target target_find(const char *name, const char *rules);

#endif
