/* SPDX-License-Identifier: MIT */
/*
 * sections: a QEMU plugin that counts, outside the guest, the instructions between the places
 * where a CPU turns interrupts off and on again, and between those where preemption is off: while
 * the guest's count of preempt_disable() is not 0.
 *
 *   -plugin file=sections.so,places=FILE,ram=PATH,base=ADDRESS,count=ADDRESS,size=BYTES,
 *           out=FILE[,big=1]
 *
 * places: binary, two little-endian u32 each: the low half of an address, ascending, and a
 * kind. ram, base, big: as for stale. count: the address of the boot CPU's word whose low byte is
 * that count, and size: from there to the next CPU's. out: one JSON line for each place where
 * a section began and function that led there, with the longest such section. A trap begins a
 * section, unless it interrupts one. Then the return from it ends none.
 *
 * Lengths are the CPU's own instructions. Under -icount shift=0, with one CPU, that is the time in
 * nanoseconds, but for the time in which a CPU sleeps with interrupts off.
 */
#include "plugin.h"
#include "ram.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CPUS 256
#define ROWS 4096

PLUGIN_EXPORT int qemu_plugin_version = 1;

/* The kinds of places, as tools/lib/sections.py writes them. A place of SAVE turns interrupts off,
 * and RESTORE sets them to what they were before the last SAVE. POP takes them from the word that
 * it loads, as x86's popf. */
enum place { FUNCTION, OFF, ON, SAVE, RESTORE, TRAP, RETURN, POP, BEGIN, END };

struct row {
	uint32_t addr, kind;
};
static struct row *places;
static size_t nr_places, nr_functions;

enum { IRQS, PREEMPT, KINDS };
static const char *const kind_names[] = { "irqs", "preempt" };

static struct section {
	bool open;
	uint64_t since;
	uint32_t began, caller;
	uint32_t number; /* of this section, for `spent` */
} sections[MAX_CPUS][KINDS];

static struct vcpu {
	uint64_t ran; /* its instructions, but for those since it was chosen last */
	uint32_t function, caller, pc;
	unsigned int nested; /* traps from where interrupts were off */
	bool saved;
} vcpus[MAX_CPUS];

/* In which function the instructions of one section were executed. */
static struct spent {
	uint32_t number;
	uint64_t count;
} * spent[KINDS];
static uint32_t last_number;

static struct found {
	int kind;
	unsigned int run; /* counted from BEGIN to END */
	uint32_t began, caller, ended, hot;
	uint64_t longest, times, hot_count;
} found[ROWS];
static size_t nr_found;

struct block {
	uint32_t function, count;
};

static uint64_t executed; /* all CPUs' instructions */
static unsigned int
	chosen; /* the CPU that runs, and the instructions before it did */
static uint64_t chosen_at;
static uint64_t ram_base, count_at, count_size;
static const char *ram_path, *out_path;
static bool big, counting;
static unsigned int run;

static uint64_t instructions(unsigned int cpu)
{
	if (cpu != chosen) {
		vcpus[chosen].ran += executed - chosen_at;
		chosen_at = executed;
		chosen = cpu;
	}
	return vcpus[cpu].ran + executed - chosen_at;
}

/* ---- Sections ------------------------------------------------------------------------- */

static void begin(unsigned int cpu, int kind)
{
	struct section *s = &sections[cpu][kind];

	if (s->open)
		return;
	*s = (struct section){ true, instructions(cpu), vcpus[cpu].pc,
			       vcpus[cpu].caller, ++last_number };
}

static struct found *row_of(int kind, const struct section *s)
{
	struct found *f = found;

	for (; f < found + nr_found; f++)
		if (f->kind == kind && f->run == run && f->began == s->began &&
		    f->caller == s->caller)
			return f;
	if (nr_found == ROWS)
		errx(1, "sections: more than %d places", ROWS);
	nr_found++;
	*f = (struct found){
		.kind = kind, .run = run, .began = s->began, .caller = s->caller
	};
	return f;
}

