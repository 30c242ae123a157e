/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what the page shows of a profile as JSON, which web/src/data.ts reads. */
#pragma once

#include "analysis/request_fields.h"
#include "base/json.h"
#include "profile/profile.h"

/*
 * What page_profile_json writes: the members "threads", "labels" and "metrics", each metric, with
 * the filter applied, as a tree of methods and as weight by time, thread and node. Beyond
 * PAGE_NODES nodes the smallest are added to their callers and "pruned" says how many nodes there
 * were. Beyond PAGE_CELLS cells time becomes coarser, and finally all threads are merged
 * ("threads_merged").
 *
 * With fields of requests, a metric whose samples have times also has "by_request": the weight of
 * the samples in requests, by set of fields, thread and node, from which the page sums up any
 * choice of requests. Beyond PAGE_CELLS such cells all threads are merged, and then small nodes are
 * added to their callers, which "pruned" counts. "request_sets" holds the sets.
 */
enum { PAGE_NODES = 1000000, PAGE_CELLS = 1200000 };

/*
 * Writes the members "threads", "labels" and "metrics" into the open object, and "request_sets" if
 * `fields` is neither NULL nor empty. With a blob, numbers are appended to it, and "tree" and
 * "cells" hold their offset and length; otherwise the numbers are base64. Returns 0 or -ENOMEM.
 */
int page_profile_json(struct json *j, const struct profile *p, const struct profile_filter *filter,
                      const struct request_fields *fields, struct buf *blob) must_check;

/*
 * Writes bytes as a base64 string. Numbers encoded as LEB128 in base64 take half as much as decimal
 * digits and are fast to read in a browser.
 */
void page_json_base64(struct json *j, const struct buf *bytes);
