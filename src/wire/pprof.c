/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pprof.h"

#include "base/protobuf.h"
#include "wire/decode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

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

enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };

enum { LOCATION_ID = 1, LOCATION_LINE = 4 };

enum { LINE_FUNCTION = 1, LINE_NUMBER };

enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, NUMBERS };

struct function {
    uint64_t name, system_name, file; /* numbers of strings */
};

struct line {
    uint64_t function, number;
};

struct location {
    size_t first, n; /* lines, the innermost first; the others have inlined it */
};

struct pprof {
    struct wire_batch *b;
    struct buf *why;
    size_t profile; /* the new one */
    struct decode_strings strings;
    VEC(struct function) functions;
    VEC(struct line) lines;
    VEC(uint32_t) frames; /* of lines; DECODE_NONE: there is no function */
    VEC(struct location) locations;
    struct decode_numbers stack, values; /* of the current sample */
    struct decode_labels labels;         /* likewise */
    struct map function_of, location_of; /* by id: the index */
    size_t walked;                       /* frames of all stacks so far, limited */
    VEC(struct cursor) types;
    struct cursor period_type;
};

static struct wire_profile *profile_of(struct pprof *p)
{
    return &p->b->profiles.data[p->profile];
}

/* Reads the numbers of a message by field; 0 for fields that are missing. */
static int read_numbers(struct cursor c, uint64_t ret[NUMBERS])
{
    struct protobuf_field f;
    memset(ret, 0, NUMBERS * sizeof(*ret));
    while (protobuf_next(&c, &f))
        if (f.number < NUMBERS && f.type == PROTOBUF_VARINT)
            ret[f.number] = f.value;
    return c.failed ? -EPROTO : 0;
}

static int read_location(struct pprof *p, struct cursor c)
{
    struct location at = {.first = p->lines.len};
    struct protobuf_field f;
    uint64_t id = 0, n[NUMBERS];
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f)) {
        if (f.number == LOCATION_ID)
            id = f.value;
        if (f.number != LOCATION_LINE)
            continue;
        r = read_numbers(f.bytes, n);
        if (r == 0)
            r = DECODE_PUSH(p->b, &p->lines, ((struct line){n[LINE_FUNCTION], n[LINE_NUMBER]}));
    }
    at.n = p->lines.len - at.first;
    if (r == 0)
        r = c.failed ? -EPROTO : map_put(&p->location_of, id, p->locations.len);
    return r < 0 ? r : DECODE_PUSH(p->b, &p->locations, at);
}

static int read_function(struct pprof *p, struct cursor c)
{
    uint64_t n[NUMBERS];
    int r = read_numbers(c, n);
    if (r == 0)
        r = map_put(&p->function_of, n[FUNCTION_ID], p->functions.len);
    return r < 0 ? r
                 : DECODE_PUSH(p->b, &p->functions,
                               ((struct function){n[FUNCTION_NAME], n[FUNCTION_SYSTEM_NAME],
                                                  n[FUNCTION_FILE]}));
}

/* Reads everything but the samples, which refer to the rest by numbers. */
static int read_tables(struct pprof *p, struct cursor c)
{
    struct wire_profile *profile = profile_of(p);
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f)) {
        switch (f.number) {
        case SAMPLE_TYPE:
            r = DECODE_PUSH(p->b, &p->types, f.bytes);
            break;
        case LOCATION:
            r = read_location(p, f.bytes);
            break;
        case FUNCTION:
            r = read_function(p, f.bytes);
            break;
        case STRING:
            r = decode_strings_add(&p->strings, p->b, f.bytes);
            break;
        case TIME_NANOS:
            profile->start_ns = f.value;
            break;
        case DURATION_NANOS:
            profile->duration_ns = f.value;
            break;
        case PERIOD_TYPE:
            p->period_type = f.bytes;
            break;
        case PERIOD:
            profile->period = f.value;
            break;
        default:
            break;
        }
    }
    return r < 0 ? r : c.failed ? -EPROTO : 0;
}

static int read_type(struct pprof *p, struct cursor c, struct wire_type *ret)
{
    uint64_t n[NUMBERS];
    int r = read_numbers(c, n);
    int64_t name = r < 0 ? r : decode_string(&p->strings, p->b, n[TYPE_NAME]);
    int64_t unit = name < 0 ? name : decode_string(&p->strings, p->b, n[TYPE_UNIT]);
    if (unit >= 0)
        *ret = (struct wire_type){(uint32_t)name, (uint32_t)unit};
    return unit < 0 ? (int)unit : 0;
}

static int read_types(struct pprof *p)
{
    struct wire_type type;
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->types.len; i++) {
        r = read_type(p, p->types.data[i], &type);
        if (r == 0)
            r = vec_push(&profile_of(p)->types, type);
    }
    if (r == 0 && p->period_type.at)
        r = read_type(p, p->period_type, &profile_of(p)->period_type);
    return r;
}

static int64_t frame_of_line(struct pprof *p, const struct line *line)
{
    const uint64_t *at = map_get(&p->function_of, line->function);
    if (!at)
        return DECODE_NONE;
    const struct function *f = &p->functions.data[*at];
    return decode_frame(p->b, decode_text(&p->strings, f->name),
                        decode_text(&p->strings, f->system_name), decode_text(&p->strings, f->file),
                        0, (int64_t)line->number);
}

static int read_frames(struct pprof *p)
{
    int r = vec_reserve(&p->frames, p->lines.len);
    for (size_t i = 0; r == 0 && i < p->lines.len; i++) {
        int64_t frame = frame_of_line(p, &p->lines.data[i]);
        r = frame < 0 ? (int)frame : vec_push(&p->frames, (uint32_t)frame);
    }
    return r;
}

