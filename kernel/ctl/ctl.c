/*
 * The control-file layer: finds files by path, lists directories, hands a
 * file's records out in any chunk size, and collects a write until its close.
 */
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>

#define CTL_PATH 128

REGISTRY(struct ctl_file, ctl_files);

/* A walk over all paths, those with %u once for each CPU, those with %s for each name. */
struct ctl_walk {
	const struct ctl_file *file;
	unsigned int n; /* the CPU, or the name's number */
	char path[CTL_PATH];
};

static void walk_start(struct ctl_walk *w)
{
	w->file = NULL;
	w->n = 0;
}

static unsigned int cpus_of(const struct ctl_file *file)
{
	return file->possible ? boot_info.nr_cpus : nr_cpus;
}

/* Make the n-th path of the file; false: it has fewer. */
static bool walk_expand(struct ctl_walk *w)
{
	const char *path = w->file->path, *name = "";
	const char *mark = strstr(path, w->file->name ? "%s" : "%u");

	if (!mark) {
		strlcpy(w->path, path, CTL_PATH);
		return w->n == 0;
	}
	if (w->file->name)
		name = w->file->name(w->n);
	if (!name || (!w->file->name && w->n >= cpus_of(w->file)))
		return false;
	if (w->file->name)
		snprintf(w->path, CTL_PATH, "%.*s%s%s", (int)(mark - path),
			 path, name, mark + 2);
	else
		snprintf(w->path, CTL_PATH, "%.*s%u%s", (int)(mark - path),
			 path, w->n, mark + 2);
	return true;
}

static bool walk_next(struct ctl_walk *w)
{
	if (w->file) {
		w->n++;
		if (walk_expand(w))
			return true;
		w->file++;
	} else {
		w->file = __start_ctl_files;
	}
	for (w->n = 0; w->file < __stop_ctl_files; w->file++)
		if (walk_expand(w))
			return true;
	return false;
}

/* The part of a path below dir, or NULL if it is not below. */
static const char *below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n && dir[n - 1] == '/')
		n--;
	if (strncmp(path, dir, n) || path[n] != '/')
		return NULL;
	return path + n + 1;
}

bool ctl_is_dir(const char *path)
{
	struct ctl_walk w;

	walk_start(&w);
	while (walk_next(&w))
		if (below(w.path, path))
			return true;
	return !strcmp(path, "/");
}

/* The first component of rest, with its slash if it is a directory. */
static void first_component(const char *rest, char *name, size_t size)
{
	const char *slash = strchr(rest, '/');
	size_t n = slash ? (size_t)(slash - rest) + 1 : strlen(rest);

	strlcpy(name, rest, min(size, n + 1));
}

int ctl_list(const char *dir, unsigned int i, char *name, size_t size)
{
	char last[CTL_PATH] = "", best[CTL_PATH], one[CTL_PATH];
	struct ctl_walk w;
	const char *rest;

	/* Each turn finds the least name that is greater than the last one. */
	for (unsigned int turn = 0; turn <= i; turn++) {
		best[0] = '\0';
		walk_start(&w);
		while (walk_next(&w)) {
			rest = below(w.path, dir);
			if (!rest)
				continue;
			first_component(rest, one, sizeof(one));
			if (strcmp(one, last) > 0 &&
			    (!best[0] || strcmp(one, best) < 0))
				strlcpy(best, one, sizeof(best));
		}
		if (!best[0])
			return -ENOENT;
		strlcpy(last, best, sizeof(last));
	}
	strlcpy(name, best, size);
	return 0;
}

static int file_find(const char *path, struct ctl_walk *w)
{
	walk_start(w);
	while (walk_next(w))
		if (!strcmp(w->path, path))
			return 0;
	return ctl_is_dir(path) ? -EISDIR : -ENOENT;
}

int ctl_mode(const char *path)
{
	struct ctl_walk w;
	int err = file_find(path, &w);

	if (err)
		return err;
	return (w.file->read ? CTL_READ : 0) | (w.file->write ? CTL_WRITE : 0);
}

int ctl_open(const char *path, bool write, bool truncate,
	     struct ctl_handle **handle)
{
	struct ctl_handle *h;
	struct ctl_walk w;
	int err = file_find(path, &w);

	if (err)
		return err;
	if (write ? !w.file->write : !w.file->read)
		return -EPERM;
	h = kzalloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->file = w.file;
	h->cpu = w.n;
	h->truncate = truncate;
	h->writing = write;
	err = w.file->open && !write ? w.file->open(h) : 0;
	if (err)
		kfree(h);
	else
		*handle = h;
	return err;
}

/* A record that was cut still ends its line. */
static void end_cut_record(struct seq *s)
{
	if (s->len == CTL_RECORD - 1)
		s->buf[s->len - 1] = '\n';
}

