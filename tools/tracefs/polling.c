/* Waiting for entries with poll(): polling.h. */
#include "polling.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fid.h"
#include "p9.h"

/* Under `waits_lock`. */
static struct waiting {
	struct fuse_pollhandle *handle; /* of a program that waits, or NULL */
	char *kept;			/* NULL: nothing was read ahead */
	int len, at;	 /* bytes of it, or an error; of these, given away */
	uint64_t offset; /* in the file, behind what was read */
	enum { ALWAYS_READABLE, ENTRIES, PAGES } kind;
	bool polled;
	uint64_t not_before; /* reading ahead again, in ns: for PAGES */
} waits[FIDS];
static pthread_mutex_t waits_lock = PTHREAD_MUTEX_INITIALIZER;
static bool polls; /* the thread runs that looks for entries */
#define POLL_NS 20000000
#define PAGE 4096
#define READ_AHEAD (P9_IOUNIT / PAGE * PAGE)

/*
 * The guest gives a page as soon as it has one event, and each read makes some. Without a pause a
 * program that records would so get thousands of pages with little in them. There is none behind
 * a page that is full, or that says that events were lost: a page ends before these.
 */
#define PAGE_PAUSE_NS 100000000
#define FEW_BYTES 512 /* a page that ends with so many zeros is not full */
#define LOST_BYTE                                                              \
	11 /* of a page, and its bit; see the guest's events/header_page */
#define LOST_BIT 0x80

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Of the last page that was read. */
static bool more_is_there(const char *pages, int len)
{
	const char *page = pages + len - PAGE;

	if (len < PAGE)
		return false;
	for (int i = PAGE - FEW_BYTES; i < PAGE; i++)
		if (page[i])
			return true;
	return page[LOST_BYTE] & LOST_BIT;
}

/* With the lock held. */
static bool is_readable(uint32_t fid)
{
	struct waiting *w = &waits[fid];

	if (w->kept || w->kind == ALWAYS_READABLE)
		return true;
	if (w->kind == PAGES && now_ns() < w->not_before)
		return false;
	w->kept = malloc(READ_AHEAD);
	if (!w->kept)
		return true;
	w->at = 0;
	w->len = p9_read(fid, w->kept, READ_AHEAD, w->offset, false);
	/* Nothing at all: tracing is off. For Linux, too, that is no end to wait for. */
	if (w->len == -EAGAIN || (w->kind == PAGES && !w->len)) {
		free(w->kept);
		w->kept = NULL;
	} else if (w->kind == PAGES && !more_is_there(w->kept, w->len)) {
		w->not_before = now_ns() + PAGE_PAUSE_NS;
	}
	return w->kept;
}

static void forget_handle(struct waiting *w)
{
	if (w->handle)
		fuse_pollhandle_destroy(w->handle);
	w->handle = NULL;
}

static void *notify(void *arg)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	for (;;) {
		pthread_mutex_lock(&waits_lock);
		for (uint32_t fid = 0; fid < FIDS; fid++)
			if (waits[fid].handle && is_readable(fid)) {
				fuse_notify_poll(waits[fid].handle);
				forget_handle(&waits[fid]);
			}
		pthread_mutex_unlock(&waits_lock);
		nanosleep(&pause, NULL);
	}
	return arg;
}

void poll_open(uint32_t fid, const char *name)
{
	waits[fid].kind = !strcmp(name, "trace_pipe")	  ? ENTRIES :
			  !strcmp(name, "trace_pipe_raw") ? PAGES :
							    ALWAYS_READABLE;
}

bool poll_gives_pages(uint32_t fid)
{
	return waits[fid].kind == PAGES;
}

bool poll_ends_waiting(uint32_t fid)
{
	return waits[fid].polled && waits[fid].kind == PAGES;
}

bool poll_ask(uint32_t fid, struct fuse_pollhandle *handle)
{
	struct waiting *w = &waits[fid];
	pthread_t thread;
	bool readable;

	pthread_mutex_lock(&waits_lock);
	w->polled = true;
	readable = is_readable(fid);
	if (handle && readable) {
		fuse_pollhandle_destroy(handle);
	} else if (handle) {
		forget_handle(w);
		w->handle = handle;
	}
	if (!readable && !polls &&
	    !pthread_create(&thread, NULL, notify, NULL)) {
		pthread_detach(thread);
		polls = true;
	}
	pthread_mutex_unlock(&waits_lock);
	return readable;
}

/* A program that reads does not wait in poll(). So its handle goes, and nothing is read ahead any
 * more: that would be missing in what the guest gives to this read. */
int poll_take(uint32_t fid, char *buf, size_t size)
{
	struct waiting *w = &waits[fid];
	int n = -EAGAIN;

	pthread_mutex_lock(&waits_lock);
	forget_handle(w);
	if (w->kept) {
		n = w->len - w->at;
		if (n > 0) {
			n = (size_t)n < size ? n : (int)size;
			memcpy(buf, w->kept + w->at, n);
			w->at += n;
			w->offset += n;
		}
		if (w->len < 0 || w->at == w->len) {
			free(w->kept);
			w->kept = NULL;
		}
	}
	pthread_mutex_unlock(&waits_lock);
	return n;
}

void poll_goes_on(uint32_t fid, uint64_t offset)
{
	pthread_mutex_lock(&waits_lock);
	waits[fid].offset = offset;
	pthread_mutex_unlock(&waits_lock);
}

void poll_forget(uint32_t fid)
{
	pthread_mutex_lock(&waits_lock);
	forget_handle(&waits[fid]);
	free(waits[fid].kept);
	waits[fid] = (struct waiting){ 0 };
	pthread_mutex_unlock(&waits_lock);
}
