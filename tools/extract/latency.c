/* SPDX-License-Identifier: MIT */
/* The latency format, as the guest prints it: tracer/latency/output_latency.c. */
#include "latency.h"

/* clang-format off */
static const char legend[] =
"#                    _------=> CPU#            \n"
"#                   / _-----=> irqs-off/BH-disabled\n"
"#                  | / _----=> need-resched    \n"
"#                  || / _---=> hardirq/softirq \n"
"#                  ||| / _--=> preempt-depth   \n"
"#                  |||| / _-=> migrate-disable \n"
"#                  ||||| /     delay           \n"
"#  cmd     pid     |||||| time  |   caller     \n"
"#     \\   /        ||||||  \\    |    /       \n";
/* clang-format on */

/* Of a buffer without a longest latency, times count from where the first CPU's ring began. */
static u64 beginning(const struct trace *t)
{
	u64 first = 0, began;

	for (unsigned int i = 0; i < t->nr_cursors; i++) {
		if (!t->cursors[i].ring)
			continue;
		began = guest_get(t->g, t->cursors[i].ring, "ring", "began");
		if (!first || began < first)
			first = began;
	}
	return first;
}

void latency_open(const struct trace *t, struct latency_view *v)
{
	u64 longest = guest_symbol(t->g, "latency.c", "longest");

	*v = (struct latency_view){
		.longest = t->latency,
		.format = t->latency || trace_option(t, "latency-format"),
		.until = ~0ull,
	};
	if (v->longest) {
		v->at = longest;
		v->since = guest_get(t->g, longest, "latency", "since");
		v->until = guest_get(t->g, longest, "latency", "until");
	}
	if (v->format)
		v->zero = v->since ? v->since : beginning(t);
}

static u64 of_longest(const struct trace *t, const struct latency_view *v,
		      const char *member)
{
	return v->longest ? guest_get(t->g, v->at, "latency", member) : 0;
}

static void put_place(const struct trace *t, const char *label, u64 ip, FILE *f)
{
	fprintf(f, "#  => %s", label);
	put_function(t, ip, ip, f);
	fputc('\n', f);
}

void latency_header(const struct trace *t, const struct latency_view *v,
		    u64 entries, u64 written, FILE *f)
{
	static const char rule[] = "#    -----------------\n";
	u64 began = of_longest(t, v, "began");
	s32 pid = of_longest(t, v, "pid");

	fprintf(f, "# %s latency trace v1.1.5 on nopl\n", t->tracer);
	fprintf(f, "# ----------------------------------------------------"
		   "----------------\n");
	fprintf(f,
		"# latency: %llu us, #%llu/%llu, CPU#%u | (M:preempt VP:0, "
		"KP:0, SP:0 HP:0 #P:%u)\n",
		(unsigned long long)(trace_delta_ns(t,
						    of_longest(t, v, "ticks")) /
				     1000),
		(unsigned long long)entries, (unsigned long long)written,
		(unsigned int)of_longest(t, v, "cpu"), t->nr_cpus);
	fprintf(f,
		"%s#    | task: %s-%d (uid:0 nice:0 policy:0 rt_prio:%d)\n%s",
		rule, trace_comm(t, pid), pid, (int)of_longest(t, v, "prio"),
		rule);
	if (began) {
		put_place(t, "started at: ", began, f);
		put_place(t, "ended at:   ", of_longest(t, v, "ended"), f);
		fputs("#\n", f);
	}
	fprintf(f, "#\n%s", t->graph ? "" : legend);
}

u64 latency_between(const struct trace *t, u64 from, u64 to)
{
	return to > from ? trace_delta_ns(t, to - from) : 0;
}
