/* SPDX-License-Identifier: MIT */
/* What the tracer's readers ask of a guest: machine.h. */
#define symbol image_symbol /* the kernel has a struct symbol, too */
#include "trace.h"
#undef symbol

#include <kernel/image/symbols.h>
#include <kernel/mm/kmalloc.h>
#include <stdlib.h>
#include <string.h>
#include <tracer/latency/latency.h>

bool machine_big_endian;
unsigned int machine_long, nr_cpus;
unsigned long machine_text, machine_irq_event, machine_mark_write;
struct trace_instance trace_instances[INSTANCES];
static const struct guest *guest;

/* How the guest's clock counts, and where names of tasks lie. */
static u64 mult, shift, clock_base, comms, comm_size, comm_name;

void machine_open(const struct guest *g)
{
	u64 at = guest_symbol(g, "time.c", "to_ns");

	guest = g;
	machine_big_endian = g->im.big_endian;
	machine_long = g->im.pointer_size;
	machine_text = g->im.text;
	machine_irq_event = guest_symbol(g, NULL, "irq_event");
	machine_mark_write = guest_symbol(g, NULL, "tracing_mark_write");
	nr_cpus = guest_number(g, guest_symbol(g, NULL, "nr_cpus"), 4);
	if (!nr_cpus || nr_cpus > MAX_CPUS)
		errx(1, "the guest has just begun: it does not know its CPUs");
	mult = guest_get(g, at, "ratio", "mult");
	shift = guest_get(g, at, "ratio", "shift");
	if (shift > 63)
		errx(1,
		     "the guest's clock makes no sense: it is shifted by "
		     "%llu bits",
		     (unsigned long long)shift);
	clock_base =
		guest_number(g, guest_symbol(g, "time.c", "clock_base"), 8);
	comms = guest_symbol(g, "comm.c", "comms");
	comm_size = guest_size(g, "comm");
	comm_name = guest_member(g, "comm", "name").at;
}

const char *stored_text(u64 addr)
{
	return guest_text(guest, addr);
}

void *kmalloc(size_t size)
{
	return malloc(size);
}

void *kmalloc_zeroed(size_t size)
{
	return calloc(1, size);
}

void kfree(void *p)
{
	free(p);
}

/* As ratio_apply() of kernel/time.c. */
u64 clock_delta_to_ns(u64 ticks)
{
	return (unsigned __int128)ticks * mult >> shift;
}

u64 clock_to_ns(u64 clock)
{
	u64 since = clock - clock_base;

	return (s64)since < 0 ? 0 : clock_delta_to_ns(since);
}

bool symbol_at(unsigned long addr, struct symbol *s)
{
	const struct image_symbol *found = image_symbol_at(&guest->im, addr);

	if (found)
		*s = (struct symbol){ .name = found->name,
				      .start = found->addr,
				      .size = found->size };
	return found;
}

struct latency latency_longest(void)
{
	u64 at = guest_symbol(guest, "latency.c", "longest");

#define LATENCY(member) guest_get(guest, at, "latency", #member)
	return (struct latency){ LATENCY(since), LATENCY(until), LATENCY(ticks),
				 LATENCY(cpu),	 LATENCY(pid),	 LATENCY(prio),
				 LATENCY(began), LATENCY(ended) };
}

/* ---- Names of tasks -------------------------------------------------------------- */

#define COMM_SLOTS 256

const char *comm_saved(unsigned int i, s32 *pid)
{
	u64 at = comms + i * comm_size;
	const char *name = guest_text(guest, at + comm_name);

	if (i >= COMM_SLOTS)
		return NULL;
	*pid = guest_number(guest, at, 4);
	/* A name that does not end in its place is none. */
	return strlen(name) < comm_size - comm_name ? name : "<...>";
}

void comm_find(s32 pid, char *name, size_t size)
{
	s32 has;
	const char *saved = comm_saved((u32)pid % COMM_SLOTS, &has);

	snprintf(name, size, "%s",
		 !pid	    ? "<idle>" :
		 has == pid ? saved :
			      "<...>");
}

const char *comm_of(s32 pid)
{
	static char name[TASK_NAME_LEN];

	comm_find(pid, name, sizeof(name));
	return name;
}
