/* SPDX-License-Identifier: Apache-2.0 */
/* Stores types and the contents of their pools. */
#include "base/buf.h"
#include "base/cursor.h"
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
    pool_release(&info->entries);
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
     * The name keeps its number. If something fails from here on, a type without fields remains,
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
    size_t known = w->types.len;
    for (size_t i = 0; i < n && !ret; i++) {
        uint32_t id;
        ret = add_type(w, &rows[i], &id);
        if (!ret && ret_ids)
            ret_ids[i] = id;
    }
    /* Built-in types refer to each other in any order, so compile them after all are added. */
    for (size_t i = 0; builtin && i < n && !ret; i++)
        ret = compile(w, w->types.data[i]);
    for (size_t i = known; i < w->types.len; i++) {
        if (w->types.data[i]->row->kind == JFR_EVENT)
            w->shapes[i] = shape_of(w, w->types.data[i], 0);
    }
    pthread_mutex_unlock(&w->dict);
    return ret;
}

void dictionary_release_types(struct jfr_writer *w)
{
    for (size_t i = 0; i < w->types.len; i++)
        type_free(w->types.data[i]);
    vec_release(&w->types);
    vec_release(&w->pending);
    strpool_release(&w->names);
    uint64_t method, info;
    for (size_t i = 0; map_next(&w->methods, &i, &method, &info);)
        free((void *)(uintptr_t)info);
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
    json_put_utf8(&text, s, strlen(s));
    buf_u8(b, 3);
    buf_jfr_long(b, text.len);
    buf_bytes(b, text.data, text.len);
    buf_release(&text);
}

static uint32_t chunk_now(const struct jfr_writer *w)
{
    return (uint32_t)atomic_load(&((struct jfr_writer *)w)->chunks);
}

/* Releases the contents. Returns NULL when out of memory. Requires the dict lock. */
static struct pool_constant *intern_entry(struct jfr_writer *w, uint32_t pool, struct buf *contents)
{
    struct pool_constant *c = buf_error(contents)
                                  ? NULL
                                  : pool_intern(&w->types.data[pool]->entries, contents->data,
                                                contents->len, chunk_now(w));
    buf_release(contents);
    return c;
}

uint64_t dictionary_intern(struct jfr_writer *w, uint32_t pool, struct buf *contents)
{
    const struct pool_constant *c = intern_entry(w, pool, contents);
    return c ? c->id : 0;
}

#define CONTENTS BUF(UINT32_C(1) << 24)

static uint64_t intern_text(struct jfr_writer *w, uint32_t pool, const char *s)
{
    if (!s)
        return 0;
    struct buf b = CONTENTS;
    put_string(&b, s);
    return dictionary_intern(w, pool, &b);
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
        loader = dictionary_intern(w, JFR_POOL_CLASS_LOADER, &b);
    }
    if (c->module) {
        struct buf b = CONTENTS;
        buf_jfr_long(&b, symbol(w, c->module));
        buf_jfr_long(&b, 0);
        buf_jfr_long(&b, 0);
        buf_jfr_long(&b, loader);
        module = dictionary_intern(w, JFR_POOL_MODULE, &b);
    }
    if (c->package) {
        struct buf b = CONTENTS;
        buf_jfr_long(&b, symbol(w, c->package));
        buf_jfr_long(&b, module);
        buf_u8(&b, 0);
        package = dictionary_intern(w, JFR_POOL_PACKAGE, &b);
    }
    struct buf b = CONTENTS;
    buf_jfr_long(&b, loader);
    buf_jfr_long(&b, symbol(w, c->name ? c->name : ""));
    buf_jfr_long(&b, package);
    buf_jfr_long(&b, c->modifiers);
    buf_u8(&b, c->hidden);
    return dictionary_intern(w, JFR_POOL_CLASS, &b);
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
    return dictionary_intern(w, JFR_POOL_METHOD, &b);
}

