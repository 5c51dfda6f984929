/* SPDX-License-Identifier: MIT */
/* Declarations that the shell's own files share. */
#ifndef KERNEL_SHELL_INTERNAL_H
#define KERNEL_SHELL_INTERNAL_H

#include <kernel/shell/shell.h>

#define SHELL_LINE_MAX 1024 /* bytes of a line */
#define SHELL_WORDS 128	    /* words of a line */
#define SHELL_STAGES 32	    /* commands of a line */
#define SHELL_PATH 128
#define SHELL_HISTORY 32
#define SHELL_WIDTH 80 /* of the console, for columns */

/* ---- shell_parse.c: a line into commands -------------------------------- */

#define SHELL_STATUS_DIGITS 3 /* of an error */
#define SHELL_STATUS_MAX 8    /* $? of a line */

/* Of the first stage of a pipeline: after how the one before it has ended. */
enum shell_when {
	SHELL_ALWAYS,
	SHELL_IF_OK,	 /* && */
	SHELL_IF_FAILED, /* || */
};

struct shell_stage {
	enum shell_when when;
	int argc;
	char **argv;		     /* argv[argc] is NULL */
	const struct shell_cmd *cmd; /* NULL: only a target, `> file` */
	char *target;		     /* of > or >>, or NULL */
	bool append;
	bool piped; /* its output goes into the next stage */
};

struct shell_script {
	unsigned int nr_stages;
	struct shell_stage stages[SHELL_STAGES];
	unsigned int nr_words;
	char *words[SHELL_WORDS + SHELL_STAGES]; /* the argv lists */
	/* The words, unquoted. */
	char text[SHELL_LINE_MAX + SHELL_WORDS +
		  SHELL_STATUS_MAX * SHELL_STATUS_DIGITS];
	/* Where digits have room that take the place of $?, ascending. */
	char *status[SHELL_STATUS_MAX];
	unsigned int nr_status;
	char error[128];
};

/*
 * Parse a whole line into *p. 0, or -EINVAL with p->error naming the mistake
 * and the accepted form. Looks commands up, runs nothing.
 */
int shell_parse(struct shell_script *p, const char *line);

const struct shell_cmd *shell_find(const char *name);

/* ---- shell.c: running it ------------------------------------------------- */

/* Does out go straight to the console? Then output may be in columns. */
bool shell_on_console(const struct sink *out);
/* Where shell_error() goes. Tests point it elsewhere. */
extern struct sink *shell_errors;

extern char shell_cwd[SHELL_PATH];

/* Names in columns of a width that fits the longest, `width`. */
struct columns {
	struct sink *out;
	unsigned int width; /* 0: one name a line */
	unsigned int at;
};
int columns_put(struct columns *c, const char *name);
int columns_end(struct columns *c);

/*
 * A number from 0 to max. 0, or -EINVAL after an error line that names the
 * command.
 */
int shell_number(const char *cmd, const char *text, unsigned long max,
		 unsigned long *value);

/* ---- shell_line.c: the line editor --------------------------------------- */

enum line_event {
	LINE_MORE,	/* wants more bytes */
	LINE_DONE,	/* e->buf is a line */
	LINE_CANCELLED, /* Ctrl-C */
	LINE_TOO_LONG,	/* ended, but bytes had to be dropped */
};

enum line_escape { ESC_NONE, ESC_SEEN, ESC_PARAM };

struct line_edit {
	struct sink *out;
	const char *prompt;
	/* Tab: extend the line, and (second Tab) list the ways to go on. True if
	 * it added something. NULL: Tab does nothing. */
	bool (*complete)(struct line_edit *e, bool list);
	char buf[SHELL_LINE_MAX + 1];
	size_t len, pos;
	bool too_long;
	bool tabbed; /* the last key was a Tab that added nothing */
	bool after_cr;
	enum line_escape escape;
	unsigned int escape_param;
	char utf8[4]; /* a character of several bytes, while they come */
	unsigned int utf8_len;
	char *history[SHELL_HISTORY]; /* oldest first */
	unsigned int nr_history, history_at;
	char draft[SHELL_LINE_MAX + 1]; /* the new line, while in history */
};

/* Begin a line: empty, prompt printed. */
void line_start(struct line_edit *e);
/* One byte typed. */
enum line_event line_feed(struct line_edit *e, int byte);
/* For complete(): insert at the cursor, print prompt and line again. */
void line_insert(struct line_edit *e, const char *text, size_t len);
void line_redraw(struct line_edit *e);
/* Remember a line, unless it is empty or the same as the last. */
void line_remember(struct line_edit *e, const char *line);
/* Free the history. */
void line_release(struct line_edit *e);

/* The editor of shell_task(), for `history`. */
extern struct line_edit shell_editor;

/* ---- shell_complete.c ---------------------------------------------------- */

#define COMPLETION_NAMES 60
#define COMPLETION_NAME 64

struct completion {
	const char *prefix;
	size_t prefix_len;
	bool dirs_only;
	char quote;	    /* that the word began with, or 0 */
	unsigned int count; /* names that fit, more than are kept perhaps */
	size_t common_len;  /* that all of them share */
	unsigned int nr_names;
	char names[COMPLETION_NAMES][COMPLETION_NAME]; /* sorted */
};

/* Find the completions of the text before the cursor, line[0..pos). */
void completion_find(struct completion *c, const char *line, size_t pos);
/* line_edit.complete */
bool shell_complete(struct line_edit *e, bool list);

#endif
