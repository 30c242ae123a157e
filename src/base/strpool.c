/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strpool.h"

#include "base/hash.h"

static size_t find(const struct strpool *p, const char *data, size_t len)
{
    size_t i = hash_bytes(data, len) & (p->cap - 1);
    for (; p->index[i]; i = (i + 1) & (p->cap - 1)) {
        struct str s = p->strings.data[p->index[i] - 1];
        if (s.len == len && (len == 0 || memcmp(s.data, data, len) == 0))
            break;
    }
    return i;
}

static int grow(struct strpool *p)
{
    size_t cap = p->cap ? p->cap * 2 : 64;
    uint32_t *index = calloc(cap, sizeof(*index));
    if (!index)
        return -ENOMEM;
    free(p->index);
    p->index = index;
    p->cap = cap;
    for (size_t i = 0; i < p->strings.len; i++)
        p->index[find(p, p->strings.data[i].data, p->strings.data[i].len)] = (uint32_t)i + 1;
    return 0;
}

int64_t strpool_add(struct strpool *p, const char *data, size_t len)
{
    if (p->strings.len + 1 > p->cap / 2 && grow(p) < 0)
        return -ENOMEM;
    size_t i = find(p, data, len);
    if (p->index[i])
        return p->index[i] - 1;
    if (p->strings.len >= UINT32_MAX - 1)
        return -ENOMEM;
    struct str s = {arena_copy(&p->arena, data, len), len};
    if (!s.data || vec_push(&p->strings, s) < 0)
        return -ENOMEM;
    p->index[i] = (uint32_t)p->strings.len;
    return (int64_t)p->strings.len - 1;
}

int64_t strpool_find(const struct strpool *p, const char *data, size_t len)
{
    if (!p->cap)
        return -ENOENT;
    size_t i = find(p, data, len);
    return p->index[i] ? (int64_t)p->index[i] - 1 : -ENOENT;
}

struct str strpool_get(const struct strpool *p, uint64_t number)
{
    return number < p->strings.len ? p->strings.data[number] : (struct str){"", 0};
}

void strpool_release(struct strpool *p)
{
    arena_release(&p->arena);
    vec_release(&p->strings);
    free(p->index);
    *p = (struct strpool){0};
}
