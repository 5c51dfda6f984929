/* SPDX-License-Identifier: MIT */
/* Reading a port's machine.json: see arch.h. */
#include "arch.h"

#include <err.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kind of a field of a JSON object, and where in a struct it goes. */
struct field {
	const char *name;
	enum { TEXT, LIST, TEXTS, CLAIMS, NUMBER, FLAG } type;
	bool required;
	size_t at;
	int otherwise; /* the number where the field is missing */
};

static const char *const type_names[] = { "a string",
					  "a list of strings",
					  "an object of strings",
					  "an object of objects of strings",
					  "a number",
					  "true or false" };

#define FIELD(s, type, required, name)                                         \
	{                                                                      \
#name, type, required, offsetof(struct s, name), 0             \
	}

static const struct field code_fields[] = {
	FIELD(arch, LIST, true, calls),
	FIELD(arch, LIST, true, jumps),
	FIELD(arch, LIST, true, branches),
	FIELD(arch, LIST, true, stops),
	FIELD(arch, LIST, true, plain),
	FIELD(arch, LIST, false, prefixes),
	FIELD(arch, LIST, true, labels),
	FIELD(arch, TEXT, true, call),
	FIELD(arch, TEXT, false, far_call),
	FIELD(arch, TEXT, false, far_first),
	FIELD(arch, TEXT, false, return_operand),
	FIELD(arch, LIST, false, returns),
	FIELD(arch, TEXTS, true, sync),
	FIELD(arch, CLAIMS, false, fences),
	FIELD(arch, LIST, false, barriers),
	FIELD(arch, TEXTS, false, behind),
	FIELD(arch, TEXTS, false, before),
	FIELD(arch, NUMBER, false, call_field),
	FIELD(arch, FLAG, false, relaxes),
	FIELD(arch, FLAG, false, delay_slots),
	FIELD(arch, NUMBER, true, sp),
	{ "link", NUMBER, false, offsetof(struct arch, link), -1 },
	{ "alt", NUMBER, false, offsetof(struct arch, alt), -1 },
	FIELD(arch, NUMBER, false, cfa),
	FIELD(arch, NUMBER, false, cfi_machine),
	{ NULL },
};

static const struct field site_fields[] = {
	FIELD(format, TEXT, false, stub),
	FIELD(format, TEXT, false, nops),
	FIELD(format, TEXT, false, before),
	FIELD(format, TEXT, false, section),
	FIELD(format, NUMBER, false, record_before),
	FIELD(format, NUMBER, false, second_relocation),
	FIELD(format, FLAG, false, far),
	{ NULL },
};

/* Where in the file an object stands, for messages. */
struct place {
	const char *file, *key;
};

static const struct field *find_field(const struct field *fields,
				      const char *name, struct place p)
{
	char known[400] = "";
	const struct field *f;

	for (f = fields; f->name; f++) {
		if (!strcmp(f->name, name))
			return f;
		strcat(strcat(known, " "), f->name);
	}
	errx(1, "%s: %s: no field %s is known; accepted:%s", p.file, p.key,
	     name, known);
}

static const char **read_list(json_t *value)
{
	size_t n = json_array_size(value), i;
	const char **list = calloc(n + 1, sizeof(*list));

	if (!list)
		errx(1, "out of memory");
	for (i = 0; i < n; i++)
		list[i] = json_string_value(json_array_get(value, i));
	return list;
}

static bool is_list(json_t *value)
{
	size_t i;

	for (i = 0; i < json_array_size(value); i++)
		if (!json_is_string(json_array_get(value, i)))
			return false;
	return json_is_array(value);
}

static bool is_texts(json_t *value)
{
	const char *name;
	json_t *text;

	json_object_foreach (value, name, text) {
		if (!json_is_string(text))
			return false;
	}
	return json_is_object(value);
}

static bool is_claims(json_t *value)
{
	const char *name;
	json_t *texts;

	json_object_foreach (value, name, texts) {
		if (!is_texts(texts))
			return false;
	}
	return json_is_object(value);
}

static bool has_type(json_t *value, const struct field *f)
{
	switch (f->type) {
	case TEXT:
		return json_is_string(value);
	case LIST:
		return is_list(value);
	case TEXTS:
		return is_texts(value);
	case CLAIMS:
		return is_claims(value);
	case NUMBER:
		return json_is_integer(value);
	case FLAG:
		return json_is_boolean(value);
	}
	return false;
}

static void take_field(const struct field *f, json_t *value, void *to)
{
	to = (char *)to + f->at;
	switch (f->type) {
	case TEXT:
		*(const char **)to = json_string_value(value);
		break;
	case LIST:
		*(const char ***)to = read_list(value);
		break;
	case TEXTS:
	case CLAIMS:
		*(json_t **)to = value;
		break;
	case NUMBER:
		*(int *)to = value ? json_integer_value(value) : f->otherwise;
		break;
	case FLAG:
		*(bool *)to = json_is_true(value);
		break;
	}
}

/* Take all fields of an object: none unknown, none of a wrong type, none missing. */
static void read_fields(const struct field *fields, json_t *object,
			struct place p, void *to)
{
	const struct field *f;
	const char *name;
	json_t *value;

	json_object_foreach (object, name, value) {
		f = find_field(fields, name, p);
		if (!has_type(value, f))
			errx(1, "%s: %s: %s must be %s", p.file, p.key, name,
			     type_names[f->type]);
	}
	for (f = fields; f->name; f++) {
		value = json_object_get(object, f->name);
		if (!value && f->required)
			errx(1, "%s: %s: the field %s is missing: %s", p.file,
			     p.key, f->name, type_names[f->type]);
		take_field(f, value, to);
	}
}

/* A key of the file that must be an object. */
static json_t *object_of(const struct arch *arch, const char *key)
{
	json_t *object = json_object_get(arch->root, key);

	if (!json_is_object(object))
		errx(1, "%s: the field %s is missing: an object", arch->file,
		     key);
	return object;
}

const struct arch *arch_find(const char *name)
{
	static struct arch arch;
	static char file[200];
	json_error_t error;

	snprintf(file, sizeof(file), "arch/%s/machine.json", name);
	arch.file = file;
	arch.root = json_load_file(file, 0, &error);
	if (!arch.root && error.line < 0)
		errx(1, "unknown --arch %s: there is no %s", name, file);
	if (!arch.root)
		errx(1, "%s:%d: %s", file, error.line, error.text);
	read_fields(code_fields, object_of(&arch, "code"),
		    (struct place){ file, "code" }, &arch);
	return &arch;
}

const struct format *format_find(const struct arch *arch, const char *name)
{
	static struct format format;
	json_t *sites = object_of(arch, "sites"), *other;
	json_t *object = json_object_get(sites, name);
	char known[400] = "";
	const char *key;

	if (!json_is_object(object)) {
		json_object_foreach (sites, key, other)
			if (strlen(known) + strlen(key) + 2 < sizeof(known))
				strcat(strcat(known, " "), key);
		errx(1, "unknown --sites %s; %s has:%s", name, arch->file,
		     known);
	}
	read_fields(site_fields, object, (struct place){ arch->file, name },
		    &format);
	if (!format.stub == !format.nops)
		errx(1, "%s: %s: either stub or nops must be given", arch->file,
		     name);
	return &format;
}

bool arch_lists(const char *const *list, const char *mnemonic)
{
	for (; *list; list++)
		if (!fnmatch(*list, mnemonic, 0))
			return true;
	return false;
}