/* Reads what a comment written by jvmscope states about the figures. */
static int read_notes(struct pprof *p, struct cursor c)
{
    struct protobuf_field f;
    const size_t start = strlen(PPROF_NOTE);
    while (protobuf_next(&c, &f)) {
        struct str s = f.number == COMMENT && f.type == PROTOBUF_VARINT
                           ? decode_text(&p->strings, f.value)
                           : (struct str){"", 0};
        if (s.len <= start || memcmp(s.data, PPROF_NOTE, start) != 0)
            continue;
        int64_t key = wire_string(p->b, WIRE_NOTE, strlen(WIRE_NOTE));
        int64_t value = key < 0 ? key : wire_string(p->b, s.data + start, s.len - start);
        struct wire_label label = {(uint32_t)key, (uint32_t)value};
        int64_t set = value < 0 ? value : wire_labels(p->b, &label, 1);
        if (set < 0)
            return (int)set;
        profile_of(p)->labels = (uint32_t)set;
    }
    return 0;
}

static int64_t node_of_stack(struct pprof *p)
{
    int64_t node = 0;
    for (size_t i = p->stack.len; i-- > 0 && node >= 0;) {
        const uint64_t *at = map_get(&p->location_of, p->stack.data[i]);
        const struct location *location = at ? &p->locations.data[*at] : NULL;
        int r = decode_frames(p->b, &p->walked, location ? location->n : 1);
        if (r < 0)
            return r;
        for (size_t k = location ? location->n : 0; k-- > 0 && node >= 0;) {
            uint32_t frame = p->frames.data[location->first + k];
            if (frame != DECODE_NONE)
                node = wire_node(p->b, (uint32_t)node, frame);
        }
    }
    return node;
}

static int read_label(struct pprof *p, struct cursor c, struct wire_link *link)
{
    uint64_t n[NUMBERS];
    int r = read_numbers(c, n);
    if (r < 0)
        return r;
    struct str key = decode_text(&p->strings, n[LABEL_KEY]),
               value = decode_text(&p->strings, n[LABEL_TEXT]);
    char number[32];
    if (!value.len && n[LABEL_NUMBER]) {
        snprintf(number, sizeof(number), "%" PRId64, (int64_t)n[LABEL_NUMBER]);
        value = (struct str){number, strlen(number)};
    }
    if (decode_link_label(key, value, link))
        return 0;
    /* Kinds of frames for which OpenTelemetry has another name. */
    if (str_is(key, "thread"))
        key = (struct str){WIRE_THREAD, strlen(WIRE_THREAD)};
    return decode_label(p->b, key, value, &p->labels);
}

static int push_numbers(struct pprof *p, struct decode_numbers *list, struct protobuf_field f)
{
    uint64_t v;
    int r = 0;
    while (r == 0 && protobuf_next_number(&f, &v))
        r = DECODE_PUSH(p->b, list, v);
    return r < 0 ? r : f.bytes.failed ? -EPROTO : 0;
}

static int read_sample(struct pprof *p, struct cursor c)
{
    struct wire_link link = {0};
    struct protobuf_field f;
    int r = 0;
    vec_clear(&p->stack);
    vec_clear(&p->values);
    vec_clear(&p->labels);
    while (r == 0 && protobuf_next(&c, &f)) {
        if (f.number == SAMPLE_LOCATION)
            r = push_numbers(p, &p->stack, f);
        else if (f.number == SAMPLE_VALUE)
            r = push_numbers(p, &p->values, f);
        else if (f.number == SAMPLE_LABEL)
            r = read_label(p, f.bytes, &link);
    }
    if (r < 0 || c.failed)
        return r < 0 ? r : -EPROTO;
    int64_t node = node_of_stack(p);
    int64_t labels = node < 0 ? node : wire_labels(p->b, p->labels.data, p->labels.len);
    int64_t number = labels < 0 ? labels : wire_link(p->b, &link);
    if (number < 0)
        return (int)number;
    struct wire_profile *profile = profile_of(p);
    for (size_t i = 0; r == 0 && i < p->values.len && i < profile->types.len; i++)
        if (p->values.data[i])
            r = wire_sample(p->b, profile,
                            &(struct wire_sample){.value = (int64_t)p->values.data[i],
                                                  .type = (uint32_t)i,
                                                  .node = (uint32_t)node,
                                                  .labels = (uint32_t)labels,
                                                  .link = (uint32_t)number});
    return r;
}

static int read_samples(struct pprof *p, struct cursor c)
{
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f))
        if (f.number == SAMPLE && f.type == PROTOBUF_BYTES)
            r = read_sample(p, f.bytes);
    return r;
}

int pprof_decode(struct wire_batch *b, const void *data, size_t len, uint32_t resource,
                 struct buf *why)
{
    struct pprof p = {.b = b, .why = why};
    struct cursor c = cursor_of(data, len);
    int64_t profile = wire_profile(b);
    int r = profile < 0 ? (int)profile : 0;
    if (r == 0) {
        p.profile = (size_t)profile;
        profile_of(&p)->resource = resource;
        r = read_tables(&p, c);
    }
    if (r == 0)
        r = read_types(&p);
    if (r == 0)
        r = read_notes(&p, c);
    if (r == 0)
        r = read_frames(&p);
    if (r == 0)
        r = read_samples(&p, c);
    decode_reason(b, r, "a pprof profile", why);
    decode_strings_release(&p.strings);
    vec_release(&p.functions);
    vec_release(&p.lines);
    vec_release(&p.frames);
    vec_release(&p.locations);
    vec_release(&p.types);
    vec_release(&p.stack);
    vec_release(&p.values);
    vec_release(&p.labels);
    map_release(&p.function_of);
    map_release(&p.location_of);
    return r;
}
