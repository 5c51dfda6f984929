/*
 * tracefs: mount a guest's control files on the host.
 *
 *   tracefs MEMORY DIR [PID [GLOB]]
 *
 * MEMORY is the file that is the guest's memory (QEMU: memory-backend-file,share=on), DIR an empty
 * folder, PID the process of QEMU. Files whose name matches GLOB are left out. The guest was booted
 * with p9=memory. The program ends, and unmounts, when QEMU does.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fid.h"
#include "p9.h"
#include "polling.h"

static struct fuse *fuse;
static const char *dir;

/* ---- Files -------------------------------------------------------------------------- */

static void fill_stat(struct stat *st, const uint8_t *reply)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = p9_get(reply, 7 + 8 + 5, 8);
	st->st_mode = p9_get(reply, 28, 4);
	st->st_nlink = p9_get(reply, 40, 8);
	st->st_blksize = 4096;
}

/*
 * A size for trace_pipe_raw, though it has none: since Linux 6.5 splice() of a mounted file gives
 * nothing behind its size. trace-cmd records with splice(). More than a program records, and
 * little enough for one that reads a file by asking for memory of its size.
 */
#define RAW_SIZE (1ull << 30)

static bool is_raw(const char *path, const struct fuse_file_info *info)
{
	const char *name = path ? strrchr(path, '/') : NULL;

	return info ? poll_gives_pages(info->fh) :
		      name && !strcmp(name, "/trace_pipe_raw");
}

/* The fid of what is open, or else one for its path, which give_back() ends. */
static int fid_of(const char *path, const struct fuse_file_info *info,
		  uint32_t *fid)
{
	if (!info)
		return fid_walk(path, strlen(path), fid);
	*fid = info->fh;
	return 0;
}

static void give_back(uint32_t fid, const struct fuse_file_info *info)
{
	if (!info)
		fid_clunk(fid);
}

static int do_getattr(const char *path, struct stat *st,
		      struct fuse_file_info *info)
{
	struct p9_msg m;
	uint32_t fid;
	int err = fid_of(path, info, &fid);

	if (err)
		return err;
	p9_begin(&m, P9_TGETATTR);
	p9_put(&m, fid, 4);
	p9_put(&m, 0x7ff, 8);
	err = p9_call(&m);
	if (!err)
		fill_stat(st, m.buf);
	if (!err && is_raw(path, info))
		st->st_size = RAW_SIZE;
	give_back(fid, info);
	return err;
}

static int open_flags(int flags)
{
	return (flags & O_ACCMODE) | (flags & O_TRUNC ? 0x200 : 0) |
	       (flags & O_APPEND ? 0x400 : 0) |
	       (flags & O_NONBLOCK ? 0x800 : 0);
}

static int open_path(const char *path, int flags, uint64_t *fh)
{
	struct p9_msg m;
	uint32_t fid;
	int err = fid_walk(path, strlen(path), &fid);

	if (err)
		return err;
	p9_begin(&m, P9_TLOPEN);
	p9_put(&m, fid, 4);
	p9_put(&m, open_flags(flags), 4);
	err = p9_call(&m);
	if (err)
		fid_clunk(fid);
	*fh = fid;
	return err;
}

static int do_open(const char *path, struct fuse_file_info *info)
{
	int err = open_path(path, info->flags, &info->fh);

	/* Their sizes are not known before they are read. */
	info->direct_io = 1;
	if (!err)
		poll_open(info->fh, strrchr(path, '/') + 1);
	return err;
}

static int do_opendir(const char *path, struct fuse_file_info *info)
{
	return open_path(path, O_RDONLY, &info->fh);
}

static int do_poll(const char *path, struct fuse_file_info *info,
		   struct fuse_pollhandle *handle, unsigned int *events)
{
	(void)path;
	*events = poll_ask(info->fh, handle) ? POLLIN | POLLOUT : 0;
	return 0;
}

/*
 * As much as is asked for, in messages; a short one is the end, or all that there is now. A
 * program that polls a trace_pipe_raw sees no end, even while tracing is off: splice() would take
 * it for the file's size, and give nothing behind it ever after.
 */
