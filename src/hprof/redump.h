/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites a heap dump that the VM's own dumper made into an HPROF stream of ours, binary or text: with our serial numbers of
 * classes, traces and threads, our objects of threads, class names in source form. Objects keep their ids (addresses).
 */
#pragma once

#include "base/macro.h"
#include "hprof/text.h"
#include "hprof/writer.h"

/* How large arrays are in this VM: header[t] + n * element, rounded up to alignment. */
struct hprof_shapes {
    uint32_t alignment, reference;   /* bytes; reference is 4 with compressed references */
    uint32_t header[HPROF_LONG + 1]; /* by element type; [0] is that of an instance without fields */
};

struct hprof_redump {
    struct hprof_writer *binary; /* one of the two, the other is NULL; binary takes ids of 8 bytes */
    struct hprof_text *text;
    time_t when;
    uint32_t empty_trace; /* the trace of objects of which it is not known where they were allocated */
    uint32_t unknown_thread;
    bool thread_in_trace; /* text: thread=y */
    const struct hprof_shapes *shapes;
    uint32_t *next_class, *next_trace; /* the stream's next serial numbers; used up here */
    uint64_t *next_frame;              /* the stream's next frame id, counted up by 2 */
    uint64_t *next_string;             /* the same for strings; odd: those of the dump are even */
    /*
     * The thread with this Thread.getId(): its serial number and its object's id in our stream (0: keep the dump's). False
     * when it is not known.
     */
    bool (*thread)(void *ctx, uint64_t java_id, uint32_t *ret_serial, uint64_t *ret_object);
    /* The size of an instance of a class (internal name, "java/lang/String"); 0: not known, it is reckoned from the fields. */
    uint32_t (*instance_size)(void *ctx, const char *name, size_t len, uint32_t fields_size);
    /* The trace that allocated an object, by its id in the dump; 0: not known. NULL: of none. */
    uint32_t (*allocated)(void *ctx, uint64_t id);
    void *ctx;
};

struct hprof_redump_totals {
    uint64_t objects, bytes; /* instances, arrays and classes as objects; bytes are shallow sizes (0 for binary) */
    uint64_t roots;
    bool cut; /* the dump ended early */
};

/* dump: the whole file. 0; -EBADMSG (not a dump of 8-byte ids, or malformed), -ENOMEM, or the writer's failure. */
int hprof_redump(const struct hprof_redump *how, const void *dump, size_t len, struct hprof_redump_totals *ret) must_check;
