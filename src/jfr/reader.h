/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JDK Flight Recorder files of any origin (chunk versions 1 and 2; JDK 8 to 27, and our own)
 * generically by their metadata. The file is mapped. Memory use depends on one chunk's dictionary,
 * not on the size of the file. The bytes are not trusted: damage leads to -EBADMSG with a reason,
 * or to a shorter recording with `truncated` set, never to a crash.
 *
 *     static const struct rec_select wanted[] = {
 *         {"jdk.ExecutionSample", CPU}, {"jdk.ObjectAllocationSample", ALLOC}, {0}};
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
 * Times are nanoseconds since 1970. Strings are UTF-8, NUL-terminated, and valid until
 * recording_close unless noted otherwise. A recording must not be used by two threads at once.
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

/* The unit of a number, according to its annotation. */
enum rec_unit {
    REC_PLAIN,
    REC_TICKS_STAMP, /* rec_ns returns nanoseconds since 1970 */
    REC_MILLIS_STAMP,
    REC_NANOS_STAMP,
    REC_TICKS, /* rec_ns returns nanoseconds */
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
    bool constant; /* the field holds an id of the type's pool */
    bool array;
    bool is_unsigned;
    /* it describes all events of the same thread during the event (jdk.jfr.Contextual) */
    bool contextual;
};

/*
 * A type of one chunk. The same name in two chunks means two types, so select by name or compare
 * `number`.
 */
struct rec_type {
    uint64_t id;
    uint32_t number; /* of the name, dense over the recording */
    enum rec_kind kind;
    const char *name, *label;
    const char *category; /* "A|B"; NULL unless this is an event type */
    bool event, simple;   /* simple: a struct of one field that is read as that field */
    bool contextual;      /* one of its fields is */
    int tag;              /* from rec_select; -1 if not selected */
    uint32_t n_fields;
    const struct rec_field *fields;
};

/* ---- the recording ---- */

struct rec_info {
    uint64_t chunks, bytes;
    /*
     * From the chunks' headers. If the recording is unended, end_ns is the end of its last event,
     * and not everything that happened after flushed_ns, the time of the last flush, is in it.
     */
    int64_t start_ns, end_ns, flushed_ns;
    /* Bytes are missing or damaged. Known once the iteration has passed them. */
    bool truncated;
    const char *why; /* a description, when truncated */
    uint64_t at;     /* the offset in the file, when truncated */
    /*
     * Our agent wrote the recording and has not ended it: it is still recording, or it was killed.
     */
    bool unended;
    bool cut; /* the file ends before its last chunk does */
    /* It is a part of a ring (jfr/ring.h), so it contains events that began before start_ns. */
    bool part_of_ring;
    bool part_of_time;   /* a part of a recording, whose events can end after end_ns */
    unsigned part_of;    /* JFR_PART_OF_... (jfr/chunk_head.h), except that of a ring; 0: no part */
    uint64_t unresolved; /* the number of ids looked up that their chunk does not define */
};

/*
 * Opens a file. Returns 0 or a negative errno, -EBADMSG when none of its chunks can be read. After
 * any failure *ret_why is a sentence ("not a flight recording: ..."); it is static or valid until
 * the next open on this thread.
 */
int recording_open(struct recording **ret, const char *path, const char **ret_why) must_check;
/* Opens bytes in memory like recording_open. The bytes must outlive the recording. */
int recording_open_bytes(struct recording **ret, const void *bytes, size_t len,
                         const char **ret_why) must_check;
/* Like recording_open_bytes, for bytes that are a private, read-only mapping of a file. */
int recording_open_mapped(struct recording **ret, const void *bytes, size_t len,
                          const char **ret_why) must_check;
void recording_close(struct recording *r);
DEFINE_CLEANUP(struct recording *, recording_close)

/*
 * Stores what is known about the recording so far. The first call reads the last chunk of a
 * recording that was not ended, to find its end.
 */
void recording_info(struct recording *r, struct rec_info *ret);

/* Selects every event type with a contextual field that no other row of the table names. */
#define REC_CONTEXTUAL "@Contextual"

struct rec_select {
    const char *type; /* NULL ends the table */
    int tag;          /* not negative; returned in rec_event.tag */
};

