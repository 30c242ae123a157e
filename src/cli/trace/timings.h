/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that the JDK's recorder timed (jdk.MethodTiming, JDK 25 and later). */
#pragma once

#include "base/json.h"
#include "base/vec.h"
#include "jfr/reader.h"

struct timing {
    const struct rec_method *method; /* as long as the recording */
    int64_t at_ns;                   /* of the event, ns since 1970 */
    int64_t calls;
    int64_t least_ns, average_ns, most_ns; /* negative: unknown */
};

struct timings {
    VEC(struct timing) rows;
};

void timings_release(struct timings *t);
/*
 * Reads the timings of a recording, the most time first, which changes its selection and position.
 * The caller zeroes *ret before and releases it in any case. Returns 0 or a negative errno.
 */
int timings_read(struct timings *ret, struct recording *r) must_check;
/* Prints the timings as a table, or nothing without rows. */
void timings_print(const struct timings *t);
/* Writes the member "timings" of the open object. */
void timings_json(const struct timings *t, struct json *j);
