/* SPDX-License-Identifier: MIT */
/*
 * Proves of the control-file layer: any chunk size reads the same bytes (H25),
 * directories list the files that paths name, a write arrives once, whole, at close, and
 * every refusal changes nothing. Its files under /sys/kernel/selftest serve
 * the shell's tests too.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lock/mutex.h>
#include <kernel/test/ktest.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/test/again.h>

#define DIR "/sys/kernel/selftest"
#define NR_LINES 60

static int handles; /* open ones of `lines`: each must be released */

static int lines_open(struct ctl_handle *h)
{
	(void)h;
	handles++;
	return 0;
}

static void lines_release(struct ctl_handle *h)
{
	(void)h;
	handles--;
}

/* Lines of many lengths, an empty record, one of two lines, one too long. */
static int lines_read(struct ctl_handle *h, struct seq *s)
{
	unsigned long i = h->pos++;

	if (i == NR_LINES)
		return 0;
	if (i == 7)
		return 1;
	if (i == 9)
		for (int k = 0; k < 200; k++)
			seq_printf(s, "0123456789");
	seq_printf(s, "%lu:%*s\n", i, (int)(i * 3 % 50), "x");
	if (i == 8)
		seq_printf(s, "8 again\n");
	return 1;
}
CTL_FILE(selftest_lines, .path = DIR "/lines", .open = lines_open,
	 .release = lines_release, .read = lines_read);

static int endless_read(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%lu\n", h->pos++);
	return 1;
}
CTL_FILE(selftest_endless, .path = DIR "/endless", .read = endless_read);

static void index_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%u\n", h->index);
}
CTL_FILE(selftest_index, .path = DIR "/cpu%u/index", .show = index_show);

/*
 * This file keeps the text that is written to it. With >> it puts a + between old and
 * new. It refuses "bad...".
 */
static char note[4096];
static unsigned int note_writes;
static struct mutex note_lock = MUTEX_INIT(note_lock);

static int ctl_note_write(struct ctl_handle *h, char *text)
{
	size_t n = h->truncate ? 0 : strlen(note);

	mutex_assert_held(&note_lock);
	if (!strncmp(text, "bad", 3))
		return ctl_error(h, -EINVAL, "%.8s: not good; good is accepted",
				 text);
	if (!strcmp(text, "mute"))
		return -EBUSY;
	note_writes++;
	if (n)
		note[n++] = '+';
	string_copy(note + n, text, sizeof(note) - n);
	return 0;
}

static void ctl_note_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	mutex_assert_held(&note_lock);
	seq_printf(s, "%s\n", note);
}
CTL_FILE(selftest_note, .path = DIR "/note", .lock = &note_lock,
	 .show = ctl_note_show, .write = ctl_note_write, .empties = true);

static unsigned int sink_file_writes;

static int sink_file_write(struct ctl_handle *h, char *text)
{
	(void)h;
	(void)text;
	sink_file_writes++;
	return 0;
}
CTL_FILE(selftest_writeonly, .path = DIR "/writeonly",
	 .write = sink_file_write);

struct digest {
	u32 hash, len, lines;
};

static struct digest read_by(struct ktest_run *t, const char *path, size_t n)
{
	struct digest d = { 2166136261u, 0, 0 };
	struct ctl_handle *h;
	static char buf[4096];
	ssize_t got;

	KEXPECT_EQ(t, ctl_open(path, false, false, &h), 0);
	while ((got = ctl_read(h, buf, n)) > 0) {
		KEXPECT(t, (size_t)got <= n);
		for (ssize_t i = 0; i < got; i++) {
			d.hash = (d.hash ^ (u8)buf[i]) * 16777619u;
			d.lines += buf[i] == '\n';
		}
		d.len += got;
	}
	KEXPECT_EQ(t, got, 0);
	KEXPECT_EQ(t, ctl_close(h, NULL, 0), 0);
	return d;
}

static void same_by_any_chunk(struct ktest_run *t, const char *path)
{
	static const size_t chunks[] = { 1, 7, 100, 1023 };
	struct digest whole = read_by(t, path, 4096), d;

	KEXPECT(t, whole.len > 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(chunks); i++) {
		d = read_by(t, path, chunks[i]);
		KEXPECT_EQ(t, d.len, whole.len);
		KEXPECT_EQ(t, d.lines, whole.lines);
		KEXPECT_EQ(t, d.hash, whole.hash);
	}
}

