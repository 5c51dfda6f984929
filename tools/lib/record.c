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
		add_address(a, image_number(im, p + i, size));
	return true;
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
		die("%s: %s", path, strerror(errno));
	while ((n = fscanf(f, "%255s %255s %li", file, base, &offset)) == 3) {
		if (!image_value_in(im, strcmp(file, "-") ? file : NULL, base,
				    &value))
			die("%s: the image has no symbol %s", path, base);
		add_address(a, value + offset);
	}
	if (n != EOF)
		die("%s: not as mkrecord writes it", path);
	fclose(f);
}

static int compare_addrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct difference {
	void (*lacks)(const struct image *im, uint64_t site);
	void (*strange)(const struct image *im, uint64_t addr);
	size_t lacking, strangers;
};

static void compare(const struct image *im, const struct sites *s,
		    struct addresses *a, struct difference *d)
{
	size_t i = 0, j = 0;

	qsort(a->addr, a->count, sizeof(a->addr[0]), compare_addrs);
	while (i < s->count || j < a->count) {
		uint64_t site = i < s->count ? s->site[i].addr : UINT64_MAX;
		uint64_t addr = j < a->count ? a->addr[j] : UINT64_MAX;

		if (site < addr) {
			d->lacking++;
			if (d->lacks)
				d->lacks(im, site);
		} else if (addr < site) {
			d->strangers++;
			if (d->strange)
				d->strange(im, addr);
		}
		i += site <= addr;
		j += addr <= site;
	}
}

static void lacks(const struct image *im, uint64_t site)
{
	complain(im, site, "a site that the compiler did not record");
}

static void strange(const struct image *im, uint64_t addr)
{
	complain(im, addr, "recorded by the compiler, but no site");
}

void record_compare(const struct image *im, const struct sites *s,
		    struct addresses *a)
{
	struct difference d = { .lacks = lacks, .strange = strange };

	compare(im, s, a, &d);
}

void record_judge(const struct image *im, const struct arch *arch,
		  const struct sites *s, struct addresses *a)
{
	struct difference d = { 0 };

	compare(im, s, a, &d);
	if (d.strangers)
		fprintf(stderr,
			"object: %zu of %zu recorded addresses hold no site "
			"after the link%s\n",
			d.strangers, a->count,
			arch->relaxes ? ": relaxation moved them" : "");
	else if (d.lacking)
		fprintf(stderr, "object: %zu of %zu sites were not recorded\n",
			d.lacking, s->count);
	errors += d.strangers + d.lacking;
}
