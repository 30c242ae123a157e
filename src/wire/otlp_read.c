/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/otlp.h"
#include "wire/otlp_fields.h"
#include "wire/otlp_release.h"
#include "wire/otlp_tables.h"

#include <errno.h>

/* ---- profiles ---- */

static int read_type(struct otlp *o, struct cursor c, struct wire_type *ret)
{
    int64_t name = 0, unit = 0;
    struct protobuf_field f;
    while (name >= 0 && unit >= 0 && protobuf_next(&c, &f)) {
        if (f.number == VALUE_TYPE)
            name = otlp_string_of(o, f.value);
        else if (f.number == VALUE_UNIT)
            unit = otlp_string_of(o, f.value);
    }
    if (name < 0 || unit < 0 || c.failed)
        return name < 0 ? (int)name : unit < 0 ? (int)unit : -EPROTO;
    *ret = (struct wire_type){(uint32_t)name, (uint32_t)unit};
    return 0;
}

/* A sample has values; or times of events, each of which counts 1; or a value for each time. */
static int add_events(struct otlp *o, struct wire_profile *p, struct wire_sample sample)
{
    size_t values = o->values.len, times = o->times.len;
    if (!values && !times)
        return otlp_refuse(o, "a damaged message of OTLP: a sample with neither values nor times");
    if (values && times && values != times)
        return otlp_refuse(o, "a damaged message of OTLP: a sample with more values than times, "
                              "or fewer");
    int r = 0;
    for (size_t i = 0; r == 0 && i < MAX(values, times); i++) {
        sample.value = values ? (int64_t)o->values.data[i] : 1;
        sample.time_ns = times ? o->times.data[i] : 0;
        if (sample.value)
            r = wire_sample(o->b, p, &sample);
    }
    return r;
}

static unsigned sample_field(const struct otlp *o, unsigned number)
{
    static const unsigned old[] = {0, SAMPLE_STACK, SAMPLE_VALUES, SAMPLE_ATTRIBUTES, SAMPLE_LINK};
    return o->old_samples && number < ARRAY_SIZE(old) ? old[number] : number;
}

static int read_sample(struct otlp *o, struct wire_profile *p, struct cursor c)
{
    uint64_t stack = 0, link = 0;
    struct decode_numbers attributes = {0};
    struct protobuf_field f;
    int r = 0;
    vec_clear(&o->values);
    vec_clear(&o->times);
    while (r == 0 && protobuf_next(&c, &f)) {
        switch (sample_field(o, f.number)) {
        case SAMPLE_STACK:
            stack = f.value;
            break;
        case SAMPLE_LINK:
            link = f.value;
            break;
        case SAMPLE_ATTRIBUTES:
            r = otlp_read_list(o, &attributes, f, false);
            break;
        case SAMPLE_VALUES:
            r = otlp_read_list(o, &o->values, f, false);
            break;
        case SAMPLE_TIMES:
            r = otlp_read_list(o, &o->times, f, true);
            break;
        default:
            break;
        }
    }
    if (r == 0 && c.failed)
        r = -EPROTO;
    if (r == 0 && link)
        r = otlp_check_index(o, "link", link, o->links.len);
    int64_t node = r < 0 ? r : otlp_node_of(o, stack);
    int64_t labels = node < 0 ? node : otlp_set_of(o, &attributes);
    vec_release(&attributes);
    if (labels < 0)
        return (int)labels;
    return add_events(o, p,
                      (struct wire_sample){.node = (uint32_t)node,
                                           .labels = (uint32_t)labels,
                                           .link = link ? o->links.data[link] : 0});
}

