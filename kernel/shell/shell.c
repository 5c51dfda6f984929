/* SPDX-License-Identifier: MIT */
/* The shell: pipelines of commands over control files, and its prompt. */
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>
#include <kernel/console.h>
#include <kernel/mm/kmalloc.h>

char shell_cwd[SHELL_PATH] = "/";
struct line_edit shell_editor;

/* ---- output ---- */

static int console_sink_write(struct sink *s, const char *text, size_t len)
{
	(void)s;
	if (console_interrupted())
		return -EINTR;
	console_write(text, len);
	return 0;
}

/* For error lines and the line editor: their output is shown after Ctrl-C, too. */
static int always_sink_write(struct sink *s, const char *text, size_t len)
{
	(void)s;
	console_write(text, len);
	return 0;
}

static struct sink console_sink = { console_sink_write };
static struct sink always_sink = { always_sink_write };
struct sink *shell_errors = &always_sink;

bool shell_on_console(const struct sink *out)
{
	return out == &console_sink;
}

static int sink_vprintf(struct sink *s, const char *fmt, va_list ap)
{
	char text[512];
	int n = format_args(text, sizeof(text), fmt, ap);

	return s->write(s, text, min((size_t)n, sizeof(text) - 1));
}

int sink_printf(struct sink *s, const char *fmt, ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = sink_vprintf(s, fmt, ap);
	va_end(ap);
	return err;
}

int shell_error(int err, const char *name, const char *fmt, ...)
{
	char text[384];
	va_list ap;

	va_start(ap, fmt);
	format_args(text, sizeof(text), fmt, ap);
	va_end(ap);
	sink_printf(shell_errors, "%s: %s\n", name, text);
	return err;
}

int columns_put(struct columns *c, const char *name)
{
	if (!c->width)
		return sink_printf(c->out, "%s\n", name);
	if (c->at && c->at + c->width > SHELL_WIDTH) {
		c->at = 0;
		sink_printf(c->out, "\n");
	}
	c->at += c->width + 2;
	return sink_printf(c->out, "%-*s", (int)c->width + 2, name);
}

int columns_end(struct columns *c)
{
	return c->at ? sink_printf(c->out, "\n") : 0;
}

int shell_number(const char *cmd, const char *text, unsigned long max,
		 unsigned long *value)
{
	u64 n = 0;

	if (!text || parse_u64(text, &n) || n > max)
		return shell_error(-EINVAL, cmd,
				   "%s: not a number from 0 to %lu",
				   text ? text : "(nothing)", max);
	*value = n;
	return 0;
}

/* ---- paths ---- */

/* Append one component to an absolute path. */
static int path_add(char *abs, size_t size, const char *name, size_t n)
{
	size_t len = strlen(abs);

	if (!n || (n == 1 && name[0] == '.'))
		return 0;
	if (n == 2 && name[0] == '.' && name[1] == '.') {
		*strrchr(abs, '/') = '\0';
		if (!abs[0])
			string_copy(abs, "/", size);
		return 0;
	}
	if (len == 1)
		len = 0; /* the root's own slash */
	if (len + n + 2 > size)
		return -ERANGE;
	abs[len] = '/';
	memcpy(abs + len + 1, name, n);
	abs[len + 1 + n] = '\0';
	return 0;
}

int shell_resolve(const char *path, char *abs, size_t size)
{
	const char *slash;
	int err = 0;

	if (string_copy(abs, *path == '/' ? "/" : shell_cwd, size) >= size)
		return -ERANGE;
	while (!err && (slash = strchr(path, '/'))) {
		err = path_add(abs, size, path, slash - path);
		path = slash + 1;
	}
	return err ? err : path_add(abs, size, path, strlen(path));
}

/* ---- one command ---- */

static int open_file(const char *name, const char *file, struct ctl_handle **h)
{
	char path[SHELL_PATH];
	int err = shell_resolve(file, path, sizeof(path));

	if (!err)
		err = ctl_open(path, false, false, h);
	if (err == -EPERM)
		shell_error(err, name, "%s: cannot be read", file);
	else if (err == -ERANGE)
		shell_error(err, name, "%.60s...: path too long", file);
	else if (err)
		shell_error(err, name, "%s: %s", file, ctl_error_text(err));
	return err;
}

