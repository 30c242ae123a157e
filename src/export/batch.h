/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts recordings into profiles for other programs (wire/batch.h): one for each metric, with
 * the names of threads as the label "thread.name" of samples and, where the recording has requests,
 * the label "request" and the ids of traces and spans.
 */
#pragma once

#include "profile/profile.h"
#include "wire/batch.h"

struct batch_source {
    const char *path; /* of the recording; NULL: requests are not read */
    const struct profile *profile;
    struct profile_filter filter;
    bool only_metric; /* only this one, instead of all that the profile has */
    enum profile_metric metric;
    uint32_t resource; /* a set of labels of the batch */
};

/* Adds the profiles of a recording. Returns 0 or a negative errno with the reason in why. */
int batch_add(struct wire_batch *b, const struct batch_source *s, struct buf *why) must_check;
