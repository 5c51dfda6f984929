/* SPDX-License-Identifier: MIT */
/*
 * The control-file layer: finds files by path, lists directories, hands a
 * file's records out in any chunk size, and collects a write until its close.
 */
#include <kernel/ctl/ctl_walk.h>
#include <kernel/errno.h>
#include <kernel/lock/lock.h>
#include <kernel/lock/mutex.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>

/* Is `path` that of the folder, with any number of slashes at its end? */
static bool is_path(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	if (strncmp(path, folder, n))
		return false;
	while (path[n] == '/')
		n++;
	return !path[n];
}

bool ctl_is_dir(const char *path)
{
	const struct ctl_folders *folders;
	struct ctl_walk w;

	for_each_registered (folders, ctl_folders)
		if (is_path(path, folders->path))
			return true;

	ctl_walk_start(&w, path);
	while (ctl_walk_next(&w))
		if (ctl_below(w.path, path))
			return true;
	return !strcmp(path, "/");
}

/* The first component of rest, with its slash if it is a directory. */
static void first_component(const char *rest, char *name, size_t size)
{
	const char *slash = strchr(rest, '/');
	size_t n = slash ? (size_t)(slash - rest) + 1 : strlen(rest);

	string_copy(name, rest, min(size, n + 1));
}

/* rest is a path below a directory, or NULL. Its first component becomes the best name so far
 * if it comes behind `last` and before `best`. */
static void try_name(const char *rest, bool is_dir, const char *last,
		     char *best)
{
	char one[CTL_PATH];
	size_t n;

	/* Most are passed over by their first character. */
	if (!rest || (u8)*rest < (u8)*last ||
	    (best[0] && (u8)*rest > (u8)*best))
		return;
	first_component(rest, one, sizeof(one));
	n = strlen(one);
	if (is_dir && one[n - 1] != '/' && n + 1 < sizeof(one))
		string_copy(one + n, "/", 2);
	if (strcmp(one, last) > 0 && (!best[0] || strcmp(one, best) < 0))
		string_copy(best, one, CTL_PATH);
}

int ctl_next(const char *dir, char *name, size_t size)
{
	const struct ctl_folders *folders;
	char best[CTL_PATH] = "";
	const char *rest, *slash;
	struct ctl_walk w;

	ctl_walk_start(&w, dir);
	while (ctl_walk_next(&w)) {
		rest = ctl_below(w.path, dir);
		try_name(rest, false, name, best);
		slash = rest ? strchr(rest, '/') : NULL;
		if (slash)
			ctl_walk_skip(&w, slash + 1 - w.path);
	}
	for_each_registered (folders, ctl_folders)
		try_name(ctl_below(folders->path, dir), true, name, best);
	if (!best[0])
		return -ENOENT;
	string_copy(name, best, size);
	return 0;
}

/* Walks that have ended at a file: a walk looks at all files before it, and a program that opens
 * one asks for it a few times. */
static struct spinlock found_lock = SPINLOCK_INIT("ctl_found");
static struct ctl_walk found_walks[64]; /* under the lock */

static struct ctl_walk *found_place(const char *path)
{
	u32 hash = 0;

	while (*path)
		hash = 31 * hash + (u8)*path++;
	return &found_walks[hash % ARRAY_SIZE(found_walks)];
}

static bool find_again(const char *path, struct ctl_walk *w)
{
	const struct ctl_walk *place = found_place(path);
	irq_state_t state = spin_lock(&found_lock);
	bool found = place->file && !strcmp(place->path, path) &&
		     ctl_walk_holds(place);

	if (found)
		*w = *place;
	spin_unlock(&found_lock, state);
	return found;
}

static void keep_found(const struct ctl_walk *w)
{
	irq_state_t state = spin_lock(&found_lock);

	*found_place(w->path) = *w;
	spin_unlock(&found_lock, state);
}

static int file_find(const char *path, struct ctl_walk *w)
{
	if (find_again(path, w))
		return 0;
	ctl_walk_start(w, path);
	while (ctl_walk_next(w)) {
		if (strcmp(w->path, path))
			continue;
		keep_found(w);
		return 0;
	}
	return ctl_is_dir(path) ? -EISDIR : -ENOENT;
}

