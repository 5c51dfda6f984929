/*
 * stale: a QEMU plugin that finds instructions which a CPU could fetch stale. QEMU
 * itself always runs the newest bytes; a real CPU may run older ones, or a mixture,
 * until it has synchronised. The plugin keeps, for the guest's RAM:
 *
 *   - each store that changes a byte of a page which has been executed: when, by
 *     which CPU, from which instruction, the old and the new bytes;
 *   - of each CPU, how many of these changes it has synchronised with.
 *
 * When a CPU executes an instruction that has changed since the CPU's last
 * synchronisation, that is a finding: the CPU could have run what stood there before.
 * A finding is harmless if the architecture lets CPUs fetch there while another CPU
 * stores, and only one store has changed the instruction since; otherwise it is a
 * hazard.
 *
 *   -plugin file=stale.so,ram=PATH,base=ADDRESS,out=FILE[,start=ADDRESS][,rules=NAME]
 *
 * ram: the file behind the guest's RAM (-object memory-backend-file,share=on). base:
 * the physical address that QEMU's plugin interface gives its first byte. out: one
 * JSON line for each kind of finding, when it is first seen, and one for each total.
 * start: where a CPU begins when it comes from reset; it has fetched nothing before.
 * rules: `intel` is without the promise that AMD alone makes; `none` lets no CPU fetch
 * what another has stored, as a rendezvous does. All CPUs must be of one thread (-accel
 * tcg,thread=single, or -icount).
 */
#include "plugin.h"
#include "target.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT 12
#define PAGE_BYTES (1u << PAGE_SHIFT)
#define MAX_CPUS 256
#define STORE_MOST 16	  /* bytes of one store */
#define CHANGES_MOST 4096 /* that are kept of a page */

PLUGIN_EXPORT int qemu_plugin_version = 1;

/* ---- What is known -------------------------------------------------------- */

static struct target target;

struct change {
	uint32_t time; /* 1, 2, ... */
	uint16_t at;   /* first byte, in its page */
	uint8_t n;
	uint8_t cpu;
	uint64_t pc; /* of the store */
	uint8_t before[STORE_MOST], after[STORE_MOST];
};

/* A page that has been executed. */
struct page {
	uint32_t last[PAGE_BYTES]; /* time of each byte's last change */
	uint8_t bytes[PAGE_BYTES];
	uint8_t longest[PAGE_BYTES]; /* of all instructions seen to begin there */
	struct change *changes;	     /* in the order of time */
	size_t nr_changes, room;
};

static uint8_t *ram; /* QEMU's own mapping of the guest's RAM */
static uint64_t ram_size, ram_base, start;
static struct page **pages;
static uint32_t now;		  /* changes so far */
static uint32_t synced[MAX_CPUS]; /* the CPU has synchronised with so many */
static uint32_t lines[MAX_CPUS];  /* MIPS: as of the CPU's last synci */
static uint32_t hazards, harmless, unseen;
static unsigned int cpus;
static FILE *out;

static void *checked(void *p)
{
	if (!p)
		errx(1, "stale: out of memory");
	return p;
}

static struct page *page_at(uint64_t offset)
{
	return offset < ram_size ? pages[offset >> PAGE_SHIFT] : NULL;
}

static struct page *page_make(uint64_t offset)
{
	struct page **p = &pages[offset >> PAGE_SHIFT];

	if (!*p) {
		*p = checked(calloc(1, sizeof(**p)));
		memcpy((*p)->bytes, ram + (offset & ~(PAGE_BYTES - 1ull)),
		       PAGE_BYTES);
	}
	return *p;
}

/* ---- Stores --------------------------------------------------------------- */

/*
 * Forget the changes that every CPU has synchronised with, and of very many the older
 * half: a CPU that never synchronises is found by the others.
 */
