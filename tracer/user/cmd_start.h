/* SPDX-License-Identifier: MIT */
/* The shell's `trace start`. */
#ifndef TRACER_CMD_START_H
#define TRACER_CMD_START_H

#include <kernel/types.h>

struct sink;

/* Write text into a control file of the tracer, or of an instance's folder (else ""). 0, or an
 * error, which has been printed. */
int cmd_write(const char *folder, const char *file, const char *text);

#define CMD_FOLDER 48 /* bytes of "instances/NAME/" */

/* `trace start` with these arguments, in an instance's folder, which is made if it is not there,
 * or in the top level (""). 0, or an error, which has been printed. */
int cmd_start(struct sink *out, const char *folder, int argc, char **argv);

/* The i-th option of `trace start`, from 0 on, for Tab. NULL: there are no more. */
const char *cmd_start_option(unsigned int i);

#endif
