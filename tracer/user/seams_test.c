/* SPDX-License-Identifier: MIT */
/*
 * The shell's `seams`: every ordered pair of clients that matches, at every moment that does, and
 * each client with each fault of seam_faults, the first time alone, the second, and so on. One
 * line begins a case, each line "seam: ..." says that something is wrong with it, and the last line
 * counts. The first case that is wrong ends the run. tools/seams reads them, and goes on with
 * another guest.
 */
#include <tracer/user/seams_test.h>

#include <tracer/testing.h>
#include <tracer/user/seams_clients_test.h>
#include <tracer/user/seams_machine_test.h>
#include <tracer/user/seams_moments_test.h>

#include <kernel/ctl/ctl.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/format.h>
#include <kernel/lib/glob.h>
#include <kernel/mm/page.h>
#include <kernel/shell/shell.h>
#include <tracer/user/cmd_reset.h>

#include <stdarg.h>
#include <kernel/test/again.h>

FAULT_DECLARE(batch_refused);

static struct {
	const struct seam_client *x, *y;
	const struct seam_moment *m;
	char at[40]; /* the moment's name, or the fault's and which time */
	unsigned int number, run, wrong;
} now;

void seam_wrong(const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	format_args(text, sizeof(text), fmt, ap);
	va_end(ap);
	printk("seam: %s,%s %s: %s\n", now.x->name, now.y->name, now.at, text);
	now.wrong++;
}

/* The text of the buffer, for the grammars of the host's tests. */
static void show_text(const char *grammar)
{
	char text[128]; /* printk() takes no longer ones */
	struct ctl_handle *h;
	ssize_t n;

	if (trace_test_put("tracing_on", "0") ||
	    ctl_open(TRACING "trace", false, false, &h))
		return;
	printk("seam-text: %s%s\n", grammar, now.m->empties ? " emptied" : "");
	while ((n = ctl_read(h, text, sizeof(text) - 1)) > 0) {
		text[n] = '\0';
		printk("%s", text);
	}
	printk("seam-end\n");
	ctl_abandon(h);
	trace_test_put("tracing_on", "1");
}

static void take_step(void (*step)(void))
{
	if (step)
		step();
}

/* From x to y, with a time in which both are on. Where that cannot be, x goes first. */
static void change_over(int pid)
{
	int err = now.m->apart ? -EBUSY : seam_switch(now.y, true, pid), again;

	if (err)
		seam_switch(now.y, false, pid);
	seam_switch(now.x, false, pid);
	/* What x has taken back may have belonged to y, too. */
	again = seam_switch(now.y, true, pid);
	/* One that is never on, and so has no `off`, needs the tracer for itself. */
	if (again == -EBUSY && !*now.y->off)
		return;
	if (err && again && !now.m->poor)
		seam_wrong("%s cannot be switched on: %s", now.y->name,
			   trace_test_error);
}

/* False: it cannot begin. */
static bool begin_case(void)
{
	printk("seam-case: %u %s,%s %s\n", now.number, now.x->name, now.y->name,
	       now.at);
	now.run++;
	if (!seam_tasks_start()) {
		seam_wrong("no memory for its tasks");
		return false;
	}
	trace_test_put("set_ftrace_filter", SEAM_FILTER);
	return true;
}

static void end_case(void)
{
	seam_tasks_stop();
	if (cmd_reset())
		seam_wrong("the reset fails");
	seam_machine_compare();
}

static void run_case(void)
{
	int pid;

	snprintf(now.at, sizeof(now.at), "%s", now.m->name);
	if (!begin_case())
		return;
	pid = seam_tasks_pid();
	if (seam_switch(now.x, true, pid))
		seam_wrong("%s cannot be switched on: %s", now.x->name,
			   trace_test_error);
	seam_tasks_work();
	take_step(now.m->meet);
	change_over(pid);
	take_step(now.m->part);
	/* Without memory no file could be opened. */
	if (now.m->poor) {
		seam_switch(now.x, false, pid);
		if (seam_switch(now.y, true, pid))
			seam_wrong("%s cannot be switched on: %s", now.y->name,
				   trace_test_error);
	}
	seam_tasks_work();
	if (now.y->text)
		show_text(now.y->text);
	seam_switch(now.y, false, pid);
	take_step(now.m->after);
	end_case();
}

/* ---- Faults ---- */

/* A fault, the error that a client may end with, and how many times are tried. */
static const struct seam_fault {
	struct fault *fault;
	int error;
	unsigned int times;
} seam_faults[] = {
	/* More than any client allocates, but for `bench`. */
	{ &fault_memory_fails, -ENOMEM, 600 }, { &fault_ipi_twice, 0, 100 },
	{ &fault_ipi_late, 0, 100 },	       { &fault_timer_early, 0, 100 },
	{ &fault_batch_refused, -EIO, 100 },
};

#define CLIENTS_MAX 64u
#define FAULT_NUMBERS 1000000u /* of cases, for each fault */

static void read_trace(void)
{
	char text[128];
	struct ctl_handle *h;

	if (ctl_open(TRACING "trace", false, false, &h))
		return;
	while (ctl_read(h, text, sizeof(text)) > 0)
		;
	ctl_abandon(h);
}

