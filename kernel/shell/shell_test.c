/* SPDX-License-Identifier: MIT */
/*
 * Proves of the shell. Quotes, pipes and targets act as in sh. A bad line is one line
 * of error, and nothing of it is run. Filters stop a file that never ends. Completion
 * offers the words that fit. ctl_test.c tests control files.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/test/again.h>

#define DIR "/sys/kernel/selftest"
#define NOTE DIR "/note"

struct capture {
	struct sink sink;
	size_t len;
	char text[1024];
};

static struct capture output, errors;

static int capture_write(struct sink *s, const char *text, size_t len)
{
	struct capture *c = container_of(s, struct capture, sink);

	len = min(len, sizeof(c->text) - 1 - c->len);
	memcpy(c->text + c->len, text, len);
	c->len += len;
	c->text[c->len] = '\0';
	return 0;
}

static void capture_clear(struct capture *c)
{
	c->sink.write = capture_write;
	c->len = 0;
	c->text[0] = '\0';
}

/* Run a line. Its output and error lines are then in output and errors. */
static int run_captured(const char *line)
{
	struct sink *before = shell_errors;
	int err;

	capture_clear(&output);
	capture_clear(&errors);
	shell_errors = &errors.sink;
	err = shell_run(&output.sink, line);
	shell_errors = before;
	return err;
}

static void expect_text(struct ktest_run *t, const char *line, const char *what,
			const char *got, const char *want)
{
	if (!strcmp(got, want))
		return;
	printk("# `%s`: %s \"%s\", expected \"%s\"\n", line, what, got, want);
	ktest_fail(t, __FILE__, __LINE__, what);
}

static void line_prints(struct ktest_run *t, const char *line, const char *want)
{
	KEXPECT_EQ(t, run_captured(line), 0);
	expect_text(t, line, "output", output.text, want);
	expect_text(t, line, "error", errors.text, "");
}

static void line_fails(struct ktest_run *t, const char *line, const char *why)
{
	KEXPECT(t, run_captured(line) < 0);
	expect_text(t, line, "output", output.text, "");
	expect_text(t, line, "error", errors.text, why);
}

static void note_is(struct ktest_run *t, const char *line, const char *want)
{
	run_captured("cat " NOTE);
	expect_text(t, line, "note", output.text, want);
}

KTEST(shell_words, "shell.words")
{
	line_prints(t, "echo a  b\tc", "a b c\n");
	line_prints(t, "echo 'a  b' \"c  d\"", "a  b c  d\n");
	line_prints(t, "echo a'b c'd\"e\"", "ab cde\n");
	line_prints(t, "echo '\"' \"'\" \"\\\"\\\\\\n\"", "\" ' \"\\\\n\n");
	line_prints(t, "echo a\\ b \\; \\| \\> \\# \\'", "a b ; | > # '\n");
	line_prints(t, "echo '' x", " x\n");
	line_prints(t, "echo one;echo two ; echo three;", "one\ntwo\nthree\n");
	line_prints(t, "echo a#b # comment ' | ;", "a#b\n");
	line_prints(t, "# nothing at all", "");
	line_prints(t, " ;; ", "");
	line_prints(t, "", "");
	line_prints(t, "echo sched_* *", "sched_* *\n");
	line_prints(t, "echo -n x; echo", "x\n");
}

KTEST(shell_pipes, "shell.pipes")
{
	line_prints(t, "echo one | cat | cat", "one\n");
	line_prints(t, "cat " DIR "/lines | head -n 2 | tail -1", "1:  x\n");
	line_prints(t, "cat " DIR "/lines | grep ^1 | wc -l", "11\n");
	line_prints(t, "cat " DIR "/lines | grep -vc x", "2\n");
	line_prints(t, "grep -n again " DIR "/lines", "9:8 again\n");
	line_prints(t, "grep AGAIN " DIR "/lines", "");
	line_prints(t, "grep -i AGAIN " DIR "/lines " NOTE,
		    DIR "/lines:8 again\n");
	line_prints(t, "echo -n a b | wc", "      0       2       3\n");
	line_prints(t, "head -1 " DIR "/lines", "0:x\n");
	line_prints(t, "echo a; echo b | tail -n 0", "a\n");
}

