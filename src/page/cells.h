/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a metric, of which the page sums up those that are selected (page/data.h). */
#pragma once

#include "analysis/request_fields.h"
#include "base/json.h"
#include "profile/profile.h"

/*
 * The call tree of a metric with nodes merged by method, and the mapping from nodes of the profile
 * to nodes of this tree.
 */
struct page_tree {
    VEC(struct profile_tree_node) nodes;
    uint32_t *of_node;
    size_t pruned;
};

/* The sets of fields of requests in use, numbered in the order of their first use. */
struct page_sets {
    const struct request_fields *fields; /* NULL: none */
    uint32_t *number;                    /* by set: 1 + its number; 0: not in use */
    VEC(uint32_t) used;
};

/* Writes bytes as base64, or appends them to the blob, if there is one, and writes their place. */
void page_put_bytes(struct json *j, const struct buf *bytes, struct buf *blob);
/*
 * Writes the weight by time, thread and node. If many threads ran many stacks, the threads are
 * merged; one cell per node always fits. plain has a profile if some samples are to be marked: it
 * is the view without them.
 */
int page_cells_json(struct json *j, const struct profile_view *v, const struct profile_view *plain,
                    const struct page_tree *tree, struct buf *blob) must_check;
/*
 * Writes "by_request": the weight of the samples in requests by set of fields, thread and node.
 * Writes nothing for metrics whose samples have no times of their own.
 */
int page_by_request_json(struct json *j, const struct profile_view *v,
                         const struct profile_view *plain, const struct page_tree *tree,
                         struct page_sets *sets, struct buf *blob) must_check;
/*
 * Writes "request_sets": the sets in use, of each the number of its fields, and name, column and
 * row of each field.
 */
int page_sets_json(struct json *j, const struct page_sets *s, struct buf *blob) must_check;
