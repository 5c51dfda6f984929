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

/* One run at a time, and its data. */
static struct mutex lab_mutex = MUTEX_INIT_AROUND_TASKS(lab_mutex);
static struct lab_task victims, others;
static struct lab_case the_case;
static struct {
	struct sink *out;
	const char *glob;
	bool json, list;
	bool second; /* there is another CPU than the victim's */
	bool able;   /* the own sites are in the site table */
	bool begun;  /* lab_own_begin() */
	unsigned int count[LAB_INCOMPLETE + 1], total;
} this_run;

static bool scheme_name_matches(const char *name)
{
	return !this_run.glob || glob_match(this_run.glob, name);
}

static void list_one(const struct lab_case *c)
{
	sink_printf(this_run.out, "%-25s %-9s %-11s %s->%-*s %-7s %s\n",
		    c->name, c->from, c->strategy, c->old,
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
static const char *scheme_hindered(const struct lab_case *c)
{
	if (c->own && !this_run.able)
		return "the site is not in the site table";
	if (c->ops && lab_own_ops(c->ops))
		return "a tracer uses the trampolines";
	return NULL;
}

static void run_case(struct lab_case *c)
{
	c->incomplete = scheme_hindered(c);
	if (c->incomplete)
		return;
	if (c->begin)
		c->begin(c);
	if (!c->wrong && !c->incomplete)
		lab_enumerate(c, &victims, this_run.second ? &others : NULL);
	if (c->end)
		c->end(c);
}

static void report_case(struct lab_case *c)
{
	this_run.count[lab_judge(c)]++;
	if (this_run.json) {
		lab_json(this_run.out, c);
		return;
	}
	if (this_run.total == 1)
		lab_header(this_run.out);
	lab_row(this_run.out, c);
}

static void run_cases(void)
{
	struct lab_case *c = &the_case;

	for (unsigned int i = 0; make_case(c, i); i++) {
		if (!scheme_name_matches(c->name) || console_interrupted())
			continue;
		this_run.total++;
		if (this_run.list) {
			list_one(c);
			continue;
		}
		run_case(c);
		report_case(c);
	}
}

/*
 * The victim's task has a CPU without the shell where there are two, so that
 * the lab can act while the victim is held and the second CPU is the lab's own.
 */
static int tasks_begin(void)
{
	unsigned int last = ktest_last_cpu();

	this_run.second = last;
	this_run.able = lab_own_begin();
	this_run.begun = true;
	if (last && lab_task_start(&others, 0))
		return -ENOMEM;
	return lab_task_start(&victims, last);
}

static void tasks_end(void)
{
	lab_task_stop(&victims);
	lab_task_stop(&others);
	if (this_run.begun)
		lab_own_end(this_run.able);
}

static int lab_result(void)
{
	if (this_run.list)
		return 0;
	sink_printf(this_run.out,
		    "lab: %u schemes: %u safe hold, %u unsafe broken as "
		    "claimed, %u surprises, %u incomplete\n",
		    this_run.total, this_run.count[LAB_HOLDS],
		    this_run.count[LAB_BROKEN], this_run.count[LAB_SURPRISE],
		    this_run.count[LAB_INCOMPLETE]);
	return this_run.count[LAB_SURPRISE] + this_run.count[LAB_INCOMPLETE] ?
		       -EIO :
		       0;
}

static bool any_matches(void)
{
	for (unsigned int i = 0; make_case(&the_case, i); i++)
		if (scheme_name_matches(the_case.name))
			return true;
	return false;
}

/* Is there anything to run, and would it prove anything? Else a line says so. */
static int check_lab_run(void)
{
	if (!any_matches())
		return shell_error(-ENOENT, "lab",
				   "no scheme is called '%s'; 'lab list' shows "
				   "them",
				   this_run.glob);
	/* Without -icount QEMU takes no interrupt inside a translated block. */
	if (!this_run.list && !boot_info.icount)
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
	int err;

	if (!list && READ_ONCE(trace_top.tracer)->ops)
		return shell_error(-EBUSY, "lab",
				   "tracing is on: current_tracer must be nop");
	mutex_lock(&lab_mutex);
	memset(&this_run, 0, sizeof(this_run));
	this_run.out = out;
	if (glob && strcmp(glob, "all"))
		this_run.glob = without_port(glob);
	this_run.json = json;
	this_run.list = list;
	task_set_affinity(current_task(), 1);
	err = check_lab_run();
	if (!err && !list)
		err = tasks_begin();
	if (!err) {
		run_cases();
		err = lab_result();
	}
	tasks_end();
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
