/*
 * Return addresses: taken when a function is called, given back when it returns.
 * Nothing is locked and interrupts stay as they were: returns_push().
 */
#include <tracer/graph/returns.h>

#include <kernel/printk.h>
#include <kernel/image/symbols.h>

u32 returns_missed, returns_refused;

void returns_take(unsigned long ip, unsigned long parent, struct trace_ops *ops,
		  unsigned long sp)
{
	struct task *t = current_task();
	u32 depth = READ_ONCE(t->nr_returns);
	struct task_return *r = &t->returns[depth];
	unsigned long cfa, slot;

	if (!returns_plausible(parent) || !unwind_frame(ip, sp, &cfa, &slot)) {
		count_up(&returns_refused);
		return;
	}
	if (depth == TASK_RETURNS) {
		count_up(&returns_missed);
		WRITE_ONCE(t->returns_missed, t->returns_missed + 1);
		return;
	}
	returns_push(t, depth, cfa);
	*r = (struct task_return){
		.ops = ops,
		.ret = parent,
		.ip = ip,
		.cfa = cfa,
	};
	if (!slot)
		slot = sp - arch_link_below;
	if (ops->enter(r, depth))
		WRITE_ONCE(*(unsigned long *)slot, (unsigned long)trace_return);
	else
		WRITE_ONCE(t->nr_returns, depth);
}

void returns_leave_out(struct task *t, u32 nr, u64 ticks, u64 since)
{
	for (u32 i = 0; i < nr; i++) {
		struct task_return *r = &t->returns[i];

		if (r->clock != RETURN_HIDDEN && (s64)(r->clock - since) >= 0)
			r->clock += ticks;
	}
}

void returns_give_back(unsigned long *place)
{
	struct task *t = current_task();
	u32 depth = READ_ONCE(t->nr_returns) - 1;
	struct task_return *r = &t->returns[depth];

	if (depth >= TASK_RETURNS)
		panic("a function returned whose return address nobody took");
	r->ops->leave(r, depth);
	returns_pop(t, depth, place);
}
