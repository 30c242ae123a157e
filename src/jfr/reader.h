/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JDK Flight Recorder files of any origin (chunk versions 1 and 2; JDK 8 to 27, ours) generically by their metadata. The
 * file is mapped; memory grows with one chunk's dictionary, not with the file. Bytes are not trusted: damage gives -EBADMSG
 * with a reason, or a shorter recording with `truncated` set, never a crash.
 *
 *     static const struct rec_select wanted[] = {{"jdk.ExecutionSample", CPU}, {"jdk.ObjectAllocationSample", ALLOC}, {0}};
 *     struct recording *r;
 *     const char *why;
 *     int ret = recording_open(&r, path, &why);
 *     recording_select(r, wanted);
 *     struct rec_event e;
 *     while (recording_next(r, &e) > 0) {
 *         const struct rec_stack *stack = rec_stack(&e.object, "stackTrace");
 *         const struct rec_thread *thread = rec_thread(&e.object, "sampledThread");
 *         ... switch (e.tag), rec_long(&e.object, "weight", 0) ...
 *     }
 *
 * Times are nanoseconds since 1970. Strings are UTF-8, NUL-terminated, and live until recording_close unless said otherwise.
 * One recording is for one thread at a time.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recording;
struct rec_chunk;
struct rec_type;

/* ---- metadata ---- */

enum rec_kind {
    REC_BOOLEAN,
    REC_BYTE,
    REC_CHAR,
    REC_SHORT,
    REC_INT,
    REC_LONG,
    REC_FLOAT,
    REC_DOUBLE,
    REC_STRING,
    REC_STRUCT, /* of rec_type.fields */
};

/* What an annotation says about a number. */
enum rec_unit {
    REC_PLAIN,
    REC_TICKS_STAMP, /* rec_ns answers nanoseconds since 1970 */
    REC_MILLIS_STAMP,
    REC_NANOS_STAMP,
    REC_TICKS, /* rec_ns answers nanoseconds */
    REC_SECONDS,
    REC_MILLIS,
    REC_MICROS,
    REC_NANOS,
    REC_BYTES,
    REC_BITS,
    REC_BYTES_PER_SECOND,
    REC_BITS_PER_SECOND,
    REC_ADDRESS,
    REC_PERCENTAGE,
    REC_HERTZ,
};

struct rec_field {
    const char *name, *label; /* label may be NULL */
    const struct rec_type *type;
    enum rec_unit unit;
    bool constant; /* an id of the type's pool is stored */
    bool array;
    bool is_unsigned;
};

/* A type of one chunk. Equal names in two chunks are two types: select by name, or compare `number`. */
struct rec_type {
    uint64_t id;
    uint32_t number; /* of the name, dense over the recording */
    enum rec_kind kind;
    const char *name, *label;
    const char *category; /* "A|B"; NULL unless an event's */
    bool event, simple;   /* simple: a struct of one field that reads as that field */
    int tag;              /* of rec_select; -1: not selected */
    uint32_t n_fields;
    const struct rec_field *fields;
};

/* ---- the recording ---- */

struct rec_info {
    uint64_t chunks, bytes;
    int64_t start_ns, end_ns; /* from the chunks' headers; end_ns of a killed recording is that of the last flush */
    bool truncated;           /* bytes are missing or damaged; known once the iteration has passed them */
    const char *why;          /* when truncated: in words */
    uint64_t at;              /* when truncated: offset in the file */
    uint64_t unresolved;      /* ids looked up that their chunk does not define */
};

/*
 * Opens; *ret_why is a sentence in any failure ("not a flight recording: ..."), static or alive until the next open on this
 * thread. Negative errno; -EBADMSG when no chunk of it can be read.
 */
int recording_open(struct recording **ret, const char *path, const char **ret_why) must_check;
/* The same of bytes in memory, which must outlive the recording. */
int recording_open_bytes(struct recording **ret, const void *bytes, size_t len, const char **ret_why) must_check;
void recording_close(struct recording *r);
DEFINE_CLEANUP(struct recording *, recording_close)

void recording_info(const struct recording *r, struct rec_info *ret);

struct rec_select {
    const char *type; /* NULL ends the table */
    int tag;          /* >= 0: returned in rec_event.tag */
};

/* Only events of these types are returned from now on; the others cost next to nothing. NULL: all, with tag 0. */
int recording_select(struct recording *r, const struct rec_select *rows) must_check;

/* ---- events ---- */

/* A struct's bytes in the file: an event, a constant, a field. A copy stays valid while its chunk does. */
struct rec_object {
    struct recording *recording;
    struct rec_chunk *chunk;
    const struct rec_type *type; /* NULL: no object */
    const uint8_t *at, *end;
};

struct rec_event {
    struct rec_object object;
    int tag;
    int64_t start_ns, duration_ns; /* start_ns of the chunk, and 0, where the type has none */
    uint64_t offset;               /* in the file; names the event */
    uint32_t size;
};

