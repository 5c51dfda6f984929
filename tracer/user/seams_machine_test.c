/* SPDX-License-Identifier: MIT */
/*
 * The machine as a fresh one: everything that a client may leave behind. Of tasks and CPUs a table
 * names each field, so a field that is added later fails the build until it has its rule. Of the
 * tracer's own variables each byte is compared, and tools/seams names those that may differ.
 */
#include <tracer/user/seams_machine_test.h>

#include <tracer/testing.h>
#include <tracer/user/seams_test.h>

#include <kernel/image/symbols.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/sched/task_list.h>
#include <tracer/ring/ring.h>

/* The rules: how a field must be after a case. */
enum rule {
	ZERO, /* as in a fresh task, or as at boot, where it was 0 */
	SAME, /* as before */
	DEPTH, /* no deeper than tasks go. It counts in graph_session, which is over */
	FREE, /* anything: the line says why */
};

struct field {
	const char *name;
	unsigned int offset, size;
	enum rule rule;
};

/* The trace part of struct task: from nr_returns to the name. */
#define TASK_FIELDS(F)                                                         \
	F(nr_returns, ZERO)                                                    \
	F(graph_depth, DEPTH)                                                  \
	F(returns_missed, DEPTH)                                               \
	F(graph_session, FREE) /* which of them was the last */                \
	F(returns, FREE)       /* those beyond nr_returns are no one's */      \
	F(graph_hidden, DEPTH)                                                 \
	F(graph_root, DEPTH)                                                   \
	F(left_at, FREE)  /* the time counts only for calls taken since */     \
	F(left_cpu, FREE) /* likewise */                                       \
	F(quiesced, FREE) /* the number of a wait, and each has another one */

#define HEAD_FIELDS(F)                                                         \
	F(self, SAME)                                                          \
	F(current, FREE) /* the scheduler's */                                 \
	F(ring, FREE)	 /* a place in a page of the ring: compare_place() */  \
	F(text, SAME)                                                          \
	F(scratch, FREE) /* the port's trap entry's */                         \
	F(trap_stack, SAME)                                                    \
	F(frames, SAME)                                                        \
	F(preempt_count, FREE) /* the scheduler's */                           \
	F(index, SAME)

#define RING_FIELDS(F)                                                         \
	F(pages, FREE) /* the snapshot's may have become the ring's */         \
	F(nr, SAME)                                                            \
	F(head, FREE) /* numbers of pages, which go on */                      \
	F(tail, FREE)                                                          \
	F(in, SAME)                                                            \
	F(at, SAME)                                                            \
	F(own, FREE) /* a place in a page */                                   \
	F(recording, SAME)                                                     \
	F(busy, SAME)                                                          \
	F(passed_over, SAME)                                                   \
	F(full, SAME)                                                          \
	F(unmarked, FREE) /* a mark is made of the task that runs then */      \
	F(pid, FREE)	  /* of the task that runs */                          \
	F(began, FREE)	  /* a time */                                         \
	F(first, FREE)	  /* a page's number */                                \
	F(overwritten, ZERO)                                                   \
	F(read, ZERO)                                                          \
	F(dropped, ZERO)

/* Each table has each field once, in order: a struct made of them has the same offsets. */
#define MIRROR(name, rule) typeof(((SUBJECT *)0)->name) name;
#define CHECK(field_name, rule)                                                \
	static_assert(offsetof(struct MIRRORED, field_name) ==                 \
			      offsetof(SUBJECT, field_name) - FIRST,           \
		      "a field without a rule");
#define ROW(field_name, field_rule)                                            \
	{ #field_name, offsetof(SUBJECT, field_name),                          \
	  sizeof(((SUBJECT *)0)->field_name), field_rule },

#define SUBJECT struct task
#define FIRST offsetof(struct task, nr_returns)
#define MIRRORED task_mirror
struct task_mirror {
	TASK_FIELDS(MIRROR)
} __attribute__((aligned(8)));
TASK_FIELDS(CHECK)
static_assert(sizeof(struct task_mirror) == offsetof(struct task, name) - FIRST,
	      "a field without a rule");
