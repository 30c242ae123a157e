/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/vm_files.h"

#include "base/file.h"
#include "base/file_format.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GROUPS_MAX = 256 };

/* Our own supplementary groups, saved while we have the VM's. */
static gid_t own_groups[GROUPS_MAX];
static int n_own_groups = -1;

static bool must_change(const struct vm *vm)
{
    return geteuid() == 0 && (vm->uid != 0 || vm->gid != 0);
}

int vm_user_enter(const struct vm *vm)
{
    if (!must_change(vm))
        return 0;
    n_own_groups = getgroups(GROUPS_MAX, own_groups);
    if (n_own_groups < 0)
        return -errno;
    /* Change the user last, because that gives up the right to change the others. */
    if (setgroups(vm->n_groups, vm->groups) < 0 || setegid(vm->gid) < 0 || seteuid(vm->uid) < 0) {
        int r = -errno;
        vm_user_leave();
        return r;
    }
    return 0;
}

void vm_user_leave(void)
{
    if (n_own_groups < 0)
        return;
    /*
     * Returning to the real ids is always allowed. If it failed, we would continue with fewer
     * rights than we had.
     */
    if (seteuid(getuid()) < 0 || setegid(getgid()) < 0 ||
        setgroups((size_t)n_own_groups, own_groups) < 0)
        return;
    n_own_groups = -1;
}

int vm_file_open(const struct vm *vm, const char *path, int flags, mode_t mode)
{
    int r = vm_user_enter(vm);
    if (r < 0)
        return r;
    r = file_open_in_root(vm->root_fd, path, flags, mode);
    vm_user_leave();
    return r;
}

int vm_open_folder(const struct vm *vm, const char *path)
{
    return vm_file_open(vm, path, O_PATH | O_DIRECTORY, 0);
}

int vm_locate(const struct vm *vm, const char *path)
{
    return file_open_in_root(vm->root_fd, path, O_PATH, 0);
}

int vm_open_written(const struct vm *vm, const char *path, struct buf *why)
{
    struct stat st;
    /* O_NONBLOCK: opening something that is not a regular file, such as a pipe, must not block. */
    _cleanup_close_ int fd = vm_file_open(vm, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int r = fd < 0 ? fd : -errno;
        buf_string(why, r == -ELOOP ? "it is a symbolic link, not what the VM was asked to write"
                                    : strerror(-r));
        return r;
    }
    if (!S_ISREG(st.st_mode) || st.st_uid != vm->uid) {
        buf_string(why, S_ISREG(st.st_mode) ? "it belongs to another user than the VM"
                                            : "it is not a regular file");
        return -EPERM;
    }
    return TAKE_FD(fd);
}

bool vm_file_is_output(int fd)
{
    char head[FILE_FORMAT_BYTES];
    ssize_t n = pread(fd, head, sizeof(head), 0);
    enum file_format is = n > 0 ? file_format_of(head, (size_t)n) : FORMAT_NOTHING;
    return is == FORMAT_JFR || is == FORMAT_HPROF || is == FORMAT_HPROF_TEXT;
}

int vm_unlink(const struct vm *vm, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash || slash - path >= PATH_MAX)
        return -EINVAL;
    snprintf(folder, sizeof(folder), "%.*s", (int)MAX(slash - path, 1), path);
    _cleanup_close_ int fd = vm_open_folder(vm, folder);
    int r = fd < 0 ? fd : vm_user_enter(vm);
    if (r < 0)
        return r;
    r = unlinkat(fd, slash + 1, 0) < 0 ? -errno : 0;
    vm_user_leave();
    return r;
}

bool vm_sees(const struct vm *vm, const char *path)
{
    struct stat ours, its;
    _cleanup_close_ int fd = vm_locate(vm, path);
    return fd >= 0 && stat(path, &ours) == 0 && fstat(fd, &its) == 0 && ours.st_dev == its.st_dev &&
           ours.st_ino == its.st_ino;
}
