/* SPDX-License-Identifier: MIT */
/* Proves of each control file there is: the same bytes in chunks of any size (H25), and a clear
 * error for nonsense, which changes nothing. */
#include <tracer/testing.h>
#include <kernel/ctl/ctl.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/test/again.h>

#define TEXT 65536

/* Reading these takes entries away and may wait, or shows the time. */
static bool reads_differ(const char *name)
{
	return !strncmp(name, "trace_pipe", 10) || !strcmp(name, "stats");
}

struct texts {
	unsigned int files;
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

	if (!(ctl_mode(path) & CTL_READ) || reads_differ(name))
		return true;
	if (++texts->files > ARRAY_SIZE(texts->sums) ||
	    trace_test_read_path(path, texts->one, TEXT, 4096) < 0)
		return false;
	*sum = sum_text(texts->one);
	return true;
}

static bool same_text(struct texts *texts, const char *path, const char *name)
{
	u32 before = texts->sums[texts->files];

	return note_text(texts, path, name) &&
	       (!(ctl_mode(path) & CTL_READ) || reads_differ(name) ||
		texts->sums[texts->files - 1] == before);
}

/* All that an instance can keep is other than at first. */
static void use_instance(struct ktest_run *t)
{
	static const struct {
		const char *file, *text;
	} uses[] = { { "trace_options", "sym-offset nooverwrite nomarkers" },
		     { "trace_clock", "counter" },
		     { "tracing_cpumask", "0" },
		     { "tracing_on", "0" },
		     { "buffer_percent", "7" },
		     { "buffer_size_kb", "64" },
		     { "set_ftrace_filter",
		       "victim_call victim_leaf:traceoff" },
		     { "set_ftrace_notrace", "victim_other" },
		     { "set_ftrace_pid", "7" },
		     { "set_event_notrace_pid", "7" },
		     { "set_event", "sched:*" },
		     { "events/kmem/filter", "common_pid == 1" },
		     { "events/kmem/kfree/trigger", "traceoff" },
		     { "events/ftrace/print/trigger", "traceoff" },
		     { "snapshot", "1" },
		     { "current_tracer", "function" },
		     { "events/kmem/kfree/filter", "nothing" } };
	char path[80];
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(uses); i++) {
		KEXPECT(t, !err);
		snprintf(path, sizeof(path), "instances/again/%s",
			 uses[i].file);
		err = trace_test_put(path, uses[i].text);
	}
	KEXPECT_EQ(t, err, -EINVAL); /* which error_log has */
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
