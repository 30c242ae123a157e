/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/batch.h"

#include "base/hash.h"
#include "base/json.h"

#include <errno.h>

const struct wire_limits wire_limits_wide = {
    .bytes = SIZE_MAX / 2,
    .profiles = 1 << 20,
    .samples = UINT32_MAX,
    .labels = 1 << 16,
    .label_text = 1 << 24,
    .depth = 1 << 16,
    .entries = UINT32_MAX - 1,
    .frames = SIZE_MAX,
};

static size_t or_usual(size_t limit, size_t usual)
{
    return limit ? limit : usual;
}

int wire_beyond(struct wire_batch *b, const char *what)
{
    b->beyond = what;
    return -E2BIG;
}

/* Accounts for bytes by which a table is about to grow. */
static int use(struct wire_batch *b, size_t bytes)
{
    size_t max = or_usual(b->limits.bytes, (size_t)256 << 20);
    if (bytes > max || b->used > max - bytes)
        return wire_beyond(b, "too much memory");
    b->used += bytes;
    return 0;
}

/* Number 0 of each table. */
static int begin(struct wire_batch *b)
{
    if (b->nodes.len)
        return 0;
    int64_t empty = strpool_add(&b->strings, "", 0);
    if (empty < 0 || vec_reserve(&b->nodes, 1) < 0 || vec_reserve(&b->sets, 1) < 0 ||
        vec_reserve(&b->links, 1) < 0)
        return -ENOMEM;
    b->nodes.data[b->nodes.len++] = (struct wire_node){0};
    b->sets.data[b->sets.len++] = (struct wire_label_set){0};
    b->links.data[b->links.len++] = (struct wire_link){0};
    return 0;
}

void wire_batch_release(struct wire_batch *b)
{
    for (size_t i = 0; i < b->profiles.len; i++) {
        vec_release(&b->profiles.data[i].types);
        vec_release(&b->profiles.data[i].samples);
    }
    strpool_release(&b->strings);
    vec_release(&b->frames);
    vec_release(&b->nodes);
    vec_release(&b->labels);
    vec_release(&b->sets);
    vec_release(&b->links);
    vec_release(&b->profiles);
    map_release(&b->frame_index);
    map_release(&b->node_index);
    map_release(&b->set_index);
    map_release(&b->link_index);
    *b = (struct wire_batch){0};
}

/*
 * The bytes that a string, a place in an index and a sample take, including the room that tables
 * keep in reserve.
 */
enum { STRING_BYTES = 40, INDEX_BYTES = 34 };

static bool is_ascii(const char *text, size_t len)
{
    uint8_t all = 0;
    for (size_t i = 0; i < len; i++)
        all |= (uint8_t)text[i];
    return all < 0x80;
}

int64_t wire_string(struct wire_batch *b, const char *text, size_t len)
{
    int r = begin(b);
    _cleanup_(buf_release) struct buf utf8 = BUF(3 * len + 1);
    if (r == 0 && !is_ascii(text, len)) {
        json_put_utf8(&utf8, text, len);
        r = buf_error(&utf8);
        text = buf_str(&utf8);
        len = utf8.len;
    }
    if (r < 0)
        return r;
    size_t before = b->strings.strings.len;
    /*
     * Whether the string is new is known only after it was added; one string above the limit does
     * no harm.
     */
    int64_t n = strpool_add(&b->strings, text, len);
    if (n >= 0 && b->strings.strings.len > before)
        r = use(b, len + STRING_BYTES);
    return r < 0 ? r : n;
}

int64_t wire_frame(struct wire_batch *b, const struct wire_frame *frame)
{
    int r = begin(b);
    for (uint64_t key = hash_bytes(frame, sizeof(*frame)); r == 0; key++) {
        bool added = false;
        const uint64_t *at = map_at(&b->frame_index, key, b->frames.len, &added);
        if (!at)
            return -ENOMEM;
        int64_t n = (int64_t)*at;
        if (!added && memcmp(&b->frames.data[n], frame, sizeof(*frame)) != 0)
            continue; /* another frame has the same hash */
        if (added)
            r = use(b, sizeof(*frame) * 2 + INDEX_BYTES);
        if (added && r == 0)
            r = vec_push(&b->frames, *frame);
        if (added && r < 0)
            map_remove(&b->frame_index, key);
        return r < 0 ? r : n;
    }
    return r;
}

