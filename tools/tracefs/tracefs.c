/* SPDX-License-Identifier: MIT */
/*
 * tracefs: mount a guest's control files on the host.
 *
 *   tracefs MEMORY DIR [PID [GLOB]]
 *
 * MEMORY is the file that is the guest's memory (QEMU: memory-backend-file,share=on), DIR an empty
 * folder, PID the process of QEMU. Files whose name matches GLOB are left out. The guest was booted
 * with p9=memory. The program ends, and unmounts, when QEMU does.
 *
 * One thread does everything. It never waits for a reply of the guest: see p9.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "file.h"
#include "folder.h"
#include "mailbox.h"
#include "reads.h"

/* ---- Operations that libfuse asks for ------------------------------------------------------ */

#define SPIN_NS 50000 /* the loop does not sleep for so long behind a request */

static struct file *file_of(const struct fuse_file_info *info)
{
	return (struct file *)(uintptr_t)info->fh;
}

static void do_init(void *arg, struct fuse_conn_info *conn)
{
	(void)arg;
	conn->want |= conn->capable & FUSE_CAP_ATOMIC_O_TRUNC;
	/* splice() asks for no page in advance, for it may have to wait. Signals interrupt it. */
	conn->max_readahead = 0;
	conn->want &= ~FUSE_CAP_ASYNC_READ;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	node_lookup(req, parent, name);
}

static void do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	node_forget(node_of(ino), lookups);
	fuse_reply_none(req);
}

/*
 * stat(). An open file has a number only for SEEK_END, for which the kernel takes the size from
 * here: none is known. A file that is only written has the end 0, for programs that append.
 */
static void do_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *info)
{
	struct node *n = node_of(ino);
	struct stat st = node_stat(n);

	if (info && file_of(info)->is_read) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	if (!info)
		node_raise(n);
	fuse_reply_attr(req, &st, node_stat_s(n));
	if (info)
		node_lower(n);
}

/* Programs set modes and times of files that they have made. Control files have none. */
static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st,
		       int which, struct fuse_file_info *info)
{
	struct node *n = node_of(ino);
	struct stat is = node_stat(n);

	(void)info;
	reads_are_old();
	if (which & FUSE_SET_ATTR_SIZE)
		folder_truncate(req, n, st->st_size);
	else
		fuse_reply_attr(req, &is, node_stat_s(n));
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		     mode_t mode)
{
	reads_are_old();
	folder_make(req, parent, name, mode);
}

static void do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reads_are_old();
	folder_remove(req, parent, name);
}

static void do_opendir(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *info)
{
	folder_open(req, node_of(ino), info);
}

static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t size,
		       off_t offset, struct fuse_file_info *info)
{
	folder_read(req, node_of(ino), size, offset, info);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t ino,
			  struct fuse_file_info *info)
{
	(void)ino;
	folder_release(req, info);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info)
{
	file_open(req, node_of(ino), info);
}

static void do_release(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *info)
{
	(void)ino;
	file_release(req, file_of(info));
}

/*
 * splice() and mmap() read whole pages through the kernel's cache: such a read has no owner. Only
 * a file of pages can give these. For the others splice() has the error that it has on Linux's own
 * files, so that programs which try it go on with read().
 */
static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *info)
{
	(void)ino;
	if (!info->lock_owner && !file_of(info)->is_paged) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	reads_add(req, file_of(info), size, offset, info);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *data,
		     size_t size, off_t offset, struct fuse_file_info *info)
{
	(void)ino, (void)offset;
	file_write(req, file_of(info), data, size);
}

static void do_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info,
		    struct fuse_pollhandle *handle)
{
	(void)ino;
	reads_poll(req, file_of(info), handle);
}

/* Names are the guest's: as in Linux's tracefs, none can be made but folders. */
static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		      mode_t mode, struct fuse_file_info *info)
{
	(void)parent, (void)name, (void)mode, (void)info;
	fuse_reply_err(req, EACCES);
}