/* Sets the entry of an id that the writer's owner has chosen. Requires the dict lock. */
static int define_entry(struct jfr_writer *w, uint32_t pool, uint64_t id, struct buf *contents,
                        bool stays)
{
    int ret = buf_error(contents);
    struct pool_constant *c = ret ? NULL
                                  : pool_put(&w->types.data[pool]->entries, id, contents->data,
                                             contents->len, chunk_now(w));
    if (c)
        c->stays = stays;
    buf_release(contents);
    return c ? 0 : ret ? ret : -ENOMEM;
}

/*
 * Writes a thread into the file immediately, in case the process dies before the worker's next
 * round. Nothing is lost when there is no room, because the worker writes the thread again.
 */
static void append_thread(struct jfr_writer *w, uint64_t id, const struct buf *contents)
{
    struct jfr_event e;
    if (buf_error(contents) || !event_begin_constant(w, JFR_POOL_THREAD, id, contents->len, &e))
        return;
    memcpy(e.at, contents->data, contents->len);
    e.at += contents->len;
    event_end_constant(&e);
}

/* Defines a thread. at_once: it is also written immediately, before the worker's next round. */
static int define_thread(struct jfr_writer *w, uint64_t id, const struct jfr_thread *t, bool stays,
                         bool at_once)
{
    struct buf b = CONTENTS;
    uint64_t group = 0;
    if (t->group) {
        struct buf g = CONTENTS;
        buf_jfr_long(&g, 0);
        put_string(&g, t->group);
        group = dictionary_intern(w, JFR_POOL_THREAD_GROUP, &g);
    }
    put_string(&b, t->os_name);
    buf_jfr_long(&b, t->os_id);
    put_string(&b, t->java_name);
    buf_jfr_long(&b, t->java_id);
    buf_jfr_long(&b, group);
    buf_u8(&b, t->is_virtual);
    if (at_once)
        append_thread(w, id, &b);
    return define_entry(w, JFR_POOL_THREAD, id, &b, stays);
}

uint64_t jfr_define_class(struct jfr_writer *w, const struct jfr_class *c)
{
    pthread_mutex_lock(&w->dict);
    uint64_t id = intern_class(w, c);
    pthread_mutex_unlock(&w->dict);
    return id;
}

/* Requires the dict lock. Returns NULL when out of memory, or if the pool has other entries. */
static struct pool_constant *name_entry(struct jfr_writer *w, uint32_t pool, const char *name)
{
    bool is = name && pool < w->types.len && !w->types.data[pool]->entries.keyed.len;
    struct buf b = CONTENTS;
    if (!is)
        return NULL;
    put_string(&b, name);
    return intern_entry(w, pool, &b);
}

uint64_t jfr_define_name(struct jfr_writer *w, uint32_t pool, const char *name)
{
    pthread_mutex_lock(&w->dict);
    const struct pool_constant *c = name_entry(w, pool, name);
    uint64_t id = c ? c->id : 0;
    pthread_mutex_unlock(&w->dict);
    return id;
}

uint64_t jfr_define_string(struct jfr_writer *w, const char *s)
{
    pthread_mutex_lock(&w->dict);
    struct pool_constant *c = name_entry(w, JFR_POOL_STRING, s);
    if (c)
        c->stays = true;
    uint64_t id = c ? c->id : 0;
    pthread_mutex_unlock(&w->dict);
    return id;
}

/* Requires the dict lock. */
static void keep_entry(struct jfr_writer *w, uint32_t pool, uint64_t id)
{
    struct pool_constant *c = pool_get(&w->types.data[pool]->entries, id);
    if (c)
        c->stays = true;
}

/*
 * Returns the symbol of a class's name, which follows that of its loader; 0: there is no such
 * class.
 */
static uint64_t name_of_class(const struct jfr_writer *w, uint64_t class)
{
    const struct pool_constant *c = pool_get(&w->types.data[JFR_POOL_CLASS]->entries, class);
    struct cursor at = cursor_of(c ? c->bytes : NULL, c ? c->len : 0);
    cursor_jfr_long(&at);
    uint64_t symbol = cursor_jfr_long(&at);
    return at.failed ? 0 : symbol;
}

void jfr_class_stays(struct jfr_writer *w, uint64_t class)
{
    pthread_mutex_lock(&w->dict);
    keep_entry(w, JFR_POOL_CLASS, class);
    keep_entry(w, JFR_POOL_SYMBOL, name_of_class(w, class));
    pthread_mutex_unlock(&w->dict);
}

