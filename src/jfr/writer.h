/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JDK Flight Recorder files (chunk version 2.1; doc/format.md describes how chunks are
 * used). This code does not depend on a JVM.
 *
 * An event is written directly into a shared mapping of the file, in blocks that are handed out by
 * an atomic counter. jfr_begin, the puts, jfr_commit and jfr_trace take no lock, allocate nothing
 * and are async-signal-safe. They may run in any number of threads, and in a signal handler that
 * interrupts one of them. An event that finds no room is dropped and counted; nothing waits. The
 * file is a valid recording at every instant: a single store makes an event visible, so a killed
 * process leaves all events that were committed.
 *
 * Everything else (dictionary, header, preparing room, rotation) is done by jfr_writer_work, which
 * the owner calls from a thread of its own at least ten times a second:
 *
 *     while (!stopping) {
 *         waker_wait(options.waker, 100 * NS_PER_MS);
 *         jfr_writer_work(w);
 *     }
 *     jfr_writer_close(w);
 *
 * All times are CLOCK_MONOTONIC in nanoseconds (now_ns). One tick of the file is one nanosecond.
 */
#pragma once

#include "base/clock.h"
#include "base/macro.h"
#include "base/waker.h"
#include "jfr/losses.h"
#include "jfr/types.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct jfr_writer;

/*
 * A frame of a stack. method is any number that jfr_resolver.method understands. Padding must be
 * initialized, because frames are compared as bytes.
 */
struct jfr_frame {
    uint64_t method;
    int32_t bci;   /* -1 if unknown */
    uint32_t type; /* enum jfr_frame_type */
};

struct jfr_line {
    uint32_t bci, line;
};

struct jfr_class {
    const char *name;         /* the internal form, such as "java/lang/String"; "[I" for an array */
    const char *package;      /* such as "java/lang"; NULL if none */
    const char *module;       /* such as "java.base"; NULL if unnamed */
    const char *loader;       /* the loader's name; NULL for the boot loader */
    const char *loader_class; /* the internal name of the loader's class; NULL if unknown */
    uint32_t modifiers;
    bool hidden;
};

struct jfr_method {
    /* class.name may be NULL for what is not Java; `name` is then shown alone. */
    struct jfr_class class;
    const char *name;
    const char *descriptor; /* such as "(I)V"; NULL for what is not Java */
    uint32_t modifiers;
    bool hidden;
    const struct jfr_line *lines; /* ascending by bci; may be NULL */
    size_t n_lines;
};

struct jfr_thread {
    const char *os_name;
    uint64_t os_id;
    const char *java_name; /* NULL if it is not a Java thread */
    uint64_t java_id;
    const char *group; /* NULL if none */
    bool is_virtual;
};

/*
 * Describes methods and threads. jfr_writer_work, _flush, _rotate and _close call it on their own
 * thread, with no lock held, once for each id that an event or a stack uses. The strings must be
 * valid until the next call. A negative errno counts the id as unresolved, and it is shown as such.
 */
struct jfr_resolver {
    void *context;
    int (*method)(void *context, uint64_t method, uint32_t frame_type, struct jfr_method *ret);
    /* Called for threads that jfr_define_thread did not define; may be NULL. */
    int (*thread)(void *context, uint64_t id, struct jfr_thread *ret);
};

