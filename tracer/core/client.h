/* SPDX-License-Identifier: MIT */
/*
 * Clients of the tracer: rooms above that core must ask or tell something. Each registers itself,
 * so core names none of them. Every question and every moment stands here once. A client leaves
 * those NULL that do not concern it.
 *
 * Nothing here but `called` and `switched` is called at a call, in a trap or at a switch of tasks.
 */
#ifndef TRACER_CLIENT_H
#define TRACER_CLIENT_H

#include <tracer/core/tracer.h>

/* The needs of a client while it is switched on. */
enum {
	NEED_TASKS = 1, /* names of tasks, and which task a CPU runs */
	NEED_C =
		2, /* every entry goes through C code, which asks whether to write it */
	NEED_APART = 4,	 /* events of other instances than the top level */
	NEED_DUMPER = 8, /* the task that dumps buffers */
	NEED_C_FOR_RETURNS = 16, /* as NEED_C, of function_graph's calls */
	NEED_CALLS = 32, /* C code sees the calls of the sites that it wants */
	NEEDS = 64,	 /* all are below */
};

/* Context of all: a task, trace_mutex held. An error is explained in h. */
struct trace_client {
	const char *name;

	/* Which of the above does it need now? */
	u32 (*needs)(void);

	/* Of the 32 sites of word w, those that must be on. At most CLIENT_HOOKS have it. */
	u32 (*wants)(unsigned int w);
	/* The ops that must take all calls, whichever tracer runs, or NULL. One client at most. */
	struct trace_ops *(*ops)(void);

	/* May a tracer be selected beside it? 0 or an error. */
	int (*allows)(struct ctl_handle *h, const struct tracer *tracer);
	/* The top level gets this tracer: make its memory and labels ready. 0 or an error. */
	int (*prepares)(struct ctl_handle *h, const struct tracer *tracer);
	/* It is this one now, or still, after an error. */
	void (*selected)(const struct tracer *tracer);

	/* Options, lists of pids, triggers or the switch traceoff_on_warning have changed: act on
	 * them. 0, or an error, after which the caller changes them back. */
	int (*settings_changed)(struct ctl_handle *h);

	/* The options that a client keeps a copy of have changed. */
	void (*options_changed)(void);

	/* An instance is going: take back all that acts for it. It still has its options. 0 or an
	 * error, after which the instance stays. */
	int (*instance_leaves)(struct ctl_handle *h,
			       const struct trace_instance *in);
	/* It has no options any more: record nothing for it. Likewise. */
	int (*instance_ends)(struct ctl_handle *h,
			     const struct trace_instance *in);
	/* `trace start` begins anew in an instance, or `trace reset` does, which puts back all else
	 * as it was at boot, too: forget the state that no control file written then holds. 0 or an
	 * error. */
	int (*instance_restarts)(struct ctl_handle *h,
				 const struct trace_instance *in, bool reset);
	/* No CPU uses it any more: forget it. Its rings may be missing. */
	void (*instance_gone)(struct trace_instance *in);

	/* The entries that `trace` shows of the CPUs of mask have been cleared. */
	void (*trace_cleared)(struct trace_instance *in, cpumask_t mask);

	/* The table of sites has grown, so a site has another number (RECORD=runtime). */
	void (*sites_moved)(void);

	/* The caller, in which ip lies, has written a marker to the instance of h. 0 or an error.
	 * Without trace_mutex. */
	int (*marked)(struct ctl_handle *h, const char *text, size_t len,
		      unsigned long ip);

	/* The site's call, which returns to ip, has just been made, and the client needs calls.
	 * Interrupts off, no site, and a PATCH_INDIRECT(clients_called, ...). One client at most
	 * has it. */
	void (*called)(unsigned int site, unsigned long ip);

	/* The CPU changes over from prev to next, which was away for so many ticks of arch_clock(),
	 * or 0 while they count. hook_ip lies in the scheduler. Interrupts off, no site, and a
	 * PATCH_INDIRECT(clients_switched, ...). At most CLIENT_HOOKS have it. */
	void (*switched)(struct task *prev, struct task *next, u64 away,
			 unsigned long hook_ip);
};
#define CLIENT_HOOKS 4

#define TRACE_CLIENT(ident, ...)                                               \
	static const struct trace_client trace_client_##ident REGISTER(        \
		trace_clients) = { .name = #ident, __VA_ARGS__ }
REGISTRY(struct trace_client, trace_clients);

/* Ask or tell all of them. An error ends it. */
u32 clients_need(void);
int clients_allow(struct ctl_handle *h, const struct tracer *tracer);
int clients_settings_changed(struct ctl_handle *h);
void clients_options_changed(void);
int clients_instance_leaves(struct ctl_handle *h,
			    const struct trace_instance *in);
int clients_instance_ends(struct ctl_handle *h,
			  const struct trace_instance *in);
int clients_instance_restarts(struct ctl_handle *h,
			      const struct trace_instance *in, bool reset);
void clients_instance_gone(struct trace_instance *in);
u32 clients_want(unsigned int w);
unsigned int clients_users(unsigned int site);
struct trace_ops *clients_ops(void);
/* The one that must hear of calls, or NULL. And find it: calls are about to go to C. */
extern void (*clients_call_hook)(unsigned int site, unsigned long ip);
void clients_hook_calls(void);
void clients_called(unsigned int site, unsigned long ip);
void clients_trace_cleared(struct trace_instance *in, cpumask_t mask);
void clients_sites_moved(void);
int clients_prepare(struct ctl_handle *h, const struct tracer *tracer);
void clients_selected(const struct tracer *tracer);
int clients_marked(struct ctl_handle *h, const char *text, size_t len);
void clients_switched(struct task *prev, struct task *next, u64 away,
		      unsigned long hook_ip);

#endif