KTEST(shell_endless, "shell.endless")
{
	line_prints(t, "cat " DIR "/endless | head -3", "0\n1\n2\n");
	line_prints(t, "head -2 " DIR "/endless", "0\n1\n");
	line_prints(t, "grep 5 " DIR "/endless | head -2 | wc -l", "2\n");
	line_prints(t, "cat " DIR "/endless | head -4 | tail -1", "3\n");
	line_fails(t, "cat " DIR "/endless > " NOTE,
		   "cat: " NOTE
		   ": more than 1048576 bytes; nothing was written\n");
}

KTEST(shell_grep_patterns, "shell.grep_patterns")
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} cases[] = {
		{ "b", "abc", true },	   { "d", "abc", false },
		{ "^a", "abc", true },	   { "^b", "abc", false },
		{ "c$", "abc", true },	   { "b$", "abc", false },
		{ "^abc$", "abc", true },  { "^$", "", true },
		{ "a.c", "abc", true },	   { "a.c", "ac", false },
		{ "ab*c", "ac", true },	   { "ab*c", "abbbc", true },
		{ "a.*c", "a123c", true }, { "a.*c$", "a12c3", false },
		{ "a\\.c", "abc", false }, { "a\\.c", "a.c", true },
		{ "\\*", "a*", true },	   { "x*", "abc", true },
		{ "a$b", "a$b", true },	   { "^*a", "*a", true },
	};
	char line[64];

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(line, sizeof(line), "echo '%s' | grep -c '%s'",
			 cases[i].text, cases[i].pattern);
		line_prints(t, line, cases[i].match ? "1\n" : "0\n");
	}
	/* The places of this pattern do not fit one word of bits. */
	line_prints(t,
		    "echo 0123456789abcdefghijklmnopqrstuvwx-yz | "
		    "grep -c 0123456789abcdefghijklmnopqrstuvwxyz",
		    "0\n");
}

/* Tried one after the other, the ways to share 400 letters between nine stars take years, and
 * 480 stars more stack than there is. */
KTEST(shell_grep_stars, "shell.grep_stars")
{
	static char line[SHELL_LINE_MAX];
	char *end =
		line + snprintf(line, sizeof(line), "echo aaaa | grep -c '");

	for (int i = 0; i < 480; i++, end += 2)
		memcpy(end, "a*", 2);
	string_copy(end, "'", 2);
	line_prints(t, line, "1\n");
	end = line + snprintf(line, sizeof(line), "echo ");
	memset(end, 'a', 400);
	string_copy(end + 400, " | grep -c 'a*a*a*a*a*a*a*a*a*b'", 100);
	line_prints(t, line, "0\n");
}

/* The status acts as in sh, and $? is the error's number, as errno has it. */
KTEST(shell_status, "shell.status")
{
	line_prints(t, "echo a && echo b", "a\nb\n");
	line_prints(t, "echo a || echo b", "a\n");
	line_prints(t, "echo a || echo b && echo c", "a\nc\n");
	line_prints(t, "echo a; echo $?\"$?\"'$?'x$?", "a\n00$?x0\n");
	run_captured("cat /no && echo b");
	run_captured(" # a line without a command");
	line_prints(t, "echo $?", "2\n");
	line_prints(t, "echo $?$?", "00\n");
	run_captured("cat /no; echo then $?");
	expect_text(t, "cat /no; echo then $?", "output", output.text,
		    "then 2\n");
	run_captured("cat /no && echo b || echo c $?; echo d");
	expect_text(t, "&& and ||", "output", output.text, "c 2\nd\n");
	run_captured("cat /no | wc -l || echo failed; echo $?");
	expect_text(t, "a pipe", "output", output.text, "0\nfailed\n0\n");
	run_captured("echo '");
	line_prints(t, "echo $?", "22\n");
	line_prints(t, "echo $'a\\tb\\x41\\'\\\\'\"$x\"$", "a\tbA'\\$x$\n");
	line_prints(t, "echo $'\\x01\\xff\\n' | xxd -p", "01ff0a0a\n");
}

KTEST(shell_targets, "shell.targets")
{
	line_prints(t, "echo one two > " NOTE "; cat " NOTE, "one two\n");
	line_prints(t, "echo three >>" NOTE "; cat " NOTE, "one two+three\n");
	line_prints(t, "echo a > " NOTE " b; cat " NOTE, "a b\n");
	line_prints(t, "cat " DIR "/lines | head -1 > " NOTE "; cat " NOTE,
		    "0:x\n");
	line_prints(t, "echo > " NOTE "; cat " NOTE, "\n");
	run_captured("echo full > " NOTE);
	line_prints(t, "> " NOTE "; cat " NOTE, "\n");
}

