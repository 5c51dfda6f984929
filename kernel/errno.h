/* SPDX-License-Identifier: MIT */
/* Errors, as in Linux: a function returns 0 or the negative of one. */
#ifndef KERNEL_ERRNO_H
#define KERNEL_ERRNO_H

#define EPERM 1
#define ENOENT 2
#define EINTR 4
#define EIO 5
#define E2BIG 7
#define EBADF 9
#define EAGAIN 11
#define ENOMEM 12
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENOSPC 28
#define EPIPE 32
#define ERANGE 34
#define EOVERFLOW 75
#define EDEADLK 35
#define ENOSYS 38
#define ETIMEDOUT 110

#endif
