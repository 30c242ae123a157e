/* SPDX-License-Identifier: Apache-2.0 */
/* What the requests of each name allocated, in recordings with allocation samples. */
#pragma once

#include "profile/requests.h"

struct name_allocated {
    double bytes;
    /*
     * Half of the 95 % interval. Without a sample it is what could have been allocated all the
     * same.
     */
    double error;
    uint64_t samples;
};

/*
 * Estimates the bytes that all threads allocated while they worked for the requests of each name.
 * Each request counts with its weight. The bytes of a nested request count for the outer one too.
 * Returns 0 or -ENOMEM. The caller frees the array, which has an element for each of
 * requests.names.
 */
int request_allocated(const struct requests *r, struct name_allocated **ret) must_check;
