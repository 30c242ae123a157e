/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JDK Flight Recorder files (chunk version 2.1; doc/format.md says how a chunk is used). Knows no JVM.
 *
 * An event goes straight into a shared mapping of the file, in blocks handed out by an atomic bump: jfr_begin, the puts,
 * jfr_commit and jfr_trace take no lock, allocate nothing and are async-signal-safe; they may run in any number of threads and
 * in a signal handler that interrupts one of them. What finds no room is dropped and counted, never waited for. At every
 * instant the file is a valid recording: an event appears by one store, so a killed process leaves all that was committed.
 *
 * Everything else (dictionary, header, room ahead, rotation) is done by jfr_writer_work, which the owner calls from a thread of
 * its own, ten times a second or more:
 *
 *     while (!stopping) {
 *         jfr_writer_wait(w, 100 * NS_PER_MS);
 *         jfr_writer_work(w);
 *     }
 *     jfr_writer_close(w);
 *
 * Time is CLOCK_MONOTONIC in nanoseconds (now_ns) throughout; one tick of the file is one nanosecond.
 */
#pragma once

#include "base/clock.h"
#include "base/macro.h"
#include "jfr/types.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct jfr_writer;

/* One frame of a stack. method is any number that jfr_resolver.method understands; no padding may be left unset. */
struct jfr_frame {
    uint64_t method;
    int32_t bci;   /* -1: not known */
    uint32_t type; /* enum jfr_frame_type */
};

struct jfr_line {
    uint32_t bci, line;
};

struct jfr_class {
    const char *name;         /* internal form: "java/lang/String"; arrays as "[I" */
    const char *package;      /* "java/lang", NULL for none */
    const char *module;       /* "java.base", NULL for unnamed */
    const char *loader;       /* the loader's name; NULL for the boot loader */
    const char *loader_class; /* internal name of the loader's class, NULL when not known */
    uint32_t modifiers;
    bool hidden;
};

struct jfr_method {
    struct jfr_class class; /* class.name may be NULL for what is not Java: the name then stands alone */
    const char *name;
    const char *descriptor; /* "(I)V"; NULL for what is not Java */
    uint32_t modifiers;
    bool hidden;
    const struct jfr_line *lines; /* ascending by bci; may be NULL */
    size_t n_lines;
};

struct jfr_thread {
    const char *os_name;
    uint64_t os_id;
    const char *java_name; /* NULL: not a Java thread */
    uint64_t java_id;
    const char *group; /* NULL: none */
    bool is_virtual;
};

/*
 * Asked by jfr_writer_work, _flush, _rotate and _close, on the thread that calls them and with no lock held, once for each id
 * that an event or a trace uses. Strings need to live until the next question. Negative errno: shown as unresolved, counted.
 */
struct jfr_resolver {
    void *context;
    int (*method)(void *context, uint64_t method, uint32_t frame_type, struct jfr_method *ret);
    /* For threads that were not told by jfr_define_thread; may be NULL. */
    int (*thread)(void *context, uint64_t id, struct jfr_thread *ret);
};

struct jfr_writer_options {
    struct jfr_resolver resolver;
    uint64_t chunk_bytes; /* rotate beyond; 0: 64 MiB */
    uint64_t chunk_ns;    /* rotate after; 0: one hour */
    uint64_t trace_bytes; /* memory for distinct stacks, used as needed; 0: 256 MiB */
    uint64_t max_bytes;   /* of the file: events are dropped beyond; 0: no limit */
    unsigned slots;       /* writers at once; 0: four for each CPU, 16 to 256 */
};

/*
 * Creates the file (an old one of that name is unlinked first, never overwritten: someone may have it mapped) and writes
 * header, metadata and constants, so that it is a valid recording on return. Negative errno: -EINVAL for what is not a regular
 * file, -ENOSPC, -EFBIG (RLIMIT_FSIZE), -EROFS, -EACCES, ... nothing is left then.
 */
int jfr_writer_open(struct jfr_writer **ret, const char *path, const struct jfr_writer_options *options) must_check;

/* Waits until work is due or ns have passed. */
void jfr_writer_wait(struct jfr_writer *w, uint64_t ns);
/* Makes a waiting jfr_writer_wait return. Async-signal-safe. */
void jfr_writer_wake(struct jfr_writer *w);
/*
 * Room ahead; dictionary and header for what was committed since, so that other readers see it; rotation when due. 0, or the
 * negative errno that stops the recording from growing (-ENOSPC, -EFBIG, -EDQUOT, -EIO ...): the file stays valid, later events
 * are counted as lost; every later call tries again.
 */
int jfr_writer_work(struct jfr_writer *w);
/* The same, waiting for events that are being written: all that was begun before the call is complete for every reader. */
int jfr_writer_flush(struct jfr_writer *w);
/* Ends the chunk and starts the next one; no event is lost while others keep writing. */
int jfr_writer_rotate(struct jfr_writer *w);
/* Ends the recording: later jfr_begin answer false and count as lost. 0 or the first failure. The storage stays. */
int jfr_writer_close(struct jfr_writer *w);
/* Frees the storage of a closed writer (closes it first if need be). No other thread may use it any more; NULL is fine. */
void jfr_writer_free(struct jfr_writer *w);

/* What was written and lost so far. Safe at any time from any thread. */
struct jfr_counters {
    uint64_t events, bytes, chunks; /* bytes: of the file so far */
    uint64_t lost_busy;             /* events: every slot was taken */
    uint64_t lost_room;             /* events: no room was ready, or the disk is full */
    uint64_t lost_size;             /* events: grew beyond what jfr_begin was told */
    uint64_t left_out;              /* events: jfr_leave_out */
    uint64_t lost_closed;           /* events: after jfr_writer_close */
    uint64_t traces, lost_traces;   /* distinct stacks; stacks that found no memory */
    uint64_t unresolved;            /* methods and threads nobody could name */
    uint64_t lost_constants;        /* dictionary entries that found no room in their chunk */
    int error;                      /* 0 or the negative errno of the last failed growth */
};

