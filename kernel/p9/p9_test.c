/* SPDX-License-Identifier: MIT */
/*
 * Proves of the 9P server: each message does the same as the control files' calls, each error
 * comes back as Linux's number, a read that waits lets others pass, and messages that are cut,
 * random or too many leave nothing open.
 */
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/p9/p9.h>
#include <kernel/p9/p9_wire.h>
#include <kernel/test/ktest.h>
#include <kernel/test/again.h>

/* ---- A file to read and write, and one that waits ------------------------------------ */

static char note[64];
static unsigned int notes_written;
static int may_read; /* records that `slow` has */

static void p9_note_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%s\n", note);
}

static int p9_note_write(struct ctl_handle *h, char *text)
{
	if (!strcmp(text, "bad"))
		return -ERANGE;
	if (h->truncate)
		note[0] = '\0';
	string_copy(note + strlen(note), text, sizeof(note) - strlen(note));
	notes_written++;
	return 0;
}
CTL_FILE(p9_note, .path = "/sys/test9p/note", .show = p9_note_show,
	 .write = p9_note_write, .empties = true);

static int slow_read(struct ctl_handle *h, struct seq *s)
{
	if (!may_read)
		return h->nonblock ? -EAGAIN : -EINTR;
	may_read--;
	seq_printf(s, "one\n");
	return 1;
}
/* The text is longer than a message, and each byte tells its place. */
static int long_read(struct ctl_handle *h, struct seq *s)
{
	if (h->pos == 100)
		return 0;
	for (; s->len < 1000; s->len++)
		s->buf[s->len] = (h->pos * 1000 + s->len) % 251;
	h->pos++;
	return 1;
}
CTL_FILE(p9_long, .path = "/sys/test9p_long", .read = long_read);

CTL_FILE(p9_slow, .path = "/sys/test9p/slow", .read = slow_read);

/* ---- A client ------------------------------------------------------------------------- */

static struct client {
	struct p9_session *s;
	struct p9_wire w;
	u32 size; /* of the reply */
	u8 out[P9_MSIZE], in[P9_MSIZE];
} * client;

static void begin_request(u8 type, u16 tag)
{
	client->w = (struct p9_wire){ .buf = client->out, .size = P9_MSIZE };
	p9_put(&client->w, 0, 4);
	p9_put(&client->w, type, 1);
	p9_put(&client->w, tag, 2);
}

static void add_number(u64 value, unsigned int n)
{
	p9_put(&client->w, value, n);
}

/* The reply's type, or the negative of an error. 0: none yet. */
static int reply_of(u32 size)
{
	struct p9_wire r = { .buf = client->in, .size = size };
	u32 type;

	client->size = size;
	if (!size)
		return 0;
	if (p9_get(&r, 4) != size)
		return 1;
	type = p9_get(&r, 1);
	p9_get(&r, 2);
	return type == P9_RLERROR ? -(int)p9_get(&r, 4) : (int)type;
}

static int send_request(void)
{
	return reply_of(
		p9_answer(client->s, client->out, client->w.at, client->in));
}

static int send_walk(u32 fid, const char *a, const char *b, const char *c)
{
	const char *names[] = { a, b, c };
	unsigned int n = 0;

	while (n < 3 && names[n])
		n++;
	begin_request(P9_TWALK, 1);
	add_number(0, 4);
	add_number(fid, 4);
	add_number(n, 2);
	for (unsigned int i = 0; i < n; i++)
		p9_put_text(&client->w, names[i]);
	return send_request();
}

static int open_fid(u32 fid, u32 flags)
{
	begin_request(P9_TLOPEN, 1);
	add_number(fid, 4);
	add_number(flags, 4);
	return send_request();
}

static int read_fid(u16 tag, u32 fid, u64 offset, u32 count)
{
	begin_request(P9_TREAD, tag);
	add_number(fid, 4);
	add_number(offset, 8);
	add_number(count, 4);
	return send_request();
}

static int write_fid(u32 fid, const char *text, u32 count)
{
	begin_request(P9_TWRITE, 1);
	add_number(fid, 4);
	add_number(0, 8);
	add_number(count, 4);
	memcpy(client->w.buf + client->w.at, text, strlen(text));
	client->w.at += count;
	return send_request();
}

static int on_fid(u8 type, u32 fid)
{
	begin_request(type, 1);
	add_number(fid, 4);
	return send_request();
}