/*
 * Restricts the iteration to events of these types; skipping the others costs next to nothing. NULL
 * selects all types, with tag 0. Returns 0 or -ENOMEM.
 */
int recording_select(struct recording *r, const struct rec_select *rows) must_check;

/* ---- events ---- */

/*
 * The bytes of a struct in the file: an event, a constant or a field. A copy is valid as long as
 * its chunk.
 */
struct rec_object {
    struct recording *recording;
    struct rec_chunk *chunk;
    const struct rec_type *type; /* NULL means no object */
    const uint8_t *at, *end;
};

struct rec_event {
    struct rec_object object;
    int tag;
    /* start_ns of the chunk and 0 when the type has no such fields */
    int64_t start_ns, duration_ns;
    uint64_t offset; /* in the file; identifies the event */
    uint32_t size;
};

/*
 * Reads the next event in the file's order, which within a chunk is not the order of time. Returns
 * 1, 0 at the end of what can be read (see rec_info.truncated), or -ENOMEM. Leaving a chunk
 * releases its dictionary and stacks.
 */
int recording_next(struct recording *r, struct rec_event *ret) must_check;
/*
 * Calls visit for each event of the given types from the current position on, until visit returns a
 * negative errno. Returns this errno, that of a failure to read, or 0.
 */
int recording_each(struct recording *r, const struct rec_select *types,
                   int (*visit)(void *context, const struct rec_event *e),
                   void *context) must_check;
/*
 * Returns the offset in the file of the metadata of the chunk that begins at this offset, also if
 * the chunk's end is missing, or 0 when it cannot be read.
 */
uint64_t recording_metadata_at(struct recording *r, uint64_t chunk);
/* Goes back to the first event. */
void recording_rewind(struct recording *r);

/* The position of an event, for reading in another order. */
struct rec_mark {
    int64_t start_ns;
    uint64_t offset;
};

/*
 * Lists all selected events in order of time; the caller frees *ret and may sort it in any other
 * way. Read the events with recording_at. From this call on the dictionaries of all chunks stay in
 * memory. Returns 0 or -ENOMEM.
 */
int recording_by_time(struct recording *r, struct rec_mark **ret, size_t *ret_n) must_check;
/* Reads the event at an offset taken from an event or a mark. Returns 0, -EBADMSG or -ENOMEM. */
int recording_at(struct recording *r, uint64_t offset, struct rec_event *ret) must_check;

/*
 * Returns the types of the chunk of the last event or, before any event was read, of the first
 * chunk that can be read. They are valid as long as the chunk.
 */
const struct rec_type *recording_types(const struct recording *r, size_t *ret_n);

/* ---- values; a path is a field's name or "field.field...", through constants and structs ---- */

struct rec_value {
    const struct rec_field *field;
    bool is_null; /* a reference to nothing, or to a constant that the chunk does not define */

    union {
        int64_t number; /* REC_BOOLEAN to REC_LONG */
        double real;

        struct {
            const char *data; /* NULL when null */
            size_t len;
        } string;
    };
    /* for REC_STRUCT its bytes; for arrays positioned at the first element */
    struct rec_object object;
    uint64_t id;    /* set when field->constant */
    uint64_t count; /* the number of elements of an array */
};

/*
 * Stores the value at a path. Returns 0, -ENOENT when the object has no such field, or -EBADMSG
 * when the field's bytes are damaged.
 */
int rec_get(const struct rec_object *o, const char *path, struct rec_value *ret) must_check;
/*
 * Reads one field after the other; start with *i = 0. *at is the place of the next field, which the
 * caller only keeps. Returns 1, 0 after the last, or -EBADMSG. For readers that show every field of
 * every type, as the tests' jfr_dump does; readers that know which fields they need use rec_get.
 */
int rec_fields(const struct rec_object *o, uint32_t *i, const uint8_t **at,
               struct rec_value *ret) must_check;
/*
 * Reads one element of an array value after the other and advances the value. Returns 1, 0 after
 * the last, or -EBADMSG. For readers such as those of rec_fields.
 */
int rec_elements(struct rec_value *array, struct rec_value *ret) must_check;

