/* SPDX-License-Identifier: MIT */
#include "names.h"
#include "scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One word each, because a reader knows them from elsewhere: ten, and no more. */
static const char *const known[] = {
	/* C's own: the compiler calls the first four by these names. */
	"memcmp", "memcpy", "memmove", "memset", "snprintf",
	/* Of kernels: documents about ftrace use these names in their examples. */
	"kfree", "kmalloc", "panic", "printk", "schedule"
};

/* The length of a name, without the suffix of a compiler's copy: .isra.0 and others. */
static size_t name_length(const struct symbol *s)
{
	return strcspn(s->name, ".");
}

static bool is_known(const struct symbol *s)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i]) == name_length(s) &&
		    !strncmp(known[i], s->name, name_length(s)))
			return true;
	return false;
}

static int compare_functions(const void *a, const void *b)
{
	const struct symbol *x = *(const struct symbol *const *)a,
			    *y = *(const struct symbol *const *)b;
	size_t n = name_length(x), m = name_length(y);
	int diff = strncmp(x->name, y->name, n < m ? n : m);

	return diff   ? diff :
	       n != m ? (n > m) - (n < m) :
			strcmp(x->file, y->file);
}

/* The compiler may split a function, or copy it for some of its callers, in the same file. */
static bool is_copy(const struct symbol *x, const struct symbol *y)
{
	return !strcmp(x->file, y->file) &&
	       (x->name[name_length(x)] || y->name[name_length(y)]);
}

static void say_name(const struct image *im, const struct symbol *s,
		     const char *wrong, const char *also)
{
	char text[400];

	snprintf(text, sizeof(text), "in %s: %s%s", s->file, wrong, also);
	complain(im, s->addr, text);
}

void names_check(const struct image *im)
{
	const struct symbol **f = calloc(im->nr_symbols + 1, sizeof(*f));
	size_t n = 0;

	if (!f)
		errx(1, "out of memory");
	/* Names that begin with _ are the compiler's and the linker's. */
	for (size_t i = 0; i < im->nr_symbols; i++)
		if (im->symbols[i].name[0] != '_' &&
		    im->symbols[i].name[0] != '.')
			f[n++] = &im->symbols[i];
	qsort(f, n, sizeof(*f), compare_functions);
	for (size_t i = 0; i < n; i++) {
		if (!memchr(f[i]->name, '_', name_length(f[i])) &&
		    !is_known(f[i]))
			say_name(im, f[i],
				 "a name of one word; a trace needs two, "
				 "with the subject",
				 "");
		if (i && name_length(f[i]) == name_length(f[i - 1]) &&
		    !strncmp(f[i]->name, f[i - 1]->name, name_length(f[i])) &&
		    !is_copy(f[i], f[i - 1]))
			say_name(im, f[i],
				 "a name that stands for another function, "
				 "too, in ",
				 f[i - 1]->file);
	}
	free(f);
}