static void prune(struct page *p)
{
	uint32_t least = now;
	size_t keep = p->nr_changes < CHANGES_MOST ? 0 : CHANGES_MOST / 2;

	for (unsigned int c = 0; c < cpus; c++)
		least = synced[c] < least ? synced[c] : least;
	while (keep < p->nr_changes && p->changes[keep].time <= least)
		keep++;
	p->nr_changes -= keep;
	memmove(p->changes, p->changes + keep,
		p->nr_changes * sizeof(*p->changes));
}

static void add_change(struct page *p, const struct change *c)
{
	if (p->nr_changes == p->room) {
		prune(p);
		if (p->nr_changes >= p->room / 2) {
			p->room = p->room ? 2 * p->room : 16;
			p->changes = checked(realloc(
				p->changes, p->room * sizeof(*p->changes)));
		}
	}
	p->changes[p->nr_changes++] = *c;
	for (unsigned int i = 0; i < c->n; i++)
		p->last[c->at + i] = c->time;
}

static void stored_in_page(unsigned int cpu, uint64_t pc, uint64_t offset,
			   size_t n)
{
	struct page *p = page_at(offset);
	unsigned int at = offset & (PAGE_BYTES - 1);
	const uint8_t *new = ram + offset;
	struct change c = { .at = at, .n = n, .cpu = cpu, .pc = pc };

	if (!p || !memcmp(p->bytes + at, new, n))
		return;
	c.time = ++now;
	memcpy(c.before, p->bytes + at, n);
	memcpy(c.after, new, n);
	memcpy(p->bytes + at, new, n);
	add_change(p, &c);
}

static void stored(unsigned int cpu, plugin_access access, uint64_t vaddr,
		   void *pc)
{
	struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(access, vaddr);
	size_t n = (size_t)1 << qemu_plugin_mem_size_shift(access), first;
	uint64_t offset;

	if (!hw || qemu_plugin_hwaddr_is_io(hw) || n > STORE_MOST)
		return;
	offset = qemu_plugin_hwaddr_phys_addr(hw) - ram_base;
	first = PAGE_BYTES - (offset & (PAGE_BYTES - 1));
	first = first < n ? first : n;
	stored_in_page(cpu, (uintptr_t)pc, offset, first);
	if (first < n)
		stored_in_page(cpu, (uintptr_t)pc, offset + first, n - first);
}

/* ---- Execution ------------------------------------------------------------ */

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

#define MOST 64 /* changes of one instruction that a finding shows */

/*
 * The changes of [offset, offset + n) that the CPU has not synchronised with. Returns
 * how many there are; the first MOST of them go to found.
 */
static unsigned int find_changes(unsigned int cpu, uint64_t offset, size_t n,
				 const struct change **found)
{
	unsigned int count = 0;

	for (uint64_t o = offset; o < offset + n;) {
		struct page *p = page_at(o);
		unsigned int at = o & (PAGE_BYTES - 1);
		size_t here = PAGE_BYTES - at;

		if (here > offset + n - o)
			here = offset + n - o;
		for (size_t i = p ? p->nr_changes : 0; i-- > 0;) {
			const struct change *c = &p->changes[i];

			if (c->time <= synced[cpu])
				break;
			if (c->at >= at + here || c->at + c->n <= at ||
			    (target.own_stores_seen && c->cpu == cpu))
				continue;
			if (count < MOST)
				found[count] = c;
			count++;
		}
		o += here;
	}
	return count;
}

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
static bool is_allowed(const struct change *c, unsigned int at)
{
	unsigned int first, n = differing(c, &first), from = c->at + first;

	if (n == 1 && from == at &&
	    (c->before[first] == target.breakpoint ||
	     c->after[first] == target.breakpoint))
		return true;
	return target.unit &&
	       from / target.unit == (from + n - 1) / target.unit;
}

static void put_bytes(const char *name, const uint8_t *p, unsigned int n)
{
	fprintf(out, "\"%s\": \"", name);
	for (unsigned int i = 0; i < n; i++)
		fprintf(out, "%02x", p[i]);
	fprintf(out, "\"");
}

