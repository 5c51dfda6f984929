/* SPDX-License-Identifier: MIT */
/*
 * The tags of a multiboot2 loader (Multiboot2 Specification 2.0, 3.6), GRUB for one. They stay
 * where they are.
 */
#include <arch/arch.h>
#include <boot/boot.h>
#include <boot/multiboot.h>
#include <kernel/lib/string.h>

/* Types of tags. */
enum { END = 0, CMDLINE = 1, MEMORY_MAP = 6, RSDP_OLD = 14, RSDP_NEW = 15 };

/* ACPI 6.4, 5.2.5.3 */
enum { RSDP_REVISION = 15, RSDP_1_LENGTH = 20, RSDP_2_LENGTH = 36 };

struct tag {
	u32 type;
	u32 size; /* with these two words, without the padding to 8 bytes */
};

struct memory_map_tag {
	struct tag tag;
	u32 entry_size, entry_version;
	struct multiboot_memory map[];
};

static void read_map_tag(const struct memory_map_tag *t,
			 struct multiboot_info *info)
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

static void read_tag(const struct tag *t, struct multiboot_info *info)
{
	u32 bytes = t->size - sizeof(*t);
	const u8 *words = (const u8 *)(t + 1);

	switch (t->type) {
	case CMDLINE:
		if (strnlen((const char *)words, bytes) == bytes)
			boot_fail("multiboot2 command line has no end");
		info->cmdline = (unsigned long)words;
		break;
	case MEMORY_MAP:
		read_map_tag((const void *)t, info);
		break;
	case RSDP_OLD: /* may be the first part of a new one, which has no more here */
		if (bytes >= RSDP_1_LENGTH && words[RSDP_REVISION] < 2 &&
		    !info->rsdp)
			info->rsdp = (unsigned long)words;
		break;
	case RSDP_NEW:
		if (bytes >= RSDP_2_LENGTH)
			info->rsdp = (unsigned long)words;
		break;
	}
}

void multiboot_read(u64 pa, struct multiboot_info *info,
		    const void *(*mapped)(u64 pa, u64 size, const char *what))
{
	const u32 *total = mapped(pa, 8, "multiboot2 information");
	const char *start = mapped(pa, *total, "multiboot2 information");
	const struct tag *t;

	*info = (struct multiboot_info){ 0 };
	if (pa % 8)
		boot_fail(
			"multiboot2 information at %#llx: not a multiple of 8",
			(unsigned long long)pa);
	for (u64 at = 8; at + sizeof(*t) <= *total;
	     at += ALIGN_UP((u64)t->size, 8)) {
		t = (const void *)(start + at);
		if (t->size < sizeof(*t) || t->size > *total - at)
			boot_fail("multiboot2 tag %u: %u bytes", t->type,
				  t->size);
		if (t->type == END)
			return;
		read_tag(t, info);
	}
	boot_fail("multiboot2 tags have no end");
}
