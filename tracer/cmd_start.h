/* The shell's `trace start` and `trace reset`. */
#ifndef TRACER_CMD_START_H
#define TRACER_CMD_START_H

#include <kernel/types.h>

struct sink;

/* Write text into a control file of the tracer. 0, or an error, which has been printed. */
int cmd_write(const char *file, const char *text);

/* `trace start` with these arguments. 0, or an error, which has been printed. */
int cmd_start(struct sink *out, int argc, char **argv);

/* `trace reset`: everything as at boot, but for the buffer's size, and the buffer empty. 0, or
 * an error, which has been printed. */
int cmd_reset(void);

#endif
