/* SPDX-License-Identifier: MIT */
/* A guest's memory: guest.h. */
#include "guest.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

/* ---- Types --------------------------------------------------------------------- */

/* A struct or an enum with a name, in a tree by tag and name. */
struct type {
	int tag;
	const char *name;
	Dwarf_Die die;
};
static void *types;

static int compare_types(const void *a, const void *b)
{
	const struct type *x = a, *y = b;

	return x->tag != y->tag ? x->tag - y->tag : strcmp(x->name, y->name);
}

static void add_type(Dwarf_Die *die)
{
	struct type *t = malloc(sizeof(*t));

	if (!t)
		errx(1, "out of memory");
	*t = (struct type){ dwarf_tag(die), dwarf_diename(die), *die };
	if (!t->name || !dwarf_haschildren(die) ||
	    *(struct type **)tsearch(t, &types, compare_types) != t)
		free(t);
}

static void read_types(const struct guest *g)
{
	Dwarf *dw = dwarf_begin_elf(g->im.elf, DWARF_C_READ, NULL);
	Dwarf_CU *cu = NULL;
	Dwarf_Die root, die;

	if (!dw)
		errx(1, "%s: no debug information", g->im.path);
	while (!dwarf_get_units(dw, cu, &cu, NULL, NULL, &root, NULL)) {
		if (dwarf_child(&root, &die))
			continue;
		do {
			if (dwarf_tag(&die) == DW_TAG_structure_type ||
			    dwarf_tag(&die) == DW_TAG_enumeration_type)
				add_type(&die);
		} while (!dwarf_siblingof(&die, &die));
	}
	if (!types)
		errx(1, "%s: no debug information", g->im.path);
}

static Dwarf_Die *find_type(const struct guest *g, int tag, const char *name)
{
	struct type key = { .tag = tag, .name = name };
	struct type **t = tfind(&key, &types, compare_types);

	if (!t)
		errx(1, "%s: it has no type '%s'; is it nopl's kernel?",
		     g->im.path, name);
	return &(*t)->die;
}

/* An attribute that is not there is 0: a union's member is at no offset. */
static u64 number_of(const struct guest *g, Dwarf_Die *die,
		     unsigned int attribute)
{
	Dwarf_Attribute attr;
	Dwarf_Word value = 0;

	if (dwarf_attr_integrate(die, attribute, &attr) &&
	    dwarf_formudata(&attr, &value))
		errx(1, "%s: debug information: %s", g->im.path,
		     dwarf_errmsg(-1));
	return value;
}

/* Never 0: the callers walk arrays in steps of it. */
u64 guest_size(const struct guest *g, const char *type)
{
	u64 size = number_of(g, find_type(g, DW_TAG_structure_type, type),
			     DW_AT_byte_size);

	if (!size)
		errx(1, "%s: struct %s has no size", g->im.path, type);
	return size;
}

/* The type of a member, without typedefs and qualifiers. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	return dwarf_formref_die(dwarf_attr(die, DW_AT_type, &attr), type) &&
	       !dwarf_peel_type(type, type);
}

static bool find_member(Dwarf_Die *type, const char *name, size_t len,
			Dwarf_Die *found)
{
	const char *has;

	if (dwarf_child(type, found))
		return false;
	do {
		has = dwarf_diename(found);
		if (has && dwarf_tag(found) == DW_TAG_member &&
		    !strncmp(has, name, len) && !has[len])
			return true;
	} while (!dwarf_siblingof(found, found));
	return false;
}

struct member guest_member(const struct guest *g, const char *type,
			   const char *name)
{
	Dwarf_Die outer = *find_type(g, DW_TAG_structure_type, type), inner;
	struct member m = { 0, 0 };
	Dwarf_Word size;
	size_t len;

	for (;; name += len + 1) {
		len = strcspn(name, ".");
		if (!find_member(&outer, name, len, &inner))
			errx(1, "%s: struct %s has no '%s'", g->im.path, type,
			     name);
		m.at += number_of(g, &inner, DW_AT_data_member_location);
		if (!type_of(&inner, &outer) ||
		    dwarf_aggregate_size(&outer, &size))
			errx(1, "%s: struct %s: '%s' has no size", g->im.path,
			     type, name);
		m.size = size;
		if (!name[len])
			return m;
	}
}

s64 guest_enumerator(const struct guest *g, const char *type, const char *name)
{
	Dwarf_Die die, *t = find_type(g, DW_TAG_enumeration_type, type);
	Dwarf_Attribute attr;
	Dwarf_Sword value;
	const char *has;

	if (!dwarf_child(t, &die))
		do {
			has = dwarf_diename(&die);
			if (has && !strcmp(has, name) &&
			    !dwarf_formsdata(dwarf_attr(&die, DW_AT_const_value,
							&attr),
					     &value))
				return value;
		} while (!dwarf_siblingof(&die, &die));
	errx(1, "%s: enum %s has no %s", g->im.path, type, name);
}

/* ---- Memory -------------------------------------------------------------------- */

