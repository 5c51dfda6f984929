/* A client of 9P2000.L: p9.h. */
#include "p9.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define TAGS 64
#define NO_FID 0xffffffffu
#define SILENCE_S 10 /* a guest that does not move for so long is dead */

/* As kernel/p9/p9_mailbox.c has it; little endian, as this host is. */
struct mailbox {
	char magic[16];
	uint32_t ring_size;
	uint32_t host_epoch, guest_epoch;
	uint32_t alive;
	uint32_t request_head, request_tail;
	uint32_t reply_head, reply_tail;
};

static struct mailbox *box;
static uint8_t *requests, *replies;
static int guest = -1; /* QEMU's process, a pidfd; -1: not known */
static void (*guest_ended)(void);
static int (*interrupted)(void);

/* A request that waits for its reply. All under `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot {
	bool used, done;
	uint8_t *reply; /* room for P9_MSIZE bytes; NULL: it is not waited for */
	uint32_t size;
	pthread_cond_t wake;
} slots[TAGS];
static pthread_cond_t slot_free = PTHREAD_COND_INITIALIZER;
static bool dead; /* the guest does not answer; atomic */

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *word, uint32_t v)
{
	__atomic_store_n(word, v, __ATOMIC_RELEASE);
}

/* Has QEMU ended? */
static bool ended(void)
{
	struct pollfd p = { .fd = guest, .events = POLLIN };

	return guest >= 0 && poll(&p, 1, 0) > 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- Messages ------------------------------------------------------------------- */

void p9_put(struct p9_msg *m, uint64_t value, unsigned int n)
{
	while (n--) {
		m->buf[m->at++] = value;
		value >>= 8;
	}
}

void p9_put_text(struct p9_msg *m, const char *text, size_t n)
{
	p9_put(m, n, 2);
	memcpy(m->buf + m->at, text, n);
	m->at += n;
}

uint64_t p9_get(const uint8_t *buf, uint32_t at, unsigned int n)
{
	uint64_t value = 0;

	while (n--)
		value = value << 8 | buf[at + n];
	return value;
}

void p9_begin(struct p9_msg *m, uint8_t type)
{
	m->at = 0;
	p9_put(m, 0, 4);
	p9_put(m, type, 1);
	p9_put(m, 0, 2); /* the tag: p9_call() */
}

static bool is_dead(void)
{
	return __atomic_load_n(&dead, __ATOMIC_RELAXED);
}

/* Copy a message into the ring. Under `lock`, so that messages are whole. */
static int send_message(struct p9_msg *m, uint16_t tag)
{
	uint32_t head = load(&box->request_head), size = m->at;

	m->at = 0;
	p9_put(m, size, 4);
	m->at = 5;
	p9_put(m, tag, 2);
	m->at = size;
	while (box->ring_size - (head - load(&box->request_tail)) < size) {
		if (is_dead())
			return -EIO;
		pthread_mutex_unlock(&lock);
		usleep(200);
		pthread_mutex_lock(&lock);
		head = load(&box->request_head);
	}
	for (uint32_t i = 0; i < size; i++)
		requests[head++ % box->ring_size] = m->buf[i];
	store(&box->request_head, head);
	return 0;
}

/* Wait at most 50 ms: the thread then sees whether the guest has died. */
static void wait_a_bit(pthread_cond_t *for_what)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 50000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_cond_timedwait(for_what, &lock, &t);
}

/* A tag, or -EIO. */
static int take_slot(void)
{
	while (!is_dead()) {
		for (int i = 0; i < TAGS; i++)
			if (!slots[i].used) {
				slots[i].used = true;
				slots[i].done = false;
				return i;
			}
		wait_a_bit(&slot_free);
	}
	return -EIO;
}

/*
 * A tag is free when its reply has come, or never will. The reply of a guest that was silent for
 * long may come yet, so that tag stays taken.
 */
static void leave(struct slot *s, bool is_free)
{
	s->reply = NULL;
	s->used = !is_free;
	pthread_cond_broadcast(&slot_free);
}

