/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields by name, through structs and constants. */
#include "jfr/reader_internal.h"

#include <math.h>

/* Reads one value (not an array) at the cursor, without following a constant. */
static void read_one(struct rec_chunk *k, const struct rec_field *f, struct cursor *c,
                     struct rec_value *ret)
{
    if (f->constant) {
        ret->id = (uint64_t)rec_read_long(k, c);
        return;
    }
    switch (f->type->kind) {
    case REC_BOOLEAN:
        ret->number = cursor_u8(c) != 0;
        return;
    case REC_BYTE:
        ret->number = f->is_unsigned ? (int64_t)cursor_u8(c) : (int8_t)cursor_u8(c);
        return;
    case REC_CHAR:
    case REC_SHORT: {
        uint16_t unit = k->compressed ? (uint16_t)cursor_jfr_long(c) : cursor_be16(c);
        ret->number = f->type->kind == REC_CHAR || f->is_unsigned ? (int64_t)unit : (int16_t)unit;
        return;
    }
    case REC_INT: {
        int32_t number = rec_read_int(k, c);
        ret->number = f->is_unsigned ? (int64_t)(uint32_t)number : number;
        return;
    }
    case REC_LONG:
        ret->number = rec_read_long(k, c);
        return;
    case REC_FLOAT: {
        uint32_t bits = cursor_be32(c);
        float real;
        memcpy(&real, &bits, sizeof(real));
        ret->real = (double)real;
        return;
    }
    case REC_DOUBLE: {
        uint64_t bits = cursor_be64(c);
        memcpy(&ret->real, &bits, sizeof(ret->real));
        return;
    }
    case REC_STRING:
        rec_chunk_read_string(k, c, ret);
        return;
    case REC_STRUCT:
        ret->object = (struct rec_object){k->recording, k, f->type, c->at, c->end};
        rec_chunk_skip_value(k, &(struct rec_field){.type = f->type}, c, 0);
        ret->object.end = c->at;
    }
}

/* Follows a constant's id to its bytes. */
static void follow(struct rec_chunk *k, struct rec_value *v)
{
    struct type *t = (struct type *)(void *)v->field->type;
    uint64_t place = rec_chunk_constant_place(&k, &t, v->id);
    if (!place) {
        v->is_null = true;
        return;
    }
    v->object = (struct rec_object){k->recording, k, &t->pub,
                                    k->recording->data + (place & ~PLACE_RAW), k->end};
}

static void read_value(struct rec_chunk *k, const struct rec_field *f, struct cursor *c,
                       struct rec_value *ret)
{
    *ret = (struct rec_value){.field = f};
    if (!f->array) {
        read_one(k, f, c, ret);
        return;
    }
    ret->count = (uint32_t)rec_read_int(k, c);
    ret->object = (struct rec_object){k->recording, k, f->type, c->at, c->end};
    struct rec_field element = *f;
    element.array = false;
    if (ret->count > cursor_left(c))
        c->failed = true;
    for (uint64_t i = 0; i < ret->count && !c->failed; i++)
        rec_chunk_skip_value(k, &element, c, 0);
    ret->object.end = c->at;
}

int rec_fields(const struct rec_object *o, uint32_t *i, const uint8_t **at, struct rec_value *ret)
{
    if (!o->type || *i >= o->type->n_fields)
        return 0;
    struct cursor c = cursor_of(*i ? *at : o->at, (size_t)(o->end - (*i ? *at : o->at)));
    struct rec_value v;
    read_value(o->chunk, &o->type->fields[*i], &c, &v);
    if (c.failed)
        return -EBADMSG;
    if (v.field->constant && !v.field->array)
        follow(o->chunk, &v);
    *at = c.at;
    ++*i;
    *ret = v;
    return 1;
}

int rec_elements(struct rec_value *array, struct rec_value *ret)
{
    if (!array->count)
        return 0;
    struct rec_object *o = &array->object;
    struct cursor c = cursor_of(o->at, (size_t)(o->end - o->at));
    struct rec_value v = {.field = array->field};
    read_one(o->chunk, array->field, &c, &v);
    if (c.failed)
        return -EBADMSG;
    if (v.field->constant)
        follow(o->chunk, &v);
    o->at = c.at;
    array->count--;
    *ret = v;
    return 1;
}

static const struct rec_field *find_field(const struct rec_type *t, const char *name, size_t len)
{
    for (uint32_t i = 0; i < t->n_fields; i++)
        if (!strncmp(t->fields[i].name, name, len) && !t->fields[i].name[len])
            return &t->fields[i];
    return NULL;
}

