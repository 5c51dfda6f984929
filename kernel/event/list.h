/* SPDX-License-Identifier: MIT */
/*
 * All events. Each is its fields and one EVENT():
 *
 *	FIELDS_name(F)	F(KIND, field) for each field of the record, in order. The kinds are in
 *			tracer/events/fields.h
 *	system, name	as in the folder events/
 *	params, args	of trace_NAME(), and the same without types
 *	fill		stores into the record, which is *e
 *	text		the text in `trace`: {field} stands for the field's value,
 *			{field:%x} for the value in that format, {a-b} for a difference
 *
 * Fields and texts are Linux's where Linux has the event, because the plugins of trace-cmd
 * and KernelShark look for them by name (include/trace/events of Linux 6.1). Two files
 * include this one, each with its own EVENT(): event.h makes the calls, and
 * tracer/events/events.c the functions that they call. So it has no include guard.
 */

/* ---- sched ---- */

#define FIELDS_sched_switch(F)                                                 \
	F(COMM, prev_comm)                                                     \
	F(PID, prev_pid)                                                       \
	F(INT, prev_prio)                                                      \
	F(STATE, prev_state)                                                   \
	F(COMM, next_comm) F(PID, next_pid) F(INT, next_prio)
EVENT(
	sched, sched_switch, (const struct task *prev, const struct task *next),
	(prev, next),
	{
		event_comm(e->prev_comm, prev);
		e->prev_pid = prev->pid;
		e->prev_prio = prev->prio;
		e->prev_state = event_task_state(prev);
		event_comm(e->next_comm, next);
		e->next_pid = next->pid;
		e->next_prio = next->prio;
	},
	"prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} "
	"prev_state={prev_state} ==> next_comm={next_comm} next_pid={next_pid} "
	"next_prio={next_prio}")

#define FIELDS_sched_wakeup(F)                                                 \
	F(COMM, comm) F(PID, pid) F(INT, prio) F(INT, target_cpu)
EVENT(
	sched, sched_wakeup, (const struct task *t, unsigned int cpu), (t, cpu),
	{
		event_comm(e->comm, t);
		e->pid = t->pid;
		e->prio = t->prio;
		e->target_cpu = cpu;
	},
	"comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:%03d}")

#define FIELDS_sched_migrate_task(F)                                           \
	F(STRING, comm)                                                        \
	F(PID, pid) F(INT, prio) F(INT, orig_cpu) F(INT, dest_cpu)
EVENT(
	sched, sched_migrate_task,
	(const struct task *t, unsigned int from, unsigned int to),
	(t, from, to),
	{
		e->comm = event_string(d, sizeof(*e), event_name(t));
		e->pid = t->pid;
		e->prio = t->prio;
		e->orig_cpu = from;
		e->dest_cpu = to;
	},
	"comm={comm} pid={pid} prio={prio} orig_cpu={orig_cpu} "
	"dest_cpu={dest_cpu}")

#define FIELDS_sched_process_fork(F)                                           \
	F(STRING, parent_comm)                                                 \
	F(PID, parent_pid) F(STRING, child_comm) F(PID, child_pid)
EVENT(
	sched, sched_process_fork,
	(const struct task *parent, const struct task *child), (parent, child),
	{
		e->parent_comm =
			event_string(d, sizeof(*e), event_name(parent));
		e->parent_pid = parent->pid;
		e->child_comm = event_string(d, sizeof(*e), event_name(child));
		e->child_pid = child->pid;
	},
	"comm={parent_comm} pid={parent_pid} child_comm={child_comm} "
	"child_pid={child_pid}")

#define FIELDS_sched_process_exit(F)                                           \
	F(COMM, comm) F(PID, pid) F(INT, prio) F(BOOL, group_dead)
EVENT(
	sched, sched_process_exit, (const struct task *t), (t),
	{
		event_comm(e->comm, t);
		e->pid = t->pid;
		e->prio = t->prio;
		e->group_dead = true; /* a task has no threads */
	},
	"comm={comm} pid={pid} prio={prio} group_dead={group_dead}")

/* ---- irq, ipi ---- */

#define FIELDS_irq_handler_entry(F) F(INT, irq) F(STRING, name)
EVENT(
	irq, irq_handler_entry, (int irq, const char *name), (irq, name),
	{
		e->irq = irq;
		e->name = event_string(d, sizeof(*e), name);
	},
	"irq={irq} name={name}")

#define FIELDS_irq_handler_exit(F) F(INT, irq) F(HANDLED, ret)
EVENT(
	irq, irq_handler_exit, (int irq), (irq),
	{
		e->irq = irq;
		e->ret = 1;
	},
	"irq={irq} ret={ret}")

#define FIELDS_ipi_raise(F) F(CPUS, target_cpus) F(REASON, reason)
EVENT(
	ipi, ipi_raise, (cpumask_t cpus, const char *reason), (cpus, reason),
	{
		e->target_cpus = event_cpus(d, sizeof(*e), cpus);
		e->reason = reason;
	},
	"target_mask={target_cpus} ({reason})")

#define FIELDS_ipi_entry(F) F(REASON, reason)
EVENT(
	ipi, ipi_entry, (const char *reason), (reason), { e->reason = reason; },
	"({reason})")

#define FIELDS_ipi_exit(F) F(REASON, reason)
EVENT(
	ipi, ipi_exit, (const char *reason), (reason), { e->reason = reason; },
	"({reason})")

/* ---- timer: times are microseconds since boot, as nopl has no jiffies ---- */

#define FIELDS_timer_start(F)                                                  \
	F(POINTER, timer)                                                      \
	F(FUNCTION, function)                                                  \
	F(ULONG, expires) F(ULONG, bucket_expiry) F(ULONG, now) F(UINT, flags)