static void do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		     mode_t mode, dev_t dev)
{
	(void)parent, (void)name, (void)mode, (void)dev;
	fuse_reply_err(req, EPERM);
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		      fuse_ino_t new_parent, const char *new_name,
		      unsigned int flags)
{
	(void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
	fuse_reply_err(req, EPERM);
}

static void do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
		    const char *name)
{
	(void)ino, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void do_symlink(fuse_req_t req, const char *to, fuse_ino_t parent,
		       const char *name)
{
	(void)to, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static const struct fuse_lowlevel_ops operations = {
	.init = do_init,
	.lookup = do_lookup,
	.forget = do_forget,
	.getattr = do_getattr,
	.setattr = do_setattr,
	.mkdir = do_mkdir,
	.rmdir = do_rmdir,
	.opendir = do_opendir,
	.readdir = do_readdir,
	.releasedir = do_releasedir,
	.open = do_open,
	.release = do_release,
	.read = do_read,
	.write = do_write,
	.poll = do_poll,
	.create = do_create,
	.mknod = do_mknod,
	.unlink = do_unlink,
	.rename = do_rename,
	.link = do_link,
	.symlink = do_symlink,
};

/* ---- The loop ------------------------------------------------------------------------------- */

/* Take one request of this machine's kernel. False: there will be no more. */
static bool take_request(void)
{
	static struct fuse_buf buf;
	int n = fuse_session_receive_buf(node_session, &buf);

	if (n > 0)
		fuse_session_process_buf(node_session, &buf);
	return n > 0 || n == -EINTR || n == -EAGAIN;
}

static uint64_t sooner(uint64_t nap, int64_t look)
{
	return look >= 0 && (uint64_t)look < nap ? (uint64_t)look : nap;
}

/*
 * How long to sleep, in ns, by the time since something has moved. Nothing tells of a reply of the
 * guest. Most come soon, so the loop does not sleep at first, then the longer, the longer a reply
 * takes: a guest without a CPU gets none sooner because this program takes one.
 */
static uint64_t nap(uint64_t quiet)
{
	uint64_t nap = quiet / 4;

	if (!p9_is_waiting())
		nap = 100000000;
	else if (quiet < SPIN_NS)
		nap = 0;
	else if (nap < 20000)
		nap = 20000;
	else if (nap > 5000000)
		nap = 5000000;
	return sooner(sooner(nap, reads_look()), node_raise_lowered());
}

/* Say once why each request fails from now on. */
static void say_broken(void)
{
	static bool said;

	if (said || !mailbox_is_broken())
		return;
	said = true;
	fprintf(stderr, "tracefs: %s: its files give errors from now on\n",
		mailbox_is_broken());
}

static void serve(void)
{
	struct pollfd fds[] = {
		{ .fd = fuse_session_fd(node_session), .events = POLLIN },
		{ .fd = p9_end_fd(), .events = POLLIN },
	};
	uint64_t moved = mailbox_now_ns();
	bool more = true;

	while (more && !fuse_session_exited(node_session) && !fds[1].revents) {
		uint64_t now = mailbox_now_ns(), ns;

		if (p9_step())
			moved = now;
		say_broken();
		ns = nap(now - moved);
		ppoll(fds, 2, &(struct timespec){ .tv_nsec = ns }, NULL);
		if (fds[0].revents) {
			more = take_request();
			moved = mailbox_now_ns();
		}
	}
	/* Programs that wait get their error. */
	p9_give_up();
}

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
	node_left_out = argc == 5 ? argv[4] : NULL;
	if (access("/dev/fuse", R_OK | W_OK))
		die("no /dev/fuse here that may be used: %s", strerror(errno));
	wrong = p9_attach(argv[1], argc > 3 ? atoi(argv[3]) : 0);
	if (wrong)
		die("%s: %s", argv[1], wrong);
	node_session =
		fuse_session_new(&args, &operations, sizeof(operations), NULL);
	if (!node_session || fuse_session_mount(node_session, argv[2]))
		die("cannot mount on %s", argv[2]);
	fuse_set_signal_handlers(node_session);
	printf("tracefs: mounted on %s\n", argv[2]);
	fflush(stdout);
	/* The kernel would add 50 us to each nap. */
	prctl(PR_SET_TIMERSLACK, 1);
	serve();
	fuse_session_unmount(node_session);
	return 0;
}
