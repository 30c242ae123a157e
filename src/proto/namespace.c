/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/namespace.h"

#include "base/file.h"
#include "proto/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool namespace_is_ours(const struct vm *vm, const char *kind)
{
    char its[64], own[64];
    struct stat a, b;
    snprintf(its, sizeof(its), "/proc/%d/ns/%s", vm->pid, kind);
    snprintf(own, sizeof(own), "/proc/self/ns/%s", kind);
    return stat(its, &a) < 0 || stat(own, &b) < 0 || is_same(&a, &b);
}

int namespace_join(const struct vm *vm, const char *kind, int flag)
{
    char its[64], own[64];
    struct stat a, b;
    snprintf(its, sizeof(its), "/proc/%d/ns/%s", vm->pid, kind);
    snprintf(own, sizeof(own), "/proc/self/ns/%s", kind);
    _cleanup_close_ int fd = open(its, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &a) < 0 || stat(own, &b) < 0)
        return -errno;
    return is_same(&a, &b) || setns(fd, flag) == 0 ? 0 : -errno;
}

int namespace_join_any(const struct vm *vm, const char *kind, int flag)
{
    int r = namespace_join(vm, kind, flag);
    if (r != -EPERM)
        return r;
    r = namespace_join(vm, "user", CLONE_NEWUSER);
    return r < 0 ? r : namespace_join(vm, kind, flag);
}
