/* SPDX-License-Identifier: MIT */
/*
 * Sites of functions that run while text is patched, or that trampolines call: boot turns them
 * off for good. From build/<arch>/tables.S, made by tools/mksites.
 */
#ifndef TRACER_SITES_KEPT_OFF_H
#define TRACER_SITES_KEPT_OFF_H

#include <kernel/types.h>

/* Their offsets from _text, ascending. */
extern const u32 kept_off_count;
extern const u32 kept_off_table[];

/*
 * All functions on that path, by their numbers in the symbol table. Of each, the place in this
 * table of the one that calls it. PATH_ROOT where patching or recording begins.
 */
#define PATH_ROOT 0xffff
extern const u32 path_count;
extern const u32 path_symbol[];
extern const u16 path_from[];

/* Is it the address of a kept site? */
bool site_is_kept_off(unsigned long site);

#endif