KTEST(shell_target_errors, "shell.target_errors")
{
	run_captured("echo kept > " NOTE);
	line_fails(t, "echo bad > " NOTE,
		   "echo: " NOTE ": bad: not good; good is accepted\n");
	line_fails(t, "echo x > " DIR "/lines",
		   "echo: " DIR "/lines: cannot be written\n");
	line_fails(t, "echo x > " DIR, "echo: " DIR ": is a directory\n");
	line_fails(t, "echo x > /no",
		   "echo: /no: no such file, and none can be made; "
		   "ls lists the control files\n");
	line_fails(t, "cat /no > " NOTE, "cat: /no: no such file\n");
	line_fails(t, "cat /no | wc > " NOTE, "cat: /no: no such file\n");
	line_fails(t, "cat " DIR "/writeonly",
		   "cat: " DIR "/writeonly: cannot be read\n");
	line_fails(t, "cat /sys", "cat: /sys: is a directory\n");
	line_fails(t, "ls /no", "ls: /no: no such file\n");
	line_fails(t, "cd " NOTE, "cd: " NOTE ": is not a directory\n");
	note_is(t, "errors", "kept\n");
}

KTEST(shell_bad_lines, "shell.bad_lines")
{
	static const struct {
		const char *rest, *why;
	} bad[] = {
		{ "echo 'x", "a ' is not closed; \"'\" stands for one" },
		{ "echo \"x'", "a \" is not closed; \\\" stands for one" },
		{ "echo x\\",
		  "a \\ at the end of the line; \\\\ stands for one" },
		{ "echo x >", "no file after >; a control file is accepted" },
		{ "echo x > ; ls",
		  "no file after >; a control file is accepted" },
		{ "echo x > " NOTE " > " NOTE,
		  "more than one > in one command" },
		{ "echo x | | wc", "no command before |" },
		{ "| wc", "no command before |" },
		{ "echo x |", "no command after |" },
		{ "echo x | ; ls", "no command after |" },
		{ "echo x | > " NOTE, "no command after |" },
		{ "echo x > " NOTE " | wc",
		  "> stands before |; it is accepted "
		  "after the last command of a pipe" },
		{ "foo x", "foo: unknown command; help lists them" },
		{ "echo x | foo", "foo: unknown command; help lists them" },
		{ "echo x | ls", "ls: reads no input; after | stand cat, grep, "
				 "head, tail, wc" },
		{ "echo x & ls",
		  "no < or & here; accepted are ; && || | > >> and quotes" },
		{ "&& ls", "no command before &&" },
		{ "ls ||", "no command after ||" },
		{ "ls && ; ls", "no command after &&" },
		{ "ls && | wc", "no command before |" },
		{ "ls || && ls", "no command after ||" },
		{ "ls & ls",
		  "no < or & here; accepted are ; && || | > >> and quotes" },
		{ "echo $?$?$?$?$?$?$?$?$?", "more than 8 $? in one line" },
		{ "echo $'a", "a $' is not closed; \\' stands for '" },
		{ "echo $'\\q'", "in $'' these stand behind a \\: n t r e \\ ' "
				 "\" and xHH, but not x00" },
		{ "echo $'\\x00'", "in $'' these stand behind a \\: n t r e \\ "
				   "' \" and xHH, but not x00" },
	};
	char line[160], why[160];

	run_captured("echo kept > " NOTE);
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(line, sizeof(line), "echo lost > " NOTE "; %s",
			 bad[i].rest);
		snprintf(why, sizeof(why), "nopl: %s\n", bad[i].why);
		line_fails(t, line, why);
		note_is(t, line, "kept\n");
	}
}

KTEST(shell_too_much, "shell.too_much")
{
	char *line = kmalloc(2 * SHELL_LINE_MAX);

	KASSERT(t, line);
	memset(line, ' ', 2 * SHELL_LINE_MAX);
	line[SHELL_LINE_MAX + 1] = '\0';
	line_fails(t, line, "nopl: the line is longer than 1024 bytes\n");
	line[SHELL_LINE_MAX] = '\0';
	line_prints(t, line, "");
	memcpy(line, "echo", 4);
	for (int i = 0; i < SHELL_WORDS; i++)
		line[5 + 2 * i] = 'w';
	line_fails(t, line, "nopl: more than 128 words in one line\n");
	memset(line, ';', SHELL_LINE_MAX);
	for (int i = 0; i < SHELL_STAGES + 1; i++)
		memcpy(line + 4 * i, "pwd", 3);
	line_fails(t, line, "nopl: more than 32 commands in one line\n");
	kfree(line);
}

