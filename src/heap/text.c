/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/text.h"

#include "base/generated_name.h"

#include <string.h>

static bool place(const struct heap *h, const char *name, uint32_t *ret)
{
    struct heap_field f;
    if (!heap_field_named(h->dump, h->dump->string_class, name, &f))
        return false;
    *ret = f.offset;
    return true;
}

void heap_text_prepare(struct heap *h)
{
    struct heap_string_fields *s = &h->strings;
    *s = (struct heap_string_fields){0};
    if (h->dump->string_class == HEAP_NO_CLASS || !place(h, "value", &s->value))
        return;
    s->known = true;
    s->has_coder = place(h, "coder", &s->coder);
    /* Strings of JDK 6 and earlier have these fields. */
    s->has_part = place(h, "offset", &s->offset) && place(h, "count", &s->count);
}

bool heap_text_of(const struct heap *h, uint64_t i, struct heap_text *ret)
{
    const struct heap_string_fields *s = &h->strings;
    const unsigned n = h->dump->header.id_size;
    struct hprof_item item, array;
    if (i >= h->n || !s->known || heap_class_of(h, i) != h->dump->string_class ||
        !heap_item(h, i, &item) || item.tag != HPROF_INSTANCE_DUMP ||
        (uint64_t)s->value + n > item.body_len)
        return false;
    uint64_t number = heap_ids_find(&h->ids, hprof_id_at(item.body + s->value, n));
    if (number == HEAP_NONE || !heap_item(h, number, &array) ||
        array.tag != HPROF_PRIMITIVE_ARRAY_DUMP)
        return false;
    *ret = (struct heap_text){
        .bytes = array.body, .len = array.count, .array = number, .coder = HEAP_LATIN1};
    if (array.type == HPROF_CHAR) {
        ret->coder = HEAP_UTF16_BE;
        if (s->has_part && s->count + 4u <= item.body_len && s->offset + 4u <= item.body_len) {
            uint64_t from = hprof_value_at(item.body + s->offset, HPROF_INT, n);
            uint64_t len = hprof_value_at(item.body + s->count, HPROF_INT, n);
            if (from > array.count || len > array.count - from)
                return false;
            ret->bytes += from * 2;
            ret->len = len;
        }
        return true;
    }
    if (array.type != HPROF_BYTE)
        return false;
    if (s->has_coder && s->coder < item.body_len && item.body[s->coder]) {
        /* the VM's byte order: little-endian on all platforms that we support */
        ret->coder = HEAP_UTF16_LE;
        ret->len = array.count / 2;
    }
    return true;
}

/* Returns whether a string is the name of a class of the agent, or begins with it. */
static bool names_agents(const struct heap_text *t)
{
    char name[32];
    size_t n = MIN(t->len, sizeof(name));
    size_t width = t->coder == HEAP_LATIN1 ? 1 : 2;
    for (size_t k = 0; k < n; k++)
        name[k] = (char)t->bytes[k * width + (t->coder == HEAP_UTF16_BE)];
    return generated_name_is_agents(name, n);
}

/* Returns whether an array of characters is such a name. */
static bool array_names_agents(const struct heap *h, uint64_t i)
{
    struct hprof_item item;
    if (!heap_item(h, i, &item) || item.tag != HPROF_PRIMITIVE_ARRAY_DUMP)
        return false;
    struct heap_text text = {.bytes = item.body,
                             .len = item.count,
                             .coder = item.type == HPROF_CHAR ? HEAP_UTF16_BE : HEAP_LATIN1};
    return names_agents(&text);
}

bool heap_is_agents(const struct heap *h, uint64_t i)
{
    const struct heap_dump *d = h->dump;
    struct heap_text text;
    if (!d->agents.len || i >= h->n)
        return false;
    int32_t class = heap_class_of(h, i);
    if (class == HEAP_NO_CLASS)
        return false;
    if (class == d->string_class)
        return heap_text_of(h, i, &text) && names_agents(&text);
    if (class == d->primitive_arrays[HPROF_BYTE] || class == d->primitive_arrays[HPROF_CHAR])
        return array_names_agents(h, i);
    if (class == d->class_class)
        return map_get(&d->agents, heap_id(h, i)) != NULL;
    const char *name = d->classes.data[class].name;
    return generated_name_is_agents(name, strlen(name));
}
