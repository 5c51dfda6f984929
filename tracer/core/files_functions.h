/* SPDX-License-Identifier: MIT */
/* Control files that take functions. */
#ifndef TRACER_FILES_FUNCTIONS_H
#define TRACER_FILES_FUNCTIONS_H

#include <tracer/base/instance.h>

/* A control file for a filter. One of trace_top's is, in an instance's folder, the instance's. */
#define FILTER_FILE(ident, filter, ...)                                        \
	TRACE_FILE(ident, .path = TRACING #ident,                              \
		   .data = (unsigned long)(filter), .read = filter_file_read,  \
		   .write = filter_file_write, .empties = true,                \
		   .checks = true, .at_boot = "", __VA_ARGS__)
int filter_file_read(struct ctl_handle *h, struct seq *s);
int filter_file_write(struct ctl_handle *h, char *text);

#endif
