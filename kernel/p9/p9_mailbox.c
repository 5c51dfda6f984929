/* SPDX-License-Identifier: MIT */
/*
 * The way of 9P messages: two rings of bytes in the guest's memory, one for requests and one for
 * replies, which a program on the host maps (QEMU: memory-backend-file,share=on). It needs no
 * device, so it is the same on every port. The kernel parameter p9=memory starts it.
 *
 * The host finds the mailbox by its magic text, at the beginning of a page. Numbers are little
 * endian. Each side writes its own words alone:
 *
 *	host	epoch		another number: another client, all files are closed
 *		request_head	bytes written	} modulo 2^32. A ring's place is
 *		reply_tail	bytes read	} the number modulo P9_RING
 *	guest	epoch		the host's, once the server begins anew for it
 *		request_tail, reply_head
 *		alive		goes on as long as the server does
 *
 * The server asks for messages: often while some come, and every 10 ms while none does. A host
 * that writes nonsense here hurts nothing but its own session.
 */
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/p9/p9.h>
#include <kernel/panic.h>
#include <kernel/param.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>

#define P9_RING 131072 /* more than a message */
#define P9_MAGIC "nopl 9P mailbox"

static struct mailbox {
	char magic[16]; /* once everything else is there */
	u32 ring_size;
	u32 host_epoch, guest_epoch;
	u32 alive;
	u32 request_head, request_tail;
	u32 reply_head, reply_tail;
	u8 request[P9_RING] __attribute__((aligned(PAGE_SIZE)));
	u8 reply[P9_RING];
} mailbox __attribute__((aligned(PAGE_SIZE)));

/* A word of the mailbox, as it stands there or as this CPU has it. */
static u32 little_endian(u32 v)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap32(v) :
							v;
}

/* Acquire and release: they order the rings' contents between two programs. */
static u32 load_word(const u32 *word)
{
	return little_endian(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

static void store_word(u32 *word, u32 v)
{
	__atomic_store_n(word, little_endian(v), __ATOMIC_RELEASE);
}

struct server {
	struct p9_session *session;
	u32 epoch;
	u32 got;     /* bytes of the message that is being received */
	u64 look_at; /* for replies to reads that wait */
	u8 message[P9_MSIZE], out[P9_MSIZE];
};

static u32 message_size(const u8 *m)
{
	return m[0] | m[1] << 8 | m[2] << 16 | (u32)m[3] << 24;
}

/* Move bytes of the request ring into the message, up to `want` of them. */
static void receive_bytes(struct server *s, u32 want)
{
	u32 tail = load_word(&mailbox.request_tail), at = tail % P9_RING;
	u32 n = load_word(&mailbox.request_head) - tail, first;

	n = min(n, want - s->got);
	first = min(n, P9_RING - at);
	memcpy(s->message + s->got, mailbox.request + at, first);
	memcpy(s->message + s->got + first, mailbox.request, n - first);
	s->got += n;
	store_word(&mailbox.request_tail, tail + n);
}

/* A client that begins with another epoch, or one whose messages make no sense. */
static void begin_epoch(struct server *s)
{
	s->epoch = load_word(&mailbox.host_epoch);
	s->got = 0;
	p9_reset(s->session);
	store_word(&mailbox.request_tail, load_word(&mailbox.request_head));
	store_word(&mailbox.reply_head, load_word(&mailbox.reply_tail));
	store_word(&mailbox.guest_epoch, s->epoch);
}

/* Wait for room, as long as this client is there. */
static void send_reply(struct server *s, u32 size)
{
	u32 head = load_word(&mailbox.reply_head), at = head % P9_RING;
	u32 first = min(size, P9_RING - at);

	while (P9_RING - (head - load_word(&mailbox.reply_tail)) < size) {
		if (load_word(&mailbox.host_epoch) != s->epoch)
			return;
		task_sleep(NSEC_PER_MSEC);
	}
	memcpy(mailbox.reply + at, s->out, first);
	memcpy(mailbox.reply, s->out + first, size - first);
	store_word(&mailbox.reply_head, head + size);
}

/* A whole message, if there is one: true. */
static bool serve_one(struct server *s)
{
	u32 size, n;

	if (load_word(&mailbox.host_epoch) != s->epoch)
		begin_epoch(s);
	if (s->got < 4)
		receive_bytes(s, 4);
	if (s->got < 4)
		return false;
	size = message_size(s->message);
	if (size < 7 || size > P9_MSIZE) {
		begin_epoch(s);
		return false;
	}
	receive_bytes(s, size);
	if (s->got < size)
		return false;
	s->got = 0;
	n = p9_answer(s->session, s->message, size, s->out);
	if (n)
		send_reply(s, n);
	return true;
}

/* A round through all reads that wait takes the longer the more there are. So behind one that was
 * in vain comes a pause, and others have most of the CPU. */
static bool serve_waiting(struct server *s)
{
	u64 begin = time_ns(), end;
	u32 n;

	if (begin < s->look_at)
		return false;
	n = p9_later(s->session, s->out);
	end = time_ns();
	if (n)
		send_reply(s, n);
	else
		s->look_at = end + 8 * (end - begin);
	return n;
}

/* How long the server sleeps before it looks again, by the time since the last message. */
static u64 nap_length(u64 idle)
{
	if (idle < 20 * NSEC_PER_MSEC)
		return 50 * NSEC_PER_USEC;
	return idle < NSEC_PER_SEC ? NSEC_PER_MSEC : 10 * NSEC_PER_MSEC;
}

static void serve_mailbox(void *arg)
{
	struct server *s = arg;
	u64 last = 0;

	for (;;) {
		store_word(&mailbox.alive, load_word(&mailbox.alive) + 1);
		if (serve_one(s))
			last = time_ns();
		else if (!serve_waiting(s))
			task_sleep(nap_length(time_ns() - last));
	}
}

static bool wanted;

static int set_p9(const char *value)
{
	if (strcmp(value, "memory"))
		return -EINVAL;
	wanted = true;
	return 0;
}
KERNEL_PARAM(p9, "p9",
	     "memory: a program on the host reads and writes control files",
	     set_p9);

static void p9_start(void)
{
	struct server *s;

	if (!wanted)
		return;
	s = kmalloc_zeroed(sizeof(*s));
	if (s)
		s->session = p9_open();
	if (!s || !s->session ||
	    !task_create("p9", PRIO_NORMAL, ~0u, serve_mailbox, s))
		panic("p9=memory: no memory for the server");
	mailbox.ring_size = little_endian(P9_RING);
	/* Last: the host looks for it. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(mailbox.magic, P9_MAGIC, sizeof(mailbox.magic));
}
/* Behind the tracer's start: the host may open any control file from now on. */
INIT_HOOK(INIT_LATE, p9_start);
