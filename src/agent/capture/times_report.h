/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu=times writes: the CPU TIME section of HPROF's text, or the pairs of cpu=old. */
#pragma once

#include "agent/capture/times_tree.h"

#include <jvmti.h>

struct session;

struct times_report_costs {
    double call_ns;               /* of entry and exit together */
    int32_t warm_up, calibration; /* the methods whose calls measured it; left out of the report */
};

/* Writes what was counted since the last report of the session. Under the session's lock. */
int times_report(struct session *s, JNIEnv *jni, const struct times_tree *t, const struct times_report_costs *costs,
                 bool elapsed, bool by_thread) must_check;
void times_report_release(void);
