/* SPDX-License-Identifier: MIT */
/*
 * Instances of the tracer: each has a buffer, a tracer, filters, events, options and a clock of
 * its own. The top level is the first one, and is always there. Users make the others with
 * mkdir instances/NAME, and remove them with rmdir.
 *
 * The trampolines write into the top level's rings alone. While another instance traces
 * functions, or records an event, C code sees every call, or every event, and writes it into the
 * rings of each instance that wants it.
 */
#ifndef TRACER_INSTANCE_H
#define TRACER_INSTANCE_H

#include <kernel/ctl/ctl.h>
#include <kernel/types.h>
#include <tracer/filter.h>
#include <tracer/sites/sites.h>

struct tracer;
struct ring;

struct trace_instance {
	char name[32]; /* "": the top level, or there is none */
	unsigned int
		users; /* files of it that are open; under instance.c's lock */

	/* Written under trace_mutex. */
	const struct tracer *tracer;
	u32 on; /* tracing_on: 0 or 1, a word because commands look at it */
	cpumask_t cpumask;   /* tracing_cpumask, of CPUs present */
	unsigned int pipes;  /* readers of trace_pipe: the tracer stays */
	unsigned int pauses; /* readers of trace: nothing is recorded */
	u32 options;	     /* a bit for each of options.h */
	unsigned int clock;  /* the number of its clock: output.c */
	unsigned int buffer_percent; /* full so far, a ring wakes its reader */
	struct ring
		*rings; /* MAX_CPUS of them; NULL: the instance is not there */
	/* As many, which have no writer: what a snapshot has taken out of the rings
	 * (output/snapshot.h). Without pages, there is no memory for a snapshot. */
	struct ring *spares;
	struct site_filter filter, left_out;
};
#define BUFFER_PERCENT_AT_BOOT 50
extern struct trace_instance trace_instances[INSTANCES];
#define trace_top trace_instances[0]

/* The instance that a control file belongs to. */
static inline struct trace_instance *instance_of(const struct ctl_handle *h)
{
	return &trace_instances[h->folder];
}
static inline unsigned int instance_number(const struct trace_instance *in)
{
	return in - trace_instances;
}

/* The instance of that name, which is none of the top level's; or NULL. Context: trace_mutex held,
 * or the instance stays as it is. */
struct trace_instance *instance_find(const char *name);

/* For control files that each instance has. */
extern const struct ctl_folders trace_folders;

/* Does an instance that is there take calls of the site; and which of the sites of word w? Any
 * context with interrupts off; or trace_mutex held. No site. */
static inline bool instance_takes(const struct trace_instance *in,
				  unsigned int site)
{
	return (!in->filter.count || site_test(*in->filter.bits, site)) &&
	       !site_test(*in->left_out.bits, site);
}
static inline u32 instance_takes_word(const struct trace_instance *in,
				      unsigned int w)
{
	return (in->filter.count ? (*in->filter.bits)[w] : ~0u) &
	       ~(*in->left_out.bits)[w];
}

/*
 * Context of what follows: a task, trace_mutex held. Errors are explained in h, and then
 * nothing has changed.
 */

/* Do others than the top level trace functions; and which sites of word w must be on for it? */
bool instances_trace(void);
u32 instances_want(unsigned int w);
/* And how many of them take calls of the site? */
unsigned int instances_users(unsigned int site);

/* Select a tracer: trace_select() for the top level. Others have nop and function. */
int instance_select(struct ctl_handle *h, struct trace_instance *in,
		    const char *name);
/* May an instance have that tracer? */
bool instance_has(const struct trace_instance *in, const struct tracer *tracer);

/* A mask of CPUs, hexadecimal, as Linux's tracing_cpumask takes it: no text at all is none. 0;
 * -EINVAL; -EOVERFLOW: more than the CPUs present. */
int instance_cpus_parse(const char *text, cpumask_t *mask);
/* Set tracing_on and tracing_cpumask: trace_record() for the top level. */
void instance_record(struct trace_instance *in, bool on, cpumask_t mask);
/* `pauses` has changed, or the rings have. */
void instance_refresh(struct trace_instance *in);

/* A call has happened that others than the top level may want. Interrupts off; irqs_off: they
 * were before. No site. */
void instances_call(unsigned int site, unsigned long ip, unsigned long parent,
		    bool irqs_off);

#endif
