/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/writer.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum {
    OUT_LIMIT = 64 << 10,    /* records are passed to the sink in pieces of about this size */
    SEGMENT_LIMIT = 1 << 20, /* a segment is written before it would grow beyond this size */
    CHUNK_LIMIT = 64 << 10,  /* the most that hprof_sub_add provides at once */
};

static void fail(struct hprof_writer *w, int error)
{
    if (!w->error)
        w->error = error;
}

int hprof_flush(struct hprof_writer *w)
{
    if (!w->error && buf_error(&w->out))
        fail(w, buf_error(&w->out));
    if (!w->error && w->out.len) {
        int r = w->sink.write(w->sink.ctx, w->out.data, w->out.len);
        if (r < 0)
            fail(w, r);
    }
    buf_clear(&w->out);
    return w->error;
}

static void done(struct hprof_writer *w)
{
    if (w->out.len >= OUT_LIMIT || buf_error(&w->out))
        hprof_flush(w);
}

static void put_id(struct hprof_writer *w, struct buf *b, uint64_t id)
{
    if (w->id_size == 8)
        buf_be64(b, id);
    else
        buf_be32(b, (uint32_t)id);
}

static uint32_t u4(struct hprof_writer *w, uint64_t v)
{
    if (v <= UINT32_MAX)
        return (uint32_t)v;
    w->saturated++;
    return UINT32_MAX;
}

/* Starts a record with a body of len bytes. Returns false after a failure. */
static bool record(struct hprof_writer *w, enum hprof_tag tag, uint64_t len)
{
    if (w->error)
        return false;
    if (len > UINT32_MAX) {
        fail(w, -EFBIG);
        return false;
    }
    w->offset += HPROF_RECORD_HEADER + len;
    buf_u8(&w->out, (uint8_t)tag);
    buf_be32(&w->out, (uint32_t)w->time_us);
    buf_be32(&w->out, (uint32_t)len);
    return true;
}

int hprof_writer_init(struct hprof_writer *w, struct hprof_sink sink, const char *magic,
                      unsigned id_size, uint64_t time_ms)
{
    if (id_size != 4 && id_size != 8)
        return -EINVAL;
    *w = (struct hprof_writer){.sink = sink,
                               .id_size = id_size,
                               .out = BUF(SIZE_MAX / 2),
                               .segment = BUF(4 * SEGMENT_LIMIT)};
    buf_bytes(&w->out, magic, strlen(magic) + 1);
    buf_be32(&w->out, id_size);
    buf_be64(&w->out, time_ms);
    w->offset = w->out.len;
    return hprof_flush(w);
}

void hprof_writer_release(struct hprof_writer *w)
{
    buf_release(&w->out);
    buf_release(&w->segment);
}

void hprof_utf8(struct hprof_writer *w, uint64_t id, const char *s, size_t len)
{
    if (!record(w, HPROF_UTF8, w->id_size + (uint64_t)len))
        return;
    put_id(w, &w->out, id);
    buf_bytes(&w->out, s, len);
    done(w);
}

void hprof_load_class(struct hprof_writer *w, uint32_t serial, uint64_t class_id, uint32_t trace,
                      uint64_t name)
{
    if (!record(w, HPROF_LOAD_CLASS, 8 + 2 * w->id_size))
        return;
    buf_be32(&w->out, serial);
    put_id(w, &w->out, class_id);
    buf_be32(&w->out, trace);
    put_id(w, &w->out, name);
    done(w);
}

static void record_u4(struct hprof_writer *w, enum hprof_tag tag, uint32_t v)
{
    if (!record(w, tag, 4))
        return;
    buf_be32(&w->out, v);
    done(w);
}

void hprof_unload_class(struct hprof_writer *w, uint32_t serial)
{
    record_u4(w, HPROF_UNLOAD_CLASS, serial);
}

void hprof_end_thread(struct hprof_writer *w, uint32_t serial)
{
    record_u4(w, HPROF_END_THREAD, serial);
}

