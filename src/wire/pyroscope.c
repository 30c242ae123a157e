/* SPDX-License-Identifier: Apache-2.0 */
/* What Pyroscope's agents send. */
#include "wire/pyroscope.h"

#include "base/hash.h"
#include "base/hex.h"
#include "base/protobuf.h"
#include "wire/connect.h"
#include "wire/decode.h"
#include "wire/pprof.h"
#include "wire/unpack.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>

enum { PROFILE_MAX = 64 << 20, NAME_MAX_BYTES = 1 << 16 };

/* ---- /ingest ---- */

/*
 * Reads a time in seconds, milliseconds, microseconds or nanoseconds; the number of digits shows
 * which.
 */
static uint64_t time_of(const char *text)
{
    uint64_t v = text ? strtoull(text, NULL, 10) : 0;
    if (!v)
        return 0;
    if (v < UINT64_C(100000000000))
        return v * 1000000000;
    if (v < UINT64_C(100000000000000))
        return v * 1000000;
    return v < UINT64_C(100000000000000000) ? v * 1000 : v;
}

static struct str without_spaces(const char *at, size_t len)
{
    for (; len && *at == ' '; at++, len--)
        continue;
    while (len && at[len - 1] == ' ')
        len--;
    if (len > 1 && *at == '"' && at[len - 1] == '"') {
        at++;
        len -= 2;
    }
    return (struct str){at, len};
}

/* Reads service{key=value,key=value}. */
static int read_name(struct pyroscope_ingest *ret, struct wire_batch *b, const char *name,
                     struct buf *why)
{
    size_t n = strcspn(name, "{");
    struct str service = without_spaces(name, n);
    struct decode_labels labels = {0};
    int r = 0;
    buf_bytes(&ret->service, service.data, service.len);
    const char *at = name + n + (name[n] == '{'), *end = strrchr(at, '}');
    if (name[n] == '{' && (!end || end[1])) {
        buf_string(why, "the name has labels without a closing brace");
        return -EINVAL;
    }
    for (size_t len; r == 0 && name[n] && at < end; at += len + (at[len] == ',')) {
        len = MIN(strcspn(at, ","), (size_t)(end - at));
        size_t key = MIN(strcspn(at, "="), len);
        if (key < len)
            r = decode_label(b, without_spaces(at, key),
                             without_spaces(at + key + 1, len - key - 1), &labels);
        for (size_t i = 0; r == 0 && i + 1 < labels.len; i++)
            if (labels.data[i].key == labels.data[labels.len - 1].key) {
                struct str text = without_spaces(at, key);
                buf_printf(why, "label %.*s: given more than once", (int)text.len, text.data);
                r = -EINVAL;
            }
    }
    int64_t set = r < 0 ? r : wire_labels(b, labels.data, labels.len);
    vec_release(&labels);
    ret->labels = set < 0 ? 0 : (uint32_t)set;
    return set < 0 ? (int)set : buf_error(&ret->service);
}

int pyroscope_ingest(struct pyroscope_ingest *ret, struct wire_batch *b,
                     const char *(*get)(const void *request, const char *key), const void *request,
                     struct buf *why)
{
    const char *name = get(request, "name"), *format = get(request, "format"),
               *rate = get(request, "sampleRate");
    *ret = (struct pyroscope_ingest){.service = BUF(NAME_MAX_BYTES)};
    if (!name || !*name) {
        buf_string(why, "the query has no name");
        return -EINVAL;
    }
    ret->format = format && strcmp(format, "jfr") == 0     ? PYROSCOPE_JFR
                  : format && strcmp(format, "pprof") == 0 ? PYROSCOPE_PPROF
                                                           : PYROSCOPE_OTHER;
    ret->from_ns = time_of(get(request, "from"));
    ret->until_ns = time_of(get(request, "until"));
    ret->sample_rate = rate ? strtoull(rate, NULL, 10) : 0;
    int r = read_name(ret, b, name, why);
    if (r < 0)
        pyroscope_ingest_release(ret);
    return r;
}

void pyroscope_ingest_release(struct pyroscope_ingest *i)
{
    buf_release(&i->service);
}

/* ---- the labels of an upload of JFR ---- */

enum { SNAPSHOT_CONTEXTS = 1, SNAPSHOT_STRINGS };

enum { CONTEXT_LABELS = 1 };

enum { ENTRY_KEY = 1, ENTRY_VALUE };

