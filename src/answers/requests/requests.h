/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of the command and the page's server about the requests of a recording: how long those of
 * each name took and why, and how the slow ones differ from the typical ones.
 */
#pragma once

#include "analysis/request_allocated.h"
#include "analysis/request_fields.h"
#include "analysis/request_without.h"
#include "analysis/request_words.h"
#include "base/buf.h"
#include "base/json.h"

/* The share of the requests of a name that counts as slow without --slowest. */
#define SLOWEST_SHARE 0.01

/* How many frames of a stack are printed without --stacks. */
enum { REQUEST_FRAMES = 12 };

struct request_options {
    bool json;
    const char *name, *thread; /* patterns */
    double slowest;            /* a share; 0: SLOWEST_SHARE */
    uint64_t over_ns, from_ns, to_ns, limit, stacks;
};

struct request_view {
    const char *path;
    const struct request_options *options;
    struct requests r;
    struct timeline *t;
    struct request_ledger *l;
};

/*
 * Reads a recording in place, because the ledger keeps the address of the requests. Returns 0,
 * -ENODATA when no request is selected, or a negative errno with the reason in why.
 */
int request_view_load(struct request_view *ret, const struct request_options *o, const char *path,
                      struct buf *why) must_check;
void request_view_free(struct request_view *v);

/* ---- the rows of the names */

/* What a name's row has in addition to the name itself; by number of the name. */
struct request_rows {
    struct name_sums *sums;
    struct name_allocated *allocated;
};

/*
 * Computes the rows of the names. Returns 0 or -ENOMEM. The caller releases the rows in any case.
 */
int request_rows_of(struct request_view *v, struct request_rows *ret) must_check;
void request_rows_release(struct request_rows *rows);

enum { REQUEST_QUANTILES = 4 };

/* The quantiles of a row, and the names of their members in JSON. */
extern const struct request_quantile_row {
    const char *key;
    double share;
} request_quantiles[REQUEST_QUANTILES];

#define REQUEST_COUNTED_BY_SITE \
    "not known, because allocations were counted by site, not by request"

/* Returns a note about what the cause cpu includes, or NULL if it is CPU time. */
const char *request_cpu_note(const struct request_view *v);
/* Returns the cause that costs most of a name's time. */
enum request_cause request_most(const struct name_sums *s);
/* Returns the mean of a sum over the requests of a name. */
uint64_t request_each(double sum, const struct name_sums *s);
/* Returns ns / whole, or 0 if `whole` is 0. */
double request_part_of(double ns, double whole);
/*
 * Returns the length of the time, in seconds, in which the requests of the table, or of one of its
 * names, could begin. counted: up to the last count instead of the recording's end; counts of a
 * recording whose end is missing are older than the rest of it.
 */
double request_seconds(const struct request_view *v, bool counted);
/* Returns how many requests of a name began per second, on average over the selected time. */
double request_rate(const struct request_view *v, const struct request_name *n);

/* ---- slow requests */

enum { REQUEST_CAUSES_ANSWERED = 8, REQUEST_EXAMPLES = 3 };

struct request_groups {
    VEC(struct request_group) rows;
};

/* Finds the slow requests of each name, the costliest first. Returns 0 or -ENOMEM. */
int request_groups_collect(struct request_view *v, struct request_groups *ret) must_check;
void request_groups_release(struct request_groups *g);
/*
 * Computes what the latencies would be without each of the first causes. Returns the number of
 * causes, or -ENOMEM.
 */
int request_group_without(const struct request_view *v, const struct request_group *g,
                          struct request_without ret[REQUEST_CAUSES_ANSWERED]);
/* Returns the k-th slowest request of a group, from 0. */
const struct request *request_slowest(const struct request_view *v, const struct request_group *g,
                                      uint32_t k);

/*
 * Stores what the thread of a part did for most of the part's time; zeroes where that is unknown.
 * Returns 0 or -ENOMEM.
 */
int request_part_own(struct request_view *v, const struct request_part *p,
                     struct group_culprit *ret) must_check;

/* ---- in words */

/* Appends a number such as "6,000". */
void request_put_count(struct buf *b, uint64_t n);
/*
 * Appends what the requests waited for: ": held by thread compactor in Store.compact, 118 of 119
 * ms".
 */
void request_put_culprit(struct buf *b, const struct group_cause *c);
/* Appends one sentence about a group: how many requests are slow, and what most of them did. */
void request_put_group(struct buf *b, const struct request_view *v, const struct request_group *g);
/*
 * Appends how much of the time of a group's requests can be waits that were left out. Returns
 * false, with nothing appended, when none were.
 */
bool request_put_hidden(struct buf *b, const struct request_group *g);

/* ---- JSON */

/* Writes the key "example" with the path of one of a name's requests, or null. */
void request_example_json(const struct request_view *v, const struct request_name *n,
                          struct json *j);
/* Writes a stack as an array. */
void request_frames_json(struct json *j, const struct request_view *v, const struct frames_ref *f);
/* Writes the key "cpu_note", which is null where there is no such note. */
void request_cpu_note_json(const struct request_view *v, struct json *j);
/* Write the JSON arrays of `requests --json` and `requests slow --json`. Return 0 or -ENOMEM. */
int requests_names_json(struct request_view *v, struct json *j) must_check;
int requests_groups_json(struct request_view *v, struct json *j) must_check;

/*
 * Writes the requests of a recording for the page: names, groups, counts by time and latency, and
 * some of the requests with their parts. ret_fields, which may be NULL, receives for which fields
 * of these counts each thread worked; nothing is set when there are too many. Returns 0 or a
 * negative errno: -ENOENT, with nothing written, when the file contains none, and the errors of
 * request_view_load.
 */
int requests_page_json(const char *path, struct json *j,
                       struct request_fields *ret_fields) must_check;
