/* SPDX-License-Identifier: MIT */
/* Commands on control files: ls cd pwd mkdir rmdir echo, and cat. */
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>

static int put_long(struct columns *c, const char *dir, const char *name)
{
	char path[2 * SHELL_PATH];
	size_t n = string_copy(path, dir, SHELL_PATH);
	int mode;

	if (n && path[n - 1] != '/')
		path[n++] = '/';
	string_copy(path + n, name, SHELL_PATH);
	mode = ctl_mode(path);
	if (mode < 0)
		return sink_printf(c->out, "dr-xr-xr-x %s\n", name);
	return sink_printf(c->out, "-%c%c------- %s\n",
			   mode & CTL_READ ? 'r' : '-',
			   mode & CTL_WRITE ? 'w' : '-', name);
}

static int list_dir(struct sink *out, const char *dir, bool as_long)
{
	struct columns c = { .out = out };
	char name[SHELL_PATH];
	int err = 0;

	name[0] = '\0';
	while (shell_on_console(out) && !as_long &&
	       !ctl_next(dir, name, sizeof(name)))
		c.width = max(c.width, (unsigned int)strlen(name));
	name[0] = '\0';
	while (!err && !ctl_next(dir, name, sizeof(name)))
		err = as_long ? put_long(&c, dir, name) : columns_put(&c, name);
	return err ? err : columns_end(&c);
}

static int list_path(struct sink *out, const char *path, bool as_long,
		     bool many)
{
	struct columns c = { .out = out };
	char abs[SHELL_PATH];
	int err = shell_resolve(path, abs, sizeof(abs));

	if (!err) {
		err = ctl_mode(abs);
		if (err >= 0)
			return as_long ? put_long(&c, "", abs) :
					 columns_put(&c, path);
	}
	if (err != -EISDIR)
		return shell_error(err, "ls", "%.64s: %s", path,
				   ctl_error_text(err));
	if (many)
		sink_printf(out, "%s:\n", path);
	return list_dir(out, abs, as_long);
}

static int cmd_ls(struct sink *out, int argc, char **argv)
{
	bool as_long = argc > 1 && !strcmp(argv[1], "-l");
	int first = 1 + as_long, err = 0, failed = 0;

	if (first < argc && argv[first][0] == '-')
		return shell_error(-EINVAL, "ls", "%s: unknown; -l is accepted",
				   argv[first]);
	if (first == argc)
		return list_path(out, ".", as_long, false);
	for (int i = first; i < argc && err != -EINTR && err != -EPIPE; i++) {
		err = list_path(out, argv[i], as_long, argc - first > 1);
		if (err)
			failed = err;
	}
	return failed;
}
SHELL_CMD(ls, "ls", "[-l] [PATH...]", "list directories of control files",
	  cmd_ls);

static int cmd_cd(struct sink *out, int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "/";
	char abs[SHELL_PATH];
	int err;

	(void)out;
	if (argc > 2)
		return shell_error(-EINVAL, "cd", "takes one DIR");
	err = shell_resolve(dir, abs, sizeof(abs));
	if (err)
		return shell_error(err, "cd", "%.64s: path too long", dir);
	if (!ctl_is_dir(abs))
		return shell_error(-ENOTDIR, "cd", "%s: %s", dir,
				   ctl_mode(abs) < 0 ? "no such directory" :
						       "is not a directory");
	string_copy(shell_cwd, abs, sizeof(shell_cwd));
	return 0;
}
SHELL_CMD(cd, "cd", "[DIR]", "change the current directory (to / without DIR)",
	  cmd_cd);

static int change_dirs(int argc, char **argv,
		       int (*change)(const char *path, char *err, size_t size))
{
	char abs[SHELL_PATH], text[160];
	int err = 0;

	if (argc < 2)
		return shell_error(-EINVAL, argv[0], "takes one DIR or more");
	for (int i = 1; !err && i < argc; i++) {
		err = shell_resolve(argv[i], abs, sizeof(abs));
		if (err)
			return shell_error(err, argv[0], "%.64s: path too long",
					   argv[i]);
		err = change(abs, text, sizeof(text));
		if (err)
			shell_error(err, argv[0], "%.64s: %s", argv[i], text);
	}
	return err;
}

static int cmd_mkdir(struct sink *out, int argc, char **argv)
{
	(void)out;
	return change_dirs(argc, argv, ctl_mkdir);
}
SHELL_CMD(mkdir, "mkdir", "DIR...", "make folders, where that can be done",
	  cmd_mkdir);

static int cmd_rmdir(struct sink *out, int argc, char **argv)
{
	(void)out;
	return change_dirs(argc, argv, ctl_rmdir);
}
SHELL_CMD(rmdir, "rmdir", "DIR...", "remove folders that mkdir has made",
	  cmd_rmdir);

static int cmd_pwd(struct sink *out, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sink_printf(out, "%s\n", shell_cwd);
}
SHELL_CMD(pwd, "pwd", "", "print the current directory", cmd_pwd);

static int cmd_echo(struct sink *out, int argc, char **argv)
{
	bool newline = argc < 2 || strcmp(argv[1], "-n");
	int err = 0;

	for (int i = 1 + !newline; i < argc && !err; i++) {
		err = out->write(out, argv[i], strlen(argv[i]));
		if (!err && i + 1 < argc)
			err = out->write(out, " ", 1);
	}
	if (!err && newline)
		err = out->write(out, "\n", 1);
	return err;
}
SHELL_CMD(echo, "echo", "[-n] TEXT...", "write text, for > and >> above all",
	  cmd_echo);

static int cat_write(struct sink *s, const char *text, size_t len)
{
	struct filter *f = container_of(s, struct filter, sink);

	return f->out->write(f->out, text, len);
}

static struct filter *cmd_cat(struct sink *out, int argc, char **argv,
			      int *first)
{
	struct filter *f = kmalloc_zeroed(sizeof(*f));

	(void)argv;
	if (!f) {
		shell_error(-ENOMEM, "cat", "out of memory");
		return NULL;
	}
	f->sink.write = cat_write;
	f->out = out;
	f->max_files = argc;
	*first = 1;
	return f;
}
SHELL_FILTER(cat, "cat", "FILE...", "print files; Ctrl-C ends one that blocks",
	     cmd_cat);
