/* SPDX-License-Identifier: MIT */
/* Conformance of a port with arch.h: traps and their frames, tasks, stack walks. Section 3
 * of the guide. */
#include <arch/arch.h>
#include <arch/arch_lab.h>
#include <arch/conform/conform.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/image/symbols.h>
#include <kernel/image/unwind.h>
#include <kernel/lib/string.h>
#include <kernel/mm/page.h>
#include <kernel/sched/balance.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/task.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

static void conform_store_to_null(void *arg)
{
	*(volatile u32 *)arg = 0;
}

static noinline unsigned int recurse_with_pad(unsigned int depth)
{
	volatile unsigned int pad[32];

	pad[depth % 32] = depth;
	return depth ? recurse_with_pad(depth - 1) + pad[depth % 32] : pad[0];
}

/* Interrupts are off: one that overflows a stack is no task that can be killed. */
static void overflow_stack(void *arg)
{
	arch_irq_disable();
	recurse_with_pad((unsigned long)arg);
}

/* A fault on any CPU reaches trap_fault(), stack overflow included. */
KTEST(arch_trap_init, "arch.trap_init")
{
	unsigned int c;

	for_each_online_cpu (c) {
		KEXPECT_EQ(t, conform_victim(conform_store_to_null, NULL, c),
			   -EFAULT);
		if (arch_protects_text)
			KEXPECT_EQ(t,
				   conform_victim(
					   overflow_stack,
					   (void *)(TASK_STACK_SIZE / 64), c),
				   -EFAULT);
	}
}

#define NOWHERE 16   /* a stack pointer where no stack is */
#define ABI_AREA 256 /* what an ABI may have between it and the frame's end */

/* Interrupts are off. Otherwise an interrupt could preempt the task here, and the registers that
 * it saved would be lost. */
static void lose_stack(void *arg)
{
	(void)arg;
	arch_irq_disable();
	lab_lose_stack((void *)NOWHERE);
}

/* A trap does not store where the stack pointer happens to point. Its frame has that pointer. */
KTEST(arch_trap_lost, "arch.trap_init.lost_stack")
{
	struct task_fault fault = { 0 };
	struct task *v;
	unsigned int c;

	for_each_online_cpu (c)
		KEXPECT_EQ(t, conform_victim(lose_stack, NULL, c), -EFAULT);
	v = task_create_watched("victim", lose_stack, &fault);
	KASSERT(t, v);
	KEXPECT_EQ(t, task_join(v), -EFAULT);
	KEXPECT(t, fault.sp - NOWHERE <= ABI_AREA);
}

/* ---- registers ---- */

struct keeper {
	unsigned long seed;
	u32 turns;
	unsigned int lost;
	bool stop;
};

/* Holds a value in each register, again and again, until one is lost. */
static void keep_registers(void *arg)
{
	struct keeper *k = arg;
	u32 seed = k->seed;

	while (!READ_ONCE(k->stop) && !k->lost) {
		k->lost =
			lab_registers(1 + ktest_random(&seed) % 3000, k->seed);
		WRITE_ONCE(k->turns, k->turns + 1);
	}
}

#define DISTURBANCES 60

/*
 * The keepers' CPU is interrupted, and switches to this task, at any instruction. On a slow machine
 * every sleep may be over before a keeper has run: then they get longer until both have.
 */
static void disturb_keepers(void *arg)
{
	const struct keeper *k = arg;
	u32 seed = 1;

	for (int i = 0; i < DISTURBANCES || !READ_ONCE(k[0].turns) ||
			!READ_ONCE(k[1].turns);
	     i++)
		task_sleep(ktest_random(&seed) %
			   ((1 + i / DISTURBANCES) * 40 * NSEC_PER_USEC));
}

static volatile unsigned long unmapped = 27; /* each low bit counts */

static void store_to_unmapped(void *arg)
{
	(void)arg;
	*(volatile u8 *)unmapped = 0;
}

KTEST(arch_fault_unit, "arch.fault_unit")
{
	struct task_fault fault = { 0 };
	struct task *v =
		task_create_watched("victim", store_to_unmapped, &fault);

	KASSERT(t, v);
	KEXPECT_EQ(t, task_join(v), -EFAULT);
	KEXPECT(t, arch_fault_unit == 1 || arch_fault_unit == PAGE_SIZE);
	KEXPECT_EQ(t, fault.addr, ALIGN_DOWN(unmapped, arch_fault_unit));
}

