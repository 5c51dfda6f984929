/* The trace as calls that nest: for uftrace, Perfetto and flame graphs. */
#include "trace.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Tasks and their open calls --------------------------------------------------- */

struct frame {
	u64 ip, start, inner; /* ns: when it began; in the calls it made */
};

struct task {
	s32 pid;
	u32 depth; /* open calls, the outermost first */
	struct frame frames[GRAPH_DEPTHS];
	FILE *file; /* of uftrace */
};
static struct task **tasks;
static size_t nr_tasks;

/* Idle tasks share pid 0, but not their calls: each CPU's gets a number below. */
static s32 number_of(const struct trace_entry *e)
{
	return e->pid ? e->pid : -1 - (s32)e->cpu;
}

static struct task *task_of(const struct trace_entry *e)
{
	s32 pid = number_of(e);

	for (size_t i = 0; i < nr_tasks; i++)
		if (tasks[i]->pid == pid)
			return tasks[i];
	tasks = array_grow(tasks, nr_tasks, sizeof(tasks[0]));
	tasks[nr_tasks] = calloc(1, sizeof(struct task));
	if (!tasks[nr_tasks])
		errx(1, "out of memory");
	tasks[nr_tasks]->pid = pid;
	return tasks[nr_tasks++];
}

/* A task's name as it stands in files: idle tasks' with their CPU. */
static const char *name_of(const struct trace *t, s32 pid)
{
	static char idle[24];

	if (pid >= 0)
		return trace_comm(t, pid);
	snprintf(idle, sizeof(idle), "idle/%d", -1 - pid);
	return idle;
}

/*
 * Follow an entry. What comes between is lost if a call's depth is not that of the calls
 * that are open: those which are deeper have returned. true: the entry belongs to the calls;
 * of a GRAPH_RETURN, *done is its call.
 */
static bool follow(struct task *task, const struct trace_entry *e,
		   struct frame *done)
{
	struct frame *f;

	if (e->kind == GRAPH_ENTRY) {
		if (task->depth < e->depth)
			return false; /* its callers were not seen */
		task->depth = e->depth;
		task->frames[task->depth++] = (struct frame){ e->ip, e->ns, 0 };
		return true;
	}
	if (e->depth >= task->depth || task->frames[e->depth].ip != e->ip)
		return false;
	task->depth = e->depth;
	f = &task->frames[task->depth];
	*done = *f;
	if (task->depth)
		f[-1].inner += e->ns - f->start;
	return true;
}

/* ---- Chrome's JSON ---------------------------------------------------------------- */

static void put_string(const char *text, size_t len, FILE *f)
{
	json_t *s = json_stringn(text, len);

	/* A marker may be no UTF-8. */
	if (!s)
		s = json_sprintf("%zu bytes", len);
	json_dumpf(s, f, JSON_ENCODE_ANY);
	json_decref(s);
}

static void put_common(const struct trace *t, const struct trace_entry *e,
		       const char *phase, u64 ns, FILE *f)
{
	(void)t;
	fprintf(f, ",\n{\"ph\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%llu.%03llu",
		phase, number_of(e), (unsigned long long)(ns / 1000),
		(unsigned long long)(ns % 1000));
}

static void put_name(const struct trace *t, u64 ip, FILE *f)
{
	fputs(",\"name\":\"", f);
	put_function(t, ip, ip, f);
	fputs("\"", f);
}

static void put_text(const struct trace *t, const struct trace_entry *e,
		     FILE *f)
{
	const struct event *event = trace_event(t, e->id);
	char *text = NULL;
	size_t len = 0;
	FILE *to;

	if (e->kind == MARKER) {
		fputs(",\"name\":\"tracing_mark_write\",\"args\":{\"text\":",
		      f);
		put_string((const char *)e->bytes, e->len, f);
	} else {
		to = open_memstream(&text, &len);
		if (!to)
			errx(1, "out of memory");
		if (e->kind == RAW)
			text_of_raw(t, e, to);
		else
			event_text(t, event, e->bytes, e->len, to);
		fclose(to);
		fprintf(f, ",\"name\":\"%s\",\"args\":{\"text\":",
			e->kind == RAW ? "raw_data" : event->name);
		put_string(text, len, f);
		free(text);
	}
	fprintf(f, ",\"cpu\":%u}", e->cpu);
}

