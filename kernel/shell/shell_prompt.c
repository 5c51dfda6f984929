/* SPDX-License-Identifier: MIT */
/* The shell's prompt, and the line that the boot parameter run= has. */
#include <kernel/console.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/shell/shell_internal.h>

/*
 * A Ctrl-C that was typed right after a line must still interrupt it, so the
 * flag is cleared when its byte has been seen here, and not before a command.
 */
static void line_ended(struct line_edit *e, enum line_event event)
{
	if (event == LINE_DONE)
		shell_run_line(e->buf);
	else if (event == LINE_CANCELLED)
		console_clear_interrupt();
	else
		shell_error(-EINVAL, "nopl",
			    "the line is longer than %d bytes; "
			    "nothing of it was run",
			    SHELL_LINE_MAX);
}

static const char *run_line;

static int run_param(const char *value)
{
	run_line = value;
	return 0;
}
KERNEL_PARAM(run, "run", "a shell line in double quotes", run_param);

static void shell_task(void)
{
	static char prompt[SHELL_PATH + 16];
	struct line_edit *e = &shell_editor;
	enum line_event event;
	int byte;

	if (run_line)
		shell_run_line(run_line);
	e->out = shell_errors;
	e->prompt = prompt;
	e->complete = shell_complete;
	for (;;) {
		snprintf(prompt, sizeof(prompt), "nopl:%s# ", shell_cwd);
		line_start(e);
		do {
			byte = console_read();
			if (byte < 0)
				return;
			event = line_feed(e, byte);
		} while (event == LINE_MORE);
		line_ended(e, event);
	}
}
INIT_HOOK(INIT_SHELL, shell_task);
