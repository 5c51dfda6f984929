/* SPDX-License-Identifier: MIT */
/* Reading an architecture's rules, and knowing its synchronising instructions: target.h. */
#include "target.h"

#include <err.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSN_MOST 15 /* bytes */

static const char *const names[] = {
	[SYNC_WHOLE] = "whole", [SYNC_LINE] = "line", [SYNC_BARRIER] = "barrier"
};

/* The fields of fetch. A rule that is not applied, because its name or its type is another one,
 * would hide hazards. */
static const struct {
	const char *name;
	json_type type;
} fields[] = {
	{ "whole", JSON_STRING },      { "line", JSON_STRING },
	{ "barrier", JSON_STRING },    { "only", JSON_STRING },
	{ "breakpoint", JSON_STRING }, { "words", JSON_TRUE },
	{ "broadcast", JSON_TRUE },    { "own_stores_seen", JSON_TRUE },
	{ "unit", JSON_INTEGER },      { "ram", JSON_OBJECT },
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const char *const types[] = { [JSON_STRING] = "a text",
				     [JSON_TRUE] = "true or false",
				     [JSON_INTEGER] = "a whole number",
				     [JSON_OBJECT] = "an object" };

static size_t find_field(const char *name, const char *path)
{
	size_t i = 0;

	while (i < FIELDS && strcmp(fields[i].name, name))
		i++;
	if (i < FIELDS)
		return i;
	fprintf(stderr,
		"stale: %s: fetch: no field %s is known; accepted:", path,
		name);
	for (i = 0; i < FIELDS; i++)
		fprintf(stderr, " %s", fields[i].name);
	fputc('\n', stderr);
	exit(1);
}

static void check_fields(json_t *fetch, const char *path)
{
	const char *name;
	json_t *value;

	json_object_foreach (fetch, name, value) {
		json_type is = json_typeof(value);
		json_type must = fields[find_field(name, path)].type;

		if (must != (is == JSON_FALSE ? JSON_TRUE : is))
			errx(1, "stale: %s: fetch: %s must be %s", path, name,
			     types[must]);
	}
}

static bool compile(regex_t *regex, json_t *fetch, const char *name,
		    const char *path)
{
	json_t *value = json_object_get(fetch, name);

	if (!value)
		return false;
	if (regcomp(regex, json_string_value(value), REG_EXTENDED | REG_NOSUB))
		errx(1, "stale: %s: fetch: %s must be a regular expression",
		     path, name);
	return true;
}

void target_read(struct target *t, const char *path, const char *mode, bool big)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);
	json_t *fetch = json_object_get(root, "fetch");
	bool shared = !strcmp(mode, "shared");
	const char *breakpoint;

	if (!json_is_object(fetch))
		errx(1, "stale: %s: %s", path,
		     root ? "the field fetch is missing: an object" :
			    error.text);
	check_fields(fetch, path);
	for (enum sync s = SYNC_WHOLE; s <= SYNC_BARRIER; s++)
		t->has[s] = compile(&t->regex[s], fetch, names[s], path);
	if (!t->has[SYNC_WHOLE] && !t->has[SYNC_BARRIER])
		errx(1, "stale: %s: fetch: whole or barrier must be given",
		     path);
	t->has_only = compile(&t->only, fetch, "only", path);
	t->words = json_is_true(json_object_get(fetch, "words"));
	t->broadcast =
		shared || json_is_true(json_object_get(fetch, "broadcast"));
	t->own_stores_seen =
		json_is_true(json_object_get(fetch, "own_stores_seen"));
	t->unit = json_integer_value(json_object_get(fetch, "unit"));
	breakpoint = json_string_value(json_object_get(fetch, "breakpoint"));
	t->breakpoint = breakpoint ? strtol(breakpoint, NULL, 16) : -1;
	t->big = big;
	if (*mode && !shared && strcmp(mode, "intel") && strcmp(mode, "none"))
		errx(1,
		     "stale: mode=%s is unknown: intel, none and shared are "
		     "known",
		     mode);
	/* Intel's rules differ from AMD's by the promise for a store alone. */
	if (!strcmp(mode, "none") || (*mode && !shared && t->breakpoint >= 0))
		t->unit = 0;
	if (!strcmp(mode, "none"))
		t->breakpoint = -1;
	json_decref(root);
}

/* The instruction as the file's expressions see it. */
static void print_insn(const struct target *t, const uint8_t *p, size_t n,
		       char *text)
{
	bool reverse = t->words && !t->big;

	*text = '\0';
	for (size_t i = 0; i < n && i < INSN_MOST; i++)
		text += sprintf(text, "%02x", p[reverse ? n - 1 - i : i]);
}

enum sync target_sync(struct target *t, const uint8_t *p, size_t n)
{
	char text[2 * INSN_MOST + 1];

	print_insn(t, p, n, text);
	for (enum sync s = SYNC_WHOLE; s <= SYNC_BARRIER; s++)
		if (t->has[s] && !regexec(&t->regex[s], text, 0, NULL, 0)) {
			t->matched[s] = true;
			return s;
		}
	return SYNC_NO;
}

bool target_may_change(struct target *t, const uint8_t *p, size_t n)
{
	char text[2 * INSN_MOST + 1];

	if (!t->has_only)
		return true;
	print_insn(t, p, n, text);
	t->only_asked = true;
	if (regexec(&t->only, text, 0, NULL, 0))
		return false;
	t->only_matched = true;
	return true;
}

void target_print_unmatched(const struct target *t, FILE *out)
{
	const char *separator = "";

	fputc('[', out);
	for (enum sync s = SYNC_WHOLE; s <= SYNC_BARRIER; s++)
		if (t->has[s] && !t->matched[s]) {
			fprintf(out, "%s\"%s\"", separator, names[s]);
			separator = ", ";
		}
	if (t->only_asked && !t->only_matched)
		fprintf(out, "%s\"only\"", separator);
	fputc(']', out);
}
