/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes HPROF's binary records as a stream (HPROF Agent, "Binary Dump Format"). Nothing seeks, so
 * the sink may be a socket. After the first failure (out of memory, or the sink's) all later calls
 * do nothing; hprof_error() returns it. Must not be used by two threads at once.
 *
 * The caller chooses the ids. Totals that do not fit into a record's field are written as its
 * largest value and counted in `saturated`.
 */
#pragma once

#include "base/buf.h"
#include "hprof/records.h"
#include "hprof/sink.h"

struct hprof_writer {
    struct hprof_sink sink;
    struct buf out;  /* complete records not yet passed to the sink */
    uint64_t offset; /* the number of bytes passed to the sink or in `out` */
    /*
     * TIME of the following records, set by the caller: microseconds since the header, written
     * modulo 2^32.
     */
    uint64_t time_us;
    unsigned id_size;   /* 4 or 8 */
    unsigned saturated; /* the number of values that did not fit */
    int error;
};

/*
 * Prepares a writer and writes the header. magic is one of HPROF_MAGIC_*; records' times count from
 * time_ms, milliseconds since 1970. Returns 0, -EINVAL (id_size) or the result of the first write.
 */
int hprof_writer_init(struct hprof_writer *w, struct hprof_sink sink, const char *magic,
                      unsigned id_size, uint64_t time_ms);
/* Passes what is buffered to the sink. Returns 0 or the first failure. */
int hprof_flush(struct hprof_writer *w);
/* Discards what was not flushed. A zeroed writer is allowed. */
void hprof_writer_release(struct hprof_writer *w);

static inline int hprof_error(const struct hprof_writer *w)
{
    return w->error;
}

void hprof_utf8(struct hprof_writer *w, uint64_t id, const char *s, size_t len);
void hprof_load_class(struct hprof_writer *w, uint32_t serial, uint64_t class_id, uint32_t trace,
                      uint64_t name);
void hprof_unload_class(struct hprof_writer *w, uint32_t serial);
/* Writes a STACK FRAME. line: a positive line number or HPROF_LINE_*. */
void hprof_frame(struct hprof_writer *w, uint64_t id, uint64_t method, uint64_t signature,
                 uint64_t source, uint32_t class_serial, int32_t line);
void hprof_trace(struct hprof_writer *w, uint32_t serial, uint32_t thread, const uint64_t *frames,
                 uint32_t n);
void hprof_start_thread(struct hprof_writer *w, uint32_t serial, uint64_t object, uint32_t trace,
                        uint64_t name, uint64_t group, uint64_t parent_group);
void hprof_end_thread(struct hprof_writer *w, uint32_t serial);

struct hprof_heap_totals {
    uint64_t live_bytes, live_objects, alloc_bytes, alloc_objects;
};

struct hprof_site {
    uint8_t array; /* 0, or the basic type of the elements */
    uint32_t class_serial, trace;
    uint64_t live_bytes, live_objects, alloc_bytes, alloc_objects;
};

void hprof_heap_summary(struct hprof_writer *w, const struct hprof_heap_totals *totals);
/* flags: HPROF_SITES_*. cutoff: as given by the command or option. */
void hprof_alloc_sites(struct hprof_writer *w, uint16_t flags, float cutoff,
                       const struct hprof_heap_totals *totals, const struct hprof_site *sites,
                       uint32_t n);

struct hprof_sample {
    uint64_t count;
    uint32_t trace;
};

void hprof_cpu_samples(struct hprof_writer *w, uint64_t total, const struct hprof_sample *samples,
                       uint32_t n);
/* flags: HPROF_CONTROL_... */
void hprof_control_settings(struct hprof_writer *w, uint16_t flags, uint16_t depth);

/*
 * Begins a segment of a heap dump, which consists of segments and their end. No other record may
 * come between. The caller then passes len bytes of whole sub-records in parts, which go directly
 * to the sink.
 */
void hprof_segment(struct hprof_writer *w, uint64_t len);
void hprof_segment_bytes(struct hprof_writer *w, const void *bytes, size_t n);
void hprof_dump_end(struct hprof_writer *w);
