/* SPDX-License-Identifier: MIT */
/* The tasks of a case, and what happens to them. */
#ifndef TRACER_SEAMS_MOMENTS_TEST_H
#define TRACER_SEAMS_MOMENTS_TEST_H

#include <kernel/types.h>

/* What happens. Each step is optional. */
struct seam_moment {
	const char *name;
	void (*meet)(void);  /* the first client is on */
	void (*part)(void);  /* the second one is */
	void (*after)(void); /* both are off */
	bool apart;	     /* the first is off before the second is on */
	bool poor;	     /* there is no memory between meet() and part() */
	bool empties; /* part() empties the buffer, tasks may be in calls */
};
/* The i-th moment, or NULL. */
const struct seam_moment *seam_moment(unsigned int i);

/* Tasks that call the victims all the time. False: no memory. The pid of one of them. */
bool seam_tasks_start(void);
void seam_tasks_stop(void);
int seam_tasks_pid(void);
/* Let each of them make some more calls. */
void seam_tasks_work(void);

#endif