struct jfr_writer_options {
    struct jfr_resolver resolver;
    uint64_t chunk_bytes; /* start a new chunk beyond this size; 0 means 64 MiB */
    uint64_t chunk_ns;    /* start a new chunk after this time; 0 means one hour */
    uint64_t trace_bytes; /* memory for distinct stacks, used as needed; 0 means 256 MiB */
    uint64_t max_bytes;   /* the file's limit, beyond which events are dropped; 0 means none */
    /*
     * Not 0: the file is a ring of this size (jfr/ring.h), which keeps what is at most keep_ns old
     * and as much as it has room for. All of it is allocated when it is opened.
     */
    uint64_t ring_bytes;
    uint64_t keep_ns;
    /*
     * Allocates only a few blocks when the file is opened, because the pages of the usual number
     * take a millisecond. The first call of jfr_writer_work, which must follow soon, allocates the
     * others.
     */
    bool begins_small;
    /*
     * The metadata are written by jfr_release_types, which must follow, with all types that were
     * declared by then; until then the file is no valid recording.
     */
    bool holds_types;
    /*
     * A file of this name that is not empty stays until jfr_writer_publish, if the system has files
     * without a name and there is room for both.
     */
    bool keeps_older;
    unsigned slots; /* the number of concurrent writers; 0 means four for each CPU, 16 to 256 */
    /*
     * Woken when there is work to do because events will soon find no room. It must outlive the
     * writer. NULL: nobody waits.
     */
    struct waker *waker;
};

/*
 * Creates the file and writes header, metadata and constants, so that it is a valid recording on
 * return. An existing file of that name is unlinked and never overwritten, because another process
 * may have it mapped. On failure returns a negative errno and leaves nothing behind: -EISDIR
 * for a folder, -EINVAL for anything else that is not a regular file, -ENOSPC, -EFBIG
 * (RLIMIT_FSIZE), -EROFS, -EACCES, ... A ring without a path is kept in memory, where
 * jfr_writer_descriptor leads to it; a recording without one is refused with -EINVAL.
 */
int jfr_writer_open(struct jfr_writer **ret, const char *path,
                    const struct jfr_writer_options *options) must_check;

/*
 * Gives the file its name if an older file has kept it (keeps_older), which the new one replaces.
 * Otherwise does nothing. Returns 0 or a negative errno, after which the older file is still there.
 */
int jfr_writer_publish(struct jfr_writer *w) must_check;
/* Returns whether the file has its name, so that no older file has it. */
bool jfr_writer_has_name(const struct jfr_writer *w);

/*
 * Prepares room in the file, writes the dictionary and header for what was committed since the last
 * call, so that other readers see it, and starts a new chunk when one is due. Returns 0 or the
 * negative errno that prevents the recording from growing (-ENOSPC, -EFBIG, -EDQUOT, -EIO ...;
 * -EAGAIN when only the chunk is full). The file then stays valid, later events are counted as
 * lost, and every later call tries again. Returns -EBADF once the writer is closed.
 */
int jfr_writer_work(struct jfr_writer *w);
/*
 * Like jfr_writer_work, but waits for events that are being written: every event that was begun
 * before the call is complete for every reader.
 */
int jfr_writer_flush(struct jfr_writer *w);
/*
 * Returns whether another process cut the file short. Its contents are then lost, and so is
 * everything written afterwards, which does no harm if memory_guard_init was called.
 * jfr_writer_work then returns -ESTALE.
 */
bool jfr_writer_is_cut(const struct jfr_writer *w);
/*
 * Ends the chunk and starts the next one at once, for tests; otherwise jfr_writer_work does so when
 * a new chunk is due. No event is lost while other threads keep writing. Returns 0 or a negative
 * errno.
 */
int jfr_writer_rotate(struct jfr_writer *w);
/*
 * Moves the beginning of the recording's span, which is when the file was opened, to the later time
 * `ns`. Has no effect on a ring, after the first chunk, or for an earlier time.
 */
void jfr_writer_starts(struct jfr_writer *w, uint64_t ns);
/*
 * Sets the end of the span to `ns`, however long it takes to write and close the file. The earliest
 * end of several calls counts.
 */
void jfr_writer_ends(struct jfr_writer *w, uint64_t ns);
/*
 * Ends the recording. Later calls of jfr_begin return false and count as lost. Returns 0 or the
 * first failure, and 0 when the recording has already ended. jfr_writer_free frees the memory.
 */
int jfr_writer_close(struct jfr_writer *w);
/*
 * Frees a writer and closes it first if necessary. No other thread may use it any more. NULL is
 * allowed.
 */
void jfr_writer_free(struct jfr_writer *w);

