/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile.proto, gzipped or not, as written by export/pprof.c and by other profilers. Field
 * numbers: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#include "model/load.h"

#include "base/cursor.h"

#include <errno.h>
#include <zlib.h>

enum { UNPACKED_MAX = 1 << 30, STACK_MAX = 1 << 16 };

enum wire_type { VARINT, FIXED64, BYTES, FIXED32 = 5 };

/* Field numbers of the messages. */
enum {
    SAMPLE_TYPE = 1,
    SAMPLE,
    LOCATION = 4,
    FUNCTION,
    STRING,
    TIME_NANOS = 9,
    DURATION_NANOS,
    PERIOD_TYPE,
    PERIOD,
    COMMENT
};

enum { TYPE_NAME = 1, TYPE_UNIT };

enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };

enum { LABEL_KEY = 1, LABEL_TEXT };

enum { LOCATION_ID = 1, LOCATION_LINE = 4 };

enum { LINE_FUNCTION = 1, LINE_NUMBER };

enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, NUMBERS };

struct field {
    unsigned number;
    enum wire_type type;
    uint64_t value;
    struct cursor bytes; /* the contents of a field of type BYTES */
};

struct function {
    uint64_t name, system_name, file; /* numbers of strings */
};

struct line {
    uint64_t function, number;
};

struct location {
    size_t first, n; /* of lines, the innermost first: the others have inlined it */
};

struct value_type {
    uint64_t name, unit;
};

struct pprof {
    struct load *l;
    VEC(struct str) strings;
    VEC(struct function) functions;
    VEC(struct line) lines;
    VEC(struct location) locations;
    VEC(struct value_type) types;        /* of the values in a sample */
    VEC(uint64_t) stack, values;         /* of the current sample */
    struct map function_of, location_of; /* by id: the index */
    uint64_t period;
    enum profile_metric metric;
    size_t value; /* which of a sample's values is its weight */
};

/*
 * Reads the next field of a message. Returns false at its end, or when it is damaged; in that case
 * the cursor has failed.
 */
static bool next_field(struct cursor *c, struct field *ret)
{
    if (c->failed || !cursor_left(c))
        return false;
    uint64_t key = cursor_varint(c);
    *ret = (struct field){
        .number = (unsigned)(key >> 3), .type = key & 7, .bytes = {c->at, c->at, false}};
    switch (ret->type) {
    case VARINT:
        ret->value = cursor_varint(c);
        break;
    case FIXED64:
        ret->value = cursor_le64(c);
        break;
    case FIXED32:
        ret->value = cursor_le32(c);
        break;
    case BYTES:
        ret->bytes = cursor_sub(c, cursor_varint(c));
        break;
    default:
        c->failed = true;
    }
    return !c->failed;
}

/* Reads the numbers of a message by field; 0 for fields that are missing. */
static int read_numbers(struct cursor c, uint64_t ret[NUMBERS])
{
    struct field f;
    memset(ret, 0, NUMBERS * sizeof(*ret));
    while (next_field(&c, &f))
        if (f.number < NUMBERS && f.type == VARINT)
            ret[f.number] = f.value;
    return c.failed ? -EPROTO : 0;
}

static struct str string_at(const struct pprof *p, uint64_t number)
{
    return number < p->strings.len ? p->strings.data[number] : (struct str){"", 0};
}

static bool is_string(const struct pprof *p, uint64_t number, const char *what)
{
    struct str s = string_at(p, number);
    return s.len == strlen(what) && memcmp(s.data, what, s.len) == 0;
}

static int read_location(struct pprof *p, struct cursor c)
{
    struct location at = {.first = p->lines.len};
    struct field f;
    uint64_t id = 0, n[NUMBERS];
    int r = 0;
    while (r == 0 && next_field(&c, &f)) {
        if (f.number == LOCATION_ID)
            id = f.value;
        if (f.number != LOCATION_LINE)
            continue;
        r = read_numbers(f.bytes, n);
        if (r == 0)
            r = vec_push(&p->lines, ((struct line){n[LINE_FUNCTION], n[LINE_NUMBER]}));
    }
    at.n = p->lines.len - at.first;
    if (r == 0)
        r = c.failed ? -EPROTO : map_put(&p->location_of, id, p->locations.len);
    return r < 0 ? r : vec_push(&p->locations, at);
}

static int read_function(struct pprof *p, struct cursor c)
{
    uint64_t n[NUMBERS];
    int r = read_numbers(c, n);
    if (r == 0)
        r = map_put(&p->function_of, n[FUNCTION_ID], p->functions.len);
    return r < 0 ? r
                 : vec_push(&p->functions,
                            ((struct function){n[FUNCTION_NAME], n[FUNCTION_SYSTEM_NAME],
                                               n[FUNCTION_FILE]}));
}

static bool is_note(struct str s)
{
    return s.len > strlen(PPROF_NOTE) && memcmp(s.data, PPROF_NOTE, strlen(PPROF_NOTE)) == 0;
}

