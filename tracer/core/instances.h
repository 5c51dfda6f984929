/* SPDX-License-Identifier: MIT */
/*
 * Instances of the tracer beside the top level. Users make them with mkdir instances/NAME, and
 * remove them with rmdir.
 *
 * The trampolines write into the top level's rings alone. While another instance traces
 * functions, or records an event, C code sees every call, or every event, and writes it into the
 * rings of each instance that wants it.
 */
#ifndef TRACER_INSTANCES_H
#define TRACER_INSTANCES_H

#include <tracer/base/instance.h>
#include <tracer/sites/sites.h>

/* The instance of that name, which is none of the top level's, or NULL. Context: trace_mutex held,
 * or the instance stays as it is. */
struct trace_instance *instance_find(const char *name);

/* For control files that each instance has. */
extern const struct ctl_folders trace_folders;

/* Does an instance that is there take calls of the site, and which of the sites of word w? Any
 * context with interrupts off, or trace_mutex held. No site. */
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
 * Context of these functions: a task, trace_mutex held. Errors are explained in h, and then nothing
 * has changed.
 */

/* Do others than the top level trace functions, and which sites of word w must be on for it? */
bool instances_trace(void);
u32 instances_want(unsigned int w);
/* And how many of them take calls of the site? */
unsigned int instances_users(unsigned int site);

/* Select a tracer: trace_select() for the top level. Others have nop and function. */
int instance_select(struct ctl_handle *h, struct trace_instance *in,
		    const char *name);
/* May an instance have that tracer? */
bool instance_has(const struct trace_instance *in, const struct tracer *tracer);

/* A mask of CPUs, hexadecimal, as Linux's tracing_cpumask takes it: no text at all is none. 0.
 * -EINVAL. -EOVERFLOW: more than the CPUs present. */
int instance_cpus_parse(const char *text, cpumask_t *mask);
/* Set tracing_on and tracing_cpumask: trace_record() for the top level. */
void instance_record(struct trace_instance *in, bool on, cpumask_t mask);
/* `pauses` has changed, or the rings have. */
void instance_refresh(struct trace_instance *in);

/* A call has happened that others than the top level may want. Interrupts off. irqs_off: they
 * were before. No site. */
void instances_call(unsigned int site, unsigned long ip, unsigned long parent,
		    bool irqs_off);

#endif
