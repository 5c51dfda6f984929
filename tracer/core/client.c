/* SPDX-License-Identifier: MIT */
/* Clients of the tracer: client.h. */
#include <tracer/core/client.h>

#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/panic.h>
#include <kernel/patch_path.h>

#define for_each_client(c) for_each_registered (c, trace_clients)

/* Tell all clients; those of them that can fail end it with an error. */
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

/* Those that have `switched`, `called` and `wants`, and NULL behind them. Written at boot. */
static void (*switch_hooks[CLIENT_HOOKS + 1])(struct task *prev,
					      struct task *next, u64 away,
					      unsigned long hook_ip);
static void (*call_hooks[CLIENT_HOOKS + 1])(unsigned int site,
					    unsigned long ip);
static u32 (*want_hooks[CLIENT_HOOKS + 1])(unsigned int w);

noinline void clients_switched(struct task *prev, struct task *next, u64 away,
			       unsigned long hook_ip)
{
	for (unsigned int i = 0; switch_hooks[i]; i++)
		switch_hooks[i](prev, next, away, hook_ip);
}

noinline void clients_called(unsigned int site, unsigned long ip)
{
	for (unsigned int i = 0; call_hooks[i]; i++)
		call_hooks[i](site, ip);
}

u32 clients_want(unsigned int w)
{
	u32 sites = 0;

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

/* Add a client's function to the hooks of that kind, and look whether the build knows the call. */
#define ADD_HOOK(hooks, n, member, caller, c)                                  \
	do {                                                                   \
		if (!(c)->member)                                              \
			break;                                                 \
		if ((n) == CLIENT_HOOKS)                                       \
			panic("%s: more than %u clients have `" #member "`",   \
			      (c)->name, CLIENT_HOOKS);                        \
		patch_path_check((caller), (c)->member);                       \
		(hooks)[(n)++] = (c)->member;                                  \
	} while (0)

static void find_hooks(void)
{
	unsigned int switches = 0, calls = 0, wants = 0;
	const struct trace_client *c;

	for_each_client(c)
	{
		ADD_HOOK(switch_hooks, switches, switched, clients_switched, c);
		ADD_HOOK(call_hooks, calls, called, clients_called, c);
		if (c->wants && wants == CLIENT_HOOKS)
			panic("%s: more than %u clients have `wants`", c->name,
			      CLIENT_HOOKS);
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