static void expect_error(const char *way, int err, int right)
{
	/* A filter of the shell's has said why there is none. The error is always the same. */
	if (right && err == -EINVAL && seam_is_shell(now.x))
		return;
	if (err && err != right)
		seam_wrong("it is switched %s with error %d, and not %d", way,
			   err, right);
}

/* The fault happens the nth time while the client is switched on, works, is read and is switched
 * off. False: it did not happen as often. */
static bool run_with_fault(const struct seam_fault *s, unsigned int nth)
{
	struct fault *f = s->fault;
	int pid, on, off;
	bool happened;

	snprintf(now.at, sizeof(now.at), "%s@%u", f->name, nth);
	if (!begin_case())
		return true;
	pid = seam_tasks_pid();
	fault_plant_once(f, nth);
	on = seam_switch(now.x, true, pid);
	expect_error("on", on, s->error);
	seam_tasks_work();
	read_trace();
	off = seam_switch(now.x, false, pid);
	/* Of a client that is on in part, some lines have nothing to take back. */
	if (!on)
		expect_error("off", off, s->error);
	happened = READ_ONCE(f->times) >= nth;
	fault_plant(f, 0);
	if (off)
		seam_switch(now.x, false, pid);
	end_case();
	return happened;
}

/* "X,Y", either of them a glob. */
static bool pair_matches(const char *pair, const char *x, const char *y)
{
	const char *comma = strchr(pair, ',');
	char first[64];

	if (!comma)
		return glob_match(pair, x) || glob_match(pair, y);
	snprintf(first, sizeof(first), "%.*s", (int)(comma - pair), pair);
	return glob_match(first, x) && glob_match(comma + 1, y);
}

struct seam_choice {
	const char *pair, *moment;
	u64 from, part,
		parts; /* case numbers: the first, and which of so many parts */
};

static void run_chosen(const struct seam_choice *s)
{
	for (unsigned int x = 0; (now.x = seam_client(x)); x++)
		for (unsigned int y = 0; (now.y = seam_client(y)); y++)
			for (unsigned int m = 0; (now.m = seam_moment(m));
			     m++) {
				/* What this case has left is not the next one's. */
				if (now.wrong)
					return;
				if (now.x == now.y || seam_is_shell(now.x) ||
				    seam_is_shell(now.y))
					continue;
				now.number++;
				if (now.number >= s->from &&
				    now.number % s->parts == s->part &&
				    pair_matches(s->pair, now.x->name,
						 now.y->name) &&
				    glob_match(s->moment, now.m->name))
					run_case();
			}
}

/* Each client with the fault, as often as it can happen. */
static void run_fault(const struct seam_choice *s, const struct seam_fault *f)
{
	unsigned int first = now.number;
	bool over[CLIENTS_MAX] = { false };
	char any[40];

	for (unsigned int nth = 1; nth <= f->times; nth++)
		for (unsigned int x = 0; (now.x = now.y = seam_client(x));
		     x++) {
			if (now.wrong)
				return;
			now.number = first + nth * CLIENTS_MAX + x;
			snprintf(any, sizeof(any), "%s@%u", f->fault->name,
				 nth);
			if (!over[x] && now.number >= s->from &&
			    now.number % s->parts == s->part &&
			    pair_matches(s->pair, now.x->name, now.y->name) &&
			    glob_match(s->moment, any))
				over[x] = !run_with_fault(f, nth);
		}
}

#define RANGES 8u

static int cmd_seams(struct sink *out, int argc, char **argv)
{
	struct seam_choice s = { "*,*", "*", .parts = 1 };
	static unsigned long ranges[2 * RANGES];
	unsigned int nr = 0;
	u64 value;

	if (argc > 1)
		s.pair = argv[1];
	if (argc > 2)
		s.moment = argv[2];
	if (argc > 3 && (argc < 6 || parse_u64(argv[3], &s.from) ||
			 parse_u64(argv[4], &s.part) ||
			 parse_u64(argv[5], &s.parts) || s.part >= s.parts))
		return shell_error(
			-EINVAL, "seams",
			"FROM PART PARTS: numbers, PART less than PARTS");
	if (argc > 6 && (argc % 2 || argc > 6 + 2 * (int)RANGES))
		return shell_error(-EINVAL, "seams", "LO HI: at most %u pairs",
				   RANGES);
	for (int i = 6; i < argc; i++) {
		if (parse_in_base(argv[i], 16, &value))
			return shell_error(-EINVAL, "seams",
					   "LO HI: hexadecimal");
		ranges[nr++] = (unsigned long)_text + value;
	}
	now.number = now.run = now.wrong = 0;
	trace_test_reset();
	if (!seam_machine_note(ranges, nr / 2))
		return shell_error(-ENOMEM, "seams", "out of memory");
	run_chosen(&s);
	for (unsigned int f = 0; f < ARRAY_SIZE(seam_faults); f++) {
		now.number = (f + 1) * FAULT_NUMBERS;
		run_fault(&s, &seam_faults[f]);
	}
	return sink_printf(out, "seams: %u cases, %u wrong\n", now.run,
			   now.wrong);
}
SHELL_CMD(seams, "seams", "[X,Y [MOMENT [FROM PART PARTS [LO HI]...]]]",
	  "pairs of the tracer's clients at each moment: tools/seams",
	  cmd_seams);
