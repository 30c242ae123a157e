/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kept.h"

#include "base/file.h"
#include "base/hex.h"
#include "base/vec.h"
#include "wire/unpack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_LEN = 128, PATH_LEN = 4096, LAYERS = 3, KEPT_FILE_MAX = 128 << 20 };

struct kept_file {
    char name[NAME_LEN];
    struct timespec time;
    uint64_t size;
};

struct kept_files {
    VEC(struct kept_file) list;
};

void kept_id(const struct fleet_hash *upload, char ret[KEPT_ID_LEN + 1])
{
    hex_write(upload->bytes, FLEET_HASH_BYTES, ret);
    ret[KEPT_ID_LEN] = 0;
}

/*
 * Names are unique, because those of tenants have neither slashes nor spaces, and all ids have the
 * same length.
 */
static int path_of(const struct kept_uploads *k, const char *tenant, const char *id,
                   char path[PATH_LEN])
{
    int len = snprintf(path, PATH_LEN, "%s/%s-%s.jfr", k->folder, tenant, id);
    return len < PATH_LEN ? 0 : -ENAMETOOLONG;
}

static int list_files(const struct kept_uploads *k, struct kept_files *ret)
{
    DIR *d = opendir(k->folder);
    int r = d ? 0 : -errno;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        struct kept_file f;
        struct stat st;
        if (strlen(e->d_name) >= NAME_LEN || !file_name_ends_in(e->d_name, ".jfr") ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        strcpy(f.name, e->d_name);
        f.time = st.st_mtim;
        f.size = (uint64_t)st.st_size;
        r = vec_push(&ret->list, f);
    }
    if (d)
        closedir(d);
    return r;
}

static int by_time(const void *left, const void *right)
{
    const struct kept_file *a = left, *b = right;
    if (a->time.tv_sec != b->time.tv_sec)
        return a->time.tv_sec < b->time.tv_sec ? -1 : 1;
    if (a->time.tv_nsec != b->time.tv_nsec)
        return a->time.tv_nsec < b->time.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/*
 * Counts the files and removes the oldest until there are at most `limit` bytes. Files that another
 * collector wrote into the same folder count, too.
 */
static int shrink(struct kept_uploads *k, uint64_t limit)
{
    struct kept_files files = {0};
    char path[PATH_LEN];
    int r = list_files(k, &files);
    uint64_t size = 0;
    for (size_t i = 0; i < files.list.len; i++)
        size += files.list.data[i].size;
    vec_sort(&files.list, by_time);
    for (size_t i = 0; i < files.list.len && size > limit && r == 0; i++) {
        const struct kept_file *f = &files.list.data[i];
        int len = snprintf(path, sizeof(path), "%s/%s", k->folder, f->name);
        if (len < PATH_LEN && unlink(path) < 0 && errno != ENOENT)
            r = -errno;
        else
            size -= f->size;
    }
    k->size = size;
    vec_release(&files.list);
    return r;
}

int kept_open(struct kept_uploads *k)
{
    if (!k->folder)
        return 0;
    if (mkdir(k->folder, 0700) < 0 && errno != EEXIST)
        return -errno;
    return shrink(k, k->size_max);
}

/* Unpacks a file as the other commands do, into ret. Returns 0 or a negative errno. */
static int unpack_all(const struct file_map *map, uint64_t limit, struct buf *ret)
{
    _cleanup_(buf_release) struct buf why = BUF(1000), inner = BUF(limit);
    int r = unpack_bytes(map->data, map->len, limit, ret, &why);
    for (int i = 0; i < LAYERS && r == 0 && unpack_is_packed(ret->data, ret->len); i++) {
        buf_clear(&inner);
        r = unpack_bytes(ret->data, ret->len, limit, &inner, &why);
        struct buf outer = *ret;
        *ret = inner;
        inner = outer;
    }
    return r;
}

static int write_file(const char *to, const void *bytes, size_t len)
{
    _cleanup_(out_file_release) struct out_file out = OUT_FILE;
    int r = out_file_open_private(&out, to);
    if (r == 0)
        r = out_file_write(&out, bytes, len);
    return r < 0 ? r : out_file_commit(&out);
}

static int put_bytes(struct kept_uploads *k, const char *to, const void *bytes, size_t len)
{
    int r = 0;
    if (len > k->size_max)
        return -EFBIG;
    pthread_mutex_lock(&k->lock);
    /* Frees more room than needed, so that the folder need not be read for each upload. */
    if (k->size + len > k->size_max)
        r = shrink(k, k->size_max - len - (k->size_max - len) / 16);
    if (r == 0)
        r = write_file(to, bytes, len);
    if (r == 0)
        k->size += len;
    pthread_mutex_unlock(&k->lock);
    return r;
}

int kept_put(struct kept_uploads *k, const char *tenant, const struct fleet_hash *upload,
             const char *path)
{
    _cleanup_(buf_release) struct buf plain = BUF(KEPT_FILE_MAX);
    char to[PATH_LEN], id[KEPT_ID_LEN + 1];
    struct file_map map = {0};
    kept_id(upload, id);
    int r = path_of(k, tenant, id, to);
    if (r == 0)
        r = file_map_open(&map, path);
    bool packed = r == 0 && unpack_is_packed(map.data, map.len);
    if (packed)
        r = unpack_all(&map, KEPT_FILE_MAX, &plain);
    if (r == 0)
        r = packed ? put_bytes(k, to, plain.data, plain.len) : put_bytes(k, to, map.data, map.len);
    file_map_release(&map);
    return r;
}

int kept_get(const struct kept_uploads *k, const char *tenant, const char *id)
{
    char path[PATH_LEN];
    if (!k->folder || strlen(id) != KEPT_ID_LEN || strspn(id, "0123456789abcdef") != KEPT_ID_LEN)
        return -ENOENT;
    int r = path_of(k, tenant, id, path);
    if (r < 0)
        return r;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}
