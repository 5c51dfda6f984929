/* SPDX-License-Identifier: MIT */
/* Proves of each control file there is: the same bytes in chunks of any size (H25), and a clear
 * error for nonsense, which changes nothing. */
#include <tracer/testing.h>
#include <kernel/ctl/ctl.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/mm/page.h>
#include <kernel/test/fault.h>
#include <kernel/test/again.h>
#include <tracer/user/cmd_reset.h>

FAULT_DECLARE(batch_refused);

#define TEXT 65536

/* Reading these takes entries away and may wait, or shows the time, the calls found so far, or the
 * batches. */
static bool reads_differ(const char *name)
{
	return !strncmp(name, "trace_pipe", 10) || !strcmp(name, "stats") ||
	       !strcmp(name, "record_info") ||
	       !strcmp(name, "dyn_ftrace_total_info");
}

struct texts {
	unsigned int files;
	bool flat;     /* no files of directories within the directory */
	u32 sums[512]; /* of each file's text */
	char one[TEXT], two[TEXT];
};

/* test(path) for all files below a directory, whose name ends with "/". */
static void for_all_files(struct ktest_run *t, struct texts *texts,
			  const char *dir,
			  bool (*test)(struct texts *texts, const char *path,
				       const char *name))
{
	char name[64] = "", path[128];

	while (!ctl_next(dir, name, sizeof(name))) {
		snprintf(path, sizeof(path), "%s%s", dir, name);
		if (name[strlen(name) - 1] == '/') {
			if (!texts->flat)
				for_all_files(t, texts, path, test);
		} else if (!test(texts, path, name)) {
			printk("# %s\n", path);
			KEXPECT(t, false);
		}
	}
}

/* The same for the tracer's files, those of an instance, too. At least so many of them are
 * tested. */
static void test_all_files(struct ktest_run *t, unsigned int least,
			   bool (*test)(struct texts *texts, const char *path,
					const char *name))
{
	struct texts *texts = kmalloc(sizeof(*texts));

	KASSERT(t, texts);
	texts->files = 0;
	texts->flat = false;
	trace_test_reset();
	trace_test_put("set_ftrace_filter", "victim_* mutex_*");
	trace_test_put("current_tracer", "function");
	for (unsigned int i = 0; i < 100; i++)
		victim_outer(i);
	trace_test_put("tracing_on", "0");
	KEXPECT_EQ(t, ctl_mkdir(TRACING "instances/all", NULL, 0), 0);
	for_all_files(t, texts, TRACING, test);
	for_all_files(t, texts, "/proc/sys/kernel/", test);
	KEXPECT_EQ(t, ctl_rmdir(TRACING "instances/all", NULL, 0), 0);
	KEXPECT(t, texts->files >= least);
	kfree(texts);
	trace_test_reset();
}

static bool same_in_pieces(struct texts *texts, const char *path,
			   const char *name)
{
	static const size_t pieces[] = { 1, 7, 100 };
	bool same;

	if (!(ctl_mode(path) & CTL_READ) || reads_differ(name))
		return true;
	texts->files++;
	same = trace_test_read_path(path, texts->one, TEXT, 4096) >= 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(pieces); i++) {
		trace_test_read_path(path, texts->two, TEXT, pieces[i]);
		same &= !strcmp(texts->one, texts->two);
	}
	return same;
}

KTEST(files_chunks, "tracefs.any_chunk_size")
{
	KNEED_CLIENT(t, "events");
	test_all_files(t, 300, same_in_pieces);
}

/* These files take any text. */
static bool takes_all(const char *name)
{
	return !strcmp(name, "trace") || !strcmp(name, "trace_marker") ||
	       !strcmp(name, "trace_marker_raw") ||
	       !strcmp(name, "error_log") || !strcmp(name, "free_buffer");
}

/* One line names the mistake, and the file has the same text as before. */
static bool refuses_nonsense(struct texts *texts, const char *path,
			     const char *name)
{
	char error[160] = "";
	int err;

	if (!(ctl_mode(path) & CTL_WRITE) || takes_all(name))
		return true;
	texts->files++;
	trace_test_read_path(path, texts->one, TEXT, 4096);
	err = ctl_echo(path, "n0nsense ?!", false, error, sizeof(error));
	trace_test_read_path(path, texts->two, TEXT, 4096);
	return err < 0 && error[0] && !strchr(error, '\n') &&
	       !strcmp(texts->one, texts->two);
}

KTEST(files_nonsense, "tracefs.any_file_refuses_nonsense")
{
	KNEED_CLIENT(t, "events");
	test_all_files(t, 200, refuses_nonsense);
}

