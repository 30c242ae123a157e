/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu=times writes: the CPU TIME section of HPROF's text, or the pairs of cpu=old. */
#pragma once

#include "agent/capture/times/tree.h"

#include <jvmti.h>

struct session;

/*
 * What the probes cost, measured. With clock=elapsed what the two readings of a call see is more
 * than its time, and not by a constant: a processor does the first nanoseconds of a call while it
 * still finishes with the clock. So known work was timed.
 */
enum { TIMES_CURVE = 7 };

struct times_report_costs {
    double call_ns;      /* of entry and exit together */
    double count_ns;     /* of a small method's probe */
    int32_t calibration; /* the method whose calls measured it; left out of the report */
    uint32_t points;     /* of the curve; 0 with clock=cpu */

    struct times_point {
        double true_ns, seen_ns; /* of a call; both ascend strictly */
    } curve[TIMES_CURVE];
};

/*
 * The time that a call takes of which the readings saw so much on average. Negative where they saw
 * less than of nothing.
 */
double times_true_ns(const struct times_report_costs *costs, double seen_ns);

/*
 * Writes what was counted since the last report of the session, in *ret_events events of a
 * recording. Under the session's lock. With `save` (a recording's, between reports) a tree of many
 * call paths is written as totals of methods alone, which is cheap however large the tree is; the
 * next report says the same by stacks.
 */
int times_report(struct session *s, JNIEnv *jni, const struct times_tree *t,
                 const struct times_report_costs *costs, bool elapsed, bool by_thread, bool save,
                 uint64_t *ret_events) must_check;
void times_report_release(void);
