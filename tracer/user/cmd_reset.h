/* SPDX-License-Identifier: MIT */
/* The shell's `trace reset`. */
#ifndef TRACER_CMD_RESET_H
#define TRACER_CMD_RESET_H

/* Everything in the top level becomes as at boot, but for the buffer's size, and the buffer is
 * empty. 0, or an error, which has been printed. */
int cmd_reset(void);

#endif