KTEST(ctl_read_chunks, "ctl.read_chunks")
{
	same_by_any_chunk(t, DIR "/lines");
	same_by_any_chunk(t, "/proc/kallsyms");
	same_by_any_chunk(t, "/proc/cmdline");
	/* 60 records: one is empty, and one has two lines. */
	KEXPECT_EQ(t, read_by(t, DIR "/lines", 33).lines, NR_LINES);
	KEXPECT_EQ(t, handles, 0);
}

KTEST(ctl_list, "ctl.list")
{
	char name[64] = "", last[64] = "";
	unsigned int n;

	for (n = 0; !ctl_next(DIR, name, sizeof(name)); n++) {
		KEXPECT(t, strcmp(name, last) > 0);
		KEXPECT(t, n || !strcmp(name, "cpu0/"));
		string_copy(last, name, sizeof(last));
	}
	KEXPECT_EQ(t, n, 4 + nr_cpus);
	name[0] = '\0';
	KEXPECT_EQ(t, ctl_next(DIR "/cpu0", name, sizeof(name)), 0);
	KEXPECT(t, !strcmp(name, "index"));
	KEXPECT_EQ(t, ctl_next(DIR "/cpu0", name, sizeof(name)), -ENOENT);
	name[0] = '\0';
	KEXPECT_EQ(t, ctl_next("/nowhere", name, sizeof(name)), -ENOENT);
	KEXPECT(t, ctl_is_dir("/") && ctl_is_dir("/sys") && ctl_is_dir(DIR));
	KEXPECT(t, !ctl_is_dir("/sy") && !ctl_is_dir(DIR "/note"));
	KEXPECT(t, !ctl_is_dir(DIR "/cpu%u"));
}

KTEST(ctl_percpu, "ctl.percpu")
{
	char path[64], text[8], want[8];
	struct ctl_handle *h;
	ssize_t n;

	for (unsigned int c = 0; c < nr_cpus; c++) {
		snprintf(path, sizeof(path), DIR "/cpu%u/index", c);
		KASSERT(t, !ctl_open(path, false, false, &h));
		n = ctl_read(h, text, sizeof(text) - 1);
		ctl_close(h, NULL, 0);
		KASSERT(t, n > 0);
		text[n] = '\0';
		snprintf(want, sizeof(want), "%u\n", c);
		KEXPECT(t, !strcmp(text, want));
	}
	snprintf(path, sizeof(path), DIR "/cpu%u/index", nr_cpus);
	KEXPECT_EQ(t, ctl_open(path, false, false, &h), -ENOENT);
}

KTEST(ctl_open_errors, "ctl.open_errors")
{
	struct ctl_handle *h;

	KEXPECT_EQ(t, ctl_open(DIR "/nothing", false, false, &h), -ENOENT);
	KEXPECT_EQ(t, ctl_open(DIR, false, false, &h), -EISDIR);
	KEXPECT_EQ(t, ctl_open(DIR "/lines", true, true, &h), -EPERM);
	KEXPECT_EQ(t, ctl_open(DIR "/writeonly", false, false, &h), -EPERM);
	KEXPECT_EQ(t, ctl_mode(DIR "/note"), CTL_READ | CTL_WRITE);
	KEXPECT_EQ(t, ctl_mode(DIR "/writeonly"), CTL_WRITE);
	KEXPECT_EQ(t, ctl_mode(DIR), -EISDIR);
}

KTEST(ctl_write_whole, "ctl.write_whole")
{
	struct ctl_handle *h;

	ctl_echo(DIR "/note", "before", false, NULL, 0);
	note_writes = 0;
	KASSERT(t, !ctl_open(DIR "/note", true, true, &h));
	KEXPECT_EQ(t, ctl_write(h, "one ", 4), 0);
	KEXPECT_EQ(t, ctl_write(h, "two\n\n", 5), 0);
	KEXPECT(t, !strcmp(note, "before"));
	KEXPECT_EQ(t, ctl_close(h, NULL, 0), 0);
	KEXPECT(t, !strcmp(note, "one two\n")); /* one newline is cut */
	KEXPECT_EQ(t, note_writes, 1);
	KEXPECT_EQ(t, ctl_echo(DIR "/note", "more", true, NULL, 0), 0);
	KEXPECT(t, !strcmp(note, "one two\n+more"));
	KASSERT(t, !ctl_open(DIR "/note", true, true, &h));
	ctl_write(h, "never", 5);
	ctl_abandon(h);
	KEXPECT_EQ(t, note_writes, 2);
	KASSERT(t, !ctl_open(DIR "/note", true, true, &h));
	KEXPECT_EQ(t, ctl_close(h, NULL, 0), 0);
	KEXPECT(t, !note[0]); /* opening with > empties this file */
	ctl_echo(DIR "/note", "kept", false, NULL, 0);
	KASSERT(t, !ctl_open(DIR "/note", true, false, &h));
	KEXPECT_EQ(t, ctl_close(h, NULL, 0), 0);
	KEXPECT(t, !strcmp(note, "kept")); /* >> of nothing */
	KEXPECT_EQ(t, ctl_echo(DIR "/writeonly", "", false, NULL, 0), 0);
	KEXPECT_EQ(t, sink_file_writes, 0); /* this file stays as it is */
}

