/* SPDX-License-Identifier: MIT */
/*
 * arm64, SITES=patchable-4-2: two nop at a function's entry, as SITES=patchable has them, and
 * two before the entry. Those before are for a port that keeps something of each function
 * there. nopl needs nothing there: what a call is for is a datum (trace_ops). So they stay
 * as compiled, and no CPU ever runs them.
 */
#define SITE_FORMAT "patchable-4-2"
#define SITE_RECORD 8
#include <sites/patchable/site.h>