void hprof_frame(struct hprof_writer *w, uint64_t id, uint64_t method, uint64_t signature,
                 uint64_t source, uint32_t class_serial, int32_t line)
{
    if (!record(w, HPROF_FRAME, 4 * w->id_size + 8))
        return;
    put_id(w, &w->out, id);
    put_id(w, &w->out, method);
    put_id(w, &w->out, signature);
    put_id(w, &w->out, source);
    buf_be32(&w->out, class_serial);
    buf_be32(&w->out, (uint32_t)line);
    done(w);
}

void hprof_trace(struct hprof_writer *w, uint32_t serial, uint32_t thread, const uint64_t *frames,
                 uint32_t n)
{
    if (!record(w, HPROF_TRACE, 12 + (uint64_t)n * w->id_size))
        return;
    buf_be32(&w->out, serial);
    buf_be32(&w->out, thread);
    buf_be32(&w->out, n);
    for (uint32_t i = 0; i < n; i++)
        put_id(w, &w->out, frames[i]);
    done(w);
}

void hprof_start_thread(struct hprof_writer *w, uint32_t serial, uint64_t object, uint32_t trace,
                        uint64_t name, uint64_t group, uint64_t parent_group)
{
    if (!record(w, HPROF_START_THREAD, 8 + 4 * w->id_size))
        return;
    buf_be32(&w->out, serial);
    put_id(w, &w->out, object);
    buf_be32(&w->out, trace);
    put_id(w, &w->out, name);
    put_id(w, &w->out, group);
    put_id(w, &w->out, parent_group);
    done(w);
}

static void put_totals(struct hprof_writer *w, const struct hprof_heap_totals *t)
{
    buf_be32(&w->out, u4(w, t->live_bytes));
    buf_be32(&w->out, u4(w, t->live_objects));
    buf_be64(&w->out, t->alloc_bytes);
    buf_be64(&w->out, t->alloc_objects);
}

void hprof_heap_summary(struct hprof_writer *w, const struct hprof_heap_totals *totals)
{
    if (!record(w, HPROF_HEAP_SUMMARY, 24))
        return;
    put_totals(w, totals);
    done(w);
}

void hprof_alloc_sites(struct hprof_writer *w, uint16_t flags, float cutoff,
                       const struct hprof_heap_totals *totals, const struct hprof_site *sites,
                       uint32_t n)
{
    if (!record(w, HPROF_ALLOC_SITES, 34 + (uint64_t)n * 25))
        return;
    uint32_t bits;
    memcpy(&bits, &cutoff, sizeof(bits));
    buf_be16(&w->out, flags);
    buf_be32(&w->out, bits);
    put_totals(w, totals);
    buf_be32(&w->out, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct hprof_site *s = &sites[i];
        buf_u8(&w->out, s->array);
        buf_be32(&w->out, s->class_serial);
        buf_be32(&w->out, s->trace);
        buf_be32(&w->out, u4(w, s->live_bytes));
        buf_be32(&w->out, u4(w, s->live_objects));
        buf_be32(&w->out, u4(w, s->alloc_bytes));
        buf_be32(&w->out, u4(w, s->alloc_objects));
    }
    done(w);
}

void hprof_cpu_samples(struct hprof_writer *w, uint64_t total, const struct hprof_sample *samples,
                       uint32_t n)
{
    if (!record(w, HPROF_CPU_SAMPLES, 8 + (uint64_t)n * 8))
        return;
    buf_be32(&w->out, u4(w, total));
    buf_be32(&w->out, n);
    for (uint32_t i = 0; i < n; i++) {
        buf_be32(&w->out, u4(w, samples[i].count));
        buf_be32(&w->out, samples[i].trace);
    }
    done(w);
}

void hprof_control_settings(struct hprof_writer *w, uint16_t flags, uint16_t depth)
{
    if (!record(w, HPROF_CONTROL_SETTINGS, 6))
        return;
    buf_be32(&w->out, flags);
    buf_be16(&w->out, depth);
    done(w);
}

void hprof_dump_begin(struct hprof_writer *w)
{
    buf_clear(&w->segment);
    w->through = 0;
}

