/* SPDX-License-Identifier: MIT */
/* The command `lab`: which schemes there are, and running them. */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/param.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/console.h>
#include <kernel/lib/glob.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/patch/patch.h>
#include <tracer/core/tracer.h>

FAULT(lab_claim, "the lab turns each scheme's claim round");
FAULT(lab_boundary, "the lab never holds a task at the first boundary");
FAULT(lab_form, "the lab expects an instruction that is none");
FAULT(lab_return, "the lab counts returns only while their tracer is on");

/* One run at a time. Its data are too many for a stack. */
static struct mutex lab_mutex = MUTEX_INIT_AROUND_TASKS(lab_mutex);
static struct lab_run the_run;

static bool scheme_name_matches(const struct lab_run *r)
{
	return !r->glob || glob_match(r->glob, r->test.name);
}

static void list_one(const struct lab_run *r)
{
	const struct lab_case *c = &r->test;

	sink_printf(r->out, "%-25s %-9s %-11s %s->%-*s %-7s %s\n", c->name,
		    c->from, c->strategy, c->old,
		    max(13 - (int)strlen(c->old), 0), c->new,
		    c->breaks ? "unsafe" : "safe", c->because);
}

/* Number i of all cases. False: there are no more. */
static bool make_case(struct lab_case *c, unsigned int i)
{
	static bool (*const make[])(struct lab_case * c, unsigned int *i) = {
		lab_case_scheme,     lab_case_own,     lab_case_vector,
		lab_case_trampoline, lab_case_patcher,
	};

	for (unsigned int k = 0; k < ARRAY_SIZE(make); k++)
		if (make[k](c, &i))
			return true;
	return false;
}

/* Why it cannot be shown here, or NULL. */
static const char *scheme_hindered(const struct lab_run *r)
{
	const struct lab_case *c = &r->test;

	if (c->own && !r->able)
		return "the site is not in the site table";
	if (c->ops && lab_own_ops(c->ops))
		return "a tracer uses the trampolines";
	return NULL;
}

static void run_case(struct lab_run *r)
{
	struct lab_case *c = &r->test;

	c->incomplete = scheme_hindered(r);
	if (c->incomplete)
		return;
	if (c->begin)
		c->begin(r);
	if (!c->wrong && !c->incomplete)
		lab_enumerate(r);
	if (c->end)
		c->end(r);
}

static void report_case(struct lab_run *r)
{
	struct lab_case *c = &r->test;

	r->count[lab_judge(c)]++;
	if (r->json) {
		lab_json(r->out, c);
		return;
	}
	if (r->total == 1)
		lab_header(r->out);
	lab_row(r->out, c);
}

static void run_cases(struct lab_run *r)
{
	for (unsigned int i = 0; make_case(&r->test, i); i++) {
		if (!scheme_name_matches(r) || console_interrupted())
			continue;
		r->total++;
		if (r->list) {
			list_one(r);
			continue;
		}
		run_case(r);
		report_case(r);
	}
}

/*
 * The victim's task has a CPU without the shell where there are two, so that
 * the lab can act while the victim is held and the second CPU is the lab's own.
 */
static int tasks_begin(struct lab_run *r)
{
	unsigned int last = ktest_last_cpu();

	r->second = last;
	r->able = lab_own_begin();
	r->begun = true;
	if (last && lab_task_start(&r->other, 0))
		return -ENOMEM;
	return lab_task_start(&r->held, last);
}

static void tasks_end(struct lab_run *r)
{
	lab_task_stop(&r->held);
	lab_task_stop(&r->other);
	if (r->begun)
		lab_own_end(r->able);
}

static int lab_result(const struct lab_run *r)
{
	if (r->list)
		return 0;
	sink_printf(r->out,
		    "lab: %u schemes: %u safe hold, %u unsafe broken as "
		    "claimed, %u surprises, %u incomplete\n",
		    r->total, r->count[LAB_HOLDS], r->count[LAB_BROKEN],
		    r->count[LAB_SURPRISE], r->count[LAB_INCOMPLETE]);
	return r->count[LAB_SURPRISE] + r->count[LAB_INCOMPLETE] ? -EIO : 0;
}

static bool any_matches(struct lab_run *r)
{
	for (unsigned int i = 0; make_case(&r->test, i); i++)
		if (scheme_name_matches(r))
			return true;
	return false;
}

/* Is there anything to run, and would it prove anything? Else a line says so. */
static int check_lab_run(struct lab_run *r)
{
	if (!any_matches(r))
		return shell_error(-ENOENT, "lab",
				   "no scheme is called '%s'; 'lab list' shows "
				   "them",
				   r->glob);
	/* Without -icount QEMU takes no interrupt inside a translated block. */
	if (!r->list && !boot_info.icount)
		return shell_error(-EPERM, "lab",
				   "nothing is proved without -icount: make "
				   "run ARCH=%s ICOUNT=1, or make lab ARCH=%s",
				   arch_name, arch_name);
	return 0;
}

/* The rows say "riscv own" where `lab list` says "own": both are taken. */
static const char *without_port(const char *glob)
{
	size_t n = strlen(arch_name);

	return !strncmp(glob, arch_name, n) && glob[n] == ' ' ? glob + n + 1 :
								glob;
}

static int run_lab(struct sink *out, const char *glob, bool json, bool list)
{
	cpumask_t before = current_task()->affinity;
	struct lab_run *r = &the_run;
	int err;

	if (!list && READ_ONCE(trace_top.tracer)->ops)
		return shell_error(-EBUSY, "lab",
				   "tracing is on: current_tracer must be nop");
	mutex_lock(&lab_mutex);
	memset(r, 0, sizeof(*r));
	r->out = out;
	if (glob && strcmp(glob, "all"))
		r->glob = without_port(glob);
	r->json = json;
	r->list = list;
	task_set_affinity(current_task(), 1);
	err = check_lab_run(r);
	if (!err && !list)
		err = tasks_begin(r);
	if (!err) {
		run_cases(r);
		err = lab_result(r);
	}
	tasks_end(r);
	task_set_affinity(current_task(), before);
	mutex_unlock(&lab_mutex);
	return err;
}

static int cmd_lab(struct sink *out, int argc, char **argv)
{
	bool json = argc > 2 && !strcmp(argv[2], "-j");

	if (argc == 2 && !strcmp(argv[1], "list"))
		return run_lab(out, NULL, false, true);
	if (argc == 2 && !strcmp(argv[1], "help"))
		return lab_help(out);
	if (argc == 3 + json && !strcmp(argv[1], "run"))
		return run_lab(out, argv[2 + json], json, false);
	return shell_error(-EINVAL, "lab",
			   "takes list, help, or run and all or a pattern of "
			   "schemes' names");
}
SHELL_CMD(lab, "lab", "list | help | run [-j] all|GLOB",
	  "hold tasks at every instruction of a site and patch it under them",
	  cmd_lab);