static void end(unsigned int cpu, int kind)
{
	struct section *s = &sections[cpu][kind];
	uint64_t length;
	struct found *f;

	if (!s->open)
		return;
	s->open = false;
	if (!counting)
		return;
	length = instructions(cpu) - s->since;
	f = row_of(kind, s);
	f->times++;
	if (length <= f->longest)
		return;
	f->longest = length;
	f->ended = vcpus[cpu].pc;
	f->hot_count = 0;
	for (uint32_t i = 0; i < nr_functions; i++) {
		const struct spent *p = &spent[kind][i];

		if (p->number == s->number && p->count > f->hot_count) {
			f->hot_count = p->count;
			f->hot = places[i].addr;
		}
	}
}

/* ---- Execution ------------------------------------------------------------------------ */

static void block_executed(unsigned int cpu, void *data)
{
	const struct block *b = data;
	struct vcpu *v = &vcpus[cpu];

	instructions(cpu);
	if (v->function != b->function) {
		v->caller = v->function;
		v->function = b->function;
	}
	for (int kind = 0; kind < KINDS; kind++) {
		const struct section *s = &sections[cpu][kind];
		struct spent *p = &spent[kind][b->function];

		if (!s->open)
			continue;
		if (p->number != s->number)
			*p = (struct spent){ s->number, 0 };
		p->count += b->count;
	}
}

static void at_trap(unsigned int cpu)
{
	if (sections[cpu][IRQS].open)
		vcpus[cpu].nested++;
	begin(cpu, IRQS);
}

static void at_return(unsigned int cpu)
{
	if (vcpus[cpu].nested)
		vcpus[cpu].nested--;
	else
		end(cpu, IRQS);
}

/* BEGIN and END: sections that are open then began before the measurement, and do not count. */
static void at_bound(enum place kind)
{
	counting = kind == BEGIN;
	run += counting;
	memset(sections, 0, sizeof(sections));
}

static void at_place(unsigned int cpu, void *data)
{
	const struct row *r = data;

	vcpus[cpu].pc = r->addr;
	switch ((enum place)r->kind) {
	case SAVE:
		vcpus[cpu].saved = sections[cpu][IRQS].open;
		begin(cpu, IRQS);
		break;
	case OFF:
		begin(cpu, IRQS);
		break;
	case RESTORE:
		if (vcpus[cpu].saved)
			break;
		/* fall through */
	case ON:
		end(cpu, IRQS);
		break;
	case TRAP:
		at_trap(cpu);
		break;
	case RETURN:
		at_return(cpu);
		break;
	case BEGIN:
	case END:
		at_bound(r->kind);
		break;
	case POP: /* the load says it */
	case FUNCTION:
		break;
	}
}

static const uint8_t *memory(plugin_access access, uint64_t vaddr)
{
	struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(access, vaddr);
	uint64_t at;

	if (!hw || qemu_plugin_hwaddr_is_io(hw))
		return NULL;
	at = qemu_plugin_hwaddr_phys_addr(hw) - ram_base;
	return at + 4 <= ram_size ? ram + at : NULL;
}

#define X86_INTERRUPTS 0x200

static void popped(unsigned int cpu, plugin_access access, uint64_t vaddr,
		   void *data)
{
	const uint8_t *p = memory(access, vaddr);

	/* QEMU may tell of the stores of an interrupt that comes behind the instruction, too. */
	if (qemu_plugin_mem_is_store(access))
		return;
	vcpus[cpu].pc = ((const struct row *)data)->addr;
	if (p && ((p[0] | p[1] << 8) & X86_INTERRUPTS))
		end(cpu, IRQS);
	else if (p)
		begin(cpu, IRQS);
}

static void stored(unsigned int cpu, plugin_access access, uint64_t vaddr,
		   void *pc)
{
	const uint8_t *p;

	if ((uint32_t)vaddr != (uint32_t)(count_at + cpu * count_size))
		return;
	p = memory(access, vaddr);
	vcpus[cpu].pc = (uint32_t)(uintptr_t)pc;
	if (p && p[big ? 3 : 0])
		begin(cpu, PREEMPT);
	else if (p)
		end(cpu, PREEMPT);
}

/* ---- Translation ----------------------------------------------------------------------- */