/*
 * Interrupts and preemptions keep every register. Two tasks with different values, and
 * a third one that preempts them, share each CPU.
 */
KTEST(arch_trap_registers, "arch.trap_init.registers")
{
	struct keeper k[2] = { { .seed = 0x12345678 }, { .seed = 0x600dbeef } };
	struct task *task[2], *third;
	unsigned int c;

	for_each_online_cpu (c) {
		for (int i = 0; i < 2; i++) {
			k[i] = (struct keeper){ .seed = k[i].seed };
			task[i] = task_create("keeper", PRIO_LOW, 1u << c,
					      keep_registers, &k[i]);
		}
		third = task_create("third", PRIO_HIGH, 1u << c,
				    disturb_keepers, k);
		task_join(third);
		for (int i = 0; i < 2; i++) {
			WRITE_ONCE(k[i].stop, true);
			task_join(task[i]);
			if (k[i].lost)
				ktest_fail(t, __FILE__, __LINE__,
					   arch_register_names[k[i].lost]);
		}
	}
}

/* ---- frames: a timer finds a task in a known function ---- */

static struct found {
	struct timer timer;
	struct task *task;
	void (*look)(struct trap_frame *f);
	bool done;
	unsigned long pc, boundary;
	struct unwind_regs regs;
	unsigned int n;
	unsigned long pcs[16];
} found;

/* There is no arch_cpu_relax() in it, where interrupts would come more often. */
static noinline void spin_in_here(void)
{
	/*
	 * The loop's length changes: under -icount ticks may fall in step with a loop,
	 * and would find the callee each time.
	 */
	for (unsigned int turn = 0; !task_should_stop(); turn++)
		for (unsigned int n = turn % 32; n--;)
			asm volatile("");
}

static void spin_outer(void *arg)
{
	(void)arg;
	spin_in_here();
	asm volatile(""); /* no tail call */
}

static bool lies_in(unsigned long pc, void (*fn)(void))
{
	struct symbol a, b;

	return symbol_at(pc, &a) && symbol_at((unsigned long)fn, &b) &&
	       a.start == b.start;
}

static void find_spinning_frame(struct timer *timer)
{
	struct trap_frame *f = irq_frame();

	if (arch_current() != found.task ||
	    !lies_in(arch_frame_pc(f), spin_in_here)) {
		timer_start(timer, 100 * NSEC_PER_USEC);
		return;
	}
	found.look(f);
	WRITE_ONCE(found.done, true);
}

/* Interrupt spin_in_here() on CPU 0, look at the frame, end the task. */
static int interrupt_victim(struct ktest_run *t,
			    void (*look)(struct trap_frame *f))
{
	task_set_affinity(current_task(), 1);
	found = (struct found){ .look = look };
	found.task = task_create_expendable("spinner", PRIO_LOW, 1, spin_outer,
					    NULL);
	timer_setup(&found.timer, find_spinning_frame);
	timer_start(&found.timer, NSEC_PER_MSEC);
	KEXPECT(t, KWAIT(READ_ONCE(found.done)));
	timer_cancel(&found.timer);
	task_set_affinity(current_task(), ~0u);
	task_stop(found.task);
	return task_join(found.task);
}

static void look_at_all(struct trap_frame *f)
{
	found.pc = arch_frame_pc(f);
	found.boundary = arch_frame_boundary(f);
	arch_frame_regs(f, &found.regs);
	found.n = backtrace_get(f, NULL, found.pcs, 16);
}

KTEST(arch_frame_pc, "arch.frame_pc")
{
	KEXPECT_EQ(t, interrupt_victim(t, look_at_all), 0);
	KEXPECT(t, lies_in(found.pc, spin_in_here));
}

/* The boundary is the pc, or the next instruction. */
KTEST(arch_frame_boundary, "arch.frame_boundary")
{
	KEXPECT_EQ(t, interrupt_victim(t, look_at_all), 0);
	KEXPECT(t, found.boundary - found.pc <= 4);
	KEXPECT(t, lies_in(found.boundary, spin_in_here));
}

