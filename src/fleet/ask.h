/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers questions about a store, for the command, the collector's interface and its page. The
 * answer is JSON, which doc/fleet.md describes.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "fleet/compare.h"
#include "fleet/store.h"

struct ask_param {
    const char *key, *value;
};

enum { ASK_LABELS = 32 };

/* A question, read from parameters. Texts are the caller's. */
struct fleet_question {
    struct fleet_choice choice, base; /* base: the samples with which `diff` compares */
    struct fleet_label labels[ASK_LABELS], base_labels[ASK_LABELS];
    const char *metric;
    bool metric_given; /* otherwise an answer without samples is about another metric */
    uint64_t limit;    /* rows; 0: all */
    double price;      /* of an hour of a processor; 0: not given */
    const char *method;
};

/* Checks whether an upload's recording still exists. If that is unknown, it counts as existing. */
struct ask_kept {
    bool (*exists)(void *context, const char *tenant, const char *upload);
    void *context;
};

enum ask_about { ASK_ABOUT_METRIC, ASK_ABOUT_SERVICES, ASK_ABOUT_REQUESTS, ASK_ABOUT_VM };

struct asker {
    struct store *store;
    const struct fleet_question *q;
    struct json *j;
    struct buf *why;
    const char *tenant;          /* the only one whose profiles may be seen; NULL: all */
    const struct ask_kept *kept; /* or NULL */
    enum ask_about about;
    bool found;      /* the answer is not empty */
    uint64_t seen;   /* bit i: a method has the i-th name of the question's list */
    bool base_lacks; /* nothing was found for `base` */
};

/*
 * Appends the answer to `out`. `tenant` limits it to one tenant; NULL: all. `kept` may be NULL. If
 * the parameters name no metric and the selection has no CPU samples, the answer is about the first
 * metric that it has. The member "metric" names the metric. An empty answer has a member "nothing",
 * which names the parameter that excludes everything. Returns
 * 0, or a negative errno with the reason in why: -ENOENT for an unknown verb, -EINVAL for a bad
 * parameter.
 */
int ask_answer(struct store *s, const char *verb, const char *tenant,
               const struct ask_param *params, size_t n, const struct ask_kept *kept,
               struct buf *out, struct buf *why) must_check;

/* Checks parameters without a store. Returns 0 or a negative errno as ask_answer does. */
int ask_check(const struct ask_param *params, size_t n, struct buf *why) must_check;

/*
 * Reads a time: "now", "90m" (90 minutes ago), seconds since 1970, or "2026-11-24",
 * "2026-11-24T10:30" or "2026-11-24 10:30:00", followed by Z in UTC, otherwise in local time.
 * Stores it in seconds since 1970. Returns 0 or -EINVAL.
 */
int ask_time(const char *text, int64_t now_s, int64_t *ret) must_check;

/* ---- the verbs in files of their own, and what they share */

/*
 * The functions of the verbs write the members of the answer to a->j and set a->found unless the
 * answer is empty. They return 0, or a negative errno with the reason in a->why.
 */
int ask_diff(struct asker *a);
int ask_findings(struct asker *a);
int ask_query(struct asker *a);
int ask_requests(struct asker *a);
int ask_services(struct asker *a);
int ask_top_services(struct asker *a);
int ask_vm(struct asker *a);

/*
 * Appends a sentence that names the filter of the choice that left nothing. Returns 0 or a negative
 * errno.
 */
int ask_empty(struct asker *a, const struct fleet_choice *choice, struct buf *to) must_check;
/*
 * Looks for a name among those of a filter of the choice, separated by commas, that no series has,
 * and leaves only this name in the choice. The answer is then empty and says so, instead of hiding
 * that the name was misspelt. Returns 0 or a negative errno.
 */
int ask_narrow(struct asker *a, struct fleet_choice *choice, struct arena *arena) must_check;
/*
 * Returns whether the question's methods contain this one, and remembers which of several names did
 * so: after the answer, ask_unseen_method() returns the first name that none has, or NULL, in the
 * arena's memory.
 */
bool ask_method_matches(struct asker *a, const char *method);
const char *ask_unseen_method(const struct asker *a, struct arena *arena);
/* Returns the store's name of a metric: "cpu" for "samples", the name that `report` uses. */
const char *ask_metric_name(const char *name);
/*
 * Checks the metric of the question. Returns 0, or a negative errno with the reason in a->why:
 * -EINVAL, with the names of all metrics, when the metric is unknown.
 */
int ask_check_metric(struct asker *a) must_check;

/*
 * Sets *ret to the first metric of which the question's selection has samples, whatever metric it
 * asks for; NULL: none. Returns 0 or a negative errno.
 */
int ask_first_metric(struct asker *a, const char **ret) must_check;

/*
 * Returns whether a metric is compared and ranked by its weights (bytes, ns) instead of by samples.
 */
bool ask_counts_weights(const char *metric);
/* Returns the unit of a metric's weights: "bytes" or "ns". */
const char *ask_unit_of(const char *metric);
/*
 * Writes the sums of a metric as members: its name with "_samples", and its name with '_' and the
 * unit (ask_unit_of). Members for samples without a time, for readings and for what was read follow
 * if the sum has any.
 */
void ask_put_sums(struct json *j, const char *metric, struct sum sum);
/*
 * Writes a member "cost", the price of the sum's CPU time, if the question has a price and is about
 * CPU, and the time is known.
 */
void ask_put_cost(struct asker *a, struct sum sum);
void ask_put_double(struct json *j, const char *key, double v);
/*
 * Writes a member "self" (part 0) or "total" (1): m's samples on both sides of c and their change.
 */
void ask_put_change(struct json *j, const struct comparison *c, const struct compared *m, int part);