static void put_chrome(const struct trace *t, const struct trace_entry *e,
		       FILE *f)
{
	struct frame done;

	if (e->kind == GRAPH_ENTRY) {
		follow(task_of(e), e, &done);
	} else if (e->kind == GRAPH_RETURN) {
		if (!follow(task_of(e), e, &done))
			return;
		put_common(t, e, "X", done.start, f);
		put_name(t, e->ip, f);
		fprintf(f, ",\"dur\":%llu.%03llu,\"args\":{\"cpu\":%u}}",
			(unsigned long long)((e->ns - done.start) / 1000),
			(unsigned long long)((e->ns - done.start) % 1000),
			e->cpu);
	} else if (e->kind == CALL || e->kind == MARKER || e->kind == RAW ||
		   e->kind == EVENT) {
		task_of(e);
		put_common(t, e, "i", e->ns, f);
		if (e->kind == CALL) {
			put_name(t, e->ip, f);
			fputs(",\"args\":{\"caller\":\"", f);
			put_function(t, e->parent, e->parent - 1, f);
			fprintf(f, "\",\"cpu\":%u}", e->cpu);
		} else {
			put_text(t, e, f);
		}
		fputs(",\"s\":\"t\"}", f);
	}
}

void write_chrome(struct trace *t, FILE *f)
{
	const struct trace_entry *e;

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
	      "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\","
	      "\"args\":{\"name\":\"nopl\"}}",
	      f);
	while ((e = trace_next(t)))
		put_chrome(t, e, f);
	for (size_t i = 0; i < nr_tasks; i++) {
		const char *name = name_of(t, tasks[i]->pid);

		fprintf(f,
			",\n{\"ph\":\"M\",\"pid\":0,\"tid\":%d,"
			"\"name\":\"thread_name\",\"args\":{\"name\":",
			tasks[i]->pid);
		put_string(name, strlen(name), f);
		fputs("}}", f);
	}
	fputs("\n]}\n", f);
}

/* ---- Folded stacks ---------------------------------------------------------------- */

struct folded {
	char *stack;
	u64 weight;
};
static void *folded;
static FILE *folded_to;

static int compare_folded(const void *a, const void *b)
{
	return strcmp(((const struct folded *)a)->stack,
		      ((const struct folded *)b)->stack);
}

static void add_folded(char *stack, u64 weight)
{
	struct folded *new = malloc(sizeof(*new)), *old;

	if (!new)
		errx(1, "out of memory");
	*new = (struct folded){ stack, 0 };
	old = *(struct folded **)tsearch(new, &folded, compare_folded);
	old->weight += weight;
	if (old != new) {
		free(stack);
		free(new);
	}
}

static void show_folded(const void *node, VISIT visit, int depth)
{
	const struct folded *s = *(struct folded *const *)node;

	(void)depth;
	if (visit == postorder || visit == leaf)
		fprintf(folded_to, "%s %llu\n", s->stack,
			(unsigned long long)s->weight);
}

/* Function_graph: nanoseconds of each stack of calls, less those in deeper calls. The function
 * tracer: how often a function was called from another. */
static void fold(const struct trace *t, const struct trace_entry *e)
{
	struct task *task = task_of(e);
	struct frame done;
	char *stack = NULL;
	size_t len;
	FILE *f;

	if (e->kind != CALL &&
	    (e->kind != GRAPH_ENTRY && e->kind != GRAPH_RETURN))
		return;
	if (e->kind != CALL &&
	    (!follow(task, e, &done) || e->kind == GRAPH_ENTRY))
		return;
	f = open_memstream(&stack, &len);
	if (!f)
		errx(1, "out of memory");
	fputs(name_of(t, task->pid), f);
	for (u32 i = 0; e->kind == GRAPH_RETURN && i < task->depth; i++) {
		fputc(';', f);
		put_function(t, task->frames[i].ip, task->frames[i].ip, f);
	}
	if (e->kind == CALL) {
		fputc(';', f);
		put_function(t, e->parent, e->parent - 1, f);
	}
	fputc(';', f);
	put_function(t, e->ip, e->ip, f);
	fclose(f);
	add_folded(stack, e->kind == CALL ? 1 + e->repeats :
			  e->ns - done.start > done.inner ?
					    e->ns - done.start - done.inner :
					    0);
}

