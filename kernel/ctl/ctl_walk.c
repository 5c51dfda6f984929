/* All paths of control files: ctl_walk.h. */
#include <kernel/ctl/ctl_walk.h>

#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

void ctl_walk_start(struct ctl_walk *w, const char *wanted)
{
	w->wanted = wanted;
	w->file = NULL;
	w->n = w->folder = 0;
}

static unsigned int cpus_of(const struct ctl_file *file)
{
	return file->possible ? boot_info.nr_cpus : nr_cpus;
}

/* The path of a file, as it is in the walk's folder; false: there is no such folder. */
static bool into_folder(struct ctl_walk *w)
{
	const struct ctl_folders *folders = w->file->folders;
	const char *name;
	char own[CTL_PATH];

	if (!w->folder)
		return true;
	name = folders->name(w->folder);
	if (!name || !*name)
		return false;
	strlcpy(own, w->path, CTL_PATH);
	snprintf(w->path, CTL_PATH, "%s/%s%s", folders->path, name,
		 own + strlen(folders->root));
	return true;
}

/* Make the n-th path of the file; false: it has fewer. */
static bool walk_expand(struct ctl_walk *w)
{
	const char *path = w->file->path, *name = "";
	const char *mark = strstr(path, w->file->name ? "%s" : "%u");

	if (!mark) {
		strlcpy(w->path, path, CTL_PATH);
		return w->n == 0 && into_folder(w);
	}
	if (w->file->name)
		name = w->file->name(w->n);
	if (!name || (!w->file->name && w->n >= cpus_of(w->file)))
		return false;
	if (w->file->name)
		snprintf(w->path, CTL_PATH, "%.*s%s%s", (int)(mark - path),
			 path, name, mark + 2);
	else
		snprintf(w->path, CTL_PATH, "%.*s%u%s", (int)(mark - path),
			 path, w->n, mark + 2);
	return into_folder(w);
}

/* Go on to the file's next folder, or to the next file. */
static void walk_on(struct ctl_walk *w)
{
	const struct ctl_folders *folders = w->file->folders;

	w->n = 0;
	w->folder++;
	if (folders && folders->name(w->folder))
		return;
	w->folder = 0;
	w->file++;
}

/* Does a path agree with what is wanted, up to the shorter one's end, or to a % in it? No calls:
 * this is asked of every file whenever one is opened. */
static always_inline bool agrees(const char *path, const char *wanted)
{
	while (*path && *path != '%' && *path == *wanted) {
		path++;
		wanted++;
	}
	while (*path && *wanted == '/')
		wanted++;
	return !*path || *path == '%' || !*wanted;
}

static bool is_wanted(const struct ctl_walk *w)
{
	return agrees(w->folder ? w->file->folders->path : w->file->path,
		      w->wanted);
}

bool ctl_walk_next(struct ctl_walk *w)
{
	if (w->file)
		w->n++;
	else
		w->file = __start_ctl_files;
	for (; w->file < __stop_ctl_files; walk_on(w))
		if (is_wanted(w) && walk_expand(w))
			return true;
	return false;
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
