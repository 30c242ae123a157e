/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what was published in a chunk and writes the constants it uses as checkpoint events. Runs
 * in the worker only.
 */
#include "base/buf.h"
#include "base/cursor.h"
#include "jfr/internal.h"

#include <stdio.h>

/* A checkpoint is ended at this size, so that it fits into a block. */
#define CHECKPOINT_ROOM 7000u

/* ---- finding the constants that are needed ---- */

static uint32_t *emitted_mark(struct jfr_writer *w, uint32_t type, uint64_t id)
{
    if (type == JFR_POOL_STACK_TRACE) {
        struct trace *trace = trace_of(&w->traces, id);
        return trace ? &trace->emitted : NULL;
    }
    struct pool_constant *c = pool_get(&w->types.data[type]->entries, id);
    return c ? &c->emitted : NULL;
}

/* Queues a constant that the chunk does not have yet. Requires the dict lock. */
static void need(struct jfr_writer *w, uint32_t chunk, uint32_t type, uint64_t id)
{
    if (!id)
        return;
    uint32_t *emitted = emitted_mark(w, type, id);
    if (emitted && *emitted == chunk)
        return;
    if (!emitted && type != JFR_POOL_THREAD) {
        atomic_fetch_add(&w->unresolved, 1);
        return;
    }
    if (vec_push(&w->pending, ((struct pending){type, !emitted, id}))) {
        atomic_fetch_add(&w->lost_constants, 1);
        return;
    }
    if (emitted)
        *emitted = chunk;
}

/* Finds the constants that a struct's bytes refer to. Requires the dict lock. */
static void find_references(struct jfr_writer *w, uint32_t chunk, uint32_t type, struct cursor *c)
{
    const struct type_info *info = w->types.data[type];
    for (size_t i = 0; i < info->ops.len && !c->failed; i++) {
        const struct op *op = &info->ops.data[i];
        uint64_t count = op->array ? cursor_jfr_long(c) : 1;
        for (; count && !c->failed; count--) {
            switch (op->kind) {
            case OP_LONG:
                cursor_jfr_long(c);
                break;
            case OP_BYTE:
                cursor_skip(c, 1);
                break;
            case OP_FIXED4:
                cursor_skip(c, 4);
                break;
            case OP_FIXED8:
                cursor_skip(c, 8);
                break;
            case OP_STRING: {
                uint8_t encoding = cursor_u8(c);
                if (encoding == 2)
                    need(w, chunk, JFR_POOL_STRING, cursor_jfr_long(c));
                else if (encoding > 2)
                    cursor_skip(c, cursor_jfr_long(c));
                break;
            }
            case OP_REF:
                need(w, chunk, op->type, cursor_jfr_long(c));
                break;
            case OP_STRUCT:
                find_references(w, chunk, op->type, c);
                break;
            }
        }
    }
}

/* Reads the events of a span of blocks, from where the last call stopped. */
static void scan_span(struct jfr_writer *w, const struct chunk *c, uint32_t b, uint32_t span)
{
    struct region *r = c->region;
    const uint8_t *start = r->blocks + (uint64_t)b * JFR_BLOCK;
    const uint8_t *end = start + (uint64_t)(span & ~SPAN_RETIRED) * JFR_BLOCK;
    const uint8_t *at = start + r->scanned[b];
    pthread_mutex_lock(&w->dict);
    while (end - at >= (ptrdiff_t)JFR_MIN_PAD) {
        uint16_t code = jfr_load_code(at);
        uint32_t size = jfr_load_size(at);
        if (code == CODE_PAD || size < JFR_EVENT_HEAD || size > (size_t)(end - at))
            break;
        uint32_t type = jfr_type_of_code(code) - JFR_TYPE_BASE;
        if (type < w->types.len) {
            struct cursor body = cursor_of(at + JFR_EVENT_HEAD, size - JFR_EVENT_HEAD);
            while (code & CODE_WIDER && cursor_u8(&body) & 0x80)
                ;
            find_references(w, c->number, type, &body);
        }
        at += size;
    }
    pthread_mutex_unlock(&w->dict);
    r->scanned[b] = (uint32_t)((span & SPAN_RETIRED ? end : at) - start);
}

static bool scan(struct jfr_writer *w, const struct chunk *c)
{
    struct region *r = c->region;
    uint32_t next = (uint32_t)atomic_load(&r->bump);
    uint32_t b = r->first_open;
    while (b < next) {
        uint32_t span = atomic_load_explicit(&r->span[b], memory_order_acquire);
        if (!span)
            break;
        uint32_t n = span & ~SPAN_RETIRED;
        if (r->scanned[b] < n * JFR_BLOCK)
            scan_span(w, c, b, span);
        if (b == r->first_open && r->scanned[b] >= n * JFR_BLOCK)
            r->first_open += n;
        b += n;
    }
    return b >= next;
}