KTEST(ctl_write_errors, "ctl.write_errors")
{
	char *big = kmalloc(CTL_WRITE_MAX + 1), text[160];

	KASSERT(t, big);
	memset(big, 'b', CTL_WRITE_MAX);
	big[CTL_WRITE_MAX] = '\0';
	KEXPECT_EQ(t, ctl_echo(DIR "/note", "good", false, text, sizeof(text)),
		   0);
	KEXPECT(t, !text[0]);
	KEXPECT_EQ(t,
		   ctl_echo(DIR "/note", "bad one", false, text, sizeof(text)),
		   -EINVAL);
	KEXPECT(t, !strcmp(text, "bad one: not good; good is accepted"));
	KEXPECT_EQ(t, ctl_echo(DIR "/note", "mute", false, text, sizeof(text)),
		   -EBUSY);
	KEXPECT(t, !strcmp(text, "busy"));
	big[0] = 'B';
	KEXPECT_EQ(t,
		   ctl_echo(DIR "/writeonly", big, false, text, sizeof(text)),
		   0);
	kfree(big);
	KEXPECT(t, !strcmp(note, "good"));
}

KTEST(ctl_write_too_long, "ctl.write_too_long")
{
	struct ctl_handle *h;
	char text[160];
	int err = 0;

	ctl_echo(DIR "/note", "kept", false, NULL, 0);
	KASSERT(t, !ctl_open(DIR "/note", true, true, &h));
	for (unsigned int i = 0; i < CTL_WRITE_MAX / 16; i++)
		err |= ctl_write(h, "0123456789abcdef", 16);
	KEXPECT_EQ(t, err, 0);
	KEXPECT_EQ(t, ctl_write(h, "x", 1), -E2BIG);
	KEXPECT_EQ(t, ctl_write(h, "x", 1), -E2BIG);
	KEXPECT_EQ(t, ctl_close(h, text, sizeof(text)), -E2BIG);
	KEXPECT(t,
		!strcmp(text, "more than 1048576 bytes; nothing was written"));
	KEXPECT(t, !strcmp(note, "kept"));
}

/* The note's functions say that the lock is held. Behind them it is free again. */
KTEST(ctl_lock, "ctl.lock")
{
	struct ctl_handle *h;
	char text[16];

	KEXPECT_EQ(t, ctl_echo(DIR "/note", "good", false, NULL, 0), 0);
	KEXPECT(t, !note_lock.owner);
	KEXPECT_EQ(t, ctl_echo(DIR "/note", "bad", false, NULL, 0), -EINVAL);
	KEXPECT(t, !note_lock.owner);
	KASSERT(t, !ctl_open(DIR "/note", false, false, &h));
	KEXPECT_EQ(t, ctl_read(h, text, sizeof(text)), 5);
	KEXPECT(t, !note_lock.owner);
	KEXPECT_EQ(t, ctl_read(h, text, sizeof(text)), 0);
	ctl_abandon(h);
	KEXPECT(t, !note_lock.owner);
}

/* ---- Folders that users make -------------------------------------------------- */

#define ROOT "/sys/kernel/testfolders"

static struct {
	char name[16]; /* "": free */
	int users;
} rooms[3]; /* rooms[0] is none */

static const char *room_name(unsigned int i)
{
	return i < ARRAY_SIZE(rooms) ? rooms[i].name : NULL;
}

static int room_make(struct ctl_handle *h, const char *name)
{
	for (unsigned int i = 1; i < ARRAY_SIZE(rooms); i++)
		if (!rooms[i].name[0]) {
			string_copy(rooms[i].name, name, sizeof(rooms[i].name));
			return 0;
		}
	return ctl_error(h, -ENOSPC, "at most 2");
}

static int room_remove(struct ctl_handle *h, const char *name)
{
	unsigned int i = 1;

	while (strcmp(rooms[i].name, name))
		i++;
	if (rooms[i].users)
		return ctl_error(h, -EBUSY, "a file in it is open");
	rooms[i].name[0] = '\0';
	return 0;
}

/* Another task has removed the folder, and made one of this name, before it is used, or NULL. */
static const char *new_name;

static bool room_use(unsigned int i, int by)
{
	if (new_name)
		string_copy(rooms[i].name, new_name, sizeof(rooms[i].name));
	rooms[i].users += by;
	return rooms[i].name[0];
}

