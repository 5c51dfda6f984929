/* SPDX-License-Identifier: MIT */
/*
 * stale: a QEMU plugin that finds instructions which a CPU could fetch stale. QEMU
 * itself always runs the newest bytes. A real CPU may run older ones, or a mixture,
 * until it has synchronised. The plugin keeps, for the guest's RAM:
 *
 *   - each store that changes a byte of a page which has been executed: when, by
 *     which CPU, from which instruction, the old and the new bytes,
 *   - of each CPU, how many of these changes it has synchronised with.
 *
 * When a CPU executes an instruction that has changed since the CPU's last
 * synchronisation, that is a finding: the CPU could have run the older bytes.
 * A finding is harmless if the architecture lets CPUs fetch there while another CPU
 * stores, and only one store has changed the instruction since. Otherwise it is a
 * hazard.
 *
 *   -plugin file=stale.so,rules=FILE,ram=PATH,base=ADDRESS,out=FILE[,start=ADDRESS]
 *           [,big=1][,mode=NAME]
 *
 * rules: the promises of the architecture's manual, in a JSON file (target.h). big: it is
 * big-endian. ram: the file behind the guest's RAM (-object memory-backend-file,share=on). base:
 * the physical address that QEMU's plugin interface gives its first byte. out: one
 * JSON line for each kind of finding, when it is first seen, and one for each total.
 * start: where a CPU begins when it comes from reset. It has fetched nothing before.
 * mode: `intel` is without the promise that AMD alone makes. `none` lets no CPU fetch
 * what another has stored, as a rendezvous does. `shared`: the CPUs share their
 * caches. All CPUs must be of one thread (-accel tcg,thread=single, or -icount).
 */
#include "changes.h"
#include "plugin.h"
#include "target.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64 /* changes of one instruction that a finding shows */

PLUGIN_EXPORT int qemu_plugin_version = 1;

static struct target target;
static uint64_t ram_base, start;
/* Changes before the last instruction, of the CPU or of any, that is the first half of a
 * synchronisation. */
static uint32_t lines[MAX_CPUS];
static uint32_t hazards, harmless;
static unsigned int cpus;
static const char *ram_path;
static FILE *out;

struct insn {
	uint64_t vaddr, offset;
	uint32_t said; /* time of the last change that a finding was about, ... */
	uint32_t by;   /* ... and the CPU that ran it */
	uint8_t n;
};

struct block {
	unsigned int count;
	struct insn insn[];
};

/* ---- Findings ------------------------------------------------------------- */

/* Which of a change's bytes differ: the first, and how many up to the last. */
static unsigned int differing(const struct change *c, unsigned int *first)
{
	unsigned int end = 0;

	*first = STORE_MOST;
	for (unsigned int i = 0; i < c->n; i++)
		if (c->before[i] != c->after[i]) {
			*first = *first == STORE_MOST ? i : *first;
			end = i + 1;
		}
	return end - *first;
}

/* Do the architecture's rules let this one store be fetched at any time? */
static bool is_allowed(const struct change *c, uint64_t offset)
{
	unsigned int first, n = differing(c, &first);
	uint64_t from = c->offset + first;

	if (n == 1 && from == offset &&
	    (c->before[first] == target.breakpoint ||
	     c->after[first] == target.breakpoint))
		return true;
	return target.unit &&
	       from / target.unit == (from + n - 1) / target.unit &&
	       target_may_change(&target, c->before, c->n) &&
	       target_may_change(&target, c->after, c->n);
}

static void put_bytes(const char *name, const uint8_t *p, unsigned int n)
{
	fprintf(out, "\"%s\": \"", name);
	for (unsigned int i = 0; i < n; i++)
		fprintf(out, "%02x", p[i]);
	fprintf(out, "\"");
}

