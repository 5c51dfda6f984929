/* SPDX-License-Identifier: MIT */
/* The control files that write into the buffer. */
#ifndef TRACER_FILES_MARKER_H
#define TRACER_FILES_MARKER_H

struct ctl_handle;

/* The writer of trace_marker. Its address is the ip of each marker, as in Linux, so programs that
 * read binary records show the name that `trace` has. */
int tracing_mark_write(struct ctl_handle *h, char *text);

#endif