/* What a comment of ours says of the figures; it names a string, and all of them must be read. */
static int read_notes(struct pprof *p, struct cursor c)
{
    struct field f;
    const size_t start = strlen(PPROF_NOTE);
    while (next_field(&c, &f)) {
        struct str s =
            f.number == COMMENT && f.type == VARINT ? string_at(p, f.value) : (struct str){"", 0};
        int64_t note =
            is_note(s) ? profile_string(p->l->profile, s.data + start, s.len - start) : 0;
        if (note < 0)
            return (int)note;
        if (note > 0)
            p->l->profile->series[p->metric].note = (uint32_t)note;
    }
    return 0;
}

/* Reads everything but the samples, which refer to the rest by number. */
static int read_tables(struct pprof *p, struct cursor c)
{
    struct profile *profile = p->l->profile;
    uint64_t n[NUMBERS];
    struct field f;
    int r = 0;
    while (r == 0 && next_field(&c, &f)) {
        switch (f.number) {
        case SAMPLE_TYPE:
            r = read_numbers(f.bytes, n);
            if (r == 0)
                r = vec_push(&p->types, ((struct value_type){n[TYPE_NAME], n[TYPE_UNIT]}));
            break;
        case LOCATION:
            r = read_location(p, f.bytes);
            break;
        case FUNCTION:
            r = read_function(p, f.bytes);
            break;
        case STRING:
            r = vec_push(&p->strings,
                         ((struct str){(const char *)f.bytes.at, cursor_left(&f.bytes)}));
            break;
        case TIME_NANOS:
            profile->start_epoch_ns = f.value;
            break;
        case DURATION_NANOS:
            profile->duration_ns = f.value;
            break;
        case PERIOD:
            p->period = f.value;
            break;
        default:
            break;
        }
    }
    return r < 0 ? r : c.failed ? -EPROTO : 0;
}

/*
 * Chooses which value is read, and as which metric: our files name the metric, and of other files
 * the common kinds are known.
 */
static int choose_value(struct pprof *p)
{
    static const struct {
        const char *name;
        enum profile_metric metric;
    } others[] = {
        {"cpu", PROFILE_CPU},
        {"wall", PROFILE_WALL},
        {"alloc_space", PROFILE_ALLOCATION},
        {"inuse_space", PROFILE_ALLOCATION},
        {"delay", PROFILE_LOCK},
    };

    for (p->value = 0; p->value < p->types.len; p->value++)
        for (int m = 0; m < PROFILE_METRICS; m++)
            if (is_string(p, p->types.data[p->value].name, profile_metrics[m].name)) {
                p->metric = (enum profile_metric)m;
                return 0;
            }
    for (size_t k = 0; k < ARRAY_SIZE(others); k++)
        for (p->value = 0; p->value < p->types.len; p->value++)
            if (is_string(p, p->types.data[p->value].name, others[k].name)) {
                p->metric = others[k].metric;
                return 0;
            }
    buf_string(p->l->why, "a pprof profile of no kind that is known: CPU or wall-clock samples, "
                          "allocated bytes, times");
    return -ENOTSUP;
}

/* Returns the weight of a value; samples given as a time become a number of samples. */
static uint64_t weight_of(const struct pprof *p, uint64_t value)
{
    bool time = profile_metrics[p->metric].unit == UNIT_SAMPLES &&
                is_string(p, p->types.data[p->value].unit, "nanoseconds");
    return time && p->period ? value / p->period + (value % p->period * 2 >= p->period) : value;
}

/* Returns the node for a line of a location, below another node. */
static int64_t node_of_line(struct pprof *p, int64_t parent, const struct line *line)
{
    const uint64_t *at = map_get(&p->function_of, line->function);
    if (!at)
        return parent;
    const struct function *f = &p->functions.data[*at];
    struct str name = string_at(p, f->name), whole = string_at(p, f->system_name),
               descriptor = {"", 0};
    /* Our files have the descriptor after the name. */
    if (whole.len > name.len && whole.data[name.len] == '(' &&
        memcmp(whole.data, name.data, name.len) == 0)
        descriptor = (struct str){whole.data + name.len, whole.len - name.len};
    int32_t number = line->number <= INT32_MAX ? (int32_t)line->number : 0;
    int64_t frame =
        load_frame(p->l->profile, name, descriptor, string_at(p, f->file), number, FRAME_JAVA);
    return frame < 0 ? frame : profile_node(p->l->profile, (uint32_t)parent, (uint32_t)frame);
}

static int64_t node_of_stack(struct pprof *p)
{
    int64_t node = 0;
    for (size_t i = p->stack.len; i-- > 0 && node >= 0;) {
        const uint64_t *at = map_get(&p->location_of, p->stack.data[i]);
        const struct location *location = at ? &p->locations.data[*at] : NULL;
        for (size_t k = location ? location->n : 0; k-- > 0 && node >= 0;)
            node = node_of_line(p, node, &p->lines.data[location->first + k]);
    }
    return node;
}