/* Are the data of the read that was answered last this text? */
static bool data_is(const char *text)
{
	u32 n = strlen(text);

	return client->size == 11 + n && client->in[7] == n &&
	       !memcmp(client->in + 11, text, n);
}

static void finish_client(void)
{
	if (client && client->s)
		p9_close(client->s);
	kfree(client);
	client = NULL;
}

static bool try_client(void)
{
	client = kmalloc_zeroed(sizeof(*client));
	if (client)
		client->s = p9_open();
	if (!client || !client->s)
		return false;
	begin_request(P9_TVERSION, 0xffff);
	add_number(P9_MSIZE, 4);
	p9_put_text(&client->w, "9P2000.L");
	if (send_request() != P9_TVERSION + 1)
		return false;
	begin_request(P9_TATTACH, 1);
	add_number(0, 4);
	add_number(~0u, 4);
	return send_request() == P9_TATTACH + 1;
}

static bool start_client(void)
{
	bool started = try_client();

	if (!started)
		finish_client();
	return started || (ktest_with_fault && try_client());
}

KTEST(p9_files, "p9.files")
{
	KASSERT(t, start_client());
	KEXPECT_EQ(t, send_walk(1, "sys", "test9p", "note"), P9_TWALK + 1);
	KEXPECT_EQ(t, client->size, 7 + 2 + 3 * 13);
	KEXPECT_EQ(t, send_walk(1, "sys", NULL, NULL), -EBUSY);
	/* A walk that ends early says how far it came, and makes no fid. */
	KEXPECT_EQ(t, send_walk(2, "sys", "test9p", "nosuch"), P9_TWALK + 1);
	KEXPECT_EQ(t, client->in[7], 2);
	KEXPECT_EQ(t, on_fid(P9_TGETATTR, 2), -EINVAL);
	KEXPECT_EQ(t, send_walk(2, "nosuch", NULL, NULL), -ENOENT);
	KEXPECT_EQ(t, open_fid(1, 2 | P9_TRUNC), P9_TLOPEN + 1);
	notes_written = 0;
	KEXPECT_EQ(t, write_fid(1, "first\n", 6), P9_TWRITE + 1);
	KEXPECT(t, !strcmp(note, "first") && notes_written == 1);
	/* Writes behind it do not clear again. An error is this write's. */
	KEXPECT_EQ(t, write_fid(1, "bad\n", 4), -ERANGE);
	KEXPECT_EQ(t, write_fid(1, " second\n", 8), P9_TWRITE + 1);
	KEXPECT(t, !strcmp(note, "first second"));
	KEXPECT_EQ(t, read_fid(1, 1, 0, 5), P9_TREAD + 1);
	KEXPECT(t, data_is("first"));
	KEXPECT_EQ(t, read_fid(1, 1, 5, 100), P9_TREAD + 1);
	KEXPECT(t, data_is(" second\n"));
	KEXPECT_EQ(t, read_fid(1, 1, 13, 100), P9_TREAD + 1);
	KEXPECT(t, data_is(""));
	/* Back, and forward. */
	KEXPECT_EQ(t, read_fid(1, 1, 6, 3), P9_TREAD + 1);
	KEXPECT(t, data_is("sec"));
	KEXPECT_EQ(t, read_fid(1, 1, 11, 3), P9_TREAD + 1);
	KEXPECT(t, data_is("d\n"));
	KEXPECT_EQ(t, on_fid(P9_TCLUNK, 1), P9_TCLUNK + 1);
	/* O_TRUNC alone clears, and a full message waits for the next one. */
	KEXPECT_EQ(t, send_walk(1, "sys", "test9p", "note"), P9_TWALK + 1);
	KEXPECT_EQ(t, open_fid(1, P9_WRONLY | P9_TRUNC), P9_TLOPEN + 1);
	KEXPECT_EQ(t, read_fid(1, 1, 0, 5), -EINVAL);
	KEXPECT_EQ(t, on_fid(P9_TCLUNK, 1), P9_TCLUNK + 1);
	KEXPECT(t, !strcmp(note, ""));
	KEXPECT_EQ(t, send_walk(1, "sys", "test9p", "note"), P9_TWALK + 1);
	KEXPECT_EQ(t, open_fid(1, P9_WRONLY), P9_TLOPEN + 1);
	notes_written = 0;
	KEXPECT_EQ(t, write_fid(1, "long", P9_IOUNIT), P9_TWRITE + 1);
	KEXPECT_EQ(t, notes_written, 0);
	KEXPECT_EQ(t, on_fid(P9_TFSYNC, 1), P9_TFSYNC + 1);
	KEXPECT_EQ(t, notes_written, 1);
	finish_client();
}

