/* SPDX-License-Identifier: MIT */
/*
 * arm64, SITES=patchable-4-2: two nop at a function's entry, as SITES=patchable has them, and
 * two before the entry. Those before are for a kernel that keeps a word of each function
 * there. nopl keeps none: all calls go by one datum (trace_ops). So the two stay as
 * compiled, and no CPU ever runs them.
 */
#define SITE_FORMAT "patchable-4-2"
#define SITE_RECORD 8
#include <sites/patchable/site.h>