/*
 * Returns the value of a field of any numeric type as an integer. This and the next functions
 * return `otherwise` when the field does not exist, is null or has another type.
 */
int64_t rec_long(const struct rec_object *o, const char *path, int64_t otherwise);
/* Returns the value of a field of any numeric type as a double. */
double rec_real(const struct rec_object *o, const char *path, double otherwise);
/* Returns a string, which may be valid only until the next event is read. */
const char *rec_string(const struct rec_object *o, const char *path, const char *otherwise);
/* Returns a field with a time unit in nanoseconds: a duration, or a time since 1970. */
int64_t rec_ns(const struct rec_object *o, const char *path, int64_t otherwise);
/*
 * Returns a number with a unit of time in nanoseconds, as rec_ns does; any other number unchanged.
 */
int64_t rec_value_ns(const struct rec_object *o, const struct rec_value *v);

/* ---- common constants, decoded once; NULL when the field is absent or null ---- */

/* Numbers of threads, classes and methods are dense over the recording, from 0. */
struct rec_thread {
    uint32_t number;
    const char *name;      /* the Java name, or else the OS name; never NULL */
    const char *java_name; /* NULL if this is not a Java thread */
    const char *os_name;   /* may be NULL */
    int64_t java_id, os_id;
    const char *group; /* may be NULL */
    bool is_virtual;
};

struct rec_class {
    uint32_t number;
    const char *name;   /* such as "java.lang.String" or "int[]"; never NULL */
    const char *loader; /* the loader's name; NULL for the boot loader or if unknown */
    const char *package, *module;
    bool hidden;
};

struct rec_method {
    uint32_t number;
    const struct rec_class *class; /* NULL if this is not Java */
    const char *name;              /* never NULL */
    const char *descriptor;        /* may be NULL */
    const char *full; /* as reports print it, such as "java.lang.String.indexOf"; never NULL */
    uint32_t modifiers;
    bool hidden;
};

struct rec_frame {
    const struct rec_method *method; /* never NULL: an unresolved method has a name that says so */
    int32_t line, bci;               /* -1 if unknown */
    /* "Interpreted", "JIT compiled", "Inlined", "Native" ..., or NULL if unknown. */
    const char *type;
};

/* A stack, valid as long as its chunk. */
struct rec_stack {
    uint64_t id; /* unique in the chunk */
    uint32_t n;
    bool truncated;
    struct rec_frame frames[]; /* innermost first */
};

/* Each of these functions returns the constant that a field refers to, given the field's path. */
const struct rec_stack *rec_stack(const struct rec_object *o, const char *path);
const struct rec_thread *rec_thread(const struct rec_object *o, const char *path);
const struct rec_class *rec_class(const struct rec_object *o, const char *path);
const struct rec_method *rec_method(const struct rec_object *o, const char *path);

/* Like the functions above, for an id that was read from the field f of the object. */
const struct rec_stack *rec_stack_of(const struct rec_object *o, const struct rec_field *f,
                                     uint64_t id);
const struct rec_thread *rec_thread_of(const struct rec_object *o, const struct rec_field *f,
                                       uint64_t id);
const struct rec_class *rec_class_of(const struct rec_object *o, const struct rec_field *f,
                                     uint64_t id);

/* Memory for a decoded stack that is needed only once. A zeroed room is empty and valid. */
struct rec_stack_room {
    struct rec_stack *stack;
    size_t cap; /* in frames */
};

/* Like rec_stack_of, but the stack is kept only in `room`, until the next stack is read into it. */
const struct rec_stack *rec_stack_read(const struct rec_object *o, const struct rec_field *f,
                                       uint64_t id, struct rec_stack_room *room);
void rec_stack_room_release(struct rec_stack_room *room);
/*
 * Returns a hash of a stack's bytes and of the types that describe them. By this hash a caller can
 * recognize a stack that an earlier chunk also defined without decoding it, in a recording whose
 * methods and frame types have the same ids in all chunks. Returns 0 if it is unknown whether they
 * have, or if the hash would cost more than it saves.
 */
uint64_t rec_stack_key(const struct rec_object *o, const struct rec_field *f, uint64_t id);
