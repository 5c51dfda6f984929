/* SPDX-License-Identifier: MIT */
/*
 * The functions that sites call. On entry: [rsp] the return address into the traced function
 * (ip), [rsp+8] the traced function's own (parent). All registers but r11 may
 * carry something: arguments, al the number of vector arguments, r10 the
 * static chain, the others the caller's. Flags carry nothing.
 */
#include <arch/asm.h>
#include <arch/cpu_head.h>
#include <arch/ring_event.h>
#include <arch/task_head.h>
#include <regs.h>

	.text

.macro push reg
	pushq %\reg
	.cfi_adjust_cfa_offset 8
.endm

.macro pop reg
	popq %\reg
	.cfi_adjust_cfa_offset -8
.endm

/* Bytes that call_begin pushes. */
#define SAVED 64

/*
 * Save the registers that C may change, and load the first two arguments.
 * above: bytes on the stack above ip.
 */
.macro call_begin above
	.irp reg, rax, rcx, rdx, rsi, rdi, r8, r9, r10
	push \reg
	.endr
	movq SAVED + \above(%rsp), %rdi	/* ip */
	movq SAVED + \above + 8(%rsp), %rsi	/* parent */
.endm

.macro call_end
	.irp reg, r10, r9, r8, rdi, rsi, rdx, rcx, rax
	pop \reg
	.endr
.endm

/*
 * Compiled calls, before boot has turned them into NOPs. With RECORD=runtime the
 * calls tell the tracer of their sites. NMIs are left out: they may come
 * while it takes one down.
 */
	.globl __fentry__
	.type __fentry__, @function
__fentry__:
FUNCTION(trace_stub)
#ifdef RECORD_RUNTIME
	testl $PREEMPT_NMI, %gs:CPU_HEAD_PREEMPT
	jnz 1f
	call_begin 0
	call site_seen
	call_end
1:
#endif
	ret
END(trace_stub)
	.size __fentry__, . - __fentry__

/* One load of trace_ops: entry and func then belong together. r11 = ops. */
FUNCTION(trace_entry)
	movq trace_ops(%rip), %r11
	jmp *(%r11)
END(trace_entry)

FUNCTION(trace_entry_off)
	ret
END(trace_entry_off)

/*
 * One event into this CPU's ring. Interrupts are off, because one that came
 * between reading ring.cur and advancing it would write into the same slot, an
 * NMI does come, and is sent to C, which drops it.
 */
FUNCTION(trace_entry_ring)
	pushfq
	.cfi_adjust_cfa_offset 8
	cli
7:
	push rax
	push rcx
	push rdx
	.cfi_remember_state
	movq %gs:CPU_HEAD_RING_CUR, %rcx
	cmpq %gs:CPU_HEAD_RING_CALLS, %rcx
	jae trace_ring_leave
	movl %gs:CPU_HEAD_PREEMPT, %r11d
	testl $PREEMPT_NMI, %r11d
	jnz trace_ring_leave
	rdtsc
	shlq $32, %rdx
	orq %rdx, %rax
	subq %gs:CPU_HEAD_RING_BASE, %rax
	movq %rax, %rdx
	shrq $32, %rdx
	jnz trace_ring_leave
	movl %eax, (%rcx)
	movl %r11d, %edx
	testl $RFLAGS_IF, 24(%rsp)
	jnz 1f
	orb $RING_IRQS_OFF, %dh
1:	movl 32(%rsp), %eax
	subl %gs:CPU_HEAD_TEXT, %eax
	shll $8, %eax
	movb %dl, %al
	movl %eax, 4(%rcx)
	movl 40(%rsp), %eax
	subl %gs:CPU_HEAD_TEXT, %eax
	shll $8, %eax
	movb %dh, %al
	movl %eax, 8(%rcx)
	addq $RING_EVENT_SIZE, %rcx
	movq %rcx, %gs:CPU_HEAD_RING_CUR
	pop rdx
	pop rcx
	pop rax
	popfq
	.cfi_adjust_cfa_offset -8
8:	ret

/* trace_ring_slow(ip, parent, context), interrupts still off. */
trace_ring_leave:
	.cfi_restore_state
9:	cmpq $RING_PASS, %gs:CPU_HEAD_RING_CALLS
	pop rdx
	pop rcx
	pop rax
	je trace_ring_pass
	call_begin 8			/* the flags */
	movzwl %gs:CPU_HEAD_PREEMPT, %edx
	testl $RFLAGS_IF, SAVED(%rsp)
	jnz 1f
	orl $RING_CONTEXT_IRQS_OFF, %edx
