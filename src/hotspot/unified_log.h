/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses lines of HotSpot's unified log (-Xlog, JDK 9 to 27) with the decorations timenanos, tid
 * and tags:
 *
 * [13144904443820ns][14589][gc,start ] GC(0) Pause Young (Normal) (G1 Evacuation Pause)
 * [13144904543820ns][395  ][gc       ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 9.366ms
 *
 * Each decoration is padded to the width of the longest one before it in the file.
 * Nothing here allocates memory; texts point into the line.
 *
 * Its functions begin with log_.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_text {
    const char *data; /* not NUL-terminated */
    size_t len;
};

bool log_text_is(struct log_text t, const char *s);
bool log_text_starts(struct log_text t, const char *s);
/* Copies t as a C string into to[size], cut where it is too long. */
void log_text_copy(char *to, size_t size, struct log_text t);

struct log_line {
    uint64_t ns; /* when it was written, by CLOCK_MONOTONIC */
    uint32_t tid;
    struct log_text tags; /* "gc,start", without the padding */
    struct log_text text;
};

/* Parses a line without its newline. Returns false when the line has another form. */
bool log_line_read(const char *data, size_t len, struct log_line *ret);

/* A safepoint, as JDK 13 and later report it when it is over. All times are durations in ns. */
struct log_safepoint {
    struct log_text operation;
    uint64_t sync_ns;    /* until all threads had stopped */
    uint64_t cleanup_ns; /* 0 when the JDK has no such phase */
    uint64_t at_ns;      /* the operation */
    uint64_t leaving_ns; /* 0 before JDK 21, which includes it in the operation */
    uint64_t total_ns;
    int64_t threads; /* -1 when the JDK does not report it */
};

/*
 * Parses the text of a line. Returns false when the line does not report a safepoint in this form.
 */
bool log_safepoint_read(struct log_text text, struct log_safepoint *ret);

/*
 * JDK 9 to 12 report a safepoint in two lines: log_safepoint_begin_read parses the one with the
 * operation, log_stopped_read the one with the times. They return false when the text is another
 * line.
 */
bool log_safepoint_begin_read(struct log_text text, struct log_text *ret_operation);
bool log_stopped_read(struct log_text text, uint64_t *ret_total_ns, uint64_t *ret_sync_ns);

/* "GC(12) Pause Young (Normal) (G1 Evacuation Pause) 15M->14M(200M) 9.366ms" */
struct log_gc {
    uint32_t id;
    struct log_text name;  /* "Pause Young (Normal)" */
    struct log_text cause; /* "G1 Evacuation Pause"; empty when the line has none */
    bool has_heap, has_duration;
    uint64_t before, after, capacity; /* bytes; capacity is 0 when the line has none */
    uint64_t duration_ns;
};

/*
 * Parses a line with the tags gc, gc+start or gc+phases. Returns false when the line does not
 * report a collection.
 */
bool log_gc_read(struct log_text text, struct log_gc *ret);

/*
 * A line with the tags jit+compilation: a method that is compiled, or whose code is no longer
 * entered.
 */
struct log_compile {
    uint32_t id;
    uint32_t level;
    bool osr, native;
    struct log_text method; /* "java.lang.String::hashCode" */
    uint64_t bytes;         /* of bytecode */
    bool not_entrant;       /* the line reports that the code is discarded */
    struct log_text why;    /* JDK 25 and later: "uncommon trap", "not used"; may be empty */
};

/* Parses the text of such a line. Returns false when the line has another form. */
bool log_compile_read(struct log_text text, struct log_compile *ret);

/* A line with the tag deoptimization at level debug (JDK 21 and later): an uncommon trap. */
struct log_trap {
    struct log_text reason, action, method; /* method: "java.lang.String.hashCode()I" */
    int32_t bci;                            /* -1: unknown */
    uint32_t compile_id, level;
};

/* Parses the text of such a line. Returns false when the line has another form. */
bool log_trap_read(struct log_text text, struct log_trap *ret);
