/* Text to the console. */
#ifndef KERNEL_PRINTK_H
#define KERNEL_PRINTK_H

#include <stdarg.h>

#include <kernel/types.h>

struct task;
struct trap_frame;

/*
 * Formats: d i u x X c s p % with l, ll, z, h; width, precision, 0, -, +, #, *;
 * and pS (symbol+0xoff/0xsize) with a void *. Returns the length that the whole
 * text has; writes at most size bytes, always NUL-terminated if size > 0.
 */
int vsnprintf(char *buf, size_t size, const char *fmt, va_list ap);
int snprintf(char *buf, size_t size, const char *fmt, ...) printf_like(3, 4);

/* One message, whole: lines of two CPUs never mix. Any context. */
void printk(const char *fmt, ...) printf_like(1, 2);

/* The same for a CPU that cannot rely on locks (a panic, a lock's complaint): it
 * waits for the console's lock a tenth of a second, then writes all the same. */
void printk_urgent(const char *fmt, ...) printf_like(1, 2);

/* The same without formatting; what the shell's output goes through. */
void console_write(const char *text, size_t len);

/* Next byte typed, waiting for it (-EINTR: told to stop by task_stop()). */
int console_read(void);
/* Has Ctrl-C been typed since console_clear_interrupt()? */
bool console_interrupted(void);
/* Forget it, with all that was typed up to it. */
void console_clear_interrupt(void);
/* Console input has arrived; from irq_event(IRQ_CONSOLE). */
void console_interrupt(void);
void console_write_urgent(const char *text, size_t len);

/*
 * A broken invariant. Prints, with a backtrace; stops the other CPUs; ends the
 * machine with status 1 under panic=exit, else halts. Any context.
 */
noreturn void panic(const char *fmt, ...) printf_like(1, 2);

#define BUG_ON(cond)                                                           \
	do {                                                                   \
		if (__builtin_expect(!!(cond), 0))                             \
			panic("%s:%d: %s", __FILE__, __LINE__, #cond);         \
	} while (0)

#endif