int64_t wire_node(struct wire_batch *b, uint32_t parent, uint32_t frame)
{
    int r = begin(b);
    if (r < 0)
        return r;
    uint32_t depth = b->nodes.data[parent].depth + 1;
    if (depth > or_usual(b->limits.depth, 4096))
        return wire_beyond(b, "a stack with too many frames");
    bool added = false;
    uint64_t key = (uint64_t)parent << 32 | frame;
    const uint64_t *at = map_at(&b->node_index, key, b->nodes.len, &added);
    if (!at)
        return -ENOMEM;
    int64_t n = (int64_t)*at;
    if (!added)
        return n;
    r = use(b, sizeof(struct wire_node) * 2 + INDEX_BYTES);
    if (r == 0)
        r = vec_push(&b->nodes, ((struct wire_node){parent, frame, depth}));
    if (r < 0)
        map_remove(&b->node_index, key);
    return r < 0 ? r : n;
}

static int compare_text(struct str a, struct str b)
{
    int r = memcmp(a.data, b.data, MIN(a.len, b.len));
    return r ? r : (a.len > b.len) - (a.len < b.len);
}

/* Sorts by insertion, which keeps labels of the same key in their order: there are few. */
static void sort_labels(const struct wire_batch *b, struct wire_label *labels, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct wire_label moved = labels[i];
        size_t k = i;
        for (; k > 0 && compare_text(wire_text(b, labels[k - 1].key), wire_text(b, moved.key)) > 0;
             k--)
            labels[k] = labels[k - 1];
        labels[k] = moved;
    }
}

/* Keeps the last label of each key, unless it is empty. Returns how many remain. */
static size_t settle_labels(const struct wire_batch *b, struct wire_label *labels, size_t n)
{
    size_t kept = 0;
    sort_labels(b, labels, n);
    for (size_t i = 0; i < n; i++) {
        bool last = i + 1 == n || labels[i + 1].key != labels[i].key;
        if (last && wire_text(b, labels[i].value).len)
            labels[kept++] = labels[i];
    }
    return kept;
}

static bool is_set(const struct wire_batch *b, uint64_t set, const struct wire_label *labels,
                   size_t n)
{
    struct wire_label_set s = b->sets.data[set];
    return s.len == n && memcmp(&b->labels.data[s.first], labels, n * sizeof(*labels)) == 0;
}

static int add_set(struct wire_batch *b, const struct wire_label *labels, size_t n)
{
    size_t text_max = or_usual(b->limits.label_text, 4096);
    for (size_t i = 0; i < n; i++)
        if (wire_text(b, labels[i].key).len > text_max ||
            wire_text(b, labels[i].value).len > text_max)
            return wire_beyond(b, "a label that is too long");
    struct wire_label_set set = {(uint32_t)b->labels.len, (uint32_t)n};
    int r = use(b, n * sizeof(*labels) * 2 + sizeof(set) * 2 + INDEX_BYTES);
    if (r == 0)
        r = vec_reserve(&b->sets, b->sets.len + 1);
    if (r == 0)
        r = vec_extend(&b->labels, n);
    if (r < 0)
        return r;
    memcpy(&b->labels.data[set.first], labels, n * sizeof(*labels));
    return vec_push(&b->sets, set);
}

