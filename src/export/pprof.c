/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile.proto, gzipped. A sample is a stack of one thread (label "thread"); a location is a frame with its line, a
 * function a method. Field numbers: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#include "export/export.h"

#include "base/json.h"

#include <errno.h>
#include <zlib.h>

enum { LIMIT_PIECE = 1 << 28 };

/* Field numbers of the messages. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_MAPPING,
    PROFILE_LOCATION,
    PROFILE_FUNCTION,
    PROFILE_STRING_TABLE,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14
};

enum { VALUE_TYPE = 1, VALUE_UNIT };

enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };

enum { LABEL_KEY = 1, LABEL_STR };

enum { LOCATION_ID = 1, LOCATION_LINE = 4 };

enum { LINE_FUNCTION = 1, LINE_LINE };

enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILENAME };

/* The output: pieces are built in `piece`, then compressed. */
struct writing {
    const struct export_source *source;
    FILE *out;
    z_stream z;
    struct buf piece, nested;
    struct strpool strings;
    int error;
};

static void deflate_some(struct writing *w, const uint8_t *data, size_t len, int flush)
{
    uint8_t out[65536];
    w->z.next_in = (uint8_t *)data;
    w->z.avail_in = (uInt)len;
    do {
        w->z.next_out = out;
        w->z.avail_out = sizeof(out);
        deflate(&w->z, flush);
        fwrite(out, 1, sizeof(out) - w->z.avail_out, w->out);
    } while (w->z.avail_out == 0);
}

static void put_key(struct buf *b, unsigned field, unsigned wire_type)
{
    buf_varint(b, field << 3 | wire_type);
}

static void put_number(struct buf *b, unsigned field, uint64_t v)
{
    put_key(b, field, 0);
    buf_varint(b, v);
}

static void put_bytes(struct buf *b, unsigned field, const void *data, size_t len)
{
    put_key(b, field, 2);
    buf_varint(b, len);
    buf_bytes(b, data, len);
}

/* Writes what is in `piece` as a field of the profile. */
static void put_piece(struct writing *w, unsigned field)
{
    _cleanup_(buf_release) struct buf key = BUF(64);
    put_key(&key, field, 2);
    buf_varint(&key, w->piece.len);
    if (buf_error(&w->piece))
        w->error = buf_error(&w->piece);
    deflate_some(w, key.data, key.len, Z_NO_FLUSH);
    deflate_some(w, w->piece.data, w->piece.len, Z_NO_FLUSH);
    buf_clear(&w->piece);
}

/* Strings of pprof are UTF-8; those of a JVM need not be. */
static uint64_t string_of(struct writing *w, const char *data, size_t len)
{
    _cleanup_(buf_release) struct buf text = BUF(LIMIT_PIECE);
    buf_utf8(&text, data, len);
    int64_t n = buf_error(&text) ? buf_error(&text) : strpool_add(&w->strings, text.len ? (char *)text.data : "", text.len);
    if (n < 0)
        w->error = (int)n;
    return n < 0 ? 0 : (uint64_t)n;
}

static uint64_t string_of_c(struct writing *w, const char *text)
{
    return string_of(w, text, strlen(text));
}

static void put_value_type(struct writing *w, unsigned field, const char *type, const char *unit)
{
    put_number(&w->piece, VALUE_TYPE, string_of_c(w, type));
    put_number(&w->piece, VALUE_UNIT, string_of_c(w, unit));
    put_piece(w, field);
}

/* The values of a sample: the weight, and CPU or wall time where the interval is known. */
static uint64_t interval_of(const struct writing *w)
{
    bool counts = profile_metrics[w->source->metric].unit == UNIT_SAMPLES;
    return counts ? w->source->profile->series[w->source->metric].interval_ns : 0;
}

static void put_types(struct writing *w)
{
    static const char *const units[] = {[UNIT_SAMPLES] = "count", [UNIT_BYTES] = "bytes", [UNIT_NS] = "nanoseconds"};
    const char *name = profile_metrics[w->source->metric].name;
    uint64_t interval = interval_of(w);
    put_value_type(w, PROFILE_SAMPLE_TYPE, name, units[profile_metrics[w->source->metric].unit]);
    if (!interval)
        return;
    const char *clock = w->source->metric == PROFILE_CPU ? "cpu" : "elapsed";
    put_value_type(w, PROFILE_SAMPLE_TYPE, clock, "nanoseconds");
    put_value_type(w, PROFILE_PERIOD_TYPE, clock, "nanoseconds");
    _cleanup_(buf_release) struct buf rest = BUF(64);
    put_number(&rest, PROFILE_PERIOD, interval);
    put_number(&rest, PROFILE_DEFAULT_SAMPLE_TYPE, string_of_c(w, clock));
    deflate_some(w, rest.data, rest.len, Z_NO_FLUSH);
}

