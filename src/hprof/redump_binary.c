/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass of a binary dump. No sub-record changes its length. As many threads as there are
 * processors copy the pieces that the first pass has cut, change the copies in place, and write
 * them in order.
 */
#include "hprof/redump_private.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS_MAX = 8, LARGE = 4 << 20, PART = 64 << 10, ARRAY_HEAD = ARRAY_CLASS + ID };

struct emitter {
    const struct redump *redump;
    atomic_size_t next; /* the first piece that no thread has taken */
    pthread_mutex_t lock;
    pthread_cond_t turn;
    /* the number of pieces written; this and the following members are protected by `lock` */
    size_t written;
    int error;
};

/* ---- changes; `at` is in our own copy ---- */

static void put_ours(const struct redump *r, uint8_t *at)
{
    uint64_t id = redump_id_at(at), other = redump_object(r, id);
    if (unlikely(other != id))
        redump_put_id_at(at, other);
}

static void patch_object(const struct redump *r, uint8_t *at)
{
    uint32_t trace = redump_object_trace(r, at);
    put_ours(r, at + 1);
    redump_put_u4_at(at + OBJECT_TRACE, trace);
}

static void patch_root(struct redump *r, const uint8_t *from, size_t n)
{
    uint8_t *at = (uint8_t *)from;
    put_ours(r, at + 1);
    switch (*at) {
    case HPROF_ROOT_THREAD_OBJECT:
        redump_put_u4_at(at + ROOT_THREAD + 4, redump_trace(r, redump_u4_at(at + ROOT_THREAD + 4)));
        redump_put_u4_at(at + ROOT_THREAD, redump_thread(r, redump_u4_at(at + ROOT_THREAD)));
        break;
    case HPROF_ROOT_JNI_LOCAL:
    case HPROF_ROOT_JAVA_FRAME:
        redump_put_u4_at(at + ROOT_THREAD + 4,
                         redump_root_frame(r, redump_u4_at(at + ROOT_THREAD),
                                           redump_u4_at(at + ROOT_THREAD + 4)));
        redump_put_u4_at(at + ROOT_THREAD, redump_thread(r, redump_u4_at(at + ROOT_THREAD)));
        break;
    case HPROF_ROOT_NATIVE_STACK:
    case HPROF_ROOT_THREAD_BLOCK:
        redump_put_u4_at(at + ROOT_THREAD, redump_thread(r, redump_u4_at(at + ROOT_THREAD)));
        break;
    default:
        break;
    }
}

static void patch_class(struct redump *r, const uint8_t *from, size_t n)
{
    uint8_t *at = (uint8_t *)from;
    struct cursor b = cursor_of(at, n);
    patch_object(r, at);
    for (unsigned i = 0; i < 4; i++) /* super, loader, signers, domain */
        put_ours(r, at + INSTANCE_CLASS + (size_t)i * ID);
    cursor_skip(&b, CLASS_FIXED);
    redump_skip_typed(&b, 2);
    for (unsigned statics = cursor_be16(&b); statics && !b.failed; statics--) {
        cursor_skip(&b, ID);
        unsigned type = cursor_u8(&b);
        const uint8_t *value = cursor_take(&b, hprof_type_size(type, ID));
        if (value && type == HPROF_OBJECT)
            put_ours(r, (uint8_t *)value);
    }
}

static void patch_instance(struct redump *r, const uint8_t *from, size_t n)
{
    uint8_t *at = (uint8_t *)from;
    const struct class *c = redump_class_of(r, redump_id_at(at + INSTANCE_CLASS));
    patch_object(r, at);
    for (uint32_t i = 0; c && i < c->n_references; i++) {
        size_t o = INSTANCE_BYTES + (size_t)c->references[i].offset;
        if (o + ID <= n)
            put_ours(r, at + o);
    }
}

static void patch_object_array(struct redump *r, const uint8_t *from, size_t n)
{
    uint8_t *at = (uint8_t *)from;
    patch_object(r, at);
    for (size_t o = ARRAY_HEAD; o < n; o += ID)
        put_ours(r, at + o);
}

