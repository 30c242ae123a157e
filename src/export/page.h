/* SPDX-License-Identifier: Apache-2.0 */
/* The page of web/, bundled at build time: HTML with the data between head and tail. Empty when npm or its packages were
 * missing then. */
#pragma once

#include "export/export.h"
#include "model/timeline.h"

extern const char page_head[], page_tail[];

/* What the page shows of a recording, as JSON: the profile, and its threads when the recording has them. 0 or -ENOMEM. */
int page_of_recording(const struct export_source *s, struct buf *out) must_check;
/* True when anything beyond the threads' beginnings was recorded: a profile alone has no timeline worth showing. */
bool page_has_threads(const struct timeline *t);
/* Head, data, tail. */
void page_write(FILE *out, const struct buf *data);
