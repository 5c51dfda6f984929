/* SPDX-License-Identifier: MIT */
/*
 * Triggers of events, and those of functions that switch events: they act at their event
 * alone, where their filter passes, as often as their count says, and an event that waits for
 * one is not recorded.
 */
#include <tracer/testing.h>

#include <kernel/mm/kmalloc.h>
#include <tracer/events/event_trigger.h>
#include <kernel/test/again.h>

#define KMALLOC "events/kmem/kmalloc/"
#define KFREE "events/kmem/kfree/"

static void allocate_and_free(size_t size)
{
	kfree(kmalloc(size));
}

/* Only this task's allocations of 777 bytes matter. */
static void begin_own_kmalloc(void)
{
	char filter[60];

	trace_test_reset();
	snprintf(filter, sizeof(filter), "bytes_req == 777 && common_pid == %d",
		 current_task()->pid);
	trace_test_put(KMALLOC "filter", filter);
}

KTEST(trigger_off, "event_trigger.traceoff_and_traceon")
{
	begin_own_kmalloc();
	KEXPECT_EQ(t,
		   trace_test_put(KMALLOC "trigger",
				  "traceoff if bytes_req == 777"),
		   0);
	KEXPECT_EQ(t, trace_test_put(KMALLOC "enable", "1"), 0);
	KEXPECT(t, trace_test_says(KMALLOC "enable", "1*\n"));
	allocate_and_free(778);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	KEXPECT_EQ(t, trace_test_written(), 0);
	/* The event that stops tracing is the last that is recorded. */
	allocate_and_free(777);
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	KEXPECT_EQ(t, trace_test_written(), 1);
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 1);
	KEXPECT_EQ(t, trace_test_put(KMALLOC "trigger", "!traceoff"), 0);
	KEXPECT_EQ(t,
		   trace_test_put(KMALLOC "trigger",
				  "traceon:1 if bytes_req == 779"),
		   0);
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 1);
	allocate_and_free(779);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 2);
	KEXPECT(t, trace_test_says(KMALLOC "trigger",
				   "traceon:count=0 if bytes_req == 779\n"));
	KEXPECT_EQ(t, trace_test_put(KMALLOC "trigger", "!traceon"), 0);
	KEXPECT(t, trace_test_says(KMALLOC "enable", "1\n"));
	trace_test_reset();
	KEXPECT(t, trace_test_says(KMALLOC "filter", "none\n"));
}

/* An event switches another. That one waits with its label on, and is not recorded. */
KTEST(trigger_enable, "event_trigger.enable_event")
{
	void *first = kmalloc(777);
	char trigger[80];

	begin_own_kmalloc();
	KEXPECT(t, trace_test_says(KMALLOC "enable", "0\n"));
	snprintf(trigger, sizeof(trigger),
		 "enable_event:kmem:kmalloc:1 if ptr == %#lx",
		 (unsigned long)first);
	KEXPECT_EQ(t, trace_test_put(KFREE "trigger", trigger), 0);
	KEXPECT(t, trace_test_says(KMALLOC "enable", "0*\n"));
	KEXPECT(t, trace_test_says(KFREE "enable", "0*\n"));
	KEXPECT(t, trace_test_says("set_event", ""));
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 0);
	kfree(first);
	KEXPECT(t, trace_test_says(KMALLOC "enable", "1*\n"));
	KEXPECT(t, trace_test_says("set_event", "kmem:kmalloc\n"));
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 1);
	/* Its one turn is over: an event that is switched off stays off. */
	KEXPECT_EQ(t, trace_test_put(KMALLOC "enable", "0"), 0);
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 1);
	KEXPECT_EQ(t, trace_test_put(KFREE "trigger", ""), 0);
	KEXPECT(t, trace_test_says(KFREE "enable", "0\n"));
	KEXPECT(t, trace_test_says(KMALLOC "enable", "0\n"));
	trace_test_reset();
}

KTEST(trigger_stack, "event_trigger.stacktrace")
{
	char *text = kmalloc(4096);

	KASSERT(t, text);
	begin_own_kmalloc();
	KEXPECT_EQ(t,
		   trace_test_put(KMALLOC "trigger",
				  "stacktrace:2 if bytes_req == 777"),
		   0);
	for (int i = 0; i < 3; i++)
		allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 2);
	trace_test_read("trace", text, 4096, 100);
	KEXPECT(t, strstr(text, "<stack trace>\n => kmalloc\n => "));
	trace_test_reset();
	kfree(text);
}