void jfr_writer_counters(const struct jfr_writer *w, struct jfr_counters *ret);

/* ---- types (not in signal handlers) ---- */

/*
 * Declares event types, structs and pools beyond the built-in ones (types.h); rows must outlive the writer. ret_ids[i] is what
 * jfr_begin takes. A row may use types of rows before it. A name that is declared already (built-in too) keeps its id.
 * -EINVAL names a type that does not exist; -ENOSPC: no more than 8,192 types.
 */
int jfr_declare(struct jfr_writer *w, const struct jfr_type *rows, size_t n, uint32_t *ret_ids) must_check;

/* ---- dictionary (not in signal handlers; any thread) ---- */

/* A class as constant: its id for fields of type java.lang.Class. The same class answers the same id. 0: no memory. */
uint64_t jfr_define_class(struct jfr_writer *w, const struct jfr_class *c);
/* A string that many events share, for jfr_put_string_id. 0: no memory. */
uint64_t jfr_define_string(struct jfr_writer *w, const char *s);
/* An entry of any pool whose fields are all numbers or strings is made by its text: pools of one string field (GCCause ...). */
uint64_t jfr_define_name(struct jfr_writer *w, uint32_t pool, const char *name);
/* Tells who thread id is (again: it was renamed). id is the owner's choice, not 0, unique over the recording. */
int jfr_define_thread(struct jfr_writer *w, uint64_t id, const struct jfr_thread *t);
/* Thread id has ended: nobody will use it in an event begun after this call; its memory goes with the chunk. */
void jfr_forget_thread(struct jfr_writer *w, uint64_t id);

/* ---- events (async-signal-safe) ---- */

/* The id of a stack, stored once; 0 when n is 0 or memory is out (counted). The frames are copied. */
uint64_t jfr_trace(struct jfr_writer *w, const struct jfr_frame *frames, uint32_t n, bool truncated);

struct jfr_slot;

struct jfr_event {
    struct jfr_writer *w;
    struct jfr_slot *slot;
    uint8_t *start, *at, *end;
    uint32_t type;
    bool overflow;
    _Atomic uint32_t *span; /* of a run of blocks of its own */
};

/* Counts n events as lost that their capture does not write, for they are too many: the recording tells of them. */
void jfr_leave_out(struct jfr_writer *w, uint64_t n);

/*
 * Begins an event of a type (enum jfr_builtin or an id of jfr_declare). room: an upper bound of the bytes of its fields (a
 * number is at most 9, a string 5 + its bytes; 0 stands for 200). False: lost and counted. Between begin and commit do nothing
 * but put: a slot is held. The fields follow in the order of the type's row, startTime (and duration, eventThread, stackTrace,
 * where the row says so) first.
 */
bool jfr_begin(struct jfr_writer *w, uint32_t type, size_t room, struct jfr_event *ret);
void jfr_commit(struct jfr_event *e);
void jfr_abort(struct jfr_event *e); /* nothing is written, nothing is counted */

/* A point in time, in CLOCK_MONOTONIC nanoseconds: startTime, and fields of unit JFR_TICKS_STAMP. */
void jfr_put_time(struct jfr_event *e, uint64_t ns);

/* long, int, short, char, byte that is not boolean, ids of constants, durations in nanoseconds. */
static inline void jfr_put_long(struct jfr_event *e, int64_t value)
{
    uint64_t v = (uint64_t)value;
    if (unlikely((size_t)(e->end - e->at) < 9)) {
        e->overflow = true;
        return;
    }
    uint8_t *p = e->at;
    for (int i = 0; i < 8 && v >= 0x80; i++, v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    e->at = p;
}

static inline void jfr_put_bytes_(struct jfr_event *e, const void *bytes, size_t n)
{
    if (unlikely((size_t)(e->end - e->at) < n)) {
        e->overflow = true;
        return;
    }
    memcpy(e->at, bytes, n);
    e->at += n;
}

/* int: 32 bits, compressed as unsigned. */
static inline void jfr_put_int(struct jfr_event *e, int32_t value)
{
    jfr_put_long(e, (int64_t)(uint32_t)value);
}

/* boolean and byte: one byte. */
static inline void jfr_put_byte(struct jfr_event *e, uint8_t value)
{
    jfr_put_bytes_(e, &value, 1);
}

static inline void jfr_put_float(struct jfr_event *e, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = __builtin_bswap32(bits);
    jfr_put_bytes_(e, &bits, sizeof(bits));
}

static inline void jfr_put_double(struct jfr_event *e, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = __builtin_bswap64(bits);
    jfr_put_bytes_(e, &bits, sizeof(bits));
}

/* UTF-8 in place; NULL is null. */
static inline void jfr_put_string_n(struct jfr_event *e, const char *s, size_t len)
{
    jfr_put_byte(e, !s ? 0 : len ? 3 : 1);
    if (s && len) {
        jfr_put_long(e, (int64_t)len);
        jfr_put_bytes_(e, s, len);
    }
}

static inline void jfr_put_string(struct jfr_event *e, const char *s)
{
    jfr_put_string_n(e, s, s ? strlen(s) : 0);
}

/* A string of jfr_define_string. */
static inline void jfr_put_string_id(struct jfr_event *e, uint64_t id)
{
    jfr_put_byte(e, id ? 2 : 0);
    if (id)
        jfr_put_long(e, (int64_t)id);
}
