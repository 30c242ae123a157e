/* SPDX-License-Identifier: Apache-2.0 */
/* Types and the contents of their pools. */
#include "base/buf.h"
#include "base/json.h"
#include "jfr/internal.h"

#include <stdio.h>

/* ---- types ---- */

static int64_t find_type(struct jfr_writer *w, const char *name)
{
    return strpool_find(&w->names, name, strlen(name));
}

static int op_of(struct jfr_writer *w, const struct jfr_field *f, struct op *ret)
{
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {{"boolean", OP_BYTE}, {"byte", OP_BYTE},     {"char", OP_LONG},
                 {"short", OP_LONG},   {"int", OP_LONG},      {"long", OP_LONG},
                 {"float", OP_FIXED4}, {"double", OP_FIXED8}, {"java.lang.String", OP_STRING}};

    *ret = (struct op){.array = f->array};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!strcmp(kinds[i].name, f->type)) {
            ret->kind = kinds[i].kind;
            return 0;
        }
    }
    int64_t type = find_type(w, f->type);
    if (type < 0)
        return -EINVAL;
    ret->type = (uint16_t)type;
    const struct type_info *info = type < (int64_t)w->types.len ? w->types.data[type] : NULL;
    ret->kind = info && info->row->kind == JFR_STRUCT ? OP_STRUCT : OP_REF;
    return 0;
}

static int compile(struct jfr_writer *w, struct type_info *info)
{
    const struct jfr_type *row = info->row;
    for (unsigned i = 0; row->kind == JFR_EVENT && i < 4; i++) {
        struct op op;
        if (i && !(row->has & 1u << (i - 1)))
            continue;
        int ret = op_of(w, &jfr_event_fields[i], &op);
        if (ret || (ret = vec_push(&info->ops, op)))
            return ret;
    }
    for (const struct jfr_field *f = row->fields; f && f->name; f++) {
        struct op op;
        int ret = op_of(w, f, &op);
        if (ret || (ret = vec_push(&info->ops, op)))
            return ret;
    }
    return row->fields || row->kind == JFR_EVENT
               ? 0
               : vec_push(&info->ops, ((struct op){.kind = OP_STRING}));
}

/* Adds the shapes of the type's fields to `shape`. */
static uint32_t shape_of(const struct jfr_writer *w, const struct type_info *info, uint32_t shape)
{
    static const enum jfr_shape shapes[] = {
        [OP_LONG] = JFR_NUMBER,   [OP_BYTE] = JFR_BYTE,     [OP_FIXED4] = JFR_FLOAT,
        [OP_FIXED8] = JFR_DOUBLE, [OP_STRING] = JFR_STRING, [OP_REF] = JFR_NUMBER};

    for (size_t i = 0; i < info->ops.len; i++) {
        const struct op *op = &info->ops.data[i];
        shape = op->kind == OP_STRUCT ? shape_of(w, w->types.data[op->type], shape)
                                      : jfr_shape_add(shape, shapes[op->kind]);
    }
    return shape;
}

static void type_free(struct type_info *info)
{
    if (!info)
        return;
    uint64_t id, value;
    for (size_t i = 0; map_next(&info->keyed, &i, &id, &value);)
        free((void *)(uintptr_t)value);
    map_release(&info->keyed);
    strpool_release(&info->contents);
    vec_release(&info->emitted);
    vec_release(&info->ops);
    free(info);
}

/* Requires the dict lock. */
static int add_type(struct jfr_writer *w, const struct jfr_type *row, uint32_t *ret_id)
{
    int64_t known = find_type(w, row->name);
    if (known >= 0) {
        *ret_id = (uint32_t)known;
        return 0;
    }
    if (w->types.len == JFR_MAX_TYPES)
        return -ENOSPC;
    for (const struct jfr_field *f = row->fields; f && f->name; f++) {
        struct op op;
        bool self = row->kind == JFR_POOL && !strcmp(f->type, row->name);
        if (f->array && row->kind == JFR_EVENT)
            return -EINVAL;
        if (!self && w->types.len >= JFR_BUILTINS && op_of(w, f, &op))
            return -EINVAL;
    }
    struct type_info *info = calloc(1, sizeof(*info));
    if (!info || vec_reserve(&w->types, w->types.len + 1)) {
        free(info);
        return -ENOMEM;
    }
    info->row = row;
    int64_t number = strpool_add(&w->names, row->name, strlen(row->name));
    if (number < 0) {
        type_free(info);
        return -ENOMEM;
    }
    /*
     * The name must keep its number. A failure from here on therefore leaves a type without fields,
     * which no event uses.
     */
    w->types.data[w->types.len++] = info;
    *ret_id = (uint32_t)number;
    return w->types.len > JFR_BUILTINS ? compile(w, info) : 0;
}

