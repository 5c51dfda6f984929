/* SPDX-License-Identifier: MIT */
/* The console: output whose lines stay whole, and input by interrupt. */
#include <kernel/console.h>

#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/init.h>
#include <kernel/panic.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/lock/wait.h>
#include <kernel/test/fault.h>

#define CTRL_C 3
#define URGENT_NS (100 * NSEC_PER_MSEC)
#define PIECE_MAX 512 /* bytes that are written while interrupts are off */

static struct spinlock output_lock = SPINLOCK_INIT("console_output");
/* under output_lock: the task that wrote the unfinished line of the cursor */
static struct task *line_owner;

#define INPUT_PIECE 32 /* bytes that are taken while interrupts are off */
#define INPUT_GAP_NS (100 * NSEC_PER_USEC)
#define INPUT_SIZE 4096 /* a power of two, a pasted script must fit */
static struct spinlock input_lock = SPINLOCK_INIT("console_input");
static struct wait_queue input_wait = WAIT_QUEUE_INIT(input_wait);
/* under input_lock: */
static char input[INPUT_SIZE];
static unsigned int input_head, input_tail;
static bool interrupted;

static void put_byte(char c)
{
	if (c == '\n')
		arch_console_putc('\r');
	arch_console_putc(c);
}

/* If another task has left a line unfinished, that line is ended first. */
static void write_locked(const char *text, size_t len)
{
	if (!len)
		return;
	if (line_owner && line_owner != current_task())
		put_byte('\n');
	for (size_t i = 0; i < len; i++)
		put_byte(text[i]);
	line_owner = text[len - 1] == '\n' ? NULL : current_task();
}

void console_write_urgent(const char *text, size_t len)
{
	struct spin_limit limit = spin_limit_begin(URGENT_NS);
	irq_state_t state;

	while (spin_trylock(&output_lock, &state)) {
		if (spin_limit_over(&limit) ||
		    output_lock.holder == (int)cpu_index() + 1) {
			write_locked(text, len);
			return;
		}
		arch_cpu_relax();
	}
	write_locked(text, len);
	spin_unlock(&output_lock, state);
}

/* One piece, whole, however the machine fares. */
void console_write_whole(const char *text, size_t len)
{
	irq_state_t state;

	if (panic_here() || (preempt_count() & PREEMPT_NMI)) {
		console_write_urgent(text, len);
		return;
	}
	state = spin_lock(&output_lock);
	write_locked(text, len);
	spin_unlock(&output_lock, state);
}

/* Write a line at a time, or a part of a long line, because interrupts are off meanwhile. A whole
 * file would keep them off for too long. */
void console_write(const char *text, size_t len)
{
	while (len) {
		const char *most = text + min(len, PIECE_MAX + 0ul);
		const char *end = text;

		while (end < most && *end++ != '\n')
			;
		console_write_whole(text, end - text);
		len -= end - text;
		text = end;
	}
}

FAULT(console_flood, "a host sends Ctrl-C as fast as it is taken");
FAULT(console_lost, "the console's interrupt is lost");

static struct timer rest_timer;

static int next_byte(void)
{
	return fault_happens(&fault_console_flood) ? CTRL_C :
						     arch_console_getc();
}

/*
 * Bytes that find the buffer full are lost, as on any serial line. A host that pastes a text may
 * send as fast as they are taken, so interrupts come between two pieces. The timer takes the rest,
 * because the device may interrupt no more until all is taken.
 */
static void take_bytes(void)
{
	irq_state_t state = spin_lock(&input_lock);
	unsigned int n = 0;
	int c;

	for (; n < INPUT_PIECE && (c = next_byte()) >= 0; n++) {
		if (c == CTRL_C)
			interrupted = true;
		if (input_head - input_tail < INPUT_SIZE)
			input[input_head++ % INPUT_SIZE] = c;
	}
	spin_unlock(&input_lock, state);
	wake_all(&input_wait);
	if (n == INPUT_PIECE)
		timer_start(&rest_timer, INPUT_GAP_NS);
}

static void take_rest(struct timer *t)
{
	(void)t;
	take_bytes();
}

static void console_start(void)
{
	timer_setup(&rest_timer, take_rest);
}
INIT_HOOK(INIT_SITES, console_start);

/* A port whose device interrupts once, and then only when all has been taken, would hear no more
 * after an interrupt that was lost: its handler must ask for the next one (arch/uart16550.h). */
void console_interrupt(void)
{
	if (!fault_happens(&fault_console_lost))
		take_bytes();
}

static int input_take(void)
{
	irq_state_t state = spin_lock(&input_lock);
	int c = -1;

	if (input_tail != input_head)
		c = (u8)input[input_tail++ % INPUT_SIZE];
	spin_unlock(&input_lock, state);
	return c;
}

int console_read(void)
{
	int c;

	wait_event(&input_wait, (c = input_take()) >= 0 || task_should_stop());
	return c >= 0 ? c : -EINTR;
}

bool console_interrupted(void)
{
	return READ_ONCE(interrupted);
}

void console_clear_interrupt(void)
{
	irq_state_t state = spin_lock(&input_lock);

	for (unsigned int i = input_tail; interrupted && i != input_head; i++)
		if (input[i % INPUT_SIZE] == CTRL_C)
			input_tail = i + 1;
	interrupted = false;
	spin_unlock(&input_lock, state);
}