/* Each pair of an instruction and the last store to it is reported once. */
static bool is_new(uint64_t vaddr, uint64_t pc, bool hazard)
{
	static struct key {
		uint64_t vaddr, pc;
		bool hazard;
	} * keys;
	static size_t n, room;

	for (size_t i = 0; i < n; i++)
		if (keys[i].vaddr == vaddr && keys[i].pc == pc &&
		    keys[i].hazard == hazard)
			return false;
	if (n == room) {
		room = room ? 2 * room : 64;
		keys = checked(realloc(keys, room * sizeof(*keys)));
	}
	keys[n++] = (struct key){ vaddr, pc, hazard };
	return true;
}

static void report(unsigned int cpu, const struct insn *in,
		   const struct change **found, unsigned int count, bool hazard)
{
	*(hazard ? &hazards : &harmless) += 1;
	if (!is_new(in->vaddr, found[0]->pc, hazard))
		return;
	fprintf(out, "{\"hazard\": %s, \"cpu\": %u, \"address\": %" PRIu64 ", ",
		hazard ? "true" : "false", cpu, in->vaddr);
	put_bytes("bytes", ram + in->offset, in->n);
	fprintf(out, ", \"missed\": %u, \"stores\": [", count);
	for (unsigned int i = count < MOST ? count : MOST; i-- > 0;) {
		const struct change *c = found[i];

		fprintf(out,
			"{\"time\": %u, \"cpu\": %u, \"pc\": %" PRIu64
			", \"address\": %" PRIu64 ", ",
			c->time, c->cpu, c->pc,
			in->vaddr + c->offset - in->offset);
		put_bytes("before", c->before, c->n);
		fprintf(out, ", ");
		put_bytes("after", c->after, c->n);
		fprintf(out, "}%s", i ? ", " : "");
	}
	fprintf(out, "]}\n");
	fflush(out);
}

/*
 * If a change reaches into the instruction that stands there now, one that stood there
 * before may have been longer: its whole length counts.
 */
static void check_insn(unsigned int cpu, struct insn *in)
{
	const struct change *found[MOST];
	bool own = !target.own_stores_seen;
	unsigned int count;

	if (!changes_missed(cpu, in->offset, in->n, own, found, MOST))
		return;
	count = changes_missed(cpu, in->offset, changes_longest(in->offset),
			       own, found, MOST);
	report(cpu, in, found, count,
	       count > 1 || !is_allowed(found[0], in->offset));
}

/* ---- Execution ------------------------------------------------------------ */

static void stored(unsigned int cpu, plugin_access access, uint64_t vaddr,
		   void *pc)
{
	struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(access, vaddr);
	size_t n = (size_t)1 << qemu_plugin_mem_size_shift(access);

	if (hw && !qemu_plugin_hwaddr_is_io(hw) && n <= STORE_MOST)
		changes_stored(cpu, (uintptr_t)pc,
			       qemu_plugin_hwaddr_phys_addr(hw) - ram_base, n);
}

static void executed(unsigned int cpu, void *data)
{
	struct block *b = data;

	/* Few blocks get past this: the CPU has seen all that has ever changed. */
	if (synced[cpu] == now)
		return;
	for (unsigned int i = 0; i < b->count; i++) {
		struct insn *in = &b->insn[i];
		uint32_t last = changes_last(in->offset, in->n);

		if (last > synced[cpu] && (last != in->said || cpu != in->by)) {
			in->said = last;
			in->by = cpu;
			check_insn(cpu, in);
		}
	}
}

static void sync_whole(unsigned int cpu, void *data)
{
	(void)data;
	synced[cpu] = now;
}

static void sync_line(unsigned int cpu, void *data)
{
	(void)data;
	lines[cpu] = now;
	for (unsigned int i = 0; target.broadcast && i < cpus; i++)
		lines[i] = now;
}

static void sync_barrier(unsigned int cpu, void *data)
{
	(void)data;
	synced[cpu] = lines[cpu] > synced[cpu] ? lines[cpu] : synced[cpu];
}

/* ---- Translation ---------------------------------------------------------- */

static struct block *block_make(unsigned int room)
{
	return checked(
		calloc(1, sizeof(struct block) + room * sizeof(struct insn)));
}