int dictionary_add_types(struct jfr_writer *w, const struct jfr_type *rows, size_t n,
                         uint32_t *ret_ids)
{
    int ret = 0;
    bool builtin = rows == jfr_builtin_types;
    pthread_mutex_lock(&w->dict);
    for (size_t i = 0; i < n && !ret; i++) {
        uint32_t id;
        ret = add_type(w, &rows[i], &id);
        if (!ret && ret_ids)
            ret_ids[i] = id;
    }
    /* Built-in types refer to each other in any order, so compile them after all are added. */
    for (size_t i = 0; builtin && i < n && !ret; i++)
        ret = compile(w, w->types.data[i]);
    for (size_t i = 0; i < w->types.len; i++) {
        if (w->types.data[i]->row->kind == JFR_EVENT)
            w->shapes[i] = shape_of(w, w->types.data[i], 0);
    }
    pthread_mutex_unlock(&w->dict);
    return ret;
}

void types_release(struct jfr_writer *w)
{
    for (size_t i = 0; i < w->types.len; i++)
        type_free(w->types.data[i]);
    vec_release(&w->types);
    vec_release(&w->pending);
    strpool_release(&w->names);
    for (size_t i = 0; i < w->method_info.len; i++)
        free(w->method_info.data[i].lines);
    vec_release(&w->method_info);
    map_release(&w->methods);
}

/* ---- entries ---- */

static void put_string(struct buf *b, const char *s)
{
    if (!s || !*s) {
        buf_u8(b, s ? 1 : 0);
        return;
    }
    struct buf text = BUF(UINT32_C(1) << 24);
    buf_utf8(&text, s, strlen(s));
    buf_u8(b, 3);
    buf_jfr_long(b, text.len);
    buf_bytes(b, text.data, text.len);
    buf_release(&text);
}

/*
 * Returns the id of the entry with these contents, or 0 when out of memory. Releases the contents.
 * Requires the dict lock.
 */
static uint64_t intern(struct jfr_writer *w, uint32_t pool, struct buf *contents)
{
    struct type_info *info = w->types.data[pool];
    int64_t number = -ENOMEM;
    if (!buf_error(contents) && !vec_reserve(&info->emitted, info->contents.strings.len + 1)) {
        number = strpool_add(&info->contents, (const char *)contents->data, contents->len);
        if (number == (int64_t)info->emitted.len)
            info->emitted.data[info->emitted.len++] = 0;
    }
    buf_release(contents);
    return number < 0 ? 0 : (uint64_t)number + 1;
}

#define CONTENTS BUF(UINT32_C(1) << 24)

static uint64_t intern_text(struct jfr_writer *w, uint32_t pool, const char *s)
{
    if (!s)
        return 0;
    struct buf b = CONTENTS;
    put_string(&b, s);
    return intern(w, pool, &b);
}

static uint64_t symbol(struct jfr_writer *w, const char *s)
{
    return intern_text(w, JFR_POOL_SYMBOL, s);
}

static uint64_t intern_class(struct jfr_writer *w, const struct jfr_class *c)
{
    uint64_t loader = 0, module = 0, package = 0;
    if (c->loader || c->loader_class) {
        uint64_t type =
            c->loader_class ? intern_class(w, &(struct jfr_class){.name = c->loader_class}) : 0;
        struct buf b = CONTENTS;
        buf_jfr_long(&b, type);
        buf_jfr_long(&b, symbol(w, c->loader));
        loader = intern(w, JFR_POOL_CLASS_LOADER, &b);
    }
    if (c->module) {
        struct buf b = CONTENTS;
        buf_jfr_long(&b, symbol(w, c->module));
        buf_jfr_long(&b, 0);
        buf_jfr_long(&b, 0);
        buf_jfr_long(&b, loader);
        module = intern(w, JFR_POOL_MODULE, &b);
    }
    if (c->package) {
        struct buf b = CONTENTS;
        buf_jfr_long(&b, symbol(w, c->package));
        buf_jfr_long(&b, module);
        buf_u8(&b, 0);
        package = intern(w, JFR_POOL_PACKAGE, &b);
    }
    struct buf b = CONTENTS;
    buf_jfr_long(&b, loader);
    buf_jfr_long(&b, symbol(w, c->name ? c->name : ""));
    buf_jfr_long(&b, package);
    buf_jfr_long(&b, c->modifiers);
    buf_u8(&b, c->hidden);
    return intern(w, JFR_POOL_CLASS, &b);
}

uint64_t dictionary_intern_method(struct jfr_writer *w, const struct jfr_method *m)
{
    /* The JDK's printer requires a class and a descriptor in every frame. */
    struct buf b = CONTENTS;
    buf_jfr_long(&b, intern_class(w, &m->class));
    buf_jfr_long(&b, symbol(w, m->name ? m->name : ""));
    buf_jfr_long(&b, symbol(w, m->descriptor ? m->descriptor : "()V"));
    buf_jfr_long(&b, m->modifiers);
    buf_u8(&b, m->hidden);
    return intern(w, JFR_POOL_METHOD, &b);
}

