/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/batch.h"

#include "base/cursor.h"
#include "base/hash.h"
#include "base/latency.h"
#include "fleet/stable.h"

#include <errno.h>

const char *const fleet_latency_types[FLEET_GROUPS] = {FLEET_LATENCY, FLEET_LATENCY_SLOW,
                                                       FLEET_LATENCY_TYPICAL};

void batch_release(struct batch *b)
{
    strpool_release(&b->strings);
    vec_release(&b->origin);
    vec_release(&b->types);
    vec_release(&b->frames);
    vec_release(&b->stacks);
    vec_release(&b->path);
    vec_release(&b->requests);
    vec_release(&b->traces);
    vec_release(&b->samples);
    vec_release(&b->latencies);
    vec_release(&b->counts);
    vec_release(&b->findings);
    vec_release(&b->last);
    map_release(&b->frame_of);
    map_release(&b->stack_of);
    map_release(&b->request_of);
    map_release(&b->trace_of);
}

int64_t batch_type(struct batch *b, const char *name, const char *unit)
{
    int64_t n = strpool_add(&b->strings, name, strlen(name));
    int64_t u = n < 0 ? n : strpool_add(&b->strings, unit, strlen(unit));
    if (u < 0)
        return u;
    for (size_t i = 0; i < b->types.len; i++)
        if (b->types.data[i].name == n && b->types.data[i].unit == u)
            return (int64_t)i;
    int r = vec_push(&b->types, ((struct fleet_type){(uint32_t)n, (uint32_t)u}));
    return r < 0 ? r : (int64_t)b->types.len - 1;
}

int64_t batch_frame(struct batch *b, enum fleet_kind kind, const char *label, size_t len)
{
    _cleanup_free_ char *text = malloc(len + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, label, len);
    if (kind == FLEET_JAVA)
        len = fleet_stable_label(text, len);
    int64_t string = strpool_add(&b->strings, text, len);
    if (string < 0)
        return string;
    bool is_new;
    uint64_t *at =
        map_at(&b->frame_of, (uint64_t)kind << 32 | (uint64_t)string, b->frames.len, &is_new);
    if (!at)
        return -ENOMEM;
    if (!is_new)
        return (int64_t)*at;
    struct fleet_frame f = {fleet_hash_frame((uint8_t)kind, text, len), (uint32_t)string,
                            (uint8_t)kind};
    int r = vec_push(&b->frames, f);
    return r < 0 ? r : (int64_t)b->frames.len - 1;
}

/*
 * Computes the hash of a stack, reusing the hashes of the callers that it shares with the last
 * stack.
 */
static int name_stack(struct batch *b, const uint32_t *frames, size_t depth, struct fleet_hash *ret)
{
    size_t same = 0;
    while (same < depth && same < b->last.len && b->last.data[same].frame == frames[same])
        same++;
    b->last.len = same;
    *ret = same ? b->last.data[same - 1].hash : (struct fleet_hash){{0}};
    for (size_t i = same; i < depth; i++) {
        *ret = fleet_hash_stack(ret, &b->frames.data[frames[i]].hash);
        int r = vec_push(&b->last, ((struct fleet_named){frames[i], *ret}));
        if (r < 0)
            return r;
    }
    return 0;
}

int64_t batch_stack(struct batch *b, const uint32_t *frames, size_t depth)
{
    struct fleet_hash h;
    int named = name_stack(b, frames, depth, &h);
    if (named < 0)
        return named;
    bool is_new;
    uint64_t *at = map_at(&b->stack_of, fleet_hash_key(&h), b->stacks.len, &is_new);
    if (!at)
        return -ENOMEM;
    if (!is_new)
        return (int64_t)*at;
    struct fleet_stack s = {h, (uint32_t)b->path.len, (uint32_t)depth};
    if (b->path.len + depth > UINT32_MAX)
        return -E2BIG;
    int r = vec_extend(&b->path, depth);
    if (r < 0)
        return r;
    if (depth)
        memcpy(b->path.data + s.first, frames, depth * sizeof(*frames));
    r = vec_push(&b->stacks, s);
    return r < 0 ? r : (int64_t)b->stacks.len - 1;
}

int64_t batch_name(struct batch *b, enum fleet_name_kind kind, const char *name, size_t len)
{
    int64_t string = strpool_add(&b->strings, name, len);
    if (string < 0)
        return string;
    bool is_new;
    uint64_t *at =
        map_at(&b->request_of, (uint64_t)kind << 32 | (uint64_t)string, b->requests.len, &is_new);
    if (!at)
        return -ENOMEM;
    int r = is_new ? vec_push(&b->requests, ((struct fleet_name){(uint32_t)string, kind})) : 0;
    return r < 0 ? r : (int64_t)*at;
}