/* Send m, whose tag has been taken; without success the tag is given back. */
static int send_tagged(struct p9_msg *m, int tag)
{
	int err;

	slots[tag].reply = m->buf;
	err = send_message(m, tag);
	if (err)
		leave(&slots[tag], true);
	return err;
}

/* Make the guest give the request of that tag up. True: it has, or has answered it before. */
static bool flush(int tag)
{
	struct p9_msg m;
	int other = take_slot();

	if (other < 0)
		return false;
	p9_begin(&m, P9_TFLUSH);
	p9_put(&m, tag, 2);
	if (send_tagged(&m, other))
		return false;
	while (!slots[other].done && !is_dead())
		wait_a_bit(&slots[other].wake);
	leave(&slots[other], slots[other].done);
	return slots[other].done;
}

static int call(struct p9_msg *m, bool waits)
{
	bool flushed = false;
	struct slot *s;
	int tag, err;

	pthread_mutex_lock(&lock);
	tag = take_slot();
	err = tag < 0 ? tag : send_tagged(m, tag);
	if (err < 0) {
		pthread_mutex_unlock(&lock);
		return err;
	}
	s = &slots[tag];
	while (!s->done && !flushed && !is_dead())
		if (!waits || interrupted())
			flushed = flush(tag);
		else
			wait_a_bit(&s->wake);
	if (!s->done)
		err = !flushed ? -EIO : waits ? -EINTR : -EAGAIN;
	else if (s->size >= 11 && m->buf[4] == P9_RLERROR)
		err = -(int)p9_get(m->buf, 7, 4);
	leave(s, s->done || flushed);
	pthread_mutex_unlock(&lock);
	return err;
}

int p9_call(struct p9_msg *m)
{
	return call(m, true);
}

int p9_try(struct p9_msg *m)
{
	return call(m, false);
}

/* ---- The thread that receives ------------------------------------------------------ */

static void receive_bytes(uint8_t *to, uint32_t n)
{
	uint32_t tail = load(&box->reply_tail);

	for (uint32_t i = 0; i < n; i++)
		to[i] = replies[tail++ % box->ring_size];
	store(&box->reply_tail, tail);
}

/* A whole reply goes to the request of its tag; one without is dropped. */
static bool receive_one(void)
{
	static uint8_t message[P9_MSIZE];
	uint32_t there = load(&box->reply_head) - load(&box->reply_tail), size;
	struct slot *s;
	uint16_t tag;

	if (there < 7)
		return false;
	/* The guest publishes whole messages. */
	receive_bytes(message, 4);
	size = p9_get(message, 0, 4);
	if (size < 7 || size > P9_MSIZE || size > there) {
		store(&box->reply_tail, load(&box->reply_head));
		return false;
	}
	receive_bytes(message + 4, size - 4);
	tag = p9_get(message, 5, 2);
	pthread_mutex_lock(&lock);
	s = tag < TAGS ? &slots[tag] : NULL;
	if (s && s->used && !s->reply) {
		s->used = false;
		pthread_cond_broadcast(&slot_free);
	} else if (s && s->used && !s->done) {
		memcpy(s->reply, message, size);
		s->size = size;
		s->done = true;
		pthread_cond_broadcast(&s->wake);
	}
	pthread_mutex_unlock(&lock);
	return true;
}

static void wake_all(void)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < TAGS; i++)
		pthread_cond_broadcast(&slots[i].wake);
	pthread_mutex_unlock(&lock);
}

static void say_dead(bool now_dead)
{
	if (__atomic_exchange_n(&dead, now_dead, __ATOMIC_RELAXED) != now_dead)
		wake_all();
}

static void *receiver(void *arg)
{
	double moved = now(), last = now(), looked = 0;
	uint32_t alive = load(&box->alive);

	(void)arg;
	for (;;) {
		double t = now();

		if (receive_one()) {
			last = t;
			continue;
		}
		if (load(&box->alive) != alive) {
			alive = load(&box->alive);
			moved = t;
		}
		say_dead(t - moved > SILENCE_S);
		if (t - looked > 0.1) {
			looked = t;
			if (ended()) {
				say_dead(true);
				guest_ended();
				return NULL;
			}
		}
		/* Nothing tells of a reply, so look often while some are expected. */
		usleep(t - last < 0.02 ? 20 : t - last < 1 ? 500 : 5000);
	}
	return NULL;
}