/* A function's trigger switches an event on, another one off. */
/* Option stacktrace: a stack behind every event, and behind no other entry. */
KTEST(option_stacktrace, "options.stacktrace")
{
	char *text = kmalloc(4096);

	KASSERT(t, text);
	begin_own_kmalloc();
	KEXPECT_EQ(t, trace_test_put("options/stacktrace", "1"), 0);
	KEXPECT_EQ(t, trace_test_put(KMALLOC "enable", "1"), 0);
	allocate_and_free(777);
	allocate_and_free(
		776); /* the filter does not pass it, so it has no stack */
	KEXPECT_EQ(t, trace_test_written(), 2);
	trace_test_read("trace", text, 4096, 100);
	KEXPECT(t, strstr(text, "kmalloc: call_site="));
	KEXPECT(t, strstr(text, "<stack trace>\n => kmalloc\n => "));
	KEXPECT_EQ(t, trace_test_put("options/stacktrace", "0"), 0);
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 3);
	/* An event about which nothing else is special. */
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put(KFREE "enable", "1"), 0);
	KEXPECT_EQ(t, trace_test_put("options/stacktrace", "1"), 0);
	allocate_and_free(777);
	trace_test_read("trace", text, 4096, 100);
	KEXPECT(t, strstr(text, "<stack trace>\n => kfree\n => "));
	KEXPECT_EQ(t, trace_test_put("options/stacktrace", "0"), 0);
	trace_test_reset();
	kfree(text);
}

KTEST(trigger_function, "event_trigger.of_functions")
{
	begin_own_kmalloc();
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter",
				  "victim_call:enable_event:kmem:kmalloc "
				  "victim_other:disable_event:kmem:kmalloc:2"),
		   0);
	KEXPECT(t,
		trace_test_says(
			"set_ftrace_filter",
			"#### all functions enabled ####\n"
			"victim_call:enable_event:kmem:kmalloc:unlimited\n"
			"victim_other:disable_event:kmem:kmalloc:count=2\n"));
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 0);
	for (int i = 0; i < 2; i++) {
		victim_call(1);
		KEXPECT(t, trace_test_says(KMALLOC "enable", "1*\n"));
		allocate_and_free(777);
		victim_other(1);
		KEXPECT(t, trace_test_says(KMALLOC "enable", "0*\n"));
		allocate_and_free(777);
	}
	KEXPECT_EQ(t, trace_test_written(), 2);
	victim_call(1);
	victim_other(1); /* its turns are over */
	allocate_and_free(777);
	KEXPECT_EQ(t, trace_test_written(), 3);
	KEXPECT_EQ(t,
		   trace_test_add("set_ftrace_filter",
				  "!victim_call:enable_event:kmem:kmalloc"),
		   0);
	trace_test_reset();
	KEXPECT(t, trace_test_says(KMALLOC "enable", "0\n"));
}

#define PRINT "events/ftrace/print/trigger"

KTEST(trigger_markers, "event_trigger.markers")
{
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put(PRINT, "traceoff if buf ~ \"*two*\""), 0);
	KEXPECT(t, trace_test_says(PRINT,
				   "traceoff:unlimited if buf ~ \"*two*\"\n"));
	KEXPECT_EQ(t, trace_test_put("trace_marker", "number one"), 0);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	KEXPECT_EQ(t, trace_test_put("trace_marker", "number two"), 0);
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	/* A marker that is not recorded has no effect. */
	KEXPECT_EQ(t, trace_test_put(PRINT, ""), 0);
	KEXPECT_EQ(t, trace_test_put(PRINT, "enable_event:kmem:kmalloc:1"), 0);
	KEXPECT(t, trace_test_put("trace_marker", "three") < 0);
	KEXPECT(t, trace_test_says(KMALLOC "enable", "0*\n"));
	KEXPECT_EQ(t, trace_test_put("tracing_on", "1"), 0);
	KEXPECT_EQ(t, trace_test_put("trace_marker", "four"), 0);
	KEXPECT(t, trace_test_says(KMALLOC "enable", "1*\n"));
	KEXPECT(t,
		trace_test_says(PRINT, "enable_event:kmem:kmalloc:count=0\n"));
	KEXPECT_EQ(t, trace_test_put(PRINT, "traceoff if bug == 1"), -EINVAL);
	KEXPECT(t, strstr(trace_test_error, "Field not found"));
	/* An event that a trigger has switched stays as it is when the trigger goes. */
	KEXPECT_EQ(t, trace_test_put(PRINT, ""), 0);
	KEXPECT(t, trace_test_says(KMALLOC "enable", "1\n"));
	trace_test_reset();
}

