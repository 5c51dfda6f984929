/* SPDX-License-Identifier: MIT */
/*
 * Marks, for the build, of the code that runs while text is being patched, while CPUs are
 * stopped for it, or while the tracer records. The build follows the linked image's call graph
 * from these marks. A site that it meets is kept off: boot makes it a NOP, and nothing can switch
 * it on (tools/lib/path.h).
 */
#ifndef KERNEL_PATCH_PATH_H
#define KERNEL_PATCH_PATH_H

#include <kernel/types.h>

/*
 * fn begins such a path: it begins the rendezvous on a CPU, writes text, runs before the CPU's
 * instruction fetch is synchronised, or records.
 */
#define PATCH_ROOT(fn)                                                         \
	static void *const patch_root_##fn REGISTER(patch_roots) = (fn)

/*
 * An indirect call in `caller` may reach `target`. Stands beside the code that
 * sets the pointer, one line for each target. A caller with an indirect call on
 * the path and no such line fails the build. The build cannot see which function a
 * pointer holds: that is checked when it is set, by PATCH_HOOK_SET() for a hook and
 * by stop_cpus() for its work.
 */
#define PATCH_INDIRECT(caller_fn, target_fn)                                    \
	static const struct patch_pair patch_indirect_##caller_fn##_##target_fn \
	REGISTER(patch_indirect) = { (caller_fn), (target_fn) }

/*
 * An indirect call in `caller` reaches those that register themselves, each with its
 * PATCH_INDIRECT(), and a kernel without any of them calls nothing there.
 */
#define PATCH_INDIRECT_OPEN(caller_fn)                                         \
	static const struct patch_pair patch_open_##caller_fn REGISTER(        \
		patch_indirect) = { (caller_fn), NULL }

struct patch_pair {
	const void *caller, *target;
};

/* Has the pair a PATCH_INDIRECT? Any context. */
bool patch_path_allows(const void *caller, const void *target);
/* The pair has one, or target is NULL. Else both names are said: assert.h. */
void patch_path_check(const void *caller, const void *target);

/* Store fn, or NULL, in a hook that `caller` calls on the patching path. */
#define PATCH_HOOK_SET(hook, caller, fn)                                       \
	do {                                                                   \
		patch_path_check((caller), (fn));                              \
		WRITE_ONCE(hook, fn);                                          \
	} while (0)

#endif
