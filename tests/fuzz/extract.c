/* SPDX-License-Identifier: MIT */
/*
 * tools/extract over a memory that is damaged where extract looks: the structures of the tracer,
 * the beginnings of a ring's pages. An input replaces these bytes, one place behind the other.
 *
 *   extract KERNEL MEMORY INPUT     its first byte chooses the format, and the instance
 *   extract KERNEL MEMORY >INPUT    the bytes that stand there
 */
#include <tools/extract/trace.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <tracer/ring/ring.h>

#define PAGE_HEAD 1024 /* bytes of a page that are damaged */

static struct guest guest;
static struct place {
	u64 at; /* in the memory */
	size_t len;
	const uint8_t *was;
} places[100];
static unsigned int nr_places;

static void add_place(u64 addr, size_t len)
{
	const uint8_t *at = guest_at(&guest, addr, len);

	if (at && nr_places < sizeof(places) / sizeof(places[0]))
		places[nr_places++] =
			(struct place){ at - guest.memory, len,
					memcpy(malloc(len), at, len) };
}

static void add_symbol(const char *file, const char *name, size_t len)
{
	add_place(guest_symbol(&guest, file, name), len);
}

static void add_ring(u64 ring)
{
	u64 pages = guest_get(&guest, ring, "ring", "pages");
	u64 nr = guest_get(&guest, ring, "ring", "nr");

	add_place(ring, guest_size(&guest, "ring"));
	add_place(guest_get(&guest, ring, "ring", "at"), 8);
	add_place(pages, nr * guest.im.pointer_size);
	for (u64 i = 0; i < nr && i < 2; i++)
		add_place(guest_pointer(&guest,
					pages + i * guest.im.pointer_size),
			  PAGE_HEAD);
}

static void add_instance(u64 at)
{
	u64 rings = guest_get(&guest, at, "trace_instance", "buffer");

	add_place(at, guest_size(&guest, "trace_instance"));
	add_place(guest_get(&guest, at, "trace_instance", "tracer"),
		  guest_size(&guest, "tracer"));
	add_ring(rings);
	add_ring(rings + guest_size(&guest, "ring"));
}

void fuzz_setup(char **argv)
{
	u64 top;

	guest_open(&guest, argv[1]);
	guest_map(&guest, argv[2]);
	guest.memory = mmap(NULL, guest.size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE, open(argv[2], O_RDONLY), 0);
	top = guest_symbol(&guest, NULL, "trace_instances");
	add_instance(top);
	add_instance(top + guest_size(&guest, "trace_instance"));
	add_symbol(NULL, "nr_cpus", 4);
	add_symbol("time.c", "to_ns", guest_size(&guest, "ratio"));
	add_symbol("time.c", "clock_base", 8);
	add_symbol("comm.c", "comms", 4 * guest_size(&guest, "comm"));
	add_symbol("latency.c", "longest", guest_size(&guest, "latency"));
	add_symbol("snapshot.c", "snapshots", guest_size(&guest, "snapshot"));
	add_symbol(NULL, "__start_events", 4 * guest_size(&guest, "event"));
	fuzz_fd = open("/dev/null", O_RDONLY) + 1;
}

static unsigned int damage(const char *path)
{
	FILE *f = fopen(path, "r");
	int choice = f ? getc(f) : 0;

	for (unsigned int i = 0; f && i < nr_places; i++) {
		uint8_t *at = (uint8_t *)guest.memory + places[i].at;

		memcpy(at, places[i].was, places[i].len);
		if (!fread(at, 1, places[i].len, f))
			continue; /* the rest is as it was */
	}
	return choice < 0 ? 0 : choice;
}

int main(int argc, char **argv)
{
	static void (*const formats[])(struct trace * t, FILE * f) = {
		write_text, write_trace_dat, write_chrome, write_folded
	};
	static struct trace t;
	unsigned int choice;
	size_t size;
	char *text;
	FILE *f;

	for (unsigned int i = 0; argc == 3 && i < nr_places; i++)
		fwrite(places[i].was, places[i].len, 1, stdout);
	if (argc == 3)
		return 0;
	choice = damage(argv[3]);
	trace_open(&t, &guest, choice & 4 ? "one" : NULL);
	if (choice & 8) {
		/* Of a round that ended in the middle. */
		if (system("rm -rf build/fuzz/uftrace*"))
			return 1;
		write_uftrace(&t, "build/fuzz/uftrace");
	} else {
		f = open_memstream(&text, &size);
		formats[choice & 3](&t, f);
		fclose(f);
		free(text);
	}
	rings_say_lost();
	return 0;
}
