/*
 * Proves of the strategies that stop nobody: that a trap is offered to the hook
 * first.
 */
#include <tracer/testing.h>

#include <kernel/patch_path.h>

static u32 hooked; /* what hook() was asked */

static bool hook(struct trap_frame *f)
{
	hooked += !f;
	return true;
}
PATCH_INDIRECT(patch_trap, hook);

KTEST(patch_trap_hook, "patch.trap_hook")
{
	u32 before = hooked;

	mutex_lock(&trace_mutex);
	patch_trap_hook = hook;
	KEXPECT(t, patch_trap(NULL));
	patch_trap_hook = NULL;
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, hooked - before, 1);
}