int64_t batch_trace(struct batch *b, const struct fleet_hash *trace)
{
    bool is_new;
    uint64_t key = hash_bytes(trace->bytes, FLEET_HASH_BYTES);
    uint64_t *at = map_at(&b->trace_of, key, b->traces.len, &is_new);
    if (!at)
        return -ENOMEM;
    int r = is_new ? vec_push(&b->traces, *trace) : 0;
    return r < 0 ? r : (int64_t)*at;
}

int batch_sample(struct batch *b, int64_t time_ns, struct fleet_sample sample)
{
    sample.start_s = fleet_floor(time_ns / 1000000000, FLEET_BUCKET_S);
    return vec_push(&b->samples, sample);
}

int batch_finding(struct batch *b, int64_t time_ns, const char *kind, const char *text,
                  uint64_t count, uint64_t weight_ns)
{
    int64_t k = strpool_add(&b->strings, kind, strlen(kind));
    int64_t t = k < 0 ? k : strpool_add(&b->strings, text, strlen(text));
    struct fleet_finding f = {.start_s = time_ns / 1000000000,
                              .kind = (uint32_t)k,
                              .text = (uint32_t)t,
                              .count = count,
                              .weight_ns = weight_ns};
    return t < 0 ? (int)t : vec_push(&b->findings, f);
}

static int compare_samples(const void *left, const void *right)
{
    const struct fleet_sample *a = left, *b = right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    if (a->request != b->request)
        return a->request < b->request ? -1 : 1;
    return (a->trace > b->trace) - (a->trace < b->trace);
}

int batch_close(struct batch *b)
{
    size_t kept = 0;
    vec_sort(&b->samples, compare_samples);
    for (size_t i = 0; i < b->samples.len; i++) {
        struct fleet_sample *s = &b->samples.data[i];
        if (kept && compare_samples(&b->samples.data[kept - 1], s) == 0) {
            b->samples.data[kept - 1].count += s->count;
            b->samples.data[kept - 1].weight += s->weight;
        } else {
            b->samples.data[kept++] = *s;
        }
    }
    b->samples.len = kept;
    return 0;
}

void batch_shift(struct batch *b, int64_t seconds)
{
    seconds = fleet_floor(seconds, FLEET_BUCKET_S);
    for (size_t i = 0; i < b->samples.len; i++)
        b->samples.data[i].start_s += seconds;
    for (size_t i = 0; i < b->latencies.len; i++)
        b->latencies.data[i].start_s += seconds;
    for (size_t i = 0; i < b->findings.len; i++)
        b->findings.data[i].start_s += seconds;
    b->start_ns += seconds * 1000000000;
    b->end_ns += seconds * 1000000000;
}

