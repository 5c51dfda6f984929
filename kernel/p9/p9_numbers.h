/* SPDX-License-Identifier: MIT */
/* The numbers of 9P2000.L on which the guest's server and the host's client agree. */
#ifndef KERNEL_P9_NUMBERS_H
#define KERNEL_P9_NUMBERS_H

#define P9_MSIZE 65536 /* bytes of a message at most */
#define P9_HEADER 24   /* of these, all but the data of a read or a write */
#define P9_IOUNIT (P9_MSIZE - P9_HEADER)

enum {
	P9_RLERROR = 7,
	P9_TLOPEN = 12,
	P9_TGETATTR = 24,
	P9_TSETATTR = 26,
	P9_TREADDIR = 40,
	P9_TFSYNC = 50,
	P9_TMKDIR = 72,
	P9_TUNLINKAT = 76,
	P9_TVERSION = 100,
	P9_TATTACH = 104,
	P9_TFLUSH = 108,
	P9_TWALK = 110,
	P9_TREAD = 116,
	P9_TWRITE = 118,
	P9_TCLUNK = 120,
};

/* Flags of lopen, which are Linux's. */
#define P9_WRONLY 1
#define P9_TRUNC 0x200
#define P9_NONBLOCK 0x800

/*
 * In the count of a read, from trace_pipe_raw: it wants full pages at once, or else pages that have
 * waited for buffer_percent, as splice(). Or it waits for that in any case, as poll(). With
 * neither, the first entry is enough.
 */
#define P9_READ_PAGES (1u << 31)
#define P9_READ_PERCENT (1u << 30)

#define P9_GETATTR_BASIC 0x7ff
#define P9_SETATTR_SIZE 8

#endif
