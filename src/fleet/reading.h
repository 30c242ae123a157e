/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a file that a client uploaded into a batch. */
#pragma once

#include "base/buf.h"
#include "fleet/batch.h"
#include "fleet/hash.h"

#include <strings.h>

struct reading_limits {
    uint64_t unpacked; /* bytes of the file without compression */
    uint64_t memory;   /* bytes that reading it may take */
    uint64_t cpu_s;    /* processor time that reading it may take */
    struct batch_limits batch;
};

extern const struct reading_limits reading_default_limits;

enum fleet_format {
    FLEET_FILE,   /* any file that the command reads */
    FLEET_INGEST, /* the body of Pyroscope's /ingest: a file, or a form with one in it */
    FLEET_OTLP,
    FLEET_PUSH, /* the body of Pyroscope's push.v1.PusherService/Push */
    FLEET_PUSH_JSON
};

/* Times are ns since 1970. */
struct fleet_reading {
    const char *path;
    enum fleet_format format;
    const char *content_type; /* of a form */
    const struct reading_limits *limits;
    int64_t from_ns; /* when a profile began, if it does not say so itself */
    /* How much time a sample stands for where the file does not say; 0: not known. */
    uint64_t interval_ns;
    /*
     * Only events that ended from after_ns on and before until_ns count, because the recordings of
     * a sender may overlap while the parts that count must not. 0: no limit.
     */
    int64_t after_ns, until_ns;
    bool alone; /* the process reads nothing else, and its memory is limited to limits->memory */
    /*
     * The name under which the upload is kept, to which its slowest requests refer; NULL: it is not
     * kept.
     */
    const char *kept;
};

/* Returns whether what ended at a time belongs to the upload. */
static inline bool fleet_reading_includes(const struct fleet_reading *how, int64_t end_ns)
{
    return (!how->after_ns || end_ns >= how->after_ns) &&
           (!how->until_ns || end_ns < how->until_ns);
}

/* The contents of an upload: one batch for each program that it is about. */
struct fleet_batches {
    VEC(struct batch) list;
    struct fleet_hash parts; /* of a form: the hash of its parts' names and contents */
};

/* Returns whether an upload is a form, whose bytes differ each time it is sent. */
static inline bool fleet_reading_is_form(enum fleet_format format, const char *content_type)
{
    return format == FLEET_INGEST && content_type &&
           strncasecmp(content_type, "multipart/", strlen("multipart/")) == 0;
}

void fleet_batches_release(struct fleet_batches *b);

/*
 * Reads a recording or profile in any format that the command knows, gzipped, by zstd or plain; an
 * inner layer (a .pb.gz sent with Content-Encoding: gzip) is unpacked as well. Returns 0, or a
 * negative errno with the reason in why: -EPROTO for what is damaged, -ENOTSUP for what is
 * not a profile, -E2BIG for what is beyond a limit.
 */
int fleet_read(struct fleet_batches *ret, const struct fleet_reading *how,
               struct buf *why) must_check;

/*
 * Reads like fleet_read in a process of its own, with limits on its memory and processor time: a
 * file that makes the reader take too much of either, or crash, is refused (-E2BIG, -EPROTO), and
 * nothing else happens. Safe while other threads run.
 */
int fleet_read_in_process(struct fleet_batches *ret, const struct fleet_reading *how,
                          struct buf *why) must_check;

/*
 * Converts profiles of other programs into batches, one for each program. Defined in
 * reading_wire.c. Returns 0 or a negative errno.
 */
struct wire_batch;
int fleet_batches_of_wire(struct fleet_batches *to, const struct wire_batch *w,
                          const struct fleet_reading *how) must_check;
/*
 * Adds the live objects of a file with pprof or OTLP to its batch: struct profile cannot hold them.
 * Returns 0, or a negative errno with the reason in why.
 */
int reading_wire_live(struct batch *b, const char *path, const struct fleet_reading *how,
                      struct buf *why) must_check;