/* Sets the entry with an id. Requires the dict lock. */
int dictionary_define_entry(struct jfr_writer *w, uint32_t pool, uint64_t id, struct buf *contents)
{
    struct type_info *info = w->types.data[pool];
    int ret = buf_error(contents);
    struct keyed_entry *entry = ret ? NULL : calloc(1, sizeof(*entry) + contents->len);
    uint64_t *place = entry ? map_at(&info->keyed, id, 0, NULL) : NULL;
    if (place) {
        free((void *)(uintptr_t)*place);
        entry->len = (uint32_t)contents->len;
        memcpy(entry->bytes, contents->data, contents->len);
        *place = (uintptr_t)entry;
    } else {
        free(entry);
        ret = ret ? ret : -ENOMEM;
    }
    buf_release(contents);
    return ret;
}

static int define_thread(struct jfr_writer *w, uint64_t id, const struct jfr_thread *t)
{
    struct buf b = CONTENTS;
    uint64_t group = 0;
    if (t->group) {
        struct buf g = CONTENTS;
        buf_jfr_long(&g, 0);
        put_string(&g, t->group);
        group = intern(w, JFR_POOL_THREAD_GROUP, &g);
    }
    put_string(&b, t->os_name);
    buf_jfr_long(&b, t->os_id);
    put_string(&b, t->java_name);
    buf_jfr_long(&b, t->java_id);
    buf_jfr_long(&b, group);
    buf_u8(&b, t->is_virtual);
    return dictionary_define_entry(w, JFR_POOL_THREAD, id, &b);
}

uint64_t jfr_define_class(struct jfr_writer *w, const struct jfr_class *c)
{
    pthread_mutex_lock(&w->dict);
    uint64_t id = intern_class(w, c);
    pthread_mutex_unlock(&w->dict);
    return id;
}

uint64_t jfr_define_name(struct jfr_writer *w, uint32_t pool, const char *name)
{
    pthread_mutex_lock(&w->dict);
    uint64_t id =
        pool < w->types.len && !w->types.data[pool]->keyed.len ? intern_text(w, pool, name) : 0;
    pthread_mutex_unlock(&w->dict);
    return id;
}

uint64_t jfr_define_string(struct jfr_writer *w, const char *s)
{
    return jfr_define_name(w, JFR_POOL_STRING, s);
}

int jfr_define_thread(struct jfr_writer *w, uint64_t id, const struct jfr_thread *t)
{
    pthread_mutex_lock(&w->dict);
    int ret = define_thread(w, id, t);
    pthread_mutex_unlock(&w->dict);
    return ret;
}

void jfr_forget_thread(struct jfr_writer *w, uint64_t id)
{
    pthread_mutex_lock(&w->dict);
    uint64_t *entry = map_get(&w->types.data[JFR_POOL_THREAD]->keyed, id);
    if (entry)
        ((struct keyed_entry *)(uintptr_t)*entry)->forgotten = (uint32_t)atomic_load(&w->chunks);
    pthread_mutex_unlock(&w->dict);
}

void dictionary_forget(struct jfr_writer *w, uint32_t before)
{
    pthread_mutex_lock(&w->dict);
    struct map *threads = &w->types.data[JFR_POOL_THREAD]->keyed;
    VEC(uint64_t) gone = {0};
    uint64_t id, value;
    for (size_t i = 0; map_next(threads, &i, &id, &value);) {
        uint32_t forgotten = ((struct keyed_entry *)(uintptr_t)value)->forgotten;
        if (forgotten && forgotten < before && vec_push(&gone, id))
            break; /* out of memory; the next rotation drops them */
    }
    for (size_t i = 0; i < gone.len; i++) {
        free((void *)(uintptr_t)*map_get(threads, gone.data[i]));
        map_remove(threads, gone.data[i]);
    }
    vec_release(&gone);
    pthread_mutex_unlock(&w->dict);
}

int types_constants(struct jfr_writer *w)
{
    static const struct {
        uint16_t pool, id;
        const char *name;
    } rows[] = {
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_INTERPRETED, "Interpreted"},
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_JIT, "JIT compiled"},
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_INLINED, "Inlined"},
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_NATIVE, "Native"},
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_CPP, "C++"},
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_KERNEL, "Kernel"},
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_STUB, "Stub"},
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_C1, "C1 compiled"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_NEW, "STATE_NEW"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_TERMINATED, "STATE_TERMINATED"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_RUNNABLE, "STATE_RUNNABLE"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_SLEEPING, "STATE_SLEEPING"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_IN_OBJECT_WAIT, "STATE_IN_OBJECT_WAIT"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_IN_OBJECT_WAIT_TIMED, "STATE_IN_OBJECT_WAIT_TIMED"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_PARKED, "STATE_PARKED"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_PARKED_TIMED, "STATE_PARKED_TIMED"},
        {JFR_POOL_THREAD_STATE, JFR_STATE_BLOCKED_ON_MONITOR_ENTER,
         "STATE_BLOCKED_ON_MONITOR_ENTER"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf b = CONTENTS;
        put_string(&b, rows[i].name);
        int ret = dictionary_define_entry(w, rows[i].pool, rows[i].id, &b);
        if (ret)
            return ret;
    }
    return 0;
}