/* ---- checkpoints ---- */

struct checkpoint {
    struct chunk *chunk;
    struct buf out;
    uint32_t sections, type, count;
    size_t count_at; /* position of the open section's count, which takes four bytes */
};

#define CHECKPOINT(c) ((struct checkpoint){.chunk = (c), .out = BUF(UINT32_C(1) << 27)})

static void close_section(struct checkpoint *p)
{
    uint32_t word = jfr_size_word(p->count);
    if (p->count && !buf_error(&p->out))
        memcpy(p->out.data + p->count_at, &word, sizeof(word));
    p->count = 0;
}

/*
 * Returns whether an event leaves enough of the reserve for the events of losses, which are written
 * last.
 */
static bool leaves_losses(struct region *r, size_t room)
{
    uint32_t next = (uint32_t)atomic_load(&r->bump);
    return next + room / JFR_BLOCK + 1 + r->reserve / JFR_LOSSES_SHARE <= r->ready;
}

/* Begins an event of the worker, and makes room for it if the chunk may still grow. */
static bool begin_own(struct jfr_writer *w, struct chunk *c, size_t room, struct jfr_event *ret)
{
    bool newest = c == &w->chunk && c->region == atomic_load(&w->region);
    if ((!newest || leaves_losses(c->region, room)) &&
        jfr_slot_begin(w, &c->own, c->region, true, room, ret))
        return true;
    return newest && !region_grow(w, (uint32_t)(room / JFR_BLOCK) + 2) &&
           jfr_slot_begin(w, &c->own, c->region, true, room, ret);
}

static void checkpoint_write(struct jfr_writer *w, struct checkpoint *p)
{
    struct chunk *c = p->chunk;
    struct jfr_event e;
    close_section(p);
    if (!p->sections)
        return;
    if (buf_error(&p->out) || !begin_own(w, c, p->out.len + 40, &e)) {
        atomic_fetch_add(&w->lost_constants, p->sections);
    } else {
        uint64_t at = jfr_offset_in_chunk(c, e.start);
        jfr_put_time(&e, now_ns());
        jfr_put_long(&e, 0);
        jfr_put_long(&e, c->last_checkpoint ? (int64_t)(c->last_checkpoint - at) : 0);
        jfr_put_byte(&e, 0);
        jfr_put_int(&e, (int32_t)p->sections);
        jfr_put_bytes_(&e, p->out.data, p->out.len);
        jfr_slot_commit(&e, CODE_CHECKPOINT);
        w->constant_bytes += p->out.len;
        c->last_checkpoint = at;
        jfr_header_store(c, HEAD_CONSTANTS, at);
    }
    p->sections = 0;
    buf_clear(&p->out);
}

static void begin_entry(struct jfr_writer *w, struct checkpoint *p, uint32_t type, uint64_t id)
{
    if (p->out.len > CHECKPOINT_ROOM)
        checkpoint_write(w, p);
    if (!p->count || p->type != type) {
        close_section(p);
        buf_jfr_long(&p->out, type + JFR_TYPE_BASE);
        p->count_at = p->out.len;
        buf_add(&p->out, 4);
        p->type = type;
        p->sections++;
    }
    p->count++;
    buf_jfr_long(&p->out, id);
}

/* ---- stacks and methods ---- */

static int32_t line_of(const struct method_info *m, int32_t bci)
{
    if (bci < 0 || !m->n_lines)
        return -1;
    size_t low = 0, high = m->n_lines;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (m->lines[middle].bci <= (uint32_t)bci)
            low = middle;
        else
            high = middle;
    }
    return (int32_t)m->lines[low].line;
}

static struct method_info *method_of(const struct jfr_writer *w, uint64_t method)
{
    const uint64_t *known = map_get(&w->methods, method);
    return known ? (struct method_info *)(uintptr_t)*known : NULL;
}

/*
 * Resolves a method that is not known. Returns false when out of memory. No lock except `work` may
 * be held.
 */
static bool resolve_method(struct jfr_writer *w, uint64_t method, uint32_t frame_type)
{
    if (method_of(w, method))
        return true;
    struct jfr_method m = {0};
    char name[40];
    struct jfr_resolver *r = &w->options.resolver;
    if (!r->method || r->method(r->context, method, frame_type, &m)) {
        atomic_fetch_add(&w->unresolved, 1);
        snprintf(name, sizeof(name), "unresolved_0x%llx", (unsigned long long)method);
        m = (struct jfr_method){.name = name};
    }
    struct method_info *info = malloc(sizeof(*info) + m.n_lines * sizeof(*m.lines));
    if (!info)
        return false;
    pthread_mutex_lock(&w->dict);
    *info = (struct method_info){.id = dictionary_intern_method(w, &m), .n_lines = m.n_lines};
    if (m.n_lines)
        memcpy(info->lines, m.lines, m.n_lines * sizeof(*m.lines));
    struct buf key = BUF(64);
    buf_jfr_long(&key, info->id);
    buf_jfr_long(&key, method);
    info->key = dictionary_intern(w, JFR_POOL_METHOD_KEY, &key);
    bool known = info->id && info->key && map_put(&w->methods, method, (uintptr_t)info) == 0;
    pthread_mutex_unlock(&w->dict);
    if (!known)
        free(info);
    return known;
}

