/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a recording: reads everything in every event, in both orders. */
#include "jfr/reader.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int budget; /* structs within arrays within structs would multiply */

static void read_object(const struct rec_object *o, int depth)
{
    uint32_t i = 0;
    const uint8_t *at = NULL;
    struct rec_value v;
    while (budget-- > 0 && rec_fields(o, &i, &at, &v) > 0) {
        (void)rec_value_ns(o, &v);
        struct rec_value element;
        while (!v.is_null && v.field->array && budget-- > 0 && rec_elements(&v, &element) > 0)
            if (!element.is_null && element.field->type->kind == REC_STRUCT && depth < 6)
                read_object(&element.object, depth + 1);
        if (!v.is_null && !v.field->array && v.field->type->kind == REC_STRUCT && depth < 6)
            read_object(&v.object, depth + 1);
    }
}

static void read_event(const struct rec_event *e)
{
    budget = 2000;
    read_object(&e->object, 0);
    for (uint32_t i = 0; i < e->object.type->n_fields; i++) {
        const char *name = e->object.type->fields[i].name;
        const struct rec_stack *stack = rec_stack(&e->object, name);
        for (uint32_t k = 0; stack && k < stack->n; k++)
            if (!stack->frames[k].method->full)
                abort();
        const struct rec_thread *thread = rec_thread(&e->object, name);
        if (thread && !thread->name)
            abort();
        (void)rec_class(&e->object, name);
        (void)rec_method(&e->object, name);
        (void)rec_long(&e->object, name, 0);
        (void)rec_real(&e->object, name, 0);
        (void)rec_string(&e->object, name, "");
        (void)rec_ns(&e->object, name, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recording *r;
    const char *why;
    if (recording_open_bytes(&r, data, size, &why))
        return why && *why ? 0 : (abort(), 0);
    struct rec_event e;
    int events = 0;
    while (recording_next(r, &e) > 0 && events++ < 1000)
        read_event(&e);
    struct rec_mark *marks;
    size_t n;
    if (!recording_by_time(r, &marks, &n)) {
        for (size_t i = 0; i < n && i < 100; i++)
            if (!recording_at(r, marks[i].offset, &e))
                read_event(&e);
        free(marks);
    }
    size_t n_types;
    (void)recording_types(r, &n_types);
    struct rec_info info;
    recording_info(r, &info);
    if (info.truncated && !info.why)
        abort();
    recording_close(r);
    return 0;
}