EVENT(
	timer, timer_start, (const struct timer *t, unsigned int cpu), (t, cpu),
	{
		e->timer = t;
		e->function = t->fn;
		e->expires = event_time(t->deadline);
		e->bucket_expiry = e->expires;
		e->now = event_time(arch_clock());
		e->flags = cpu;
	},
	"timer={timer} function={function} expires={expires} "
	"[timeout={expires-now:%ld}] bucket_expiry={bucket_expiry} cpu={flags} "
	"idx=0 flags=")

#define FIELDS_timer_expire_entry(F)                                           \
	F(POINTER, timer) F(ULONG, now) F(FUNCTION, function) F(ULONG, baseclk)
EVENT(
	timer, timer_expire_entry, (const struct timer *t, u64 clock),
	(t, clock),
	{
		e->timer = t;
		e->now = event_time(arch_clock());
		e->function = t->fn;
		e->baseclk = event_time(clock);
	},
	"timer={timer} function={function} now={now} baseclk={baseclk}")

#define FIELDS_timer_expire_exit(F) F(POINTER, timer)
EVENT(
	timer, timer_expire_exit, (const struct timer *t), (t),
	{ e->timer = t; }, "timer={timer}")

/* ---- kmem: there are no flags, nodes and migrate types, so these are 0 or -1 ---- */

#define FIELDS_kmalloc(F)                                                      \
	F(CALLER, call_site)                                                   \
	F(CPOINTER, ptr)                                                       \
	F(SIZE, bytes_req) F(SIZE, bytes_alloc) F(ULONG, gfp_flags) F(INT, node)
EVENT(
	kmem, kmalloc,
	(unsigned long site, const void *p, size_t size, size_t room),
	(site, p, size, room),
	{
		e->call_site = site;
		e->ptr = p;
		e->bytes_req = size;
		e->bytes_alloc = room;
		e->gfp_flags = 0;
		e->node = -1;
	},
	"call_site={call_site} ptr={ptr} bytes_req={bytes_req} "
	"bytes_alloc={bytes_alloc} gfp_flags={gfp_flags:%lx} node={node} "
	"accounted=false")

#define FIELDS_kfree(F) F(CALLER, call_site) F(CPOINTER, ptr)
EVENT(
	kmem, kfree, (unsigned long site, const void *p), (site, p),
	{
		e->call_site = site;
		e->ptr = p;
	},
	"call_site={call_site} ptr={ptr}")

#define FIELDS_mm_page_alloc(F)                                                \
	F(ULONG, pfn) F(UINT, order) F(ULONG, gfp_flags) F(INT, migratetype)
EVENT(
	kmem, mm_page_alloc, (unsigned long pfn, unsigned int order),
	(pfn, order),
	{
		e->pfn = pfn;
		e->order = order;
		e->gfp_flags = 0;
		e->migratetype = 0;
	},
	"page={pfn:%lx} pfn={pfn:0x%lx} order={order} "
	"migratetype={migratetype} gfp_flags={gfp_flags:%lx}")

#define FIELDS_mm_page_free(F) F(ULONG, pfn) F(UINT, order)
EVENT(
	kmem, mm_page_free, (unsigned long pfn, unsigned int order),
	(pfn, order),
	{
		e->pfn = pfn;
		e->order = order;
	},
	"page={pfn:%lx} pfn={pfn:0x%lx} order={order}")

/* ---- nopl: the patching itself, and CPUs that come and go ---- */

#define FIELDS_patch_batch(F) F(REASON, strategy) F(UINT, on) F(UINT, off)
EVENT(
	nopl, patch_batch,
	(const char *strategy, unsigned int on, unsigned int off),
	(strategy, on, off),
	{
		e->strategy = strategy;
		e->on = on;
		e->off = off;
	},
	"strategy={strategy} on={on} off={off}")

#define FIELDS_patch_step(F) F(REASON, step) F(UINT, sites)
EVENT(
	nopl, patch_step, (const char *step, unsigned int sites), (step, sites),
	{
		e->step = step;
		e->sites = sites;
	},
	"step={step} sites={sites}")

#define FIELDS_patch_sync(F) F(UINT, sites)
EVENT(
	nopl, patch_sync, (unsigned int sites), (sites), { e->sites = sites; },
	"sites={sites}")

#define FIELDS_patch_trap(F) F(CALLER, ip) F(BOOL, on)
EVENT(
	nopl, patch_trap, (unsigned long ip, bool on), (ip, on),
	{
		e->ip = ip;
		e->on = on;
	},
	"ip={ip} on={on}")

#define FIELDS_cpu_up(F) F(UINT, cpu)
EVENT(
	nopl, cpu_up, (unsigned int cpu), (cpu), { e->cpu = cpu; }, "cpu={cpu}")

#define FIELDS_cpu_down(F) F(UINT, cpu)
EVENT(
	nopl, cpu_down, (unsigned int cpu), (cpu), { e->cpu = cpu; },
	"cpu={cpu}")

/* ---- signal: nopl has none, and a task that is killed ends as by one ---- */

#define FIELDS_signal_generate(F)                                              \
	F(INT, sig)                                                            \
	F(INT, errno)                                                          \
	F(INT, code)                                                           \
	F(COMM, comm) F(PID, pid) F(INT, group) F(INT, result)
EVENT(
	signal, signal_generate, (int sig, const struct task *t), (sig, t),
	{
		e->sig = sig;
		e->errno = 0;
		e->code = 0x80; /* SI_KERNEL: the kernel sends it */
		event_comm(e->comm, t);
		e->pid = t->pid;
		e->group = 0;
		e->result = 0; /* delivered */
	},
	"sig={sig} errno={errno} code={code} comm={comm} pid={pid} grp={group} "
	"res={result}")
