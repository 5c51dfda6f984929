/* SPDX-License-Identifier: MIT */
/* A client of 9P2000.L: p9.h. The mailbox of its guest is in mailbox.c. */
#include "p9.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mailbox.h"

#define TAGS 4096
#define HEADER 7 /* size, type, tag */
#define SILENCE_NS                                                             \
	10000000000 /* a guest that does not move for so long is dead */

/* ---- The bytes of messages --------------------------------------------------------- */

static uint8_t request[P9_MSIZE];
static uint32_t request_size;

void p9_begin(uint8_t type)
{
	request_size = 0;
	p9_put(0, 4);
	p9_put(type, 1);
	p9_put(0, 2); /* the tag: send_queued() */
}

static void put_at(uint8_t *at, uint64_t value, unsigned int n)
{
	for (; n; n--, value >>= 8)
		*at++ = value;
}

void p9_put(uint64_t value, unsigned int n)
{
	put_at(request + request_size, value, n);
	request_size += n;
}

void p9_put_bytes(const void *data, size_t n)
{
	memcpy(request + request_size, data, n);
	request_size += n;
}

void p9_put_text(const char *text, size_t n)
{
	p9_put(n, 2);
	p9_put_bytes(text, n);
}

const uint8_t *p9_get_bytes(struct p9_reply *r, uint32_t n)
{
	const uint8_t *bytes = r->buf + r->at;

	r->bad |= n > r->size - r->at;
	if (r->bad)
		return NULL;
	r->at += n;
	return bytes;
}

uint64_t p9_get(struct p9_reply *r, unsigned int n)
{
	const uint8_t *bytes = p9_get_bytes(r, n);
	uint64_t value = 0;

	while (bytes && n--)
		value = value << 8 | bytes[n];
	return value;
}

/* ---- Requests --------------------------------------------------------------------- */

struct p9_call {
	struct p9_call *next; /* in the queue, or of those that are sent */
	p9_taker *taker;
	void *arg;
	int tag; /* -1: it is queued */
	bool flushed;
	uint32_t size;
	uint8_t message[];
};

static struct p9_call *queue, **queue_end = &queue;
static struct p9_call *sent[TAGS];
static unsigned int sent_count, next_tag;
/*
 * Of those that are sent, all but reads: the guest answers them in their order, on which takers
 * rely that share data. And when the guest answered such a request last.
 */
static struct p9_call *prompt, **prompt_end = &prompt;
static uint64_t answered_at;
static bool dead; /* the guest does not answer */
static bool given_up;

struct p9_call *p9_send(p9_taker *taker, void *arg)
{
	struct p9_call *call = malloc(sizeof(*call) + request_size);

	if (!call)
		abort(); /* as libfuse's own requests would fail */
	*call = (struct p9_call){
		.taker = taker, .arg = arg, .tag = -1, .size = request_size
	};
	memcpy(call->message, request, request_size);
	put_at(call->message, request_size, 4);
	*queue_end = call;
	queue_end = &call->next;
	return call;
}

static void take(struct p9_call *call, int err, struct p9_reply *reply)
{
	p9_taker *taker = call->taker;

	call->taker = NULL;
	if (taker)
		taker(call->arg, err, reply);
}

void p9_forget(struct p9_call *call)
{
	call->taker = NULL;
}

static bool is_prompt(const struct p9_call *call)
{
	return call->message[4] != P9_TREAD;
}

static void add_prompt(struct p9_call *call)
{
	if (!prompt)
		answered_at = mailbox_now_ns();
	call->next = NULL;
	*prompt_end = call;
	prompt_end = &call->next;
}

/* The request of this tag has its reply, or never will. */
static void end_call(struct p9_call *call, int err, struct p9_reply *reply)
{
	sent[call->tag] = NULL;
	sent_count--;
	if (is_prompt(call)) {
		prompt = call->next;
		if (!prompt)
			prompt_end = &prompt;
		answered_at = mailbox_now_ns();
	}
	take(call, err, reply);
	free(call);
}

/* The guest has given it up, unless it has answered before. */
static void flushed(void *arg, int err, struct p9_reply *reply)
{
	struct p9_call *call = sent[(uintptr_t)arg];

	(void)reply;
	/* Without an answer the tag stays taken: the guest may still use it. */
	if (call && call->flushed && !err)
		end_call(call, -EINTR, NULL);
}

void p9_flush(struct p9_call *call)
{
	if (call->flushed)
		return;
	call->flushed = true;
	if (call->tag < 0)
		return; /* send_queued() sees it: the guest is asked once */
	p9_begin(P9_TFLUSH);
	p9_put(call->tag, 2);
	p9_send(flushed, (void *)(uintptr_t)call->tag);
}

static struct p9_call *take_queued(void)
{
	struct p9_call *call = queue;

	queue = call->next;
	if (!queue)
		queue_end = &queue;
	return call;
}

/* The fid that a request makes, which stands behind another one in a walk, or that it ends. */
static uint32_t fid_of(const struct p9_call *call)
{
	uint32_t fid;

	memcpy(&fid,
	       call->message + HEADER + (call->message[4] == P9_TWALK ? 4 : 0),
	       sizeof(fid));
	return fid % P9_FIDS;
}

/*
 * Nothing is asked of a dead guest. But it may come back, for it was only stopped, and then it
 * still knows its fids. So a clunk stays in the queue, unless it ends a fid whose walk fails here.
 */
