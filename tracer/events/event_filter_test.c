/* SPDX-License-Identifier: MIT */
/* Filters of events: which records they let pass, where they say that a mistake is, and how long
 * the worst one keeps interrupts off. */
#include <tracer/testing.h>

#include <boot/boot_info.h>
#include <kernel/event/event.h>
#include <tracer/events/event_filter.h>
#include <tracer/events/events.h>
#include <tracer/ring/ring_event.h>
#include <kernel/test/again.h>

/* Once more if there was no memory. */
static struct event_filter *parse_filter(const struct event *e,
					 const char *text, const char **error,
					 unsigned int *at)
{
	struct event_filter *f = event_filter_parse(e, text, error, at);

	return f || *error || !ktest_with_fault ?
		       f :
		       event_filter_parse(e, text, error, at);
}

/* A record as an event has it: every kind of value that a filter may ask for. */
static const struct event_field fields[] = {
	{ "comm", EVENT_COMM },	  { "pid", EVENT_PID },
	{ "size", EVENT_SIZE },	  { "reason", EVENT_REASON },
	{ "name", EVENT_STRING }, { "state", EVENT_STATE },
	{ "yes", EVENT_BOOL },	  { NULL, EVENT_KINDS },
};

static const struct event event = { .fields = fields };

struct record {
	char comm[EVENT_NAME];
	s32 pid;
	size_t size;
	const char *reason;
	u32 name;
	long state;
	bool yes;
	char bytes[8] __attribute__((aligned(8)));
};

static struct record the_record(void)
{
	struct record r = {
		.comm = "ping",
		.pid = -7,
		.size = 4096,
		.reason = "Function call interrupts",
		.name = 6 << 16 |
			(EVENT_COMMON + offsetof(struct record, bytes)),
		.state = 2,
		.yes = true,
		.bytes = "timer",
	};

	return r;
}

/* Where the C compiler puts a field, and where a format file says that it is. */
KTEST(filter_places, "event_filter.fields_are_where_c_has_them")
{
	static const size_t offsets[] = {
		offsetof(struct record, comm), offsetof(struct record, pid),
		offsetof(struct record, size), offsetof(struct record, reason),
		offsetof(struct record, name), offsetof(struct record, state),
		offsetof(struct record, yes),
	};

	for (unsigned int i = 0; fields[i].name; i++)
		KEXPECT_EQ(t, event_place(fields, &fields[i]).offset,
			   offsets[i]);
}

static const struct {
	const char *text;
	bool passes;
} filters[] = {
	{ "pid == -7", true },
	{ "pid != -7", false },
	{ "pid < 0", true },
	{ "pid >= -6", false },
	{ "pid <= -7&&size>4095", true },
	{ "size == 0x1000", true },
	{ "size == 010000", true }, /* octal */
	{ "size & 0x1000", true },
	{ "size & 0xfff", false },
	{ "size > -1", false },
	{ "comm == ping", true },
	{ "comm == \"ping\"", true },
	{ "comm != 'pong'", true },
	{ "comm ~ \"p?ng\"", true },
	{ "comm ~ p*", true },
	{ "comm ~ \"*ong\"", false },
	{ "name == timer", true },
	{ "name ~ t*r && reason ~ \"*call*\"", true },
	{ "state == 2", true },
	{ "yes == 1", true },
	{ "yes == 0 || pid == -7", true },
	{ "yes == 0 || pid == 1 || size == 4096", true },
	{ "pid == 1 || size == 4096 && comm == pong", false },
	{ "(pid == 1 || size == 4096) && comm == ping", true },
	{ "!(pid == 1)", true },
	{ "!pid == 1 && !(yes == 0)", true },
	{ "!(!(pid == -7))", true },
	{ " ( ( pid == -7 ) ) ", true },
	{ "CPU < 32", true },
	{ "common_pid == -1", false },
	{ "COMM ~ *", true },
};

