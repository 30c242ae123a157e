/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what the page shows of threads as JSON, which web/src/timeline.ts reads. */
#pragma once

#include "base/json.h"
#include "timeline/timeline.h"

/*
 * What page_timeline_json writes: threads, state changes with their causes, stacks, the critical
 * path, and the tables of monitor statistics. Beyond PAGE_TIMELINE_NODES state changes, pictures of
 * them instead (pyramid.h). Beyond PAGE_SEGMENTS segments, the path is only in these pictures.
 */
enum {
    PAGE_TIMELINE_NODES = 400000,
    PAGE_SEGMENTS = 200000,
    PAGE_THREAD_STATISTICS = 64,
    PAGE_PATH_METHODS = 20,
    PAGE_STATISTICS_BYTES = 8 << 20
};

/*
 * The largest product of threads and classes for which the page gets the use of each class by each
 * thread class.
 */
enum { PAGE_CLASSES_USERS = 16 << 20 };

/*
 * Writes the tables of monitor statistics as an object, for the threads that are marked. With NULL
 * they are for all threads, and include which threads use the locks of each class. Without `idle`,
 * waits of idle threads (timeline/idle.h) are only counted. Returns 0 or -ENOMEM.
 */
int page_statistics_json(struct json *j, const struct timeline *t, const uint8_t *threads,
                         bool idle) must_check;

/*
 * Writes the member "timeline" into the open object. file: the recording, whose CPU samples show
 * what ran on the path. served: the page asks the server for what it shows, so state changes,
 * stacks and segments of the path are left out. Returns 0, -ENOMEM, or another negative errno when
 * the file cannot be read.
 */
int page_timeline_json(struct json *j, const struct timeline *t, const char *file,
                       bool served) must_check;
/* Writes a stack's frames, the innermost first, as the member "frames" of the open object. */
void page_frames_json(struct json *j, const struct timeline *t, uint32_t stack);
