/* SPDX-License-Identifier: MIT */
/*
 * Proves that each client goes through each moment: all that a client does for an instance ends
 * when the instance leaves, and then no client needs anything more than before.
 */
#include <tracer/testing.h>

#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <tracer/core/client.h>
#include <tracer/core/instances.h>
#include <kernel/test/again.h>

static int put(const char *file, const char *text)
{
	return trace_test_put(file, text);
}

static u32 needs_now(void)
{
	u32 needs;

	mutex_lock(&trace_mutex);
	needs = clients_need();
	mutex_unlock(&trace_mutex);
	return needs;
}

/* Of the clients, how many have the moment whose pointer is `offset` bytes behind their name? */
static unsigned int count_moment(size_t offset)
{
	const struct trace_client *c;
	unsigned int n = 0;

	for_each_registered (c, trace_clients)
		n += *(void *const *)((const char *)c + offset) != NULL;
	return n;
}

KTEST(clients_moments, "clients.each_moment_has_a_client")
{
	KNEED_CLIENT(t, "graph");
	KNEED_CLIENT(t, "events");
	KNEED_CLIENT(t, "profiler");
	KNEED_CLIENT(t, "latency");
	for (size_t at = offsetof(struct trace_client, needs);
	     at < sizeof(struct trace_client); at += sizeof(void *))
		KEXPECT(t, count_moment(at));
}

/* Everything that an instance can have a client do. */
static void use_all(struct ktest_run *t)
{
	char error[160];

	KASSERT(t, !ctl_mkdir(TRACING "instances/a", error, sizeof(error)));
	KEXPECT_EQ(t,
		   trace_test_add("instances/a/set_ftrace_filter",
				  "victim_other:dump victim_leaf:traceoff"),
		   0);
	KEXPECT_EQ(t, needs_now(), NEED_DUMPER | NEED_CALLS);
	KEXPECT_EQ(t, put("instances/a/snapshot", "1"), 0);
	KEXPECT_EQ(t,
		   put("instances/a/events/sched/sched_wakeup/trigger",
		       "traceoff"),
		   0);
	KEXPECT(t, needs_now() & NEED_C);
	KEXPECT_EQ(t, put("instances/a/events/sched/sched_wakeup/enable", "1"),
		   0);
	KEXPECT_EQ(t, put("max_graph_depth", "1"), 0);
	KEXPECT_EQ(t, needs_now(), NEEDS - 1);
}

KTEST(clients_walk, "clients.each_goes_through_each_moment")
{
	KNEED_CLIENT(t, "graph");
	KNEED_CLIENT(t, "events");
	struct ctl_handle h = { 0 };
	const struct trace_client *c;
	struct trace_instance *in;
	char error[160];
	irq_state_t irqs;
	u32 before;

	trace_test_reset();
	before = needs_now();
	KEXPECT_EQ(t, before, 0);
	use_all(t);
	in = instance_find("a");
	KASSERT(t, in);
	for_each_registered (c, trace_clients)
		KEXPECT(t, !c->marked || !c->marked(&h, "", 0, 0));
	mutex_lock(&trace_mutex);
	for_each_registered (c, trace_clients) {
		KEXPECT(t, !c->needs || c->needs() < NEEDS);
		KEXPECT(t, !c->allows || !c->allows(&h, &tracer_nop));
		KEXPECT(t, !c->prepares || !c->prepares(&h, &tracer_nop));
		if (c->selected)
			c->selected(&tracer_nop);
		KEXPECT(t, !c->settings_changed || !c->settings_changed(&h));
		if (c->trace_cleared)
			c->trace_cleared(in, ~0u);
		irqs = arch_irq_save();
		if (c->switched)
			c->switched(current_task(), current_task(), 0, 0);
		arch_irq_restore(irqs);
		if (c->options_changed)
			c->options_changed();
		if (c->sites_moved)
			c->sites_moved();
	}
	KEXPECT_EQ(t, clients_need(), NEEDS - 1);
	KEXPECT_EQ(t, clients_instance_leaves(&h, in), 0);
	KEXPECT(t, !(clients_need() & NEED_DUMPER));
	KEXPECT_EQ(t, clients_instance_restarts(&h, in, true), 0);
	KEXPECT_EQ(t, clients_instance_ends(&h, in), 0);
	KEXPECT_EQ(t, clients_need(), NEED_C_FOR_RETURNS);
	KEXPECT(t, !clients_ops());
	mutex_unlock(&trace_mutex);
	KEXPECT_EQ(t, put("max_graph_depth", "0"), 0);
	KEXPECT_EQ(t, needs_now(), before);
	/* A second time, when nothing is left to do. Pages are counted after the test. */
	KEXPECT_EQ(t, ctl_rmdir(TRACING "instances/a", error, sizeof(error)),
		   0);
	KEXPECT_EQ(t, needs_now(), before);
}