/* Note an instruction's place. False: it is not in RAM. */
static bool note_insn(const struct qemu_plugin_insn *insn, struct insn *in)
{
	const uint8_t *host = qemu_plugin_insn_haddr(insn);

	if (!host || host < ram || host >= ram + ram_size)
		return false;
	*in = (struct insn){ .vaddr = qemu_plugin_insn_vaddr(insn),
			     .offset = (uint64_t)(host - ram),
			     .n = (uint8_t)qemu_plugin_insn_size(insn) };
	changes_code(in->offset, in->n);
	return true;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	static const plugin_exec_cb on_sync[] = {
		[SYNC_WHOLE] = sync_whole,
		[SYNC_LINE] = sync_line,
		[SYNC_BARRIER] = sync_barrier,
	};
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *b = block_make(n), *one;
	bool after_sync = false;

	(void)id;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		enum sync sync =
			target_sync(&target, qemu_plugin_insn_data(insn),
				    qemu_plugin_insn_size(insn));
		struct insn in;
		bool noted = note_insn(insn, &in);

		if (noted && !after_sync) {
			b->insn[b->count++] = in;
		} else if (noted) {
			one = block_make(1);
			one->count = 1;
			one->insn[0] = in;
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, executed, PLUGIN_NO_REGISTERS, one);
		}
		/* The upper bits are MIPS's window on the memory. */
		if (start &&
		    !((qemu_plugin_insn_vaddr(insn) ^ start) & 0x1fffffff))
			sync = SYNC_WHOLE;
		if (sync)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, on_sync[sync], PLUGIN_NO_REGISTERS, NULL);
		after_sync |= sync != SYNC_NO;
		qemu_plugin_register_vcpu_mem_cb(
			insn, stored, PLUGIN_NO_REGISTERS, PLUGIN_STORES,
			(void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, PLUGIN_NO_REGISTERS,
					     b);
}

/* ---- Beginning and end ---------------------------------------------------- */

static void ended(plugin_id id, void *data)
{
	(void)id, (void)data;
	fprintf(out,
		"{\"total\": {\"changes\": %u, \"hazards\": %u, "
		"\"harmless\": %u, \"unseen\": %u, \"unmatched\": ",
		now, hazards, harmless, unseen);
	target_print_unmatched(&target, out);
	fprintf(out, "}}\n");
	fclose(out);
}

static void first_translated(plugin_id id, struct qemu_plugin_tb *tb);

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id,
				      const struct plugin_info *info, int argc,
				      char **argv)
{
	const char *out_path = NULL;
	const char *rules = NULL, *mode = "";
	bool big = false;

	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "ram=", 4))
			ram_path = argv[i] + 4;
		else if (!strncmp(argv[i], "base=", 5))
			ram_base = strtoull(argv[i] + 5, NULL, 0);
		else if (!strncmp(argv[i], "start=", 6))
			start = strtoull(argv[i] + 6, NULL, 0);
		else if (!strncmp(argv[i], "out=", 4))
			out_path = argv[i] + 4;
		else if (!strncmp(argv[i], "rules=", 6))
			rules = argv[i] + 6;
		else if (!strncmp(argv[i], "mode=", 5))
			mode = argv[i] + 5;
		else if (!strcmp(argv[i], "big=1"))
			big = true;
		else
			errx(1,
			     "stale: %s is unknown; known: rules= ram= base= "
			     "out= start= big= mode=",
			     argv[i]);
	}
	cpus = info->max_cpus;
	if (!rules || !ram_path || !out_path || cpus > MAX_CPUS)
		errx(1, "stale: rules=FILE, ram=PATH and out=FILE are needed");
	target_read(&target, rules, mode, big);
	out = fopen(out_path, "w");
	if (!out)
		err(1, "stale: %s", out_path);
	qemu_plugin_register_vcpu_tb_trans_cb(id, first_translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}

/* The RAM is mapped later than plugins are installed. */
static void first_translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	if (!ram)
		changes_begin(ram_path, cpus);
	translated(id, tb);
}
