/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/unpack.h"

#include "base/file_format.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { PIECE = 1 << 16, WINDOW_LOG_MAX = 23 };

static bool is_gzip(const uint8_t *p, size_t len)
{
    return len > 2 && file_format_of(p, len) == FORMAT_GZIP;
}

/* A zlib header: deflate with a window of 32 KiB or less, and a checksum over the header. */
static bool is_zlib(const uint8_t *p, size_t len)
{
    return len > 2 && (p[0] & 0x8f) == 0x08 && (p[0] << 8 | p[1]) % 31 == 0 && p[0] == 0x78;
}

static bool is_zstd(const uint8_t *p, size_t len)
{
    return len > 4 && p[0] == 0x28 && p[1] == 0xb5 && p[2] == 0x2f && p[3] == 0xfd;
}

bool unpack_is_packed(const void *data, size_t len)
{
    return is_gzip(data, len) || is_zstd(data, len);
}

/* Appends a piece of the output, which may have at most max bytes in all. */
static int take(struct buf *to, size_t before, const uint8_t *piece, size_t n, size_t max)
{
    if (n > max - (to->len - before))
        return -E2BIG;
    buf_bytes(to, piece, n);
    return buf_error(to);
}

/*
 * Returns whether bytes that follow the compressed data are only zeros, with which some programs
 * fill files.
 */
static bool is_filling(const uint8_t *p, size_t len)
{
    size_t i = 0;
    while (i < len && !p[i])
        i++;
    return i == len;
}

static int inflate_all(const uint8_t *data, size_t len, size_t max, struct buf *to)
{
    uint8_t out[PIECE];
    size_t before = to->len;
    z_stream z = {.next_in = (uint8_t *)data};
    /* Adding 32 to the window bits makes zlib accept a gzip or a zlib header. */
    if (inflateInit2(&z, 15 + 32) != Z_OK)
        return -ENOMEM;
    int r = 0, state = Z_OK;
    while (r == 0 && state == Z_OK) {
        size_t left = len - (size_t)(z.next_in - data);
        z.avail_in = (uInt)MIN(left, (size_t)UINT32_MAX);
        z.next_out = out;
        z.avail_out = sizeof(out);
        state = inflate(&z, Z_NO_FLUSH);
        r = take(to, before, out, sizeof(out) - z.avail_out, max);
        left = len - (size_t)(z.next_in - data);
        /* A gzip file may consist of several members, one after the other. */
        if (r == 0 && state == Z_STREAM_END && is_gzip(z.next_in, left) && inflateReset(&z) == Z_OK)
            state = Z_OK;
        else if (r == 0 && state == Z_STREAM_END && !is_filling(z.next_in, left))
            r = -EBADMSG;
    }
    inflateEnd(&z);
    return r < 0 ? r : state == Z_STREAM_END ? 0 : state == Z_MEM_ERROR ? -ENOMEM : -EPROTO;
}

static int zstd_all(const uint8_t *data, size_t len, size_t max, struct buf *to)
{
    size_t before = to->len, left = 1;
    ZSTD_DStream *z = ZSTD_createDStream();
    uint8_t *out = malloc(PIECE);
    int r = z && out ? 0 : -ENOMEM;
    if (r == 0 && ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        r = -EINVAL;
    ZSTD_inBuffer in = {data, len, 0};
    bool more = true; /* there may be more output without more input */
    while (r == 0 && (in.pos < in.size || more)) {
        ZSTD_outBuffer o = {out, PIECE, 0};
        left = ZSTD_decompressStream(z, &o, &in);
        r = ZSTD_isError(left) ? -EPROTO : take(to, before, out, o.pos, max);
        more = o.pos == PIECE && left;
    }
    ZSTD_freeDStream(z);
    free(out);
    return r < 0 ? r : left ? -EPROTO : 0;
}

int unpack_bytes(const void *data, size_t len, size_t max, struct buf *to, struct buf *why)
{
    size_t before = to->len;
    int r = is_gzip(data, len) || is_zlib(data, len) ? inflate_all(data, len, max, to)
            : is_zstd(data, len)                     ? zstd_all(data, len, max, to)
                                                     : take(to, before, data, len, max);
    if (r == -EBADMSG) {
        buf_string(why, "something else follows the compressed data");
        r = -EPROTO;
    } else if (r == -EPROTO)
        buf_string(why, "the compressed data is damaged or cut");
    else if (r == -E2BIG)
        buf_printf(why, "more than %zu MiB when it is unpacked", max >> 20);
    if (r < 0)
        buf_release(to);
    return r;
}

int wire_pack_gzip(const void *data, size_t len, struct buf *to)
{
    uint8_t out[PIECE];
    z_stream z = {.next_in = (uint8_t *)data};
    /* Adding 16 to the window bits requests a gzip header. */
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    int state = Z_OK;
    while (state == Z_OK) {
        size_t left = len - (size_t)(z.next_in - (const uint8_t *)data);
        z.avail_in = (uInt)MIN(left, (size_t)1 << 30);
        z.next_out = out;
        z.avail_out = sizeof(out);
        state = deflate(&z, z.avail_in == left ? Z_FINISH : Z_NO_FLUSH);
        buf_bytes(to, out, sizeof(out) - z.avail_out);
    }
    deflateEnd(&z);
    return state == Z_STREAM_END ? buf_error(to) : -ENOMEM;
}
