/* What ring_control.c asks of ring.c: on the ring's CPU, interrupts off, or for
 * a CPU that is not online. */
#ifndef TRACER_RING_INTERNAL_H
#define TRACER_RING_INTERNAL_H

#include <arch/cpu_head.h>
#include <tracer/ring.h>

/* Begin anew in r->pages: empty, counts 0; page numbers go on, so that readers
 * see that theirs are gone. */
void ring_restart(struct ring *r, struct cpu_head *head);

/* Record, or stop recording. */
void ring_switch(struct ring *r, struct cpu_head *head, bool on);

#endif
