/* SPDX-License-Identifier: MIT */
/* Events and the trace buffer, described in Linux's words. tools/extract compiles this, too. */
#ifndef TRACER_FORMATS_H
#define TRACER_FORMATS_H

#include <tracer/events/fields.h>

/* An entry of Linux's own, which no event makes. A path of NULL is behind the last. */
struct own_format {
	const char *path, *name, *text;
	unsigned int id;
	struct event_field fields[8];
};
extern const struct own_format own_formats[];

/* Record `at` of a format file: the head, a record for each field, the print fmt. 0: there are no
 * more. */
int event_show_file(unsigned int at, struct seq *s, const char *name,
		    unsigned int id, const struct event_field *fields,
		    const char *text);

/* show() of the files header_page and header_event. */
void format_header_page(struct ctl_handle *h, struct seq *s);
void format_header_event(struct ctl_handle *h, struct seq *s);

#endif
