/* Between the lab's own files: its tasks, its steps, its findings. */
#ifndef TRACER_LAB_INTERNAL_H
#define TRACER_LAB_INTERNAL_H

#include <kernel/shell.h>
#include <kernel/task.h>
#include <tracer/lab.h>

/* ---- lab_hold.c: tasks that run victims, and the hold sweep ---- */

#define LAB_REGION 1024

/* Which boundaries of [lo, hi) an interrupt was seen at, and with what delay. */
struct lab_map {
	unsigned long lo, hi;
	u16 delay[LAB_REGION]; /* + 1; 0: never */
};

/* How a run of a victim ended, or where it is. */
enum lab_end {
	LAB_DONE, /* came back: damage is what it saw */
	LAB_HELD, /* stands where it was wanted */
	LAB_DIED, /* of a fault: it is written down */
	LAB_LOST, /* never came back; caught and buried */
};

/* A task that runs victims on one CPU. Its creator writes, it reads, while it is
 * held; and the other way round while it runs. */
struct lab_task {
	unsigned int cpu;
	struct task *task; /* NULL: none, or buried */
	void (*job)(struct lab_task *l);
	const struct lab_victim *victim;
	const struct lab_scheme *scheme; /* for its fault(), or NULL */
	struct lab_map *map;
	unsigned int delay, span; /* where a sweep begins, and how far it goes */
	bool stop;		  /* this was the trial that was wanted */
	/* Results. */
	bool done;
	u32 damage, fault_damage;
	u32 calls[2];
	unsigned long lost_pc; /* LAB_LOST */
	struct task_fault fault;
};

/* 0, or -ENOMEM. */
int lab_task_start(struct lab_task *l, unsigned int cpu);
void lab_task_stop(struct lab_task *l);

/* Run the victim once, start to end. */
enum lab_end lab_once(struct lab_task *l, const struct lab_victim *v);

/*
 * Interrupt the victim after every number of instructions, holding nothing:
 * fills l->map, whose lo and hi are set. span: of numbers to go through.
 */
enum lab_end lab_sweep(struct lab_task *l, const struct lab_victim *v,
		       struct lab_map *map, unsigned int span);

/* Hold the victim at pc, with the delay that the map has for it. */
bool lab_hold(struct lab_task *l, unsigned long pc);
/* Let it go on, to its end. */
enum lab_end lab_finish(struct lab_task *l);

#endif
