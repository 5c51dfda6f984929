/* SPDX-License-Identifier: MIT */
/*
 * The fields of events: the meaning of a field's kind in C, in a record, and in the format files,
 * whose words are Linux's. A record stands behind Linux's common fields, which take 8 bytes. They
 * are made when a record is read.
 */
#ifndef TRACER_EVENT_FIELDS_H
#define TRACER_EVENT_FIELDS_H

#include <kernel/ctl/ctl.h>
#include <kernel/types.h>

#define EVENT_COMMON 8 /* bytes of the common fields */
#define EVENT_NAME 16  /* bytes of a COMM */

/* Members of a record. */
#define EVENT_MEMBER_COMM(name) char name[EVENT_NAME];
#define EVENT_MEMBER_PID(name) s32 name;
#define EVENT_MEMBER_INT(name) s32 name;
#define EVENT_MEMBER_UINT(name) u32 name;
#define EVENT_MEMBER_BOOL(name) bool name;
#define EVENT_MEMBER_HANDLED(name) s32 name;
#define EVENT_MEMBER_STATE(name) long name;
#define EVENT_MEMBER_ULONG(name) unsigned long name;
#define EVENT_MEMBER_SIZE(name) size_t name;
#define EVENT_MEMBER_POINTER(name) const void *name;
#define EVENT_MEMBER_CPOINTER(name) const void *name;
#define EVENT_MEMBER_FUNCTION(name) void *name;
#define EVENT_MEMBER_CALLER(name) unsigned long name;
#define EVENT_MEMBER_REASON(name) const char *name;
/* Where a value of any length stands behind the fields: its bytes << 16 | its offset in
 * the record with the common fields. */
#define EVENT_MEMBER_STRING(name) u32 name;
#define EVENT_MEMBER_CPUS(name) u32 name;

enum event_kind {
	EVENT_COMM,
	EVENT_PID,
	EVENT_INT,
	EVENT_UINT,
	EVENT_USHORT,
	EVENT_BOOL,
	EVENT_HANDLED,
	EVENT_STATE,
	EVENT_ULONG,
	EVENT_SIZE,
	EVENT_POINTER,
	EVENT_CPOINTER,
	EVENT_FUNCTION,
	EVENT_CALLER,
	EVENT_REASON,
	EVENT_STRING,
	EVENT_CPUS,
	EVENT_KINDS,
	/* Of Linux's own entries (tracer/events/files.c), which have no record here: */
	EVENT_UCHAR,
	EVENT_U64,
	EVENT_TEXT,
	EVENT_BYTES,   /* any bytes, up to the entry's end */
	EVENT_CALLERS, /* eight of them */
	EVENT_ALL_KINDS,
};

struct event_field {
	const char *name; /* NULL: behind the last */
	enum event_kind kind;
};

/* Where a field stands in a record, without the common fields, all kinds. */
struct event_place {
	unsigned int offset, size, unit; /* of so many bytes is each number */
};

/* The place of field f, which is one of `fields`. The same as in the C struct. */
struct event_place event_place(const struct event_field *fields,
			       const struct event_field *f);

/* The field of that name, or NULL. */
const struct event_field *event_field_find(const struct event_field *fields,
					   const char *name, size_t len);

/* A field's value in a record, as a number, of texts, the text. */
s64 event_number(const struct event_field *fields, const struct event_field *f,
		 const void *record);
bool event_is_text(const struct event_field *f);
bool event_is_signed(const struct event_field *f);
const char *event_text(const struct event_field *fields,
		       const struct event_field *f, const void *record);

/* A record as text, as the template in list.h says. */
void event_show(struct seq *s, const struct event_field *fields,
		const char *text, const void *record);
/* The fields, and the template, as Linux's format file has them. */
void event_show_field(struct seq *s, const struct event_field *fields,
		      const struct event_field *f);
void event_show_format(struct seq *s, const struct event_field *fields,
		       const char *text);

#endif
