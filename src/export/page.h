/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages from web/, bundled at build time: that of a recording is HTML with the data between
 * head and tail; that of a collector asks for its data, and comes with its Content-Security-Policy.
 * All are empty when npm or its packages were missing.
 */
#pragma once

#include "export/export.h"
#include "model/timeline.h"

extern const char page_head[], page_tail[], page_of_fleet[], page_policy_of_fleet[];

/*
 * Writes what the page shows of a recording as JSON: the profile, and the threads if the recording
 * has them. Returns 0 or -ENOMEM.
 */
int page_of_recording(const struct export_source *s, struct buf *out) must_check;
/*
 * True when more than the starts of threads was recorded; a profile alone has no timeline worth
 * showing.
 */
bool page_has_threads(const struct timeline *t);
/* Writes head, data and tail. */
void page_write(FILE *out, const struct buf *data);