KTEST(filter_matches, "event_filter.matches")
{
	struct record r = the_record();
	const char *error;
	unsigned int at;

	for (unsigned int i = 0; i < ARRAY_SIZE(filters); i++) {
		struct event_filter *f =
			parse_filter(&event, filters[i].text, &error, &at);

		if (!f) {
			printk("# %s: %s\n", filters[i].text, error);
			KEXPECT(t, f);
			continue;
		}
		KEXPECT(t, !strcmp(event_filter_text(f), filters[i].text));
		if (event_filter_matches(f, &event, &r, false) !=
		    filters[i].passes) {
			printk("# %s\n", filters[i].text);
			KEXPECT(t, !"as the table says");
		}
		event_filter_free(f);
	}
}

static const struct {
	const char *text, *error;
	unsigned int at;
} mistakes[] = {
	{ "bogus == 1", "Field not found", 0 },
	{ "pid == 1 && bogus == 1", "Field not found", 12 },
	{ "pid = 1", "Invalid operator", 4 },
	{ "pid 1", "Invalid operator", 4 },
	{ "pid ==", "Invalid value (did you forget quotes)?", 6 },
	{ "pid == x", "Invalid value (did you forget quotes)?", 7 },
	{ "pid == 12x", "Illegal integer value", 7 },
	{ "pid == 09", "Illegal integer value", 7 },
	{ "size == 4K", "Illegal integer value", 8 },
	{ "size == 99999999999999999999", "Illegal integer value", 8 },
	{ "pid ~ 1", "Illegal operation for field type", 4 },
	{ "comm < p", "Illegal operation for field type", 5 },
	{ "comm == \"ping", "Missing matching quote", 8 },
	{ "(pid == 1", "Too many '('", 0 },
	{ "pid == 1)", "Too few '('", 8 },
	{ "pid == 1 &&", "Meaningless filter expression", 11 },
	{ "&& pid == 1", "Meaningless filter expression", 0 },
	{ "", "Meaningless filter expression", 0 },
	{ "pid == 1 pid == 2", "Invalid operator", 9 },
};

KTEST(filter_mistakes, "event_filter.mistakes_are_shown")
{
	const char *error;
	unsigned int at;

	for (unsigned int i = 0; i < ARRAY_SIZE(mistakes); i++) {
		error = "";
		at = ~0u;
		KEXPECT(t,
			!parse_filter(&event, mistakes[i].text, &error, &at));
		if (strcmp(error, mistakes[i].error))
			printk("# %s: %s\n", mistakes[i].text, error);
		KEXPECT(t, !strcmp(error, mistakes[i].error));
		KEXPECT_EQ(t, at, mistakes[i].at);
	}
}

/* Limits: the number of terms, of ( and ! in each other, and the length of a text. */
KTEST(filter_limits, "event_filter.limits")
{
	static char text[2000];
	struct event_filter *f;
	const char *error = "";
	unsigned int at, n;
	size_t len = 0;

	for (n = 0; n < 40; n++)
		len += snprintf(text + len, sizeof(text) - len, "%spid == %u",
				n ? " || " : "", n);
	KEXPECT(t, !parse_filter(&event, text, &error, &at));
	KEXPECT(t, !strcmp(error, "Too many terms in predicate expression"));
	for (n = 16; n <= 17; n++) {
		memset(text, '(', n);
		string_copy(text + n, "pid == 1", 20);
		memset(text + n + 8, ')', n);
		text[2 * n + 8] = '\0';
		f = parse_filter(&event, text, &error, &at);
		KEXPECT_EQ(t, f != NULL, n == 16);
		event_filter_free(f);
	}
	KEXPECT(t, !strcmp(error, "Too many '('"));
	for (n = 16; n < 1900; n += n == 16 ? 1 : 1800) {
		memset(text, '!', n);
		string_copy(text + n, "pid == 1", 20);
		f = parse_filter(&event, text, &error, &at);
		KEXPECT_EQ(t, f != NULL, n == 16);
		event_filter_free(f);
	}
	KEXPECT(t, !strcmp(error, "Too many '!'") && at == 16);
	string_copy(text, "comm == ", 20);
	memset(text + 8, 'x', 64);
	text[72] = '\0';
	KEXPECT(t, !parse_filter(&event, text, &error, &at));
	KEXPECT(t, !strcmp(error, "Operand too long"));
}

