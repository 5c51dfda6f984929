/* SPDX-License-Identifier: MIT */
/* The 9P2000.L server: p9.h. */
#include <kernel/p9/p9.h>

#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/p9/p9_internal.h>

/* ---- Fids ----------------------------------------------------------------------- */

struct fid *p9_find_fid(struct p9_session *s, u32 number)
{
	struct fid *f = s->fids[number % FID_LISTS];

	while (f && f->number != number)
		f = f->next;
	return f;
}

struct fid *p9_new_fid(struct p9_session *s, u32 number)
{
	struct fid **list = &s->fids[number % FID_LISTS], *f;

	if (p9_find_fid(s, number) || s->fid_count == FIDS)
		return NULL;
	f = kmalloc_zeroed(sizeof(*f));
	if (!f)
		return NULL;
	f->number = number;
	f->next = *list;
	*list = f;
	s->fid_count++;
	return f;
}

/* End the waiting reads of a fid, or those with a tag. */
static void drop_waiting(struct p9_session *s, const struct fid *f, u32 tag)
{
	struct waiting **at = &s->waiting, *w;

	while ((w = *at)) {
		if (f ? w->fid != f->number : w->tag != tag) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		kfree(w);
	}
}

static void drop_fid(struct p9_session *s, struct fid *f)
{
	struct fid **at = &s->fids[f->number % FID_LISTS];

	drop_waiting(s, f, 0);
	if (f->reader)
		ctl_abandon(f->reader);
	if (f->writer)
		ctl_abandon(f->writer);
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	s->fid_count--;
	kfree(f);
}

/* ---- Messages: each fills the reply, or returns an error --------------------------- */

static int do_version(struct p9_session *s, struct p9_wire *in,
		      struct p9_wire *out)
{
	u32 msize = p9_get(in, 4);
	char version[16];

	p9_get_text(in, version, sizeof(version));
	if (in->bad || msize < 512)
		return -EINVAL;
	p9_reset(s);
	s->msize = min(msize, (u32)P9_MSIZE);
	p9_put(out, s->msize, 4);
	p9_put_text(out, strcmp(version, "9P2000.L") ? "unknown" : version);
	return 0;
}

static int do_attach(struct p9_session *s, struct p9_wire *in,
		     struct p9_wire *out)
{
	struct fid *f = p9_new_fid(s, p9_get(in, 4));

	if (!f)
		return -EBUSY;
	string_copy(f->path, "/", P9_PATH);
	p9_put_qid(out, f->path, true);
	return 0;
}

static int open_reader(struct fid *f)
{
	int err = ctl_open(f->path, false, false, &f->reader);

	f->at = 0;
	if (!err) {
		f->reader->nonblock = true;
		f->reader->little_endian = true; /* as the host is */
	}
	return err == -EPERM ? -EINVAL : err;
}

static int do_open(struct p9_session *s, struct p9_wire *in,
		   struct p9_wire *out)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));
	u32 flags = p9_get(in, 4), access = flags & 3;
	bool is_dir;
	int mode, err = 0;

	if (!f || f->opened || in->bad || access == 3)
		return -EINVAL;
	mode = p9_mode(f->path, &is_dir);
	if (mode < 0)
		return mode;
	if (is_dir && access)
		return -EISDIR;
	/* A read or a write that the file never allows is refused when it comes. */
	if (!is_dir && access != P9_WRONLY && mode & CTL_READ)
		err = open_reader(f);
	if (err)
		return err;
	f->flags = flags;
	f->opened = true;
	p9_put_qid(out, f->path, is_dir);
	p9_put(out, P9_IOUNIT, 4);
	return 0;
}

/* Put the reader where `offset` is. */
static int seek_reader(struct fid *f, u64 offset, u8 *scratch)
{
	ssize_t got = 1;
	int err = 0;

	if (offset < f->at || !f->reader) {
		if (f->reader)
			ctl_abandon(f->reader);
		f->reader = NULL;
		err = open_reader(f);
	}
	while (!err && f->at < offset && got > 0) {
		got = ctl_read(f->reader, (char *)scratch,
			       min(offset - f->at, (u64)P9_IOUNIT));
		if (got > 0)
			f->at += got;
		else
			err = got;
	}
	return err;
}