KTEST(trigger_marker_stack, "event_trigger.stack_of_a_marker")
{
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put(PRINT, "stacktrace:2"), 0);
	for (int i = 0; i < 3; i++)
		KEXPECT_EQ(t, trace_test_put("trace_marker", "here"), 0);
	/* Three markers, and two stacks. */
	KEXPECT_EQ(t, trace_test_written(), 5);
	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("trace_marker", "here"), 0);
	KEXPECT_EQ(t, trace_test_written(), 1);
	trace_test_reset();
}

/* A filter sees the text of one entry, as Linux does, and a long text has several. */
KTEST(trigger_marker_entry, "event_trigger.marker_is_one_entry")
{
	char *text = kmalloc(2 * RING_MARK_MAX + 1);

	KASSERT(t, text);
	trace_test_reset();
	memset(text, ' ', 2 * RING_MARK_MAX);
	text[0] = 'a';
	text[2 * RING_MARK_MAX - 1] = 'z';
	text[2 * RING_MARK_MAX] = '\0';
	KEXPECT_EQ(t, trace_test_put(PRINT, "traceoff if buf ~ \"a*z\""), 0);
	KEXPECT_EQ(t, trace_test_put("trace_marker", text), 0);
	KEXPECT_EQ(t, trace_test_written(), 2);
	KEXPECT(t, trace_test_says("tracing_on", "1\n"));
	KEXPECT_EQ(t, trace_test_put(PRINT, ""), 0);
	KEXPECT_EQ(t, trace_test_put(PRINT, "traceoff if buf ~ \"*z\""), 0);
	KEXPECT_EQ(t, trace_test_put("trace_marker", text), 0);
	KEXPECT(t, trace_test_says("tracing_on", "0\n"));
	trace_test_reset();
	kfree(text);
}

/* A list that replaces another goes on counting where that one is. */
KTEST(trigger_count_kept, "event_trigger.count_is_kept_while_others_change")
{
	begin_own_kmalloc();
	KEXPECT_EQ(t,
		   trace_test_put(KMALLOC "trigger",
				  "stacktrace:3 if bytes_req == 777"),
		   0);
	for (int i = 0; i < 5; i++) {
		allocate_and_free(777);
		KEXPECT_EQ(t, trace_test_put(KMALLOC "trigger", "traceon"), 0);
		KEXPECT_EQ(t, trace_test_put(KMALLOC "trigger", "!traceon"), 0);
	}
	KEXPECT_EQ(t, trace_test_written(), 3);
	trace_test_reset();
}

KTEST(trigger_errors, "event_trigger.bad_input")
{
	static const struct {
		const char *text, *says;
		int err;
	} bad[] = {
		{ "explode", "no command", -EINVAL },
		{ "enable_event:kmem", "no such event", -EINVAL },
		{ "enable_event:kmem:nothing", "no such event", -EINVAL },
		{ "traceoff:x", "no count", -EINVAL },
		{ "traceoff:0", "no count", -EINVAL },
		{ "traceoff if nothing == 1", "Field not found", -EINVAL },
		{ "!traceoff", "no such trigger", -ENODEV },
		{ "stacktrace", "already", -EEXIST },
	};

	trace_test_reset();
	KEXPECT(t,
		trace_test_says(
			KFREE "trigger",
			"# Available triggers:\n# traceon traceoff stacktrace "
			"snapshot enable_event:SYSTEM:EVENT "
			"disable_event:SYSTEM:EVENT"
			"\n"));
	KEXPECT_EQ(t, trace_test_put(KFREE "trigger", "stacktrace:3"), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		KEXPECT_EQ(t, trace_test_put(KFREE "trigger", bad[i].text),
			   bad[i].err);
		KEXPECT(t, strstr(trace_test_error, bad[i].says));
	}
	KEXPECT(t, strstr(trace_test_error, "already"));
	KEXPECT_EQ(t, trace_test_put(KFREE "trigger", "!stacktrace"), 0);
	trace_test_reset();
}
