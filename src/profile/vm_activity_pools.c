/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the parts of the VM's memory, and class loaders, from our recordings and the JDK's. */
#include "jfr/reader.h"
#include "profile/vm_activity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of a text in v->strings, or a negative errno. */
static int64_t text_of(struct vm_activity *v, const char *s)
{
    return strpool_add(&v->strings, s, strlen(s));
}

struct reading_of_pool {
    int64_t used, committed, max; /* below 0: unknown */
};

static int add_pool(struct vm_activity *v, const char *name, int64_t ns,
                    const struct reading_of_pool *now)
{
    int64_t text = text_of(v, name);
    size_t i = 0;
    if (text < 0)
        return (int)text;
    if (now->used < 0)
        return 0;
    while (i < v->pools.len && v->pools.data[i].name != (uint32_t)text)
        i++;
    struct vm_pool new = {(uint32_t)text, ns, ns, (uint64_t)now->used, 0, 0, 0, 0};
    if (i == v->pools.len && vec_push(&v->pools, new) < 0)
        return -ENOMEM;
    /* The events are not in chronological order. */
    struct vm_pool *p = &v->pools.data[i];
    p->used_most = MAX(p->used_most, (uint64_t)now->used);
    if (ns < p->first_ns) {
        p->first_ns = ns;
        p->used_first = (uint64_t)now->used;
    }
    if (ns >= p->last_ns) {
        p->last_ns = ns;
        p->used = (uint64_t)now->used;
        p->committed = (uint64_t)MAX(now->committed, INT64_C(0));
        p->max = (uint64_t)MAX(now->max, INT64_C(0));
    }
    return 0;
}

int vm_activity_add_pool(struct vm_activity *v, const struct rec_event *e)
{
    const struct rec_object *o = &e->object;
    const char *name = rec_string(o, "name", NULL);
    if (name)
        return add_pool(v, name, e->start_ns,
                        &(struct reading_of_pool){rec_long(o, "used", -1),
                                                  rec_long(o, "committed", -1),
                                                  rec_long(o, "max", -1)});
    /*
     * The JDK records the beginning and the end of each part of the code cache, and how much of it
     * is free.
     */
    int64_t start = rec_long(o, "startAddress", 0), top = rec_long(o, "reservedTopAddress", 0),
            reserved = (int64_t)((uint64_t)top - (uint64_t)start);
    return add_pool(v, rec_string(o, "codeBlobType", "CodeCache"), e->start_ns,
                    &(struct reading_of_pool){
                        reserved - rec_long(o, "unallocatedCapacity", reserved + 1), -1, reserved});
}

int vm_activity_add_metaspace(struct vm_activity *v, const struct rec_event *e)
{
    const struct rec_object *o = &e->object;
    return add_pool(v, "Metaspace", e->start_ns,
                    &(struct reading_of_pool){rec_long(o, "metaspace.used", -1),
                                              rec_long(o, "metaspace.committed", -1), -1});
}

/* Returns the class of a loader, or "bootstrap" for the VM's own loader, which has no class. */
static const char *loader_name(const struct rec_object *o)
{
    const char *ours = rec_string(o, "loader", NULL);
    const struct rec_class *c = ours ? NULL : rec_class(o, "definingClassLoader.type");
    return ours ? ours : c && c->name && *c->name ? c->name : "bootstrap";
}

int vm_activity_add_loader(struct vm_activity *v, const struct rec_event *e)
{
    const struct rec_object *o = &e->object;
    bool ours = strcmp(o->type->name, "jvmscope.ClassLoading") == 0,
         unload = strcmp(o->type->name, "jdk.ClassUnload") == 0;
    int64_t text = text_of(v, loader_name(o));
    size_t i = 0;
    if (text < 0)
        return (int)text;
    while (i < v->loaders.len && v->loaders.data[i].name != (uint32_t)text)
        i++;
    if (i == v->loaders.len &&
        vec_push(&v->loaders, ((struct vm_loader){.name = (uint32_t)text})) < 0)
        return -ENOMEM;
    struct vm_loader *l = &v->loaders.data[i];
    l->loaded += ours ? (uint64_t)MAX(rec_long(o, "loaded", 0), INT64_C(0)) : !unload;
    l->unloaded += ours ? (uint64_t)MAX(rec_long(o, "unloaded", 0), INT64_C(0)) : unload;
    return 0;
}

static const struct vm_activity *sorted;

static int by_name(const void *a, const void *b)
{
    const struct vm_pool *x = a, *y = b;
    return strcmp(vm_activity_text(sorted, x->name), vm_activity_text(sorted, y->name));
}

static int by_loaded(const void *a, const void *b)
{
    const struct vm_loader *x = a, *y = b;
    uint64_t p = x->loaded + x->unloaded, q = y->loaded + y->unloaded;
    return p != q ? (p < q) - (p > q)
                  : strcmp(vm_activity_text(sorted, x->name), vm_activity_text(sorted, y->name));
}

void vm_activity_sort_pools(struct vm_activity *v)
{
    sorted = v;
    vec_sort(&v->pools, by_name);
    vec_sort(&v->loaders, by_loaded);
}