/* Fill the reply with the bytes that can be read now. -EAGAIN: there are none yet. */
static int read_file(struct fid *f, u64 offset, u32 count, struct p9_wire *out)
{
	u8 *data = out->buf + out->at + 4;
	ssize_t got = 1;
	u32 n = 0;
	int err;

	err = seek_reader(f, offset, data);
	if (err)
		return err;
	f->reader->wants = count & P9_READ_PERCENT ? CTL_PERCENT :
			   count & P9_READ_PAGES   ? CTL_WAITS_AS_SHELL :
						     CTL_FIRST_ENTRY;
	count = min(count % P9_READ_PERCENT, (u32)(out->size - out->at - 4));
	while (n < count && got > 0) {
		got = ctl_read(f->reader, (char *)data + n, count - n);
		if (got <= 0)
			break;
		n += got;
		/* Behind the first page, other full pages do not wait. */
		if (f->reader->wants == CTL_PERCENT)
			f->reader->wants = CTL_WAITS_AS_SHELL;
	}
	if (!n && got < 0)
		return got;
	f->at += n;
	p9_put(out, n, 4);
	out->at += n;
	return 0;
}

static int do_read(struct p9_session *s, struct p9_wire *in, u16 tag,
		   struct p9_wire *out)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));
	u64 offset = p9_get(in, 8);
	u32 count = p9_get(in, 4);
	struct waiting *w, **at = &s->waiting;
	int err;

	if (!f || !f->opened || in->bad || (f->flags & 3) == P9_WRONLY)
		return -EINVAL;
	err = !f->reader && ctl_is_dir(f->path) ?
		      -EISDIR :
		      read_file(f, offset, count, out);
	if (err != -EAGAIN || (f->flags & P9_NONBLOCK))
		return err;
	/* No two wait with one tag, or a client could make as many as memory has room for. */
	for (; *at; at = &(*at)->next)
		if ((*at)->tag == tag)
			return -EINVAL;
	w = kmalloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	/* Where no page is full, splice() waits as poll(). */
	if (count & P9_READ_PAGES)
		count |= P9_READ_PERCENT;
	*w = (struct waiting){ NULL, tag, f->number, count, offset };
	*at = w;
	return -EAGAIN;
}

/* Carry a write out, and go on with another one behind it. */
static int end_write(struct fid *f)
{
	struct ctl_handle *h = f->writer;

	f->writer = NULL;
	f->written = true;
	return ctl_close(h, NULL, 0);
}

static int begin_write(struct fid *f)
{
	int err;

	if (f->writer)
		return 0;
	err = ctl_open(f->path, true, (f->flags & P9_TRUNC) && !f->written,
		       &f->writer);
	return err == -EPERM ? -EINVAL : err;
}

static int do_write(struct p9_session *s, struct p9_wire *in,
		    struct p9_wire *out)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));
	u32 count;
	int err;

	p9_get(in, 8); /* control files have no places */
	count = p9_get(in, 4);
	if (!f || !f->opened || !(f->flags & 3) || in->bad ||
	    count > in->size - in->at)
		return -EINVAL;
	err = count ? begin_write(f) : 0;
	if (!err && count)
		err = ctl_write(f->writer, (const char *)in->buf + in->at,
				count);
	if (f->writer && (err || count < P9_IOUNIT)) {
		int end = end_write(f);

		err = err ? err : end;
	}
	if (!err)
		p9_put(out, count, 4);
	return err;
}

/* A close still carries out a write that filled its last message, or a lone O_TRUNC. */
static int do_clunk(struct p9_session *s, struct p9_wire *in,
		    struct p9_wire *out)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));
	int err = 0;

	(void)out;
	if (!f)
		return -EINVAL;
	if (f->opened && (f->flags & 3) && (f->flags & P9_TRUNC) && !f->written)
		err = begin_write(f);
	if (!err && f->writer)
		err = end_write(f);
	drop_fid(s, f);
	return err;
}

static int do_fsync(struct p9_session *s, struct p9_wire *in,
		    struct p9_wire *out)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));

	(void)out;
	if (!f)
		return -EINVAL;
	return f->writer ? end_write(f) : 0;
}

/* O_TRUNC of a file that is not open: as `> file`. */
static int do_setattr(struct p9_session *s, struct p9_wire *in,
		      struct p9_wire *out)
{
	struct fid *f = p9_find_fid(s, p9_get(in, 4));
	u32 valid = p9_get(in, 4);
	struct ctl_handle *h;
	u64 size;
	int err;