static noreturn void come_out_here(void)
{
	task_exit(arch_irqs_off() ? 1 : 99);
}

static void divert_frame(struct trap_frame *f)
{
	arch_frame_set_pc(f, (unsigned long)come_out_here);
}

KTEST(arch_frame_set_pc, "arch.frame_set_pc")
{
	KEXPECT_EQ(t, interrupt_victim(t, divert_frame), 99);
}

KTEST(arch_frame_print, "arch.frame_print")
{
	KEXPECT_EQ(t,
		   interrupt_victim(
			   t, (void (*)(struct trap_frame *))arch_frame_print),
		   0);
}

/* ---- unwinding ---- */

/*
 * A walk that begins with a frame shows the pc's function, then that function's caller.
 */
KTEST(arch_frame_regs, "arch.frame_regs")
{
	unsigned long lo, hi;
	struct unwind u;

	unwind_start(&u, NULL, NULL);
	KEXPECT(t, unwind_next(&u));
	KEXPECT(t, lies_in(u.regs.pc, (void (*)(void))ktest_arch_frame_regs));
	KEXPECT_EQ(t, interrupt_victim(t, look_at_all), 0);
	KEXPECT_EQ(t, found.regs.pc, found.pc);
	/* Stacks are whole blocks: the address says which one it is. */
	lo = ALIGN_DOWN(found.regs.sp, PAGE_SIZE << TASK_STACK_ORDER) +
	     PAGE_SIZE;
	hi = lo + TASK_STACK_SIZE;
	KEXPECT(t, found.regs.sp > hi - 1024 && found.regs.sp < hi);
	KASSERT(t, found.n >= 3);
	KEXPECT_EQ(t, found.pcs[0], found.pc);
	KEXPECT(t, lies_in(found.pcs[1], (void (*)(void))spin_outer));
	KEXPECT(t, lies_in(found.pcs[2], (void (*)(void))task_start));
}

/* Does pc lie in this function, or in a part of it that the compiler has split off? */
static bool is_called(unsigned long pc, const char *name)
{
	struct symbol s;
	size_t len = strlen(name);

	return symbol_at(pc, &s) && !strncmp(s.name, name, len) &&
	       (!s.name[len] || s.name[len] == '.');
}

/* The task does not run because it was preempted, so the walk passes a trap frame. */
KTEST(arch_context_regs, "arch.context_regs")
{
	struct task *v = task_create_expendable("spinner", PRIO_LOW, 1,
						spin_outer, NULL);
	unsigned long pcs[16];
	struct symbol s;
	unsigned int n;

	KASSERT(t, symbol_at((unsigned long)spin_in_here, &s));
	task_hold(v, s.start, s.start + s.size);
	KEXPECT(t, task_wait_held(v, KWAIT_NS));
	n = backtrace_get(NULL, v, pcs, 16);
	KEXPECT(t, n >= 6);
	if (n >= 6) {
		/* A wrong stack pointer finds some of them, left there by earlier calls. */
		KEXPECT(t, is_called(pcs[0], "schedule"));
		KEXPECT(t, is_called(pcs[1], "sched_preempt"));
		KEXPECT(t, is_called(pcs[2], "irq_exit"));
		KEXPECT(t, lies_in(pcs[n - 1], (void (*)(void))task_start));
		KEXPECT(t, lies_in(pcs[n - 2], (void (*)(void))spin_outer));
		KEXPECT(t, lies_in(pcs[n - 3], spin_in_here));
	}
	task_stop(v);
	task_join(v);
}

/* Garbage that looks like a stack: addresses of text and of itself. */
static void fill_garbage(unsigned long *stack, unsigned int words, u32 *seed)
{
	for (unsigned int i = 0; i < words; i++)
		switch (ktest_random(seed) % 4) {
		case 0:
			stack[i] = ktest_random(seed);
			break;
		case 1:
			stack[i] = (unsigned long)_text +
				   ktest_random(seed) % (_etext - _text);
			break;
		default:
			stack[i] = (unsigned long)&stack[ktest_random(seed) %
							 words];
		}
}

/*
 * The walk ends, and reads nothing outside of the stack: the page below is a guard
 * page.
 */