/*
 * The next event in the file's order (within a chunk that is not the order of time). 1, or 0 at the end (of what can be read:
 * see rec_info.truncated), or -ENOMEM. Leaving a chunk releases its dictionary and stacks.
 */
int recording_next(struct recording *r, struct rec_event *ret) must_check;
/* Back to the first event. */
void recording_rewind(struct recording *r);

/* An event's place, for reading in another order. */
struct rec_mark {
    int64_t start_ns;
    uint64_t offset;
};

/*
 * Lists all selected events in order of time; the caller frees *ret. The dictionaries of all chunks stay in memory from then
 * on. Sort it in any other way and read by recording_at.
 */
int recording_by_time(struct recording *r, struct rec_mark **ret, size_t *ret_n) must_check;
/* Reads the event at an offset that an event or a mark had. 0 or negative errno. */
int recording_at(struct recording *r, uint64_t offset, struct rec_event *ret) must_check;

/* The types of the chunk that the last event came from (of the first chunk before any). */
const struct rec_type *recording_types(const struct recording *r, size_t *ret_n);

/* ---- values; path is a field's name or "field.field...", through constants and structs ---- */

struct rec_value {
    const struct rec_field *field;
    bool is_null; /* a reference to nothing, or to what the chunk does not define */

    union {
        int64_t number; /* REC_BOOLEAN to REC_LONG */
        double real;

        struct {
            const char *data; /* NULL when null */
            size_t len;
        } string;
    };
    struct rec_object object; /* REC_STRUCT: its bytes; arrays: at the first element */
    uint64_t id;              /* when field->constant */
    uint64_t count;           /* arrays */
};

/* 0, or -ENOENT: no such field; -EBADMSG: its bytes are damaged. */
int rec_get(const struct rec_object *o, const char *path, struct rec_value *ret) must_check;
/* Each field in turn: start with *i = 0; 1, 0 behind the last, or -EBADMSG. */
int rec_fields(const struct rec_object *o, uint32_t *i, const uint8_t **at, struct rec_value *ret) must_check;
/* Element by element of an array value: start with i = 0; 1, 0 behind the last, or -EBADMSG. The array value is moved on. */
int rec_elements(struct rec_value *array, struct rec_value *ret) must_check;

/* Shortcuts that answer `otherwise` when there is no such field or it is null. */
int64_t rec_long(const struct rec_object *o, const char *path, int64_t otherwise);
double rec_real(const struct rec_object *o, const char *path, double otherwise); /* whole numbers too */
const char *rec_string(const struct rec_object *o, const char *path, const char *otherwise);
/* Nanoseconds of a field with a time unit: a span, or a point since 1970. */
int64_t rec_ns(const struct rec_object *o, const char *path, int64_t otherwise);
/* The same for a value in hand. */
int64_t rec_value_ns(const struct rec_object *o, const struct rec_value *v);

/* ---- the usual constants, decoded once; NULL when the field is absent or null ---- */

/* Numbers are dense over the recording, from 0: one for each different thread, class, method. */
struct rec_thread {
    uint32_t number;
    const char *name;      /* the Java name, else the OS name; never NULL */
    const char *java_name; /* NULL: not a Java thread */
    const char *os_name;   /* may be NULL */
    int64_t java_id, os_id;
    const char *group; /* may be NULL */
    bool is_virtual;
};

struct rec_class {
    uint32_t number;
    const char *name;   /* "java.lang.String", "int[]"; never NULL */
    const char *loader; /* name of the loader, NULL for the boot loader or unknown */
    const char *package, *module;
    bool hidden;
};

struct rec_method {
    uint32_t number;
    const struct rec_class *class; /* NULL for what is not Java */
    const char *name;              /* never NULL */
    const char *descriptor;        /* may be NULL */
    const char *full;              /* "java.lang.String.indexOf", what reports print; never NULL */
    uint32_t modifiers;
    bool hidden;
};

struct rec_frame {
    const struct rec_method *method; /* never NULL: unresolved ones have a name that says so */
    int32_t line, bci;               /* -1: not known */
    const char *type;                /* "Interpreted", "JIT compiled", "Inlined", "Native" ...; NULL: not known */
};

/* Lives as long as its chunk. */
struct rec_stack {
    uint64_t id; /* of the chunk */
    uint32_t n;
    bool truncated;
    struct rec_frame frames[]; /* top first */
};

const struct rec_stack *rec_stack(const struct rec_object *o, const char *path);
const struct rec_thread *rec_thread(const struct rec_object *o, const char *path);
const struct rec_class *rec_class(const struct rec_object *o, const char *path);
const struct rec_method *rec_method(const struct rec_object *o, const char *path);

/* The same of an id that was read from a field of the object. */
const struct rec_stack *rec_stack_of(const struct rec_object *o, const struct rec_field *f, uint64_t id);
const struct rec_thread *rec_thread_of(const struct rec_object *o, const struct rec_field *f, uint64_t id);
const struct rec_class *rec_class_of(const struct rec_object *o, const struct rec_field *f, uint64_t id);
const struct rec_method *rec_method_of(const struct rec_object *o, const struct rec_field *f, uint64_t id);