/* Returns a sample's thread, according to its labels. */
static int64_t thread_of(struct pprof *p, struct cursor sample)
{
    struct field f;
    uint64_t n[NUMBERS];
    struct str name = {"", 0};
    while (next_field(&sample, &f))
        if (f.number == SAMPLE_LABEL && read_numbers(f.bytes, n) == 0 &&
            is_string(p, n[LABEL_KEY], "thread"))
            name = string_at(p, n[LABEL_TEXT]);
    int64_t text = profile_string(p->l->profile, name.data, name.len);
    return text < 0 ? text : profile_thread(p->l->profile, (uint64_t)text, name.data, name.len);
}

/* Reads the numbers of a repeated field, which may be packed. */
#define PUSH_NUMBERS(list, f)                                                    \
    __extension__({                                                              \
        int push_r_ = (f)->type == BYTES ? 0 : vec_push((list), (f)->value);     \
        while ((f)->type == BYTES && push_r_ == 0 && cursor_left(&(f)->bytes)) { \
            uint64_t push_v_ = cursor_varint(&(f)->bytes);                       \
            push_r_ = (f)->bytes.failed ? -EPROTO : vec_push((list), push_v_);   \
        }                                                                        \
        push_r_ == 0 && (list)->len > STACK_MAX ? -EPROTO : push_r_;             \
    })

static int read_sample(struct pprof *p, struct cursor c)
{
    struct cursor labels = c;
    struct field f;
    int r = 0;
    vec_clear(&p->stack);
    vec_clear(&p->values);
    while (r == 0 && next_field(&c, &f)) {
        if (f.number == SAMPLE_LOCATION)
            r = PUSH_NUMBERS(&p->stack, &f);
        else if (f.number == SAMPLE_VALUE)
            r = PUSH_NUMBERS(&p->values, &f);
    }
    if (r < 0 || c.failed)
        return r < 0 ? r : -EPROTO;
    uint64_t weight = p->value < p->values.len ? weight_of(p, p->values.data[p->value]) : 0;
    int64_t node = node_of_stack(p), thread = thread_of(p, labels);
    if (node < 0 || thread < 0)
        return -ENOMEM;
    if (!weight || weight > INT64_MAX)
        return 0;
    return profile_sample(p->l->profile, p->metric,
                          (struct profile_sample){.weight = weight,
                                                  .thread = (uint32_t)thread,
                                                  .node = (uint32_t)node});
}

static int read_samples(struct pprof *p, struct cursor c)
{
    const uint8_t *start = c.at;
    struct field f;
    int r = 0;
    for (uint64_t count = 0; r == 0 && next_field(&c, &f); count++) {
        if (f.number == SAMPLE && f.type == BYTES)
            r = read_sample(p, f.bytes);
        if (p->l->progress && count % 65536 == 0)
            p->l->progress(p->l->progress_context, (uint64_t)(c.at - start),
                           (uint64_t)(c.end - start));
    }
    return r;
}

/*
 * Unpacks a .gz file. Returns -EPROTO when it is damaged, truncated or too long; `to` then holds
 * what could be unpacked.
 */
static int unpack(const struct load *l, struct buf *to)
{
    uint8_t out[65536];
    z_stream z = {.next_in = (uint8_t *)l->data, .avail_in = (uInt)MIN(l->len, UINT32_MAX)};
    /* Adding 32 to the window bits makes zlib accept a gzip or a zlib header. */
    if (inflateInit2(&z, 15 + 32) != Z_OK)
        return -ENOMEM;
    int r = Z_OK;
    while (r == Z_OK && !buf_error(to)) {
        z.next_out = out;
        z.avail_out = sizeof(out);
        r = inflate(&z, Z_NO_FLUSH);
        buf_bytes(to, out, sizeof(out) - z.avail_out);
    }
    inflateEnd(&z);
    return buf_error(to) ? buf_error(to) : r == Z_STREAM_END ? 0 : -EPROTO;
}

static int read_profile(struct pprof *p, struct cursor c)
{
    int r = read_tables(p, c);
    if (r == 0)
        r = choose_value(p);
    if (r == 0)
        r = read_notes(p, c);
    if (r == 0)
        r = read_samples(p, c);
    if (r == -EPROTO && !p->l->why->len)
        buf_string(p->l->why, "not a pprof profile, or a damaged one");
    if (p->period && r == 0 && profile_metrics[p->metric].unit == UNIT_SAMPLES)
        p->l->profile->series[p->metric].interval_ns = p->period;
    return r;
}

int load_pprof(struct load *l)
{
    struct pprof p = {.l = l};
    struct buf unpacked = BUF(UNPACKED_MAX);
    bool packed = l->len > 2 && l->data[0] == 0x1f && l->data[1] == 0x8b;
    int r = packed ? unpack(l, &unpacked) : 0;
    if (r < 0)
        buf_string(l->why, r == -EPROTO ? "the compressed file is damaged or cut"
                                        : "more than 1 GiB when it is unpacked");
    else
        r = read_profile(&p, packed ? cursor_of(unpacked.data, unpacked.len)
                                    : cursor_of(l->data, l->len));
    vec_release(&p.strings);
    vec_release(&p.functions);
    vec_release(&p.lines);
    vec_release(&p.locations);
    vec_release(&p.types);
    vec_release(&p.stack);
    vec_release(&p.values);
    map_release(&p.function_of);
    map_release(&p.location_of);
    buf_release(&unpacked);
    return r;
}