bool jfr_class_name(struct jfr_writer *w, uint64_t class, char *to, size_t size)
{
    pthread_mutex_lock(&w->dict);
    const struct pool_constant *c =
        pool_get(&w->types.data[JFR_POOL_SYMBOL]->entries, name_of_class(w, class));
    struct cursor at = cursor_of(c ? c->bytes : NULL, c ? c->len : 0);
    size_t len = cursor_u8(&at) == 3 ? cursor_jfr_long(&at) : 0;
    bool is = !at.failed && len <= cursor_left(&at) && size > 0;
    if (is)
        snprintf(to, size, "%.*s", (int)len, (const char *)at.at);
    pthread_mutex_unlock(&w->dict);
    return is;
}

int dictionary_thread(struct jfr_writer *w, uint64_t id, const struct jfr_thread *t, bool stays_so)
{
    pthread_mutex_lock(&w->dict);
    int ret = define_thread(w, id, t, stays_so, false);
    pthread_mutex_unlock(&w->dict);
    return ret;
}

int jfr_define_thread(struct jfr_writer *w, uint64_t id, const struct jfr_thread *t)
{
    pthread_mutex_lock(&w->dict);
    /* There may be millions of virtual threads, whose names say little. */
    int ret = define_thread(w, id, t, true, !t->is_virtual);
    pthread_mutex_unlock(&w->dict);
    return ret;
}

void jfr_forget_thread(struct jfr_writer *w, uint64_t id)
{
    pthread_mutex_lock(&w->dict);
    struct pool_constant *c = pool_get(&w->types.data[JFR_POOL_THREAD]->entries, id);
    if (c) {
        c->stays = false;
        c->used = chunk_now(w);
    }
    pthread_mutex_unlock(&w->dict);
}

void dictionary_size(struct jfr_writer *w, uint64_t *ret_entries, uint64_t *ret_bytes)
{
    uint64_t method, info;
    *ret_entries = *ret_bytes = 0;
    pthread_mutex_lock(&w->dict);
    for (size_t i = 0; i < w->types.len; i++) {
        const struct pool *p = &w->types.data[i]->entries;
        *ret_entries += p->keyed.len + pool_entries(p);
        *ret_bytes += p->bytes;
    }
    for (size_t i = 0; map_next(&w->methods, &i, &method, &info);) {
        const struct method_info *m = (const struct method_info *)(uintptr_t)info;
        *ret_bytes += sizeof(*m) + m->n_lines * sizeof(m->lines[0]);
    }
    pthread_mutex_unlock(&w->dict);
}

/* Requires the dict lock. */
static void forget_methods(struct jfr_writer *w, uint32_t before)
{
    VEC(uint64_t) gone = {0};
    uint64_t method, info;
    for (size_t i = 0; map_next(&w->methods, &i, &method, &info);)
        if (((struct method_info *)(uintptr_t)info)->used < before && vec_push(&gone, method))
            break; /* out of memory; the next call drops them */
    for (size_t i = 0; i < gone.len; i++) {
        free((void *)(uintptr_t)*map_get(&w->methods, gone.data[i]));
        map_remove(&w->methods, gone.data[i]);
    }
    vec_release(&gone);
}

void dictionary_forget(struct jfr_writer *w, uint32_t before)
{
    pthread_mutex_lock(&w->dict);
    /* A chunk that has a method also has the method's constants, so these exist for as long. */
    if (w->ring.head)
        forget_methods(w, before);
    for (size_t i = 0; i < w->types.len; i++)
        if (w->ring.head || i == JFR_POOL_THREAD)
            pool_drop(&w->types.data[i]->entries, before);
    pthread_mutex_unlock(&w->dict);
}

int dictionary_add_type_constants(struct jfr_writer *w)
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
        {JFR_POOL_FRAME_TYPE, JFR_FRAME_JAVA, "Java"},
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
        int ret = define_entry(w, rows[i].pool, rows[i].id, &b, true);
        if (ret)
            return ret;
    }
    return 0;
}