static const struct field task_fields[] = { TASK_FIELDS(ROW) };

#undef SUBJECT
#undef FIRST
#undef MIRRORED
#define SUBJECT struct cpu_head
#define FIRST 0
#define MIRRORED head_mirror
struct head_mirror {
	HEAD_FIELDS(MIRROR)
};
HEAD_FIELDS(CHECK)
static_assert(sizeof(struct head_mirror) == sizeof(struct cpu_head),
	      "a field without a rule");
static const struct field head_fields[] = { HEAD_FIELDS(ROW) };

#undef SUBJECT
#undef MIRRORED
#define SUBJECT struct ring
#define MIRRORED ring_mirror
struct ring_mirror {
	RING_FIELDS(MIRROR)
};
RING_FIELDS(CHECK)
static_assert(sizeof(struct ring_mirror) == sizeof(struct ring),
	      "a field without a rule");
static const struct field ring_fields[] = { RING_FIELDS(ROW) };

/* ---- The machine as it was ---- */

#define RANGES 8u
#define RESOURCES 8u
#define SETTLE_NS (2 * NSEC_PER_SEC)

REGISTRY(struct ktest_resource, ktest_resources);

static struct machine {
	unsigned long lo[RANGES], hi[RANGES];
	char *bytes[RANGES];
	unsigned int ranges;
	struct cpu_head heads[MAX_CPUS];
	struct ring rings[MAX_CPUS], spares[MAX_CPUS];
	unsigned long resources[RESOURCES];
	u32 text, mode;
	cpumask_t online;
	struct trace_instance top;
	void *ops, *hook;
} was;

/* Of all instructions. */
static u32 sum_text(void)
{
	const u32 *at = (const u32 *)ALIGN_UP((unsigned long)_text, 4ul);
	u32 sum = 0;

	for (; at < (const u32 *)_etext; at++)
		sum = (sum << 1 | sum >> 31) ^ *at;
	return sum;
}

static unsigned int nr_resources(void)
{
	return min((unsigned int)(__stop_ktest_resources -
				  __start_ktest_resources),
		   RESOURCES);
}

static void count_resources(unsigned long *counts)
{
	for (unsigned int i = 0; i < nr_resources(); i++)
		counts[i] = __start_ktest_resources[i].count();
}

static void note_values(void)
{
	for (unsigned int i = 0; i < was.ranges; i++)
		memcpy(was.bytes[i], (void *)was.lo[i], was.hi[i] - was.lo[i]);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		was.heads[cpu] = cpus[cpu].head;
	memcpy(was.rings, rings, sizeof(was.rings));
	memcpy(was.spares, ring_spares, sizeof(was.spares));
	count_resources(was.resources);
	was.text = sum_text();
	was.mode = ring_mode;
	was.online = cpus_online;
	was.top = trace_top;
	was.ops = trace_ops;
	was.hook = sched_switch_hook;
}

bool seam_machine_note(const unsigned long *ranges, unsigned int nr)
{
	for (unsigned int i = 0; i < was.ranges; i++)
		kfree(was.bytes[i]);
	was.ranges = min(nr, RANGES);
	for (unsigned int i = 0; i < was.ranges; i++) {
		was.lo[i] = ranges[2 * i];
		was.hi[i] = ranges[2 * i + 1];
		was.bytes[i] = kmalloc(was.hi[i] - was.lo[i]);
		if (!was.bytes[i])
			return false;
	}
	note_values();
	return true;
}

/* ---- The comparison ---- */

static u64 field_value(const void *subject, const struct field *f)
{
	const char *at = (const char *)subject + f->offset;

	return f->size == 1 ? *(const u8 *)at :
	       f->size == 4 ? *(const u32 *)at :
	       f->size == 8 ? *(const u64 *)at :
			      0;
}