static bool can_read(const struct ctl_file *f)
{
	return f->read || f->show;
}

int ctl_mode(const char *path)
{
	struct ctl_walk w;
	int err = file_find(path, &w);

	if (err)
		return err;
	return (can_read(w.file) ? CTL_READ : 0) |
	       (w.file->write ? CTL_WRITE : 0);
}

static bool use_folder(const struct ctl_handle *h, int by)
{
	return !h->folder || h->file->folders->use(h->folder, by);
}

int ctl_open(const char *path, bool write, bool truncate,
	     struct ctl_handle **handle)
{
	struct ctl_handle *h;
	struct ctl_walk w;
	int err = file_find(path, &w);
	bool used;

	if (err)
		return err;
	if (write ? !w.file->write : !can_read(w.file))
		return -EPERM;
	h = kmalloc_zeroed(sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->file = w.file;
	h->index = w.n;
	h->folder = w.folder;
	h->truncate = truncate;
	h->writing = write;
	used = use_folder(h, 1);
	if (!used || !ctl_walk_holds(&w))
		err = -ENOENT;
	else if (w.file->open && !write)
		err = w.file->open(h);
	if (!err) {
		*handle = h;
		return 0;
	}
	if (used)
		use_folder(h, -1);
	kfree(h);
	return err;
}

/* ---- Folders ------------------------------------------------------------------ */

/* The folders that a path would be one of, with its name there, or NULL. */
static const struct ctl_folders *folders_of(const char *path, char *name)
{
	const struct ctl_folders *folders;
	const char *rest;
	size_t n;

	for_each_registered (folders, ctl_folders) {
		rest = ctl_below(path, folders->path);
		if (!rest || !*rest)
			continue;
		string_copy(name, rest, CTL_PATH);
		n = strlen(name);
		while (n && name[n - 1] == '/')
			name[--n] = '\0';
		if (n && !strchr(name, '/'))
			return folders;
	}
	return NULL;
}

/* The number of the folder of that name, or 0. */
static unsigned int folder_find(const struct ctl_folders *folders,
				const char *name)
{
	const char *is;

	for (unsigned int i = 1; (is = folders->name(i)); i++)
		if (!strcmp(is, name))
			return i;
	return 0;
}

static int refuse_path(struct ctl_handle *h)
{
	const struct ctl_folders *folders;
	char paths[100];
	size_t n = 0;

	paths[0] = '\0';
	for_each_registered (folders, ctl_folders)
		n += format_within(paths + n, sizeof(paths) - n, " %s",
				   folders->path);
	return ctl_error(h, -EPERM, "folders are made and removed only in%s",
			 paths);
}

static int change_folder(const char *path, bool make, char *err_text,
			 size_t err_size)
{
	struct ctl_handle *h = kmalloc_zeroed(sizeof(*h));
	const struct ctl_folders *folders;
	char name[CTL_PATH];
	unsigned int i;
	int err;

	if (!h) {
		string_copy(err_text, ctl_error_text(-ENOMEM), err_size);
		return -ENOMEM;
	}
	folders = folders_of(path, name);
	i = folders ? folder_find(folders, name) : 0;
	if (!folders)
		err = refuse_path(h);
	else if (!strcmp(name, ".") || !strcmp(name, ".."))
		err = ctl_error(h, -EINVAL, "%s is no name", name);
	else if (make)
		err = i ? ctl_error(h, -EEXIST, "there is one of that name") :
			  folders->make(h, name);
	else
		err = i ? folders->remove(h, name) :
			  ctl_error(h, -ENOENT, "no such folder");
	string_copy(err_text,
		    !err	? "" :
		    h->error[0] ? h->error :
				  ctl_error_text(err),
		    err_size);
	kfree(h);
	return err;
}

int ctl_mkdir(const char *path, char *err_text, size_t err_size)
{
	return change_folder(path, true, err_text, err_size);
}

int ctl_rmdir(const char *path, char *err_text, size_t err_size)
{
	return change_folder(path, false, err_text, err_size);
}

/* ---- Reading and writing ---------------------------------------------------------- */

/* A record that was cut still ends its line. */
static void end_cut_record(struct seq *s)
{
	if (s->len == CTL_RECORD - 1)
		s->buf[s->len - 1] = '\n';
}

static void lock_file(const struct ctl_handle *h)
{
	if (h->file->lock)
		mutex_lock(h->file->lock);
}

static void unlock_file(const struct ctl_handle *h)
{
	if (h->file->lock)
		mutex_unlock(h->file->lock);
}

static int next_record(struct ctl_handle *h)
{
	if (h->file->read)
		return h->file->read(h, &h->seq);
	if (h->pos++)
		return 0;
	h->file->show(h, &h->seq);
	return 1;
}

ssize_t ctl_read(struct ctl_handle *h, char *buf, size_t n)
{
	int got;

	if (h->writing)
		return -EPERM;
	/* A reader may pass over something and leave its record empty. */
	while (h->seq_at == h->seq.len) {
		h->seq.len = h->seq_at = 0;
		lock_file(h);
		got = next_record(h);
		unlock_file(h);
		if (got <= 0) {
			h->seq.len = 0;
			return got;
		}
		end_cut_record(&h->seq);
	}
	/* One record at most: the next might have to be waited for. */
	n = min(n, h->seq.len - h->seq_at);
	memcpy(buf, h->seq.buf + h->seq_at, n);
	h->seq_at += n;
	return n;
}

/* Room for n bytes more, and a NUL. */
static int make_room(struct ctl_handle *h, size_t n)
{
	size_t need = h->text_len + n + 1;
	char *text;

	if (n > CTL_WRITE_MAX - h->text_len)
		return -E2BIG;
	if (need <= h->text_size)
		return 0;
	need = max(need, 2 * h->text_size);
	text = kmalloc(need);
	if (!text)
		return -ENOMEM;
	memcpy(text, h->text, h->text_len);
	kfree(h->text);
	h->text = text;
	h->text_size = need;
	return 0;
}

int ctl_write(struct ctl_handle *h, const char *buf, size_t n)
{
	if (!h->writing)
		return -EPERM;
	if (!h->failed)
		h->failed = make_room(h, n);
	if (h->failed)
		return h->failed;
	memcpy(h->text + h->text_len, buf, n);
	h->text_len += n;
	return 0;
}

void ctl_abandon(struct ctl_handle *h)
{
	if (h->file->release && !h->writing)
		h->file->release(h);
	use_folder(h, -1);
	kfree(h->text);
	kfree(h);
}

static int carry_out_write(struct ctl_handle *h)
{
	size_t n = h->text_len;
	char none[] = "";

	if (h->failed == -E2BIG)
		return ctl_error(h, -E2BIG,
				 "more than %u bytes; nothing was written",
				 CTL_WRITE_MAX);
	if (h->failed)
		return h->failed;
	if (!n)
		return h->truncate && h->file->empties ?
			       h->file->write(h, none) :
			       0;
	n -= h->text[n - 1] == '\n' && !h->file->binary;
	h->text[n] = '\0';
	return h->file->write(h, h->text);
}

int ctl_close(struct ctl_handle *h, char *err_text, size_t err_size)
{
	int err = 0;

	if (h->writing) {
		lock_file(h);
		err = carry_out_write(h);
		unlock_file(h);
	}
	if (err_text)
		string_copy(err_text,
			    !err	? "" :
			    h->error[0] ? h->error :
					  ctl_error_text(err),
			    err_size);
	ctl_abandon(h);
	return err;
}

static int write_whole(const char *path, const char *text, bool append,
		       bool dry, char *err_text, size_t err_size)
{
	struct ctl_handle *h;
	int err = ctl_open(path, true, !append, &h);

	if (!err && dry && !h->file->checks) {
		ctl_abandon(h);
		err = -EPERM;
	}
	if (err) {
		if (err_text)
			string_copy(err_text, ctl_error_text(err), err_size);
		return err;
	}
	h->dry = dry;
	ctl_write(h, text, strlen(text)); /* ctl_close() repeats its error */
	return ctl_close(h, err_text, err_size);
}

int ctl_echo(const char *path, const char *text, bool append, char *err_text,
	     size_t err_size)
{
	return write_whole(path, text, append, false, err_text, err_size);
}

int ctl_check(const char *path, const char *text, char *err_text,
	      size_t err_size)
{
	return write_whole(path, text, false, true, err_text, err_size);
}
