/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Error numbers of Linux that schedulers return (include/uapi/asm-generic/errno*.h). */
#ifndef SCHEDLAB_ERRNO_H
#define SCHEDLAB_ERRNO_H

#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define ENXIO 6
#define E2BIG 7
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define EINVAL 22
#define ENOSPC 28
#define ERANGE 34
#define EDEADLK 35
#define ENAMETOOLONG 36
#define ENOSYS 38
#define EWOULDBLOCK EAGAIN
#define EPROTO 71
#define EOVERFLOW 75
#define EOPNOTSUPP 95
#define ETIMEDOUT 110
#define EALREADY 114
#define ESTALE 116
#define ECANCELED 125

#endif
