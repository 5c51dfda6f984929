/* SPDX-License-Identifier: MIT */
/* Records made before the link, and their comparison: see record.h. */
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool record_compiler(const struct image *im, const struct format *format,
		     struct addresses *a)
{
	unsigned int size = im->pointer_size;
	const uint8_t *p;
	size_t len, i;

	p = format->section ? image_section(im, format->section, &len) : NULL;
	if (!p)
		return false;
	for (i = 0; i + size <= len; i += size)
		add_address(a, image_number(im, p + i, size) +
				       format->record_before);
	return a->count;
}

void record_objects(const struct image *im, const char *path,
		    struct addresses *a)
{
	FILE *f = fopen(path, "r");
	char file[256], base[256];
	uint64_t value;
	long offset;
	int n;

	if (!f)
		errx(1, "%s: %s", path, strerror(errno));
	while ((n = fscanf(f, "%255s %255s %li", file, base, &offset)) == 3) {
		if (!image_value_in(im, strcmp(file, "-") ? file : NULL, base,
				    &value))
			errx(1, "%s: the image has no symbol %s", path, base);
		add_address(a, value + offset);
	}
	if (n != EOF || !a->count)
		errx(1, "%s: not as mkrecord writes it, a line for each site",
		     path);
	fclose(f);
}

static int compare_addrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void record_compare(const struct image *im, const struct addresses *sites,
		    struct addresses *a)
{
	qsort(a->addr, a->count, sizeof(a->addr[0]), compare_addrs);
	compare_addresses(im, sites, a,
			  "a site that the compiler did not record",
			  "recorded by the compiler, but no site");
}

void record_judge(const struct image *im, const struct arch *arch,
		  const struct addresses *sites, struct addresses *a)
{
	struct difference d;

	qsort(a->addr, a->count, sizeof(a->addr[0]), compare_addrs);
	d = compare_addresses(im, sites, a, NULL, NULL);
	if (d.strange)
		fprintf(stderr,
			"object: %zu of %zu recorded addresses hold no site "
			"after the link%s\n",
			d.strange, a->count,
			arch->relaxes ? ": relaxation moved them" : "");
	else if (d.lacking)
		fprintf(stderr, "object: %zu of %zu sites were not recorded\n",
			d.lacking, sites->count);
	errors += d.strange + d.lacking;
}
