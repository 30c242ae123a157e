/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/otlp_release.h"

#include "wire/otlp.h"
#include "wire/otlp_fields.h"

#include <errno.h>

static void weigh_sample(struct otlp_evidence *e, struct cursor c)
{
    bool values = false, times = false, other = false;
    uint64_t largest = 0, v;
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        bool list = f.type == PROTOBUF_BYTES;
        values |= f.number == 2;
        times |= f.number == SAMPLE_TIMES;
        other |= f.number == 3 || f.number == 4;
        e->old |= (f.number == 3 && list) || (f.number == 4 && !list);
        e->recent |= (f.number == 3 && !list) || (f.number == 4 && list);
        for (struct protobuf_field at = f; f.number == 2 && protobuf_next_number(&at, &v);)
            largest = MAX(largest, v);
    }
    if (other)
        return;
    /* A sample of the current release has values or times. */
    e->old |= values && !times;
    if (values && times) {
        e->both = true;
        e->largest = MAX(e->largest, largest);
    }
}

int otlp_weigh_profile(struct otlp *o, struct otlp_evidence *e, struct cursor c)
{
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == PROFILE_SAMPLES && f.type == PROTOBUF_BYTES)
            weigh_sample(e, f.bytes);
        if (f.number == PROFILE_TIME && f.type != PROTOBUF_FIXED64) {
            buf_string(o->why, "OTLP profiles of a release before 1.8, which is not read");
            return -ENOTSUP;
        }
    }
    return 0;
}

/* Returns whether a part of the message begins with a field that it can have. */
static bool begins_well(struct cursor part, unsigned last)
{
    struct protobuf_field f;
    return !cursor_left(&part) ||
           (protobuf_next(&part, &f) && f.number <= last && f.type == PROTOBUF_BYTES);
}

/* A message that is cut off within a field still shows how the field began. */
static bool began_well(struct cursor c, const uint8_t *end)
{
    struct cursor rest = {c.at, end, false};
    uint64_t key = cursor_varint(&rest);
    cursor_varint(&rest); /* the length */
    uint8_t first = cursor_u8(&rest);
    return !rest.failed &&
           (key == (DATA_RESOURCE_PROFILES << 3 | PROTOBUF_BYTES) ||
            key == (DATA_DICTIONARY << 3 | PROTOBUF_BYTES)) &&
           (first & 7) == PROTOBUF_BYTES && first >> 3 >= 1 && first >> 3 <= DICTIONARY_STACK;
}

bool otlp_is(const void *data, size_t len)
{
    struct cursor c = cursor_of(data, len), before = c;
    struct protobuf_field f;
    size_t n = 0;
    for (; protobuf_next(&c, &f); n++, before = c)
        if (f.type != PROTOBUF_BYTES || f.number > DATA_DICTIONARY ||
            !begins_well(f.bytes, f.number == DATA_DICTIONARY
                                      ? (unsigned)DICTIONARY_STACK
                                      : (unsigned)RESOURCE_PROFILES_SCOPE_PROFILES + 1))
            return false;
    return c.failed ? began_well(before, c.end) : n > 0;
}
