/* SPDX-License-Identifier: MIT */
/* The clients whose seams are tried. */
#ifndef TRACER_SEAMS_CLIENTS_TEST_H
#define TRACER_SEAMS_CLIENTS_TEST_H

#include <kernel/types.h>

/* What is traced. The calls of other functions are few, so that the buffer holds all of them. */
#define SEAM_FILTER                                                            \
	"victim_* task_exit task_bury cpu_idle_check task_set_affinity"

/*
 * A client is a few lines that a user would write, in order: "FILE TEXT" writes a control file of
 * the tracer, "+FILE TEXT" appends, "mkdir FOLDER/" and "rmdir FOLDER/". A $ in the text is the pid
 * of a task that calls. A path that begins with / stands for itself. "sh LINE" is a line of the
 * shell's.
 */
struct seam_client {
	const char *name, *on, *off;
	const char *
		text; /* `trace` holds: the grammar that tools/seams holds it against, or NULL */
};

/* The i-th client, or NULL. */
const struct seam_client *seam_client(unsigned int i);
/* Is it no client of the tracer, but lines of the shell's? It is tried with faults alone. */
bool seam_is_shell(const struct seam_client *c);
/* Switch it on or off: 0, or the first error of its lines, all of which are tried. */
int seam_switch(const struct seam_client *c, bool on, int pid);

#endif