int64_t wire_labels(struct wire_batch *b, struct wire_label *labels, size_t n)
{
    int r = begin(b);
    if (r == 0 && n > or_usual(b->limits.labels, 128))
        r = wire_beyond(b, "too many labels");
    if (r < 0)
        return r;
    n = settle_labels(b, labels, n);
    if (!n)
        return 0;
    for (uint64_t key = hash_bytes(labels, n * sizeof(*labels));; key++) {
        bool added = false;
        const uint64_t *at = map_at(&b->set_index, key, b->sets.len, &added);
        if (!at)
            return -ENOMEM;
        int64_t set = (int64_t)*at;
        if (!added && !is_set(b, (uint64_t)set, labels, n))
            continue;
        if (added)
            r = add_set(b, labels, n);
        if (r < 0)
            map_remove(&b->set_index, key);
        return r < 0 ? r : set;
    }
}

int64_t wire_labels_with(struct wire_batch *b, uint32_t set, const struct wire_label *labels,
                         size_t n)
{
    int r = begin(b);
    if (r < 0)
        return r;
    struct wire_label_set s = b->sets.data[set];
    VEC(struct wire_label) all = {0};
    r = vec_extend(&all, s.len + n);
    if (r < 0)
        return r;
    if (s.len)
        memcpy(all.data, &b->labels.data[s.first], s.len * sizeof(*labels));
    if (n)
        memcpy(all.data + s.len, labels, n * sizeof(*labels));
    int64_t with = wire_labels(b, all.data, all.len);
    vec_release(&all);
    return with;
}

struct str wire_label(const struct wire_batch *b, uint32_t set, const char *key)
{
    struct wire_label_set s = set < b->sets.len ? b->sets.data[set] : (struct wire_label_set){0};
    for (uint32_t i = 0; i < s.len; i++) {
        const struct wire_label *l = &b->labels.data[s.first + i];
        if (str_is(wire_text(b, l->key), key))
            return wire_text(b, l->value);
    }
    return (struct str){"", 0};
}

int64_t wire_link(struct wire_batch *b, const struct wire_link *link)
{
    static const struct wire_link none;
    int r = begin(b);
    if (r < 0 || memcmp(link, &none, sizeof(none)) == 0)
        return r;
    for (uint64_t key = hash_bytes(link, sizeof(*link));; key++) {
        bool added = false;
        const uint64_t *at = map_at(&b->link_index, key, b->links.len, &added);
        if (!at)
            return -ENOMEM;
        int64_t n = (int64_t)*at;
        if (!added && memcmp(&b->links.data[n], link, sizeof(*link)) != 0)
            continue;
        if (added)
            r = use(b, sizeof(*link) * 2 + INDEX_BYTES);
        if (added && r == 0)
            r = vec_push(&b->links, *link);
        if (r < 0)
            map_remove(&b->link_index, key);
        return r < 0 ? r : n;
    }
}

int64_t wire_profile(struct wire_batch *b)
{
    int r = begin(b);
    if (r == 0 && b->profiles.len >= or_usual(b->limits.profiles, 10000))
        r = wire_beyond(b, "too many profiles");
    if (r == 0)
        r = use(b, sizeof(struct wire_profile) * 2);
    if (r == 0)
        r = vec_extend(&b->profiles, 1);
    return r < 0 ? r : (int64_t)b->profiles.len - 1;
}

int64_t wire_type(struct wire_batch *b, struct wire_profile *p, const char *name, const char *unit)
{
    int64_t n = wire_string(b, name, strlen(name)), u = wire_string(b, unit, strlen(unit));
    if (n < 0 || u < 0)
        return MIN(n, u);
    int r = use(b, sizeof(struct wire_type) * 2);
    if (r == 0)
        r = vec_push(&p->types, ((struct wire_type){(uint32_t)n, (uint32_t)u}));
    return r < 0 ? r : (int64_t)p->types.len - 1;
}

int wire_sample(struct wire_batch *b, struct wire_profile *p, const struct wire_sample *sample)
{
    if (b->samples >= or_usual(b->limits.samples, 4000000))
        return wire_beyond(b, "too many samples");
    int r =
        p->samples.len < p->samples.cap ? 0 : use(b, (p->samples.cap / 2 + 8) * sizeof(*sample));
    if (r == 0)
        r = vec_push(&p->samples, *sample);
    b->samples += r == 0;
    return r;
}