static void emit_trace(struct jfr_writer *w, struct checkpoint *p, uint64_t id)
{
    const struct trace *trace = trace_of(&w->traces, id);
    for (uint32_t i = 0; i < trace->n; i++)
        if (!resolve_method(w, trace->frames[i].method, trace->frames[i].type))
            atomic_fetch_add(&w->lost_constants, 1);
    begin_entry(w, p, JFR_POOL_STACK_TRACE, id);
    buf_u8(&p->out, (uint8_t)trace->truncated);
    buf_jfr_long(&p->out, trace->n);
    pthread_mutex_lock(&w->dict);
    for (uint32_t i = 0; i < trace->n; i++) {
        const struct jfr_frame *f = &trace->frames[i];
        static struct method_info none;
        struct method_info *known = method_of(w, f->method);
        struct method_info *m = known ? known : &none;
        if (known) {
            m->used = p->chunk->number;
            need(w, m->used, JFR_POOL_METHOD_KEY, m->key);
        }
        buf_jfr_long(&p->out, m->id);
        buf_jfr_long(&p->out, (uint32_t)line_of(m, f->bci));
        buf_jfr_long(&p->out, (uint32_t)f->bci);
        buf_jfr_long(&p->out, f->type);
    }
    pthread_mutex_unlock(&w->dict);
}

static void resolve_thread(struct jfr_writer *w, uint64_t id)
{
    struct jfr_thread t = {0};
    char name[40];
    struct jfr_resolver *r = &w->options.resolver;
    if (!r->thread || r->thread(r->context, id, &t)) {
        atomic_fetch_add(&w->unresolved, 1);
        snprintf(name, sizeof(name), "thread %llu", (unsigned long long)id);
        t = (struct jfr_thread){.os_name = name, .os_id = id};
    }
    if (dictionary_thread(w, id, &t, !w->ring.head))
        atomic_fetch_add(&w->lost_constants, 1);
}

static void emit_entry(struct jfr_writer *w, struct checkpoint *p, uint32_t type, uint64_t id)
{
    pthread_mutex_lock(&w->dict);
    struct pool_constant *constant = pool_get(&w->types.data[type]->entries, id);
    if (constant) {
        constant->emitted = p->chunk->number;
        begin_entry(w, p, type, id);
        buf_bytes(&p->out, constant->bytes, constant->len);
        struct cursor c = cursor_of(constant->bytes, constant->len);
        find_references(w, p->chunk->number, type, &c);
    }
    pthread_mutex_unlock(&w->dict);
}

static void emit_pending(struct jfr_writer *w, struct chunk *c)
{
    struct checkpoint p = CHECKPOINT(c);
    while (w->pending.len) {
        struct pending next = w->pending.data[--w->pending.len];
        if (next.type == JFR_POOL_STACK_TRACE) {
            emit_trace(w, &p, next.id);
            continue;
        }
        if (next.unknown) {
            pthread_mutex_lock(&w->dict);
            const uint32_t *emitted = emitted_mark(w, next.type, next.id);
            bool done = emitted && *emitted == c->number;
            pthread_mutex_unlock(&w->dict);
            if (done)
                continue;
            if (!emitted)
                resolve_thread(w, next.id);
        }
        emit_entry(w, &p, next.type, next.id);
    }
    checkpoint_write(w, &p);
    buf_release(&p.out);
}

bool constants_update(struct jfr_writer *w, struct chunk *c)
{
    bool complete = scan(w, c);
    emit_pending(w, c);
    return complete;
}

void constants_start(struct jfr_writer *w, struct chunk *c)
{
    static const uint32_t fixed[] = {JFR_POOL_FRAME_TYPE, JFR_POOL_THREAD_STATE};
    struct checkpoint p = CHECKPOINT(c);
    for (size_t k = 0; k < ARRAY_SIZE(fixed); k++) {
        uint64_t id, value;
        for (size_t i = 0; map_next(&w->types.data[fixed[k]]->entries.keyed, &i, &id, &value);)
            emit_entry(w, &p, fixed[k], id);
    }
    checkpoint_write(w, &p);
    buf_release(&p.out);
}
