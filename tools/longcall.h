/* Direct calls that are written as calls through a register. */
#ifndef TOOLS_LONGCALL_H
#define TOOLS_LONGCALL_H

#include "image.h"

/* Give FLOW_CALL or FLOW_JUMP, and its target, to each that has but one. */
void longcall_resolve(struct image *im);

#endif
