/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pprof's profile.proto, compressed with gzip. A sample is a stack of one thread (label
 * "thread"), a location is a frame with its line, and a function is a method. Field numbers are
 * from https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#include "export/export.h"

#include "base/generated_name.h"
#include "base/json.h"
#include "base/protobuf.h"
#include "base/varint.h"
#include "export/gzip_out.h"
#include "wire/pprof.h"

#include <errno.h>

enum { LIMIT_PIECE = 1 << 28, PENDING_BYTES = 1 << 18 };

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
    PROFILE_COMMENT,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14
};

enum { VALUE_TYPE = 1, VALUE_UNIT };

enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };

enum { LABEL_KEY = 1, LABEL_STR };

enum { LOCATION_ID = 1, LOCATION_LINE = 4 };

enum { LINE_FUNCTION = 1, LINE_LINE };

enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILENAME };

/* The output: messages are built in `piece`, collected in `pending`, and then compressed. */
struct writing {
    const struct export_source *source;
    FILE *out;
    struct gzip_out *gzip;
    struct buf piece, nested, pending;
    struct strpool strings;
    int error;
};

static void compress_pending(struct writing *w)
{
    if (w->pending.len >= PENDING_BYTES)
        gzip_out_put(w->gzip, &w->pending);
}

/* Appends the contents of `piece` as a field of the profile. */
static void put_piece(struct writing *w, unsigned field)
{
    protobuf_put_part(&w->pending, field, &w->piece);
    compress_pending(w);
}

/* Returns the number of a string, which must be UTF-8 in pprof; those of a JVM may not be. */
static uint64_t string_of(struct writing *w, const char *data, size_t len)
{
    _cleanup_(buf_release) struct buf text = BUF(LIMIT_PIECE);
    json_put_utf8(&text, data, len);
    int64_t n = buf_error(&text)
                    ? buf_error(&text)
                    : strpool_add(&w->strings, text.len ? (char *)text.data : "", text.len);
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
    protobuf_put_number(&w->piece, VALUE_TYPE, string_of_c(w, type));
    protobuf_put_number(&w->piece, VALUE_UNIT, string_of_c(w, unit));
    put_piece(w, field);
}

/*
 * Returns the interval in ns, or 0. The values of a sample are its weight and, if the interval is
 * known, its CPU or wall time.
 */
static uint64_t interval_of(const struct writing *w)
{
    bool counts = profile_metrics[w->source->metric].unit == UNIT_SAMPLES;
    return counts ? w->source->profile->series[w->source->metric].interval_ns : 0;
}

static void put_types(struct writing *w)
{
    static const char *const units[] = {
        [UNIT_SAMPLES] = "count", [UNIT_BYTES] = "bytes", [UNIT_NS] = "nanoseconds"};
    const char *name = profile_metrics[w->source->metric].name;
    uint64_t interval = interval_of(w);
    put_value_type(w, PROFILE_SAMPLE_TYPE, name, units[profile_metrics[w->source->metric].unit]);
    if (!interval)
        return;
    const char *clock = w->source->metric == PROFILE_CPU ? "cpu" : "elapsed";
    put_value_type(w, PROFILE_SAMPLE_TYPE, clock, "nanoseconds");
    put_value_type(w, PROFILE_PERIOD_TYPE, clock, "nanoseconds");
    protobuf_put_number(&w->pending, PROFILE_PERIOD, interval);
    protobuf_put_number(&w->pending, PROFILE_DEFAULT_SAMPLE_TYPE, string_of_c(w, clock));
}

/* Where the label of a thread lies; len = 0 if it has none or it is not known yet. */
struct label {
    size_t begin, len;
};

/* What is computed before the samples of stacks and threads are written. */
struct sampling {
    struct writing *w;
    uint64_t interval_ns;
    const struct profile_sample **samples; /* the samples that count, by node */
    size_t *begin;       /* by node: where its samples begin, and finally where they end */
    uint64_t *weight;    /* by thread, for one node */
    bool *has_some;      /* by thread, likewise, because a weight may be 0 */
    uint64_t key;        /* number of the string "thread", or 0 */
    struct buf stack;    /* the field of one node's locations */
    struct buf labels;   /* the fields of threads' labels */
    struct label *label; /* by thread, in `labels` */
};

static int count_node(void *context, const struct profile_sample *s)
{
    struct sampling *g = context;
    g->begin[s->node + 1]++;
    return 0;
}

