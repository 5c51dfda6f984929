/* SPDX-License-Identifier: MIT */
/*
 * Functions that run while text is being patched, or while CPUs are stopped for it: the closure of
 * the linked image's call graph from the roots, computed by every build.
 *
 * Roots are in the section patch_roots (function addresses), calls through pointers in
 * patch_indirect (pairs of caller and target). kernel/patch_path.h fills both. The symbol
 * trap_vectors is a root too. A compiled call of the stub is not followed, because boot
 * replaces it.
 */
#ifndef TOOLS_PATH_H
#define TOOLS_PATH_H

#include "scan.h"

#define PATH_ROOT ((size_t)-1)
#define PATH_NONE ((size_t)-2)

struct path {
	/* By node, in the order in which they were reached, the roots first. */
	size_t *symbol; /* index of im.symbols */
	size_t *from;	/* the node that led here, or PATH_ROOT */
	size_t count;
	size_t *node; /* by index of im.symbols: its node, or PATH_NONE */
};

/*
 * Find the closure. An indirect call or jump in it that has no PATCH_INDIRECT() could lead
 * anywhere, and a function that waits could wait for ever: they are said, and counted in `errors`.
 */
void path_find(const struct image *im, const struct arch *arch, struct path *p);

/* The same from one function, by the name of its symbol. */
void path_find_from(const struct image *im, const struct arch *arch,
		    const char *root, struct path *p);

/* The node of the function that contains addr, or PATH_NONE. */
size_t path_node(const struct image *im, const struct path *p, uint64_t addr);

/* "patchpath: WHAT: stop_cpus -> foo -> bar" on the standard error output, outermost
 * first, and count it in `errors`. The caller ends the line. */
void path_say(const struct image *im, const struct path *p, size_t node,
	      const char *what);

/* Part the sites: those of functions on the path, and the others. */
void path_part(const struct image *im, const struct path *p,
	       const struct addresses *all, struct addresses *on_path,
	       struct addresses *others);

#endif
