/* SPDX-License-Identifier: MIT */
/* The trace as a folder for uftrace: its replay, report, graph and tui. */
#include "calls.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSION "6e6f706c00000001"
#define ADDRESS_BITS 48
#define TYPE_ENTRY 0
#define TYPE_EXIT 1
#define MAGIC 5
#define EXE "nopl"

static char folder[4096];

static FILE *create(const char *name)
{
	char path[sizeof(folder) + 64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	if (!f)
		err(1, "%s", path);
	return f;
}

static void finish(FILE *f)
{
	bool bad = ferror(f);

	if (fclose(f) || bad)
		err(1, "%s", folder);
}

static void little(u64 v, unsigned int n, FILE *f)
{
	for (unsigned int i = 0; i < n; i++)
		fputc(v >> 8 * i & 0xff, f);
}

static u64 cut(u64 addr)
{
	return addr & ((1ull << ADDRESS_BITS) - 1);
}

/* uftrace's numbers of tasks are positive. */
static unsigned int tid_of(const struct task *task)
{
	return task->pid >= 0 ? (unsigned int)task->pid :
				1000000u - (unsigned int)task->pid;
}

/* A time that goes back would be a call that lasts for ever. */
static void put_record(FILE *f, u64 *now, u64 ns, unsigned int type, u32 depth,
		       u64 addr)
{
	*now = ns > *now ? ns : *now;
	little(*now, 8, f);
	little(type | MAGIC << 3 | (u64)depth << 6 | cut(addr) << 16, 8, f);
}

static u64 begin_of(const struct trace *t, u64 ip)
{
	const struct symbol *s = image_symbol_at(&t->g->im, ip);

	return s ? s->addr : ip;
}

static void write_task(const struct trace *t, const struct task *task)
{
	const struct call *open[GRAPH_DEPTHS + 1], *next;
	u64 now = 0;
	u32 n = 0;
	char name[32];
	FILE *f;

	snprintf(name, sizeof(name), "%u.dat", tid_of(task));
	f = create(name);
	for (size_t i = 0; i <= task->nr_calls; i++) {
		next = i < task->nr_calls ? &task->calls[i] : NULL;
		/* At the end, calls that have not returned stay open. */
		for (; n && (next ? call_is_over(open[n - 1], next) :
				    open[n - 1]->returned);
		     n--)
			put_record(f, &now, open[n - 1]->end, TYPE_EXIT, n - 1,
				   begin_of(t, open[n - 1]->ip));
		if (!next)
			break;
		put_record(f, &now, next->start, TYPE_ENTRY, n,
			   begin_of(t, next->ip));
		open[n++] = next;
	}
	finish(f);
}

static void write_records(struct trace *t)
{
	const struct ring_entry *e;

	while ((e = trace_next(t)))
		if (is_call(e))
			task_note(task_of(e), e);
		else if (e->graph == RING_GRAPH_ENTRY ||
			 e->graph == RING_GRAPH_RETURN)
			task_call(t, task_of(e), e);
	tasks_sort();
	for (size_t i = 0; i < nr_tasks; i++)
		write_task(t, tasks[i]);
}

static void write_info(const struct trace *t)
{
	FILE *f = create("info");

	fwrite("Ftrace!", 8, 1, f);
	little(4, 4, f);  /* version */
	little(40, 2, f); /* of this head */
	little(1, 1, f);  /* little endian, */
	little(2, 1, f);  /* 64 bits: whatever the guest is */
	/* Tasks and sessions, relative addresses of symbols, a greatest depth. */
	little(0x62, 8, f);
	/* The parts that follow: exename, cmdline, taskinfo. */
	little(1 << 0 | 1 << 3 | 1 << 7, 8, f);
	little(GRAPH_DEPTHS, 2, f);
	little(0, 6, f);
	fprintf(f, "exename:" EXE "\ncmdline:" EXE ", tracer %s, clock %s",
		t->in->tracer->name, t->clock_name);
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
		if (ring_lost(cpu))
			fprintf(f, ", CPU:%u [%llu EVENTS DROPPED]", cpu,
				(unsigned long long)ring_lost(cpu));
	fprintf(f, "\ntaskinfo:lines=2\ntaskinfo:nr_tid=%zu\ntaskinfo:tids=",
		nr_tasks);
	for (size_t i = 0; i < nr_tasks; i++)
		fprintf(f, "%s%u", i ? "," : "", tid_of(tasks[i]));
	fputc('\n', f);
	finish(f);
}

/* uftrace calls a task by the program that it runs: the last part of a path. */
static void put_task_name(const struct task *task, FILE *f)
{
	for (const char *p = task_name(task); *p; p++)
		fputc(*p == '/' || *p == '"' || *p <= ' ' ? '-' : *p, f);
}

/* So each task is a process, with a session of its own. All sessions have the same memory. */
static void write_tasks(void)
{
	FILE *f = create("task.txt");

	for (size_t i = 0; i < nr_tasks; i++) {
		fprintf(f,
			"SESS timestamp=0.000000000 pid=%u sid=" SESSION
			" exename=\"",
			tid_of(tasks[i]));
		put_task_name(tasks[i], f);
		fprintf(f, "\"\nTASK timestamp=0.000000000 tid=%u pid=%u\n",
			tid_of(tasks[i]), tid_of(tasks[i]));
	}
	finish(f);
}

static void write_symbols(const struct trace *t)
{
	const struct image *im = &t->g->im;
	FILE *f = create("sid-" SESSION ".map");

	fprintf(f, "%012llx-%012llx r-xp 00000000 00:00 0 " EXE "\n",
		(unsigned long long)(cut(im->text) & ~0xfffull),
		(unsigned long long)(cut(im->etext) | 0xfff) + 1);
	/* Without a stack, uftrace takes every address for one of Linux's kernel. */
	fprintf(f, "ffffffffe000-fffffffff000 rw-p 00000000 00:00 0 [stack]\n");
	finish(f);
	f = create(EXE ".sym");
	fprintf(f, "# symbols: %zu\n# path name: " EXE "\n",
		im->nr_symbols + 1);
	for (size_t i = 0; i < im->nr_symbols; i++)
		fprintf(f, "%016llx T %s\n",
			(unsigned long long)(im->symbols[i].addr -
					     (im->text & ~0xfffull)),
			im->symbols[i].name);
	fprintf(f, "%016llx ? __sym_end\n",
		(unsigned long long)(im->etext - (im->text & ~0xfffull)));
	finish(f);
}

/* A file that is half-written when the program ends is removed. */
static void remove_folder(void)
{
	char path[sizeof(folder) + 300];
	struct dirent *d;
	DIR *dir = folder[0] ? opendir(folder) : NULL;

	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		unlink(path);
	}
	if (dir) {
		closedir(dir);
		rmdir(folder);
	}
}

void write_uftrace(struct trace *t, const char *path)
{
	if (!strcmp(path, "-"))
		errx(2, "-o -: the format uftrace is a folder");
	if (!access(path, F_OK))
		errx(1, "%s: it exists", path);
	snprintf(folder, sizeof(folder), "%s.partial", path);
	if (mkdir(folder, 0777)) {
		int error = errno;

		folder[0] = 0; /* it is not ours */
		errx(1, "%s.partial: %s", path, strerror(error));
	}
	atexit(remove_folder);
	write_records(t);
	write_info(t);
	write_tasks();
	write_symbols(t);
	if (rename(folder, path))
		err(1, "%s", path);
	folder[0] = 0;
}
