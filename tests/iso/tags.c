/* SPDX-License-Identifier: MIT */
/*
 * The kernel's reader of multiboot2's tags on the host, with damaged lists of tags. The compiler's
 * sanitizers see every byte that is read outside of a list. It is read to its end, or
 * boot_fail() says in one line why not.
 *
 *   tags COUNT     first each kind of damage alone, then that many damaged copies
 */
#define ARCH_ARCH_H
#include "../../boot/multiboot.c"

#include "refusal.h"

#include <stdlib.h>
#include <unistd.h>

#define LIST 136 /* bytes of list[] */
#define AT(byte) ((byte) / 4)

/* As GRUB writes it: command line, an old RSDP, a map of two ranges, a tag that is not known. */
static const u32 list[LIST / 4] = {
	LIST,
	0,
	CMDLINE,
	14,
	'a' | '=' << 8 | 'b' << 16 | ' ' << 24,
	'c', /* 8 */
	RSDP_OLD,
	28,
	0,
	0,
	0,
	0,
	0,
	0, /* 24 */
	MEMORY_MAP,
	64,
	24,
	0,
	0,
	0,
	0x9fc00,
	0,
	1,
	0,
	0x100000,
	0,
	0xff00000,
	0,
	1,
	0, /* 56 */
	77,
	8, /* 120 */
	END,
	8, /* 128 */
};

/* One word changed, and the beginning of the refusal, or NULL: it is read. */
static const struct damage {
	u32 at, value;
	const char *says;
} damages[] = {
	{ 4, 1, NULL },
	{ 0, 7, "multiboot2 tags have no end" },
	{ 0, 16, "multiboot2 tag 1: 14 bytes" },
	{ 0, LIST - 8, "multiboot2 tags have no end" },
	{ 0, LIST + 8, NULL },
	{ 0, 0xffffffff, "multiboot2 information" },
	{ 12, 0, "multiboot2 tag 1: 0 bytes" },
	{ 12, 7, "multiboot2 tag 1: 7 bytes" },
	{ 12, 13, "multiboot2 command line has no end" },
	{ 12, 0xfffffff8, "multiboot2 tag 1: 4294967288 bytes" },
	{ 60, 15, "multiboot2 memory map of 15 bytes" },
	{ 60, 63, "multiboot2 memory map of 63 bytes" },
	{ 64, 0, "multiboot2 memory map of 64 bytes" },
	{ 64, 32, "multiboot2 memory map of 64 bytes" },
	{ 124, 24, "multiboot2 tag 77: 24 bytes" },
	{ 132, 0, "multiboot2 tag 0: 0 bytes" },
};

static u64 touched;
static u64 begin, end; /* of the copy */

/* Memory ends with the copy. */
static const void *mapped_copy(u64 pa, u64 size, const char *what)
{
	if (pa < begin || pa > end || size > end - pa)
		boot_fail("%s: not below 4 GiB", what);
	return (const void *)pa;
}

static void touch(u64 at, u64 bytes)
{
	while (bytes--)
		touched += *(const char *)at++;
}

/* Is it read to its end? Then each byte that it names is read, too. */
static bool read_copy(const u32 *from, u32 bytes)
{
	char *copy = malloc(bytes);
	struct multiboot_info info;
	bool whole = false;

	memcpy(copy, from, bytes);
	begin = (u64)copy;
	end = begin + bytes;
	why[0] = '\0';
	if (!setjmp(given_up)) {
		multiboot_read(begin, &info, mapped_copy);
		if (info.cmdline)
			touch(info.cmdline, strlen((char *)info.cmdline) + 1);
		if (info.rsdp)
			touch(info.rsdp, RSDP_1_LENGTH);
		touch(info.memory_map,
		      info.nr_memory_map * sizeof(struct multiboot_memory));
		whole = true;
	}
	free(copy);
	return whole;
}

static bool damages_are_told(void)
{
	u32 copy[LIST / 4 + 2] = { 0 };

	for (unsigned int i = 0; i < sizeof(damages) / sizeof(damages[0]);
	     i++) {
		const struct damage *d = &damages[i];

		memcpy(copy, list, LIST);
		copy[AT(d->at)] = d->value;
		if (read_copy(copy, sizeof(copy)) != !d->says ||
		    (d->says && strncmp(why, d->says, strlen(d->says)))) {
			printf("word at %u = %u: '%s', expected '%s'\n", d->at,
			       d->value, why, d->says ? d->says : "");
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 0) : 0,
		      good = 0;

	alarm(100); /* a reader that comes to no end */
	if (!damages_are_told())
		return 1;
	srandom(1);
	for (unsigned long i = 0; i < count; i++) {
		u32 copy[LIST / 4];

		memcpy(copy, list, LIST);
		for (long n = 1 + random() % 4; n; n--)
			copy[random() % (LIST / 4)] =
				random() % 2 ? random() % 160 : random() * 2;
		good += read_copy(copy, LIST);
		if (strchr(why, '\n'))
			return 1;
	}
	printf("%lu read, %lu refused, %llu\n", good, count - good,
	       (unsigned long long)touched);
	return 0;
}
