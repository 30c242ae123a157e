/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <zlib.h>

static const char magic[] = "JAVA PROFILE ";

/*
 * The limit of the compression ratio. Heaps compress to a tenth of their size, and empty ones to a
 * hundredth; a higher ratio is an attack.
 */
enum { BLOCK = 1 << 20, CHECK_EVERY = 64, BOMB_BLOCKS = 256, BOMB_RATIO = 300 };

static int room_left(int fd)
{
    struct statvfs v;
    if (fstatvfs(fd, &v) < 0)
        return -errno;
    /* Keep a tenth of the disk free, so that a compression bomb cannot bring the machine down. */
    return v.f_bavail > v.f_blocks / 10 ? 0 : -ENOSPC;
}

static int unpack(gzFile in, int out)
{
    _cleanup_free_ char *block = malloc(BLOCK);
    if (!block)
        return -ENOMEM;
    for (uint64_t i = 0;; i++) {
        int n = gzread(in, block, BLOCK);
        /* A truncated .gz is treated like a truncated dump. */
        if (n < 0)
            return i ? 0 : -EBADMSG;
        if (n == 0)
            return i ? 0 : -EBADMSG;
        if (i == 0 &&
            ((size_t)n < sizeof(magic) - 1 || memcmp(block, magic, sizeof(magic) - 1) != 0))
            return -EBADMSG;
        int error = i % CHECK_EVERY == 0 ? room_left(out) : 0;
        if (i > BOMB_BLOCKS && i * BLOCK / BOMB_RATIO > (uint64_t)MAX(gzoffset(in), (z_off_t)0))
            error = -EMSGSIZE;
        if (!error)
            error = file_write_all(out, block, (size_t)n);
        if (error)
            return error;
    }
}

static int spool(int fd, struct file_map *ret)
{
    const char *folder = getenv("TMPDIR");
    _cleanup_close_ int out =
        open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (out < 0)
        return -errno;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    gzFile in = copy < 0 ? NULL : gzdopen(copy, "rb");
    if (!in) {
        if (copy >= 0)
            close(copy);
        return -ENOMEM;
    }
    gzbuffer(in, 256 << 10);
    int error = unpack(in, out);
    gzclose(in);
    if (error)
        return error;
    off_t len = lseek(out, 0, SEEK_END);
    void *data = mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, out, 0);
    if (data == MAP_FAILED)
        return -errno;
    *ret = (struct file_map){data, (size_t)len};
    return 0;
}

int heap_spool_open(const char *path, struct file_map *ret, bool *ret_spooled)
{
    *ret_spooled = true;
    if (strcmp(path, "-") == 0)
        return spool(STDIN_FILENO, ret);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct file_map m = {0};
    int error = file_map_fd(&m, fd);
    if (error == -ENXIO || (m.len >= 2 && m.data[0] == 0x1f && m.data[1] == 0x8b)) {
        file_map_release(&m);
        return spool(fd, ret);
    }
    *ret_spooled = false;
    *ret = m;
    return error ? error : m.data ? 0 : -EBADMSG;
}