/* A file that can check accepts one of these texts at least, and has the same text as before. */
static bool checks_only(struct texts *texts, const char *path, const char *name)
{
	static const char *const accepted[] = {
		"function",	   "victim_call:traceoff",
		"victim_call",	   "sched:sched_wakeup",
		"common_pid == 1", "traceoff:3 if common_pid > 1",
		"nothing"
	};
	unsigned int taken = 0;
	int err = 0;

	(void)name;
	if (!(ctl_mode(path) & CTL_WRITE) ||
	    ctl_check(path, "", NULL, 0) == -EPERM)
		return true;
	texts->files++;
	trace_test_read_path(path, texts->one, TEXT, 4096);
	for (unsigned int i = 0; i < ARRAY_SIZE(accepted); i++) {
		err = ctl_check(path, accepted[i], NULL, 0);
		taken += !err;
	}
	trace_test_read_path(path, texts->two, TEXT, 4096);
	return taken && err == -EINVAL && !strcmp(texts->one, texts->two);
}

KTEST(files_checks, "tracefs.a_check_changes_nothing")
{
	KNEED_CLIENT(t, "events");
	test_all_files(t, 100, checks_only);
}

static u32 sum_text(const char *text)
{
	u32 sum = 0;

	while (*text)
		sum = sum * 31 + (u8)*text++;
	return sum;
}

static bool note_text(struct texts *texts, const char *path, const char *name)
{
	u32 *sum = &texts->sums[texts->files];
	ssize_t n;

	if (!(ctl_mode(path) & CTL_READ) || reads_differ(name))
		return true;
	if (++texts->files > ARRAY_SIZE(texts->sums))
		return false;
	n = trace_test_read_path(path, texts->one, TEXT, 4096);
	*sum = n < 0 ? 0 : sum_text(texts->one);
	/* A latency tracer has the snapshot for itself. */
	return n >= 0 || (n == -EBUSY && !strcmp(name, "snapshot"));
}

static bool same_text(struct texts *texts, const char *path, const char *name)
{
	u32 before = texts->sums[texts->files];

	return note_text(texts, path, name) &&
	       (!(ctl_mode(path) & CTL_READ) || reads_differ(name) ||
		texts->sums[texts->files - 1] == before);
}

/* With these, all that an instance can keep is other than at first. */
static const struct use {
	const char *file, *text;
} uses[] = { { "trace_options", "sym-offset nooverwrite nomarkers" },
	     { "trace_clock", "counter" },
	     { "tracing_cpumask", "0" },
	     { "tracing_on", "0" },
	     { "buffer_percent", "7" },
	     { "buffer_size_kb", "64" },
	     { "set_ftrace_filter", "victim_call victim_leaf:traceoff" },
	     { "set_ftrace_notrace", "victim_other" },
	     { "set_ftrace_pid", "7" },
	     { "set_event_notrace_pid", "7" },
	     { "set_event", "sched:*" },
	     { "events/kmem/filter", "common_pid == 1" },
	     { "events/kmem/kfree/trigger", "traceoff" },
	     { "events/ftrace/print/trigger", "traceoff" },
	     { "snapshot", "1" },
	     { "current_tracer", "function" },
	     { "trace_options", "stacktrace" },
	     /* Of the top level alone: */
	     { "current_tracer", "nop" },
	     { "current_tracer", "irqsoff" },
	     { "trace_options", "nofunction-trace" } };
#define NR_USES ARRAY_SIZE(uses)
#define NR_INSTANCE_USES (NR_USES - 3)

/* Of the top level. A kernel without latency tracers has none of its own. */
static unsigned int nr_uses(void)
{
	return trace_test_has("latency") ? NR_USES : NR_INSTANCE_USES;
}

static int use_file(const char *folder, const struct use *u)
{
	char path[80];

	snprintf(path, sizeof(path), "%s%s", folder, u->file);
	return trace_test_put(path, u->text);
}

static void use_instance(struct ktest_run *t)
{
	static const struct use wrong = { "events/kmem/kfree/filter",
					  "nothing" };

	for (unsigned int i = 0; i < NR_INSTANCE_USES; i++)
		KEXPECT_EQ(t, use_file("instances/again/", &uses[i]), 0);
	/* error_log has this. */
	KEXPECT_EQ(t, use_file("instances/again/", &wrong), -EINVAL);
}

KTEST(files_anew, "tracefs.an_instance_made_again_is_new")
{
	struct texts *texts;

	KNEED_CLIENT(t, "events");
	texts = kmalloc_zeroed(sizeof(*texts));
	KASSERT(t, texts);
	trace_test_reset();
	for (unsigned int turn = 0; turn < 2; turn++) {
		KASSERT(t, !ctl_mkdir(TRACING "instances/again", NULL, 0));
		texts->files = 0;
		for_all_files(t, texts, TRACING "instances/again/",
			      turn ? same_text : note_text);
		if (!turn)
			use_instance(t);
		KEXPECT_EQ(t, ctl_rmdir(TRACING "instances/again", NULL, 0), 0);
	}
	KEXPECT(t, texts->files > 100);
	kfree(texts);
}

#define TIMES_MAX 2000u