static int read_profile(struct otlp *o, struct cursor c, uint32_t resource)
{
    int64_t number = wire_profile(o->b), set;
    struct wire_profile *p = number < 0 ? NULL : &o->b->profiles.data[number];
    struct wire_type type = {0};
    struct decode_numbers attributes = {0};
    struct cursor samples = c;
    struct protobuf_field f;
    int r = p ? 0 : (int)number;
    while (r == 0 && protobuf_next(&c, &f)) {
        switch (f.number) {
        case PROFILE_SAMPLE_TYPE:
            r = read_type(o, f.bytes, &type);
            break;
        case PROFILE_TIME:
            p->start_ns = f.value;
            break;
        case PROFILE_DURATION:
            p->duration_ns = f.value;
            break;
        case PROFILE_PERIOD_TYPE:
            r = read_type(o, f.bytes, &p->period_type);
            break;
        case PROFILE_PERIOD:
            p->period = f.value;
            break;
        case PROFILE_ID:
            if (cursor_left(&f.bytes) == sizeof(p->id))
                memcpy(p->id, f.bytes.at, sizeof(p->id));
            break;
        case PROFILE_ATTRIBUTES:
            r = otlp_read_list(o, &attributes, f, false);
            break;
        default:
            break;
        }
    }
    if (r == 0)
        r = c.failed ? -EPROTO : vec_push(&p->types, type);
    set = r < 0 ? r : otlp_set_of(o, &attributes);
    vec_release(&attributes);
    if (set < 0)
        return (int)set;
    p->resource = resource;
    p->labels = (uint32_t)set;
    while (r == 0 && protobuf_next(&samples, &f))
        if (f.number == PROFILE_SAMPLES && f.type == PROTOBUF_BYTES)
            r = read_sample(o, p, f.bytes);
    return r;
}

/* ---- the tree of messages ---- */

static int read_scope_profiles(struct otlp *o, struct cursor c, uint32_t resource,
                               struct otlp_evidence *e)
{
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f))
        if (f.number == SCOPE_PROFILES_PROFILES && f.type == PROTOBUF_BYTES)
            r = e ? otlp_weigh_profile(o, e, f.bytes) : read_profile(o, f.bytes, resource);
    return r < 0 ? r : c.failed ? -EPROTO : 0;
}

static int read_resource_profiles(struct otlp *o, struct cursor c, struct otlp_evidence *e)
{
    struct cursor again = c;
    struct protobuf_field f;
    int64_t resource = 0;
    int r = 0;
    while (!e && resource >= 0 && protobuf_next(&c, &f))
        if (f.number == RESOURCE_PROFILES_RESOURCE && f.type == PROTOBUF_BYTES)
            resource = otlp_read_resource(o, f.bytes);
    if (resource < 0)
        return (int)resource;
    while (r == 0 && protobuf_next(&again, &f))
        if (f.number == RESOURCE_PROFILES_SCOPE_PROFILES && f.type == PROTOBUF_BYTES)
            r = read_scope_profiles(o, f.bytes, (uint32_t)resource, e);
    return r < 0 ? r : again.failed ? -EPROTO : 0;
}

/* If `evidence` is given, only that is collected, and nothing is added to the batch. */
static int read_all(struct otlp *o, struct cursor c, struct otlp_evidence *e)
{
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f))
        if (f.number == DATA_RESOURCE_PROFILES && f.type == PROTOBUF_BYTES)
            r = read_resource_profiles(o, f.bytes, e);
    return r < 0 ? r : c.failed ? -EPROTO : 0;
}

static int decide_release(struct otlp *o, struct cursor c)
{
    struct otlp_evidence e = {0};
    int r = read_all(o, c, &e);
    if (r == 0 && e.old && e.recent)
        return otlp_refuse(o, "a damaged message of OTLP: samples of two releases in one message");
    /*
     * Checks that there is nothing but values and times, or attributes and times, and that indices
     * are inside their table.
     */
    o->old_samples = e.old || (!e.recent && e.both && e.largest >= o->attributes.len);
    return r;
}

int otlp_decode(struct wire_batch *b, const void *data, size_t len, struct buf *why)
{
    struct otlp o = {.b = b, .why = why};
    struct cursor c = cursor_of(data, len);
    int r = otlp_read_dictionaries(&o, c);
    if (r == 0)
        r = decide_release(&o, c);
    if (r == 0)
        r = read_all(&o, c, NULL);
    decode_reason(b, r, "a message of OTLP profiles", why);
    decode_strings_release(&o.strings);
    vec_release(&o.mappings);
    vec_release(&o.functions);
    vec_release(&o.attributes);
    vec_release(&o.locations);
    vec_release(&o.frames);
    vec_release(&o.stacks);
    vec_release(&o.nodes);
    vec_release(&o.links);
    vec_release(&o.numbers);
    vec_release(&o.values);
    vec_release(&o.times);
    vec_release(&o.labels);
    return r;
}
