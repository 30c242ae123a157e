/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/span.h"

#include "jfr/chunk_head.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int jfr_span_read(const char *path, struct jfr_span *ret)
{
    struct jfr_span span = {0};
    uint8_t header[JFR_CHUNK_HEAD];
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int64_t at = 0, size;
    for (;; at += size) {
        ssize_t n = pread(fd, header, sizeof(header), (off_t)at);
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        size = (int64_t)chunk_big_endian(header + HEAD_SIZE);
        if (n < (ssize_t)sizeof(header) || memcmp(header, "FLR", 4) != 0 || size <= 0 ||
            size > INT64_MAX / 2 - at)
            return -EBADMSG;
        int64_t ticks = (int64_t)chunk_big_endian(header + HEAD_TICKS);
        if (at == 0) {
            span.first = ticks;
            span.epoch_ns = (int64_t)chunk_big_endian(header + HEAD_START) - ticks;
        }
        span.end = MAX(span.end, ticks + (int64_t)chunk_big_endian(header + HEAD_DURATION));
    }
    if (at == 0)
        return -EBADMSG;
    *ret = span;
    return 0;
}