struct entry {
    uint64_t key, value;
    struct cursor bytes;
};

static bool read_entry(struct cursor c, struct entry *ret)
{
    struct protobuf_field f;
    *ret = (struct entry){.bytes = {c.end, c.end, false}};
    while (protobuf_next(&c, &f)) {
        if (f.number == ENTRY_KEY)
            ret->key = f.value;
        else if (f.number == ENTRY_VALUE) {
            ret->value = f.value;
            ret->bytes = f.bytes;
        }
    }
    return !c.failed;
}

/* strings: id to the number in the batch. */
static int read_strings(struct wire_batch *b, struct cursor c, struct map *strings)
{
    struct protobuf_field f;
    struct entry e;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f)) {
        if (f.number != SNAPSHOT_STRINGS)
            continue;
        int64_t n = read_entry(f.bytes, &e)
                        ? wire_string(b, (const char *)e.bytes.at, cursor_left(&e.bytes))
                        : -EPROTO;
        r = n < 0 ? (int)n : map_put(strings, e.key, (uint64_t)n);
    }
    return r < 0 ? r : c.failed ? -EPROTO : 0;
}

static int64_t read_context(struct wire_batch *b, struct cursor c, const struct map *strings)
{
    struct decode_labels labels = {0};
    struct protobuf_field f;
    struct entry e;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f)) {
        if (f.number != CONTEXT_LABELS)
            continue;
        if (!read_entry(f.bytes, &e))
            r = -EPROTO;
        const uint64_t *key = r < 0 ? NULL : map_get(strings, e.key);
        const uint64_t *value = r < 0 ? NULL : map_get(strings, e.value);
        if (key && value)
            r = DECODE_PUSH(b, &labels, ((struct wire_label){(uint32_t)*key, (uint32_t)*value}));
    }
    int64_t set = r < 0 ? r : c.failed ? -EPROTO : wire_labels(b, labels.data, labels.len);
    vec_release(&labels);
    return set;
}

int pyroscope_contexts(struct pyroscope_contexts *ret, struct wire_batch *b, const void *data,
                       size_t len, struct buf *why)
{
    struct cursor c = cursor_of(data, len);
    struct map strings = {0};
    struct protobuf_field f;
    struct entry e;
    *ret = (struct pyroscope_contexts){0};
    int r = read_strings(b, c, &strings);
    while (r == 0 && protobuf_next(&c, &f)) {
        if (f.number != SNAPSHOT_CONTEXTS)
            continue;
        int64_t set = read_entry(f.bytes, &e) ? read_context(b, e.bytes, &strings) : -EPROTO;
        r = set < 0 ? (int)set : map_put(&ret->sets, e.key, (uint64_t)set);
    }
    map_release(&strings);
    decode_reason(b, r, "labels of an upload", why);
    if (r < 0)
        pyroscope_contexts_release(ret);
    return r;
}

void pyroscope_contexts_release(struct pyroscope_contexts *c)
{
    map_release(&c->sets);
}

/* ---- push.v1.PusherService/Push ---- */

enum { PUSH_SERIES = 1 };

enum { SERIES_LABELS = 1, SERIES_SAMPLES };

enum { SAMPLE_PROFILE = 1, SAMPLE_ID };

enum { LABEL_NAME = 1, LABEL_VALUE };

/*
 * Names that begin with two underscores are Pyroscope's own; the pprof profile has the same
 * information.
 */
static int add_label(struct wire_batch *b, struct str name, struct str value,
                     struct decode_labels *to)
{
    if (name.len >= 2 && memcmp(name.data, "__", 2) == 0)
        return 0;
    if (str_is(name, "service_name"))
        name = (struct str){WIRE_SERVICE, strlen(WIRE_SERVICE)};
    return decode_label(b, name, value, to);
}

/* An id is a UUID; any other text becomes one. */
static void set_id(struct wire_profile *p, struct str text)
{
    char digits[2 * sizeof(p->id)];
    size_t n = 0;
    for (size_t i = 0; i < text.len && n <= sizeof(digits); i++)
        if (text.data[i] != '-' && n++ < sizeof(digits))
            digits[n - 1] = text.data[i];
    if (!text.len || hex_read(digits, n, p->id, sizeof(p->id)))
        return;
    uint64_t h[2] = {hash_bytes(text.data, text.len), hash_u64(text.len)};
    h[1] ^= hash_u64(h[0]);
    memcpy(p->id, h, sizeof(p->id));
}

