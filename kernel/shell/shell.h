/* SPDX-License-Identifier: MIT */
/*
 * The shell on the console. Its commands are registered in a linker section, and work
 * on control files. In a pipeline the first command writes, each filter consumes the
 * bytes as they come, and the last one writes to the console or into a control file.
 */
#ifndef KERNEL_SHELL_H
#define KERNEL_SHELL_H

#include <kernel/types.h>

/* Where output goes. write() returns 0, or -EPIPE when the reader has ended (head). */
struct sink {
	int (*write)(struct sink *s, const char *text, size_t len);
};
int sink_printf(struct sink *s, const char *fmt, ...) printf_like(2, 3);

/*
 * One stage of a pipeline, which consumes the output of the stage before it. A
 * command's filter() makes it on the heap, inside the command's own struct.
 */
struct filter {
	struct sink sink; /* first: its input */
	struct sink *out;
	/* All input has come: write the kept text. NULL: nothing is kept. */
	int (*end)(struct filter *f);
	/* Free the kept text, but not f itself. NULL: nothing is kept. */
	void (*release)(struct filter *f);
	int max_files;	  /* FILE arguments it takes */
	const char *file; /* the one being read, NULL in a pipe */
	bool many;	  /* there is more than one */
};

struct shell_cmd {
	const char *name;
	const char *usage; /* arguments: "[-n COUNT] [FILE]" */
	const char *help;  /* one line */
	/* 0, or an error, and then the command has named the mistake by shell_error().
	 * argv[0] is the command's name, and argv[argc] is NULL. */
	int (*run)(struct sink *out, int argc, char **argv);
	/*
	 * Instead of run, for a command that reads files or, behind a |, its
	 * input. Returns a filter that writes to `out`, and sets *first to the
	 * index of the first file in argv. NULL: the arguments are wrong, and the
	 * command has said why.
	 */
	struct filter *(*filter)(struct sink *out, int argc, char **argv,
				 int *first);
	/* For Tab, optional: the i-th word that may follow `before`. NULL: there are no
	 * more. If there is none at all, Tab offers the words that the usage asks for. */
	const char *(*follow)(const char *before, unsigned int i);
};

#define SHELL_CMD(ident, cmd_name, cmd_usage, cmd_help, fn)                    \
	static const struct shell_cmd shell_cmd_##ident REGISTER(              \
		shell_cmds) = { cmd_name, cmd_usage, cmd_help, fn, NULL, NULL }
#define SHELL_CMD_FOLLOW(ident, cmd_name, cmd_usage, cmd_help, fn, follow)     \
	static const struct shell_cmd shell_cmd_##ident REGISTER(              \
		shell_cmds) = {                                                \
		cmd_name, cmd_usage, cmd_help, fn, NULL, follow                \
	}
#define SHELL_FILTER(ident, cmd_name, cmd_usage, cmd_help, fn)                 \
	static const struct shell_cmd shell_cmd_##ident REGISTER(              \
		shell_cmds) = { cmd_name, cmd_usage, cmd_help, NULL, fn, NULL }

/* Print "name: text" as one line on the console, wherever output goes. Returns err. */
int shell_error(int err, const char *name, const char *fmt, ...)
	printf_like(3, 4);

/* Run one line, as typed. 0 or the error of its last command. */
int shell_run_line(const char *line);
/* The same, output to `out`. -EINTR after Ctrl-C. */
int shell_run(struct sink *out, const char *line);

/* Copy a control file to `out`. Errors are printed as command `name`'s. */
int shell_copy_file(struct sink *out, const char *name, const char *file);

/* Make a path absolute, from the shell's current directory, without "." and "..". 0, or
 * -ERANGE: it does not fit. */
int shell_resolve(const char *path, char *abs, size_t size);

#endif
