/* SPDX-License-Identifier: MIT */
/* The file error_log: mistakes in filters, with the place marked. Each instance has its own. */
#ifndef TRACER_ERROR_LOG_H
#define TRACER_ERROR_LOG_H

#include <tracer/core/instances.h>

/* Context of both: trace_mutex held. */

/* Add: `command` is wrong, `what` says why and stays as it is, and `at` is the character. */
void error_log_add(const struct trace_instance *in, const char *command,
		   const char *what, unsigned int at);
void error_log_clear(const struct trace_instance *in);

#endif
