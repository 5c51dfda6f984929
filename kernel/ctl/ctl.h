/* SPDX-License-Identifier: MIT */
/*
 * Control files. Each is a path, a reader and a writer, registered in a linker
 * section. The shell's ls, cd, cat, echo, > and >> work on them. There is no other
 * file system. A directory exists because the path of a file names it.
 */
#ifndef KERNEL_CTL_H
#define KERNEL_CTL_H

#include <kernel/ctl/ctl_text.h>
#include <kernel/types.h>

struct ctl_handle;
struct mutex;

/*
 * Folders that users make with mkdir, all in one folder. Some files of another folder stand in
 * each of them again. A folder is known by its number, from 1 on.
 */
struct ctl_folders {
	const char *path; /* the folder that they are in */
	const char *root; /* the folder whose files they have */
	/* The name of folder i: "" if there is none of that number. NULL: nor of any above. */
	const char *(*name)(unsigned int i);
	/* Make a folder, or remove one. 0, or an error explained by ctl_error(). */
	int (*make)(struct ctl_handle *h, const char *name);
	int (*remove)(struct ctl_handle *h, const char *name);
	/* A file in folder i has been opened, or closed. False: the folder is gone. */
	bool (*use)(unsigned int i, int by);
};
#define CTL_FOLDERS(ident, ...)                                                \
	const struct ctl_folders ident REGISTER(ctl_folders) = { __VA_ARGS__ }

struct ctl_file {
	/* Absolute. A "%u" in it makes one file for each CPU: per_cpu/cpu%u.
	 * possible: also for CPUs that maxcpus= has left out. A "%s" makes one for
	 * each name that name(0), name(1) ... return, until one is NULL. */
	const char *path;
	bool possible;
	const char *(*name)(unsigned int i);
	/* Optional: it also stands in each of these folders. h->folder says in which. */
	const struct ctl_folders *folders;
	/* Optional. It is held while show(), read() and write() run. */
	struct mutex *lock;
	/* Optional, for readers. open() may leave state in h->priv, and release() frees it.
	 * 0 or an error. */
	int (*open)(struct ctl_handle *h);
	void (*release)(struct ctl_handle *h);
	/*
	 * Put ONE record (a line or a few) into s, and advance h->pos, which
	 * begins with 0. 1: it did. 0: there are no more. Else an error. A
	 * read that sleeps (trace_pipe) gives up with -EINTR when
	 * console_interrupted(). The layer hands a record out in pieces of any
	 * size, so no reader can lose or repeat a line (H25). With neither this
	 * nor show(), the file cannot be read.
	 */
	int (*read)(struct ctl_handle *h, struct seq *s);
	/* Instead of read(), for a file of one record: put it into s. */
	void (*show)(struct ctl_handle *h, struct seq *s);
	/*
	 * text is all that was written between open and close, at most
	 * CTL_WRITE_MAX bytes, without the last newline, of a `binary` file all
	 * h->text_len bytes as they are. h->truncate says that the file was opened
	 * with `>`. 0, or an error, explained by ctl_error(), and then nothing has
	 * changed. NULL: the file cannot be written. If nothing was written, it is
	 * not called, but with `>` for a file that `empties`: then text is empty.
	 */
	int (*write)(struct ctl_handle *h, char *text);
	bool empties;
	bool binary;
	/* Not for the layer: by it a file knows itself among files of the same functions. */
	unsigned long data;
	/* write() heeds h->dry: ctl_check(). */
	bool checks;
	/* The text that it is written when all is put back as it was at boot, or NULL. */
	const char *at_boot;
};

#define CTL_WRITE_MAX (1u << 20)

struct ctl_handle {
	const struct ctl_file *file;
	/* Which of the files of its path: the CPU's number for %u, the name's for %s. */
	unsigned int index;
	unsigned int folder; /* of file->folders. 0: it is the file at `path` */
	bool truncate;
	bool dry; /* write() returns its errors, and changes nothing but text */
	size_t text_len; /* bytes written so far */
	bool nonblock; /* a read that would have to wait returns -EAGAIN instead */
	/* For trace_pipe_raw: how much a read waits for (tracer/show/raw.c). */
	enum { CTL_WAITS_AS_SHELL, CTL_FIRST_ENTRY, CTL_PERCENT } wants;
	bool little_endian; /* the reader of binary pages is */
	unsigned long pos;
	void *priv;
	/* The mistake and the accepted values. The printer adds the file's name. */
	char error[160];
	/* For ctl.c alone: */
	struct seq seq; /* the record that is handed out, from seq_at on */
	size_t seq_at;
	bool writing;
	char *text; /* the text written so far, with room for text_size */
	size_t text_size;
	int failed; /* of ctl_write(): ctl_close() repeats it */
};

#define CTL_FILE(ident, ...)                                                   \
	static const struct ctl_file ctl_file_##ident REGISTER(                \
		ctl_files) = { __VA_ARGS__ }
REGISTRY(struct ctl_file, ctl_files);

/* Open a file by its absolute path, for writing if `write`, else for reading. 0.
 * -ENOENT, -EISDIR, -EPERM: it cannot be read, or written, -ENOMEM. */
int ctl_open(const char *path, bool write, bool truncate,
	     struct ctl_handle **h);
/* Reads from one record. The number of bytes, 1 to n. 0: the end, or an error. */
ssize_t ctl_read(struct ctl_handle *h, char *buf, size_t n);
/* Collects text for ctl_close(). 0. -E2BIG beyond CTL_WRITE_MAX bytes, -ENOMEM. */
int ctl_write(struct ctl_handle *h, const char *buf, size_t n);
/* Close, which carries a write out. After an error err_text, if it is not NULL, has
 * the line that explains it. */
int ctl_close(struct ctl_handle *h, char *err_text, size_t err_size);

/* Close, and change nothing: after a read, or instead of a write. */
void ctl_abandon(struct ctl_handle *h);

/* Open, write and close in one call. Errors as there. For kernel code and tests. */
int ctl_echo(const char *path, const char *text, bool append, char *err_text,
	     size_t err_size);

/* Would ctl_echo() accept the text? Changes nothing. Errors as there. -EPERM: nor does the file
 * check. */
int ctl_check(const char *path, const char *text, char *err_text,
	      size_t err_size);

/* Replace name by the one behind it in a directory, sorted. "" is before the first. A directory's
 * own ends with "/". 0. -ENOENT: there is none, or no such directory. */
int ctl_next(const char *dir, char *name, size_t size);
bool ctl_is_dir(const char *path);

/* Make a folder, or remove one, where that is possible. 0. -EPERM: not there. -EINVAL: . and ..
 * are no names. -EEXIST, -ENOENT, or an error of its struct ctl_folders. err_text has the line
 * that explains it. */
int ctl_mkdir(const char *path, char *err_text, size_t err_size);
int ctl_rmdir(const char *path, char *err_text, size_t err_size);

/* The uses that a file allows: CTL_READ | CTL_WRITE, or -ENOENT, -EISDIR. */
#define CTL_READ 4
#define CTL_WRITE 2
int ctl_mode(const char *path);

#endif
