/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/cut.h"

#include "jfr/internal.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Returns the start of the last chunk that the file contains completely and stores its length, or
 * returns SIZE_MAX when there is none. What was appended while the file was being copied is
 * ignored.
 */
static size_t last_chunk(const uint8_t *file, size_t len, size_t *ret_len)
{
    size_t last = SIZE_MAX;
    for (size_t at = 0; len - at >= JFR_CHUNK_HEAD && memcmp(file + at, "FLR", 4) == 0;) {
        uint64_t size = chunk_big_endian(file + at + HEAD_SIZE);
        if (size < JFR_CHUNK_HEAD)
            break;
        last = at;
        *ret_len = MIN(size, len - at);
        at += *ret_len;
    }
    return last;
}

/* Reads a compressed integer of at most four bytes. Returns false when the bytes end first. */
static bool read_number(const uint8_t *at, size_t len, size_t *ret_used, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < MIN(len, (size_t)4); i++) {
        *ret |= (uint32_t)(at[i] & 0x7f) << (7 * i);
        *ret_used = i + 1;
        if (!(at[i] & 0x80))
            return true;
    }
    return false;
}

/*
 * Returns where the last event that is not a pad ends in the bytes of a chunk, or 0 when the chain
 * is broken.
 */
static size_t used_bytes(const uint8_t *chunk, size_t len)
{
    static const uint8_t pad[] = {CODE_PAD & 0xff, CODE_PAD >> 8};
    size_t used = JFR_CHUNK_HEAD;
    for (size_t at = JFR_CHUNK_HEAD, n; at < len; at += n) {
        uint32_t size;
        if (!read_number(chunk + at, len - at, &n, &size) || size < n + sizeof(pad))
            return 0;
        if (size > len - at)
            break; /* this event was being written */
        bool is_pad = memcmp(chunk + at + n, pad, sizeof(pad)) == 0;
        n = size;
        used = is_pad ? used : at + n;
    }
    return used;
}

/*
 * Maps the file and finds the start and the used bytes of its last chunk. *ret_used is 0 when this
 * is not a recording by our agent.
 */
static int map_file(int fd, int protection, uint8_t **ret_file, size_t *ret_len, size_t *ret_at,
                    size_t *ret_used)
{
    struct stat st;
    size_t chunk_len = 0;
    *ret_used = *ret_len = 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < (off_t)JFR_CHUNK_HEAD)
        return 0;
    uint8_t *file = mmap(NULL, (size_t)st.st_size, protection, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        return -errno;
    *ret_file = file;
    *ret_len = (size_t)st.st_size;
    *ret_at = last_chunk(file, *ret_len, &chunk_len);
    *ret_used = *ret_at == SIZE_MAX ? 0 : used_bytes(file + *ret_at, chunk_len);
    return 0;
}

int jfr_cut_copy(int fd)
{
    uint8_t *file = NULL;
    size_t len, at = 0, used;
    int r = map_file(fd, PROT_READ | PROT_WRITE, &file, &len, &at, &used);
    if (used) {
        chunk_put_big_endian(file + at + HEAD_SIZE, used);
        file[at + HEAD_FEATURES] |= JFR_FINAL;
    }
    if (len)
        munmap(file, len);
    return used && ftruncate(fd, (off_t)(at + used)) < 0 ? -errno : r;
}

int jfr_used_bytes(int fd, uint64_t *ret)
{
    uint8_t *file = NULL;
    size_t len, at = 0, used;
    int r = map_file(fd, PROT_READ, &file, &len, &at, &used);
    if (len)
        munmap(file, len);
    *ret = at + used;
    return r < 0 || used ? r : -ENODATA;
}
