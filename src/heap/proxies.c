/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the classes that java.lang.reflect.Proxy made. A dump does not have their interfaces, but
 * each such class has static fields m3, m4, ..., one for each of its methods, which refer to the
 * Method and thereby to the interface that declares it.
 */
#include "heap/proxies.h"

#include "base/dotted.h"
#include "base/generated_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METHODS_MAX = 1024 };

struct declared {
    unsigned field; /* 3 for m3 */
    int32_t class;
};

static int by_field(const void *a, const void *b)
{
    const struct declared *x = a, *y = b;
    return x->field < y->field ? -1 : x->field > y->field;
}

/* Returns the class that declares the method of a Method object, or HEAP_NO_CLASS. */
static int32_t declares(const struct heap_dump *d, const struct heap_field *of, uint64_t id,
                        heap_find_object *find, void *context)
{
    struct hprof_item item;
    unsigned size = d->header.id_size;
    if (!id || !find(context, id, &item) || item.tag != HPROF_INSTANCE_DUMP ||
        item.body_len < of->offset + size)
        return HEAP_NO_CLASS;
    return heap_dump_class(d, hprof_value_at(item.body + of->offset, HPROF_OBJECT, size));
}

/* Collects the classes that declare the methods of a proxy. Returns their number. */
static size_t methods_of(const struct heap_dump *d, const struct heap_class *proxy,
                         const struct heap_field *of, heap_find_object *find, void *context,
                         struct declared ret[METHODS_MAX])
{
    struct hprof_class c;
    struct hprof_static s;
    size_t n = 0;
    if (!heap_class_read(d, proxy, &c))
        return 0;
    for (unsigned i = c.statics; i && n < METHODS_MAX; i--) {
        if (!hprof_static_read(&c.statics_at, d->header.id_size, false, &s))
            break;
        struct str name = heap_dump_string(d, s.name);
        char text[16], *end;
        snprintf(text, sizeof(text), "%.*s", (int)MIN(name.len, sizeof(text)), name.data);
        unsigned long field = strtoul(text + 1, &end, 10);
        if (s.type != HPROF_OBJECT || text[0] != 'm' || *end || end == text + 1)
            continue;
        ret[n] = (struct declared){(unsigned)field, declares(d, of, s.value, find, context)};
        n += ret[n].class != HEAP_NO_CLASS && ret[n].class != d->object_class;
    }
    qsort(ret, n, sizeof(*ret), by_field);
    return n;
}

static bool is_repeated(const struct declared *methods, size_t k)
{
    bool repeated = false;
    for (size_t i = 0; i < k; i++)
        repeated = repeated || methods[i].class == methods[k].class;
    return repeated;
}

static void add_interface(const struct heap_dump *d, int32_t class, struct generated_target *t)
{
    const char *name = d->classes.data[class].name, *dot = strrchr(name, '.');
    generated_target_implements(t, dot ? (struct str){dot + 1, strlen(dot + 1)}
                                       : (struct str){name, strlen(name)});
}

/* Changes the name "jdk.proxy2.$Proxy14" to "jdk.proxy.$Proxy[Greeter]". */
static int rename_proxy(struct heap_dump *d, struct heap_class *proxy, struct generated_target *t)
{
    _cleanup_free_ char *name = strdup(proxy->name);
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    if (!name)
        return -ENOMEM;
    dotted_undo(name);
    dotted_append(&b, name, generated_name_normalize_for(name, strlen(name), t));
    buf_printf(&b, "[%s]", t->text);
    int64_t number = buf_error(&b) ? -ENOMEM : strpool_add(&d->names, buf_str(&b), b.len);
    if (number < 0)
        return (int)number;
    proxy->name = strpool_get(&d->names, (uint64_t)number).data;
    proxy->made = true;
    return 0;
}

int heap_name_proxies(struct heap_dump *d, heap_find_object *find, void *context)
{
    _cleanup_free_ struct declared *methods = calloc(METHODS_MAX, sizeof(*methods));
    struct heap_field of;
    int32_t method = heap_dump_class_named(d, "java.lang.reflect.Method");
    int32_t annotation = heap_dump_class_named(d, "java.lang.annotation.Annotation");
    int error = methods ? 0 : -ENOMEM;
    if (error || method == HEAP_NO_CLASS || !heap_field_named(d, method, "clazz", &of))
        return error;
    for (size_t i = 0; i < d->classes.len && !error; i++) {
        struct generated_target t = {0};
        struct heap_class *c = &d->classes.data[i];
        size_t n = 0;
        if (c->kind == HEAP_INSTANCE && generated_name_is_proxy(c->name, strlen(c->name)) &&
            !strchr(c->name, '['))
            n = methods_of(d, c, &of, find, context, methods);
        for (size_t k = 0; k < n; k++)
            if (methods[k].class != annotation && !is_repeated(methods, k))
                add_interface(d, methods[k].class, &t);
        if (!t.text[0] && n) /* an annotation without elements */
            add_interface(d, annotation, &t);
        if (t.text[0])
            error = rename_proxy(d, c, &t);
    }
    return error;
}