/* ---- Beginning -------------------------------------------------------------------------- */

/* Set `box`; or what is wrong. */
static const char *open_memory(const char *path)
{
	int fd = open(path, O_RDWR);
	double until = now() + 60;
	char *memory = NULL;
	struct stat st;

	while (fd >= 0 && !fstat(fd, &st)) {
		/* QEMU gives the file its size. */
		if (!memory && st.st_size)
			memory = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE,
				      MAP_SHARED, fd, 0);
		if (memory == MAP_FAILED)
			break;
		for (off_t at = 0; memory && at + PAGE <= st.st_size;
		     at += PAGE)
			if (!memcmp(memory + at, "nopl 9P mailbox", 16)) {
				box = (struct mailbox *)(memory + at);
				requests = (uint8_t *)box + PAGE;
				replies = requests + load(&box->ring_size);
				return NULL;
			}
		if (now() > until || ended())
			return "no guest in it that was booted with p9=memory";
		usleep(20000);
	}
	return strerror(errno);
}

static const char silent[] = "the guest does not answer";

/* Before there is a thread that receives. */
static bool first_reply(double until)
{
	while (!receive_one()) {
		if (now() > until || ended())
			return false;
		usleep(200);
	}
	return true;
}

/* Another epoch, whose beginning the guest confirms, and its first two messages. */
static const char *attach(void)
{
	uint32_t epoch = (uint32_t)getpid() << 8 | (time(NULL) & 0xff);
	double until = now() + 60;
	static struct p9_msg m;

	store(&box->host_epoch, epoch);
	while (load(&box->guest_epoch) != epoch) {
		if (now() > until || ended())
			return silent;
		usleep(1000);
	}
	p9_begin(&m, P9_TVERSION);
	p9_put(&m, P9_MSIZE, 4);
	p9_put_text(&m, "9P2000.L", 8);
	slots[0].reply = m.buf;
	slots[0].used = true;
	send_message(&m, 0);
	if (!first_reply(until))
		return silent;
	p9_begin(&m, P9_TATTACH);
	p9_put(&m, P9_ROOT, 4);
	p9_put(&m, NO_FID, 4);
	p9_put_text(&m, "root", 4);
	p9_put_text(&m, "", 0);
	p9_put(&m, 0, 4);
	slots[0].done = false;
	send_message(&m, 0);
	if (!first_reply(until))
		return silent;
	if (m.buf[4] == P9_RLERROR)
		return "the guest refuses";
	slots[0].used = false;
	return NULL;
}

const char *p9_attach(const char *memory, pid_t pid)
{
	const char *wrong;

	if (pid) {
		guest = syscall(SYS_pidfd_open, pid, 0);
		if (guest < 0)
			return "QEMU has ended";
	}
	for (int i = 0; i < TAGS; i++)
		pthread_cond_init(&slots[i].wake, NULL);
	wrong = open_memory(memory);
	return wrong ? wrong : attach();
}

void p9_start(int (*is_interrupted)(void), void (*ended)(void))
{
	pthread_t thread;

	interrupted = is_interrupted;
	guest_ended = ended;
	pthread_create(&thread, NULL, receiver, NULL);
	pthread_detach(thread);
}

int p9_read(uint32_t fid, char *buf, size_t size, uint64_t offset, bool waits)
{
	struct p9_msg m;
	uint32_t n;
	int err;

	p9_begin(&m, P9_TREAD);
	p9_put(&m, fid, 4);
	p9_put(&m, offset, 8);
	p9_put(&m, size < P9_IOUNIT ? size : P9_IOUNIT, 4);
	err = waits ? p9_call(&m) : p9_try(&m);
	if (err)
		return err;
	n = p9_get(m.buf, 7, 4);
	if (n > size || n > P9_MSIZE - 11)
		return -EIO;
	memcpy(buf, m.buf + 11, n);
	return n;
}
