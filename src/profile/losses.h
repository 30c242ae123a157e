/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording says that it lost: its jvmscope.Lost events, summed up by capture, kind and
 * reason (doc/format.md). Every view reports losses from this list and in these sentences. The loss
 * events of the JDK's recorder, jdk.DataLoss and jdk.CPUTimeSamplesLost, are read too.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/vec.h"
#include "jfr/reader.h"

#include <string.h>

struct loss {
    char *capture, *what, *reason; /* "trace", "calls", "the buffer of the thread was full" */
    char *of; /* what held the lost things, such as "sites" for bytes; "" if nothing did */
    uint64_t amount;
    int64_t from_ns, to_ns; /* the time span of the losses, in ns since 1970 */
};

/*
 * A kind of data of which less was recorded for a while, to stay within the budget (jvmscope.Budget
 * events).
 */
struct reduced {
    char *what;                      /* "CPU samples" */
    uint64_t one_of;                 /* one in this many was kept when it was reduced most */
    int64_t from_ns, to_ns, last_ns; /* ns since 1970; last_ns: the last event, see ongoing */
    bool ongoing;                    /* otherwise to_ns is its end */
};

/*
 * The time up to which the counts of a capture are complete. Counts are saved every few seconds, so
 * those of a program that was killed are older than its last events (jvmscope.Counted events).
 */
struct counted {
    char *capture;
    int64_t until_ns; /* ns since 1970 */
};

/*
 * A capture that recorded before the recording began, while classes were still being changed
 * (jvmscope.RecordedBefore events).
 */
struct early {
    char *capture;
    uint64_t ns; /* how long before */
};

/*
 * Events of the VM's own recorder that are not in the recording, because it has those of jvmscope
 * (jvmscope.LeftOut events). Nothing is lost with them, and no figure counts both.
 */
struct twice {
    char *type; /* "jdk.ExecutionSample" */
    uint64_t events;
};

/*
 * Something that was to be recorded and that the system did not permit (jvmscope.Missing events).
 */
struct missing {
    char *capture, *what, *reason; /* "cpu", "no kernel frames", "perf_event_open is refused" */
};

struct losses {
    VEC(struct loss) rows;
    VEC(struct missing) missing;
    VEC(struct twice) left_out;
    VEC(struct early) early;
    VEC(struct reduced) reduced;
    VEC(struct counted) counted; /* to be reported when the recording is unended or cut */
    int64_t start_ns; /* the start of the recording, from which the times in sentences count */
    /* written by our agent and never closed: it is still recording, or it was killed */
    bool unended;
    bool cut; /* the file ends before the recording does */
    /* what is wrong with bytes that cannot be read, in or after it; "" if none, or it is cut */
    char damage[160];
    /* in seconds from the start of an unended recording: its last event; up to where it is whole */
    double end_s, flushed_s;
};

void losses_release(struct losses *l);

/* The events by which a recording says that it lost something. */
#define LOSSES_SELECT(tag)                                                              \
    {"jvmscope.Lost", tag}, {"jvmscope.Budget", tag}, {"jvmscope.RecordedBefore", tag}, \
        {"jvmscope.LeftOut", tag}, {"jvmscope.Missing", tag}, {"jdk.DataLoss", tag},    \
    {                                                                                   \
        "jdk.CPUTimeSamplesLost", tag                                                   \
    }
/* Returns how many things an event of LOSSES_SELECT reports as lost; 0 if it reports no loss. */
uint64_t losses_amount(const struct rec_event *e);
/*
 * Reads all of a recording, which changes its selection and position. any: whether the recording
 * may hold events of LOSSES_SELECT; if it is known to hold none, its headers are enough, provided
 * that it was ended. Returns 0 or a negative errno, after which losses_release is still needed.
 */
int losses_read(struct losses *ret, struct recording *r, bool any) must_check;

/*
 * Reads the losses of a file; `any` as in losses_read. A file that is not a recording, or cannot be
 * read, has none.
 */
void losses_read_file(struct losses *ret, const char *path, bool any);

/* Adds the losses of another recording, each at its time since 1970. Returns 0 or -ENOMEM. */
int losses_merge(struct losses *to, const struct losses *from) must_check;

/*
 * Returns whether another loss held this one, as lost sites hold the bytes that they counted. The
 * sentence and the JSON of the other loss state this one as well, and no sum includes it.
 */
bool loss_is_held(const struct losses *l, const struct loss *loss);

/* The captures on which the figures of a view are based; NULL at the end. */
extern const char *const losses_of_trace[],
    *const losses_of_exceptions[], *const losses_of_coverage[], *const losses_of_threads[],
                                                                    *const losses_of_requests[];
extern const char *const losses_of_profile[], *const losses_of_vm[];
/* Returns whether a capture is in the list; always true for NULL. */
bool losses_is_of(const char *const *captures, const char *capture);

/* Like losses_is_of, but what was lost of the recording as a whole concerns every view. */
static inline bool losses_concern(const char *const *captures, const char *capture)
{
    return losses_is_of(captures, capture) || strcmp(capture, "recording") == 0;
}

/*
 * Returns how many of the things that were lost concern a view with these captures; NULL: how many
 * the recording lost, which is the same number in every view.
 */
uint64_t losses_sum(const struct losses *l, const char *const *captures);
/*
 * Writes a sentence such as "trace: 12 calls were lost between 0.51 s and 0.83 s: the buffer of
 * the thread was full", or "alloc: 3 sites with 70 objects and 9120 bytes were lost ...".
 */
void loss_sentence(const struct losses *l, const struct loss *loss, struct buf *out);
/*
 * Appends "times: some was recorded up to 7.20 s before the recording began, while classes were
 * changed"
 */
void losses_early_sentence(const struct early *e, struct buf *out);
/*
 * Appends a sentence such as "cpu: no kernel frames: perf_event_open is refused (Operation not
 * permitted)".
 */
void losses_missing_sentence(const struct missing *m, struct buf *out);
/*
 * If events were left out, appends a sentence such as "32 jdk.ExecutionSample and 4 jdk.ThreadPark
 * events of the VM's own recorder were left out: jvmscope recorded the same itself". Returns
 * whether it appended one.
 */
bool losses_left_out_sentence(const struct losses *l, struct buf *out);
/*
 * Appends a sentence such as "budget: between 3.10 s and 60.25 s as few as one in 16 stacks of
 * short waits were kept, to stay within the budget".
 */
void reduced_sentence(const struct losses *l, const struct reduced *r, struct buf *out);
/*
 * If the recording was not ended, or the file is cut, appends a sentence about what is missing,
 * with the times of the last counts of captures that only count. Returns whether it appended one.
 */
bool losses_unended_sentence(const struct losses *l, struct buf *out);
/*
 * Writes members of the open object: "lost", how much the recording lost; "lost_here", how much of
 * that concerns these captures (left out if captures is NULL); the lists "losses" of all captures,
 * "reduced" (what the budget reduced), "missing" (what was not permitted), "left_out" (what was
 * recorded twice) and "before" (the captures that recorded before the recording began, and for how
 * long); "unended", whether the end is missing; and "counted", the times up to which the captures'
 * counts are complete if it is.
 */
void losses_json(const struct losses *l, const char *const *captures, struct json *j);
/*
 * Writes the members of losses_json for a file. any: false when it is known that nothing was lost,
 * so that only the headers of the file need to be read.
 */
void losses_json_of_file(const char *path, const char *const *captures, bool any, struct json *j);