static void patch_primitive_array(struct redump *r, const uint8_t *from, size_t n)
{
    patch_object(r, (uint8_t *)from);
}

static const struct visitor patch = {patch_root, patch_class, patch_instance, patch_object_array,
                                     patch_primitive_array};

/* ---- pieces ---- */

/* Writes an array of any size in parts, once it is its turn. */
static void write_large(struct redump *r, const struct piece *p)
{
    struct hprof_writer *w = r->how->binary;
    uint8_t part[PART];
    size_t head = *p->at == HPROF_OBJECT_ARRAY_DUMP ? ARRAY_HEAD : ARRAY_TYPE + 1;
    memcpy(part, p->at, head);
    patch_object(r, part);
    hprof_segment(w, p->len);
    hprof_segment_bytes(w, part, head);
    if (*p->at != HPROF_OBJECT_ARRAY_DUMP) {
        hprof_segment_bytes(w, p->at + head, p->len - head);
        return;
    }
    for (size_t o = head, n; o < p->len && !hprof_error(w); o += n) {
        n = MIN(p->len - o, (size_t)PART);
        memcpy(part, p->at + o, n);
        for (size_t i = 0; i < n; i += ID)
            put_ours(r, part + i);
        hprof_segment_bytes(w, part, n);
    }
}

/* Waits for the turn of a piece; the lock is then held. Returns false after a failure. */
static bool await_turn(struct emitter *e, size_t piece)
{
    pthread_mutex_lock(&e->lock);
    while (e->written != piece && !e->error)
        pthread_cond_wait(&e->turn, &e->lock);
    return !e->error;
}

static bool is_large(const struct piece *p)
{
    return p->len > LARGE &&
           (*p->at == HPROF_OBJECT_ARRAY_DUMP || *p->at == HPROF_PRIMITIVE_ARRAY_DUMP);
}

static int emit_piece(struct emitter *e, struct redump *mine, size_t i, struct buf *copy)
{
    const struct piece *p = &mine->pieces.data[i];
    struct hprof_writer *w = mine->how->binary;
    buf_clear(copy);
    uint8_t *at = is_large(p) ? NULL : buf_add(copy, p->len);
    if (at) {
        memcpy(at, p->at, p->len);
        redump_visit_part(mine, cursor_of(at, p->len), &patch);
    }
    if (await_turn(e, i)) {
        if (is_large(p)) {
            write_large(mine, p);
        } else if (at) {
            hprof_segment(w, p->len);
            hprof_segment_bytes(w, at, p->len);
        }
        e->error = !at && !is_large(p) ? -ENOMEM : mine->error ? mine->error : hprof_error(w);
    }
    e->written++;
    int error = e->error;
    pthread_cond_broadcast(&e->turn);
    pthread_mutex_unlock(&e->lock);
    return error;
}

static void *emit_pieces(void *context)
{
    struct emitter *e = context;
    /* Each thread has a copy of the state for its cache of classes; the maps are only read. */
    struct redump *mine = malloc(sizeof(*mine));
    struct buf copy = BUF(SIZE_MAX / 2);
    int error = mine ? 0 : -ENOMEM;
    if (mine)
        *mine = *e->redump;
    while (!error) {
        size_t i = atomic_fetch_add(&e->next, 1);
        if (i >= mine->pieces.len)
            break;
        error = emit_piece(e, mine, i, &copy);
    }
    buf_release(&copy);
    free(mine);
    return NULL;
}

void redump_emit_binary(struct redump *r)
{
    struct emitter e = {
        .redump = r, .lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER};
    pthread_t threads[THREADS_MAX];
    size_t n = 0, processors = (size_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
    size_t more = MIN(MIN(processors, r->pieces.len), (size_t)THREADS_MAX) - (r->pieces.len > 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (n < more && pthread_create(&threads[n], NULL, emit_pieces, &e) == 0)
        n++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    emit_pieces(&e);
    while (n)
        pthread_join(threads[--n], NULL);
    redump_fail(r, e.error ? e.error : e.written < r->pieces.len ? -ENOMEM : 0);
}