/*
 * Stores a sample at begin[node], which is advanced, so that it is finally the end of the node's
 * samples.
 */
static int place_by_node(void *context, const struct profile_sample *s)
{
    struct sampling *g = context;
    g->samples[g->begin[s->node]++] = s;
    return 0;
}

static struct label label_of(struct sampling *g, uint32_t thread)
{
    struct writing *w = g->w;
    const struct profile *p = w->source->profile;
    struct label *known = &g->label[thread];
    struct str name =
        thread < p->threads.len ? profile_text(p, p->threads.data[thread].name) : (struct str){0};
    if (known->len || !name.len)
        return *known;
    if (!g->key)
        g->key = string_of_c(w, "thread");
    known->begin = g->labels.len;
    protobuf_put_number(&w->nested, LABEL_KEY, g->key);
    protobuf_put_number(&w->nested, LABEL_STR, string_of(w, name.data, name.len));
    protobuf_put_part(&g->labels, SAMPLE_LABEL, &w->nested);
    known->len = g->labels.len - known->begin;
    return *known;
}

/* There may be millions of samples, so each is written at once, from parts that many have. */
static void put_sample(struct sampling *g, uint32_t thread, uint64_t weight)
{
    enum { VALUE_HEAD = 2 }; /* bytes before the values */

    struct buf *to = &g->w->pending;
    struct label label = label_of(g, thread);
    uint8_t values[2 * VARINT_MAX], *end = varint_put(values, weight);
    if (g->interval_ns)
        end = varint_put(end, weight * g->interval_ns);
    size_t n = (size_t)(end - values);
    protobuf_put_head(to, PROFILE_SAMPLE, g->stack.len + VALUE_HEAD + n + label.len);
    buf_bytes(to, g->stack.data, g->stack.len);
    protobuf_put_bytes(to, SAMPLE_VALUE, values, n);
    if (label.len)
        buf_bytes(to, g->labels.data + label.begin, label.len);
    compress_pending(g->w);
}

/*
 * Writes the samples of one stack, one for each thread, in the order of the threads' first samples.
 */
static void put_stack(struct sampling *g, uint32_t node, size_t from, size_t to)
{
    const struct profile *p = g->w->source->profile;
    struct buf *locations = &g->w->nested;
    for (uint32_t n = node; n; n = p->nodes.data[n].parent)
        buf_varint(locations, (uint64_t)p->nodes.data[n].frame + 1);
    buf_clear(&g->stack);
    protobuf_put_part(&g->stack, SAMPLE_LOCATION, locations);
    if (buf_error(&g->stack))
        g->w->error = buf_error(&g->stack);
    for (size_t i = from; i < to; i++) {
        g->weight[g->samples[i]->thread] += g->samples[i]->weight;
        g->has_some[g->samples[i]->thread] = true;
    }
    for (size_t i = from; i < to; i++) {
        uint32_t thread = g->samples[i]->thread;
        if (g->has_some[thread])
            put_sample(g, thread, g->weight[thread]);
        g->weight[thread] = 0;
        g->has_some[thread] = false;
    }
}

/* Writes a note as a comment, which `pprof -comments` prints. */
static void put_note(struct writing *w, const struct profile_view *v)
{
    _cleanup_(buf_release) struct buf note = BUF(4096);
    buf_string(&note, PPROF_NOTE);
    size_t empty = note.len;
    profile_note(v, &note);
    if (note.len > empty)
        protobuf_put_number(&w->pending, PROFILE_COMMENT, string_of(w, buf_str(&note), note.len));
}

/*
 * Writes the samples stack by stack, because what consecutive samples have in common takes hardly
 * any room after compression.
 */