/* Does the last reply have as many bytes as a message of that size has room for, from `at` on? */
static bool is_full_reply(u32 size, u32 at)
{
	const u8 *d = client->in + 11;
	struct p9_wire r = { .buf = client->in, .at = 7, .size = size };
	u32 n = size - 11;

	if (client->size != size || p9_get(&r, 4) != n)
		return false;
	for (u32 i = 0; i < n; i++)
		if (d[i] != (at + i) % 251)
			return false;
	return true;
}

/* However much is asked for, and however long a name is. */
KTEST(p9_bounds, "p9.bounds")
{
	static char name[1000];

	KASSERT(t, start_client());
	KEXPECT_EQ(t, send_walk(1, "sys", "test9p_long", NULL), P9_TWALK + 1);
	KEXPECT_EQ(t, open_fid(1, 0), P9_TLOPEN + 1);
	KEXPECT_EQ(t, read_fid(1, 1, 0, ~0u), P9_TREAD + 1);
	KEXPECT(t, is_full_reply(P9_MSIZE, 0));
	KEXPECT_EQ(t, read_fid(1, 1, 7, P9_MSIZE - 11), P9_TREAD + 1);
	KEXPECT(t, is_full_reply(P9_MSIZE, 7));
	KEXPECT_EQ(t, read_fid(1, 1, 99999, ~0u), P9_TREAD + 1);
	KEXPECT_EQ(t, client->size, 11 + 1);
	begin_request(P9_TVERSION, 0xffff);
	add_number(512, 4);
	p9_put_text(&client->w, "9P2000.L");
	KEXPECT_EQ(t, send_request(), P9_TVERSION + 1);
	/* Which has closed all files. */
	KEXPECT_EQ(t, on_fid(P9_TGETATTR, 1), -EINVAL);
	begin_request(P9_TATTACH, 1);
	add_number(0, 4);
	add_number(~0u, 4);
	KEXPECT_EQ(t, send_request(), P9_TATTACH + 1);
	KEXPECT_EQ(t, send_walk(1, "sys", "test9p_long", NULL), P9_TWALK + 1);
	KEXPECT_EQ(t, open_fid(1, 0), P9_TLOPEN + 1);
	KEXPECT_EQ(t, read_fid(1, 1, 50000, 4000), P9_TREAD + 1);
	KEXPECT(t, is_full_reply(512, 50000));
	memset(name, 'x', sizeof(name) - 1);
	KEXPECT_EQ(t, send_walk(2, name, NULL, NULL), -EINVAL);
	name[127] = '\0';
	KEXPECT_EQ(t, send_walk(2, name, NULL, NULL), -ENOENT);
	KEXPECT_EQ(t, write_fid(1, "x", 1), -EINVAL);
	finish_client();
}

KTEST(p9_waits, "p9.read_that_waits")
{
	KASSERT(t, start_client());
	may_read = 0;
	KEXPECT_EQ(t, send_walk(1, "sys", "test9p", "slow"), P9_TWALK + 1);
	KEXPECT_EQ(t, open_fid(1, 0), P9_TLOPEN + 1);
	KEXPECT_EQ(t, read_fid(7, 1, 0, 2), 0);
	KEXPECT_EQ(t, p9_later(client->s, client->in), 0);
	KEXPECT_EQ(t, read_fid(7, 1, 0, 2), -EINVAL); /* one waits with it */
	/* Others go on meanwhile. */
	KEXPECT_EQ(t, send_walk(2, "sys", "test9p", "note"), P9_TWALK + 1);
	may_read = 1;
	KEXPECT_EQ(t, reply_of(p9_later(client->s, client->in)), P9_TREAD + 1);
	KEXPECT(t, data_is("on") && client->in[5] == 7);
	KEXPECT_EQ(t, reply_of(p9_later(client->s, client->in)), 0);
	KEXPECT_EQ(t, read_fid(7, 1, 2, 9), P9_TREAD + 1);
	KEXPECT(t, data_is("e\n"));
	/* A flushed one is never answered. */
	KEXPECT_EQ(t, read_fid(8, 1, 4, 9), 0);
	begin_request(P9_TFLUSH, 9);
	add_number(8, 2);
	KEXPECT_EQ(t, send_request(), P9_TFLUSH + 1);
	may_read = 1;
	KEXPECT_EQ(t, p9_later(client->s, client->in), 0);
	may_read = 0;
	/* Nor one whose file is closed, and O_NONBLOCK does not wait. */
	KEXPECT_EQ(t, read_fid(8, 1, 4, 9), 0);
	KEXPECT_EQ(t, on_fid(P9_TCLUNK, 1), P9_TCLUNK + 1);
	may_read = 1;
	KEXPECT_EQ(t, p9_later(client->s, client->in), 0);
	may_read = 0;
	KEXPECT_EQ(t, send_walk(1, "sys", "test9p", "slow"), P9_TWALK + 1);
	KEXPECT_EQ(t, open_fid(1, P9_NONBLOCK), P9_TLOPEN + 1);
	KEXPECT_EQ(t, read_fid(8, 1, 0, 9), -EAGAIN);
	finish_client();
}

