/* SPDX-License-Identifier: MIT */
/* Clients of the tracer: client.h. */
#include <tracer/core/client.h>

#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/panic.h>

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

void clients_sites_moved(void)
{
	TELL(sites_moved);
}

/* A client that has registered twice would be told everything twice. */
static void clients_start(void)
{
	const struct trace_client *c, *other;

	for_each_client(c) for (other = __start_trace_clients; other < c;
				other++) if (!strcmp(other->name, c->name))
		panic("two clients of the tracer are called %s", c->name);
}
INIT_HOOK(INIT_SITES, clients_start);
