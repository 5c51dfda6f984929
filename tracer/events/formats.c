/* SPDX-License-Identifier: MIT */
/* How events and the trace buffer are described: formats.h. */
#include <tracer/base/stored.h>
#include <tracer/events/formats.h>
#include <tracer/ring/ring_format.h>

static const char common_fields[] =
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;"
	"\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

int event_show_file(unsigned int at, struct seq *s, const char *name,
		    unsigned int id, const struct event_field *fields,
		    const char *text)
{
	unsigned int n = 0;

	while (fields[n].name)
		n++;
	if (at > n + 1)
		return 0;
	if (at == 0)
		seq_printf(s, "name: %s\nID: %u\nformat:\n%s", name, id,
			   common_fields);
	else if (at <= n)
		event_show_field(s, fields, &fields[at - 1]);
	else
		event_show_format(s, fields, text);
	return 1;
}

/*
 * The tracers' entries, as Linux describes them: trace-cmd and others look for these formats before
 * they read anything. The numbers are Linux's enum trace_type.
 */
#define STACK_TEXT                                                             \
	"\\t=> {caller[0]}\\n\\t=> {caller[1]}\\n\\t=> {caller[2]}\\n"         \
	"\\t=> {caller[3]}\\n\\t=> {caller[4]}\\n\\t=> {caller[5]}\\n"         \
	"\\t=> {caller[6]}\\n\\t=> {caller[7]}\\n"
#define SWITCH_FIELDS                                                          \
	{                                                                      \
		{ "prev_pid", EVENT_UINT }, { "next_pid", EVENT_UINT },        \
			{ "next_cpu", EVENT_UINT },                            \
			{ "prev_prio", EVENT_UCHAR },                          \
			{ "prev_state", EVENT_UCHAR },                         \
			{ "next_prio", EVENT_UCHAR },                          \
			{ "next_state", EVENT_UCHAR },                         \
	}
const struct own_format own_formats[] = {
	{ "ftrace/function",
	  "function",
	  " {ip:%ps} <-- {parent_ip:%ps}",
	  1,
	  { { "ip", EVENT_ULONG }, { "parent_ip", EVENT_ULONG } } },
	{ "ftrace/funcgraph_entry",
	  "funcgraph_entry",
	  "--> {func:%ps} ({depth})",
	  11,
	  { { "func", EVENT_ULONG }, { "depth", EVENT_INT } } },
	{ "ftrace/funcgraph_exit",
	  "funcgraph_exit",
	  "<-- {func:%ps} ({depth}) (start: {calltime:%llx}  end: "
	  "{rettime:%llx}) over: {overrun}",
	  10,
	  { { "func", EVENT_ULONG },
	    { "depth", EVENT_INT },
	    { "overrun", EVENT_UINT },
	    { "calltime", EVENT_U64 },
	    { "rettime", EVENT_U64 } } },
	{ "ftrace/context_switch", "context_switch",
	  "{prev_pid}:{prev_prio}:{prev_state}  ==> "
	  "{next_pid}:{next_prio}:{next_state} [{next_cpu:%03u}]",
	  RING_SWITCH, SWITCH_FIELDS },
	{ "ftrace/wakeup", "wakeup",
	  "{prev_pid}:{prev_prio}:{prev_state}  ==>+ "
	  "{next_pid}:{next_prio}:{next_state} [{next_cpu:%03u}]",
	  RING_WAKEUP, SWITCH_FIELDS },
	{ "ftrace/kernel_stack",
	  "kernel_stack",
	  STACK_TEXT,
	  4,
	  { { "size", EVENT_INT }, { "caller", EVENT_CALLERS } } },
	{ "ftrace/func_repeats",
	  "func_repeats",
	  " {ip:%ps} <-{parent_ip:%ps}\t(repeats:{count})",
	  19,
	  { { "ip", EVENT_ULONG },
	    { "parent_ip", EVENT_ULONG },
	    { "count", EVENT_USHORT },
	    { "top_delta_ts", EVENT_USHORT },
	    { "bottom_delta_ts", EVENT_UINT } } },
	{ "ftrace/raw_data",
	  "raw_data",
	  "id:{id:%04x} {buf[0]:%08x}",
	  18,
	  { { "id", EVENT_UINT }, { "buf", EVENT_BYTES } } },
	{ "ftrace/print",
	  "print",
	  "{ip:%ps}: {buf}",
	  5,
	  { { "ip", EVENT_ULONG }, { "buf", EVENT_TEXT } } },
	{ 0 },
};

/* Linux's page of binary events. The commit field has the size of a long. */
void format_header_page(struct ctl_handle *h, struct seq *s)
{
	unsigned int commit = STORED_LONG, data = 8 + commit;

	(void)h;
	seq_printf(s,
		   "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		   "\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"
		   "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		   "\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:0;\n",
		   commit, data, (unsigned int)PAGE_SIZE - data);
}

void format_header_event(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "# compressed entry header\n"
		      "\ttype_len    :    5 bits\n"
		      "\ttime_delta  :   27 bits\n"
		      "\tarray       :   32 bits\n\n"
		      "\tpadding     : type == 29\n"
		      "\ttime_extend : type == 30\n"
		      "\ttime_stamp : type == 31\n"
		      "\tdata max type_len  == 28\n");
}
