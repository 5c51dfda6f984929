/* SPDX-License-Identifier: MIT */
/* Building blocks for the ports' schemes (lab.c). */
#ifndef TRACER_LAB_SCHEME_H
#define TRACER_LAB_SCHEME_H

#include <kernel/patch_path.h>
#include <kernel/types.h>

struct trap_frame;

/*
 * The breakpoint trap of a LAB_BREAK scheme: it calls the port's resume function.
 * For each of these the port says LAB_RESUME(function). Trap context.
 */
bool lab_trap(struct trap_frame *f);
#define LAB_RESUME(fn) PATCH_INDIRECT(lab_trap, fn)

/* The forms of most sites: the second `on` calls another target. */
enum { OFF, ON, ON2 };

#define MOVE(from, to) .old = from, .new = to

/* struct lab_scheme.store: at that offset, so many bytes, of form `to`, and another. */
#define ONE_STORE(at, length, to)                                              \
	{                                                                      \
		{                                                              \
			at, length, to                                         \
		}                                                              \
	}
#define TWO_STORES(at, length, at2, length2, to)                               \
	{                                                                      \
		{ at, length, to },                                            \
		{                                                              \
			at2, length2, to                                       \
		}                                                              \
	}

/*
 * A scheme. site is the port's: the name, from, the victim with its length, its forms and encode.
 * how is LAB_`how`, stores one of the port's lists. Behind why stand the fields that few have.
 */
#define SCHEME(ident, site, from, to, how, stores, harm, why, ...)             \
	LAB_SCHEME(ident, site, MOVE(from, to), .way = LAB_##how,              \
		   .store = stores(to), .breaks = (harm), .because = (why),    \
		   __VA_ARGS__)

/*
 * A site of several instructions by LAB_BYPASS, and by what is left of it without a part. The
 * first store is the first unit.
 */
#define BYPASS(ident, site, from, to, stores, act)                             \
	LAB_SCHEME(ident##_bypass, site, MOVE(from, to), .way = LAB_BYPASS,    \
		   .store = stores(to), .resume = (act),                       \
		   .because = "led around until no task is inside")
#define NO_WAIT(ident, site, from, to, stores, act, harm)                      \
	LAB_SCHEME(ident##_no_wait, site, MOVE(from, to), .way = LAB_NO_WAIT,  \
		   .store = stores(to), .resume = (act), .breaks = (harm),     \
		   .because = "a task is still inside; cure: wait for it")
#define IN_PLACE(ident, site, from, to, stores, act, harm)                     \
	LAB_SCHEME(ident##_in_place, site, MOVE(from, to),                     \
		   .way = LAB_IN_PLACE, .store = stores(to), .resume = (act),  \
		   .breaks = (harm),                                           \
		   .because = "led to the second instruction; cure: a copy")

#endif
