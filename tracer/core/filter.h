/* SPDX-License-Identifier: MIT */
/* set_ftrace_filter, set_ftrace_notrace, set_graph_function, set_graph_notrace and
 * stack_trace_filter. */
#ifndef TRACER_FILTER_H
#define TRACER_FILTER_H

#include <tracer/base/instance.h>

extern struct site_filter filter_graph, filter_graph_hidden, filter_stack;

/*
 * Take a text that was written to a filter's control file: patterns separated
 * by blanks (text is cut up). They are added, or with append false replace the
 * old ones. -EINVAL: a pattern that matches no function.
 */
int filter_write(struct ctl_handle *h, struct site_filter *f, char *text,
		 bool append);
/* Its instance is going, and so are its bits. */
void filter_forget(struct site_filter *f);
/* Is it FUNC:mod:MODULE, with ! or without? */
bool filter_word_of_module(const char *word);
/* Show line *i of f's modules, from 0. If there is none: false, and *i is less by their number. */
bool filter_show_module(struct seq *s, const struct site_filter *f,
			unsigned long *i);
/* Is site i named by this word, a name or a pattern? */
bool filter_names(const char *word, unsigned int i);
/* Would it be accepted? Changes nothing but text. */
int filter_check(struct ctl_handle *h, struct site_filter *f, char *text,
		 bool append);

#endif
