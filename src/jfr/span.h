/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/macro.h"

#include <stdint.h>

/* The part of its recorder's clock (ticks, which are never adjusted) that a recording covers. */
struct jfr_span {
    int64_t first, end; /* ticks */
    /* the time of tick 0 since 1970, by which the recording's times are converted */
    int64_t epoch_ns;
};

/*
 * Reads the span from the headers of a recording's chunks. Returns 0, -EBADMSG when the file is not
 * a recording, or the negative errno with which reading failed.
 */
int jfr_span_read(const char *path, struct jfr_span *ret) must_check;
