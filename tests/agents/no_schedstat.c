/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a system that does not let threads read how long they had no processor. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int open64(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    if (!real)
        real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    if (real && !strstr(path, "/schedstat"))
        return real(path, flags, mode);
    errno = EACCES;
    return -1;
}
