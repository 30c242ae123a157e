/* SPDX-License-Identifier: Apache-2.0 */
/* What the reports of allocation sites share: the rows, brought up to date. */
#pragma once

#include "agent/capture/alloc/sites_private.h"
#include "base/map.h"
#include "jfr/writer.h"

/* A row combines the sites of one class and one trace, as the output distinguishes traces. */
struct site_row {
    uint32_t site; /* the first of these sites */
    uint32_t trace;
    struct estimate live, allocated;
    struct estimate variance; /* of live, estimated from tracked objects */
    struct estimate error;    /* of live, the standard error; set by sites_know_errors() */
    /* allocated and never tracked: it is not known whether they are alive */
    struct estimate unseen;
    double followed; /* objects that were tracked individually */
    double most;     /* the largest number of objects that one tracked object represented */
    /*
     * objects of a stratum that was attributed to another stack of the same place, although this
     * stack may have allocated them; 0: there is no such stratum, or this stack has had some itself
     */
    double missed;
    bool tracked;   /* an object of the row has been tracked */
    bool estimated; /* found only by samples, although exact counts were recorded */
    bool sampled;   /* what is alive comes from the VM's samples */
};

struct site_rows {
    VEC(struct site_row) rows;
    bool by_allocation;
    bool collected; /* a collection has run, so `live` is known */
    /*
     * totals of the rows that are `estimated`; the HPROF sections, which cannot mark them, omit
     * them
     */
    struct estimate estimated;
};

/*
 * Returns the square root of a positive number, and 0 for others. The agent is not linked with
 * libm.
 */
double sites_square_root(double x);
/* Rounds to the nearest integer; negative numbers become 0. */
uint64_t sites_rounded(double x);
/*
 * Appends a row for each site to r. If r->collected, first runs a collection and counts live
 * objects, unless that has been done. Calls `settle`, unless it is NULL, so that the counts are
 * current. flags: HPROF_SITES_*; with HPROF_SITES_INCREMENTAL a row has what was allocated since
 * the last such call. Returns 0, or a negative value when out of memory.
 */
int sites_take_rows(JNIEnv *jni, unsigned flags, sites_settle *settle, struct site_rows *r);
/*
 * Combines sites that HPROF does not distinguish, which differ only in the place on a line or have
 * lineno=n, into one row. Returns 0, or a negative value when out of memory.
 */
int sites_merge_rows(struct session *s, JNIEnv *jni, struct site_rows *r);
/* Sets the standard error of each row's live objects. The rows must be complete. */
void sites_know_errors(struct site_rows *r);
/* Orders the rows as the report ranks them. */
void sites_sort(struct site_rows *r);
/*
 * Returns the lower bound of the row's live bytes, given their standard error. Rows are ranked by
 * it when live bytes are requested, so those whose figure is below its error come last.
 */
double sites_certain_bytes(const struct site_row *r);
struct hprof_heap_totals sites_totals(const struct site_rows *r);
/*
 * Returns the standard error of all live bytes, derived from the tracked objects if there are more
 * than a few.
 */
double sites_error_of_all(const struct site_rows *r);
/*
 * Returns the descriptor of the class of a site's objects. It stays valid until the session ends.
 */
const char *sites_class_of(uint32_t site);
/*
 * Stores a site's frames, innermost first, and its thread (0 without thread=y) in *ret_thread.
 * Returns the number of frames.
 */
uint32_t sites_frames_of(uint32_t site, struct jfr_frame frames[SITE_DEPTH_MAX],
                         uint32_t *ret_thread);

/* ---- sites_recording.c ---- */
/*
 * Writes the rows' changes since the last time as events, adds their number to *ret_events, and
 * returns whether there was room for all. later: a change for which there is no room is left to the
 * next report and does not count as lost.
 */
bool sites_write_recording(struct session *s, JNIEnv *jni, const struct site_rows *r, bool later,
                           uint64_t *ret_events);
