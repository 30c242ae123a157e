/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a recording that is being written: how it takes the place of an older one. */
#include "base/macro.h"
#include "jfr/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns whether there is room for the recording and for the file that it replaces. */
static bool has_room(const struct jfr_writer *w, const char *path)
{
    struct statvfs fs;
    uint64_t needs = w->options.ring_bytes + (UINT64_C(64) << 20);
    return statvfs(path, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize >= needs;
}

/*
 * Keeps a file that is replaced open until the worker's first round: removing a large file takes
 * the system many milliseconds, which would delay the start of the program, and its blocks are
 * freed only when it is closed. If the new recording may need the room, the file is closed at once.
 */
static void keep_replaced(struct jfr_writer *w, const char *path, const struct stat *st)
{
    enum { LARGE = 16 << 20 };

    if (st->st_size >= LARGE && has_room(w, path))
        w->replaced = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

void writer_file_drop_replaced(struct jfr_writer *w)
{
    if (w->replaced >= 0)
        close(w->replaced);
    w->replaced = -1;
}

/*
 * Creates a file without a name in the folder in which it will have one. Returns its descriptor, or
 * -1 where that is not possible.
 */
static int create_unnamed(struct jfr_writer *w, const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    /* The name is given by way of /proc. */
    if (!folder || access("/proc/self/fd", X_OK) != 0 || !has_room(w, path))
        return -1;
    int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    w->unnamed = fd < 0 ? NULL : strdup(path);
    if (fd >= 0 && !w->unnamed)
        close(fd);
    return w->unnamed ? fd : -1;
}

int writer_file_create(struct jfr_writer *w, const char *path)
{
    struct stat st = {0};
    if (!lstat(path, &st) && S_ISLNK(st.st_mode) && stat(path, &st))
        st.st_mode = S_IFREG; /* a dangling link is replaced */
    else if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    int unnamed =
        w->options.keeps_older && S_ISREG(st.st_mode) && st.st_size ? create_unnamed(w, path) : -1;
    if (unnamed >= 0)
        return unnamed;
    if (S_ISREG(st.st_mode))
        keep_replaced(w, path, &st);
    if (unlink(path) && errno != ENOENT)
        return -errno;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : fd;
}

bool jfr_writer_has_name(const struct jfr_writer *w)
{
    return !w->unnamed;
}

static int publish(struct jfr_writer *w)
{
    char from[64], name[PATH_MAX];
    struct stat st;
    if (!w->unnamed)
        return 0;
    snprintf(from, sizeof(from), "/proc/self/fd/%d", w->fd);
    if (snprintf(name, sizeof(name), "%s.%d.new", w->unnamed, getpid()) >= (int)sizeof(name))
        return -ENAMETOOLONG;
    unlink(name); /* of a process that had the same number and was killed here */
    if (linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0)
        return -errno;
    if (lstat(w->unnamed, &st) == 0 && S_ISREG(st.st_mode))
        keep_replaced(w, w->unnamed, &st);
    if (rename(name, w->unnamed) < 0) {
        int error = -errno;
        unlink(name);
        return error;
    }
    free(w->unnamed);
    w->unnamed = NULL;
    return 0;
}

int jfr_writer_publish(struct jfr_writer *w)
{
    pthread_mutex_lock(&w->work);
    int r = publish(w);
    pthread_mutex_unlock(&w->work);
    return r;
}

int writer_file_in_memory(void)
{
    int fd = (int)syscall(SYS_memfd_create, "jvmscope-ring", 1 /* MFD_CLOEXEC */);
    return fd < 0 ? -errno : fd;
}
