/* SPDX-License-Identifier: MIT */
/*
 * How rooms above show their kinds of entry. Each registers itself, and leaves NULL all that it
 * does not show. output.c asks one after the other, until one has shown the entry.
 */
#ifndef TRACER_LINES_H
#define TRACER_LINES_H

#include <tracer/show/output.h>

/* Context of all: as of trace_iter_open(), or a panic. */
struct trace_lines {
	/* Prepare a new iterator for its lines. True: it shows a part of the time alone. */
	bool (*open)(struct trace_iter *it);
	/* The top of the header, and the rest: true if the text needs no other. */
	bool (*summary)(struct seq *s, const struct trace_iter *it);
	bool (*header)(struct seq *s, const struct trace_iter *it);
	/* The whole line, or lines. False: the entry is of another kind, as below. */
	bool (*line)(struct seq *s, struct trace_iter *it,
		     const struct ring_entry *e);
	/* The columns before an entry's text. */
	bool (*columns)(struct seq *s, struct trace_iter *it,
			const struct ring_entry *e);
	/* The text of an event's record. */
	bool (*event)(struct seq *s, const struct ring_entry *e);
	/* Swap the bytes of each number in an entry of trace_pipe_raw, common fields and all. */
	void (*swap)(char *payload);
	/* The next entry is known now: add to the line of the entry at `clock`. */
	bool (*mark)(struct seq *s, struct trace_iter *it, u64 clock);
};
#define TRACE_LINES(ident, ...)                                                \
	static const struct trace_lines trace_lines_##ident REGISTER(          \
		trace_lines) = { __VA_ARGS__ }
REGISTRY(struct trace_lines, trace_lines);

#endif
