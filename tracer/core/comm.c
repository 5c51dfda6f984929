/* SPDX-License-Identifier: MIT */
/* Which name went with a pid: events hold pids only, and outlive their tasks. */
#include <tracer/core/tracer.h>
#include <tracer/core/comm.h>
#include <tracer/core/options.h>

#include <kernel/panic.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>

#define COMM_SLOTS 256

static struct comm {
	s32 pid;
	char name[TASK_NAME_LEN];
} comms[COMM_SLOTS];

/*
 * Guards comms. A writer that finds it taken goes away: it may be the scheduler,
 * and it will come by again. Acquire and release pair with each other.
 */
static u32 busy;

static bool comm_try_lock(void)
{
	return !__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE);
}

static void comm_unlock(void)
{
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

void comm_save(const struct task *t)
{
	struct comm *c = &comms[(u32)t->pid % COMM_SLOTS];
	irq_state_t state;

	if (!t->pid || READ_ONCE(c->pid) == t->pid ||
	    !trace_option(OPT_RECORD_CMD))
		return;
	state = arch_irq_save();
	if (comm_try_lock()) {
		c->pid = t->pid;
		memcpy(c->name, t->name, sizeof(c->name));
		comm_unlock();
	}
	arch_irq_restore(state);
}

void comm_switched(const struct task *next)
{
	for (unsigned int i = 0; i < INSTANCES; i++)
		if (READ_ONCE(trace_instances[i].on)) {
			comm_save(next);
			return;
		}
}

static bool save_one(struct task *t, void *arg)
{
	(void)arg;
	comm_save(t);
	return true;
}

void comm_save_all(void)
{
	task_for_each(save_one, NULL);
}

void comm_find(s32 pid, char *name, size_t size)
{
	const struct comm *c = &comms[(u32)pid % COMM_SLOTS];
	irq_state_t state;

	string_copy(name, pid ? "<...>" : "<idle>", size);
	state = arch_irq_save();
	/* In a panic the other CPUs have stopped, and do not give `busy` back. */
	while (!comm_try_lock() && !panic_here())
		arch_cpu_relax();
	if (pid && c->pid == pid)
		string_copy(name, c->name, min(size, sizeof(c->name)));
	comm_unlock();
	arch_irq_restore(state);
}

/* ---- Control files ---------------------------------------------------------- */

static int saved_cmdlines_read(struct ctl_handle *h, struct seq *s)
{
	char name[TASK_NAME_LEN];
	s32 pid;

	while (h->pos < COMM_SLOTS && !READ_ONCE(comms[h->pos].pid))
		h->pos++;
	if (h->pos >= COMM_SLOTS)
		return 0;
	pid = READ_ONCE(comms[h->pos++].pid);
	comm_find(pid, name, sizeof(name));
	seq_printf(s, "%d %s\n", pid, name);
	return 1;
}
CTL_FILE(saved_cmdlines, .path = TRACING "saved_cmdlines",
	 .read = saved_cmdlines_read);

static void saved_cmdlines_size_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%d\n", COMM_SLOTS);
}
CTL_FILE(saved_cmdlines_size, .path = TRACING "saved_cmdlines_size",
	 .show = saved_cmdlines_size_show);