/* Finds a field of the object, without following its constant. */
static int get_field(const struct rec_object *o, const char *name, size_t len,
                     struct rec_value *ret)
{
    const struct rec_field *f = o->type ? find_field(o->type, name, len) : NULL;
    if (!f)
        return -ENOENT;
    struct cursor c = cursor_of(o->at, (size_t)(o->end - o->at));
    for (const struct rec_field *before = o->type->fields; before != f && !c.failed; before++)
        rec_chunk_skip_value(o->chunk, before, &c, 0);
    struct rec_value v;
    read_value(o->chunk, f, &c, &v);
    if (c.failed) {
        recording_damage(o->recording, o->at, "an event's contents are damaged");
        return -EBADMSG;
    }
    *ret = v;
    return 0;
}

int rec_get(const struct rec_object *o, const char *path, struct rec_value *ret)
{
    struct rec_object at = *o;
    struct rec_value v;
    for (;;) {
        size_t len = strcspn(path, ".");
        int error = get_field(&at, path, len, &v);
        if (error)
            return error;
        if (v.field->constant && !v.field->array)
            follow(at.chunk, &v);
        path += len;
        if (!*path++ || v.is_null)
            break;
        if (v.field->array || v.field->type->kind != REC_STRUCT)
            return -ENOENT;
        at = v.object;
    }
    *ret = v;
    return 0;
}

/*
 * Finds the value at a path. A struct with one field stands for that field. Returns false when the
 * value is absent, null or an array.
 */
static bool get_plain(const struct rec_object *o, const char *path, struct rec_value *ret)
{
    if (rec_get(o, path, ret))
        return false;
    for (int depth = 0; depth < 4 && !ret->is_null && ret->field->type->kind == REC_STRUCT;
         depth++) {
        struct rec_object inner = ret->object;
        if (!inner.type || inner.type->n_fields != 1 ||
            rec_get(&inner, inner.type->fields[0].name, ret))
            return false;
    }
    return !ret->is_null && !ret->field->array && ret->field->type->kind != REC_STRUCT;
}

int64_t rec_long(const struct rec_object *o, const char *path, int64_t otherwise)
{
    struct rec_value v;
    if (!get_plain(o, path, &v) || v.field->type->kind > REC_DOUBLE)
        return otherwise;
    if (v.field->type->kind <= REC_LONG)
        return v.number;
    return v.real >= (double)INT64_MIN && v.real < -(double)INT64_MIN ? (int64_t)v.real : otherwise;
}

double rec_real(const struct rec_object *o, const char *path, double otherwise)
{
    struct rec_value v;
    if (!get_plain(o, path, &v) || v.field->type->kind > REC_DOUBLE)
        return otherwise;
    return v.field->type->kind <= REC_LONG ? (double)v.number : v.real;
}

const char *rec_string(const struct rec_object *o, const char *path, const char *otherwise)
{
    struct rec_value v;
    return get_plain(o, path, &v) && v.field->type->kind == REC_STRING ? v.string.data : otherwise;
}

int64_t rec_value_ns(const struct rec_object *o, const struct rec_value *v)
{
    static const int64_t scale[] = {
        [REC_MILLIS_STAMP] = 1000000, [REC_NANOS_STAMP] = 1, [REC_SECONDS] = 1000000000,
        [REC_MILLIS] = 1000000,       [REC_MICROS] = 1000,   [REC_NANOS] = 1};
    const struct rec_chunk *k = o->chunk;
    int64_t result;
    if (v->field->unit == REC_TICKS_STAMP)
        return (int64_t)((uint64_t)k->start_ns +
                         (uint64_t)rec_ticks_to_ns(
                             k, (int64_t)((uint64_t)v->number - (uint64_t)k->start_ticks)));
    if (v->field->unit == REC_TICKS)
        return rec_ticks_to_ns(k, v->number);
    if (v->field->unit < ARRAY_SIZE(scale) && scale[v->field->unit]) {
        if (__builtin_mul_overflow(v->number, scale[v->field->unit], &result))
            result = v->number < 0 ? INT64_MIN : INT64_MAX;
        return result;
    }
    return v->number;
}

int64_t rec_ns(const struct rec_object *o, const char *path, int64_t otherwise)
{
    struct rec_value v;
    return get_plain(o, path, &v) && v.field->type->kind <= REC_LONG ? rec_value_ns(o, &v)
                                                                     : otherwise;
}
