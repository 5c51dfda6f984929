/*
 * poll() on a trace_pipe or trace_pipe_raw. Whether a read would find something is known only by
 * reading. So poll_ask() reads ahead, and what it has read is kept for the next read. A file has
 * the number `fid` in 9P and here.
 */
#ifndef POLLING_H
#define POLLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUSE_USE_VERSION 31
#include <fuse3/fuse.h>

/* A file is open; its name says whether its readers wait. All others can always be read. */
void poll_open(uint32_t fid, const char *name);

/* Can something be read, or an error? If not, `handle` (NULL: none) is told as soon as it can. */
bool poll_ask(uint32_t fid, struct fuse_pollhandle *handle);

/* Is it open as a trace_pipe_raw? */
bool poll_gives_pages(uint32_t fid);

/* A program that has used poll() on this trace_pipe_raw: its reads do not wait any more. It may
 * ask for many pages at once, by splice(), and shall have those that are there. */
bool poll_ends_waiting(uint32_t fid);

/* Take up to size bytes of what is kept, and wait no more. How many; an error of the guest's,
 * negative; -EAGAIN: nothing is kept. */
int poll_take(uint32_t fid, char *buf, size_t size);

/* A read has gone up to this offset: reading ahead begins there. */
void poll_goes_on(uint32_t fid, uint64_t offset);

/* The file is closed. */
void poll_forget(uint32_t fid);

#endif
