/* SPDX-License-Identifier: MIT */
/*
 * The tags of a multiboot2 loader (Multiboot2 Specification 2.0, 3.6), GRUB for one. They
 * stay where they are: the start info made here points at them.
 */
#include <arch/arch.h>
#include <boot/boot.h>
#include <kernel/lib/string.h>
#include <boot/x86_64/start_info.h>

/* Types of tags. */
enum { END = 0, CMDLINE = 1, MEMORY_MAP = 6, RSDP_OLD = 14, RSDP_NEW = 15 };

struct tag {
	u32 type, size; /* size: with these two words, without the padding to 8 bytes */
};

struct memory_map_tag {
	struct tag tag;
	u32 entry_size, entry_version;
	struct start_memory map[];
};

static void read_map_tag(const struct memory_map_tag *t,
			 struct start_info *info)
{
	u32 bytes = t->tag.size - sizeof(*t);

	if (t->tag.size < sizeof(*t) || t->entry_size != sizeof(t->map[0]) ||
	    bytes % sizeof(t->map[0]))
		boot_fail("multiboot2 memory map of %u bytes: not in entries "
			  "of %zu",
			  t->tag.size, sizeof(t->map[0]));
	info->memory_map = (unsigned long)t->map;
	info->nr_memory_map = bytes / sizeof(t->map[0]);
}

static void read_tag(const struct tag *t, struct start_info *info)
{
	u32 bytes = t->size - sizeof(*t);
	const struct rsdp *r = (const void *)(t + 1);

	switch (t->type) {
	case CMDLINE:
		if (strnlen((const char *)r, bytes) == bytes)
			boot_fail("multiboot2 command line has no end");
		info->cmdline = (unsigned long)r;
		break;
	case MEMORY_MAP:
		read_map_tag((const void *)t, info);
		break;
	case RSDP_OLD: /* may be the first part of a new one, which has no more here */
		if (bytes >= RSDP_1_LENGTH && r->revision < 2 && !info->rsdp)
			info->rsdp = (unsigned long)r;
		break;
	case RSDP_NEW:
		if (bytes >= sizeof(*r))
			info->rsdp = (unsigned long)r;
		break;
	}
}

void multiboot_read(u64 pa, struct start_info *info)
{
	const u32 *total = firmware_mapped(pa, 8, "multiboot2 information");
	const char *start = firmware_mapped(pa, *total, "multiboot2 information");
	const struct tag *t;

	*info = (struct start_info){ .magic = START_INFO_MAGIC, .version = 1 };
	if (pa % 8)
		boot_fail("multiboot2 information at %#llx: not a multiple of 8",
			  (unsigned long long)pa);
	for (u64 at = 8; at + sizeof(*t) <= *total; at += ALIGN_UP((u64)t->size, 8)) {
		t = (const void *)(start + at);
		if (t->size < sizeof(*t) || t->size > *total - at)
			boot_fail("multiboot2 tag %u: %u bytes", t->type, t->size);
		if (t->type == END)
			return;
		read_tag(t, info);
	}
	boot_fail("multiboot2 tags have no end");
}
