/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/writer.h"

#include <errno.h>
#include <string.h>

enum {
    OUT_LIMIT = 64 << 10, /* records are passed to the sink in pieces of about this size */
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
    *w = (struct hprof_writer){.sink = sink, .id_size = id_size, .out = BUF(SIZE_MAX / 2)};
    buf_bytes(&w->out, magic, strlen(magic) + 1);
    buf_be32(&w->out, id_size);
    buf_be64(&w->out, time_ms);
    w->offset = w->out.len;
    return hprof_flush(w);
}

void hprof_writer_release(struct hprof_writer *w)
{
    buf_release(&w->out);
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

void hprof_segment(struct hprof_writer *w, uint64_t len)
{
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
    if (record(w, HPROF_HEAP_DUMP_END, 0))
        done(w);
}
