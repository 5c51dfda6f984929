/* SPDX-License-Identifier: MIT */
/* Clients of the tracer: client.h. */
#include <tracer/core/client.h>

#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/panic.h>
#include <kernel/patch_path.h>

#define for_each_client(c) for_each_registered (c, trace_clients)

/* Tell all clients. A client that can fail ends this with its error. */
#define TELL(moment, ...)                                                      \
	do {                                                                   \
		const struct trace_client *c;                                  \
                                                                               \
		mutex_assert_held(&trace_mutex);                               \
		for_each_client(c) if (c->moment) c->moment(__VA_ARGS__);      \
	} while (0)
#define ASK(moment, ...)                                                       \
	do {                                                                   \
		const struct trace_client *c;                                  \
		int err = 0;                                                   \
                                                                               \
		mutex_assert_held(&trace_mutex);                               \
		for_each_client(c) if (!err && c->moment) err =                \
			c->moment(__VA_ARGS__);                                \
		return err;                                                    \
	} while (0)

u32 clients_need(void)
{
	const struct trace_client *c;
	u32 needs = 0;

	mutex_assert_held(&trace_mutex);
	for_each_client(c) needs |= c->needs ? c->needs() : 0;
	return needs;
}

int clients_allow(struct ctl_handle *h, const struct tracer *tracer)
{
	ASK(allows, h, tracer);
}

int clients_prepare(struct ctl_handle *h, const struct tracer *tracer)
{
	ASK(prepares, h, tracer);
}

void clients_selected(const struct tracer *tracer)
{
	TELL(selected, tracer);
}

int clients_settings_changed(struct ctl_handle *h)
{
	ASK(settings_changed, h);
}

void clients_options_changed(void)
{
	TELL(options_changed);
}

int clients_instance_leaves(struct ctl_handle *h,
			    const struct trace_instance *in)
{
	ASK(instance_leaves, h, in);
}

int clients_instance_ends(struct ctl_handle *h, const struct trace_instance *in)
{
	ASK(instance_ends, h, in);
}

int clients_instance_restarts(struct ctl_handle *h,
			      const struct trace_instance *in, bool reset)
{
	ASK(instance_restarts, h, in, reset);
}

void clients_instance_gone(struct trace_instance *in)
{
	TELL(instance_gone, in);
}

void clients_trace_cleared(struct trace_instance *in, cpumask_t mask)
{
	TELL(trace_cleared, in, mask);
}

void clients_sites_moved(void)
{
	TELL(sites_moved);
}

noinline int clients_marked(struct ctl_handle *h, const char *text, size_t len)
{
	const struct trace_client *c;
	int err = 0;

	for_each_client(c) if (!err && c->marked) err = c->marked(
		h, text, len, (unsigned long)__builtin_return_address(0));
	return err;
}

/* Those that have `switched` and `wants`, and NULL behind them. Written at boot. */
static void (*switch_hooks[CLIENT_HOOKS + 1])(struct task *prev,
					      struct task *next, u64 away,
					      unsigned long hook_ip);
static u32 (*want_hooks[CLIENT_HOOKS + 1])(unsigned int w);

noinline void clients_switched(struct task *prev, struct task *next, u64 away,
			       unsigned long hook_ip)
{
	for (unsigned int i = 0; switch_hooks[i]; i++)
		switch_hooks[i](prev, next, away, hook_ip);
}

PATCH_INDIRECT_OPEN(clients_switched);
PATCH_INDIRECT_OPEN(clients_called);

void (*clients_call_hook)(unsigned int site, unsigned long ip);

noinline void clients_called(unsigned int site, unsigned long ip)
{
	void (*hook)(unsigned int site, unsigned long ip) =
		READ_ONCE(clients_call_hook);

	if (hook)
		hook(site, ip);
}

void clients_hook_calls(void)
{
	void (*hook)(unsigned int site, unsigned long ip) = NULL;
	const struct trace_client *c;

	for_each_client(c) if (c->called && c->needs() & NEED_CALLS) hook =
		c->called;
	PATCH_HOOK_SET(clients_call_hook, clients_called, hook);
}

u32 clients_want(unsigned int w)
{
	u32 sites = 0;

	/* Once, for all hooks: a batch asks for each word. */
	mutex_assert_held(&trace_mutex);
	for (unsigned int i = 0; want_hooks[i]; i++)
		sites |= want_hooks[i](w);
	return sites;
}

unsigned int clients_users(unsigned int site)
{
	unsigned int n = 0;

	for (unsigned int i = 0; want_hooks[i]; i++)
		n += want_hooks[i](site / 32) >> site % 32 & 1;
	return n;
}

struct trace_ops *clients_ops(void)
{
	const struct trace_client *c;
	struct trace_ops *ops = NULL;

	for_each_client(c) if (!ops && c->ops) ops = c->ops();
	return ops;
}

static void find_hooks(void)
{
	unsigned int switches = 0, wants = 0, calls = 0;
	const struct trace_client *c;

	for_each_client(c)
	{
		calls += !!c->called;
		if (switches + !!c->switched > CLIENT_HOOKS ||
		    wants + !!c->wants > CLIENT_HOOKS || calls > 1)
			panic("%s: too many clients have the same hook",
			      c->name);
		if (c->switched) {
			patch_path_check(clients_switched, c->switched);
			switch_hooks[switches++] = c->switched;
		}
		if (c->wants)
			want_hooks[wants++] = c->wants;
	}
}

/* A client that has registered twice would be told everything twice. */
static void clients_start(void)
{
	const struct trace_client *c, *other;

	find_hooks();
	for_each_client(c) for (other = __start_trace_clients; other < c;
				other++) if (!strcmp(other->name, c->name))
		panic("two clients of the tracer are called %s", c->name);
}
INIT_HOOK(INIT_SITES, clients_start);
