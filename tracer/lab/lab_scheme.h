/* For the ports' schemes that use breakpoints. */
#ifndef TRACER_LAB_SCHEME_H
#define TRACER_LAB_SCHEME_H

#include <kernel/types.h>

struct trap_frame;

/*
 * The breakpoint trap of a LAB_BREAK scheme: it calls the port's resume function.
 * For each of these the port says PATCH_INDIRECT(lab_trap, function). Trap context.
 */
bool lab_trap(struct trap_frame *f);

#endif
