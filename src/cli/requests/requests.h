/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of `jvmscope requests` share: options, reading, and the wording of causes. */
#pragma once

#include "analysis/request_words.h"
#include "base/buf.h"
#include "base/json.h"
#include "cli/commands.h"

/* The share of the requests of a name that counts as slow without --slowest. */
#define SLOWEST_SHARE 0.01

struct request_options {
    bool json;
    const char *name, *thread; /* patterns */
    double slowest;            /* a share; 0: SLOWEST_SHARE */
    uint64_t over_ns, from_ns, to_ns, limit, stacks;
};

extern const struct arg_set request_now_set; /* of `jvmscope slow`; fills a request_options */

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
/*
 * Checks that each alternative of a pattern is a name of requests. part: other options have left
 * requests out. Returns 0, or the exit status after a complaint.
 */
int request_names_check(const struct requests *r, const char *path, const char *pattern, bool part);
/*
 * Complains that a recording holds no requests, and says how to record some. Returns the exit
 * status.
 */
int requests_missing(const char *path);
/*
 * Loads the file that an operand names. reported: the end of the recording has said that it holds
 * no requests. Returns 0, or the exit status after a complaint.
 */
int request_view_open(struct request_view *ret, const struct request_options *o, const char *path,
                      bool reported);
void request_view_free(struct request_view *v);
/* Ends a verb: reports what the recording lost and releases it. Returns the exit status. */
int request_view_close(struct request_view *v, int status);

/* Complains and returns false when both --slowest and --over are given. */
bool request_options_check(const struct request_options *o, const char *command);

/* Appends a number such as "6,000". */
void put_count(struct buf *b, uint64_t n);
/* Appends "118 of 119 ms". */
void put_part_of(struct buf *b, uint64_t part, uint64_t whole);
/* Appends what made them wait: ": held by thread compactor in Store.compact, 118 of 119 ms". */
void put_culprit(struct buf *b, const struct group_cause *c);
/* Appends "3.5 %", or "0.04 %" below one. */
void put_share(struct buf *b, double share);
/* Appends one sentence about a group: how many requests are slow, and what most of them did. */
void put_group_sentence(struct buf *b, const struct request_view *v, const struct request_group *g);
/* Writes a stack as a JSON array, or as lines indented by a number of spaces. */
void json_frames_ref(struct json *j, const struct request_view *v, const struct frames_ref *f);
void print_frames_ref(const struct request_view *v, const struct frames_ref *f, size_t limit,
                      int indent);

/* Write the JSON arrays of `requests --json` and `requests slow --json`. Return 0 or -ENOMEM. */
int requests_names_json(struct request_view *v, struct json *j) must_check;
int requests_groups_json(struct request_view *v, struct json *j) must_check;

/* Says how many requests are missing where the figures do not include them. */
void requests_print_not_kept(const struct request_view *v);
/* brief: only what fits on one screen, without stacks. */
int requests_slow(struct request_view *v, bool brief);
int requests_show(struct request_view *v, const char *id);
