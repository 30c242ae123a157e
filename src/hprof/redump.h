/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites a heap dump that the VM's own dumper made as part of our HPROF stream, binary or text:
 * with our serial numbers of classes, traces and threads, our thread objects, and class names in
 * source form. Objects keep their ids, which are addresses.
 */
#pragma once

#include "base/macro.h"
#include "hprof/text.h"
#include "hprof/writer.h"

/* The size of arrays in this VM is header[t] + n * element size, rounded up to `alignment`. */
struct hprof_shapes {
    uint32_t alignment, reference; /* in bytes; `reference` is 4 with compressed references */
    /* By element type; [0] is the header of an instance without fields. */
    uint32_t header[HPROF_LONG + 1];
};

struct hprof_redump {
    /* One of the two is set, the other is NULL. `binary` requires ids of 8 bytes. */
    struct hprof_writer *binary;
    struct hprof_text *text;
    time_t when;
    /* The trace of objects whose allocation site is unknown. */
    uint32_t empty_trace;
    uint32_t unknown_thread;
    bool thread_in_trace; /* for text: thread=y */
    const struct hprof_shapes *shapes;
    /* the next serial numbers of the stream, which are advanced */
    uint32_t *next_class, *next_trace;
    uint64_t *next_frame;  /* the next frame id of the stream, which is advanced by 2 */
    uint64_t *next_string; /* likewise for strings; odd, because those of the dump are even */
    /*
     * Finds the thread with this Thread.getId(): its serial number, and the id of its object in our
     * stream (0 keeps the dump's id). Returns false when the thread is unknown.
     */
    bool (*thread)(void *ctx, uint64_t java_id, uint32_t *ret_serial, uint64_t *ret_object);
    /*
     * Returns the size of an instance of a class (internal name, such as "java/lang/String"), or 0
     * when unknown; it is then computed from the fields.
     */
    uint32_t (*instance_size)(void *ctx, const char *name, size_t len, uint32_t fields_size);
    /*
     * Returns the trace that allocated an object, given its id in the dump, or 0 when unknown. NULL
     * if unknown for all.
     */
    uint32_t (*allocated)(void *ctx, uint64_t id);
    void *ctx;
};

struct hprof_redump_totals {
    /*
     * `objects` counts instances, arrays and classes; `bytes` is the sum of their shallow sizes (0
     * for binary).
     */
    uint64_t objects, bytes;
    uint64_t roots;
    bool cut; /* the dump is truncated */
};

/*
 * Rewrites a dump, given as the whole file. Returns 0, -EBADMSG (malformed, or ids are not of 8
 * bytes), -ENOMEM, or the writer's failure.
 */
int hprof_redump(const struct hprof_redump *how, const void *dump, size_t len,
                 struct hprof_redump_totals *ret) must_check;
