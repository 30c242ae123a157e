/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: kills the process as soon as room has been allocated for the third growth of a
 * file.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>

static int last(int r)
{
    static int calls;
    if (++calls == 3)
        raise(SIGKILL);
    return r;
}

__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t at, off_t n)
{
    int (*real)(int, int, off_t, off_t) =
        (int (*)(int, int, off_t, off_t))dlsym(RTLD_NEXT, "fallocate");
    return last(real(fd, mode, at, n));
}

__attribute__((visibility("default"))) int posix_fallocate(int fd, off_t at, off_t n)
{
    int (*real)(int, off_t, off_t) =
        (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
    return last(real(fd, at, n));
}