static int put_samples(struct writing *w)
{
    const struct profile *p = w->source->profile;
    _cleanup_(profile_view_release) struct profile_view v = {0};
    struct sampling g = {.w = w,
                         .interval_ns = interval_of(w),
                         .stack = BUF(LIMIT_PIECE),
                         .labels = BUF(LIMIT_PIECE)};
    int r = profile_view_init(&v, p, w->source->metric, &w->source->filter);
    g.begin = r == 0 ? calloc(p->nodes.len + 1, sizeof(*g.begin)) : NULL;
    g.samples = r == 0 ? malloc((v.samples + 1) * sizeof(const struct profile_sample *)) : NULL;
    g.weight = calloc(p->threads.len + 1, sizeof(*g.weight));
    g.has_some = calloc(p->threads.len + 1, sizeof(*g.has_some));
    g.label = calloc(p->threads.len + 1, sizeof(*g.label));
    if (r == 0 && (!g.begin || !g.samples || !g.weight || !g.has_some || !g.label))
        r = -ENOMEM;
    if (r == 0)
        put_note(w, &v);
    if (r == 0)
        r = profile_view_each(&v, count_node, &g);
    for (size_t i = 0; r == 0 && i < p->nodes.len; i++)
        g.begin[i + 1] += g.begin[i];
    if (r == 0)
        r = profile_view_each(&v, place_by_node, &g);
    for (size_t i = 0, from = 0; r == 0 && i < p->nodes.len; from = g.begin[i++])
        if (from < g.begin[i])
            put_stack(&g, (uint32_t)i, from, g.begin[i]);
    if (r == 0)
        r = buf_error(&g.labels);
    buf_release(&g.stack);
    buf_release(&g.labels);
    free(g.begin);
    free(g.samples);
    free(g.weight);
    free(g.has_some);
    free(g.label);
    return r;
}

/* Returns whether a method is the agent's, which is in no stack. */
static bool is_agents(const struct profile *p, size_t method)
{
    struct str label = profile_text(p, p->methods.data[method].label);
    return generated_name_is_agents(label.data, label.len);
}

static void put_locations(struct writing *w)
{
    const struct profile *p = w->source->profile;
    for (size_t i = 0; i < p->frames.len; i++) {
        if (is_agents(p, p->frames.data[i].method))
            continue;
        protobuf_put_number(&w->nested, LINE_FUNCTION, (uint64_t)p->frames.data[i].method + 1);
        protobuf_put_number(&w->nested, LINE_LINE, (uint64_t)p->frames.data[i].line);
        protobuf_put_number(&w->piece, LOCATION_ID, i + 1);
        protobuf_put_part(&w->piece, LOCATION_LINE, &w->nested);
        put_piece(w, PROFILE_LOCATION);
    }
    for (size_t i = 0; i < p->methods.len; i++) {
        const struct profile_method *m = &p->methods.data[i];
        if (is_agents(p, i))
            continue;
        struct str label = profile_text(p, m->label), signature = profile_text(p, m->signature),
                   file = profile_text(p, m->file);
        buf_bytes(&w->nested, label.data, label.len);
        buf_bytes(&w->nested, signature.data, signature.len);
        protobuf_put_number(&w->piece, FUNCTION_ID, i + 1);
        protobuf_put_number(&w->piece, FUNCTION_NAME, string_of(w, label.data, label.len));
        protobuf_put_number(&w->piece, FUNCTION_SYSTEM_NAME,
                            string_of(w, buf_str(&w->nested), w->nested.len));
        protobuf_put_number(&w->piece, FUNCTION_FILENAME, string_of(w, file.data, file.len));
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
    protobuf_put_number(&w->pending, PROFILE_TIME_NANOS,
                        p->start_epoch_ns + w->source->filter.from_ns);
    protobuf_put_number(&w->pending, PROFILE_DURATION_NANOS, profile_span(p, &w->source->filter));
    gzip_out_put(w->gzip, &w->pending);
}

static int export_pprof(const struct export_source *s, FILE *out, struct buf *why)
{
    struct writing w = {.source = s,
                        .out = out,
                        .piece = BUF(LIMIT_PIECE),
                        .nested = BUF(LIMIT_PIECE),
                        .pending = BUF(2 * (size_t)LIMIT_PIECE)};
    w.gzip = gzip_out_new(out);
    if (!w.gzip)
        return -ENOMEM;
    string_of_c(&w, ""); /* number 0 must be the empty string */
    put_types(&w);
    int r = put_samples(&w);
    if (r == 0) {
        put_locations(&w);
        put_rest(&w);
        r = w.error;
    }
    int compressed = gzip_out_end(w.gzip);
    r = r < 0 ? r : compressed;
    buf_release(&w.piece);
    buf_release(&w.nested);
    buf_release(&w.pending);
    strpool_release(&w.strings);
    return r;
}

const struct export_format export_format_pprof = {
    .extension = ".pb.gz",
    .what = "pprof",
    .one_metric = true,
    .holds = HOLDS_STACKS,
    .follows = FOLLOWS_SAMPLES,
    .write = export_pprof,
    .detail = LOAD_THREADS,
};
