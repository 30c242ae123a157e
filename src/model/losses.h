/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording says that it lost: its jvmscope.Lost events summed up by capture, thing and
 * reason (doc/format.md). Every view tells losses by this list and in these sentences. Other
 * recorders' jdk.DataLoss is read too.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/vec.h"
#include "jfr/reader.h"

struct loss {
    char *capture, *what, *reason; /* "trace", "calls", "the buffer of their thread was full" */
    uint64_t amount;
    int64_t from_ns, to_ns; /* between which it was lost; since 1970 */
};

struct losses {
    VEC(struct loss) rows;
    int64_t start_ns; /* of the recording, which sentences count from */
    bool unended;     /* written by our agent and never ended: it still records, or it was killed */
    double end_s;     /* up to when an unended recording reaches, from its start */
};

void losses_release(struct losses *l);

/* Adds one event of the types below; 0 or -ENOMEM. */
int losses_add(struct losses *l, const struct rec_event *e) must_check;
#define LOSSES_SELECT(tag)  \
    {"jvmscope.Lost", tag}, \
    {                       \
        "jdk.DataLoss", tag \
    }
/* When all events have been read: what the recording itself says of its span and end. */
void losses_of_recording(struct losses *l, const struct recording *r);
/* Reads all of a recording; its selection and position are changed. 0 or negative errno. */
int losses_read(struct losses *ret, struct recording *r) must_check;

/* Adds the losses of another recording, each at its time since 1970. 0 or -ENOMEM. */
int losses_merge(struct losses *to, const struct losses *from) must_check;

/* What the figures of a view are made of: names of captures, NULL at the end. */
extern const char *const losses_of_trace[],
    *const losses_of_exceptions[], *const losses_of_coverage[], *const losses_of_threads[];
/* Whether a capture is one of them; always for NULL. */
bool losses_is_of(const char *const *captures, const char *capture);
/* How many things these captures lost; all of them for NULL. */
uint64_t losses_sum(const struct losses *l, const char *const *captures);
/* "trace: 12 calls were lost between 0.51 s and 0.83 s: the buffer of their thread was full" */
void loss_sentence(const struct losses *l, const struct loss *loss, struct buf *out);
/* "it was never ended: what came after 12.3 s is missing"; nothing when it was. False: nothing. */
bool losses_unended_sentence(const struct losses *l, struct buf *out);
/*
 * The members "lost", "losses" and "unended" of the object that is open. "lost" counts what these
 * captures lost (NULL: all), "losses" tells what was lost of any.
 */
void losses_json(const struct losses *l, const char *const *captures, struct json *j);
