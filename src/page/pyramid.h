/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts threads with too many state changes into one file: pictures of them at increasing
 * resolution, as the server would send them, and details of each state that is wide enough to be
 * visible in one. web/src/pyramid.ts reads it.
 */
#pragma once

#include "analysis/critical_path.h"
#include "base/json.h"
#include "timeline/view.h"

/*
 * The limits for bytes of pictures (which base64 makes 4/3 as large) and for states with details;
 * the number of threads in a picture.
 */
enum { PYRAMID_BYTES = 12 << 20, PYRAMID_NODES = 300000, PYRAMID_GROUP = 64 };

/*
 * Writes the members "pyramid", "contexts", "objects", "stacks" and "strings" into the open object.
 * Returns 0 or -ENOMEM.
 */
int page_pyramid_json(struct json *j, const struct timeline *t,
                      const struct critical_path *path) must_check;

/*
 * Writes n contexts, given by their numbers (NULL: the first n), with their objects, and all stacks
 * and strings, as members of the open object. Returns 0 or -ENOMEM.
 */
int page_contexts_json(struct json *j, const struct timeline *t, const uint32_t *contexts,
                       size_t n) must_check;

/*
 * Writes the segments of the path in the range, one for each pixel, after their number: time since
 * the beginning of the previous one, length, thread, number, edge (+ 16 if it is inferred).
 */
void page_path_picture(const struct critical_path *p, const struct view_range *r, struct buf *out);
