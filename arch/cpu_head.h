/* SPDX-License-Identifier: MIT */
/*
 * The part of struct cpu that assembly uses: offsets and struct in one place.
 * The port's CPU register (gs base, tp, gp) points at it for the life of the
 * CPU. A task that moves to another CPU must come back with that CPU's value,
 * so trap returns and context switches never restore this register.
 */
#ifndef ARCH_CPU_HEAD_H
#define ARCH_CPU_HEAD_H

/*
 * preempt_count, one 32-bit word:
 *   bits 0..7   depth of preempt_disable()
 *   bits 8..11  depth of interrupts being handled
 *   bit  12     in an NMI
 *   bit  15     a task switch is wanted (need_resched)
 * The entry trampoline copies its low 16 bits into the event, bit 14 replaced by
 * "interrupts were off" and bit 13 by "returned" (arch/ring_event.h), so no other
 * bit may be used.
 */
#define PREEMPT_DEPTH_MASK 0xff
#define PREEMPT_IRQ_ONE 0x100
#define PREEMPT_IRQ_MASK 0xf00
#define PREEMPT_NMI 0x1000
#define PREEMPT_RESCHED 0x8000

/* A value of ring.calls: no call is recorded, and C code need not hear of any. */
#define RING_PASS 1

/* Byte offsets into struct frame_kept, and how many of them a CPU has. */
#define FRAMES_KEPT 1024
#define FRAME_KEPT_SHIFT 3
#define FRAME_KEPT_SIZE (1 << FRAME_KEPT_SHIFT)
#define FRAME_KEPT_IP 0
#define FRAME_KEPT_CFA 4
#define FRAME_KEPT_SLOT 6

/* Bits in trace_in_c (arch/arch_trace.h): a power of two. */
#define TRACE_IN_C_BITS 4096

/* Byte offsets into struct cpu_head. */
#define CPU_HEAD_SELF 0
#define CPU_HEAD_CURRENT __SIZEOF_POINTER__
#define CPU_HEAD_RING_BASE (2 * __SIZEOF_POINTER__)
#define CPU_HEAD_RING_CUR (2 * __SIZEOF_POINTER__ + 8)
#define CPU_HEAD_RING_CALLS (4 * __SIZEOF_POINTER__ + 8)
#define CPU_HEAD_RING_GRAPH (5 * __SIZEOF_POINTER__ + 8)
#define CPU_HEAD_TEXT (6 * __SIZEOF_POINTER__ + 8)
#define CPU_HEAD_SCRATCH (7 * __SIZEOF_POINTER__ + 8)
#define CPU_HEAD_TRAP_STACK (11 * __SIZEOF_POINTER__ + 8)
#define CPU_HEAD_FRAMES (12 * __SIZEOF_POINTER__ + 8)
#define CPU_HEAD_PREEMPT (13 * __SIZEOF_POINTER__ + 8)
#define CPU_HEAD_INDEX (13 * __SIZEOF_POINTER__ + 12)

#ifndef __ASSEMBLER__
#include <kernel/types.h>

struct task;

/* Where the next entry of a ring goes. */
struct ring_place {
	u64 base;  /* arch_clock() that the page's times count from */
	char *cur; /* the next free 12-byte slot */
	/* The end of the page's slots, for events. It is equal to or below cur whenever C has to
	 * decide: page full, CPU masked, tracing off, already inside the tracer. */
	char *end;
	/* The same for trace_entry_ring. RING_PASS while no tracer runs that records with it: a
	 * task may have been preempted there under an earlier tracer. */
	char *calls;
	/* The same for function_graph's trampolines. Also NULL while trace_ops is not
	 * function_graph's own, or function_graph has limits. */
	char *graph;
};

/*
 * Where a function's frame is at its site. A CPU keeps the frames that function_graph needed
 * last, each at the place that ip / FRAME_KEPT_SIZE says. The trampolines and returns.c use it with
 * interrupts off, so that no other task of the CPU sees half of one.
 */
struct frame_kept {
	u32 ip;	 /* the low 32 bits of the return address of the site's call */
	s16 cfa; /* the CFA, and */
	s16 slot; /* where the return address lies: both less the stack pointer. Negative: it
		   * is in the link register */
};

struct cpu_head {
	struct cpu_head *self;
	struct task *current;
	struct ring_place ring; /* of the ring that the entry trampoline writes */
	unsigned long text;	/* address of _text, to make offsets from */
	unsigned long scratch[4];  /* the port's trap entry */
	unsigned long trap_stack;  /* top of this CPU's emergency stack */
	struct frame_kept *frames; /* FRAMES_KEPT of them */
	u32 preempt_count;
	u32 index; /* CPU index */
};

static_assert(offsetof(struct cpu_head, self) == CPU_HEAD_SELF, "asm");
static_assert(offsetof(struct cpu_head, current) == CPU_HEAD_CURRENT, "asm");
static_assert(offsetof(struct cpu_head, ring.cur) == CPU_HEAD_RING_CUR, "asm");
static_assert(offsetof(struct cpu_head, ring.calls) == CPU_HEAD_RING_CALLS,
	      "asm");
static_assert(offsetof(struct cpu_head, scratch) == CPU_HEAD_SCRATCH, "asm");
static_assert(offsetof(struct cpu_head, trap_stack) == CPU_HEAD_TRAP_STACK,
	      "asm");
static_assert(offsetof(struct cpu_head, ring.graph) == CPU_HEAD_RING_GRAPH,
	      "asm");
static_assert(offsetof(struct cpu_head, text) == CPU_HEAD_TEXT, "asm");
static_assert(offsetof(struct cpu_head, frames) == CPU_HEAD_FRAMES, "asm");
static_assert(offsetof(struct cpu_head, ring.base) == CPU_HEAD_RING_BASE,
	      "asm");
static_assert(offsetof(struct cpu_head, preempt_count) == CPU_HEAD_PREEMPT,
	      "asm");
static_assert(offsetof(struct cpu_head, index) == CPU_HEAD_INDEX, "asm");
static_assert(sizeof(struct frame_kept) == FRAME_KEPT_SIZE, "asm");
static_assert(offsetof(struct frame_kept, ip) == FRAME_KEPT_IP, "asm");
static_assert(offsetof(struct frame_kept, cfa) == FRAME_KEPT_CFA, "asm");
static_assert(offsetof(struct frame_kept, slot) == FRAME_KEPT_SLOT, "asm");
#endif
#endif