/* test(path) for what the uses write, and what stands beside it. */
static void for_used_files(struct ktest_run *t, struct texts *texts,
			   const char *folder,
			   bool (*test)(struct texts *texts, const char *path,
					const char *name))
{
	static const char *const parts[] = { "", "options/", "events/kmem/",
					     "events/kmem/kfree/",
					     "events/ftrace/print/" };
	char dir[80];

	texts->files = 0;
	texts->flat = true;
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(dir, sizeof(dir), TRACING "%s%s", folder, parts[i]);
		for_all_files(t, texts, dir, test);
	}
}

/* Do this while the fault happens the nth time, for many n. A write that fails changes nothing.
 * Returns how often one has failed. */
static unsigned int use_with_fault(struct ktest_run *t, struct texts *texts,
				   const char *folder, const struct use *u,
				   struct fault *f, int right)
{
	unsigned int nth = 1, failed = 0;
	int err;

	for_used_files(t, texts, folder, note_text);
	for (;; nth += 1 + nth / 8) {
		fault_plant_once(f, nth);
		err = use_file(folder, u);
		fault_plant(f, 0);
		if (!err || nth > TIMES_MAX)
			break;
		KEXPECT_EQ(t, err, right);
		for_used_files(t, texts, folder, same_text);
		failed++;
	}
	if (err)
		printk("# %s%s: error %d at %u\n", folder, u->file, err, nth);
	KEXPECT(t, !err);
	return failed;
}

#define CLOCKS "[local] global counter uptime mono boot\n"

/* At least so many of the uses fail at some time. */
static void use_all_with_fault(struct ktest_run *t, struct fault *f, int right,
			       unsigned int least)
{
	unsigned int failed = 0;
	struct texts *texts;
	char size[32];

	KNEED_CLIENT(t, "events");
	if (ktest_with_fault)
		KSKIP(t, "another allocation fails");
	texts = kmalloc_zeroed(sizeof(*texts));
	KASSERT(t, texts);
	trace_test_reset();
	KASSERT(t,
		trace_test_read("buffer_size_kb", size, sizeof(size), 32) > 0);
	KASSERT(t, !ctl_mkdir(TRACING "instances/poor", NULL, 0));
	for (unsigned int i = 0; i < nr_uses(); i++)
		failed += use_with_fault(t, texts, "", &uses[i], f, right) > 0;
	trace_test_reset(); /* else the sites are on that the instance wants */
	for (unsigned int i = 0; i < NR_INSTANCE_USES; i++)
		failed += use_with_fault(t, texts, "instances/poor/", &uses[i],
					 f, right) > 0;
	KEXPECT_EQ(t, ctl_rmdir(TRACING "instances/poor", NULL, 0), 0);
	kfree(texts);
	trace_test_reset();
	KEXPECT(t, trace_test_says("trace_clock", CLOCKS));
	/* A reset leaves this. */
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", size), 0);
	KEXPECT(t, failed >= least);
}

KTEST(files_poor, "tracefs.a_write_without_memory_changes_nothing")
{
	use_all_with_fault(t, &fault_memory_fails, -ENOMEM,
			   nr_uses() + NR_INSTANCE_USES);
}

KTEST(files_refused, "tracefs.a_write_that_patches_nothing_changes_nothing")
{
	use_all_with_fault(t, &fault_batch_refused, -EIO, 7);
}

/* A reset leaves the history of calls and of errors, and the names of tasks. */
static bool same_setting(struct texts *texts, const char *path,
			 const char *name)
{
	bool same = same_text(texts, path, name);

	return same || !strcmp(name, "touched_functions") ||
	       !strcmp(name, "saved_cmdlines") || !strcmp(name, "error_log");
}

KTEST(files_reset, "tracefs.a_reset_makes_all_as_at_boot")
{
	static const struct use more[] = {
		{ "current_tracer", "nop" },
		{ "tracing_max_latency", "7" },
		{ "tracing_thresh", "7" },
		{ "max_graph_depth", "7" },
		{ "set_graph_function", "victim_outer" },
		{ "set_graph_notrace", "victim_call" },
		{ "set_ftrace_notrace_pid", "8" },
		{ "set_event_pid", "9" },
		{ "stack_trace_filter", "victim_leaf" },
		{ "function_profile_enabled", "1" },
	};
	struct texts *texts;
	char size[32];

	KNEED_CLIENT(t, "events");
	texts = kmalloc_zeroed(sizeof(*texts));
	KASSERT(t, texts);
	trace_test_reset();
	KASSERT(t,
		trace_test_read("buffer_size_kb", size, sizeof(size), 32) > 0);
	for_used_files(t, texts, "", note_text);
	for (unsigned int i = 0; i < nr_uses(); i++)
		KEXPECT_EQ(t, use_file("", &uses[i]), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(more); i++) {
		int err = use_file("", &more[i]);

		/* A client that is left out has no files. */
		KEXPECT(t, !err || err == -ENOENT);
	}
	KEXPECT_EQ(t, cmd_reset(), 0);
	KEXPECT_EQ(t, trace_test_put("buffer_size_kb", size), 0);
	for_used_files(t, texts, "", same_setting);
	kfree(texts);
	trace_test_reset();
}
