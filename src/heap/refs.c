/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/heap.h"

enum { CLASS_LINKS = 4 }; /* super class, loader, signers, protection domain */

/*
 * Adds the reference from an object to its class, but only for classes that nothing else keeps
 * alive.
 */
static void add_class_link(struct heap_refs *r, const struct heap_class *class)
{
    if (!class || !class->held_by_instances)
        return;
    r->class_id = class->id;
    r->count++;
}

static const struct heap_class *class_of(const struct heap_dump *d, uint64_t id)
{
    int32_t class = heap_dump_class(d, id);
    return class == HEAP_NO_CLASS ? NULL : &d->classes.data[class];
}

void heap_refs_begin(struct heap_refs *r, const struct heap_dump *d, const struct hprof_item *item)
{
    r->dump = d;
    r->item = item;
    r->at = r->count = 0;
    r->weak = false;
    r->class = NULL;
    r->class_id = 0;
    if (item->tag == HPROF_OBJECT_ARRAY_DUMP) {
        r->count = item->count;
        if (unlikely(d->class_edges))
            add_class_link(r, class_of(d, item->class_id));
    } else if (item->tag == HPROF_INSTANCE_DUMP) {
        r->class = class_of(d, item->class_id);
        r->count = r->class ? r->class->refs_len : 0;
        if (unlikely(d->class_edges))
            add_class_link(r, r->class);
    } else if (item->tag == HPROF_CLASS_DUMP &&
               hprof_class_read(item, d->header.id_size, &r->mirror) == 0) {
        r->count = CLASS_LINKS + r->mirror.statics;
    }
}

static uint64_t class_link(const struct hprof_class *c, uint64_t i)
{
    return i == 0 ? c->super : i == 1 ? c->loader : i == 2 ? c->signers : c->domain;
}

bool heap_refs_next(struct heap_refs *r, uint64_t *ret_id)
{
    const unsigned n = r->dump->header.id_size;
    while (r->at < r->count) {
        uint64_t i = r->at++, id = 0;
        r->weak = false;
        if (r->class_id && i == r->count - 1) {
            id = r->class_id;
        } else if (r->item->tag == HPROF_OBJECT_ARRAY_DUMP) {
            id = hprof_id_at(r->item->body + i * n, n);
        } else if (r->item->tag == HPROF_INSTANCE_DUMP) {
            uint32_t offset = r->dump->refs.data[r->class->refs_at + i];
            if ((uint64_t)offset + n > r->item->body_len)
                continue;
            id = hprof_id_at(r->item->body + offset, n);
            r->weak = i == 0 && r->class->reference;
        } else if (i < CLASS_LINKS) {
            id = class_link(&r->mirror, i);
        } else {
            struct hprof_static s;
            if (!hprof_static_read(&r->mirror.statics_at, n, false, &s))
                return false;
            id = s.type == HPROF_OBJECT ? s.value : 0;
        }
        if (id) {
            *ret_id = id;
            return true;
        }
    }
    return false;
}