int shell_copy_file(struct sink *out, const char *name, const char *file)
{
	struct ctl_handle *h;
	char chunk[256];
	ssize_t n;
	int err = open_file(name, file, &h);

	if (err)
		return err;
	while ((n = ctl_read(h, chunk, sizeof(chunk))) > 0) {
		err = out->write(out, chunk, n);
		if (!err && console_interrupted())
			err = -EINTR;
		if (err)
			break;
	}
	if (n < 0 && n != -EINTR)
		shell_error(n, name, "%s: %s", file,
			    h->error[0] ? h->error : ctl_error_text(n));
	ctl_abandon(h);
	return n < 0 ? n : err;
}

/* The filter writes the text it has kept, unless Ctrl-C ends the pipeline. The first error
 * is returned. */
static int filter_end(struct filter *f, int err)
{
	int end_err = 0;

	if (err != -EINTR && f->end)
		end_err = f->end(f);
	if (f->release)
		f->release(f);
	kfree(f);
	return err ? err : end_err;
}

static int check_files(const struct shell_cmd *cmd, const struct filter *f,
		       int files)
{
	if (!files)
		return shell_error(-EINVAL, cmd->name, "no FILE; usage: %s %s",
				   cmd->name, cmd->usage);
	if (files > f->max_files)
		return shell_error(-EINVAL, cmd->name,
				   "takes one FILE; usage: %s %s", cmd->name,
				   cmd->usage);
	return 0;
}

/* A file that cannot be read is reported and passed over, as in Unix. */
static int feed_files(struct filter *f, const char *name, char **file)
{
	int err, failed = 0;

	for (; *file; file++) {
		f->file = *file;
		err = shell_copy_file(&f->sink, name, *file);
		if (err == -EPIPE)
			break;
		if (err == -EINTR)
			return err;
		if (err)
			failed = err;
	}
	return failed;
}

/* Run cat, grep and the like as the first command of a pipeline: they read the files
 * that are named. */
static int exec_filter(struct sink *out, const struct shell_cmd *cmd, int argc,
		       char **argv)
{
	int first = argc, err;
	struct filter *f = cmd->filter(out, argc, argv, &first);

	if (!f)
		return -EINVAL;
	err = check_files(cmd, f, argc - first);
	if (err) {
		f->end = NULL;
	} else {
		f->many = argc - first > 1;
		err = feed_files(f, cmd->name, argv + first);
	}
	return filter_end(f, err);
}

static int exec_command(struct sink *out, const struct shell_cmd *cmd, int argc,
			char **argv)
{
	if (cmd->run)
		return cmd->run(out, argc, argv);
	return exec_filter(out, cmd, argc, argv);
}

/* ---- a pipeline ---- */

struct target {
	struct sink sink;
	struct ctl_handle *h;
	bool full; /* more came than a control file takes */
};

struct pipeline {
	struct shell_stage *stage;
	unsigned int nr;
	struct filter *filter[SHELL_STAGES]; /* [0] unused */
	struct sink *out;		     /* of the last stage */
	struct target target;
};

static int target_write(struct sink *s, const char *text, size_t len)
{
	struct target *t = container_of(s, struct target, sink);
	int err = ctl_write(t->h, text, len);

	if (err)
		t->full = true;
	return err;
}

static const char *stage_name(const struct shell_stage *g)
{
	return g->argc ? g->argv[0] : "nopl";
}

static int open_target(struct pipeline *p)
{
	struct shell_stage *last = &p->stage[p->nr - 1];
	const char *name = stage_name(last);
	char path[SHELL_PATH];
	int err;

	p->target.h = NULL;
	if (!last->target)
		return 0;
	p->target.sink.write = target_write;
	err = shell_resolve(last->target, path, sizeof(path));
	if (!err)
		err = ctl_open(path, true, !last->append, &p->target.h);
	p->out = &p->target.sink;
	if (err == -EPERM)
		shell_error(err, name, "%s: cannot be written", last->target);
	else if (err == -ENOENT)
		shell_error(err, name,
			    "%s: no such file, and none can be made; ls lists "
			    "the control files",
			    last->target);
	else if (err)
		shell_error(err, name, "%.64s: %s", last->target,
			    ctl_error_text(err));
	return err;
}

