/* SPDX-License-Identifier: Apache-2.0 */
#include "page/cache.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "page/page.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct header {
    char magic[8]; /* "jvmspage" */
    uint64_t key, len;
};

static const char magic[] = "jvmspage";

static uint64_t hash_text(uint64_t h, const char *s)
{
    return hash_u64(h ^ (s ? hash_bytes(s, strlen(s)) : 1));
}

uint64_t page_cache_key(const char *path, const struct page_site *site, const char *sources)
{
    struct stat st;
    /* sources may change independently */
    if (sources || stat(path, &st) < 0 || st.st_size < PAGE_CACHE_BYTES)
        return 0;
    uint64_t h = hash_u64((uint64_t)st.st_size) ^
                 ((uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND + (uint64_t)st.st_mtim.tv_nsec);
    h = hash_text(hash_text(h, page_tail), JVMSCOPE_VERSION);
    for (size_t i = 0; i < site->count; i++)
        h = hash_text(h, site->files[i]);
    return hash_u64(h ^ site->at) | 1;
}

int page_cache_get(const char *path, uint64_t key, struct buf *out)
{
    char name[4096];
    _cleanup_(file_map_release) struct file_map m = {0};
    struct header h;
    if (!key || snprintf(name, sizeof(name), "%s.page", path) >= (int)sizeof(name))
        return -ENOENT;
    int r = file_map_open(&m, name);
    if (r < 0)
        return r;
    if (m.len < sizeof(h))
        return -EPROTO;
    memcpy(&h, m.data, sizeof(h));
    if (memcmp(h.magic, magic, sizeof(h.magic)) != 0 || h.key != key || h.len != m.len - sizeof(h))
        return -ESTALE;
    buf_bytes(out, m.data + sizeof(h), h.len);
    return buf_error(out);
}

void page_cache_put(const char *path, uint64_t key, const struct buf *data)
{
    char name[4096];
    struct header h = {.key = key, .len = data->len};
    if (!key || snprintf(name, sizeof(name), "%s.page", path) >= (int)sizeof(name))
        return;
    memcpy(h.magic, magic, sizeof(h.magic));
    if (file_is_foreign(name, magic, sizeof(h.magic)))
        return;
    _cleanup_(out_file_release) struct out_file f = OUT_FILE;
    int r = out_file_open_like(&f, name, path);
    if (r == 0)
        r = file_write_all(f.fd, &h, sizeof(h));
    if (r == 0)
        r = file_write_all(f.fd, data->data, data->len);
    if (r == 0)
        (void)!out_file_commit(&f); /* it is only a cache: if it cannot be written, there is none */
}
