/* SPDX-License-Identifier: Apache-2.0 */
/* What the page shows of a profile, as JSON (web/src/data.ts reads it). */
#pragma once

#include "base/json.h"
#include "model/profile.h"

/*
 * Writes the members "threads", "labels" and "metrics" into the object that is open. Every metric through the filter, as a tree
 * of methods and its weight by time, thread and node. Beyond PAGE_NODES nodes the smallest are counted to their callers and
 * "pruned" tells how many were; beyond PAGE_CELLS cells time becomes coarser, and at last
 * all threads are one ("threads_merged"). 0 or -ENOMEM.
 */
enum { PAGE_NODES = 1000000, PAGE_CELLS = 1200000, PAGE_BUCKETS = 512 };

/* With a blob the numbers are appended to that, and "tree" and "cells" are where: offset and length. Without, they are base64.
 */
int page_profile_json(struct json *j, const struct profile *p, const struct profile_filter *filter,
                      struct buf *blob) must_check;

/* Bytes as a string in base64. Numbers as LEB128 in it are half the size of decimal digits, and quick to read in a browser. */
void json_base64(struct json *j, const struct buf *bytes);
