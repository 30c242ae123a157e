/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap dump as it lies in its file: classes, roots, threads, where its objects are, how large the VM made them. Opening reads
 * the records around the heap; the objects themselves are passed over once by heap_dump_survey, in parallel.
 */
#pragma once

#include "base/file.h"
#include "base/map.h"
#include "base/strpool.h"
#include "hprof/reader.h"

enum heap_kind { HEAP_INSTANCE, HEAP_OBJECT_ARRAY, HEAP_PRIMITIVE_ARRAY };

/* What a java.lang.ref.Reference is; its `referent` does not keep alive. */
enum heap_reference { HEAP_STRONG, HEAP_SOFT, HEAP_WEAK, HEAP_FINAL, HEAP_PHANTOM };

enum { HEAP_NO_CLASS = -1 };

struct heap_class {
    uint64_t id, super_id, loader_id;
    const char *name;      /* binary name, arrays as "byte[]"; lives as long as the dump */
    const uint8_t *record; /* its CLASS DUMP, NULL when there is none */
    uint64_t record_len;
    int32_t super; /* class number, HEAP_NO_CLASS */
    enum heap_kind kind;
    uint8_t type;                  /* of the elements of a primitive array */
    enum heap_reference reference; /* of its instances */
    bool held_by_instances;        /* nothing else keeps it: its instances refer to it (dump->class_edges) */
    uint8_t injected[2];           /* row of what HotSpot adds to it, by the older and the newer layout; 0: nothing */
    bool refs_first;               /* in the older layout its references come first, and no gap is filled */
    uint32_t words_at;             /* where an instance says how many words follow its fields, from 1; 0: nothing follows */
    uint32_t fields_bytes;         /* values of an instance in the dump, super classes included */
    uint32_t size;                 /* bytes of an instance in the VM */
    uint32_t mirror_size;          /* bytes of the class object itself */
    uint32_t refs_at, refs_len;    /* its slice of dump->refs; a weak referent comes first */
    uint64_t objects, bytes;       /* instances that are in the dump and their shallow size */
    uint64_t retained;             /* what they retain together; from an index alone */
};

/* The sizes of this VM's objects and how that is known. */
struct heap_shape {
    uint32_t header, array_header, reference, alignment;
    bool old_layout;        /* fields laid out as JDK 8 to 14 do */
    uint32_t mirror_base;   /* bytes of a class object before its static fields */
    uint64_t tried, agreed; /* neighbours in memory whose distance was compared, and was the size exactly */
    bool assumed;           /* the dump's ids are no addresses: the usual sizes are taken */
};

/* A stretch of sub-records, at most some megabytes unless one object is larger. */
struct heap_chunk {
    uint64_t start, end; /* in the file */
    uint64_t objects;    /* in it, classes included */
    uint64_t first;      /* of all objects before it */
};

struct heap_root {
    uint64_t id;
    uint8_t tag;
    uint32_t thread, frame; /* as in struct hprof_item */
};

struct heap_dump {
    const uint8_t *data;
    uint64_t len;
    struct hprof_header header;
    struct file_map map;
    bool spooled;     /* data is an unpacked copy in an unlinked file */
    bool class_edges; /* classes with held_by_instances are there */
    bool cut;         /* the file ends too early or in garbage; what came before is here */
    uint64_t garbage_at;
    unsigned dumps, chosen;    /* dumps in the file, and which one this is (from 0) */
    struct map strings;        /* string id -> offset of its UTF8 record's body */
    struct map class_names;    /* class id -> string id */
    struct map class_serials;  /* serial number -> class id */
    struct map frames, traces; /* frame id, trace serial number -> offset of the body */
    struct strpool names;
    VEC(struct heap_chunk) segments; /* as in the file */
    VEC(struct heap_chunk) chunks;   /* after the survey */
    VEC(struct heap_class) classes;
    struct map class_of_id;       /* class id -> class number */
    int32_t primitive_arrays[16]; /* by type: class number */
    int32_t string_class, class_class, object_class;
    VEC(uint32_t) refs; /* offsets of references in the values of instances */
    VEC(struct heap_root) roots;
    struct heap_shape shape;
    uint64_t objects, bytes;             /* totals, classes included */
    uint64_t instances, arrays, mirrors; /* of which */
    uint64_t min_id, max_id, id_bits, last_bad;
    unsigned threads;
};

/* Opens a dump: a file, a .gz, "-" or a pipe. which: the dump in a file of several, -1 for the last. Negative errno. */
int heap_dump_open(struct heap_dump **ret, const char *path, int which) must_check;
void heap_dump_free(struct heap_dump *d);
DEFINE_CLEANUP(struct heap_dump *, heap_dump_free)
/* Passes over all objects once: classes, counts, sizes, roots, chunks. 0 or negative errno. */
int heap_dump_survey(struct heap_dump *d) must_check;
/* From what an index remembers: the same without passing over the objects. */
int heap_dump_finish_classes(struct heap_dump *d) must_check;
int heap_dump_add_class(struct heap_dump *d, const uint8_t *record, uint64_t len) must_check;
/* A class without a record, as the survey made it up. */
int heap_dump_made_up_class(struct heap_dump *d, uint64_t id) must_check;

/* The string of an id, data NULL when there is none; lies in the file, not terminated. */
struct str heap_dump_string(const struct heap_dump *d, uint64_t id);
/* The class number of a class id; HEAP_NO_CLASS. */
int32_t heap_dump_class(const struct heap_dump *d, uint64_t id);
int32_t heap_dump_class_named(const struct heap_dump *d, const char *name);
/* The class number of an object's item; a class object's is java.lang.Class. HEAP_NO_CLASS when its class is missing. */
int32_t heap_dump_class_of(const struct heap_dump *d, const struct hprof_item *item);
/* Bytes that an array takes in the VM. */
uint64_t heap_array_size(const struct heap_shape *s, unsigned type, uint64_t count, unsigned id_size);
/* Shallow size of an object's item. */
uint64_t heap_item_size(const struct heap_dump *d, const struct hprof_item *item);

struct heap_field {
    const char *name; /* of the names pool of the dump */
    uint8_t type;
    int32_t class;   /* that declares it */
    uint32_t offset; /* in the values of an instance */
};

/* The i-th instance field of a class, its own first, then its super classes'. False beyond the last. */
bool heap_field_at(struct heap_dump *d, int32_t class, unsigned i, struct heap_field *ret);
/* The field of that name in a class or its super classes. */
bool heap_field_named(struct heap_dump *d, int32_t class, const char *name, struct heap_field *ret);
bool heap_class_is(const struct heap_dump *d, int32_t class, int32_t base);

/* Runs work(ctx, i) for i in 0 .. n-1 on `threads` threads, each told its number below `threads`. The first error, else 0. */
int heap_parallel(unsigned threads, uint64_t n, int (*work)(void *ctx, unsigned thread, uint64_t i), void *ctx) must_check;
