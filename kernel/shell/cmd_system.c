/* SPDX-License-Identifier: MIT */
/* Commands on the machine and on the shell itself. */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/printk.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>
#include <kernel/time.h>
#include <kernel/console.h>

#define SLEEP_MAX 86400ul
/* How soon `sleep` sees Ctrl-C. */
#define SLEEP_SLICE (20 * NSEC_PER_MSEC)

REGISTRY(struct shell_cmd, shell_cmds);

/* ---- help ---- */

/* The command whose name comes next after `name` in the alphabet. */
static const struct shell_cmd *next_command(const char *name)
{
	const struct shell_cmd *c, *best = NULL;

	for_each_registered (c, shell_cmds)
		if (strcmp(c->name, name) > 0 &&
		    (!best || strcmp(c->name, best->name) < 0))
			best = c;
	return best;
}

static int help_all(struct sink *out)
{
	const struct shell_cmd *c;
	int err = 0;

	for (c = next_command(""); c && !err; c = next_command(c->name))
		err = sink_printf(out, "%-8s %-28s %s\n", c->name,
				  strlen(c->usage) > 28 ? "..." : c->usage,
				  c->help);
	if (err)
		return err;
	return sink_printf(out, "help COMMAND says what ... stands for.\n"
				"A line: COMMAND [| FILTER]... [> FILE | >> "
				"FILE] [; ...], quotes as in sh, # begins a\n"
				"comment; * is not expanded. Tab completes, "
				"Ctrl-C interrupts.\n");
}

static int cmd_help(struct sink *out, int argc, char **argv)
{
	const struct shell_cmd *c;
	int err = 0;

	if (argc < 2)
		return help_all(out);
	for (int i = 1; i < argc && !err; i++) {
		c = shell_find(argv[i]);
		if (!c)
			return shell_error(-ENOENT, "help",
					   "%.64s: unknown command; help "
					   "lists them",
					   argv[i]);
		err = sink_printf(out, "%s %s\n\t%s\n", c->name, c->usage,
				  c->help);
	}
	return err;
}
SHELL_CMD(help, "help", "[COMMAND]", "list commands, or explain one", cmd_help);

/* ---- time ---- */

static int cmd_uptime(struct sink *out, int argc, char **argv)
{
	u64 ns = time_ns();

	(void)argc;
	(void)argv;
	return sink_printf(out, "up %llu.%02u s, %u CPU%s, %u tasks\n",
			   (unsigned long long)(ns / NSEC_PER_SEC),
			   (unsigned int)(ns / (NSEC_PER_SEC / 100) % 100),
			   nr_cpus, nr_cpus == 1 ? "" : "s", task_count());
}
SHELL_CMD(uptime, "uptime", "", "print for how long the machine has run",
	  cmd_uptime);

/* "2", "0.25": at most nine digits after the point. */
static int parse_seconds(const char *text, u64 *ns)
{
	u64 unit = NSEC_PER_SEC, n = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9' && n <= SLEEP_MAX; p++)
		n = n * 10 + *p - '0';
	if (p == text || n > SLEEP_MAX)
		return -EINVAL;
	*ns = n * NSEC_PER_SEC;
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9' && unit > 1; p++) {
			unit /= 10;
			*ns += (*p - '0') * unit;
		}
	return *p ? -EINVAL : 0;
}

static int cmd_sleep(struct sink *out, int argc, char **argv)
{
	u64 ns, end;

	(void)out;
	if (argc != 2 || parse_seconds(argv[1], &ns))
		return shell_error(-EINVAL, "sleep",
				   "takes one number of seconds, 0 to %lu, "
				   "such as 2 or 0.25",
				   SLEEP_MAX);
	end = time_ns() + ns;
	for (;;) {
		u64 now = time_ns();

		if (console_interrupted())
			return -EINTR;
		if (now >= end)
			return 0;
		task_sleep(min(end - now, (u64)SLEEP_SLICE));
	}
}
SHELL_CMD(sleep, "sleep", "SECONDS", "wait", cmd_sleep);

/* ---- tests, the end ---- */

static int cmd_test(struct sink *out, int argc, char **argv)
{
	const char *fault = argc > 2 ? argv[2] : NULL;
	int failures;

	(void)out;
	if (argc > 3)
		return shell_error(-EINVAL, "test",
				   "takes a GLOB and a FAULT at most");
	failures = ktest_run_all(argv[1], fault);
	if (failures == -EINVAL)
		return shell_error(failures, "test",
				   "'%s' is no NAME, NAME:N or NAME@N, a name "
				   "that `cat /proc/faults` lists",
				   fault);
	if (failures == -ENOENT)
		return shell_error(-ENOENT, "test",
				   "%s: no test has such a name; without a "
				   "GLOB all are run",
				   argc > 1 ? argv[1] : "*");
	return failures ? -EIO : 0;
}
SHELL_CMD(test, "test", "[GLOB [FAULT]]",
	  "run the kernel's tests, all or some, each with a fault", cmd_test);

static int cmd_panic(struct sink *out, int argc, char **argv)
{
	char text[128] = "";
	size_t n = 0;

	(void)out;
	for (int i = 1; i < argc; i++)
		n += format_within(text + n, sizeof(text) - n, "%s%s",
				   i > 1 ? " " : "", argv[i]);
	panic("%s", n ? text : "asked for from the shell");
}
SHELL_CMD(panic, "panic", "[TEXT]", "stop the machine as a broken one",
	  cmd_panic);

static int cmd_poweroff(struct sink *out, int argc, char **argv)
{
	unsigned long status = ktest_status();

	(void)out;
	if (argc > 2)
		return shell_error(-EINVAL, "poweroff", "takes one STATUS");
	if (argc > 1 &&
	    shell_number("poweroff", argv[1], POWER_STATUS_MOST, &status))
		return -EINVAL;
	arch_power_off(status);
}
SHELL_CMD(poweroff, "poweroff", "[STATUS]",
	  "end QEMU: 0, or 1 after a failed test, or STATUS", cmd_poweroff);

/* ---- the shell itself ---- */

static int cmd_history(struct sink *out, int argc, char **argv)
{
	int err = 0;

	(void)argc;
	(void)argv;
	for (unsigned int i = 0; i < shell_editor.nr_history && !err; i++)
		err = sink_printf(out, "%4u  %.480s\n", i + 1,
				  shell_editor.history[i]);
	return err;
}
SHELL_CMD(history, "history", "", "list the lines typed before", cmd_history);

static int cmd_repeat(struct sink *out, int argc, char **argv)
{
	unsigned long n;
	int err = 0;

	if (argc != 3)
		return shell_error(-EINVAL, "repeat",
				   "takes N and a LINE in "
				   "quotes");
	if (shell_number("repeat", argv[1], 1000000, &n))
		return -EINVAL;
	while (n-- && !err)
		err = console_interrupted() ? -EINTR : shell_run(out, argv[2]);
	return err;
}
SHELL_CMD(repeat, "repeat", "N 'LINE'", "run a line N times, until it fails",
	  cmd_repeat);