1:	subq $8, %rsp			/* 16-byte alignment */
	.cfi_adjust_cfa_offset 8
	call trace_ring_slow
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	call_end
	popfq
	.cfi_adjust_cfa_offset -8
10:	ret

trace_ring_pass:
	.cfi_adjust_cfa_offset 8
11:	popfq
	.cfi_adjust_cfa_offset -8
12:	ret
END(trace_entry_ring)

/* ops->func(ip, parent, ops) */
FUNCTION(trace_entry_call)
	call_begin 0
	movq %r11, %rdx
	call *8(%r11)
	call_end
	ret
END(trace_entry_call)

/* bt takes any bit of the array that its first operand counts to. */
FUNCTION(trace_entry_choose)
	push rax
	movl 8(%rsp), %eax		/* ip */
	shrl $2, %eax
	andl $(TRACE_IN_C_BITS - 1), %eax
	btl %eax, trace_in_c(%rip)
	pop rax
	jnc trace_entry_ring
	jmp trace_entry_call
END(trace_entry_choose)

/* trace_take_return(ip, parent, ops, sp): sp is the stack pointer that the site's function
 * has when the trampoline has returned to it. */
FUNCTION(trace_entry_return)
	call_begin 0
	movq %r11, %rdx
	leaq SAVED + 8(%rsp), %rcx
	call trace_take_return
	call_end
	ret
END(trace_entry_return)

#define TAKEN(field, task, place) TASK_TAKEN + RETURN_##field(task, place)

/*
 * One call of function_graph. An NMI may take a return of its own at any instruction: so
 * the count goes up before the rest is written, and the CFA is written twice, for a walk
 * finds it as soon as the count is up. A depth that the task has from an earlier session
 * counts no more: C begins anew.
 *
 * On the stack: rdi, rsi, rdx, rcx, rax, the flags, ip, parent.
 */
FUNCTION(trace_entry_graph)
	pushfq
	.cfi_adjust_cfa_offset 8
	cli
13:
	.irp reg, rax, rcx, rdx, rsi, rdi
	push \reg
	.endr
	.cfi_remember_state
	movq %gs:CPU_HEAD_RING_CUR, %rcx
	cmpq %gs:CPU_HEAD_RING_GRAPH, %rcx
	jae 2f
	testl $PREEMPT_NMI, %gs:CPU_HEAD_PREEMPT
	jnz 2f
	movq 56(%rsp), %rdi
	cmpq $_text, %rdi		/* as returns_plausible() */
	jb 2f
	cmpq $_etext, %rdi
	jae 2f
	rdtsc
	shlq $32, %rdx
	orq %rdx, %rax
	movq %rax, %rdx
	subq %gs:CPU_HEAD_RING_BASE, %rdx
	movl %edx, (%rcx)
	shrq $32, %rdx
	jnz 2f
	movq %gs:CPU_HEAD_CURRENT, %rdx
	movl graph_session(%rip), %esi
	cmpl %esi, TASK_GRAPH_SESSION(%rdx)
	jne 2f
	movl TASK_NR_RETURNS(%rdx), %esi
	cmpl $TASK_RETURNS, %esi
	je 2f
	shlq $RETURN_SHIFT, %rsi
	leaq 64(%rsp), %rdi
	movq %rdi, TAKEN(CFA, %rdx, %rsi)
	incl TASK_NR_RETURNS(%rdx)
	movq %rdi, TAKEN(CFA, %rdx, %rsi)
	movq %r11, TAKEN(OPS, %rdx, %rsi)
	movq %rax, TAKEN(CLOCK, %rdx, %rsi)
	movq 56(%rsp), %rdi
	movq %rdi, TAKEN(RET, %rdx, %rsi)
	movq 48(%rsp), %rax
	movq %rax, TAKEN(IP, %rdx, %rsi)
	movl %gs:CPU_HEAD_PREEMPT, %edi
	subl %gs:CPU_HEAD_TEXT, %eax
	shll $8, %eax
	movb %dil, %al
	movl %eax, 4(%rcx)
	movl TASK_GRAPH_DEPTH(%rdx), %eax
	incl TASK_GRAPH_DEPTH(%rdx)
	shll $8, %eax
	orl $(RING_TYPE_ENTRY << 8), %eax
	shrl $8, %edi
	testl $RFLAGS_IF, 40(%rsp)
	jnz 1f
	orl $RING_IRQS_OFF, %edi