static bool drop_queued(void)
{
	static bool dropped[P9_FIDS];
	struct p9_call **at = &queue, *call;
	bool moved = false;

	while ((call = *at)) {
		uint8_t type = call->message[4];
		bool ends = type == P9_TCLUNK;

		if (type == P9_TFLUSH || (ends && !dropped[fid_of(call)])) {
			at = &call->next;
			continue;
		}
		if (ends || type == P9_TWALK)
			dropped[fid_of(call)] = !ends;
		*at = call->next;
		if (!call->next)
			queue_end = at;
		take(call, -EIO, NULL);
		free(call);
		moved = true;
	}
	return moved;
}

/* Put queued requests into the ring, as long as there are tags and room. */
static bool send_queued(void)
{
	bool moved = false;

	if (dead)
		return drop_queued();
	while (queue && sent_count < TAGS && mailbox_room() >= queue->size) {
		struct p9_call *call = take_queued();

		while (sent[next_tag % TAGS])
			next_tag++;
		call->tag = next_tag++ % TAGS;
		put_at(call->message + 5, call->tag, 2);
		sent[call->tag] = call;
		sent_count++;
		if (is_prompt(call))
			add_prompt(call);
		mailbox_put(call->message, call->size);
		if (call->flushed) {
			call->flushed = false;
			p9_flush(call);
		}
		moved = true;
	}
	mailbox_publish();
	return moved;
}

static int error_of(struct p9_reply *r, uint8_t expected)
{
	uint8_t type = r->buf[4];
	uint64_t err;

	r->at = HEADER;
	if (type == expected)
		return 0;
	err = type == P9_RLERROR ? p9_get(r, 4) : 0;
	return err > 0 && err < 4096 ? -(int)err : -EIO;
}

/* A whole reply goes to the request of its tag. One without is dropped. */
static bool receive_one(void)
{
	static uint8_t message[P9_MSIZE];
	struct p9_reply r = { .buf = message };
	struct p9_call *call;
	uint32_t tag;
	int err;

	r.size = mailbox_take(message, P9_MSIZE);
	if (!r.size)
		return false;
	r.at = 5;
	tag = p9_get(&r, 2);
	call = tag < TAGS ? sent[tag] : NULL;
	if (call && is_prompt(call) && call != prompt) {
		mailbox_give_up("the guest has answered out of order");
	} else if (call) {
		err = error_of(&r, call->message[4] + 1);
		end_call(call, err, err ? NULL : &r);
	}
	return true;
}

/* A guest that goes on, and answers none of the requests that never wait, is as good as dead. */
static bool owes_an_answer(uint64_t now)
{
	return prompt && now - answered_at > SILENCE_NS;
}

/* All that waits for a dead guest fails. Replies that come yet are dropped. */
static void look_whether_dead(void)
{
	static uint64_t moved;
	static uint32_t alive;
	uint32_t is = mailbox_alive();
	uint64_t now = mailbox_now_ns();

	if (is != alive || !moved)
		moved = now;
	alive = is;
	dead = given_up || now - moved > SILENCE_NS || owes_an_answer(now) ||
	       mailbox_is_broken();
	for (struct p9_call *call = dead ? prompt : NULL; call;
	     call = call->next)
		take(call, -EIO, NULL);
	for (unsigned int i = 0; dead && i < TAGS; i++) {
		if (!sent[i] || is_prompt(sent[i]))
			continue;
		/* A guest that comes back shall not answer it any more. */
		p9_flush(sent[i]);
		take(sent[i], -EIO, NULL);
	}
}

bool p9_step(void)
{
	bool moved = false;

	look_whether_dead();
	moved |= send_queued();
	/* A guest that sends without end keeps this program from nothing else. */
	for (unsigned int i = 0; i < TAGS && receive_one(); i++)
		moved = true;
	return send_queued() || moved;
}

void p9_give_up(void)
{
	given_up = true;
	p9_step();
}

bool p9_is_waiting(void)
{
	return sent_count || queue;
}

/* ---- Beginning -------------------------------------------------------------------------- */

#define NO_FID 0xffffffffu
static const char silent[] = "the guest does not answer";
static const char *wrong; /* with the first replies */

static void take_version(void *arg, int err, struct p9_reply *r)
{
	(void)arg;
	if (err || p9_get(r, 4) != P9_MSIZE)
		wrong = "the guest has other messages";
}

static void take_attach(void *arg, int err, struct p9_reply *r)
{
	(void)r;
	if (err && !wrong)
		wrong = "the guest refuses";
	*(bool *)arg = true;
}

static void sleep_ms(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

const char *p9_attach(const char *memory, pid_t pid)
{
	uint64_t until = mailbox_now_ns() + 60000000000;
	bool attached = false;

	wrong = mailbox_open(memory, pid);
	while (!wrong && !mailbox_is_ready()) {
		sleep_ms();
		if (mailbox_now_ns() > until || p9_has_ended())
			wrong = silent;
	}
	if (wrong)
		return wrong;
	p9_begin(P9_TVERSION);
	p9_put(P9_MSIZE, 4);
	p9_put_text("9P2000.L", 8);
	p9_send(take_version, NULL);
	p9_begin(P9_TATTACH);
	p9_put(P9_ROOT, 4);
	p9_put(NO_FID, 4);
	p9_put_text("root", 4);
	p9_put_text("", 0);
	p9_put(0, 4);
	p9_send(take_attach, &attached);
	while (!attached) {
		if (!p9_step())
			sleep_ms();
		if (dead || p9_has_ended() || mailbox_now_ns() > until)
			return mailbox_is_broken() ? mailbox_is_broken() :
						     silent;
	}
	return wrong;
}
