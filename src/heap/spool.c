/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/spool.h"

#include "base/file_format.h"

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
enum {
    BLOCK = 1 << 20,
    IN_BLOCK = 256 << 10,
    CHECK_EVERY = 64,
    BOMB_BLOCKS = 256,
    BOMB_RATIO = 300
};

static int room_left(int fd)
{
    struct statvfs v;
    if (fstatvfs(fd, &v) < 0)
        return -errno;
    /* Keep a tenth of the disk free, so that a compression bomb cannot bring the machine down. */
    return v.f_bavail > v.f_blocks / 10 ? 0 : -ENOSPC;
}

/* A file or pipe, whose bytes are taken as they are, or unpacked if they begin as gzip does. */
struct source {
    int fd;
    z_stream z;
    uint8_t *in;
    uint64_t taken; /* bytes of the input */
    bool packed;
    bool ended;   /* there is no more input than z has */
    bool between; /* the members of a compressed file */
    bool over;    /* there is no more output */
    bool damaged; /* compressed data is, or ends too early, or something else follows it */
};

/* Makes two bytes available, which are enough to recognize gzip, unless the input ends before. */
static int source_fill(struct source *s)
{
    while (!s->ended && s->z.avail_in < 2) {
        memmove(s->in, s->z.next_in, s->z.avail_in);
        s->z.next_in = s->in;
        ssize_t n = read(s->fd, s->in + s->z.avail_in, IN_BLOCK - s->z.avail_in);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        s->ended = n == 0;
        s->z.avail_in += (uInt)n;
        s->taken += (uint64_t)n;
    }
    return 0;
}

static bool begins_gzip(const struct source *s)
{
    return file_format_of(s->z.next_in, s->z.avail_in) == FORMAT_GZIP;
}

/* Begins a further member. Otherwise only zeros may follow, with which some programs fill files. */
static void begin_member(struct source *s)
{
    if (begins_gzip(s)) {
        s->between = inflateReset(&s->z) != Z_OK;
        return;
    }
    for (; s->z.avail_in && !s->damaged; s->z.avail_in--)
        s->damaged = *s->z.next_in++ != 0;
    s->over = s->ended || s->damaged;
}

static int inflate_some(struct source *s)
{
    int state = inflate(&s->z, Z_NO_FLUSH);
    s->between = state == Z_STREAM_END;
    s->damaged = s->over = state != Z_OK && state != Z_STREAM_END;
    return state == Z_MEM_ERROR ? -ENOMEM : 0;
}

static void copy_some(struct source *s)
{
    uInt n = MIN(s->z.avail_in, s->z.avail_out);
    if (n)
        memcpy(s->z.next_out, s->z.next_in, n);
    s->z.next_in += n;
    s->z.next_out += n;
    s->z.avail_in -= n;
    s->z.avail_out -= n;
    s->over = s->ended && !s->z.avail_in;
}

/* Reads a block of output; only the last one is shorter. Returns its size or a negative errno. */
static int source_read(struct source *s, uint8_t *block)
{
    int error = 0;
    s->z.next_out = block;
    s->z.avail_out = BLOCK;
    while (!error && !s->over && s->z.avail_out) {
        error = source_fill(s);
        if (error)
            break;
        if (!s->packed)
            copy_some(s);
        else if (s->between)
            begin_member(s);
        else
            error = inflate_some(s);
    }
    return error ? error : (int)(BLOCK - s->z.avail_out);
}

static int unpack(struct source *s, uint8_t *block, int out)
{
    for (uint64_t i = 0;; i++) {
        int n = source_read(s, block);
        if (n <= 0)
            return n < 0 ? n : i ? 0 : -EBADMSG;
        if (i == 0 &&
            ((size_t)n < sizeof(magic) - 1 || memcmp(block, magic, sizeof(magic) - 1) != 0))
            return -EBADMSG;
        int error = i % CHECK_EVERY == 0 ? room_left(out) : 0;
        if (i > BOMB_BLOCKS && i * BLOCK / BOMB_RATIO > s->taken)
            error = -EMSGSIZE;
        if (!error)
            error = file_write_all(out, block, (size_t)n);
        if (error)
            return error;
    }
}

static int unpack_all(int fd, int out, bool *ret_damaged)
{
    _cleanup_free_ uint8_t *in = malloc(IN_BLOCK), *block = malloc(BLOCK);
    struct source s = {.fd = fd, .in = in, .between = true, .z.next_in = in};
    /* Adding 16 to the window bits requests gzip. */
    if (!in || !block || inflateInit2(&s.z, 15 + 16) != Z_OK)
        return -ENOMEM;
    int error = source_fill(&s);
    s.packed = begins_gzip(&s);
    if (!error)
        error = unpack(&s, block, out);
    inflateEnd(&s.z);
    *ret_damaged = s.damaged;
    return error;
}

static int spool(int fd, struct file_map *ret, bool *ret_damaged)
{
    const char *folder = getenv("TMPDIR");
    _cleanup_close_ int out =
        open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (out < 0)
        return -errno;
    int error = unpack_all(fd, out, ret_damaged);
    if (error)
        return error;
    off_t len = lseek(out, 0, SEEK_END);
    void *data = mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, out, 0);
    if (data == MAP_FAILED)
        return -errno;
    *ret = (struct file_map){data, (size_t)len};
    return 0;
}

int heap_spool_open(const char *path, struct file_map *ret, bool *ret_spooled, bool *ret_damaged)
{
    *ret_spooled = true;
    *ret_damaged = false;
    if (strcmp(path, "-") == 0)
        return spool(STDIN_FILENO, ret, ret_damaged);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct file_map m = {0};
    int error = file_map_fd(&m, fd);
    if (error == -ENXIO || file_format_of(m.data, m.len) == FORMAT_GZIP) {
        file_map_release(&m);
        return spool(fd, ret, ret_damaged);
    }
    *ret_spooled = false;
    *ret = m;
    return error ? error : m.data ? 0 : -EBADMSG;
}