1:	movb %dil, %al
	movl %eax, 8(%rcx)
	addq $RING_EVENT_SIZE, %rcx
	movq %rcx, %gs:CPU_HEAD_RING_CUR
	movq $trace_return, 56(%rsp)
	.irp reg, rdi, rsi, rdx, rcx, rax
	pop \reg
	.endr
	popfq
	.cfi_adjust_cfa_offset -8
14:	ret

2:
	.cfi_restore_state
15:
	.irp reg, rdi, rsi, rdx, rcx, rax
	pop \reg
	.endr
	popfq
	.cfi_adjust_cfa_offset -8
16:	jmp trace_entry_return
END(trace_entry_graph)

/*
 * A traced function returns here, with its result in rax and rdx. The CFA is that
 * of the function. Until the place of the way back is on the stack, the walker finds
 * the return address among the task's taken returns: .cfi_val_offset stands for
 * UNWIND_TAKEN (kernel/image/unwind.h). From then on it finds trace_return in that
 * place, and looks there too, until the real address is stored in it.
 */
FUNCTION(trace_return)
	.cfi_def_cfa rsp, 0
	.cfi_val_offset rip, 0
	pushq $trace_return		/* the way back's place */
	.cfi_def_cfa_offset 8
	.cfi_offset rip, -8
	pushfq
	.cfi_adjust_cfa_offset 8
	cli
17:	movq %rax, %r8
	movq %rdx, %r9
	.cfi_remember_state
	movq %gs:CPU_HEAD_RING_CUR, %rcx
	cmpq %gs:CPU_HEAD_RING_GRAPH, %rcx
	jae 2f
	testl $PREEMPT_NMI, %gs:CPU_HEAD_PREEMPT
	jnz 2f
	movq %gs:CPU_HEAD_CURRENT, %rdi
	movl TASK_NR_RETURNS(%rdi), %esi
	decl %esi
	movslq %esi, %r10
	shlq $RETURN_SHIFT, %r10
	movq trace_ops(%rip), %rax
	cmpq %rax, TAKEN(OPS, %rdi, %r10)
	jne 2f				/* other ops must hear of it */
	rdtsc
	shlq $32, %rdx
	orq %rdx, %rax
	movq %rax, %rdx
	subq %gs:CPU_HEAD_RING_BASE, %rdx
	subq TAKEN(CLOCK, %rdi, %r10), %rax
	cmpq %rdx, %rax
	ja 2f				/* the call is older than the page */
	cmpq $RING_TICKS_END, %rax
	jae 2f
	cmpl $0, TASK_RETURNS_MISSED(%rdi)
	jne 2f
	movl %edx, (%rcx)
	shrq $32, %rdx
	jnz 2f
	decl TASK_GRAPH_DEPTH(%rdi)
	shll $RING_DEPTH_BITS, %eax
	orl TASK_GRAPH_DEPTH(%rdi), %eax
	shll $8, %eax
	movl %gs:CPU_HEAD_PREEMPT, %edx
	orb $RING_RETURNED, %dh
	testl $RFLAGS_IF, (%rsp)
	jnz 1f
	orb $RING_IRQS_OFF, %dh
1:	movb %dh, %al
	movl %eax, 8(%rcx)
	movl TAKEN(IP, %rdi, %r10), %eax
	subl %gs:CPU_HEAD_TEXT, %eax
	shll $8, %eax
	movb %dl, %al
	movl %eax, 4(%rcx)
	addq $RING_EVENT_SIZE, %rcx
	movq %rcx, %gs:CPU_HEAD_RING_CUR
	movq TAKEN(RET, %rdi, %r10), %rax
	movq %rax, 8(%rsp)
	movl %esi, TASK_NR_RETURNS(%rdi)
	movq %r9, %rdx
	movq %r8, %rax
	popfq
	.cfi_adjust_cfa_offset -8
18:	ret

2:
	.cfi_restore_state
19:	movq %r9, %rdx
	movq %r8, %rax
	popfq
	.cfi_adjust_cfa_offset -8
20:	push rax
	push rdx
	leaq 16(%rsp), %rdi
	subq $8, %rsp			/* 16-byte alignment */
	.cfi_adjust_cfa_offset 8
	call trace_returned
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	pop rdx
	pop rax
	ret
END(trace_return)

	.globl trampoline_end
trampoline_end:

	/* Where interrupts are off: arch/arch_lab.h. */
	.section .rodata
	.balign 8
	.globl trampoline_masked
trampoline_masked:
	.quad 7b, 8b, 9b, 10b, 11b, 12b, 13b, 14b, 15b, 16b, 17b, 18b, 19b, 20b, 0
