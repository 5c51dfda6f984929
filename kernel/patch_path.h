/*
 * What runs while text is being patched or while CPUs are stopped for it, said
 * for tools/patchpath, which follows the linked image's call graph from here and
 * fails the build when it meets a function that is a site.
 */
#ifndef KERNEL_PATCH_PATH_H
#define KERNEL_PATCH_PATH_H

#include <kernel/types.h>

/*
 * fn runs on that path: where the rendezvous begins on each CPU, what writes
 * text, what a CPU does before its instruction fetch is synchronised.
 */
#define PATCH_ROOT(fn)                                                         \
	static void *const patch_root_##fn REGISTER(patch_roots) = (fn)

/*
 * An indirect call in `caller` may reach `target`. Stands beside the code that
 * sets the pointer; one line for each target. A caller with an indirect call on
 * the path and no such line fails the build.
 */
#define PATCH_INDIRECT(caller, target)                                         \
	static void *const patch_indirect_##caller##_##target[2] REGISTER(     \
		patch_indirect) = { (caller), (target) }

#endif
