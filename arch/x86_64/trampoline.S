/*
 * What sites call. On entry: [rsp] the return address into the traced function
 * (ip), [rsp+8] the traced function's own (parent). All registers but r11 may
 * carry something: arguments, al the number of vector arguments, r10 the
 * static chain, the others the caller's. Flags carry nothing.
 */
#include <arch/cpu_head.h>
#include <arch/ring_event.h>
#include <regs.h>

	.text
	.globl trampoline_begin
trampoline_begin:

/*
 * Save what C may change, in a way that an unwinder can follow: two frames, one
 * of the traced function, which has none yet, and one of the trampoline.
 * above: bytes on the stack above ip.
 */
.macro call_begin above
	pushq \above + 8(%rsp)		/* parent */
	pushq %rbp
	movq %rsp, %rbp
	pushq \above + 16(%rsp)		/* ip */
	pushq %rbp
	movq %rsp, %rbp
	.irp reg, rax, rcx, rdx, rsi, rdi, r8, r9, r10
	pushq %\reg
	.endr
	movq 8(%rbp), %rdi
	movq 24(%rbp), %rsi
.endm

.macro call_end
	.irp reg, r10, r9, r8, rdi, rsi, rdx, rcx, rax
	popq %\reg
	.endr
	popq %rbp			/* the traced function's frame */
	addq $8, %rsp
	popq %rbp
	addq $8, %rsp
.endm

/*
 * Compiled calls, before boot has turned them into NOPs; with RECORD=runtime the
 * calls are what tells the tracer of its sites. NMIs are left out: they may come
 * while it takes one down.
 */
	.globl __fentry__, trace_stub
	.type __fentry__, @function
	.type trace_stub, @function
__fentry__:
trace_stub:
#ifdef RECORD_RUNTIME
	testl $PREEMPT_NMI, %gs:CPU_HEAD_PREEMPT(8)
	jnz 1f
	call_begin 0
	call site_seen
	call_end
1:
#endif
	ret
	.size __fentry__, . - __fentry__
	.size trace_stub, . - trace_stub

/* One load of trace_ops: entry and func then belong together. r11 = ops. */
	.globl trace_entry
	.type trace_entry, @function
trace_entry:
	movq trace_ops(%rip), %r11
	jmp *(%r11)
	.size trace_entry, . - trace_entry

	.globl trace_entry_off
	.type trace_entry_off, @function
trace_entry_off:
	ret
	.size trace_entry_off, . - trace_entry_off

/*
 * One event into this CPU's ring. Interrupts are off, because one that came
 * between reading ring_cur and advancing it would write into the same slot; an
 * NMI does come, and is sent to C, which drops it.
 */
	.globl trace_entry_ring
	.type trace_entry_ring, @function
trace_entry_ring:
	pushfq
	cli
7:
	pushq %rax
	pushq %rcx
	pushq %rdx
	movq %gs:CPU_HEAD_RING_CUR(8), %rcx
	cmpq %gs:CPU_HEAD_RING_END(8), %rcx
	jae trace_ring_leave
	movl %gs:CPU_HEAD_PREEMPT(8), %r11d
	testl $PREEMPT_NMI, %r11d
	jnz trace_ring_leave
	rdtsc
	shlq $32, %rdx
	orq %rdx, %rax
	subq %gs:CPU_HEAD_RING_BASE(8), %rax
	movq %rax, %rdx
	shrq $32, %rdx
	jnz trace_ring_leave
	movl %eax, (%rcx)
	movl %r11d, %edx
	testl $RFLAGS_IF, 24(%rsp)
	jnz 1f
	orb $RING_IRQS_OFF, %dh
1:	movl 32(%rsp), %eax
	subl %gs:CPU_HEAD_TEXT(8), %eax
	shll $8, %eax
	movb %dl, %al
	movl %eax, 4(%rcx)
	movl 40(%rsp), %eax
	subl %gs:CPU_HEAD_TEXT(8), %eax
	shll $8, %eax
	movb %dh, %al
	movl %eax, 8(%rcx)
	addq $RING_EVENT_SIZE, %rcx
	movq %rcx, %gs:CPU_HEAD_RING_CUR(8)
	popq %rdx
	popq %rcx
	popq %rax
	popfq
8:	ret

/* trace_ring_slow(ip, parent, context), interrupts still off. */
trace_ring_leave:
9:	popq %rdx
	popq %rcx
	popq %rax
	call_begin 8			/* the flags */
	movzwl %gs:CPU_HEAD_PREEMPT(8), %edx
	testl $RFLAGS_IF, 32(%rbp)
	jnz 1f
	orl $RING_CONTEXT_IRQS_OFF, %edx
1:	subq $8, %rsp			/* 16-byte alignment */
	call trace_ring_slow
	addq $8, %rsp
	call_end
	popfq
10:	ret
	.size trace_entry_ring, . - trace_entry_ring

	/* Where interrupts are off: tracer/lab/lab.h. */
	.pushsection .rodata
	.balign 8
	.globl trampoline_masked
trampoline_masked:
	.quad 7b, 8b, 9b, 10b, 0
	.popsection

/* ops->func(ip, parent, ops) */
	.globl trace_entry_call
	.type trace_entry_call, @function
trace_entry_call:
	call_begin 0
	movq %r11, %rdx
	call *8(%r11)
	call_end
	ret
	.size trace_entry_call, . - trace_entry_call

/* trace_take_return(ip, parent, ops, sp): rsp at the function's entry, where its
 * return address lies. */
	.globl trace_entry_return
	.type trace_entry_return, @function
trace_entry_return:
	call_begin 0
	movq %r11, %rdx
	leaq 40(%rbp), %rcx
	call trace_take_return
	call_end
	ret
	.size trace_entry_return, . - trace_entry_return

/*
 * A function has returned here: its result may be in rax and rdx. The frame has
 * the look of one that was called from where it returns to, as unwind_return()
 * says.
 */
	.globl trace_return
	.type trace_return, @function
trace_return:
	pushq $trace_return		/* the way back's place */
	pushq %rbp
	movq %rsp, %rbp
	pushq %rax
	pushq %rdx
	leaq 8(%rbp), %rdi
	call trace_returned
	popq %rdx
	popq %rax
	popq %rbp
	ret
	.size trace_return, . - trace_return

	.globl trampoline_end
trampoline_end:
