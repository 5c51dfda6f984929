/* SPDX-License-Identifier: MIT */
/* Control files that write into the trace: trace_marker, trace_marker_raw. */
#include <tracer/show/files_marker.h>

#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/sched/task.h>
#include <tracer/core/client.h>
#include <tracer/core/options.h>
#include <tracer/core/comm.h>
#include <tracer/show/output.h>
#include <tracer/ring/ring_more.h>
#include <tracer/core/tracer.h>

static int write_mark(struct ctl_handle *h, u32 type, const void *bytes,
		      size_t len)
{
	int err;

	if (!instance_option(instance_of(h), OPT_MARKERS))
		return ctl_error(h, -EINVAL, "options/markers is 0");
	comm_save(current_task());
	err = ring_mark_as(instance_of(h)->buffer, type, bytes, len);
	if (err == -ENOSPC)
		return ctl_error(h, err,
				 "not recorded: the buffer is full, and "
				 "options/overwrite is 0");
	if (err) /* as Linux has it */
		return ctl_error(h, -EBADF,
				 "not recorded: tracing_on is 0, or "
				 "tracing_cpumask excludes this CPU");
	return 0;
}

int tracing_mark_write(struct ctl_handle *h, char *text)
{
	size_t len;
	int err;

	/* A long text becomes several entries. An empty one is an entry, too. */
	do {
		len = min(strlen(text), (size_t)RING_MARK_MAX);
		err = write_mark(h, RING_MARK, text, len);
		if (!err)
			err = clients_marked(h, text, len);
		text += len;
	} while (!err && *text);
	return err;
}
CTL_FILE(trace_marker, .path = TRACING "trace_marker",
	 .folders = &trace_folders, .write = tracing_mark_write);

static int marker_raw_write(struct ctl_handle *h, char *bytes)
{
	size_t len = h->text_len;

	if (len < sizeof(u32) || len > RING_RAW_MAX)
		return ctl_error(h, -EINVAL,
				 "%zu bytes; it takes a number of 4 bytes and "
				 "up to %zu bytes behind it",
				 len, RING_RAW_MAX - sizeof(u32));
	return write_mark(h, RING_RAW, bytes, len);
}
CTL_FILE(trace_marker_raw, .path = TRACING "trace_marker_raw",
	 .folders = &trace_folders, .write = marker_raw_write, .binary = true);
