/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a session's output goes. format=r: a recording, written by any thread and by signal
 * handlers through src/jfr. format=a, b: a file or a connection (net=) that takes HPROF text or
 * records in the order they come; under out.lock.
 */
#pragma once

#include "agent/options.h"
#include "hprof/text.h"
#include "hprof/writer.h"

#include <pthread.h>

struct dictionary;
struct jfr_writer;
struct net;

struct out {
    char format; /* 'a', 'b' or 'r' */
    char *path;
    int fd;          /* of a and b in a file; -1 otherwise */
    struct net *net; /* of a and b with net=; NULL otherwise */
    pthread_mutex_t lock;
    struct hprof_text text;        /* of a */
    struct hprof_writer binary;    /* of b; id size 8 */
    uint64_t header_ns;            /* of b: when its header was written, by now_ns() */
    unsigned saturated_told;       /* of b: totals beyond 32 bits of which the user knows */
    struct dictionary *dictionary; /* of a and b */
    uint64_t written;
    int error;              /* the first failure of a write, sticky */
    uint64_t lost;          /* of r: events that found no room because of it */
    struct jfr_writer *jfr; /* of r */
};

/*
 * Opens the output that the options name. ret must stay where it is. Negative errno with a sentence
 * in why.
 */
int out_open(struct out *ret, const struct options *o, struct buf *why) must_check;
/* Of b: sets the time of the records that follow. */
void out_stamp(struct out *out);
/* Of b: CONTROL SETTINGS as the options are now. */
void out_settings(struct out *out, const struct options *o);
/*
 * Of a: a section that is put together aside, so that nothing else comes to stand within it; close
 * appends it to the output and releases both.
 */
void out_section_open(struct hprof_text *ret, struct buf *bytes);
void out_section_close(struct out *out, struct hprof_text *t, struct buf *bytes);
/* Hands what is buffered to the file; 0, or the first failure by which something was lost. */
int out_flush(struct out *out);
/* The same, and closes. */
int out_close(struct out *out);
/* Of r: lines "lost.CAPTURE.THING N". */
void out_lost_status(const struct out *o, struct buf *out);
/*
 * What out_flush or out_close answered, as a sentence: the system's reason, and how much was lost
 * where that is known.
 */
void out_describe(const struct out *out, int error, char *text, size_t size);
