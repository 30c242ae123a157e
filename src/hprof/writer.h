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
    struct buf out;     /* complete records not yet passed to the sink */
    struct buf segment; /* the sub-records of the current heap dump segment */
    uint64_t through; /* the remaining bytes of a sub-record that is passed directly to the sink */
    uint64_t offset;  /* the number of bytes passed to the sink or in `out` */
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
/* line: a positive line number or HPROF_LINE_*. */
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
 * A heap dump: any number of sub-records between begin and end, written as HEAP DUMP SEGMENTs and a
 * HEAP DUMP END. No other record may come between.
 */
void hprof_dump_begin(struct hprof_writer *w);
void hprof_dump_end(struct hprof_writer *w);
/*
 * Begins a segment of len bytes. The caller then passes its sub-records in parts, which go directly
 * to the sink.
 */
void hprof_segment(struct hprof_writer *w, uint64_t len);
void hprof_segment_bytes(struct hprof_writer *w, const void *bytes, size_t n);
/*
 * Announces one or more sub-records of n bytes in all, tags included; sub-puts of exactly n bytes
 * must follow. A sub-record is never split between segments. n must be below 4 GiB.
 */
void hprof_sub(struct hprof_writer *w, uint64_t n);
/*
 * Returns the address of n bytes of the announced sub-record, to be filled immediately, or NULL
 * when n is more than 64 KiB or after a failure.
 */
uint8_t *hprof_sub_add(struct hprof_writer *w, size_t n);
void hprof_sub_bytes(struct hprof_writer *w, const void *bytes, size_t n);
void hprof_sub_id(struct hprof_writer *w, uint64_t id);
void hprof_sub_u1(struct hprof_writer *w, uint8_t v);
void hprof_sub_u2(struct hprof_writer *w, uint16_t v);
void hprof_sub_u4(struct hprof_writer *w, uint32_t v);

/*
 * Roots. thread and trace are serial numbers; frame is the frame's number in the stack trace, or
 * -1.
 */
void hprof_root(struct hprof_writer *w, enum hprof_sub_tag kind, uint64_t object, uint64_t a,
                uint32_t b);

/*
 * The type and value of a static field, or of a constant in the pool, whose name is then its index.
 */
struct hprof_value {
    uint64_t name;  /* the id of a string; for a constant, its index in the pool */
    uint64_t value; /* the id of an object, or the value's bits, right-aligned */
    uint8_t type;   /* enum hprof_type */
};

struct hprof_class {
    uint64_t id, super, loader, signers, domain;
    uint32_t trace, instance_size;
    /* Only the name and type of fields are used. */
    const struct hprof_value *constants, *statics, *fields;
    uint16_t n_constants, n_statics, n_fields;
};

void hprof_class_dump(struct hprof_writer *w, const struct hprof_class *c);
/*
 * len bytes of field values must follow as sub-puts: the class's own fields first, then the
 * superclass's, and so on.
 */
void hprof_instance_dump(struct hprof_writer *w, uint64_t id, uint32_t trace, uint64_t class_id,
                         uint32_t len);
/* n ids must follow as sub-puts. */
void hprof_object_array_dump(struct hprof_writer *w, uint64_t id, uint32_t trace, uint64_t class_id,
                             uint32_t n);
/* n big-endian elements must follow as sub-puts. */
void hprof_primitive_array_dump(struct hprof_writer *w, uint64_t id, uint32_t trace, uint8_t type,
                                uint32_t n);
