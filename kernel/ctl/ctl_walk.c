/* SPDX-License-Identifier: MIT */
/* All paths of control files: ctl_walk.h. */
#include <kernel/ctl/ctl_walk.h>

#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

/* The walk's n behind any file's last name: ctl_walk_skip() has passed over the rest. */
#define NO_MORE_NAMES (~0u)

void ctl_walk_start(struct ctl_walk *w, const char *wanted)
{
	size_t n = strlen(wanted);

	while (n && wanted[n - 1] == '/')
		n--;
	w->wanted = wanted;
	w->wanted_len = n;
	w->file = NULL;
	w->n = w->folder = 0;
}

/* Can a path be wanted that has text at `at`, up to `stop` or its end? No calls: this is asked of
 * every file whenever one is opened. */
static always_inline bool walk_agrees(const struct ctl_walk *w, size_t at,
				      const char *text, char stop)
{
	const char *end = w->wanted + w->wanted_len;
	const char *wanted = w->wanted + min(at, w->wanted_len);

	while (wanted != end && *text == *wanted) {
		text++;
		wanted++;
	}
	return wanted == end || !*text || *text == stop;
}

/* Put text into the path at *at, up to `stop` or its end. That is returned. NULL: the path is not
 * wanted. */
static always_inline const char *put_up_to(struct ctl_walk *w, size_t *at,
					   const char *text, char stop)
{
	size_t i = *at;

	if (!walk_agrees(w, i, text, stop))
		return NULL;
	while (*text && *text != stop && i < CTL_PATH - 1)
		w->path[i++] = *text++;
	w->path[i] = '\0';
	*at = i;
	return text;
}

/* Put a part of a file's path, up to a %, which stands for a number or a name. */
static always_inline const char *walk_put(struct ctl_walk *w, size_t *at,
					  const char *path)
{
	return put_up_to(w, at, path, '%');
}

/* A name that users may have made: a % is a character like any other. */
static always_inline bool put_name(struct ctl_walk *w, size_t *at,
				   const char *name)
{
	return put_up_to(w, at, name, '\0');
}

/* The number of a CPU, or a name. NULL: there are no more. */
static const char *walk_name_of(const struct ctl_file *file, unsigned int n,
				char *number, size_t size)
{
	if (n == NO_MORE_NAMES)
		return NULL;
	if (file->name)
		return file->name(n);
	if (n >= (file->possible ? boot_info.nr_cpus : nr_cpus))
		return NULL;
	snprintf(number, size, "%u", n);
	return number;
}

/* Put the part before the file's own path in the walk's folder. The part behind that is
 * returned. NULL: there is no such folder, or it is not wanted. */
static const char *put_folder(struct ctl_walk *w, size_t *at)
{
	const struct ctl_folders *folders = w->file->folders;
	const char *name;

	if (!w->folder)
		return w->file->path;
	name = folders->name(w->folder);
	if (!name || !*name)
		return NULL;
	if (!walk_put(w, at, folders->path) || !walk_put(w, at, "/") ||
	    !put_name(w, at, name))
		return NULL;
	return w->file->path + strlen(folders->root);
}

/* Make the next path that is wanted, of the walk's file in its folder, from number n on. */
static bool walk_names(struct ctl_walk *w)
{
	const char *path, *name;
	char number[12];
	size_t at = 0, end;

	path = put_folder(w, &at);
	path = path ? walk_put(w, &at, path) : NULL;
	if (!path)
		return false;
	w->differs_at = at;
	if (*path != '%')
		return w->n == 0;
	for (; (name = walk_name_of(w->file, w->n, number, sizeof(number)));
	     w->n++) {
		end = at;
		if (put_name(w, &end, name) && walk_put(w, &end, path + 2))
			return true;
	}
	return false;
}

/* Go on to the file's next folder, or to the next file. */
static void walk_on(struct ctl_walk *w)
{
	const struct ctl_folders *folders = w->file->folders;

	w->n = 0;
	if (folders && (w->folder || walk_agrees(w, 0, folders->path, '\0')) &&
	    folders->name(++w->folder))
		return;
	w->folder = 0;
	w->file++;
}

bool ctl_walk_next(struct ctl_walk *w)
{
	if (w->file)
		w->n++;
	else
		w->file = __start_ctl_files;
	for (; w->file < __stop_ctl_files; walk_on(w))
		if (walk_names(w))
			return true;
	return false;
}

bool ctl_walk_holds(const struct ctl_walk *w)
{
	const struct ctl_folders *folders = w->file->folders;
	const char *rest, *name;
	size_t n;

	if (!w->folder)
		return true;
	rest = ctl_below(w->path, folders->path);
	name = folders->name(w->folder);
	n = strlen(name);
	return !strncmp(rest, name, n) && rest[n] == '/';
}

void ctl_walk_skip(struct ctl_walk *w, size_t len)
{
	if (w->differs_at >= len)
		w->n = NO_MORE_NAMES - 1;
}

const char *ctl_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n && dir[n - 1] == '/')
		n--;
	if (strncmp(path, dir, n) || path[n] != '/')
		return NULL;
	return path + n + 1;
}