static void write_segment(struct hprof_writer *w)
{
    if (buf_error(&w->segment))
        fail(w, buf_error(&w->segment));
    if (w->segment.len && record(w, HPROF_HEAP_DUMP_SEGMENT, w->segment.len) &&
        hprof_flush(w) == 0) {
        int r = w->sink.write(w->sink.ctx, w->segment.data, w->segment.len);
        if (r < 0)
            fail(w, r);
    }
    buf_clear(&w->segment);
}

void hprof_segment(struct hprof_writer *w, uint64_t len)
{
    write_segment(w);
    if (record(w, HPROF_HEAP_DUMP_SEGMENT, len))
        hprof_flush(w);
}

void hprof_segment_bytes(struct hprof_writer *w, const void *bytes, size_t n)
{
    int r = w->error ? 0 : w->sink.write(w->sink.ctx, bytes, n);
    if (r < 0)
        fail(w, r);
}

void hprof_dump_end(struct hprof_writer *w)
{
    write_segment(w);
    if (record(w, HPROF_HEAP_DUMP_END, 0))
        done(w);
}

void hprof_sub(struct hprof_writer *w, uint64_t n)
{
    if (w->through) {
        fail(w, -EPROTO);
        return;
    }
    if (w->segment.len + n <= SEGMENT_LIMIT)
        return;
    write_segment(w);
    if (n > SEGMENT_LIMIT && record(w, HPROF_HEAP_DUMP_SEGMENT, n))
        w->through = n;
}

uint8_t *hprof_sub_add(struct hprof_writer *w, size_t n)
{
    if (w->error || n > CHUNK_LIMIT)
        return NULL;
    if (!w->through)
        return buf_add(&w->segment, n);
    if (n > w->through) {
        fail(w, -EPROTO);
        return NULL;
    }
    w->through -= n;
    if (w->out.len >= OUT_LIMIT && hprof_flush(w) < 0)
        return NULL;
    return buf_add(&w->out, n);
}

void hprof_sub_bytes(struct hprof_writer *w, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    while (n && !w->error) {
        size_t part = n < CHUNK_LIMIT ? n : CHUNK_LIMIT;
        uint8_t *to = hprof_sub_add(w, part);
        if (!to) {
            fail(w, -ENOMEM);
            return;
        }
        memcpy(to, from, part);
        from += part;
        n -= part;
    }
}

void hprof_sub_u1(struct hprof_writer *w, uint8_t v)
{
    hprof_sub_bytes(w, &v, sizeof(v));
}

void hprof_sub_u2(struct hprof_writer *w, uint16_t v)
{
    v = htobe16(v);
    hprof_sub_bytes(w, &v, sizeof(v));
}

void hprof_sub_u4(struct hprof_writer *w, uint32_t v)
{
    v = htobe32(v);
    hprof_sub_bytes(w, &v, sizeof(v));
}

static void sub_u8(struct hprof_writer *w, uint64_t v)
{
    v = htobe64(v);
    hprof_sub_bytes(w, &v, sizeof(v));
}

void hprof_sub_id(struct hprof_writer *w, uint64_t id)
{
    if (w->id_size == 8)
        sub_u8(w, id);
    else
        hprof_sub_u4(w, (uint32_t)id);
}

void hprof_root(struct hprof_writer *w, enum hprof_sub_tag kind, uint64_t object, uint64_t a,
                uint32_t b)
{
    /* What follows the object's id in each kind of root: an id, a u4, or two. */
    static const struct {
        uint8_t ids, words;
    } shape[256] = {
        [HPROF_ROOT_JNI_GLOBAL] = {1, 0},   [HPROF_ROOT_JNI_LOCAL] = {0, 2},
        [HPROF_ROOT_JAVA_FRAME] = {0, 2},   [HPROF_ROOT_NATIVE_STACK] = {0, 1},
        [HPROF_ROOT_THREAD_BLOCK] = {0, 1}, [HPROF_ROOT_THREAD_OBJECT] = {0, 2},
    };

    hprof_sub(w, 1 + (1 + shape[kind].ids) * w->id_size + 4 * shape[kind].words);
    hprof_sub_u1(w, (uint8_t)kind);
    hprof_sub_id(w, object);
    if (shape[kind].ids)
        hprof_sub_id(w, a);
    if (shape[kind].words)
        hprof_sub_u4(w, (uint32_t)a);
    if (shape[kind].words > 1)
        hprof_sub_u4(w, b);
}