const uint8_t *guest_at(const struct guest *g, u64 addr, u64 len)
{
	u64 at = addr - g->base;

	return addr >= g->base && at <= g->size && g->size - at >= len ?
		       g->memory + at :
		       NULL;
}

u64 guest_number(const struct guest *g, u64 addr, unsigned int n)
{
	const uint8_t *p = guest_at(g, addr, n);

	return p ? image_number(&g->im, p, n) : 0;
}

u64 guest_pointer(const struct guest *g, u64 addr)
{
	return guest_number(g, addr, g->im.pointer_size);
}

const char *guest_text(const struct guest *g, u64 addr)
{
	const uint8_t *p = guest_at(g, addr, PAGE);

	return p && memchr(p, 0, PAGE) ? (const char *)p : "";
}

u64 guest_get(const struct guest *g, u64 addr, const char *type,
	      const char *name)
{
	struct member m = guest_member(g, type, name);

	if (m.size > sizeof(u64))
		errx(1, "%s: %s of struct %s is no number", g->im.path, name,
		     type);
	return guest_number(g, addr + m.at, m.size);
}

u64 guest_symbol(const struct guest *g, const char *file, const char *name)
{
	u64 value;

	if (!image_value_in(&g->im, file, name, &value))
		errx(1, "%s: it has no '%s'; is it nopl's kernel?", g->im.path,
		     name);
	return value;
}

void guest_open(struct guest *g, const char *elf)
{
	*g = (struct guest){ 0 };
	image_open_data(&g->im, elf);
	read_types(g);
}

/* The section of constants, which no kernel changes: its place, and its contents. */
static const uint8_t *constants(const struct guest *g, u64 *addr, size_t *len)
{
	const uint8_t *bytes = image_section(&g->im, ".rodata", len);
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t strings;

	if (elf_getshdrstrndx(g->im.elf, &strings))
		errx(1, "%s: no section names", g->im.path);
	while (bytes && (scn = elf_nextscn(g->im.elf, scn))) {
		elf_header(g->im.path, scn, &sh);
		if (!strcmp(elf_text(g->im.path, g->im.elf, strings,
				     sh.sh_name),
			    ".rodata")) {
			*addr = g->im.pointer_size == 4 ? (u32)sh.sh_addr :
							  sh.sh_addr;
			return bytes;
		}
	}
	errx(1, "%s: no section .rodata", g->im.path);
}

/*
 * The image is a part of the kernel's direct map of RAM. So one place of the image that is
 * found in the memory says where everything is. It also shows that this is the kernel.
 */
static void find_kernel(struct guest *g, const char *file)
{
	const uint8_t *bytes;
	size_t len, at;
	u64 addr;

	bytes = constants(g, &addr, &len);
	for (at = addr % PAGE; at + len <= g->size; at += PAGE)
		if (!memcmp(g->memory + at, bytes, len)) {
			g->base = addr - at;
			return;
		}
	errx(1, "%s: the kernel of %s is not in this memory", file, g->im.path);
}

