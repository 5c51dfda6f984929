/* SPDX-License-Identifier: MIT */
/*
 * The tracer's readers, compiled for the host, over the memory of a guest: how its ring is decoded,
 * how entries become lines, format files and binary pages. This header stands before each of these
 * files. It leaves out the kernel's headers that fit no host, and declares here what the files take
 * from them. machine.c defines that: where a name comes from, a time, a byte.
 */
#ifndef EXTRACT_MACHINE_H
#define EXTRACT_MACHINE_H

#define KERNEL_CPU_H
#define KERNEL_TASK_H
#define KERNEL_LOCK_H
#define KERNEL_MUTEX_H
#define ARCH_ARCH_TRACE_H
#define TRACER_INSTANCES_H
#define TRACER_STORED_H

#include <kernel/types.h>

/* ---- tracer/base/stored.h: numbers as the guest has stored them ------------------ */

/* Its byte order, and the bytes of its long. */
extern bool machine_big_endian;
extern unsigned int machine_long;
extern unsigned long machine_text; /* the address of its _text */

#define STORED_BIG_ENDIAN machine_big_endian
#define STORED_LONG machine_long
#define STORED_TEXT machine_text
#define STORED_LONGS(n) (0x80 | (n))
#define STORED_SIZE(size) ((size)&0x80 ? ((size)&0x7f) * STORED_LONG : (size))

static inline long stored_long(s64 v)
{
	return STORED_LONG == 4 ? (s32)v : v;
}
static inline u32 stored_u32(const u32 *p)
{
	return STORED_BIG_ENDIAN == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ?
		       *p :
		       __builtin_bswap32(*p);
}
static inline void store_number(void *to, u64 v, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		((u8 *)to)[i] = v >> 8 * (STORED_BIG_ENDIAN ? size - 1 - i : i);
}
const char *stored_text(u64 addr);

/* ---- The kernel's ---------------------------------------------------------------- */

#define TASK_NAME_LEN 16
#define TASK_RETURNS 48

struct mutex;
extern unsigned int nr_cpus;

#include <kernel/irq.h>
#include <tracer/base/instance.h>
#include <tracer/show/files_marker.h>

/* The guest's addresses of these. */
extern unsigned long machine_irq_event, machine_mark_write;
#define irq_event machine_irq_event
#define tracing_mark_write machine_mark_write

#endif
