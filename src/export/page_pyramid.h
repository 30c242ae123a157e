/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads in one file when there are more state changes than it can hold: pictures of them, coarse and finer, as the server
 * would answer them, and what is known of each state that is wide enough to be seen in one (web/src/pyramid.ts reads it).
 */
#pragma once

#include "analysis/critical_path.h"
#include "base/json.h"
#include "model/timeline_view.h"

/* Bytes of pictures, of which base64 makes 4/3; states that are known one by one; threads in a picture. */
enum { PYRAMID_BYTES = 12 << 20, PYRAMID_NODES = 300000, PYRAMID_GROUP = 64 };

/* Writes the members "pyramid", "contexts", "objects", "stacks" and "strings" into the object that is open. 0 or -ENOMEM. */
int page_pyramid_json(struct json *j, const struct timeline *t, const struct critical_path *path) must_check;

/* Contexts and objects that are marked (NULL: all), stacks and strings: members of the object that is open. 0 or -ENOMEM. */
int page_contexts_json(struct json *j, const struct timeline *t, const uint32_t *contexts, size_t n) must_check;

/* Segments of the path in the range, one a pixel: time since the beginning of the one before, length, thread, number, edge. */
void page_path_picture(const struct critical_path *p, const struct view_range *r, struct buf *out);