/* Returns the open file, which remains the writer's. */
int jfr_writer_descriptor(const struct jfr_writer *w);

/* Converts a time of now_ns() into the ticks of the recording's events. */
uint64_t jfr_writer_ticks(const struct jfr_writer *w, uint64_t ns);

/* What a ring holds now. Times are now_ns()'s. */
struct jfr_ring_state {
    uint64_t size;     /* of the file */
    uint64_t segment;  /* bytes of a segment, which holds one chunk */
    uint64_t used;     /* bytes of the chunks that it holds */
    uint64_t written;  /* bytes of all chunks so far */
    uint64_t since_ns; /* when the oldest chunk in it began */
    uint64_t chunks;   /* how many it holds */
    /* the number of constants in memory, and their bytes without the tables that hold them */
    uint64_t names, name_bytes;
};

/*
 * Stores the state of the ring. Returns false when the writer writes no ring. May be called by any
 * thread.
 */
bool jfr_writer_ring(struct jfr_writer *w, struct jfr_ring_state *ret);
/*
 * Returns the number of chunks begun so far. When the number has grown, the owner must write again
 * the events that describe the current state, because each chunk needs them.
 */
uint64_t jfr_writer_chunks(const struct jfr_writer *w);

/* What was written and lost so far. */
struct jfr_counters {
    uint64_t events, bytes, chunks; /* bytes: the current size of the file */
    uint64_t lost_busy;             /* events lost because every slot was taken */
    uint64_t lost_room;             /* events lost because no room was ready or the disk is full */
    uint64_t lost_size;   /* events lost because they grew beyond the room given to jfr_begin */
    uint64_t lost_shape;  /* events lost because their values were not those of their type */
    uint64_t lost_closed; /* events lost because they were begun after jfr_writer_close */
    uint64_t traces, lost_traces; /* distinct stacks; stacks lost for lack of memory */
    uint64_t shortened_traces;    /* events of whose stacks only the innermost frames are kept */
    uint64_t unresolved;          /* methods and threads that could not be named */
    uint64_t lost_constants;      /* dictionary entries for which their chunk had no room */
    int error;                    /* 0, or the negative errno of the last failed growth */
};

/* Stores the counts. May be called at any time from any thread. */
void jfr_writer_counters(const struct jfr_writer *w, struct jfr_counters *ret);

/* ---- types (not in signal handlers) ---- */

/*
 * Declares event types, structs and pools in addition to the built-in ones (types.h). The rows must
 * outlive the writer. jfr_begin takes ret_ids[i]. A row may use the types of earlier rows. A name
 * that is already declared or built in keeps its id. Returns 0 or a negative errno: -EINVAL when a
 * row names a type that does not exist or an event has an array, -ENOSPC beyond JFR_MAX_TYPES types
 * or when the file cannot grow, -EBADF once the writer is closed.
 */
int jfr_declare(struct jfr_writer *w, const struct jfr_type *rows, size_t n,
                uint32_t *ret_ids) must_check;
/*
 * Until jfr_release_types, jfr_declare writes no metadata, which takes 0.3 ms and 50 KB each time;
 * no event of a type that is declared meanwhile may be written. jfr_release_types returns 0 or a
 * negative errno.
 */
void jfr_hold_types(struct jfr_writer *w);
int jfr_release_types(struct jfr_writer *w) must_check;

/* ---- dictionary (not in signal handlers; any thread) ---- */

/*
 * In a ring, the dictionary drops the ids of classes and names that a whole chunk has neither used
 * nor defined. An event that uses a dropped id counts as one with an unknown name. A caller that
 * keeps ids must therefore define them again in each chunk, or declare that they stay.
 */

/*
 * Returns the id of a class for fields of type java.lang.Class, the same id for the same class, or
 * 0 when out of memory.
 */
uint64_t jfr_define_class(struct jfr_writer *w, const struct jfr_class *c);
/* Declares that a class stays as long as the writer; only for a limited number of classes. */
void jfr_class_stays(struct jfr_writer *w, uint64_t class);
/*
 * Copies the internal name of a class that was defined, cut to the size. Returns false when the
 * class is not defined.
 */
