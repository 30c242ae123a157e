/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int file_map_fd(struct file_map *ret, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -ENXIO;
    struct file_map m = {.len = (size_t)st.st_size};
    if (m.len) {
        void *p = mmap(NULL, m.len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            return -errno;
        m.data = p;
    }
    *ret = m;
    return 0;
}

int file_map_open(struct file_map *ret, const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : file_map_fd(ret, fd);
}

void file_map_release(struct file_map *m)
{
    if (m->data)
        munmap((void *)m->data, m->len);
    *m = (struct file_map){0};
}

int read_all(int fd, size_t limit, uint8_t **ret, size_t *ret_len)
{
    _cleanup_free_ uint8_t *data = NULL;
    size_t len = 0, cap = 0;
    for (;;) {
        if (cap - len < 2) {
            cap = cap ? cap * 2 : 4096;
            uint8_t *p = realloc(data, cap);
            if (!p)
                return -ENOMEM;
            data = p;
        }
        ssize_t n = read(fd, data + len, cap - len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > limit)
            return -EFBIG;
    }
    data[len] = 0;
    *ret = TAKE(data);
    *ret_len = len;
    return 0;
}

int read_file(const char *path, size_t limit, uint8_t **ret, size_t *ret_len)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : read_all(fd, limit, ret, ret_len);
}

int write_all(int fd, const void *bytes, size_t len)
{
    for (const char *p = bytes; len;) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int out_file_open(struct out_file *ret, const char *path)
{
    struct out_file f = OUT_FILE;
    if (strcmp(path, "-") == 0) {
        f.fd = dup(STDOUT_FILENO);
        if (f.fd < 0)
            return -errno;
        *ret = f;
        return 0;
    }
    f.path = strdup(path);
    if (!f.path)
        return -ENOMEM;
    struct stat st;
    int r = 0;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        r = -EISDIR;
    } else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        f.fd = open(path, O_WRONLY | O_CLOEXEC);
        r = f.fd < 0 ? -errno : 0;
    } else if (asprintf(&f.temporary, "%s.XXXXXX", path) < 0) {
        f.temporary = NULL;
        r = -ENOMEM;
    } else {
        f.fd = mkostemp(f.temporary, O_CLOEXEC);
        r = f.fd < 0 ? -errno : 0;
        if (r == 0) {
            /* mkostemp makes 0600; give what open would have given. */
            mode_t mask = umask(0);
            umask(mask);
            (void)fchmod(f.fd, 0666 & ~mask);
        } else {
            free(TAKE(f.temporary));
        }
    }
    if (r < 0) {
        out_file_release(&f);
        return r;
    }
    *ret = f;
    return 0;
}

int out_file_commit(struct out_file *f)
{
    int fd = f->fd;
    f->fd = -1;
    if (close(fd) < 0)
        return -errno;
    if (!f->temporary)
        return 0;
    if (rename(f->temporary, f->path) < 0)
        return -errno;
    free(TAKE(f->temporary));
    return 0;
}

void out_file_release(struct out_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->temporary)
        unlink(f->temporary);
    free(f->temporary);
    free(f->path);
    *f = OUT_FILE;
}