ssize_t ctl_read(struct ctl_handle *h, char *buf, size_t n)
{
	int got;

	if (h->writing)
		return -EPERM;
	/* A reader may pass over something and leave its record empty. */
	while (h->seq_at == h->seq.len) {
		h->seq.len = h->seq_at = 0;
		got = h->file->read(h, &h->seq);
		if (got <= 0) {
			h->seq.len = 0;
			return got;
		}
		end_cut_record(&h->seq);
	}
	/* One record at most: the next might have to be waited for. */
	n = min(n, h->seq.len - h->seq_at);
	memcpy(buf, h->seq.buf + h->seq_at, n);
	h->seq_at += n;
	return n;
}

/* Room for n bytes more, and a NUL. */
static int make_room(struct ctl_handle *h, size_t n)
{
	size_t need = h->text_len + n + 1;
	char *text;

	if (n > CTL_WRITE_MAX - h->text_len)
		return -E2BIG;
	if (need <= h->text_size)
		return 0;
	need = max(need, 2 * h->text_size);
	text = kmalloc(need);
	if (!text)
		return -ENOMEM;
	memcpy(text, h->text, h->text_len);
	kfree(h->text);
	h->text = text;
	h->text_size = need;
	return 0;
}

int ctl_write(struct ctl_handle *h, const char *buf, size_t n)
{
	if (!h->writing)
		return -EPERM;
	if (!h->failed)
		h->failed = make_room(h, n);
	if (h->failed)
		return h->failed;
	memcpy(h->text + h->text_len, buf, n);
	h->text_len += n;
	return 0;
}

void ctl_abandon(struct ctl_handle *h)
{
	if (h->file->release && !h->writing)
		h->file->release(h);
	kfree(h->text);
	kfree(h);
}

static int carry_out(struct ctl_handle *h)
{
	size_t n = h->text_len;
	char none[] = "";

	if (h->failed == -E2BIG)
		return ctl_error(h, -E2BIG,
				 "more than %u bytes; nothing was written",
				 CTL_WRITE_MAX);
	if (h->failed)
		return h->failed;
	if (!n)
		return h->truncate && h->file->empties ?
			       h->file->write(h, none) :
			       0;
	n -= h->text[n - 1] == '\n';
	h->text[n] = '\0';
	return h->file->write(h, h->text);
}

int ctl_close(struct ctl_handle *h, char *err_text, size_t err_size)
{
	int err = h->writing ? carry_out(h) : 0;

	if (err_text)
		strlcpy(err_text,
			!err	    ? "" :
			h->error[0] ? h->error :
				      ctl_error_text(err),
			err_size);
	ctl_abandon(h);
	return err;
}

int ctl_echo(const char *path, const char *text, bool append, char *err_text,
	     size_t err_size)
{
	struct ctl_handle *h;
	int err = ctl_open(path, true, !append, &h);

	if (err) {
		if (err_text)
			strlcpy(err_text, ctl_error_text(err), err_size);
		return err;
	}
	ctl_write(h, text, strlen(text)); /* ctl_close() repeats its error */
	return ctl_close(h, err_text, err_size);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

char *ctl_strip(char *text)
{
	size_t n = strlen(text);

	while (n && is_blank(text[n - 1]))
		text[--n] = '\0';
	while (is_blank(*text))
		text++;
	return text;
}

int ctl_bool(struct ctl_handle *h, char *text, bool *value)
{
	text = ctl_strip(text);
	*value = !strcmp(text, "1");
	if (!*value && strcmp(text, "0"))
		return ctl_error(h, -EINVAL, "'%.32s' is neither 0 nor 1",
				 text);
	return 0;
}

char *ctl_word(char **text)
{
	char *word, *end;

	for (word = *text; is_blank(*word); word++)
		;
	for (end = word; *end && !is_blank(*end); end++)
		;
	*text = end + !!*end;
	*end = '\0';
	return *word ? word : NULL;
}

int ctl_error(struct ctl_handle *h, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(h->error, sizeof(h->error), fmt, ap);
	va_end(ap);
	return err;
}

const char *ctl_error_text(int err)
{
	switch (err) {
	case -ENOENT:
		return "no such file";
	case -EISDIR:
		return "is a directory";
	case -EPERM:
		return "may not be done with this file; ls -l shows what may";
	case -ENOMEM:
		return "out of memory";
	case -EBUSY:
		return "busy";
	case -EINTR:
		return "interrupted";
	case -E2BIG:
		return "too long";
	default:
		return "refused";
	}
}

void seq_printf(struct seq *s, const char *fmt, ...)
{
	size_t room = sizeof(s->buf) - s->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(s->buf + s->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		s->len += min((size_t)n, room - 1);
}
