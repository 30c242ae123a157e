/* SPDX-License-Identifier: Apache-2.0 */
/* What the page shows of threads, as JSON (web/src/timeline.ts reads it). */
#pragma once

#include "base/json.h"
#include "model/timeline.h"

/*
 * Writes the member "timeline" into the object that is open: threads, state changes with their causes, stacks, the critical
 * path and the tables of monitor statistics. Beyond PAGE_TIMELINE_NODES state changes there are pictures of them instead
 * (page_pyramid.h); beyond PAGE_SEGMENTS the path is in those alone. 0 or -ENOMEM.
 */
enum { PAGE_TIMELINE_NODES = 400000, PAGE_SEGMENTS = 200000, PAGE_THREAD_STATISTICS = 64, PAGE_STATISTICS_BYTES = 8 << 20 };

/* Threads times classes of which the page is told who uses which. */
enum { PAGE_CLASSES_USERS = 16 << 20 };

/* The tables of monitor statistics as an object, of the threads that are marked (NULL: all, and by class
 * which threads use its locks). 0 or -ENOMEM. */
int page_statistics_json(struct json *j, const struct timeline *t, const uint8_t *threads) must_check;

/*
 * served: the page asks the server for what it shows; state changes, stacks and segments of the path are left out.
 */
int page_timeline_json(struct json *j, const struct timeline *t, bool served) must_check;