KTEST(unwind_garbage, "unwind.garbage")
{
	unsigned long *guard = page_alloc(1);
	unsigned long *stack = guard + PAGE_SIZE / sizeof(long);
	unsigned int words = PAGE_SIZE / sizeof(long), steps;
	u32 seed = 1;

	arch_guard_page(guard, true);
	for (int round = 0; round < 500; round++) {
		struct unwind u = {
			.lo = (unsigned long)stack,
			.hi = (unsigned long)(stack + words),
			.exact = round % 2,
			.has_link = round % 3,
			.task = current_task(),
		};
		fill_garbage(stack, words, &seed);
		u.regs.pc = (unsigned long)_text +
			    ktest_random(&seed) % (_etext - _text);
		u.regs.link = stack[ktest_random(&seed) % words];
		u.regs.alt = stack[ktest_random(&seed) % words];
		u.regs.sp = stack[ktest_random(&seed) % words];
		for (steps = 0; steps < 10000 && unwind_next(&u); steps++)
			;
		KEXPECT(t, steps < 10000);
	}
	arch_guard_page(guard, false);
	page_free(guard, 1);
}

/* ---- tasks ---- */

static struct {
	bool irqs_off;
	unsigned long sp;
	unsigned long outermost;
} first;

static void look_around(void *arg)
{
	unsigned long pcs[16];
	unsigned int n = backtrace_get(NULL, NULL, pcs, 16);

	(void)arg;
	first.irqs_off = arch_irqs_off();
	first.sp = (unsigned long)pcs;
	first.outermost = n ? pcs[n - 1] : 0;
}

KTEST(arch_task_init, "arch.task_init")
{
	struct task *v = task_create("first", PRIO_LOW, ~0u, look_around, NULL);
	unsigned long lo = (unsigned long)v->stack;
	struct symbol s;

	task_join(v);
	KEXPECT(t, !first.irqs_off);
	KEXPECT(t, first.sp > lo && first.sp < lo + TASK_STACK_SIZE);
	KEXPECT(t, first.sp >= lo + TASK_STACK_SIZE - 512);
	/* A stack walk ends in this function. */
	KASSERT(t, symbol_at(first.outermost, &s));
	KEXPECT(t, !strcmp(s.name, "task_start"));
}

struct values {
	bool to_itself;
	bool bad;
};

/* These values are all live, and more than the registers that a call preserves. */
static void keep_values(void *arg)
{
	struct values *v = arg;
	struct task *t = current_task();
	unsigned long x = (unsigned long)arg;
	unsigned long a = x + 1, b = x + 2, c = x + 3, d = x + 4, e = x + 5,
		      f = x + 6, g = x + 7, h = x + 8, i = x + 9, j = x + 10,
		      k = x + 11, l = x + 12;

	for (int n = 0; n < 300; n++) {
		asm volatile(""
			     : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e),
			       "+r"(f));
		asm volatile(""
			     : "+r"(g), "+r"(h), "+r"(i), "+r"(j), "+r"(k),
			       "+r"(l));
		if (v->to_itself) {
			arch_irq_disable();
			arch_switch(t, t);
			arch_irq_enable();
		} else {
			sched_yield();
		}
		a++, b++, c++, d++, e++, f++, g++, h++, i++, j++, k++, l++;
	}
	x += 300;
	v->bad = !(a == x + 1 && b == x + 2 && c == x + 3 && d == x + 4 &&
		   e == x + 5 && f == x + 6 && g == x + 7 && h == x + 8 &&
		   i == x + 9 && j == x + 10 && k == x + 11 && l == x + 12);
}

/* sched_yield() itself keeps some registers. So one task switches to itself, too: nothing but
 * arch_switch() can have lost a value that it misses then. */
KTEST(arch_switch, "arch.switch")
{
	struct values v[5];
	struct task *tasks[5];

	for (int i = 0; i < 5; i++) {
		v[i] = (struct values){ .to_itself = i == 4, .bad = true };
		tasks[i] = task_create("values", PRIO_LOW, i < 2 ? 1 : ~0u,
				       keep_values, &v[i]);
	}
	for (int i = 0; i < 5; i++) {
		task_join(tasks[i]);
		KEXPECT(t, !v[i].bad);
	}
}