static int do_read(const char *path, char *buf, size_t size, off_t offset,
		   struct fuse_file_info *info)
{
	bool waits = !(info->flags & O_NONBLOCK);
	size_t done = 0;
	int n;

	(void)path;
	if (waits && poll_ends_waiting(info->fh) && !poll_ask(info->fh, NULL))
		return -EAGAIN;
	n = poll_take(info->fh, buf, size);
	if (n != -EAGAIN)
		return n;
	do {
		n = p9_read(info->fh, buf + done, size - done, offset + done,
			    waits);
		if (n < 0)
			return done ? (int)done : n;
		done += n;
	} while (n == P9_IOUNIT && done < size);
	if (!done && poll_ends_waiting(info->fh))
		return -EAGAIN;
	poll_goes_on(info->fh, offset + done);
	return done;
}

/* The guest carries a write out when a message is not full. So the last one never is. */
static int do_write(const char *path, const char *buf, size_t size,
		    off_t offset, struct fuse_file_info *info)
{
	size_t done = 0;
	struct p9_msg m;

	(void)path;
	while (done < size) {
		size_t left = size - done;
		size_t n = left < P9_IOUNIT  ? left :
			   left == P9_IOUNIT ? P9_IOUNIT - 1 :
					       P9_IOUNIT;
		int err;

		p9_begin(&m, P9_TWRITE);
		p9_put(&m, info->fh, 4);
		p9_put(&m, offset + done, 8);
		p9_put(&m, n, 4);
		memcpy(m.buf + m.at, buf + done, n);
		m.at += n;
		err = p9_call(&m);
		if (err)
			return err;
		done += n;
	}
	return done;
}

/* close() waits for this one, and gets its error. */
static int do_flush(const char *path, struct fuse_file_info *info)
{
	struct p9_msg m;

	(void)path;
	if ((info->flags & O_ACCMODE) == O_RDONLY)
		return 0;
	p9_begin(&m, P9_TFSYNC);
	p9_put(&m, info->fh, 4);
	p9_put(&m, 0, 4);
	return p9_call(&m);
}

static int do_release(const char *path, struct fuse_file_info *info)
{
	(void)path;
	poll_forget(info->fh);
	return fid_clunk(info->fh);
}

static int do_truncate(const char *path, off_t size,
		       struct fuse_file_info *info)
{
	struct p9_msg m;
	uint32_t fid;
	int err = fid_of(path, info, &fid);

	if (err)
		return err;
	p9_begin(&m, P9_TSETATTR);
	p9_put(&m, fid, 4);
	p9_put(&m, 8, 4); /* the size */
	p9_put(&m, 0, 4);
	p9_put(&m, 0, 8);
	p9_put(&m, size, 8);
	err = p9_call(&m);
	give_back(fid, info);
	return err;
}

static int do_readdir(const char *path, void *buf, fuse_fill_dir_t fill,
		      off_t offset, struct fuse_file_info *info,
		      enum fuse_readdir_flags flags)
{
	uint64_t next = 0;
	struct p9_msg m;
	uint32_t at, end;
	char name[256];
	int err;

	(void)path, (void)offset, (void)flags;
	fill(buf, ".", NULL, 0, 0);
	fill(buf, "..", NULL, 0, 0);
	do {
		p9_begin(&m, P9_TREADDIR);
		p9_put(&m, info->fh, 4);
		p9_put(&m, next, 8);
		p9_put(&m, P9_IOUNIT, 4);
		err = p9_call(&m);
		end = err ? 0 : 11 + p9_get(m.buf, 7, 4);
		for (at = 11; at + 24 <= end && end <= P9_MSIZE;) {
			uint32_t n = p9_get(m.buf, at + 22, 2);

			next = p9_get(m.buf, at + 13, 8);
			if (n > 255 || at + 24 + n > end)
				break;
			memcpy(name, m.buf + at + 24, n);
			name[n] = '\0';
			if (!fid_is_left_out(name))
				fill(buf, name, NULL, 0, 0);
			at += 24 + n;
		}
	} while (end > 11);
	return err;
}

/* The folder that a path lies in, and its last name. */
static int parent(const char *path, uint32_t *fid, const char **name)
{
	*name = strrchr(path, '/') + 1;
	return fid_walk(path, *name - path, fid);
}

