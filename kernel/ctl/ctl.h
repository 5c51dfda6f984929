/*
 * Control files: a path, a reader and a writer, registered in a linker section.
 * The shell's ls, cd, cat, echo, > and >> work on them; there is no other file
 * system. Directories exist because files' paths name them.
 */
#ifndef KERNEL_CTL_H
#define KERNEL_CTL_H

#include <kernel/types.h>

struct ctl_handle;

/* Collects one record's text; longer records than CTL_RECORD are cut. */
#define CTL_RECORD 1024
struct seq {
	size_t len;
	char buf[CTL_RECORD];
};
void seq_printf(struct seq *s, const char *fmt, ...) printf_like(2, 3);

struct ctl_file {
	/* Absolute. One "%u" stands for each CPU index present: per_cpu/cpu%u;
	 * `possible`: those that maxcpus= left out as well. */
	const char *path;
	bool possible;
	/* Optional: state in h->priv, freed by release. 0 or an error. */
	int (*open)(struct ctl_handle *h);
	void (*release)(struct ctl_handle *h);
	/*
	 * Put ONE record (a line, a few) into s and advance h->pos, which
	 * starts at 0; 1 if it did, 0 at the end, or an error. May sleep
	 * (trace_pipe) if it gives up with -EINTR on console_interrupted().
	 * The layer hands records out in any chunk size, so no reader can
	 * lose or repeat a line (H25). NULL: cannot be read.
	 */
	int (*read)(struct ctl_handle *h, struct seq *s);
	/*
	 * All that one open-write-close wrote, NUL-terminated, the last newline
	 * cut, at most CTL_WRITE_MAX; h->truncate if opened with `>`. 0 or an
	 * error, then having changed nothing, with ctl_error() called. NULL:
	 * cannot be written.
	 */
	int (*write)(struct ctl_handle *h, char *text);
};

#define CTL_WRITE_MAX 2048

struct ctl_handle {
	const struct ctl_file *file;
	unsigned int cpu; /* for %u paths */
	bool truncate;
	unsigned long pos;
	void *priv;
	char error[160]; /* what was wrong, what is accepted; not the
				   file's name: whoever prints it says that */
	/* the layer's: */
	struct seq seq; /* the record being handed out, from seq_at on */
	size_t seq_at;
	char *text; /* what was written so far; NULL: reading */
	size_t text_len;
};

#define CTL_FILE(ident, ...)                                                   \
	static const struct ctl_file ctl_file_##ident REGISTER(                \
		ctl_files) = { __VA_ARGS__ }

/* Set the line that explains an error, and return the error. */
int ctl_error(struct ctl_handle *h, int err, const char *fmt, ...)
	printf_like(3, 4);

/* Open by absolute path for reading, or (write) for writing. 0, -ENOENT,
 * -EISDIR, -EPERM (not readable or not writable), -ENOMEM. */
int ctl_open(const char *path, bool write, bool truncate,
	     struct ctl_handle **h);
/* 1 to n bytes, of one record; 0 at the end; or an error. */
ssize_t ctl_read(struct ctl_handle *h, char *buf, size_t n);
/* Collects; the file's write runs at close. -E2BIG past CTL_WRITE_MAX. */
int ctl_write(struct ctl_handle *h, const char *buf, size_t n);
/* Carries out a write; err_text (may be NULL) gets the explaining line. */
int ctl_close(struct ctl_handle *h, char *err_text, size_t err_size);

/* Ends a write that is not to happen, or a read: the file is as before. */
void ctl_abandon(struct ctl_handle *h);

/* Whole write in one call, for kernel code and tests; same errors. */
int ctl_echo(const char *path, const char *text, bool append, char *err_text,
	     size_t err_size);

/*
 * The i-th name directly in a directory, sorted, "name" or "name/" for a
 * directory: 0, -ENOENT past the last or no such directory.
 */
int ctl_list(const char *dir, unsigned int i, char *name, size_t size);
bool ctl_is_dir(const char *path);

/* What may be done with a file: CTL_READ | CTL_WRITE, or -ENOENT, -EISDIR. */
#define CTL_READ 4
#define CTL_WRITE 2
int ctl_mode(const char *path);

/* The words for an error that a file did not explain itself. */
const char *ctl_error_text(int err);

#endif
