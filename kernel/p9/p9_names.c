/* SPDX-License-Identifier: MIT */
/* The messages about names: walks, folders and a path's attributes. p9_internal.h. */
#include <kernel/p9/p9_internal.h>

#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/printk.h>

int p9_mode(const char *path, bool *is_dir)
{
	int mode = ctl_mode(path);

	*is_dir = mode == -EISDIR;
	return *is_dir ? 0 : mode;
}

/* A path's number: FNV-1a (RFC draft-eastlake-fnv). */
static u64 path_number(const char *path)
{
	u64 n = 0xcbf29ce484222325;

	while (*path)
		n = (n ^ (u8)*path++) * 0x100000001b3;
	return n;
}

void p9_put_qid(struct p9_wire *w, const char *path, bool is_dir)
{
	p9_put(w, is_dir ? 0x80 : 0, 1);
	p9_put(w, 0, 4);
	p9_put(w, path_number(path), 8);
}

/* Change path by one name of a walk. */
static int path_step(char *path, const char *name)
{
	size_t n = strlen(path);
	char *slash;

	if (!strcmp(name, "..")) {
		slash = strrchr(path, '/');
		slash[slash == path] = '\0';
		return 0;
	}
	if (!*name || strchr(name, '/') || n + 1 + strlen(name) >= P9_PATH)
		return -ENOENT;
	snprintf(path + n, P9_PATH - n, "%s%s", path[n - 1] == '/' ? "" : "/",
		 name);
	return 0;
}

/*
 * How many of the names exist. If a path exists, every shorter one is a folder. So the longest
 * path is looked up first, and mostly no other is.
 */
static u32 names_there(char paths[][P9_PATH], u32 names, bool *last_is_dir)
{
	while (names && p9_mode(paths[names], last_is_dir) < 0)
		names--;
	return names;
}

/* As many names as there are. With all of them there is the new fid. */
int p9_walk(struct p9_session *s, struct p9_wire *in, struct p9_wire *out)
{
	struct fid *from = p9_find_fid(s, p9_get(in, 4)), *to;
	u32 number = p9_get(in, 4), names = p9_get(in, 2), there, i;
	bool is_dir = false;

	if (!from || from->opened || in->bad || names > P9_NAMES_MAX)
		return -EINVAL;
	string_copy(s->paths[0], from->path, P9_PATH);
	for (i = 0; i < names; i++) {
		char name[P9_PATH];

		string_copy(s->paths[i + 1], s->paths[i], P9_PATH);
		p9_get_text(in, name, sizeof(name));
		if (in->bad)
			return -EINVAL;
		if (path_step(s->paths[i + 1], name))
			break;
	}
	there = names_there(s->paths, i, &is_dir);
	if (names && !there)
		return -ENOENT;
	p9_put(out, there, 2);
	for (i = 1; i <= there; i++)
		p9_put_qid(out, s->paths[i], i < there || is_dir);
	if (there < names)
		return 0;
	to = number == from->number ? from : p9_new_fid(s, number);
	if (!to)
		return -EBUSY;
	string_copy(to->path, s->paths[names], P9_PATH);
	return 0;
}

int p9_getattr(struct p9_session *s, struct p9_wire *in, struct p9_wire *out)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));
	bool is_dir;
	int mode;

	if (!f)
		return -EINVAL;
	mode = p9_mode(f->path, &is_dir);
	if (mode < 0)
		return mode;
	p9_put(out, P9_GETATTR_BASIC, 8);
	p9_put_qid(out, f->path, is_dir);
	p9_put(out,
	       is_dir ? 040755 :
			0100000 | (mode & CTL_READ ? 0444 : 0) |
				(mode & CTL_WRITE ? 0200 : 0),
	       4);
	p9_put(out, 0, 8); /* uid, gid */
	p9_put(out, is_dir ? 2 : 1, 8);
	p9_put(out, 0, 8); /* rdev */
	p9_put(out, 0, 8); /* size */
	p9_put(out, 4096, 8);
	for (unsigned int i = 0; i < 11; i++)
		p9_put(out, 0, 8); /* blocks, four times, gen, version */
	return 0;
}

/* The next name of a folder behind place i: a place is the number of names before it. */
static int next_name(struct fid *f, u64 i)
{
	int err = 0;

	if (i < f->at) {
		f->at = 0;
		f->last[0] = '\0';
	}
	while (!err && f->at <= i) {
		err = ctl_next(f->path, f->last, P9_PATH);
		f->at += !err;
	}
	return err;
}

int p9_readdir(struct p9_session *s, struct p9_wire *in, struct p9_wire *out)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));
	u64 i = p9_get(in, 8);
	u32 count = p9_get(in, 4);
	struct p9_wire size = *out;
	char path[P9_PATH];
	bool is_dir;
	int mode;
	size_t n;

	if (!f || !f->opened || in->bad || i >> 31)
		return -EINVAL;
	mode = p9_mode(f->path, &is_dir);
	if (mode < 0 || !is_dir)
		return mode < 0 ? mode : -ENOTDIR;
	p9_put(out, 0, 4);
	out->size = out->at + min(count, out->size - out->at);
	for (; !next_name(f, i); i++) {
		char name[P9_PATH];

		n = string_copy(name, f->last, sizeof(name));
		is_dir = name[n - 1] == '/';
		name[n - is_dir] = '\0';
		if (out->size - out->at < 13 + 8 + 1 + 2 + n)
			break;
		string_copy(path, f->path, sizeof(path));
		if (path_step(path, name))
			continue;
		p9_put_qid(out, path, is_dir);
		p9_put(out, i + 1, 8);
		p9_put(out, is_dir ? 4 : 8, 1);
		p9_put_text(out, name);
	}
	p9_put(&size, out->at - size.at - 4, 4);
	return 0;
}

int p9_change_folder(struct p9_session *s, struct p9_wire *in,
		     struct p9_wire *out, bool make)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));
	char name[P9_PATH], path[P9_PATH], error[160];
	int err;

	p9_get_text(in, name, sizeof(name));
	if (!f || in->bad || !strcmp(name, ".."))
		return -EINVAL;
	string_copy(path, f->path, sizeof(path));
	err = path_step(path, name);
	if (!err)
		err = make ? ctl_mkdir(path, error, sizeof(error)) :
			     ctl_rmdir(path, error, sizeof(error));
	if (!err && make)
		p9_put_qid(out, path, true);
	return err;
}