static int do_mkdir(const char *path, mode_t mode)
{
	const char *name;
	struct p9_msg m;
	uint32_t fid;
	int err = parent(path, &fid, &name);

	if (err)
		return err;
	p9_begin(&m, P9_TMKDIR);
	p9_put(&m, fid, 4);
	p9_put_text(&m, name, strlen(name));
	p9_put(&m, mode, 4);
	p9_put(&m, 0, 4);
	err = p9_call(&m);
	fid_clunk(fid);
	return err;
}

static int do_rmdir(const char *path)
{
	const char *name;
	struct p9_msg m;
	uint32_t fid;
	int err = parent(path, &fid, &name);

	if (err)
		return err;
	p9_begin(&m, P9_TUNLINKAT);
	p9_put(&m, fid, 4);
	p9_put_text(&m, name, strlen(name));
	p9_put(&m, 0x200, 4);
	err = p9_call(&m);
	fid_clunk(fid);
	return err;
}

/* Programs set modes and times of what they have made; control files have none. */
static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *info)
{
	(void)path, (void)mode, (void)info;
	return 0;
}

static int do_chown(const char *path, uid_t uid, gid_t gid,
		    struct fuse_file_info *info)
{
	(void)path, (void)uid, (void)gid, (void)info;
	return 0;
}

/*
 * The guest is gone, or a signal has come: the files leave the folder, and this program ends. Two
 * threads may find that out at once. The second one waits here for the end.
 */
static void end(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&once);
	/* fuse_unmount() closes the device under the threads that use it: libfuse says so. */
	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	fuse_unmount(fuse);
	_exit(0);
}

static void nothing(int signal)
{
	(void)signal;
}

static void *do_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	conn->want |= conn->capable & FUSE_CAP_ATOMIC_O_TRUNC;
	/* splice() asks for no page in advance, for it may have to wait; signals interrupt it. */
	conn->max_readahead = 0;
	conn->want &= ~FUSE_CAP_ASYNC_READ;
	config->use_ino = 1;
	config->nullpath_ok = 1;
	config->direct_io = 1;
	/* A program that is interrupted while it reads: p9_call() looks. */
	config->intr = 1;
	config->intr_signal = SIGUSR1;
	/* After the fork into the background, if there is one. */
	p9_start(fuse_interrupted, end);
	return NULL;
}

static const struct fuse_operations operations = {
	.init = do_init,
	.getattr = do_getattr,
	.open = do_open,
	.read = do_read,
	.poll = do_poll,
	.write = do_write,
	.flush = do_flush,
	.release = do_release,
	.truncate = do_truncate,
	.opendir = do_opendir,
	.readdir = do_readdir,
	.releasedir = do_release,
	.mkdir = do_mkdir,
	.rmdir = do_rmdir,
	.chmod = do_chmod,
	.chown = do_chown,
};

/* ---- main ------------------------------------------------------------------------------ */

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "tracefs: ");
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(2);
}

int main(int argc, char **argv)
{
	char *options[] = {
		argv[0], "-o", "fsname=nopl", "-o", "default_permissions", NULL
	};
	struct fuse_args args = FUSE_ARGS_INIT(5, options);
	const char *wrong;

	if (argc < 3 || argc > 5)
		die("usage: tracefs MEMORY DIR [PID [GLOB]]");
	dir = argv[2];
	fid_left_out = argc == 5 ? argv[4] : NULL;
	if (access("/dev/fuse", R_OK | W_OK))
		die("no /dev/fuse here that may be used: %s", strerror(errno));
	signal(SIGUSR1, nothing);
	wrong = p9_attach(argv[1], argc > 3 ? atoi(argv[3]) : 0);
	if (wrong)
		die("%s: %s", argv[1], wrong);
	fuse = fuse_new(&args, &operations, sizeof(operations), NULL);
	if (!fuse || fuse_mount(fuse, dir))
		die("cannot mount on %s", dir);
	fuse_set_signal_handlers(fuse_get_session(fuse));
	printf("tracefs: mounted on %s\n", dir);
	fflush(stdout);
	fuse_loop_mt(fuse, 0);
	end();
}