static void compare_fields(const char *name, int number, const void *now,
			   const void *before, const struct field *f,
			   unsigned int nr)
{
	static const u64 zeros[8];

	for (; nr; nr--, f++) {
		const char *a = (const char *)now + f->offset;
		const char *b = f->rule == SAME ?
					(const char *)before + f->offset :
					(const char *)zeros;
		bool wrong = f->rule == DEPTH ?
				     field_value(now, f) > TASK_RETURNS :
				     f->rule != FREE && memcmp(a, b, f->size);

		if (wrong)
			seam_wrong("%s %d: %s is %llx, was %llx", name, number,
				   f->name,
				   (unsigned long long)field_value(now, f),
				   f->rule == SAME ?
					   (unsigned long long)field_value(
						   before, f) :
					   0);
	}
}

static bool compare_task(struct task *t, void *arg)
{
	(void)arg;
	compare_fields(t->name, t->pid, t, t, task_fields,
		       ARRAY_SIZE(task_fields));
	return true;
}

/* A ring's place lies in one of its pages, or is closed as before. */
static void compare_place(unsigned int cpu)
{
	const struct ring_place *now = &cpus[cpu].head.ring,
				*before = &was.heads[cpu].ring;

	if (!now->calls != !before->calls || !now->graph != !before->graph ||
	    !now->end != !before->end)
		seam_wrong("CPU %u: its ring is open or closed otherwise", cpu);
}

static void compare_cpu(unsigned int cpu)
{
	compare_fields("CPU", cpu, &cpus[cpu].head, &was.heads[cpu],
		       head_fields, ARRAY_SIZE(head_fields));
	compare_fields("ring", cpu, &rings[cpu], &was.rings[cpu], ring_fields,
		       ARRAY_SIZE(ring_fields));
	compare_fields("spare", cpu, &ring_spares[cpu], &was.spares[cpu],
		       ring_fields, ARRAY_SIZE(ring_fields));
	compare_place(cpu);
}

/* Words that differ. tools/seams knows their names. */
static void compare_range(unsigned int i)
{
	const u32 *now = (const u32 *)was.lo[i], *end = (const u32 *)was.hi[i],
		  *before = (const u32 *)was.bytes[i];

	for (; now < end; now++, before++)
		if (*now != *before)
			printk("seam-bytes: %lx %x %x\n", (unsigned long)now,
			       *before, *now);
}

static void compare_resources(void)
{
	unsigned long counts[RESOURCES];

	for (u64 slept = 0; slept < SETTLE_NS; slept += NSEC_PER_MSEC) {
		count_resources(counts);
		if (!memcmp(counts, was.resources,
			    nr_resources() * sizeof(counts[0])))
			return;
		task_sleep(NSEC_PER_MSEC);
	}
	for (unsigned int i = 0; i < nr_resources(); i++)
		if (counts[i] != was.resources[i])
			seam_wrong("%s: %lu, was %lu",
				   __start_ktest_resources[i].name, counts[i],
				   was.resources[i]);
}

void seam_machine_compare(void)
{
	compare_resources();
	if (sum_text() != was.text)
		seam_wrong("the text differs");
	if (ring_mode != was.mode || trace_ops != was.ops ||
	    (void *)sched_switch_hook != was.hook)
		seam_wrong("mode %x, was %x, ops %pS, hook %pS", ring_mode,
			   was.mode, trace_ops, sched_switch_hook);
	if (memcmp(&trace_top, &was.top, sizeof(was.top)))
		seam_wrong("the top level's struct differs");
	for (unsigned int i = 1; i < INSTANCES; i++)
		if (trace_instances[i].buffer || trace_instances[i].users)
			seam_wrong("instance %u is there", i);
	if (cpus_online != was.online)
		seam_wrong("CPUs %x are online", cpus_online);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		compare_cpu(cpu);
	task_for_each(compare_task, NULL);
	for (unsigned int i = 0; i < was.ranges; i++)
		compare_range(i);
	/* Some bytes differ for a reason, which is this case's. */
	note_values();
}
