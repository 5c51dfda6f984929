/* SPDX-License-Identifier: MIT */
/* Strategy `bypass`: its question by the trap. */
#ifndef TRACER_PATCH_BYPASS_H
#define TRACER_PATCH_BYPASS_H

#include <tracer/sites/sites.h>

/*
 * Does it lead CPUs around entry i of the set's table, which holds a breakpoint? Then also *on,
 * the state that the site had. For patch_trap(): any context, no site.
 */
bool patch_bypass_find(const struct live_set *set, unsigned int i, bool *on);

#endif
