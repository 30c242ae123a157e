/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The build includes this file first (-include) in everything that the agents link. It binds libc
 * symbols that have moved or got a new version to their old versions, so that a library built here
 * loads on glibc 2.17. Its functions begin with old_. tests/integration/project/test_build.py
 * checks the result.
 */
#pragma once

#ifndef __ASSEMBLER__
#include <features.h> /* __GLIBC__ */

#if defined(__x86_64__) && defined(__GLIBC__)
#define OLD_(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__aarch64__) && defined(__GLIBC__)
#define OLD_(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#endif

#ifdef OLD_
OLD_(dlclose);
OLD_(dlerror);
OLD_(dlopen);
OLD_(dlsym);
OLD_(dladdr);
OLD_(pthread_attr_getstack);
OLD_(pthread_attr_setstacksize);
OLD_(pthread_create);
OLD_(pthread_detach);
OLD_(pthread_getattr_np);
OLD_(pthread_getspecific);
OLD_(pthread_join);
OLD_(pthread_key_create);
OLD_(pthread_key_delete);
OLD_(pthread_kill);
OLD_(pthread_mutexattr_destroy);
OLD_(pthread_mutexattr_init);
OLD_(pthread_mutexattr_settype);
OLD_(pthread_mutex_timedlock);
OLD_(pthread_mutex_trylock);
OLD_(pthread_once);
OLD_(pthread_setspecific);
OLD_(pthread_sigmask);
OLD_(sem_init);
OLD_(sem_destroy);
OLD_(sem_post);
OLD_(sem_wait);
#undef OLD_
#if defined(__x86_64__)
__asm__(".symver pthread_condattr_setclock,pthread_condattr_setclock@GLIBC_2.3.3");
#else
__asm__(".symver pthread_condattr_setclock,pthread_condattr_setclock@GLIBC_2.17");
#endif

/* Before glibc 2.33 these were inline functions around symbols that can no longer be linked. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * From glibc 2.28 on, fcntl is fcntl64, which handles 64-bit file offsets; the commands used here
 * have none.
 */
static inline int old_fcntl(int fd, int command, long argument)
{
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

static inline int old_stat(const char *path, struct stat *ret)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret, 0);
}

static inline int old_fstat(int fd, struct stat *ret)
{
    return (int)syscall(SYS_fstat, fd, ret);
}

static inline int old_lstat(const char *path, struct stat *ret)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret, AT_SYMLINK_NOFOLLOW);
}

static inline int old_fstatat(int folder, const char *path, struct stat *ret, int flags)
{
    return (int)syscall(SYS_newfstatat, folder, path, ret, flags);
}

/*
 * The timer functions were in librt then. For a timer that starts no thread, timer_t is simply the
 * kernel's number.
 */
#include <signal.h>
#include <stdint.h>
#include <time.h>

static inline int old_timer_create(clockid_t clock, struct sigevent *event, timer_t *ret)
{
    int kernel_timer;
    int r = (int)syscall(SYS_timer_create, clock, event, &kernel_timer);
    if (r == 0)
        *ret = (timer_t)(intptr_t)kernel_timer;
    return r;
}

static inline int old_timer_settime(timer_t timer, int flags, const struct itimerspec *value,
                                    struct itimerspec *ret_old)
{
    return (int)syscall(SYS_timer_settime, (int)(intptr_t)timer, flags, value, ret_old);
}

static inline int old_timer_gettime(timer_t timer, struct itimerspec *ret)
{
    return (int)syscall(SYS_timer_gettime, (int)(intptr_t)timer, ret);
}

static inline int old_timer_delete(timer_t timer)
{
    return (int)syscall(SYS_timer_delete, (int)(intptr_t)timer);
}

#define timer_create(clock, event, ret)             old_timer_create(clock, event, ret)
#define timer_settime(timer, flags, value, ret_old) old_timer_settime(timer, flags, value, ret_old)
#define timer_gettime(timer, ret)                   old_timer_gettime(timer, ret)
#define timer_delete(timer)                         old_timer_delete(timer)
#define lstat(path, ret)                            old_lstat(path, ret)
#define stat(path, ret)                             old_stat(path, ret)
#define fstat(fd, ret)                              old_fstat(fd, ret)
#define fstatat(folder, path, ret, flags)           old_fstatat(folder, path, ret, flags)
#define fcntl(fd, command, argument)                old_fcntl(fd, command, (long)(argument))
#endif
#endif