static int add_profile(struct wire_batch *b, uint32_t resource, const void *data, size_t len,
                       struct str id, struct buf *why)
{
    struct buf plain = BUF(PROFILE_MAX + 1);
    size_t before = b->profiles.len;
    int r = unpack_bytes(data, len, PROFILE_MAX, &plain, why);
    if (r == 0)
        r = pprof_decode(b, plain.data, plain.len, resource, why);
    if (r == 0)
        set_id(&b->profiles.data[before], id);
    buf_release(&plain);
    return r;
}

static int push_sample(struct wire_batch *b, struct cursor c, uint32_t resource, struct buf *why)
{
    struct cursor profile = {c.end, c.end, false};
    struct str id = {"", 0};
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == SAMPLE_PROFILE)
            profile = f.bytes;
        else if (f.number == SAMPLE_ID)
            id = (struct str){protobuf_text(&f), cursor_left(&f.bytes)};
    }
    return c.failed ? -EPROTO
                    : add_profile(b, resource, profile.at, cursor_left(&profile), id, why);
}

static int push_series(struct wire_batch *b, struct cursor c, struct buf *why)
{
    struct decode_labels labels = {0};
    struct cursor again = c;
    struct protobuf_field f, part;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f)) {
        struct str name = {"", 0}, value = {"", 0};
        struct cursor label = f.bytes;
        while (f.number == SERIES_LABELS && protobuf_next(&label, &part)) {
            struct str text = {protobuf_text(&part), cursor_left(&part.bytes)};
            name = part.number == LABEL_NAME ? text : name;
            value = part.number == LABEL_VALUE ? text : value;
        }
        if (f.number == SERIES_LABELS)
            r = label.failed ? -EPROTO : add_label(b, name, value, &labels);
    }
    int64_t set = r < 0 ? r : c.failed ? -EPROTO : wire_labels(b, labels.data, labels.len);
    vec_release(&labels);
    r = (int)MIN(set, 0);
    while (r == 0 && protobuf_next(&again, &f))
        if (f.number == SERIES_SAMPLES)
            r = push_sample(b, f.bytes, (uint32_t)set, why);
    return r;
}

static int push_protobuf(struct wire_batch *b, struct cursor c, struct buf *why)
{
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f))
        if (f.number == PUSH_SERIES)
            r = push_series(b, f.bytes, why);
    return r < 0 ? r : c.failed ? -EPROTO : 0;
}

static int push_json_sample(struct wire_batch *b, json_object *sample, uint32_t resource,
                            struct buf *why)
{
    struct str text = connect_text(connect_member(sample, "rawProfile", "raw_profile"));
    struct buf bytes = BUF(PROFILE_MAX);
    int r = connect_base64(text, &bytes);
    if (r == 0)
        r = add_profile(b, resource, bytes.data, bytes.len,
                        connect_text(connect_member(sample, "ID", "id")), why);
    buf_release(&bytes);
    return r;
}

static int push_json_series(struct wire_batch *b, json_object *series, struct buf *why)
{
    json_object *labels = connect_member(series, "labels", NULL),
                *samples = connect_member(series, "samples", NULL);
    struct decode_labels list = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < connect_length(labels); i++) {
        json_object *label = json_object_array_get_idx(labels, i);
        r = add_label(b, connect_text(connect_member(label, "name", NULL)),
                      connect_text(connect_member(label, "value", NULL)), &list);
    }
    int64_t set = r < 0 ? r : wire_labels(b, list.data, list.len);
    vec_release(&list);
    r = (int)MIN(set, 0);
    for (size_t i = 0; r == 0 && i < connect_length(samples); i++)
        r = push_json_sample(b, json_object_array_get_idx(samples, i), (uint32_t)set, why);
    return r;
}

int pyroscope_push(struct wire_batch *b, bool json, const void *data, size_t len, struct buf *why)
{
    int r = 0;
    if (json) {
        json_object *o = NULL, *series = NULL;
        r = connect_parse(data, len, &o);
        series = connect_member(o, "series", NULL);
        for (size_t i = 0; r == 0 && i < connect_length(series); i++)
            r = push_json_series(b, json_object_array_get_idx(series, i), why);
        json_object_put(o);
    } else {
        r = push_protobuf(b, cursor_of(data, len), why);
    }
    decode_reason(b, r, "a PushRequest", why);
    return r;
}