void write_folded(struct trace *t, FILE *f)
{
	const struct trace_entry *e;

	while ((e = trace_next(t)))
		fold(t, e);
	folded_to = f;
	twalk(folded, show_folded);
}

/* ---- uftrace ---------------------------------------------------------------------- */

#define SESSION "6e6f706c00000001"
#define ADDRESS_BITS 48
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

static void put_record(struct task *task, u64 ns, bool is_exit, u32 depth,
		       u64 ip)
{
	char name[32];

	if (!task->file) {
		snprintf(name, sizeof(name), "%u.dat", tid_of(task));
		task->file = create(name);
	}
	little(ns, 8, task->file);
	little((is_exit ? TYPE_EXIT : 0) | MAGIC << 3 | (u64)depth << 6 |
		       cut(ip) << 16,
	       8, task->file);
}

static void write_records(struct trace *t)
{
	const struct trace_entry *e;
	struct frame done;

	while ((e = trace_next(t))) {
		struct task *task = task_of(e);
		const struct symbol *s = image_symbol_at(&t->g->im, e->ip);
		u64 ip = s ? s->addr : e->ip;

		if (e->kind == CALL) { /* as a call that took no time */
			put_record(task, e->ns, false, 0, ip);
			put_record(task, e->ns, true, 0, ip);
		} else if ((e->kind == GRAPH_ENTRY ||
			    e->kind == GRAPH_RETURN) &&
			   follow(task, e, &done)) {
			put_record(task, e->ns, e->kind == GRAPH_RETURN,
				   e->depth, ip);
		}
	}
}

static void write_info(const struct trace *t)
{
	FILE *f = create("info");
	unsigned int n = 0;
	const char *comma = "";

	(void)t;
	fwrite("Ftrace!", 8, 1, f);
	little(4, 4, f);  /* version */
	little(40, 2, f); /* of this head */
	little(1, 1, f);  /* little endian, */
	little(2, 1, f);  /* 64 bits: whatever the guest is */
	/* Tasks and sessions, relative addresses of symbols, a greatest depth. */
	little(0x62, 8, f);
	/* What follows: exename, cmdline, taskinfo. */
	little(1 << 0 | 1 << 3 | 1 << 7, 8, f);
	little(GRAPH_DEPTHS, 2, f);
	little(0, 6, f);
	for (size_t i = 0; i < nr_tasks; i++)
		n += tasks[i]->file != NULL;
	fprintf(f,
		"exename:" EXE "\ncmdline:nopl\ntaskinfo:lines=2\n"
		"taskinfo:nr_tid=%u\ntaskinfo:tids=",
		n);
	for (size_t i = 0; i < nr_tasks; i++)
		if (tasks[i]->file) {
			fprintf(f, "%s%u", comma, tid_of(tasks[i]));
			comma = ",";
		}
	fputc('\n', f);
	finish(f);
}

static void write_tasks(const struct trace *t)
{
	FILE *f = create("task.txt");

	(void)t;
	fprintf(f, "SESS timestamp=0.000000000 pid=1 sid=" SESSION
		   " exename=\"" EXE "\"\n");
	for (size_t i = 0; i < nr_tasks; i++)
		if (tasks[i]->file)
			fprintf(f, "TASK timestamp=0.000000000 tid=%u pid=1\n",
				tid_of(tasks[i]));
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

/* What is half-written when the program ends is removed. */
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
	write_tasks(t);
	write_symbols(t);
	for (size_t i = 0; i < nr_tasks; i++)
		if (tasks[i]->file)
			finish(tasks[i]->file);
	if (rename(folder, path))
		err(1, "%s", path);
	folder[0] = 0;
}