static int close_target(struct pipeline *p, int err)
{
	struct shell_stage *last = &p->stage[p->nr - 1];
	char why[160];

	if (!p->target.h)
		return err;
	/* A pipeline that failed half-way must not write less and look like a
	 * success. If it wrote too much, ctl_close() says so. */
	if (err && !p->target.full) {
		ctl_abandon(p->target.h);
		return err;
	}
	err = ctl_close(p->target.h, why, sizeof(why));
	if (err)
		shell_error(err, stage_name(last), "%s: %s", last->target, why);
	return err;
}

/* Make the filters, the last one first: each needs its output. */
static int make_filters(struct pipeline *p)
{
	for (unsigned int i = p->nr - 1; i > 0; i--) {
		struct shell_stage *g = &p->stage[i];
		int first = g->argc;

		p->filter[i] = g->cmd->filter(p->out, g->argc, g->argv, &first);
		if (!p->filter[i])
			return -EINVAL;
		p->out = &p->filter[i]->sink;
		if (first < g->argc)
			return shell_error(-EINVAL, g->argv[0],
					   "%s: no FILE is accepted after |",
					   g->argv[first]);
	}
	return 0;
}

/* If the pipeline never ran, not even a count of nothing is written. */
static int end_filters(struct pipeline *p, int err, bool ran)
{
	for (unsigned int i = 1; i < p->nr; i++) {
		if (!p->filter[i])
			continue;
		if (!ran)
			p->filter[i]->end = NULL;
		err = filter_end(p->filter[i], err);
		if (err == -EPIPE)
			err = 0;
	}
	return err;
}

static int run_pipeline(struct sink *out, struct shell_stage *stage,
			unsigned int nr)
{
	struct pipeline p = { .stage = stage, .nr = nr, .out = out };
	int err = open_target(&p);
	bool ran;

	if (err)
		return err;
	err = make_filters(&p);
	ran = !err;
	if (ran && stage->cmd)
		err = exec_command(p.out, stage->cmd, stage->argc, stage->argv);
	if (err == -EPIPE)
		err = 0; /* head has enough: that is success */
	err = end_filters(&p, err, ran);
	return close_target(&p, err);
}

/* Every $? of a word becomes the status in digits, the last one first: digits move later text. */
static void fill_in_status(const struct shell_script *p, char *word, int status)
{
	char digits[SHELL_STATUS_DIGITS + 1], *at, *end;
	size_t len;

	len = snprintf(digits, sizeof(digits), "%d", status);
	for (unsigned int i = p->nr_status; i--;) {
		at = p->status[i];
		end = at + SHELL_STATUS_DIGITS;
		if (at < word || at > word + strlen(word))
			continue;
		memcpy(at, digits, len);
		memmove(at + len, end, strlen(end) + 1);
	}
}

/* The positive error number of the last command, 0 after success: $?. */
static int last_status;

static int run_script(struct sink *out, struct shell_script *p)
{
	int err = -last_status;

	for (unsigned int i = 0, n; i < p->nr_stages; i += n) {
		enum shell_when when = p->stages[i].when;

		for (n = 1; p->stages[i + n - 1].piped; n++)
			;
		if (when == (err ? SHELL_IF_OK : SHELL_IF_FAILED))
			continue;
		for (unsigned int s = i; s < i + n; s++)
			for (int a = 0; a < p->stages[s].argc; a++)
				fill_in_status(p, p->stages[s].argv[a], -err);
		err = run_pipeline(out, &p->stages[i], n);
		if (err == -EINTR)
			break;
	}
	return err;
}

int shell_run(struct sink *out, const char *line)
{
	struct shell_script *p = kmalloc(sizeof(*p));
	int err;

	if (!p)
		return shell_error(-ENOMEM, "nopl", "out of memory");
	err = shell_parse(p, line);
	if (err)
		shell_error(err, "nopl", "%s", p->error);
	else if (p->nr_stages)
		err = run_script(out, p);
	/* A line without a command leaves the status as it is. */
	if (err || p->nr_stages)
		last_status = -err;
	kfree(p);
	return err;
}

int shell_run_line(const char *line)
{
	int err = shell_run(&console_sink, line);

	if (err == -EINTR) {
		console_write("^C\n", 3);
		console_clear_interrupt();
	}
	return err;
}