static void put_sample(struct writing *w, uint32_t thread, uint32_t node, uint64_t weight)
{
    const struct profile *p = w->source->profile;
    for (uint32_t n = node; n; n = p->nodes.data[n].parent)
        buf_varint(&w->nested, (uint64_t)p->nodes.data[n].frame + 1);
    put_bytes(&w->piece, SAMPLE_LOCATION, w->nested.data, w->nested.len);
    buf_clear(&w->nested);
    buf_varint(&w->nested, weight);
    if (interval_of(w))
        buf_varint(&w->nested, weight * interval_of(w));
    put_bytes(&w->piece, SAMPLE_VALUE, w->nested.data, w->nested.len);
    buf_clear(&w->nested);
    struct str name = thread < p->threads.len ? profile_text(p, p->threads.data[thread].name) : (struct str){0};
    if (name.len) {
        put_number(&w->nested, LABEL_KEY, string_of_c(w, "thread"));
        put_number(&w->nested, LABEL_STR, string_of(w, name.data, name.len));
        put_bytes(&w->piece, SAMPLE_LABEL, w->nested.data, w->nested.len);
        buf_clear(&w->nested);
    }
    put_piece(w, PROFILE_SAMPLE);
}

static int add_up(void *context, const struct profile_sample *s)
{
    uint64_t *weight = map_at(context, (uint64_t)s->thread << 32 | s->node, 0, NULL);
    if (!weight)
        return -ENOMEM;
    *weight += s->weight;
    return 0;
}

static int put_samples(struct writing *w)
{
    _cleanup_(profile_view_release) struct profile_view v = {0};
    struct map stacks = {0};
    int r = profile_view_init(&v, w->source->profile, w->source->metric, &w->source->filter);
    if (r == 0)
        r = profile_view_each(&v, add_up, &stacks);
    uint64_t key, weight;
    for (size_t i = 0; r == 0 && map_next(&stacks, &i, &key, &weight);)
        put_sample(w, (uint32_t)(key >> 32), (uint32_t)key, weight);
    map_release(&stacks);
    return r;
}

static void put_locations(struct writing *w)
{
    const struct profile *p = w->source->profile;
    for (size_t i = 0; i < p->frames.len; i++) {
        put_number(&w->nested, LINE_FUNCTION, (uint64_t)p->frames.data[i].method + 1);
        put_number(&w->nested, LINE_LINE, (uint64_t)p->frames.data[i].line);
        put_number(&w->piece, LOCATION_ID, i + 1);
        put_bytes(&w->piece, LOCATION_LINE, w->nested.data, w->nested.len);
        buf_clear(&w->nested);
        put_piece(w, PROFILE_LOCATION);
    }
    for (size_t i = 0; i < p->methods.len; i++) {
        const struct profile_method *m = &p->methods.data[i];
        struct str label = profile_text(p, m->label), signature = profile_text(p, m->signature),
                   file = profile_text(p, m->file);
        buf_bytes(&w->nested, label.data, label.len);
        buf_bytes(&w->nested, signature.data, signature.len);
        put_number(&w->piece, FUNCTION_ID, i + 1);
        put_number(&w->piece, FUNCTION_NAME, string_of(w, label.data, label.len));
        put_number(&w->piece, FUNCTION_SYSTEM_NAME, string_of(w, buf_str(&w->nested), w->nested.len));
        put_number(&w->piece, FUNCTION_FILENAME, string_of(w, file.data, file.len));
        buf_clear(&w->nested);
        put_piece(w, PROFILE_FUNCTION);
    }
}

static void put_rest(struct writing *w)
{
    const struct profile *p = w->source->profile;
    for (size_t i = 0; i < w->strings.strings.len; i++) {
        struct str s = strpool_get(&w->strings, i);
        buf_bytes(&w->piece, s.data, s.len);
        put_piece(w, PROFILE_STRING_TABLE);
    }
    _cleanup_(buf_release) struct buf rest = BUF(64);
    put_number(&rest, PROFILE_TIME_NANOS, p->start_epoch_ns + w->source->filter.from_ns);
    uint64_t to = w->source->filter.to_ns ? MIN(w->source->filter.to_ns, p->duration_ns) : p->duration_ns;
    put_number(&rest, PROFILE_DURATION_NANOS, to > w->source->filter.from_ns ? to - w->source->filter.from_ns : 0);
    deflate_some(w, rest.data, rest.len, Z_FINISH);
}

int export_pprof(const struct export_source *s, FILE *out, struct buf *why)
{
    struct writing w = {.source = s, .out = out, .piece = BUF(LIMIT_PIECE), .nested = BUF(LIMIT_PIECE)};
    /* 16 more window bits ask for a gzip header. */
    if (deflateInit2(&w.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    string_of_c(&w, ""); /* number 0 must be the empty string */
    put_types(&w);
    int r = put_samples(&w);
    if (r == 0) {
        put_locations(&w);
        put_rest(&w);
        r = w.error;
    }
    deflateEnd(&w.z);
    buf_release(&w.piece);
    buf_release(&w.nested);
    strpool_release(&w.strings);
    return r;
}
