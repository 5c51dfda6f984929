/* SPDX-License-Identifier: MIT */
/* Between the lab's own files: its tasks, its steps, its findings. */
#ifndef TRACER_LAB_INTERNAL_H
#define TRACER_LAB_INTERNAL_H

#include <kernel/shell/shell.h>
#include <kernel/sched/task.h>
#include <kernel/test/fault.h>
#include <tracer/lab/lab.h>

struct lab_patcher;
struct lab_run;

/* ---- lab_hold.c: tasks that run victims, and the hold sweep ---- */

#define LAB_REGION 2048

/* Which boundaries of [lo, hi) an interrupt was seen at, and with which delay. */
struct lab_map {
	unsigned long lo, hi;
	unsigned long beside;  /* likewise LAB_BYPASS_SIZE from here. 0: none */
	u16 delay[LAB_REGION]; /* + 1. 0: never */
	u8 times[LAB_REGION];  /* how many trials met an interrupt there */
};

#define LAB_BYPASS_SIZE 32u

/* How a run of a victim ended, or where it is. */
enum lab_end {
	LAB_DONE, /* came back: damage is its report */
	LAB_HELD, /* stands where it was wanted */
	LAB_DIED, /* of a fault: it is written down */
	LAB_LOST, /* never came back, caught and buried */
};

/* A task that runs victims on one CPU. While the task is held, its creator writes here
 * and the task reads. While the task runs, it is the other way round. */