KTEST(shell_bad_arguments, "shell.bad_arguments")
{
	line_fails(t, "grep",
		   "grep: no PATTERN; accepted are text, . and * and \\, "
		   "^ and $ at the ends\n");
	line_fails(t, "grep -x y " NOTE,
		   "grep: -x: unknown; -v -c -i -n are accepted\n");
	line_fails(t, "wc", "wc: no FILE; usage: wc [-l] [FILE]\n");
	line_fails(t, "head -n",
		   "head: (nothing): not a number from 0 to 100000\n");
	line_fails(t, "head -x " NOTE,
		   "head: x: not a number from 0 to 100000\n");
	line_fails(t, "head " NOTE " " NOTE,
		   "head: takes one FILE; usage: head [-n N | -N] [FILE]\n");
	line_fails(t, "echo x | wc " NOTE,
		   "wc: " NOTE ": no FILE is accepted after |\n");
	line_fails(t, "poweroff 111",
		   "poweroff: 111: not a number from 0 to 110\n");
	line_fails(t, "poweroff now",
		   "poweroff: now: not a number from 0 to 110\n");
	line_fails(t, "sleep x",
		   "sleep: takes one number of seconds, 0 to 86400, "
		   "such as 2 or 0.25\n");
	line_fails(t, "stress up",
		   "stress: accepts start [N] [KIND...] [cpus] and stop\n");
	line_fails(t, "test no.such.test",
		   "test: no.such.test: no test has such a "
		   "name; without a GLOB all are run\n");
	line_fails(t, "help foo",
		   "help: foo: unknown command; help lists them\n");
}

KTEST(shell_paths, "shell.paths")
{
	static const char *const cases[][2] = {
		{ ".", DIR },
		{ "..", "/sys/kernel" },
		{ "note", NOTE },
		{ "./a//b/../note", DIR "/a/note" },
		{ "/", "/" },
		{ "/..", "/" },
		{ "../../../../proc/", "/proc" },
		{ "//sys///kernel", "/sys/kernel" },
	};
	char saved[SHELL_PATH], abs[SHELL_PATH], small[8];

	string_copy(saved, shell_cwd, sizeof(saved));
	line_prints(t, "cd " DIR "; pwd", DIR "\n");
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		KEXPECT_EQ(t, shell_resolve(cases[i][0], abs, sizeof(abs)), 0);
		expect_text(t, cases[i][0], "path", abs, cases[i][1]);
	}
	KEXPECT_EQ(t, shell_resolve("x", small, sizeof(small)), -ERANGE);
	KEXPECT_EQ(t, shell_resolve("/1234567", small, sizeof(small)), -ERANGE);
	line_prints(t, "ls -l note lines",
		    "-rw------- " NOTE "\n-r-------- " DIR "/lines\n");
	line_prints(t, "ls cpu0", "index\n");
	line_fails(t, "cd nowhere", "cd: nowhere: no such directory\n");
	line_prints(t, "cd; pwd", "/\n");
	string_copy(shell_cwd, saved, sizeof(shell_cwd));
}

KTEST(shell_repeat, "shell.repeat")
{
	line_prints(t, "repeat 3 'echo -n x; echo y | cat'", "xy\nxy\nxy\n");
	line_fails(t, "repeat 3 'foo'",
		   "nopl: foo: unknown command; help lists them\n");
	line_fails(t, "repeat 3 a b", "repeat: takes N and a LINE in quotes\n");
}

/* ---- completion ---- */

static void line_completes(struct ktest_run *t, struct completion *c,
			   const char *line, unsigned int count,
			   const char *common)
{
	char got[COMPLETION_NAME] = "";

	completion_find(c, line, strlen(line));
	if (c->count)
		string_copy(got, c->names[0], c->common_len + 1);
	expect_text(t, line, "completion", got, common);
	if (count)
		KEXPECT_EQ(t, c->count, count);
}

