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

/* Those that have `switched`, and NULL behind them; written at boot. */
static void (*switch_hooks[SWITCH_CLIENTS + 1])(struct task *prev,
						struct task *next, u64 away,
						unsigned long hook_ip);

noinline void clients_switched(struct task *prev, struct task *next, u64 away,
			       unsigned long hook_ip)
{
	for (unsigned int i = 0; switch_hooks[i]; i++)
		switch_hooks[i](prev, next, away, hook_ip);
}

static void find_switch_hooks(void)
{
	const struct trace_client *c;
	unsigned int n = 0;

	for_each_client(c)
	{
		if (!c->switched)
			continue;
		if (n == SWITCH_CLIENTS)
			panic("more than %u clients of the tracer have "
			      "`switched`: %s",
			      SWITCH_CLIENTS, c->name);
		patch_path_check(clients_switched, c->switched);
		switch_hooks[n++] = c->switched;
	}
}

/* A client that has registered twice would be told everything twice. */
static void clients_start(void)
{
	const struct trace_client *c, *other;

	find_switch_hooks();
	for_each_client(c) for (other = __start_trace_clients; other < c;
				other++) if (!strcmp(other->name, c->name))
		panic("two clients of the tracer are called %s", c->name);
}
INIT_HOOK(INIT_SITES, clients_start);
