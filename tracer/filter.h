/* set_ftrace_filter, set_ftrace_notrace, set_graph_function, set_graph_notrace and
 * stack_trace_filter. */
#ifndef TRACER_FILTER_H
#define TRACER_FILTER_H

#include <kernel/ctl/ctl.h>
#include <kernel/types.h>

struct site_filter {
	const char *name;  /* the control file's */
	const char *empty; /* what it shows when nothing is in it */
	u32 **bits;	   /* made at the first write if there are none */
	/* Whose calls it is for: which sites are on depends on it. NULL: it is for another. */
	struct trace_instance *in;
	bool for_stack; /* the stack tracer's: sites follow it while that runs */
	unsigned int count;  /* sites in it */
	unsigned int lo, hi; /* words outside [lo, hi) are 0 */
};
extern struct site_filter filter_graph, filter_graph_hidden, filter_stack;

/*
 * What was written to a filter's control file: patterns separated by blanks
 * (text is cut up), added, or with append false replacing what is there.
 * -EINVAL: a pattern that matches no function.
 */
int filter_write(struct ctl_handle *h, struct site_filter *f, char *text,
		 bool append);
/* Is site i named by this word, a name or a pattern? */
bool filter_names(const char *word, unsigned int i);
/* Would it be accepted? Changes nothing but text. */
int filter_check(struct ctl_handle *h, struct site_filter *f, char *text);

#endif