bool jfr_class_name(struct jfr_writer *w, uint64_t class, char *to, size_t size);
/*
 * Returns the id of a string that many events share, for jfr_put_string_id, or 0 when out of
 * memory. The string stays as long as the writer.
 */
uint64_t jfr_define_string(struct jfr_writer *w, const char *s);
/*
 * Returns the id of an entry in a pool with a single string field, such as JFR_POOL_GC_CAUSE, or 0
 * when out of memory.
 */
uint64_t jfr_define_name(struct jfr_writer *w, uint32_t pool, const char *name);
/*
 * Defines the thread with this id, or redefines it after it was renamed. The owner chooses the id,
 * which must not be 0 and must be unique in the recording. The thread stays until it is forgotten.
 * Returns 0 or a negative errno.
 */
int jfr_define_thread(struct jfr_writer *w, uint64_t id, const struct jfr_thread *t);
/*
 * Declares that a thread has ended: no event that begins after this call uses its id. In a ring the
 * thread is dropped like other names.
 */
void jfr_forget_thread(struct jfr_writer *w, uint64_t id);

/* ---- events (async-signal-safe) ---- */

/*
 * Returns the id of a stack, which is stored once; the frames are copied. If the memory has no room
 * for all frames, the innermost eight are stored, or one, as those of a truncated stack, and this
 * is counted. Returns 0 when n is 0 or, which is counted too, when the memory has no room for one
 * frame.
 */
uint64_t jfr_trace(struct jfr_writer *w, const struct jfr_frame *frames, uint32_t n,
                   bool truncated);
/*
 * Like jfr_trace, for the thread that calls jfr_writer_work and writes many stacks. The stack is
 * written once, by the next such call. jfr_trace in contrast writes it at once, for readers of a
 * program that dies before that call, and the worker writes it again with its names.
 */
uint64_t jfr_trace_growing(struct jfr_writer *w, const struct jfr_frame *frames, uint32_t n,
                           bool truncated);

/*
 * The memory for the stacks of a ring is reused. When jfr_traces_due returns true, the owner passes
 * the id of each stack that it still needs to jfr_trace_keep, which returns the id that is to take
 * its place, or 0 when the stack is gone, and then calls jfr_traces_kept; otherwise the memory
 * eventually has no room for new stacks. An id that was not passed no longer leads to a stack.
 * jfr_trace_stays returns whether an id stays valid until then. jfr_traces_due and jfr_trace_stays
 * are async-signal-safe.
 */
bool jfr_traces_due(const struct jfr_writer *w);
uint64_t jfr_trace_keep(struct jfr_writer *w, uint64_t id) must_check;
void jfr_traces_kept(struct jfr_writer *w);
bool jfr_trace_stays(const struct jfr_writer *w, uint64_t id);

struct jfr_slot;

/*
 * The shape of an event: the kinds of its values in their order, folded into a number. jfr_commit
 * compares it with that of the type's fields, so that no event is misread.
 */
enum jfr_shape { JFR_NUMBER = 1, JFR_BYTE, JFR_FLOAT, JFR_DOUBLE, JFR_STRING };

static inline uint32_t jfr_shape_add(uint32_t shape, enum jfr_shape kind)
{
    return shape * 31 + kind;
}

struct jfr_event {
    struct jfr_writer *w;
    struct jfr_slot *slot;
    uint8_t *start, *at, *end;
    uint32_t type, shape;
    bool overflow;
    _Atomic uint32_t *span; /* for an event with blocks of its own */
};

/* Numbers take at most 9 bytes each. All those of an event have room in addition to its texts. */
enum { JFR_NUMBERS_ROOM = 200 };

/*
 * Begins an event of a type (an enum jfr_builtin, or an id from jfr_declare). `room` is an upper
 * bound for the bytes of its texts: each takes 5 in addition to its length. Returns false when the
 * event is lost, which is counted. Between begin and commit the caller holds a slot and must do
 * nothing but put the fields, in the order of the type's row: first startTime, and duration,
 * eventThread and stackTrace if the row has them.
 */
