/*
 * The shell on the console: commands in a linker section over control files.
 * A pipeline pushes: the first command writes, each filter consumes bytes as
 * they come, the last writes to the console or into a control file.
 */
#ifndef KERNEL_SHELL_H
#define KERNEL_SHELL_H

#include <kernel/types.h>

/* Where output goes. write: 0, or -EPIPE when nobody wants more (head). */
struct sink {
	int (*write)(struct sink *s, const char *text, size_t len);
};
int sink_printf(struct sink *s, const char *fmt, ...) printf_like(2, 3);

struct shell_cmd {
	const char *name;
	const char *usage; /* arguments: "[-n COUNT] [FILE]" */
	const char *help;  /* one line */
	/* 0 or an error; the command has said, by shell_error(), what is wrong.
	 * argv[0] is its name, argv[argc] NULL. */
	int (*run)(struct sink *out, int argc, char **argv);
};

#define SHELL_CMD(ident, cmd_name, cmd_usage, cmd_help, fn)                    \
	static const struct shell_cmd shell_cmd_##ident                        \
		REGISTER(shell_cmds) = { cmd_name, cmd_usage, cmd_help, fn }

/* "name: text", one line on the console, whatever the output; returns err. */
int shell_error(int err, const char *name, const char *fmt, ...)
	printf_like(3, 4);

/* Run one line, as typed. 0 or the error of its last command. */
int shell_run_line(const char *line);
/* The interactive loop; a task's function. */
void shell_task(void *arg);

/* Make path absolute against the shell's current directory. */
int shell_resolve(const char *path, char *abs, size_t size);

#endif
