/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the VM stopped all threads or the container had no CPU, as JSON for the strip below the
 * threads, which web/src/bands.tsx draws.
 */
#pragma once

#include "base/json.h"
#include "timeline/timeline.h"

/* The most bands of a kind; if there are more, neighbours are merged. */
enum { PAGE_BANDS = 20000 };

/*
 * Writes the member "bands" into the open object: the names of kinds and events, and for each kind
 * the times, in ns since time 0 of the timeline. Writes nothing when the recording in `file` has
 * none of them. Returns 0 or -ENOMEM.
 */
int page_bands_json(struct json *j, const struct timeline *t, const char *file) must_check;