bool jfr_begin(struct jfr_writer *w, uint32_t type, size_t room, struct jfr_event *ret);
/*
 * Like jfr_begin, for the thread that calls jfr_writer_work and writes many rows: makes room in the
 * file if need be. Returns false when the recording cannot grow now. That is not counted: the
 * caller tries again later or calls jfr_lose_events or jfr_lose_event_at.
 */
bool jfr_begin_growing(struct jfr_writer *w, uint32_t type, size_t room, struct jfr_event *ret);
/*
 * Counts n events of a type as lost because the file has no room. They may be sums, so the
 * recording reports that what they counted happened at any time since it began.
 */
void jfr_lose_events(struct jfr_writer *w, uint32_t type, uint64_t n);
/*
 * Counts one event of a type as lost because the file has no room. What it would have recorded
 * happened between two moments.
 */
void jfr_lose_event_at(struct jfr_writer *w, uint32_t type, uint64_t from_ns, uint64_t to_ns);
/*
 * Publishes the event. An event that has grown beyond its room, or whose values are not those of
 * the type's row, is lost, which is counted.
 */
void jfr_commit(struct jfr_event *e);
/* Ends an event without writing it. Nothing is counted. */
void jfr_abort(struct jfr_event *e);

/* Puts a time in CLOCK_MONOTONIC nanoseconds: startTime, and fields of unit JFR_TICKS_STAMP. */
void jfr_put_time(struct jfr_event *e, uint64_t ns);

static inline void jfr_put_number_(struct jfr_event *e, int64_t value)
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

/* Puts a long, int, short, char, the id of a constant, or a duration in nanoseconds. */
static inline void jfr_put_long(struct jfr_event *e, int64_t value)
{
    e->shape = jfr_shape_add(e->shape, JFR_NUMBER);
    jfr_put_number_(e, value);
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

/* Puts an int: 32 bits, compressed as unsigned. */
static inline void jfr_put_int(struct jfr_event *e, int32_t value)
{
    jfr_put_long(e, (int64_t)(uint32_t)value);
}

/* Puts a boolean or byte: one byte. */
static inline void jfr_put_byte(struct jfr_event *e, uint8_t value)
{
    e->shape = jfr_shape_add(e->shape, JFR_BYTE);
    jfr_put_bytes_(e, &value, 1);
}

static inline void jfr_put_float(struct jfr_event *e, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = __builtin_bswap32(bits);
    e->shape = jfr_shape_add(e->shape, JFR_FLOAT);
    jfr_put_bytes_(e, &bits, sizeof(bits));
}

static inline void jfr_put_double(struct jfr_event *e, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = __builtin_bswap64(bits);
    e->shape = jfr_shape_add(e->shape, JFR_DOUBLE);
    jfr_put_bytes_(e, &bits, sizeof(bits));
}

/* Puts a string as UTF-8 into the event; NULL is null. */
static inline void jfr_put_string_n(struct jfr_event *e, const char *s, size_t len)
{
    uint8_t encoding = !s ? 0 : len ? 3 : 1;
    e->shape = jfr_shape_add(e->shape, JFR_STRING);
    jfr_put_bytes_(e, &encoding, 1);
    if (s && len) {
        jfr_put_number_(e, (int64_t)len);
        jfr_put_bytes_(e, s, len);
    }
}

static inline void jfr_put_string(struct jfr_event *e, const char *s)
{
    jfr_put_string_n(e, s, s ? strlen(s) : 0);
}

/* Puts a string of jfr_define_string; 0 is null. */
static inline void jfr_put_string_id(struct jfr_event *e, uint64_t id)
{
    uint8_t encoding = id ? 2 : 0;
    e->shape = jfr_shape_add(e->shape, JFR_STRING);
    jfr_put_bytes_(e, &encoding, 1);
    if (id)
        jfr_put_number_(e, (int64_t)id);
}
