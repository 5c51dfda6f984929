/* SPDX-License-Identifier: MIT */
/* Mistakes in filters: error_log.h. */
#include <tracer/core/error_log.h>

#include <kernel/ctl/ctl.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/time.h>
#include <tracer/core/tracer.h>

#define ERRORS 8 /* kept, as in Linux */

/* Mistakes in texts that were written, the newest last, for each instance, under trace_mutex. */
static struct error_log {
	unsigned int nr; /* since the log was cleared */
	struct {
		u64 ns;
		const char *what;
		unsigned int at;
		char command[160];
	} last[ERRORS];
} error_logs[INSTANCES];

void error_log_add(const struct trace_instance *in, const char *command,
		   const char *what, unsigned int at)
{
	struct error_log *errors = &error_logs[instance_number(in)];
	unsigned int i = errors->nr++ % ERRORS;

	mutex_assert_held(&trace_mutex);
	errors->last[i].ns = time_ns();
	errors->last[i].what = what;
	errors->last[i].at = at;
	string_copy(errors->last[i].command, command,
		    sizeof(errors->last[i].command));
}

static int error_log_read(struct ctl_handle *h, struct seq *s)
{
	struct error_log *errors = &error_logs[h->folder];
	unsigned int first, i;

	first = errors->nr > ERRORS ? errors->nr - ERRORS : 0;
	i = first + h->pos++;
	if (i < errors->nr) {
		u64 us = errors->last[i % ERRORS].ns / NSEC_PER_USEC;

		seq_printf(s,
			   "[%5llu.%06llu] event filter parse error: error: "
			   "%s\n  Command: %s\n           %*s^\n",
			   (unsigned long long)us / 1000000,
			   (unsigned long long)us % 1000000,
			   errors->last[i % ERRORS].what,
			   errors->last[i % ERRORS].command,
			   (int)errors->last[i % ERRORS].at, "");
	}
	return s->len != 0;
}

void error_log_clear(const struct trace_instance *in)
{
	mutex_assert_held(&trace_mutex);
	error_logs[instance_number(in)].nr = 0;
}

static int error_log_write(struct ctl_handle *h, char *text)
{
	(void)text;
	error_log_clear(instance_of(h));
	return 0;
}
TRACE_FILE(error_log, .path = TRACING "error_log", .folders = &trace_folders,
	   .read = error_log_read, .write = error_log_write, .empties = true);
