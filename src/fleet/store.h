/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of the profiles of many machines. The collector and the questions use it only through
 * this interface, which an engine implements by filling in struct store_ops. A store holds each
 * sample in three resolutions, each of which is complete for as long as it is kept. Adding an
 * upload is atomic: if the process is killed at any moment, the store holds all of it or nothing.
 * Adding an upload again changes nothing.
 *
 * A store may be used by several threads, and by several processes at once.
 */
#pragma once

#include "base/buf.h"
#include "fleet/batch.h"
#include "fleet/block.h"

#include <stdbool.h>
#include <stdint.h>

enum { STORE_RESOLUTIONS = 3 };

extern const int64_t store_resolution_s[STORE_RESOLUTIONS]; /* 10 s, 5 min, 1 h */

/* How long each resolution is kept, in seconds. */
struct store_keep {
    int64_t seconds[STORE_RESOLUTIONS];
};

extern const struct store_keep store_keep_default;

struct fleet_label {
    const char *key, *value;
};

/* Who sent an upload. Texts are the caller's; none is NULL. Labels are sorted by key. */
struct fleet_origin {
    const char *tenant, *service, *version, *host, *instance;
    const struct fleet_label *labels;
    size_t n_labels;
};

/* The selection of a question. NULL and 0 select everything. */
struct fleet_choice {
    /* exact, or a pattern if it contains * or ? or begins with = */
    const char *tenant, *service, *version, *host, *instance, *request;
    const struct fleet_label *labels;
    size_t n_labels;
    int64_t from_s, to_s;       /* since 1970; to_s 0: up to the end */
    const char *type;           /* "cpu", "wall" ... */
    enum fleet_name_kind names; /* whose latencies are read */
    /*
     * The caller ignores the times of blocks, and hosts and instances of their series, so they may
     * be wrong.
     */
    bool by_program;
    bool merged;    /* the caller ignores which series a block belongs to */
    int64_t step_s; /* the coarsest resolution that may be used, in seconds; 0: any */
};

/* A series: everything that one origin sent. Valid until store_end. */
struct store_series {
    uint64_t id;
    const char *tenant, *service, *version, *host, *instance;
    const struct fleet_label *labels;
    size_t n_labels;
};

struct store_block {
    const struct store_series *series;
    const char *type, *unit;
    int64_t start_s, length_s;
    uint64_t samples, weight;
    /* NULL when only sums are wanted; limited to the chosen request, if there is one */
    const struct fleet_entries *entries;
};

struct store_latency {
    const struct store_series *series;
    const char *request;
    int64_t start_s, length_s;
    uint64_t count, errors, total_ns, max_ns;
    const struct fleet_count *counts;
    size_t n_counts;
};

struct store_finding {
    const struct store_series *series;
    const char *kind, *text;
    int64_t start_s;
    uint64_t count, weight_ns;
};

/* The frames of a stack, the outermost first. */
struct store_stack {
    const uint32_t *frames; /* numbers of frames, for store_frame */
    size_t depth;
};

struct store_frame {
    const char *label;
    enum fleet_kind kind;
};

/* One consistent view of a store, in which a question is answered. Used by one thread. */
struct store_read;

struct store;

/* An upload that is being added. */
struct store_adding;

struct store_ops {
    int (*add_begin)(struct store *s, const struct fleet_origin *origin,
                     const struct fleet_hash *upload, const struct batch *b,
                     struct store_adding **ret, bool *ret_new, struct buf *why);
    int (*add_end)(struct store *s, struct store_adding *a, bool *ret_new, struct buf *why);
    int (*tidy)(struct store *s, const struct store_keep *keep, int64_t now_s, struct buf *why);
    int (*merge)(struct store *s, struct buf *why); /* NULL: there is nothing to merge */
    void (*close)(struct store *s);
    int (*begin)(struct store *s, const struct fleet_choice *choice, struct store_read **ret,
                 struct buf *why);
    int (*series)(struct store_read *r, int (*visit)(void *, const struct store_series *),
                  void *context);
    int (*blocks)(struct store_read *r, bool entries,
                  int (*visit)(void *, const struct store_block *), void *context);
    int (*ends)(struct store_read *r, int (*visit)(void *, const struct store_block *),
                void *context);
    int (*latencies)(struct store_read *r, int (*visit)(void *, const struct store_latency *),
                     void *context);
    int (*findings)(struct store_read *r, int (*visit)(void *, const struct store_finding *),
                    void *context);
    int (*stack)(struct store_read *r, uint64_t stack, struct store_stack *ret);
    int (*frame)(struct store_read *r, uint32_t frame, struct store_frame *ret);
    const char *(*request)(struct store_read *r, uint64_t request);
    void (*end)(struct store_read *r);
};

struct store {
    const struct store_ops *ops;
};

/*
 * Opens "sqlite:FILE" or "clickhouse://HOST:PORT/DATABASE". With `create`, makes the database and
 * the tables that are missing. Returns 0, or a negative errno with the reason in why:
 * -EPROTONOSUPPORT for a store of a newer version of this program, -EINVAL for an address of
 * another form.
 */
int store_open(struct store **ret, const char *url, bool create, struct buf *why) must_check;
void store_close(struct store *s);
DEFINE_CLEANUP(struct store *, store_close)

/*
 * Adds an upload unless the store has it already, and stores in *ret_new whether it was added.
 * Returns 0, or a negative errno with the reason in why: -ENOSPC for a full disk, -EBUSY when
 * another process is using the store or a server is down. An engine that adds several uploads
 * together only queues this one, and sets *ret instead of *ret_new; the batch is no longer needed,
 * and store_add_end must be called. If *ret is NULL, the upload has been added.
 */