struct lab_task {
	unsigned int cpu;
	struct task *task; /* NULL: none, or buried */
	void (*job)(struct lab_task *l);
	const struct lab_victim *victim;
	const struct lab_scheme *scheme; /* whose fault() is asked, or NULL */
	struct lab_map *map;
	u64 ahead; /* from the deadline's setting to the interrupt, arch_clock() ticks */
	unsigned int delay; /* where a sweep begins */
	unsigned int span;  /* and how far it goes */
	unsigned int first; /* the first delay of the latest sweep */
	bool stop;	    /* the latest trial was the one looked for */
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
 * Interrupt the victim after every number of instructions, `span` numbers in all, and hold nothing.
 * Adds the boundaries seen to the map, whose lo and hi are set.
 */
enum lab_end lab_sweep(struct lab_task *l, const struct lab_victim *v,
		       struct lab_map *map, unsigned int span);

/* Hold the victim at pc, with the delay that the map has for it. */
bool lab_hold(struct lab_task *l, unsigned long pc);
/* Let it go on, to its end. */
enum lab_end lab_finish(struct lab_task *l);
/* Or end it where it stands. */
void lab_kill(struct lab_task *l);

/* ---- lab_run.c: every boundary of every state, and the outcomes ---- */

#define LAB_FINDINGS 12
#define LAB_BOUNDARIES 200

/* Damage of one kind. Runs that were held elsewhere and had the same are in it too. */
struct lab_finding {
	u32 damage;
	const char *what;     /* the fault, or NULL */
	unsigned long at;     /* its pc */
	unsigned int state;   /* that the text was in */
	bool between;	      /* another CPU's run, not a held task's */
	unsigned int nr_held; /* where it was held, ascending */
	unsigned long held[LAB_SITE_MAX + 4];
};

/*
 * A transition under test, from state 0 by steps to state `last`. The states in between are halfway
 * through the stores, so they need not have a form.
 */
struct lab_case {
	const char *name, *from, *strategy, *old, *new, *because;
	const struct lab_victim *victim;
	const struct lab_scheme *scheme;       /* NULL: the port's own site */
	const struct lab_form *before, *after; /* NULL: no such declaration */
	const struct lab_form *window;	       /* allowed in between, or NULL */
	u32 breaks;
	unsigned int last;
	bool live;  /* others run between the steps: a second CPU is needed */
	bool waits; /* a step that changes text may wait for the held task */
	bool own;   /* its site must be in the site table */
	bool kills; /* the held victim dies where it stands, and another runs */
	/* Optional, around all that follows: make the steps' memory, undo that. */
	void (*begin)(struct lab_run *r);
	void (*end)(struct lab_run *r);
	/* Bring the text into a state, with no task inside. Make one step. */
	int (*set)(struct lab_case *c, unsigned int state);
	int (*step)(struct lab_case *c, unsigned int from);
	/* Optional: a victim is held at pc. */
	void (*held_at)(struct lab_run *r, unsigned long pc);
	const void *arg;
	u8 move; /* patcher.c: which transition of arg's */
	/* Of a site whose forms do not say it, and whose bytes come back behind the case. 0: the
	 * tracer's books say which belong there, and `stop` switches it without a store that
	 * could be stopped behind. */
	u8 length;
	struct trace_ops *ops; /* of live calls, while it runs. NULL: any */
	unsigned long lo, hi;  /* where boundaries are looked for */
	unsigned long beside;  /* and there: struct lab_map */
	unsigned int span;     /* of the sweep */
	/* Results. */
	unsigned int held, boundaries; /* of all states together */
	unsigned int runs;	       /* how often a victim has run */
	u8 bytes[2][LAB_SITE_MAX];     /* the old and the new form, as tested */
	u32 seen;		       /* damage */
	const char *incomplete;	       /* why, or NULL */
	unsigned long incomplete_at;
	const char *wrong; /* why the scheme contradicts itself, or NULL */
	unsigned int nr_findings;
	struct lab_finding finding[LAB_FINDINGS];
};

enum lab_verdict { LAB_HOLDS, LAB_BROKEN, LAB_SURPRISE, LAB_INCOMPLETE };

/* A run of the lab, handed down to each step of it. */
struct lab_run {
	struct sink *out;
	const char *glob; /* NULL: all */
	bool json, list;
	bool second;	       /* there is another CPU than the victim's */
	bool able;	       /* the own sites are in the site table */
	bool begun;	       /* lab_own_begin() */
	struct lab_task held;  /* runs the victim that is held */
	struct lab_task other; /* on the second CPU */
	struct lab_case test;  /* the case under way */
	struct lab_map map;    /* of its present state, as its boundaries */
	unsigned int nr_boundaries;
	unsigned long boundary[LAB_BOUNDARIES];
	/* Boundaries of the trampolines that some case has held a victim at. */
	bool reached[LAB_REGION];
	unsigned int count[LAB_INCOMPLETE + 1], total;
};

/* Enumerate the run's case. */
void lab_enumerate(struct lab_run *r);

/* ---- lab_report.c: a case in words ---- */

enum lab_verdict lab_judge(const struct lab_case *c);
/* Explain the columns, and the facts that no row can show. */
int lab_help(struct sink *out);
void lab_header(struct sink *out);
void lab_row(struct sink *out, const struct lab_case *c);
/* One line for programs, with the forms' bytes as tested. */
void lab_json(struct sink *out, const struct lab_case *c);

/*
 * ---- Makers of cases ----
 *
 * Each fills *c with its case number *i, and does nothing else. If it has fewer,
 * it takes their number from *i and returns false.
 */

/* lab_scheme.c: the ports' schemes, and the case of a given scheme. */
bool lab_case_scheme(struct lab_case *c, unsigned int *i);
void lab_scheme_case(struct lab_case *c, const struct lab_scheme *s);
/* patcher.c: the patch code of others, and a transition of given code. */
bool lab_case_patcher(struct lab_case *c, unsigned int *i);
void lab_patcher_case(struct lab_case *c, const struct lab_patcher *p, u8 move);
/* lab_own.c: the port's own sites and a jump label, by each strategy. */
bool lab_case_own(struct lab_case *c, unsigned int *i);
/* lab_vector.c: such a site by breakpoint, with a vector that is not sorted or is. */
bool lab_case_vector(struct lab_case *c, unsigned int *i);
/* lab_trampoline.c: the trampolines behind those sites. */
bool lab_case_trampoline(struct lab_case *c, unsigned int *i);

/* ---- lab_text.c: stores to text ---- */

/* Store 1, 2, 4 or 8 bytes at an aligned address at once, any other number byte by byte: through
 * an alias, or to kernel text, which is opened for it. No site. */
void lab_store_one(unsigned long alias, const u8 *bytes, unsigned int length);
void lab_store_text(unsigned long at, const u8 *bytes, unsigned int length);
/* On the CPU that calls it: what was stored at the site is fetched from now on. */
void lab_sync_site(unsigned long site);
void lab_sync_on_cpu(void *site);
/* And on all of them: 0 or cpu_call()'s error. */
int lab_sync_all(unsigned long site);
/* The breakpoint: arch_break_length bytes in the CPU's own order. */
void lab_break_bytes(u8 *to);

/* ---- lab_scheme.c: text that is changed ---- */

/* Put a site's bytes back while all CPUs are held. */
void lab_put_back(unsigned long site, const u8 *bytes, unsigned int length);

/* ---- lab_bypass.c: the old instructions of a site out of line ---- */

unsigned long lab_bypass_at(void);
/* Make the bypass of s, whose old bytes these are. No task is in it. */
void lab_bypass_copy(const struct lab_scheme *s, const u8 *old);
/* Wait until no task is inside the site, or in the bypass, which is then free. 0, or -EBUSY after
 * a while. */
int lab_bypass_wait(void);
int lab_bypass_free(void);
/* The trap's part, unless the old form calls. Trap context. */
bool lab_bypass_trap(struct trap_frame *f);

/* ---- lab_own.c: shared by cases of the port's own sites ---- */

/* Around a whole run of the lab. False: the own sites are not in the site table. `able` is that
 * answer. */
bool lab_own_begin(void);
void lab_own_end(bool able);
/* Let live calls do `ops`. 0, or trace_ops_borrow()'s error. */
int lab_own_ops(struct trace_ops *ops);
/* Switch such a site by a strategy. 0 or patch_site()'s error. */
int lab_own_switch(unsigned long site, const char *by, bool on);
/* Count the calls of lab_victim_own, all or where trace_in_c says so, the calls and the returns
 * of lab_victim_return, in lab_calls[0] and [1]. */
extern struct trace_ops lab_count_ops, lab_choose_ops, lab_return_ops;
/* function_graph's, behind lab_own_graph(), unless its room is left out. Nothing is counted. */
extern struct trace_ops lab_graph_ops;
void lab_own_graph(void);
/* Before each trial, on its CPU, interrupts off: its calls will find room in their page. A full
 * page is left to C, too rarely for a victim to be held there. */
void lab_own_room(void);

/* Mistakes that the lab makes on purpose, for tests of the lab. */
FAULT_DECLARE(lab_claim);
FAULT_DECLARE(lab_boundary);
FAULT_DECLARE(lab_form);
FAULT_DECLARE(lab_return);

#endif