/* A filter can compare each field that `format` lists. */
KTEST(filter_formats, "event_filter.every_field_of_a_format")
{
	static const char *const texts[] = {
		"common_type >= 32",
		"common_type == 1",
		"common_flags & 0x40",
		"common_flags == 0",
		"common_preempt_count <= 15",
		"common_preempt_count > 15",
		"common_pid > -2",
		"common_pid == -2",
	};
	const struct event_field *f;
	const char *error;
	char text[64];
	unsigned int at;
	struct event *e;
	struct event_filter *filter;

	for_each_event (e) {
		static char record[EVENT_MAX];

		for (f = e->fields; f->name; f++) {
			snprintf(text, sizeof(text), "%s == 1", f->name);
			filter = parse_filter(e, text, &error, &at);
			KEXPECT(t, filter);
			event_filter_free(filter);
		}
		for (unsigned int i = 0; i < ARRAY_SIZE(texts); i++) {
			filter = parse_filter(e, texts[i], &error, &at);
			KASSERT(t, filter);
			if (i != 2 && i != 3)
				KEXPECT_EQ(t,
					   event_filter_matches(filter, e,
								record, false),
					   i % 2 == 0);
			event_filter_free(filter);
		}
		snprintf(text, sizeof(text), "common_type == %u", event_id(e));
		filter = parse_filter(e, text, &error, &at);
		KASSERT(t, filter);
		KEXPECT(t, event_filter_matches(filter, e, record, false));
		event_filter_free(filter);
	}
	filter = parse_filter(__start_events, "common_flags & 1", &error, &at);
	KASSERT(t, filter);
	KEXPECT(t, event_filter_matches(filter, __start_events, NULL, true));
	KEXPECT(t, !event_filter_matches(filter, __start_events, NULL, false));
	event_filter_free(filter);
}

/* The terms are as many as a filter takes, and each looks at all of its text again and again. */
#define TERMS 32
#define TERM_LENGTH 61

/* One filter whose terms are all `reason ~ "*CCC...z"`, with a text of C alone, takes no more than
 * event_filter_cost() says. '-': the pattern is `*[CCC...z`, closed. */
static void expect_worst(struct ktest_run *t, char c)
{
	static char text[TERMS * (TERM_LENGTH + 20)], reason[EVENT_WORD_MAX];
	struct record r = the_record();
	struct event_filter *filter;
	const char *error = "";
	irq_state_t state;
	unsigned int at, most;
	size_t n = 0;
	u64 cost;

	for (unsigned int i = 0; i < TERMS; i++) {
		n += format_within(text + n, sizeof(text) - n, "%sreason ~ \"*",
				   i ? " || " : "");
		memset(text + n, c == '-' ? 'a' : c, TERM_LENGTH - 2);
		text[n] = c == '-' ? '[' : c;
		n += TERM_LENGTH - 2;
		n += format_within(text + n, sizeof(text) - n,
				   c == '-' ? "]\"" : "z\"");
	}
	memset(reason, c, sizeof(reason) - 1);
	r.reason = reason;
	filter = parse_filter(&event, text, &error, &at);
	KEXPECT(t, filter);
	if (!filter)
		return;
	state = arch_irq_save();
	cost = arch_instructions();
	event_filter_matches(filter, &event, &r, false);
	cost = arch_instructions() - cost;
	arch_irq_restore(state);
	most = event_filter_cost(filter);
	event_filter_free(filter);
	printk("# '%c': %llu instructions of %u\n", c, (unsigned long long)cost,
	       most);
	KEXPECT(t, cost <= most);
}

/* kernel/LATENCY.md has the bound. */
KTEST(filter_worst, "event_filter.worst_time")
{
	if (!boot_info.icount)
		KSKIP(t, "instructions are counted under -icount");
	for (const char *c = "x[?-"; *c; c++)
		expect_worst(t, *c);
}
