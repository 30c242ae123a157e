/* SPDX-License-Identifier: Apache-2.0 */
/* What the page shows of threads, as JSON (web/src/timeline.ts reads it). */
#pragma once

#include "base/json.h"
#include "model/timeline.h"

/*
 * Writes the member "timeline" into the object that is open: threads, state changes with their causes, stacks, the critical
 * path and the tables of monitor statistics. Beyond PAGE_TIMELINE_NODES state changes the rest is left out and "cut_ns" says
 * from when on. 0 or -ENOMEM.
 */
enum { PAGE_TIMELINE_NODES = 400000 };

int page_timeline_json(struct json *j, const struct timeline *t) must_check;
