/* SPDX-License-Identifier: MIT */
/* The tracer's readers over a guest's memory: machine.h. */
#define symbol image_symbol /* the kernel has a struct symbol, too */
#include "trace.h"
#undef symbol

#include <kernel/image/symbols.h>
#include <kernel/lib/seq.h>
void trace_function(struct seq *s, unsigned long addr, unsigned long at);

bool machine_big_endian;
unsigned int machine_long;
unsigned int nr_cpus;
static const struct guest *guest;

void machine_open(const struct guest *g)
{
	guest = g;
	machine_big_endian = g->im.big_endian;
	machine_long = g->im.pointer_size;
}

const char *stored_text(u64 addr)
{
	return guest_text(guest, addr);
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

void trace_function(struct seq *s, unsigned long addr, unsigned long at)
{
	struct symbol sym;

	if (symbol_at(at, &sym))
		seq_puts(s, sym.name);
	else
		seq_printf(s, "0x%08lx", addr);
}
