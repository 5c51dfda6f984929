/* SPDX-License-Identifier: MIT */
/* The annotations of the patching path, as the running kernel sees them. */
#include <kernel/patch_path.h>

#include <kernel/assert.h>
#include <kernel/printk.h>

REGISTRY(struct patch_pair, patch_indirect);

notrace bool patch_path_allows(const void *caller, const void *target)
{
	const struct patch_pair *p;

	for_each_registered (p, patch_indirect)
		if (p->caller == caller && p->target == target)
			return true;
	return false;
}

notrace void patch_path_check(const void *caller, const void *target)
{
	if (!target || patch_path_allows(caller, target))
		return;
	printk("%pS is to run on the patching path, called by %pS, but no "
	       "PATCH_INDIRECT says so: it could have a site\n",
	       target, caller);
	assert_failed("a function that the build has not followed is to run on "
		      "the patching path");
}
