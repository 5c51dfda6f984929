/* SPDX-License-Identifier: MIT */
/* The host's, in place of a port's: kernel/types.h. */
#define notrace
