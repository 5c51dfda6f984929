/* SPDX-License-Identifier: MIT */
/*
 * patchcheck: hold an order log, as the kernel's file patch_log shows it, against
 * the rules of tracer/patch/patch_check.h, on the host.
 *
 *   patchcheck FILE     (- is the standard input)
 *
 * Lines that begin with # are comments, but "# patch log 1: N entries, L lost"
 * must be there, be true, and L be 0. The others are
 *
 *   SECONDS.NANOSECONDS CPU WHAT ARGUMENTS
 *
 *   online MASK            as the log begins, wait MASK: for these CPUs
 *   batch SITES STRATEGY   step NAME SITES
 *   store KIND on|off OFFSET FUNCTION+OFFSET/SIZE
 *   run OFFSET FUNCTION...
 *   held, free leads|follows
 *   sync, done, waited, joined, left
 *
 * Masks and offsets (of the live instruction, from the text's beginning) are
 * hexadecimal. Gives its finding in one line. 0: the rules are kept. 1: broken.
 * 2: not a whole log.
 */

#include "../tracer/patch/patch_check.c"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log {
	struct patch_log_entry *entries;
	unsigned int *lines; /* of each, for messages */
	size_t n, room;
	unsigned long said, lost; /* by the header */
	bool header;
};

static void log_add(struct log *l, const struct patch_log_entry *e,
		    unsigned int line)
{
	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 1024;
		l->entries = realloc(l->entries, l->room * sizeof(*e));
		l->lines = realloc(l->lines, l->room * sizeof(*l->lines));
		if (!l->entries || !l->lines)
			errx(2, "out of memory");
	}
	l->lines[l->n] = line;
	l->entries[l->n++] = *e;
}

/* The index of a word in a list, or n. */
static unsigned int word_index(const char *const *words, unsigned int n,
			       const char *word)
{
	unsigned int i = 0;

	while (i < n && strcmp(words[i], word))
		i++;
	return i;
}

static bool parse_store(struct patch_log_entry *e, const char *text)
{
	char kind[16], state[8];

	if (sscanf(text, "%15s %7s %x", kind, state, &e->a) != 3)
		return false;
	e->b = word_index(patch_store_words, STORES, kind);
	if (!strcmp(state, "on"))
		e->b |= STORE_ON;
	else if (strcmp(state, "off"))
		return false;
	return STORE_KIND(e->b) < STORES;
}

/* The fields that the rules look at. The rest is for people. */
static bool parse_arguments(struct patch_log_entry *e, const char *text)
{
	switch (e->what) {
	case LOG_STORE:
		return parse_store(e, text);
	case LOG_RUN:
	case LOG_ONLINE:
	case LOG_WAIT:
		return sscanf(text, "%x", &e->a) == 1;
	default:
		return true;
	}
}

static void parse(struct log *l, const char *text, unsigned int line)
{
	unsigned long long seconds;
	unsigned int ns, cpu;
	struct patch_log_entry e = { 0 };
	char what[16];
	int used = 0;

	if (text[0] == '#') {
		l->header |= sscanf(text, "# patch log 1: %lu entries, %lu",
				    &l->said, &l->lost) == 2;
		return;
	}
	if (sscanf(text, "%llu.%u %u %15s%n", &seconds, &ns, &cpu, what,
		   &used) != 4)
		errx(2, "line %u is no entry: %s", line, text);
	e.time = seconds * 1000000000 + ns;
	e.cpu = cpu;
	e.what = word_index(patch_log_words, LOG_WHATS, what);
	if (e.cpu != cpu || e.what == LOG_WHATS ||
	    !parse_arguments(&e, text + used))
		errx(2, "line %u is no entry: %s", line, text);
	log_add(l, &e, line);
}

static void read_log(struct log *l, FILE *f)
{
	char text[256];
	unsigned int line;

	for (line = 1; fgets(text, sizeof(text), f); line++) {
		text[strcspn(text, "\r\n")] = '\0';
		if (text[0])
			parse(l, text, line);
	}
}

static int judge(const struct log *l)
{
	struct patch_check c = { .slots = 1 };
	size_t i;

	while (c.slots < 2 * l->n + 2)
		c.slots *= 2;
	c.sites = calloc(c.slots, sizeof(*c.sites));
	if (!c.sites)
		errx(2, "out of memory");
	for (i = 0; i < l->n; i++)
		patch_check_entry(&c, &l->entries[i]);
	free(c.sites);
	if (c.rule) {
		printf("broken: line %u: CPU %u: %s\n", l->lines[c.at - 1],
		       c.cpu, patch_rule_words[c.rule]);
		return 1;
	}
	printf("kept: %u entries, %u batches, %u syncs, %u runs\n", c.n,
	       c.batches, c.syncs, c.runs);
	return 0;
}

int main(int argc, char **argv)
{
	struct log l = { 0 };
	FILE *f;

	if (argc != 2)
		errx(2, "usage: patchcheck FILE, - for the standard input");
	f = strcmp(argv[1], "-") ? fopen(argv[1], "r") : stdin;
	if (!f)
		errx(2, "cannot open %s", argv[1]);
	read_log(&l, f);
	if (!l.header)
		errx(2, "%s does not say \"# patch log 1\"", argv[1]);
	if (l.lost)
		errx(2, "%lu entries were lost: nothing can be said", l.lost);
	if (l.n < l.said)
		errx(2, "%zu of %lu entries are there", l.n, l.said);
	if (!l.n)
		errx(2, "%s has no entry: nothing was watched (patchlog=on)",
		     argv[1]);
	return judge(&l);
}
