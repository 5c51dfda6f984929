/* SPDX-License-Identifier: MIT */
/* The control files of events: states, words, formats in pieces, and bad input. */
#include <tracer/testing.h>

#include <kernel/mm/kmalloc.h>
#include <tracer/events/events.h>

KTEST(event_enable, "event_files.enable")
{
	trace_test_reset();
	KEXPECT(t, trace_test_says("events/enable", "0\n"));
	KEXPECT(t, trace_test_says("events/sched/enable", "0\n"));
	KEXPECT_EQ(t, trace_test_put("events/sched/sched_switch/enable", "1"),
		   0);
	KEXPECT(t, trace_test_says("events/sched/sched_switch/enable", "1\n"));
	KEXPECT(t, trace_test_says("events/sched/enable", "X\n"));
	KEXPECT(t, trace_test_says("events/enable", "X\n"));
	KEXPECT(t, trace_test_says("events/irq/enable", "0\n"));
	KEXPECT_EQ(t, trace_test_put("events/sched/enable", "1"), 0);
	KEXPECT(t, trace_test_says("events/sched/enable", "1\n"));
	KEXPECT_EQ(t, trace_test_put("events/enable", "1"), 0);
	KEXPECT(t, trace_test_says("events/enable", "1\n"));
	KEXPECT_EQ(t, trace_test_put("events/enable", "2"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("events/enable", "x"), -EINVAL);
	KEXPECT(t, trace_test_says("events/enable", "1\n"));
	KEXPECT_EQ(t, trace_test_put("events/enable", "0"), 0);
	KEXPECT(t, trace_test_says("events/enable", "0\n"));
	trace_test_reset();
}

KTEST(event_words, "event_files.set_event")
{
	trace_test_reset();
	KEXPECT(t, trace_test_says("set_event", ""));
	KEXPECT_EQ(t, trace_test_put("set_event", "ipi:*"), 0);
	KEXPECT(t, trace_test_says(
			   "set_event",
			   "ipi:ipi_raise\nipi:ipi_entry\nipi:ipi_exit\n"));
	KEXPECT_EQ(t, trace_test_add("set_event", "!ipi:ipi_entry"), 0);
	KEXPECT(t,
		trace_test_says("set_event", "ipi:ipi_raise\nipi:ipi_exit\n"));
	KEXPECT_EQ(t, trace_test_add("set_event", "cpu_up kfree"), 0);
	KEXPECT(t, trace_test_says("set_event", "ipi:ipi_raise\nipi:ipi_exit\n"
						"kmem:kfree\nnopl:cpu_up\n"));
	/* The first of two words is right, and nothing changes. */
	KEXPECT_EQ(t, trace_test_put("set_event", "sched: nothing:*"), -EINVAL);
	KEXPECT(t, strstr(trace_test_error, "nothing:*"));
	KEXPECT(t, trace_test_says("set_event", "ipi:ipi_raise\nipi:ipi_exit\n"
						"kmem:kfree\nnopl:cpu_up\n"));
	KEXPECT_EQ(t, trace_test_put("set_event", "*:kmalloc irq"), 0);
	KEXPECT(t, trace_test_says("set_event",
				   "irq:irq_handler_entry\n"
				   "irq:irq_handler_exit\nkmem:kmalloc\n"));
	KEXPECT_EQ(t, trace_test_put("set_event", ""), 0);
	KEXPECT(t, trace_test_says("set_event", ""));
	trace_test_reset();
}

#define COMMON                                                                 \
	"format:\n"                                                            \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;"              \
	"\tsigned:0;\n"                                                        \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;"              \
	"\tsigned:0;\n"                                                        \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"      \
	"\tsigned:0;\n"                                                        \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"             \
	"\n"

/* As Linux's format files are, to the byte: these two have the same on every machine. */
KTEST(event_formats, "event_files.format")
{
	char head[400], all[1200];
	unsigned int id = 0;
	struct event *e;

	for_each_event (e)
		if (!strcmp(e->name, "sched_migrate_task"))
			id = event_id(e);
	snprintf(head, sizeof(head), "name: sched_migrate_task\nID: %u\n", id);
	snprintf(all, sizeof(all), "%s%s%s", head, COMMON,
		 "\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;"
		 "\tsigned:0;\n"
		 "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
		 "\tfield:int prio;\toffset:16;\tsize:4;\tsigned:1;\n"
		 "\tfield:int orig_cpu;\toffset:20;\tsize:4;\tsigned:1;\n"
		 "\tfield:int dest_cpu;\toffset:24;\tsize:4;\tsigned:1;\n"
		 "\nprint fmt: \"comm=%s pid=%d prio=%d orig_cpu=%d "
		 "dest_cpu=%d\", __get_str(comm), REC->pid, REC->prio, "
		 "REC->orig_cpu, REC->dest_cpu\n");
	KEXPECT(t,
		trace_test_says("events/sched/sched_migrate_task/format", all));
	snprintf(all, sizeof(all), "name: irq_handler_exit\nID: %u\n%s%s",
		 id + 4, COMMON,
		 "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
		 "\tfield:int ret;\toffset:12;\tsize:4;\tsigned:1;\n"
		 "\nprint fmt: \"irq=%d ret=%s\", REC->irq, REC->ret ? "
		 "\"handled\" : \"unhandled\"\n");
	KEXPECT(t, trace_test_says("events/irq/irq_handler_exit/format", all));
	KEXPECT(t, trace_test_says("events/ftrace/print/id", "5\n"));
}

KTEST(event_errors, "event_files.error_log")
{
	static char text[400];
	char *line;

	trace_test_reset();
	KEXPECT_EQ(t, trace_test_put("error_log", ""), 0);
	KEXPECT(t, trace_test_says("error_log", ""));
	KEXPECT_EQ(t,
		   trace_test_put("events/kmem/kfree/filter", "ptr == 0 && no"),
		   -EINVAL);
	KEXPECT(t, strstr(trace_test_error, "Field not found"));
	KEXPECT(t, trace_test_says("events/kmem/kfree/filter", "none\n"));
	KEXPECT(t, trace_test_read("error_log", text, sizeof(text), 7) > 0);
	line = strchr(text, ']');
	KASSERT(t, line);
	KEXPECT(t, !strcmp(line, "] event filter parse error: error: Field not "
				 "found\n"
				 "  Command: ptr == 0 && no\n"
				 "                          ^\n"));
	KEXPECT_EQ(t, trace_test_put("events/kmem/kfree/filter", "ptr != 0"),
		   0);
	KEXPECT(t, trace_test_says("events/kmem/kfree/filter", "ptr != 0\n"));
	/* A system's filter goes to those of its events that have the field. */
	KEXPECT_EQ(t, trace_test_put("events/kmem/filter", "bytes_req > 1"), 0);
	KEXPECT(t, trace_test_says("events/kmem/kmalloc/filter",
				   "bytes_req > 1\n"));
	KEXPECT(t, trace_test_says("events/kmem/kfree/filter", "ptr != 0\n"));
	KEXPECT_EQ(t, trace_test_put("events/kmem/filter", "no > 1"), -EINVAL);
	KEXPECT_EQ(t, trace_test_put("events/kmem/filter", "0"), 0);
	KEXPECT(t, trace_test_says("events/kmem/kmalloc/filter", "none\n"));
	KEXPECT(t, trace_test_says("events/kmem/kfree/filter", "none\n"));
	KEXPECT_EQ(t, trace_test_put("error_log", ""), 0);
}