static void sub_value(struct hprof_writer *w, const struct hprof_value *v)
{
    hprof_sub_u1(w, v->type);
    switch (hprof_type_size(v->type, w->id_size)) {
    case 1:
        hprof_sub_u1(w, (uint8_t)v->value);
        break;
    case 2:
        hprof_sub_u2(w, (uint16_t)v->value);
        break;
    case 4:
        hprof_sub_u4(w, (uint32_t)v->value);
        break;
    default:
        sub_u8(w, v->value);
    }
}

void hprof_class_dump(struct hprof_writer *w, const struct hprof_class *c)
{
    uint64_t n = 1 + 7 * w->id_size + 8 + 6 + (uint64_t)c->n_fields * (w->id_size + 1);
    for (unsigned i = 0; i < c->n_constants; i++)
        n += 3 + hprof_type_size(c->constants[i].type, w->id_size);
    for (unsigned i = 0; i < c->n_statics; i++)
        n += w->id_size + 1 + hprof_type_size(c->statics[i].type, w->id_size);
    hprof_sub(w, n);
    hprof_sub_u1(w, HPROF_CLASS_DUMP);
    hprof_sub_id(w, c->id);
    hprof_sub_u4(w, c->trace);
    const uint64_t ids[] = {c->super, c->loader, c->signers, c->domain, 0, 0};
    for (unsigned i = 0; i < ARRAY_SIZE(ids); i++)
        hprof_sub_id(w, ids[i]);
    hprof_sub_u4(w, c->instance_size);
    hprof_sub_u2(w, c->n_constants);
    for (unsigned i = 0; i < c->n_constants; i++) {
        hprof_sub_u2(w, (uint16_t)c->constants[i].name);
        sub_value(w, &c->constants[i]);
    }
    hprof_sub_u2(w, c->n_statics);
    for (unsigned i = 0; i < c->n_statics; i++) {
        hprof_sub_id(w, c->statics[i].name);
        sub_value(w, &c->statics[i]);
    }
    hprof_sub_u2(w, c->n_fields);
    for (unsigned i = 0; i < c->n_fields; i++) {
        hprof_sub_id(w, c->fields[i].name);
        hprof_sub_u1(w, c->fields[i].type);
    }
}

/* Writes the common beginning of instances and arrays: tag, id, trace. */
static void object_head(struct hprof_writer *w, uint64_t size, enum hprof_sub_tag tag, uint64_t id,
                        uint32_t trace)
{
    hprof_sub(w, 5 + w->id_size + size);
    hprof_sub_u1(w, (uint8_t)tag);
    hprof_sub_id(w, id);
    hprof_sub_u4(w, trace);
}

void hprof_instance_dump(struct hprof_writer *w, uint64_t id, uint32_t trace, uint64_t class_id,
                         uint32_t len)
{
    object_head(w, w->id_size + 4 + (uint64_t)len, HPROF_INSTANCE_DUMP, id, trace);
    hprof_sub_id(w, class_id);
    hprof_sub_u4(w, len);
}

void hprof_object_array_dump(struct hprof_writer *w, uint64_t id, uint32_t trace, uint64_t class_id,
                             uint32_t n)
{
    object_head(w, 4 + w->id_size + (uint64_t)n * w->id_size, HPROF_OBJECT_ARRAY_DUMP, id, trace);
    hprof_sub_u4(w, n);
    hprof_sub_id(w, class_id);
}

void hprof_primitive_array_dump(struct hprof_writer *w, uint64_t id, uint32_t trace, uint8_t type,
                                uint32_t n)
{
    object_head(w, 5 + (uint64_t)n * hprof_type_size(type, w->id_size), HPROF_PRIMITIVE_ARRAY_DUMP,
                id, trace);
    hprof_sub_u4(w, n);
    hprof_sub_u1(w, type);
}