int store_add_begin(struct store *s, const struct fleet_origin *origin,
                    const struct fleet_hash *upload, const struct batch *b,
                    struct store_adding **ret, bool *ret_new, struct buf *why) must_check;
/*
 * Waits until the upload of `a` is stored, sets *ret_new, and frees `a`; does nothing for NULL.
 * Returns 0 or an error as store_add_begin does.
 */
int store_add_end(struct store *s, struct store_adding *a, bool *ret_new,
                  struct buf *why) must_check;
/*
 * Removes samples that at now_s (since 1970) are older than `keep` allows, and stacks that no
 * sample refers to. Returns 0, or a negative errno with the reason in why.
 */
int store_tidy(struct store *s, const struct store_keep *keep, int64_t now_s,
               struct buf *why) must_check;

/*
 * Merges the blocks of uploads, so that questions read less. Answers do not change. May be called
 * at any time; does nothing for an engine that merges when it adds. Returns 0, or a negative errno
 * with the reason in why.
 */
int store_merge(struct store *s, struct buf *why) must_check;

/*
 * Begins to answer a question. The choice and why must outlive *ret, which store_end frees. Returns
 * 0, or a negative errno with the reason in why.
 */
int store_begin(struct store *s, const struct fleet_choice *choice, struct store_read **ret,
                struct buf *why) must_check;
void store_end(struct store *s, struct store_read *r);

/*
 * The visits stop at the first result other than 0, which is returned. Each sample of the chosen
 * range is visited once, in the coarsest resolution that the range allows. A range that does not
 * begin and end at multiples of the finest resolution that is still kept for its ends is extended
 * to such multiples.
 */
static inline int store_each_series(struct store *s, struct store_read *r,
                                    int (*visit)(void *, const struct store_series *),
                                    void *context)
{
    return s->ops->series(r, visit, context);
}

/*
 * Visits one type after the other, and the blocks of a series in the order of time. Without
 * `entries`, blocks have sums only.
 */
static inline int store_each_block(struct store *s, struct store_read *r, bool entries,
                                   int (*visit)(void *, const struct store_block *), void *context)
{
    return s->ops->blocks(r, entries, visit, context);
}

/*
 * Visits, of each series and type and for each span that is read in one resolution, the first and
 * the last block that has samples, without reading those between them. Blocks have no sums.
 */
static inline int store_each_end(struct store *s, struct store_read *r,
                                 int (*visit)(void *, const struct store_block *), void *context)
{
    return s->ops->ends(r, visit, context);
}

static inline int store_each_latency(struct store *s, struct store_read *r,
                                     int (*visit)(void *, const struct store_latency *),
                                     void *context)
{
    return s->ops->latencies(r, visit, context);
}

static inline int store_each_finding(struct store *s, struct store_read *r,
                                     int (*visit)(void *, const struct store_finding *),
                                     void *context)
{
    return s->ops->findings(r, visit, context);
}

/*
 * Look up stacks and frames of visited blocks. Their numbers are small enough to index an array.
 * The frames of a stack are valid until the next call of store_stack, a label until store_end.
 * Return 0 or a negative errno.
 */
static inline int store_stack(struct store *s, struct store_read *r, uint64_t stack,
                              struct store_stack *ret)
{
    return s->ops->stack(r, stack, ret);
}

static inline int store_frame(struct store *s, struct store_read *r, uint32_t frame,
                              struct store_frame *ret)
{
    return s->ops->frame(r, frame, ret);
}

/* Returns the name of an entry's request; NULL if it is not chosen. Valid until store_end. */
static inline const char *store_request(struct store *s, struct store_read *r, uint64_t request)
{
    return s->ops->request(r, request);
}

/* ---- for engines */

/* A part of a range that is read in one resolution. */
struct store_span {
    int resolution;
    int64_t from_s, to_s;
};

enum { STORE_SPANS = 2 * STORE_RESOLUTIONS * STORE_RESOLUTIONS };

/*
 * Divides a range into spans of the coarsest resolutions that it allows, in the order of time.
 * removed_until_s is the time up to which each resolution was removed: a multiple of an hour,
 * earlier for coarser resolutions. Returns the number of spans.
 */
int store_spans(const struct fleet_choice *choice, const int64_t removed_until_s[STORE_RESOLUTIONS],
                struct store_span ret[STORE_SPANS]);
/*
 * Divides a range like store_spans, with removed_until_s as an engine stored it; corrects values
 * that contradict each other.
 */
int store_spans_kept(const struct fleet_choice *choice, int64_t removed_until_s[STORE_RESOLUTIONS],
                     struct store_span ret[STORE_SPANS]);
/*
 * Returns whether a text matches `wanted`, a member of a choice: a name, a pattern with * or ?, or
 * several of these separated by commas. NULL matches everything.
 */
bool store_matches(const char *wanted, const char *text);
/* Returns whether a choice selects a series by its names and labels. */
bool store_chooses(const struct fleet_choice *choice, const struct store_series *series);
/* Returns the hash of an origin, which identifies its series in every store. */
struct fleet_hash store_hash_origin(const struct fleet_origin *origin);

/* Opens a store as store_open does. path: what follows "sqlite:". */
int store_sqlite_open(struct store **ret, const char *path, bool create,
                      struct buf *why) must_check;
/* Opens a store as store_open does. address: what follows "clickhouse://". */
int store_clickhouse_open(struct store **ret, const char *address, bool create,
                          struct buf *why) must_check;
