/* SPDX-License-Identifier: MIT */
/*
 * Events: places in the kernel that can tell the tracer when they are reached. list.h has all.
 * trace_NAME(...) costs one instruction while the event NAME is off (arch/jump_label.h).
 * When it is on, it calls the tracer, which supplies event_NAME() (tracer/events/).
 */
#ifndef KERNEL_EVENT_H
#define KERNEL_EVENT_H

#include <arch/jump_label.h>
#include <kernel/types.h>

struct task;
struct timer;

/*
 * A text that a REASON field may point to. Readers of binary records find it by its address,
 * in printk_formats. Filters look at it with interrupts off, so it is short.
 */
#define EVENT_WORD_MAX 32 /* the NUL included */
#define EVENT_WORD(ident, text)                                                \
	static_assert(sizeof(text) <= EVENT_WORD_MAX, "EVENT_WORD_MAX");       \
	static const char ident[] = text;                                      \
	static const char *const event_word_##ident REGISTER(event_words) =    \
		ident
typedef const char *event_word;
REGISTRY(event_word, event_words);

#define EVENT(system, name, params, args, fill, text)                          \
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