/* Each pair of instruction and last store is said once. */
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
			in->vaddr + c->at - (in->offset & (PAGE_BYTES - 1)));
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
	unsigned int at = in->offset & (PAGE_BYTES - 1);
	unsigned int count = find_changes(cpu, in->offset, in->n, found);
	struct page *p = page_at(in->offset);

	if (!count || !p)
		return;
	count = find_changes(cpu, in->offset, p->longest[at], found);
	report(cpu, in, found, count, count > 1 || !is_allowed(found[0], at));
}

/* When the instruction's bytes changed last. */
static uint32_t changed_last(const struct insn *in)
{
	uint32_t last = 0;

	for (uint64_t o = in->offset; o < in->offset + in->n; o++) {
		struct page *p = page_at(o);
		uint32_t t = p ? p->last[o & (PAGE_BYTES - 1)] : 0;

		last = t > last ? t : last;
	}
	return last;
}

static void executed(unsigned int cpu, void *data)
{
	struct block *b = data;

	/* Few blocks get past this: the CPU has seen all that has ever changed. */
	if (synced[cpu] == now)
		return;
	for (unsigned int i = 0; i < b->count; i++) {
		struct insn *in = &b->insn[i];
		uint32_t last = changed_last(in);

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

/* Note an instruction's place; false: it is not in RAM. */
static bool note_insn(const struct qemu_plugin_insn *insn, struct insn *in)
{
	const uint8_t *host = qemu_plugin_insn_haddr(insn);
	struct page *p;
	unsigned int at;

	if (!host || host < ram || host >= ram + ram_size)
		return false;
	*in = (struct insn){ .vaddr = qemu_plugin_insn_vaddr(insn),
			     .offset = (uint64_t)(host - ram),
			     .n = (uint8_t)qemu_plugin_insn_size(insn) };
	p = page_make(in->offset);
	at = in->offset & (PAGE_BYTES - 1);
	if (in->n > p->longest[at])
		p->longest[at] = in->n;
	/* Bytes that no store was seen to change: a device's, or a helper's. */
	for (unsigned int i = 0; i < in->n && at + i < PAGE_BYTES; i++)
		if (p->bytes[at + i] != host[i]) {
			p->bytes[at + i] = host[i];
			unseen++;
		}
	if (at + in->n > PAGE_BYTES && in->offset + in->n <= ram_size)
		page_make(in->offset + in->n - 1);
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
		enum sync sync = target.sync(qemu_plugin_insn_data(insn),
					     qemu_plugin_insn_size(insn));
		struct insn in;

		if (note_insn(insn, &in) && !after_sync)
			b->insn[b->count++] = in;
		else if (after_sync && in.n) {
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
		"\"harmless\": %u, \"unseen\": %u}}\n",
		now, hazards, harmless, unseen);
	fclose(out);
}

/* Where QEMU has mapped the file behind the guest's RAM. */
static void find_ram(const char *path)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uint64_t start, end;

	while (maps && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strstr(line, path) ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
			continue;
		if (ram && start != (uintptr_t)ram + ram_size)
			errx(1, "stale: %s is mapped twice", path);
		ram = ram ? ram : (uint8_t *)(uintptr_t)start;
		ram_size += end - start;
	}
	if (maps)
		fclose(maps);
}

static void first_translated(plugin_id id, struct qemu_plugin_tb *tb);
static const char *ram_path;

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id,
				      const struct plugin_info *info, int argc,
				      char **argv)
{
	const char *out_path = NULL;
	const char *rules = "";

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
		else
			errx(1,
			     "stale: %s is unknown: ram=, base=, out=, start= "
			     "and "
			     "rules= are known",
			     argv[i]);
	}
	target = target_find(info->target, rules);
	cpus = info->max_cpus;
	if (!ram_path || !out_path || cpus > MAX_CPUS)
		errx(1, "stale: ram=PATH and out=FILE are needed");
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
	if (!ram) {
		find_ram(ram_path);
		if (!ram)
			errx(1, "stale: QEMU has not mapped %s", ram_path);
		pages = checked(calloc(ram_size >> PAGE_SHIFT, sizeof(*pages)));
	}
	translated(id, tb);
}