static CTL_FOLDERS(selftest_rooms, .path = ROOT "/rooms", .root = ROOT,
		   .name = room_name, .make = room_make, .remove = room_remove,
		   .use = room_use);

static void which_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "folder %u, %u\n", h->folder, h->index);
}
CTL_FILE(selftest_which, .path = ROOT "/which/%u", .folders = &selftest_rooms,
	 .show = which_show);

static bool file_reads(const char *path, const char *text)
{
	struct ctl_handle *h;
	char got[32] = "";

	if (ctl_open(path, false, false, &h))
		return false;
	ctl_read(h, got, sizeof(got) - 1);
	ctl_close(h, NULL, 0);
	return !strcmp(got, text);
}

/* The names that ctl_next() lists of a directory, each with a blank behind it. */
static const char *listed_names(const char *dir)
{
	static char text[100];
	char name[32] = "";

	text[0] = '\0';
	while (!ctl_next(dir, name, sizeof(name)))
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s ", name);
	return text;
}

KTEST(ctl_folders, "ctl.folders")
{
	struct ctl_handle *h;
	char err[160];

	KEXPECT(t, ctl_is_dir(ROOT "/rooms") && ctl_is_dir(ROOT "/rooms/"));
	KEXPECT(t, !strcmp(listed_names(ROOT "/rooms"), ""));
	KEXPECT(t, strstr(listed_names(ROOT), "rooms/ "));
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/rooms/b", err, sizeof(err)), 0);
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/rooms/a/", err, sizeof(err)), 0);
	KEXPECT(t, !strcmp(listed_names(ROOT "/rooms"), "a/ b/ "));
	/* A folder has only the files that name it in .folders. */
	KEXPECT(t, !strcmp(listed_names(ROOT "/rooms/a"), "which/ "));
	KEXPECT(t, file_reads(ROOT "/which/0", "folder 0, 0\n"));
	KEXPECT(t, file_reads(ROOT "/rooms/b/which/0", "folder 1, 0\n"));
	KEXPECT(t, file_reads(ROOT "/rooms/a/which/0", "folder 2, 0\n"));
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/rooms/a", err, sizeof(err)), -EEXIST);
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/rooms/c", err, sizeof(err)), -ENOSPC);
	KEXPECT(t, !strcmp(err, "at most 2"));
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/else", err, sizeof(err)), -EPERM);
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/rooms/a/b", err, sizeof(err)), -EPERM);
	KEXPECT_EQ(t, ctl_rmdir(ROOT "/rooms/c", err, sizeof(err)), -ENOENT);
	KASSERT(t, !ctl_open(ROOT "/rooms/a/which/0", false, false, &h));
	KEXPECT_EQ(t, ctl_rmdir(ROOT "/rooms/a", err, sizeof(err)), -EBUSY);
	ctl_close(h, NULL, 0);
	KEXPECT_EQ(t, ctl_rmdir(ROOT "/rooms/a", err, sizeof(err)), 0);
	KEXPECT_EQ(t, ctl_mode(ROOT "/rooms/a/which/0"), -ENOENT);
	KEXPECT(t, !strcmp(listed_names(ROOT "/rooms"), "b/ "));
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/rooms/.", err, sizeof(err)), -EINVAL);
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/rooms/..", err, sizeof(err)), -EINVAL);
	KEXPECT(t, !strcmp(err, ".. is no name"));
	/* A name is no pattern. */
	KEXPECT_EQ(t, ctl_mkdir(ROOT "/rooms/a%u", err, sizeof(err)), 0);
	KEXPECT(t, !strcmp(listed_names(ROOT "/rooms"), "a%u/ b/ "));
	KEXPECT(t, file_reads(ROOT "/rooms/a%u/which/0", "folder 2, 0\n"));
	KEXPECT_EQ(t, ctl_mode(ROOT "/rooms/a/which/0"), -ENOENT);
	KEXPECT_EQ(t, ctl_rmdir(ROOT "/rooms/a%u", err, sizeof(err)), 0);
	new_name = "bb";
	KEXPECT_EQ(t, ctl_open(ROOT "/rooms/b/which/0", false, false, &h),
		   -ENOENT);
	new_name = "b";
	KEXPECT_EQ(t, ctl_open(ROOT "/rooms/bb/which/0", false, false, &h),
		   -ENOENT);
	new_name = NULL;
	KEXPECT_EQ(t, ctl_rmdir(ROOT "/rooms/b", err, sizeof(err)), 0);
	KEXPECT(t, !rooms[1].users && !rooms[2].users);
}