KTEST(p9_folders, "p9.folders")
{
	unsigned int at = 11, names = 0;

	KASSERT(t, start_client());
	KEXPECT_EQ(t, send_walk(1, "sys", "test9p", NULL), P9_TWALK + 1);
	KEXPECT_EQ(t, on_fid(P9_TGETATTR, 1), P9_TGETATTR + 1);
	KEXPECT_EQ(t, client->in[28] | client->in[29] << 8, 040755);
	KEXPECT_EQ(t, open_fid(1, P9_WRONLY), -EISDIR);
	KEXPECT_EQ(t, open_fid(1, 0), P9_TLOPEN + 1);
	begin_request(P9_TREADDIR, 1);
	add_number(1, 4);
	add_number(0, 8);
	add_number(4000, 4);
	KEXPECT_EQ(t, send_request(), P9_TREADDIR + 1);
	for (; at + 24 <= client->size; names++)
		at += 24 + client->in[at + 22];
	KEXPECT_EQ(t, names, 2);
	KEXPECT_EQ(t, at, client->size);
	KEXPECT(t, !memcmp(client->in + 11 + 24, "note", 4));
	/* From the second name on. */
	begin_request(P9_TREADDIR, 1);
	add_number(1, 4);
	add_number(1, 8);
	add_number(4000, 4);
	KEXPECT_EQ(t, send_request(), P9_TREADDIR + 1);
	KEXPECT(t, client->size == 11 + 24 + 4 &&
			   !memcmp(client->in + 11 + 24, "slow", 4));
	KEXPECT_EQ(t, send_walk(2, NULL, NULL, NULL), P9_TWALK + 1);
	begin_request(P9_TMKDIR, 1);
	add_number(2, 4);
	p9_put_text(&client->w, "nowhere");
	add_number(0, 4);
	add_number(0, 4);
	KEXPECT_EQ(t, send_request(), -EPERM);
	KEXPECT_EQ(t, on_fid(99, 1), -ENOSYS);
	finish_client();
}

/* Each random message gets one reply or none, and nothing stays open, or the test would leak. */
KTEST(p9_random, "p9.random_messages")
{
	static const u8 types[] = {
		P9_TLOPEN, P9_TGETATTR,	 P9_TSETATTR, P9_TREADDIR, P9_TFSYNC,
		P9_TMKDIR, P9_TUNLINKAT, P9_TVERSION, P9_TATTACH,  P9_TFLUSH,
		P9_TWALK,  P9_TREAD,	 P9_TWRITE,   P9_TCLUNK,   200,
	};
	u32 seed = 9, size, got;

	KASSERT(t, start_client());
	for (unsigned int i = 0; i < 4000; i++) {
		begin_request(types[ktest_random(&seed) % sizeof(types)], i);
		size = 7 + ktest_random(&seed) % 60;
		while (client->w.at < size)
			add_number(ktest_random(&seed) % 4 ?
					   ktest_random(&seed) % 3 :
					   ktest_random(&seed),
				   1);
		/* Walks to files that may be opened and written. */
		if (i % 5 == 0)
			send_walk(ktest_random(&seed) % 80, "sys", "test9p",
				  i % 2 ? "note" : "slow");
		got = p9_answer(client->s, client->out, size, client->in);
		KASSERT(t, got <= P9_MSIZE && (!got || reply_of(got) != 1));
	}
	finish_client();
}
