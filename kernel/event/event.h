/*
 * Events: places in the kernel that can say what happens there. list.h has all of them.
 * trace_NAME(...) costs one instruction while the event NAME is off (arch/jump_label.h).
 * When it is on, it calls the tracer, which supplies event_NAME() (tracer/events/).
 */
#ifndef KERNEL_EVENT_H
#define KERNEL_EVENT_H

#include <arch/jump_label.h>
#include <kernel/types.h>

struct task;
struct timer;

/* Why a CPU interrupts another one, in words: ipi_* events. */
extern const char *const ipi_reasons[];

#define EVENT(system, name, params, args, fields, fill, text)                  \
	STATIC_KEY_DECLARE(event_##name);                                      \
	void event_##name params;                                              \
	static always_inline void trace_##name params                          \
	{                                                                      \
		if (static_branch(&key_event_##name))                          \
			event_##name args;                                     \
	}
#include <kernel/event/list.h>
#undef EVENT

#endif