KTEST(shell_completion, "shell.completion")
{
	struct completion *c = kmalloc(sizeof(*c));

	KASSERT(t, c);
	line_completes(t, c, "pow", 1, "poweroff");
	line_completes(t, c, "ls; pow", 1, "poweroff");
	line_completes(t, c, "cat x | gr", 1, "grep");
	line_completes(t, c, "help hist", 1, "history");
	line_completes(t, c, "nosuch", 0, "");
	KEXPECT_EQ(t, c->count, 0);
	line_completes(t, c, "cat /sys/kernel/selft", 1, "selftest/");
	line_completes(t, c, "cat " DIR "/no", 1, "note");
	line_completes(t, c, "echo x >" DIR "/no", 1, "note");
	line_completes(t, c, "cat '" DIR "/no", 1, "note");
	KEXPECT_EQ(t, c->quote, '\'');
	line_completes(t, c, "cd " DIR "/cp", nr_cpus,
		       nr_cpus > 1 ? "cpu" : "cpu0/");
	line_completes(t, c, "echo shell_run_li", 1, "shell_run_line");
	line_completes(t, c, "echo '!shell_run_li", 1, "shell_run_line");
	line_completes(t, c, "grep shell_run_li", 1, "shell_run_line");
	line_completes(t, c, "cat /sys/kernel/nothing/shell_run_li", 0, "");
	KEXPECT_EQ(t, c->count, 0);
	/* Words that a command itself allows. */
	line_completes(t, c, "trace sto", 1, "stop");
	line_completes(t, c, "ls; trace start -p no", 1, "nop");
	line_completes(t, c, "trace start -p nop -O sym-o", 1, "sym-offset");
	line_completes(t, c, "trace start --max", 1, "--max-graph-depth");
	line_completes(t, c, "trace start -l shell_run_li", 1,
		       "shell_run_line");
	line_completes(t, c, "echo sche", 0, "sched");
	KEXPECT(t, c->count > 1);
	kfree(c);
}

/* ---- commands that look at the machine ---- */

KTEST(shell_system_files, "shell.system_files")
{
	char line[32];

	/* As many lines as ps has tasks and a header. This task runs. */
	KEXPECT_EQ(t, run_captured("ps | grep -c ' running '"), 0);
	KEXPECT(t, strcmp(output.text, "0\n"));
	snprintf(line, sizeof(line), "%u\n", task_count() + 1);
	line_prints(t, "ps | wc -l", line);
	line_prints(t, "grep -c '^[0-9a-f]*' /proc/cmdline", "0\n");
	line_prints(t, "head -1 /proc/meminfo | grep -c '^MemTotal: *. *kB$'",
		    "0\n");
	line_prints(t, "grep -c '^MemTotal:  .* kB$' /proc/meminfo", "1\n");
	line_prints(t, "grep -c ' T shell_run_line$' /proc/kallsyms", "1\n");
	line_prints(t, "tail -1 /proc/kallsyms | grep -c ' T _etext$'", "1\n");
	line_prints(t, "head -1 /proc/interrupts | grep -c '^  *CPU0'", "1\n");
	line_prints(t, "grep -c '^.*\\.[0-9]* ' /proc/uptime", "0\n");
	line_prints(t, "grep -c '^.*\\... .*\\...$' /proc/uptime", "1\n");
	/* Usage that is too long for a line. */
	line_prints(t, "help | grep -c '^trace  *\\.\\.\\.  *trace'", "1\n");
	line_prints(t, "help | grep -c '^cd  *.DIR.  *change'", "1\n");
	line_prints(t, "help trace | grep -c '^trace start .* | stop | '",
		    "1\n");
}

KTEST(shell_stress, "shell.stress")
{
	char want[64];

	if (run_captured("stress start 1"))
		KSKIP(t, "stress is running already");
	task_sleep(30 * NSEC_PER_MSEC);
	line_fails(t, "stress start",
		   "stress: is running already; stress stop ends it\n");
	KEXPECT_EQ(t, run_captured("stress stop | tail -1"), 0);
	snprintf(want, sizeof(want), "stress: 8 tasks joined, none lost\n");
	expect_text(t, "stress stop", "output", output.text, want);
	line_fails(t, "stress stop",
		   "stress: is not running; stress start [N] starts it\n");
	/* Kinds that are named, and no others. */
	KEXPECT_EQ(t, run_captured("stress start 2 sleep fork"), 0);
	task_sleep(10 * NSEC_PER_MSEC);
	KEXPECT_EQ(t, run_captured("stress stop | grep -v loops"), 0);
	snprintf(want, sizeof(want), "stress: 4 tasks joined, none lost\n");
	expect_text(t, "stress stop", "output", output.text, want);
	line_fails(t, "stress start 1 sleep doze",
		   "stress: no kind is called doze; there are spin, yield, "
		   "mutex-a, "
		   "mutex-b, ping, "
		   "pong, fork, sleep, and cpus at the end\n");
}
