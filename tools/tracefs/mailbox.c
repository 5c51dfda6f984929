/* SPDX-License-Identifier: MIT */
/* The two rings: mailbox.h. */
#include "mailbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "p9.h"

#define PAGE 4096
#define MAGIC "nopl 9P mailbox"
#define RING_MAX (16u << 20)
#define SMALLEST 7 /* bytes of a message */

/* As kernel/p9/p9_mailbox.c has it, little endian, as this host is. */
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
static uint32_t ring_size;  /* as it was checked: a power of two */
static uint32_t epoch;	    /* of this session */
static uint32_t head, tail; /* of requests, of replies: this side's own words */
static const char *broken;
static int guest = -1; /* QEMU's process, a pidfd. -1: not known */

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *word, uint32_t v)
{
	__atomic_store_n(word, v, __ATOMIC_RELEASE);
}

uint64_t mailbox_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

uint32_t mailbox_alive(void)
{
	return load(&box->alive);
}

const char *mailbox_is_broken(void)
{
	return broken;
}

void mailbox_give_up(const char *why)
{
	broken = why;
}

/* Bytes between two positions of a ring, the first of which is the guest's. */
static uint32_t bytes_between(uint32_t from, uint32_t to)
{
	if (to - from <= ring_size)
		return to - from;
	broken = "the guest has written a position outside its ring";
	return ring_size;
}

uint32_t mailbox_room(void)
{
	return ring_size - bytes_between(load(&box->request_tail), head);
}

void mailbox_put(const uint8_t *message, uint32_t size)
{
	uint32_t at = head % ring_size;
	uint32_t first = size < ring_size - at ? size : ring_size - at;

	memcpy(requests + at, message, first);
	memcpy(requests, message + first, size - first);
	head += size;
}

void mailbox_publish(void)
{
	store(&box->request_head, head);
}

static void copy_out(uint8_t *to, uint32_t size)
{
	uint32_t at = tail % ring_size;
	uint32_t first = size < ring_size - at ? size : ring_size - at;

	memcpy(to, replies + at, first);
	memcpy(to + first, replies, size - first);
}

static uint32_t size_of(const uint8_t *m)
{
	return m[0] | m[1] << 8 | m[2] << 16 | (uint32_t)m[3] << 24;
}

/* The guest publishes whole messages. The size is that of the copy: the ring may change. */
uint32_t mailbox_take(uint8_t *message, uint32_t room)
{
	uint32_t there = bytes_between(tail, load(&box->reply_head)), size;

	if (broken || !there)
		return 0;
	if (there >= SMALLEST) {
		copy_out(message, SMALLEST);
		size = size_of(message);
		if (size >= SMALLEST && size <= room && size <= there) {
			copy_out(message, size);
			memcpy(message, &size, 4);
			tail += size;
			store(&box->reply_tail, tail);
			return size;
		}
	}
	broken = "the guest has sent a reply of no possible size";
	return 0;
}

/* ---- Beginning -------------------------------------------------------------------------- */

int p9_end_fd(void)
{
	return guest;
}

bool p9_has_ended(void)
{
	struct pollfd p = { .fd = guest, .events = POLLIN };

	return guest >= 0 && poll(&p, 1, 0) > 0;
}

/* Is that a mailbox, `left` bytes before the memory's end? Fills in this file's variables. */
static bool is_mailbox(void *at, uint64_t left)
{
	box = at;
	if (memcmp(box->magic, MAGIC, sizeof(box->magic)))
		return false;
	ring_size = load(&box->ring_size);
	if (ring_size < P9_MSIZE || ring_size > RING_MAX ||
	    ring_size & (ring_size - 1) || left < PAGE ||
	    left - PAGE < 2ull * ring_size)
		broken = "its mailbox has rings of no possible size";
	requests = (uint8_t *)at + PAGE;
	replies = requests + ring_size;
	return true;
}

static const char *find_mailbox(int fd)
{
	uint64_t until = mailbox_now_ns() + 60000000000;
	char *memory = NULL;
	struct stat st;
	off_t size = 0;

	while (!fstat(fd, &st)) {
		/* QEMU gives the file its size. */
		if (!memory && st.st_size) {
			size = st.st_size;
			memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_SHARED, fd, 0);
		}
		if (memory == MAP_FAILED)
			break;
		for (off_t at = 0; memory && at + PAGE <= size; at += PAGE)
			if (is_mailbox(memory + at, size - at))
				return broken;
		if (mailbox_now_ns() > until || p9_has_ended())
			return "no guest in it that was booted with p9=memory";
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
	return strerror(errno);
}

const char *mailbox_open(const char *path, pid_t pid)
{
	int fd = open(path, O_RDWR);
	const char *wrong;

	if (fd < 0)
		return strerror(errno);
	if (pid) {
		guest = syscall(SYS_pidfd_open, pid, 0);
		if (guest < 0)
			return "QEMU has ended";
	}
	wrong = find_mailbox(fd);
	close(fd);
	if (wrong)
		return wrong;
	epoch = (uint32_t)getpid() << 8 | (time(NULL) & 0xff);
	store(&box->host_epoch, epoch);
	return NULL;
}

bool mailbox_is_ready(void)
{
	if (load(&box->guest_epoch) != epoch)
		return false;
	/* The guest has emptied both rings. */
	head = load(&box->request_head);
	tail = load(&box->reply_tail);
	return true;
}
