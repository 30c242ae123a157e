/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a session. format=r: a recording, written by any thread and by signal handlers
 * through src/jfr. format=a, b: a file or a connection (net=) that receives HPROF text or records
 * in order; under out.lock.
 */
#pragma once

#include "hprof/text.h"
#include "hprof/writer.h"
#include "jfr/reader.h"
#include "options/formats.h"
#include "options/options.h"

#include <pthread.h>

struct dictionary;
struct jfr_writer;
struct net;

struct out {
    const struct out_format *format;
    char *path;
    int fd;          /* of HPROF in a file; otherwise -1 */
    struct net *net; /* of HPROF with net=; otherwise NULL */
    pthread_mutex_t lock;
    struct hprof_text text;     /* of HPROF text */
    struct hprof_writer binary; /* of HPROF records; id size 8 */
    uint64_t header_ns;         /* of HPROF records: when their header was written (now_ns) */
    /* of HPROF records: totals beyond 32 bits that have been reported to the user */
    unsigned saturated_reported;
    struct dictionary *dictionary; /* of HPROF */
    uint64_t written;
    int error;              /* the first failed write; never cleared */
    uint64_t lost;          /* events of a recording that were lost because of it */
    bool cut;               /* another process cut the file of a recording short */
    struct jfr_writer *jfr; /* of a recording */
    int older;              /* the ring that it is going to replace, locked; -1: none */
    bool keeps_writer;      /* its memory is not freed, because threads may still use it */
    uint64_t opened_ns;     /* of a recording */
    char *appended; /* of a recording: a file whose content is appended at the end, or NULL */
    const struct rec_select *not_appended; /* types of events of that file that are left out */
};

/*
 * Opens the output according to the options. *ret must not be moved afterwards. Returns 0, or a
 * negative errno with a sentence in why (none for -ENOMEM).
 */
int out_open(struct out *ret, const struct options *o, struct buf *why) must_check;
/*
 * Makes the file of a recording take the place of an older one. Until then the older one stays, so
 * that it is not lost if the recording cannot begin. Returns 0, or a negative errno with a sentence
 * in why.
 */
int out_publish(struct out *out, struct buf *why) must_check;
/* Returns whether the output is the file at its path, if anything is there. */
bool out_has_name(const struct out *out);
/* Sets the time of the HPROF records that follow. */
void out_stamp(struct out *out);
/* Writes CONTROL SETTINGS (HPROF records) with the current options. */
void out_settings(struct out *out, const struct options *o);
/*
 * Begins a section of HPROF text, which is built in memory, so that nothing else can appear inside
 * it. out_section_close appends it to the output and releases both.
 */
void out_section_open(struct hprof_text *ret, struct buf *bytes);
void out_section_close(struct out *out, struct hprof_text *t, struct buf *bytes);
/*
 * Makes the end of a recording append the chunks of the recording in another file, without its
 * events of the given types, and remove that file. `without` is not copied. Returns 0 or -ENOMEM.
 */
int out_append_later(struct out *out, const char *path,
                     const struct rec_select *without) must_check;
/*
 * Returns whether another process has cut the file of a recording short, so that the recording
 * cannot continue.
 */
bool out_is_cut(const struct out *out);
/*
 * Writes buffered data to the file. Returns 0, or the negative errno of a failure that caused a
 * loss: -ESTALE for a recording whose file was cut short.
 */
int out_flush(struct out *out);
/* Writes buffered data to the file and closes the output. Returns as out_flush. */
int out_close(struct out *out);
/* Appends lines "ring.NAME N" for a ring. */
void out_ring_status(const struct out *o, const struct options *options, struct buf *out);
/* Appends lines "lost.CAPTURE.THING N" for a recording. */
void out_lost_status(const struct out *o, struct buf *out);
/*
 * Writes a sentence for the result of out_flush or out_close: the system's reason and, if known,
 * how much was lost.
 */
void out_describe(const struct out *out, int error, char *text, size_t size);
