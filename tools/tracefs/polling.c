/* Waiting for entries with poll(): polling.h. */
#include "polling.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "p9.h"

/* Under `waits_lock`. */
static struct waiting {
	struct fuse_pollhandle *handle; /* of a program that waits, or NULL */
	char *kept;			/* NULL: nothing was read ahead */
	int len, at;	 /* bytes of it, or an error; of these, given away */
	uint64_t offset; /* in the file, behind what was read */
} waits[FIDS];
static pthread_mutex_t waits_lock = PTHREAD_MUTEX_INITIALIZER;
static bool polls; /* the thread runs that looks for entries */
#define POLL_NS 20000000
#define READ_AHEAD 4096

/* With the lock held. */
static bool is_readable(uint32_t fid)
{
	struct waiting *w = &waits[fid];

	if (w->kept)
		return true;
	w->kept = malloc(READ_AHEAD);
	if (!w->kept)
		return true;
	w->at = 0;
	w->len = p9_read(fid, w->kept, READ_AHEAD, w->offset, false);
	if (w->len == -EAGAIN) {
		free(w->kept);
		w->kept = NULL;
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

bool poll_ask(uint32_t fid, struct fuse_pollhandle *handle)
{
	struct waiting *w = &waits[fid];
	pthread_t thread;
	bool readable;

	pthread_mutex_lock(&waits_lock);
	readable = is_readable(fid);
	if (handle) {
		forget_handle(w);
		w->handle = handle;
	}
	if (!polls && !pthread_create(&thread, NULL, notify, NULL)) {
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
