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
enum { PAGE_TIMELINE_NODES = 400000, PAGE_THREAD_STATISTICS = 64 };

/* The tables of monitor statistics as an object, of the threads that are marked (NULL: all). 0 or -ENOMEM. */
int page_statistics_json(struct json *j, const struct timeline *t, const uint8_t *threads) must_check;

/*
 * served: the page asks the server for what it shows; state changes, stacks and segments of the path are left out.
 */
int page_timeline_json(struct json *j, const struct timeline *t, bool served) must_check;
