/* SPDX-License-Identifier: MIT */
/* Lists of pids, and their control files: pids.h. */
#include <tracer/core/pids.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/lib/sort.h>
#include <kernel/lib/string.h>
#include <kernel/lock/mutex.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/printk.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>
#include <tracer/core/client.h>
#include <tracer/core/options.h>
#include <tracer/core/tracer.h>

/* Sorted. A list never changes: a write makes another. */
struct pids {
	unsigned int nr;
	s32 pid[];
};

/* A control file each: the pids that are let through alone, and those that are not. */
enum pid_list { CALLS_OF, CALLS_NOT_OF, EVENTS_OF, EVENTS_NOT_OF, PID_LISTS };
/* NULL: empty. Written under trace_mutex, read with interrupts off. */
static struct pids *lists[PID_LISTS][INSTANCES];

static unsigned int fork_option_of(enum pid_list kind)
{
	return kind >= EVENTS_OF ? OPT_EVENT_FORK : OPT_FUNCTION_FORK;
}

/* How many of a list's pids are below that one. */
static unsigned int pids_below(const struct pids *list, s32 pid)
{
	unsigned int lo = 0, hi = list->nr;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (list->pid[mid] < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool pids_hold(const struct pids *list, s32 pid)
{
	unsigned int i = pids_below(list, pid);

	return i < list->nr && list->pid[i] == pid;
}

static always_inline bool pids_pass(enum pid_list of, enum pid_list not_of,
				    const struct trace_instance *in, s32 pid)
{
	unsigned int i = instance_number(in);
	const struct pids *yes =
		__atomic_load_n(&lists[of][i], __ATOMIC_ACQUIRE);
	const struct pids *no =
		__atomic_load_n(&lists[not_of][i], __ATOMIC_ACQUIRE);

	return (!yes || pids_hold(yes, pid)) && (!no || !pids_hold(no, pid));
}

bool pid_is_traced(const struct trace_instance *in, s32 pid)
{
	return pids_pass(CALLS_OF, CALLS_NOT_OF, in, pid);
}

bool pid_has_events(const struct trace_instance *in, s32 pid)
{
	return pids_pass(EVENTS_OF, EVENTS_NOT_OF, in, pid);
}

bool pids_are_listed(const struct trace_instance *in)
{
	unsigned int i = instance_number(in);

	mutex_assert_held(&trace_mutex);
	return lists[CALLS_OF][i] || lists[CALLS_NOT_OF][i];
}

bool event_pids_are_listed(const struct trace_instance *in)
{
	unsigned int i = instance_number(in);

	mutex_assert_held(&trace_mutex);
	return lists[EVENTS_OF][i] || lists[EVENTS_NOT_OF][i];
}

void pids_forget(const struct trace_instance *in)
{
	mutex_assert_held(&trace_mutex);
	for (unsigned int kind = 0; kind < PID_LISTS; kind++) {
		kfree(lists[kind][instance_number(in)]);
		lists[kind][instance_number(in)] = NULL;
	}
}

static bool is_lower_pid(const void *a, const void *b)
{
	return *(const s32 *)a < *(const s32 *)b;
}

/* Put the pids of a list in order, each once. */
static void settle_pids(struct pids *list)
{
	unsigned int n = 0;

	sort_rows(list->pid, list->nr, sizeof(list->pid[0]), is_lower_pid);
	for (unsigned int i = 0; i < list->nr; i++)
		if (!n || list->pid[n - 1] != list->pid[i])
			list->pid[n++] = list->pid[i];
	list->nr = n;
}

/* ---- Options function-fork and event-fork ---------------------------------------- */

/* The first place of a list from `from` on whose task lives, below `found`. */
struct living_place {
	const struct pids *list;
	unsigned int from, found;
};

static bool note_place(struct task *t, void *arg)
{
	struct living_place *p = arg;
	unsigned int i = pids_below(p->list, t->pid);

	if (i >= p->from && i < p->found && p->list->pid[i] == t->pid)
		p->found = i;
	return true;
}

/* From place i on, the first pid of a task that has not ended. One walk over all tasks finds it: a
 * walk for each pid that has ended would take ages where a user has listed many. */
static unsigned int next_living(const struct pids *list, unsigned int i)
{
	/* Where the pids of tasks that are still to be made begin. */
	unsigned int later = pids_below(list, task_last_pid() + 1);
	struct living_place p = { list, i, later };

	if (i >= later)
		return i;
	task_for_each(note_place, &p);
	return p.found;
}

/* A copy of the list, in which each pid of a task that lives has its place, and others are -1. */
struct living {
	const struct pids *list;
	struct pids *copy;
};

static bool note_living(struct task *t, void *arg)
{
	const struct living *l = arg;

	if (pids_hold(l->list, t->pid))
		l->copy->pid[pids_below(l->list, t->pid)] = t->pid;
	return true;
}

/* Leave out the pids of tasks that have ended. The copy has room for all of the list. */
static void copy_living(const struct pids *list, struct pids *copy)
{
	struct living l = { list, copy };
	s32 last = task_last_pid();

	memset(copy->pid, 0xff, list->nr * sizeof(s32));
	task_for_each(note_living, &l);
	for (unsigned int i = 0; i < list->nr; i++)
		if (copy->pid[i] >= 0 || list->pid[i] > last)
			copy->pid[copy->nr++] = list->pid[i];
}

/* If the list has the parent, another one that has the child as well, and lacks tasks that have
 * ended. The old one, which no CPU must read any more when it is freed, or NULL. */
static struct pids *inherit_pids(struct pids **list, const struct task *parent,
				 const struct task *child)
{
	struct pids *old = *list, *new;

	if (!old || !pids_hold(old, parent->pid))
		return NULL;
	new = kmalloc_zeroed(sizeof(*new) + (old->nr + 1) * sizeof(s32));
	if (!new) {
		printk("%s-%d: out of memory; it is not traced with %s-%d\n",
		       child->name, child->pid, parent->name, parent->pid);
		return NULL;
	}
	copy_living(old, new);
	new->pid[new->nr++] = child->pid;
	settle_pids(new);
	__atomic_store_n(list, new, __ATOMIC_RELEASE);
	return old;
}

static void inherit_all(const struct task *parent, const struct task *child)
{
	/* The lists that no CPU must read any more, once trace_refresh() has been called. */
	struct pids *gone[PID_LISTS * INSTANCES];
	unsigned int nr = 0;

	for (unsigned int i = 0; i < PID_LISTS * INSTANCES; i++) {
		enum pid_list kind = i / INSTANCES;

		if (!instance_option(&trace_instances[i % INSTANCES],
				     fork_option_of(kind)))
			continue;
		gone[nr] = inherit_pids(&lists[kind][i % INSTANCES], parent,
					child);
		nr += gone[nr] != NULL;
	}
	if (nr)
		trace_refresh();
	while (nr)
		kfree(gone[--nr]);
}

/* A task that makes another may hold trace_mutex: tests do. */
static void task_forked(struct task *parent, struct task *child)
{
	u32 options = 0;
	bool held;

	for (unsigned int i = 0; i < INSTANCES; i++)
		options |= READ_ONCE(trace_instances[i].options);
	if (!(options & (1u << OPT_FUNCTION_FORK | 1u << OPT_EVENT_FORK)))
		return;
	held = mutex_is_held(&trace_mutex);
	if (!held)
		mutex_lock(&trace_mutex);
	inherit_all(parent, child);
	if (!held)
		mutex_unlock(&trace_mutex);
}

static void pids_start(void)
{
	task_fork_hook = task_forked;
}
INIT_HOOK(INIT_TASK, pids_start);

/* ---- Control files ---------------------------------------------------------- */

static struct pids **list_of(const struct ctl_handle *h)
{
	return &lists[h->file->data][h->folder];
}

/* The pids of `text`, and with >> those of `old`. *list is NULL if there are none, or after an
 * error. */
static int parse_pids(struct ctl_handle *h, const struct pids *old, char *text,
		      struct pids **list)
{
	unsigned int most = strlen(text) / 2 + 1 + (old ? old->nr : 0);
	char *word;
	u64 pid;

	*list = kmalloc_zeroed(sizeof(**list) + most * sizeof(s32));
	if (!*list)
		return ctl_error(h, -ENOMEM, "out of memory");
	if (old)
		memcpy(*list, old, sizeof(*old) + old->nr * sizeof(s32));
	while ((word = ctl_word(&text))) {
		if (parse_in_base(word, 0, &pid) || pid >> 31) {
			kfree(*list);
			*list = NULL;
			return ctl_error(h, -EINVAL,
					 "'%.32s' is no pid; ps shows them",
					 word);
		}
		(*list)->pid[(*list)->nr++] = pid;
	}
	settle_pids(*list);
	if ((*list)->nr)
		return 0;
	kfree(*list);
	*list = NULL;
	return 0;
}

static int pids_write(struct ctl_handle *h, char *text)
{
	struct pids **list = list_of(h), *old, *new;
	int err;

	old = *list;
	err = parse_pids(h, h->truncate ? NULL : old, text, &new);
	/* As in Linux, the list is empty from the file's opening with > on. */
	if (!err || (h->truncate && old)) {
		__atomic_store_n(list, new, __ATOMIC_RELEASE);
		clients_settings_changed(h);
		trace_refresh(); /* after this no CPU reads the old list */
		kfree(old);
	}
	return err;
}

static int pids_read(struct ctl_handle *h, struct seq *s)
{
	const struct pids *list;
	unsigned long i = h->pos;
	int found;

	list = *list_of(h);
	/* With the option, a task that has ended is in no list. */
	if (list &&
	    instance_option(instance_of(h), fork_option_of(h->file->data)))
		i = next_living(list, i);
	h->pos = i + 1;
	found = list ? i < list->nr :
		       !i && fork_option_of(h->file->data) == OPT_FUNCTION_FORK;
	if (found && list)
		seq_printf(s, "%d\n", list->pid[i]);
	else if (found)
		seq_printf(s, "no pid\n"); /* in Linux's files of calls alone */
	return found;
}

#define PIDS_FILE(ident, list)                                                 \
	TRACE_FILE(ident, .path = TRACING #ident, .folders = &trace_folders,   \
		   .read = pids_read, .write = pids_write, .empties = true,    \
		   .data = (list), .at_boot = "")
PIDS_FILE(set_ftrace_pid, CALLS_OF);
PIDS_FILE(set_ftrace_notrace_pid, CALLS_NOT_OF);
PIDS_FILE(set_event_pid, EVENTS_OF);
PIDS_FILE(set_event_notrace_pid, EVENTS_NOT_OF);
