/* SPDX-License-Identifier: MIT */
/*
 * Tasks and their CPUs: /proc/tasks, and the commands ps and cpus. All work on a
 * snapshot, because tasks may end while a line about them is printed.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/sort.h>
#include <kernel/lib/string.h>
#include <kernel/lib/format.h>
#include <kernel/sched/task.h>
#include <kernel/sched/task_list.h>
#include <kernel/mm/kmalloc.h>

struct task_row {
	int pid, prio;
	char name[TASK_NAME_LEN];
	enum task_state state;
	bool running, preempted;
	unsigned int cpu;
	u64 switches;
	unsigned long pc;
};

struct task_rows {
	unsigned int nr, max, left_out;
	struct task_row row[];
};

static bool snapshot_one(struct task *t, void *arg)
{
	struct task_rows *s = arg;
	struct task_row *r = &s->row[s->nr];

	if (s->nr == s->max) {
		s->left_out++;
		return true;
	}
	s->nr++;
	r->pid = t->pid;
	r->prio = t->prio;
	string_copy(r->name, t->name, sizeof(r->name));
	r->state = t->state;
	r->cpu = t->cpu;
	r->running = READ_ONCE(cpus[t->cpu].head.current) == t;
	r->preempted = !r->running && t->preempted;
	r->switches = t->switches;
	r->pc = r->running ? 0 : task_pc(t);
	return true;
}

static bool pid_comes_first(const void *a, const void *b)
{
	const struct task_row *x = a, *y = b;

	return x->pid != y->pid ? x->pid < y->pid : x->cpu < y->cpu;
}

/* All tasks now, by pid. NULL when out of memory. Freed with kfree(). */
static struct task_rows *snapshot_tasks(void)
{
	unsigned int max = task_count() + 8; /* some may be born meanwhile */
	struct task_rows *s =
		kmalloc_zeroed(sizeof(*s) + max * sizeof(s->row[0]));

	if (!s)
		return NULL;
	s->max = max;
	task_for_each(snapshot_one, s);
	sort_rows(s->row, s->nr, sizeof(s->row[0]), pid_comes_first);
	return s;
}

static const char *state_name(const struct task_row *r)
{
	if (r->running)
		return "running";
	switch (r->state) {
	case TASK_READY:
		return "ready";
	case TASK_BLOCKED:
		return "blocked";
	case TASK_HELD:
		return "held";
	default:
		return "dead";
	}
}

static const char *preempted_mark(const struct task_row *r)
{
	if (!r->preempted)
		return "";
	return task_on_site && task_on_site(r->pc) ? " preempted ON A SITE" :
						     " preempted";
}

static void print_row(struct seq *s, const struct task_row *r)
{
	char where[SYMBOL_BUF] = "-";

	if (r->pc)
		symbol_format(where, sizeof(where), r->pc, false);
	seq_printf(s, "%5d %-15s %4d %-8s %3u %10llu %s%s\n", r->pid, r->name,
		   r->prio, state_name(r), r->cpu,
		   (unsigned long long)r->switches, where, preempted_mark(r));
}

static int tasks_open(struct ctl_handle *h)
{
	h->priv = snapshot_tasks();
	return h->priv ? 0 : -ENOMEM;
}

static void tasks_release(struct ctl_handle *h)
{
	kfree(h->priv);
}

static int tasks_read(struct ctl_handle *h, struct seq *s)
{
	struct task_rows *rows = h->priv;
	unsigned long i = h->pos++;

	if (!i)
		seq_printf(s, "  PID NAME            PRIO STATE    CPU   "
			      "SWITCHES WHERE\n");
	else if (i <= rows->nr)
		print_row(s, &rows->row[i - 1]);
	else if (i == rows->nr + 1 && rows->left_out)
		seq_printf(s, "and %u more\n", rows->left_out);
	else
		return 0;
	return 1;
}
CTL_FILE(tasks, .path = "/proc/tasks", .open = tasks_open,
	 .release = tasks_release, .read = tasks_read);

static int cmd_ps(struct sink *out, int argc, char **argv)
{
	if (argc > 1)
		return shell_error(-EINVAL, "ps", "%s: takes no arguments",
				   argv[1]);
	return shell_copy_file(out, "ps", "/proc/tasks");
}
SHELL_CMD(ps, "ps", "", "list tasks and where each one stands", cmd_ps);

/* ---- cpus ---- */

static const char *running_name(const struct task_rows *rows, unsigned int cpu)
{
	for (unsigned int i = 0; i < rows->nr; i++)
		if (rows->row[i].running && rows->row[i].cpu == cpu)
			return rows->row[i].name;
	return "-";
}

static u64 irqs_of(const struct cpu *c)
{
	u64 sum = 0;

	for (unsigned int k = 0; k < NR_IRQ_KINDS; k++)
		sum += c->irq_counts[k];
	return sum;
}

static int print_cpu(struct sink *out, unsigned int i, const char *running)
{
	struct cpu *c = &cpus[i];
	irq_state_t irq = spin_lock(&c->rq.lock);
	unsigned int ready = c->rq.nr_ready;
	u64 switches = c->rq.switches;

	spin_unlock(&c->rq.lock, irq);
	return sink_printf(out, "%3u %5u %-7s %-15s %5u %10llu %10llu\n", i,
			   c->hwid.id,
			   cpus_online & (1u << i) ? "online" : "offline",
			   running, ready, (unsigned long long)switches,
			   (unsigned long long)irqs_of(c));
}

static int cmd_cpus(struct sink *out, int argc, char **argv)
{
	struct task_rows *rows;
	int err;

	if (argc > 1)
		return shell_error(-EINVAL, "cpus", "%s: takes no arguments",
				   argv[1]);
	rows = snapshot_tasks();
	if (!rows)
		return shell_error(-ENOMEM, "cpus", "out of memory");
	err = sink_printf(out, "CPU  HWID STATE   RUNNING         READY   "
			       "SWITCHES       IRQS\n");
	for (unsigned int i = 0; i < nr_cpus && !err; i++)
		err = print_cpu(out, i, running_name(rows, i));
	kfree(rows);
	return err;
}
SHELL_CMD(cpus, "cpus", "", "list CPUs, what each runs and how much it did",
	  cmd_cpus);