	(void)out;
	p9_get(in, 4);
	p9_get(in, 8);
	size = p9_get(in, 8);
	if (!f || in->bad)
		return -EINVAL;
	if (!(valid & P9_SETATTR_SIZE))
		return 0; /* times, which no control file has */
	if (size)
		return -EINVAL;
	err = ctl_open(f->path, true, true, &h);
	return err ? err : ctl_close(h, NULL, 0);
}

static int do_flush(struct p9_session *s, struct p9_wire *in)
{
	u16 tag = p9_get(in, 2);

	drop_waiting(s, NULL, tag);
	return 0;
}

static int dispatch_request(struct p9_session *s, u8 type, u16 tag,
			    struct p9_wire *in, struct p9_wire *out)
{
	if (!s->msize && type != P9_TVERSION)
		return -EINVAL;
	switch (type) {
	case P9_TVERSION:
		return do_version(s, in, out);
	case P9_TATTACH:
		return do_attach(s, in, out);
	case P9_TWALK:
		return p9_walk(s, in, out);
	case P9_TLOPEN:
		return do_open(s, in, out);
	case P9_TREAD:
		return do_read(s, in, tag, out);
	case P9_TWRITE:
		return do_write(s, in, out);
	case P9_TCLUNK:
		return do_clunk(s, in, out);
	case P9_TFSYNC:
		return do_fsync(s, in, out);
	case P9_TGETATTR:
		return p9_getattr(s, in, out);
	case P9_TSETATTR:
		return do_setattr(s, in, out);
	case P9_TREADDIR:
		return p9_readdir(s, in, out);
	case P9_TMKDIR:
		return p9_change_folder(s, in, out, true);
	case P9_TUNLINKAT:
		return p9_change_folder(s, in, out, false);
	case P9_TFLUSH:
		return do_flush(s, in);
	default:
		return -ENOSYS;
	}
}

/* ---- The session ------------------------------------------------------------------- */

struct p9_session *p9_open(void)
{
	return kmalloc_zeroed(sizeof(struct p9_session));
}

void p9_reset(struct p9_session *s)
{
	for (unsigned int i = 0; i < FID_LISTS; i++)
		while (s->fids[i])
			drop_fid(s, s->fids[i]);
	s->msize = 0;
}

void p9_close(struct p9_session *s)
{
	p9_reset(s);
	kfree(s);
}

/* The header of a reply. Its size is set when it is known. */
static struct p9_wire begin_reply(struct p9_session *s, u8 *reply, u16 tag,
				  u8 type)
{
	struct p9_wire out = { .buf = reply, .size = s->msize ?: 512 };

	p9_put(&out, 0, 4);
	p9_put(&out, type, 1);
	p9_put(&out, tag, 2);
	return out;
}

static u32 end_reply(struct p9_session *s, struct p9_wire *out, u16 tag,
		     int err)
{
	u8 *reply = out->buf;
	struct p9_wire size = { .buf = reply, .size = 4 };

	if (err || out->bad) {
		*out = begin_reply(s, reply, tag, P9_RLERROR);
		p9_put(out, err ? -err : EIO, 4);
	}
	p9_put(&size, out->at, 4);
	return out->at;
}

u32 p9_answer(struct p9_session *s, const u8 *message, u32 size, u8 *reply)
{
	/* Nothing writes through it. */
	struct p9_wire in = { .buf = (u8 *)message, .size = size }, out;
	u8 type;
	u16 tag;
	int err;

	p9_get(&in, 4);
	type = p9_get(&in, 1);
	tag = p9_get(&in, 2);
	out = begin_reply(s, reply, tag, type + 1);
	err = dispatch_request(s, type, tag, &in, &out);
	/* A read that waits. One of a file that does not wait gets its error. */
	for (struct waiting *w = s->waiting; err == -EAGAIN && w; w = w->next)
		if (w->tag == tag)
			return 0;
	return end_reply(s, &out, tag, err);
}

u32 p9_later(struct p9_session *s, u8 *reply)
{
	for (struct waiting **at = &s->waiting, *w; (w = *at); at = &w->next) {
		struct fid *f = p9_find_fid(s, w->fid);
		u16 tag = w->tag;
		struct p9_wire out = begin_reply(s, reply, tag, P9_TREAD + 1);
		int err = read_file(f, w->offset, w->count, &out);

		if (err == -EAGAIN)
			continue;
		*at = w->next;
		kfree(w);
		return end_reply(s, &out, tag, err);
	}
	return 0;
}
