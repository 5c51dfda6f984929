/* SPDX-License-Identifier: MIT */
/* The machine as a fresh one: everything that a client may leave behind. */
#ifndef TRACER_SEAMS_MACHINE_TEST_H
#define TRACER_SEAMS_MACHINE_TEST_H

#include <kernel/types.h>

/* Remember the machine as it is, also each byte of `nr` ranges, of which `ranges` has the begin and
 * the end. False: no memory. */
bool seam_machine_note(const unsigned long *ranges, unsigned int nr);
/* Is it as it was? seam_wrong() says where it is not. */
void seam_machine_compare(void);

#endif