/* The last place at or below addr among n of them. */
static size_t at_or_below(uint32_t addr, const struct row *rows, size_t n)
{
	size_t low = 0, high = n;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		*(rows[middle].addr <= addr ? &low : &high) = middle;
	}
	return low;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	struct row *rest = places + nr_functions;
	size_t n = qemu_plugin_tb_n_insns(tb),
	       nr_rest = nr_places - nr_functions;
	struct block *b = calloc(1, sizeof(*b));

	(void)id;
	if (!ram)
		ram_find(ram_path);
	b->count = n;
	b->function = at_or_below(
		qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)), places,
		nr_functions);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_executed,
					     PLUGIN_NO_REGISTERS, b);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint32_t pc = qemu_plugin_insn_vaddr(insn);
		struct row *r = rest + at_or_below(pc, rest, nr_rest);

		qemu_plugin_register_vcpu_insn_exec_inline(insn, PLUGIN_ADD,
							   &executed, 1);
		for (; r < rest + nr_rest && r->addr == pc; r++) {
			if (r->kind == POP)
				qemu_plugin_register_vcpu_mem_cb(
					insn, popped, PLUGIN_NO_REGISTERS,
					PLUGIN_ACCESSES, r);
			else
				qemu_plugin_register_vcpu_insn_exec_cb(
					insn, at_place, PLUGIN_NO_REGISTERS, r);
		}
		qemu_plugin_register_vcpu_mem_cb(insn, stored,
						 PLUGIN_NO_REGISTERS,
						 PLUGIN_STORES,
						 (void *)(uintptr_t)pc);
	}
}

/* ---- Beginning and end ------------------------------------------------------------------ */

static void ended(plugin_id id, void *data)
{
	FILE *out = fopen(out_path, "w");

	(void)id, (void)data;
	if (!out)
		err(1, "sections: %s", out_path);
	for (struct found *f = found; f < found + nr_found; f++)
		fprintf(out,
			"{\"kind\": \"%s\", \"run\": %u, \"longest\": %" PRIu64
			", \"times\": %" PRIu64 ", \"began\": %u, "
			"\"caller\": %u, \"ended\": %u, \"hot\": %u, "
			"\"hot_count\": %" PRIu64 "}\n",
			kind_names[f->kind], f->run, f->longest, f->times,
			f->began, places[f->caller].addr, f->ended, f->hot,
			f->hot_count);
	fclose(out);
}

static void read_places(const char *path)
{
	FILE *f = fopen(path, "rb");
	size_t room = 0;

	if (!f)
		err(1, "sections: %s", path);
	do {
		if (nr_places == room) {
			room = room ? 2 * room : 4096;
			places = realloc(places, room * sizeof(*places));
			if (!places)
				errx(1, "sections: out of memory");
		}
		nr_places += fread(places + nr_places, sizeof(*places), 1, f);
	} while (nr_places == room || (!feof(f) && !ferror(f)));
	fclose(f);
	while (nr_functions < nr_places &&
	       places[nr_functions].kind == FUNCTION)
		nr_functions++;
	counting = true;
	for (size_t i = nr_functions; i < nr_places; i++)
		counting &= places[i].kind != BEGIN;
	for (int kind = 0; kind < KINDS; kind++)
		spent[kind] = calloc(nr_functions, sizeof(*spent[kind]));
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id,
				      const struct plugin_info *info, int argc,
				      char **argv)
{
	const char *path = NULL;

	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "places=", 7))
			path = argv[i] + 7;
		else if (!strncmp(argv[i], "ram=", 4))
			ram_path = argv[i] + 4;
		else if (!strncmp(argv[i], "base=", 5))
			ram_base = strtoull(argv[i] + 5, NULL, 0);
		else if (!strncmp(argv[i], "count=", 6))
			count_at = strtoull(argv[i] + 6, NULL, 0);
		else if (!strncmp(argv[i], "size=", 5))
			count_size = strtoull(argv[i] + 5, NULL, 0);
		else if (!strncmp(argv[i], "out=", 4))
			out_path = argv[i] + 4;
		else if (!strcmp(argv[i], "big=1"))
			big = true;
		else
			errx(1, "sections: %s is unknown", argv[i]);
	}
	if (!path || !ram_path || !out_path || !count_at ||
	    info->max_cpus > MAX_CPUS)
		errx(1, "sections: places=, ram=, count= and out= are needed");
	read_places(path);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