int batch_check(const struct batch *b, const struct batch_limits *limits, struct buf *why)
{
    const struct {
        uint64_t is, limit;
        const char *what;
    } sizes[] = {
        {b->stacks.len, limits->stacks, "different stacks"},
        {b->samples.len, limits->samples, "samples of different stack and time"},
        {b->requests.len, limits->requests, "names of requests"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        if (sizes[i].is > sizes[i].limit) {
            buf_printf(why, "the profile has %llu %s; at most %llu are accepted",
                       (unsigned long long)sizes[i].is, sizes[i].what,
                       (unsigned long long)sizes[i].limit);
            return -E2BIG;
        }
    }
    for (size_t i = 0; i < b->stacks.len; i++) {
        if (b->stacks.data[i].depth > limits->depth) {
            buf_printf(why, "a stack has %u frames; at most %llu are accepted",
                       b->stacks.data[i].depth, (unsigned long long)limits->depth);
            return -E2BIG;
        }
    }
    for (size_t i = 0; i < b->strings.strings.len; i++) {
        if (b->strings.strings.data[i].len > limits->text) {
            buf_printf(why, "a name has %zu bytes; at most %llu are accepted",
                       b->strings.strings.data[i].len, (unsigned long long)limits->text);
            return -E2BIG;
        }
    }
    return 0;
}

bool batch_span(const struct batch *b, int64_t *ret_first, int64_t *ret_last)
{
    bool any = false;
    int64_t first = 0, last = 0;
#define SPAN(list)                                                                 \
    for (size_t i = 0; i < (list).len; i++) {                                      \
        first = any ? MIN(first, (list).data[i].start_s) : (list).data[i].start_s; \
        last = any ? MAX(last, (list).data[i].start_s) : (list).data[i].start_s;   \
        any = true;                                                                \
    }
    SPAN(b->samples)
    SPAN(b->latencies)
    SPAN(b->findings)
#undef SPAN
    *ret_first = first;
    *ret_last = last;
    return any;
}

/* ---- between processes of one machine and one build, so structures are copied as they are */

#define PACK_LISTS(b, DO) \
    DO((b)->origin)       \
    DO((b)->types)        \
    DO((b)->frames)       \
    DO((b)->stacks)       \
    DO((b)->path)         \
    DO((b)->requests)     \
    DO((b)->traces)       \
    DO((b)->samples)      \
    DO((b)->latencies)    \
    DO((b)->counts)       \
    DO((b)->findings)

void batch_pack(const struct batch *b, struct buf *to)
{
    buf_varint(to, b->strings.strings.len);
    for (size_t i = 0; i < b->strings.strings.len; i++) {
        buf_varint(to, b->strings.strings.data[i].len);
        buf_bytes(to, b->strings.strings.data[i].data, b->strings.strings.data[i].len);
    }
#define PACK(list)              \
    buf_varint(to, (list).len); \
    if ((list).len)             \
        buf_bytes(to, (list).data, (list).len * sizeof(*(list).data));
    PACK_LISTS(b, PACK)
#undef PACK
    buf_bytes(to, &b->start_ns, sizeof(b->start_ns));
    buf_bytes(to, &b->end_ns, sizeof(b->end_ns));
    buf_bytes(to, &b->lost, sizeof(b->lost));
}

/* Returns whether all numbers in a batch from another process refer to existing elements. */
static bool is_sound(const struct batch *b)
{
    size_t n_strings = b->strings.strings.len;
    bool ok = true;
    for (size_t i = 0; i < b->origin.len; i++)
        ok = ok && b->origin.data[i].key < n_strings && b->origin.data[i].value < n_strings;
    for (size_t i = 0; i < b->types.len; i++)
        ok = ok && b->types.data[i].name < n_strings && b->types.data[i].unit < n_strings;
    for (size_t i = 0; i < b->frames.len; i++)
        ok = ok && b->frames.data[i].label < n_strings && b->frames.data[i].kind < FLEET_KINDS;
    for (size_t i = 0; i < b->stacks.len; i++)
        ok = ok && b->stacks.data[i].first <= b->path.len &&
             b->stacks.data[i].depth <= b->path.len - b->stacks.data[i].first;
    for (size_t i = 0; i < b->path.len; i++)
        ok = ok && b->path.data[i] < b->frames.len;
    for (size_t i = 0; i < b->requests.len; i++)
        ok = ok && b->requests.data[i].text < n_strings &&
             b->requests.data[i].kind < FLEET_NAME_KINDS;
    for (size_t i = 0; i < b->samples.len; i++) {
        const struct fleet_sample *s = &b->samples.data[i];
        ok = ok && s->type < b->types.len && s->stack < b->stacks.len &&
             s->request <= b->requests.len && s->trace <= b->traces.len;
    }
    for (size_t i = 0; i < b->latencies.len; i++) {
        const struct fleet_latency *l = &b->latencies.data[i];
        ok = ok && l->request < b->requests.len && l->first <= b->counts.len &&
             l->buckets <= b->counts.len - l->first;
    }
    for (size_t i = 0; i < b->counts.len; i++)
        ok = ok && b->counts.data[i].bucket < LATENCY_BUCKETS;
    for (size_t i = 0; i < b->findings.len; i++)
        ok = ok && b->findings.data[i].kind < n_strings && b->findings.data[i].text < n_strings;
    return ok;
}

static int unpack_strings(struct batch *b, struct cursor *c)
{
    uint64_t n = cursor_varint(c);
    for (uint64_t i = 0; i < n && !c->failed; i++) {
        uint64_t len = cursor_varint(c);
        const uint8_t *text = cursor_take(c, len);
        int64_t at = text ? strpool_add(&b->strings, (const char *)text, len) : -EBADMSG;
        if (at < 0)
            return (int)at;
    }
    return c->failed || b->strings.strings.len != n ? -EBADMSG : 0;
}

int batch_unpack(struct batch *ret, struct cursor *from)
{
    struct cursor c = *from;
    struct batch b = {0};
    int r = unpack_strings(&b, &c);
#define UNPACK(list)                                                                      \
    if (r == 0) {                                                                         \
        uint64_t n = cursor_varint(&c);                                                   \
        bool fits = n <= cursor_left(&c) / sizeof(*(list).data);                          \
        const uint8_t *packed_ = fits ? cursor_take(&c, n * sizeof(*(list).data)) : NULL; \
        r = packed_ ? vec_extend(&(list), n) : -EBADMSG;                                  \
        if (r == 0 && n)                                                                  \
            memcpy((list).data, packed_, n * sizeof(*(list).data));                       \
    }
    PACK_LISTS(&b, UNPACK)
#undef UNPACK
    b.start_ns = (int64_t)cursor_le64(&c);
    b.end_ns = (int64_t)cursor_le64(&c);
    b.lost = cursor_le64(&c);
    if (r == 0 && (c.failed || !is_sound(&b)))
        r = -EBADMSG;
    if (r < 0)
        batch_release(&b);
    else
        *ret = b;
    *from = c;
    return r;
}
