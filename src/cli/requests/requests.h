/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of `jvmscope requests` share: options, what is read, and how causes are told. */
#pragma once

#include "analysis/request_groups.h"
#include "base/buf.h"
#include "base/json.h"
#include "cli/commands.h"

struct request_options {
    bool json;
    const char *name, *thread; /* patterns */
    const char *slowest;       /* "1%" */
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
 * Reads a recording in place: the ledger keeps the address of the requests. -ENODATA when no
 * request is selected, else a negative errno with the reason in why.
 */
int request_view_load(struct request_view *ret, const struct request_options *o, const char *path,
                      struct buf *why) must_check;
/*
 * The same of what an operand names. 0, or the exit status after
 * a complaint, which says `none` of a recording without requests.
 */
int request_view_open(struct request_view *ret, const struct request_options *o, const char *path,
                      const char *none);
void request_view_free(struct request_view *v);
/* Ends a verb: tells what the recording lost, and releases it. The exit status. */
int request_view_close(struct request_view *v, int status);

/* The share of --slowest, 0.01 without it; negative when it is no share. */
double request_share(const char *text);
/* Whether --slowest and --over can be answered; else a complaint was made. */
bool request_options_check(const struct request_options *o, const char *command);

/* "6,000" */
void put_count(struct buf *b, uint64_t n);
/* "118 of 119 ms" */
void put_part_of(struct buf *b, uint64_t part, uint64_t whole);
/* What a cause is, with where the slow requests were: "lock of class Store in App.stock". */
void put_cause(struct buf *b, const struct group_cause *c);
/* Who and what made them wait: ": held by thread compactor in Store.compact, 118 of 119 ms". */
void put_culprit(struct buf *b, const struct group_cause *c);
/* One sentence about a group: how many are slow, and what most of them did. */
void put_group_sentence(struct buf *b, const struct request_view *v, const struct request_group *g);
/* A stack as a JSON array, or as lines that begin with so many spaces. */
void json_frames_ref(struct json *j, const struct request_view *v, const struct frames_ref *f);
void print_frames_ref(const struct request_view *v, const struct frames_ref *f, size_t limit,
                      int indent);

/* Arrays of JSON: what `requests --json` and `requests slow --json` tell. 0 or -ENOMEM. */
int requests_names_json(struct request_view *v, struct json *j) must_check;
int requests_groups_json(struct request_view *v, struct json *j) must_check;

/* brief: what fits on one screen, without stacks. */
int requests_slow(struct request_view *v, bool brief);
int requests_show(struct request_view *v, const char *id);
