/* SPDX-License-Identifier: MIT */
/* Shared by the control files that show a buffer as text: trace and snapshot. */
#ifndef TRACER_FILES_BUFFER_H
#define TRACER_FILES_BUFFER_H

#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <tracer/core/instances.h>
#include <tracer/ring/ring.h>

/* A file that each instance has of the buffers of all its CPUs, and again, in per_cpu/, for each
 * CPU: by CTL_FILE or TRACE_FILE. cpus_of_file() says which CPUs a handle is for. */
#define CPU_FILES(file, ident, ...)                                            \
	file(ident, .path = TRACING #ident, .folders = &trace_folders,         \
	     __VA_ARGS__);                                                     \
	file(cpu_##ident, .path = TRACING "per_cpu/cpu%u/" #ident,             \
	     .folders = &trace_folders, .data = 1, __VA_ARGS__)

static inline cpumask_t cpus_of_file(const struct ctl_handle *h)
{
	return h->file->data ? 1u << h->index : cpus_present();
}

/*
 * For a reader of such a file: show the entries in the rings of set, of the CPUs of mask. 0 or
 * -ENOMEM. While a reader of spare rings has them open, no snapshot is taken. Context of all: a
 * task that may sleep.
 */
int trace_show_open(struct ctl_handle *h, const struct ring *set,
		    cpumask_t mask);
/* Is there nothing to show? Before the first read. */
bool trace_show_is_empty(struct ctl_handle *h);
/* The header, and then an entry each time: ctl_file.read. */
int trace_show_read(struct ctl_handle *h, struct seq *s);
void trace_show_release(struct ctl_handle *h);

#endif
