/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu=times writes: the CPU TIME section of HPROF's text, or the pairs of cpu=old. */
#pragma once

#include "agent/capture/times/tree.h"

#include <jvmti.h>

struct session;

/*
 * The measured cost of the probes. With clock=elapsed the two readings of a call show more than its
 * time, and the excess is not constant: a processor executes the first nanoseconds of a call while
 * it is still finishing the reading of the clock. The readings were therefore calibrated with known
 * amounts of work.
 */
enum { TIMES_CURVE = 7 };

struct times_report_costs {
    double call_ns;      /* of entry and exit together */
    double count_ns;     /* of the probe of a small method */
    int32_t calibration; /* the method whose calls were measured; omitted from the report */
    uint32_t points;     /* number of points of the curve; 0 with clock=cpu */

    struct times_point {
        double true_ns, seen_ns; /* for a call; both increase strictly along the curve */
    } curve[TIMES_CURVE];
};

/*
 * Writes what was counted since the session's previous report, as *ret_events events of a
 * recording. Requires the session's lock. With `save` (of a recording, between reports) a tree with
 * many call paths is written only as totals by method, which is cheap for any size of the tree; the
 * next report contains the same calls by stack. unread_ns is the CPU time without a reading; it is
 * a row of its own. elapsed: calls were timed (clock=elapsed); by_thread: stacks of different
 * threads are kept apart (thread=y). Returns 0 or a negative errno.
 */
int times_report(struct session *s, JNIEnv *jni, const struct times_tree *t,
                 const struct times_report_costs *costs, uint64_t unread_ns, bool elapsed,
                 bool by_thread, bool save, uint64_t *ret_events) must_check;
void times_report_release(void);