static void map_file(struct guest *g, const char *file)
{
	int fd = open(file, O_RDONLY);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		p = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || p == MAP_FAILED)
		errx(1, "%s: %s", file,
		     fd < 0 || errno ? strerror(errno) : "it is empty");
	close(fd);
	g->memory = p;
	g->size = st.st_size;
}

void guest_map(struct guest *g, const char *file)
{
	errno = 0;
	map_file(g, file);
	find_kernel(g, file);
}

/* ---- Memory that QEMU writes into a file ---------------------------------------- */

static char saved[64];

static void remove_saved(void)
{
	unlink(saved);
}

/* A file that is gone when the program ends, in memory where the host has that. */
static void make_saved(void)
{
	int fd;

	snprintf(saved, sizeof(saved), "%s/nopl-memory-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	fd = mkstemp(saved);
	if (fd < 0)
		err(1, "%s", saved);
	close(fd);
	atexit(remove_saved);
}

/* From the address of a symbol in the image to that in RAM. */
static u64 physical(const struct guest *g, u64 addr)
{
	GElf_Phdr ph;

	for (int i = 0; gelf_getphdr(g->im.elf, i, &ph); i++) {
		u64 start =
			g->im.pointer_size == 4 ? (u32)ph.p_vaddr : ph.p_vaddr;

		if (ph.p_type == PT_LOAD && addr >= start &&
		    addr - start < ph.p_memsz)
			return addr - start + ph.p_paddr + g->moved;
	}
	errx(1, "%s: %#llx is in no segment", g->im.path,
	     (unsigned long long)addr);
}

/*
 * The RAM that the kernel uses: its image, and the ranges of boot_info, which lies in the image.
 * false: boot_info says nothing yet, or it is not that.
 */
static bool find_ram(const struct guest *g, u64 info, u64 *start, u64 *end)
{
	struct member mem = guest_member(g, "boot_info", "mem");
	u64 size = guest_size(g, "boot_range"), at, lo, hi;
	u64 nr = guest_get(g, info, "boot_info", "nr_mem");

	*start = *end = physical(g, g->im.text);
	for (u64 i = 0; i < nr && i < mem.size / size; i++) {
		at = info + mem.at + i * size;
		lo = guest_get(g, at, "boot_range", "start");
		hi = guest_get(g, at, "boot_range", "end");
		*start = lo < *start ? lo : *start;
		*end = hi > *end ? hi : *end;
	}
	*start &= ~(u64)(PAGE - 1);
	return nr && nr <= mem.size / size && *end - *start <= 1ull << 31;
}

/*
 * QEMU may load an image elsewhere than at its physical addresses. If the constants are not there,
 * CPU 0 says where they are. It is not asked first, because it may run firmware, which has
 * other mappings.
 */
static void find_place(struct guest *g, struct qmp *q)
{
	u64 addr, at;
	size_t len;
	const uint8_t *bytes = constants(g, &addr, &len);

	len = len < PAGE ? len : PAGE;
	qmp_save(q, physical(g, addr), len, saved);
	map_file(g, saved);
	if (g->size != len || memcmp(g->memory, bytes, len))
		if (qmp_place(q, addr, &at))
			g->moved = at - physical(g, addr);
}

void guest_save(struct guest *g, const char *socket)
{
	u64 info = guest_symbol(g, NULL, "boot_info"), start, end;
	struct qmp *q = qmp_stop(socket);

	make_saved();
	find_place(g, q);
	qmp_save(q, physical(g, info), guest_size(g, "boot_info"), saved);
	map_file(g, saved);
	g->base = info;
	if (!find_ram(g, info, &start, &end))
		errx(1, "%s: %s does not run there, or has just begun", socket,
		     g->im.path);
	qmp_save(q, start, end - start, saved);
	qmp_continue(q);
	map_file(g, saved);
	find_kernel(g, socket);
}
