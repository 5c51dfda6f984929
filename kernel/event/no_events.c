/* SPDX-License-Identifier: MIT */
/* The kernel's events where nothing can switch them on: a kernel without tracer/events. */
#include <kernel/event/event.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define EVENT(system, name, params, args, fill, text)                          \
	STATIC_KEY(event_##name);                                              \
	void event_##name params                                               \
	{                                                                      \
	}
#include <kernel/event/list.h>
