/* SPDX-License-Identifier: MIT */
/* The shell's `trace reset`. */
#ifndef TRACER_CMD_RESET_H
#define TRACER_CMD_RESET_H

/* Write text into a control file of the tracer, or of an instance's folder (else ""). 0, or an
 * error, which has been printed. */
int cmd_write(const char *folder, const char *file, const char *text);

/* Everything in the top level becomes as at boot, but for the buffer's size, and the buffer is
 * empty. 0, or an error, which has been printed. */
int cmd_reset(void);

#endif
