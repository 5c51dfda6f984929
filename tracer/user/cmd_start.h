/* SPDX-License-Identifier: MIT */
/* The shell's `trace start`. */
#ifndef TRACER_CMD_START_H
#define TRACER_CMD_START_H

#include <kernel/types.h>

struct sink;

#define CMD_FOLDER 48 /* bytes of "instances/NAME/" */

/* `trace start` with these arguments, in an instance's folder, which is made if it is not there,
 * or in the top level (""). 0, or an error, which has been printed. */
int cmd_start(struct sink *out, const char *folder, int argc, char **argv);

/* The i-th option of `trace start`, from 0 on, for Tab. NULL: there are no more. */
const char *cmd_start_option(unsigned int i);

#endif
