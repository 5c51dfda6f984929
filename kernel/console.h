/* SPDX-License-Identifier: MIT */
/* The console: output whose lines stay whole, and input. */
#ifndef KERNEL_CONSOLE_H
#define KERNEL_CONSOLE_H

#include <kernel/types.h>

/* Write text as it is, line by line. The shell writes its output by this function. */
void console_write(const char *text, size_t len);

/* Next byte typed, waiting for it (-EINTR: told to stop by task_stop()). */
int console_read(void);
/* Has Ctrl-C been typed since console_clear_interrupt()? */
bool console_interrupted(void);
/* Forget it, with all that was typed up to it. */
void console_clear_interrupt(void);
/* Console input has arrived, from irq_event(IRQ_CONSOLE). */
void console_interrupt(void);
/* Write one piece, whole, in any context. See console_write() for long texts. */
void console_write_whole(const char *text, size_t len);
/* The same without relying on the console's lock: printk_urgent(). */
void console_write_urgent(const char *text, size_t len);

#endif
