/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope's HTTP interface, as its agents and Grafana use it: /ingest, push.v1.PusherService and
 * querier.v1.QuerierService of https://github.com/grafana/pyroscope/tree/main/api. The services
 * speak the Connect protocol: a POST whose Content-Type is application/json or application/proto,
 * with a message as its body and the answer likewise.
 */
#pragma once

#include "wire/batch.h"

/* ---- /ingest ---- */

/*
 * The query of /ingest, such as name=shop.cpu{region=eu}&from=1700000000&until=1700000010&
 * format=jfr&sampleRate=100. Times are ns since 1970.
 */
struct pyroscope_ingest {
    struct buf service; /* without the labels in braces; a NUL-terminated text by buf_str() */
    uint32_t labels;    /* those in braces: a set of the batch */

    enum { PYROSCOPE_JFR, PYROSCOPE_PPROF, PYROSCOPE_OTHER } format;

    uint64_t from_ns, until_ns, sample_rate;
};

/*
 * Reads the query; get(request, key) returns its arguments, decoded, or NULL. Returns 0, or with
 * the reason in why: -EINVAL, -E2BIG, -ENOMEM.
 */
int pyroscope_ingest(struct pyroscope_ingest *ret, struct wire_batch *b,
                     const char *(*get)(const void *request, const char *key), const void *request,
                     struct buf *why) must_check;
void pyroscope_ingest_release(struct pyroscope_ingest *i);

/*
 * The labels part of an upload of JFR, in which Pyroscope's agent for Java describes the context
 * ids of events: contexts{id: {key string: value string}}, strings{id: text}.
 */
struct pyroscope_contexts {
    struct map sets; /* context id to a set of labels of the batch */
};

/*
 * Reads the labels part of an upload. On success the caller releases *ret. Returns 0 or a negative
 * errno: -EPROTO or -E2BIG with the reason in why, or -ENOMEM.
 */
int pyroscope_contexts(struct pyroscope_contexts *ret, struct wire_batch *b, const void *data,
                       size_t len, struct buf *why) must_check;
void pyroscope_contexts_release(struct pyroscope_contexts *c);

/* ---- push.v1.PusherService/Push ---- */

/*
 * Adds the profiles of a PushRequest to a batch: gzipped pprof, with the labels of their series as
 * the resource (service_name as service.name). json: the body is JSON instead of protobuf. Returns
 * 0 or a negative errno: -EPROTO or -E2BIG with the reason in why, or -ENOMEM.
 */
int pyroscope_push(struct wire_batch *b, bool json, const void *data, size_t len,
                   struct buf *why) must_check;

/* ---- querier.v1.QuerierService ---- */

enum pyroscope_query_kind {
    PYROSCOPE_PROFILE_TYPES,
    PYROSCOPE_LABEL_NAMES,
    PYROSCOPE_LABEL_VALUES,
    PYROSCOPE_SERIES,
    PYROSCOPE_SELECT_MERGE_STACKTRACES,
    PYROSCOPE_SELECT_SERIES,
    PYROSCOPE_QUERIES
};

enum pyroscope_match { MATCH_EQUAL, MATCH_NOT_EQUAL, MATCH_REGEX, MATCH_NOT_REGEX };

struct pyroscope_matcher {
    const char *label, *value;
    enum pyroscope_match how;
};

/* A request; which members it fills depends on the kind. */
struct pyroscope_query {
    enum pyroscope_query_kind kind;
    /* "process_cpu:cpu:nanoseconds:cpu:nanoseconds": name, sample type, unit, period type, unit */
    const char *profile_type;
    VEC(struct pyroscope_matcher) matchers; /* all must hold */
    const char *name;                       /* of LabelValues: the label */
    VEC(const char *) group_by;             /* of SelectSeries; of Series: the labels wanted */
    int64_t start_ms, end_ms;               /* since 1970; 0: not given */
    double step_s;                          /* of SelectSeries */
    bool average;                           /* of SelectSeries: of points in a step; else the sum */
    int64_t max_nodes;                      /* 0: not given */
    struct arena arena;                     /* holds the texts */
};

/* Returns the kind for the last component of a path, "SelectSeries"; PYROSCOPE_QUERIES: none. */
enum pyroscope_query_kind pyroscope_query_kind(const char *method);
/*
 * Reads a request. Returns 0, or with the reason in why: -EPROTO, -EINVAL for a selector that is
 * not one, -E2BIG, -ENOMEM.
 */
int pyroscope_query(struct pyroscope_query *ret, enum pyroscope_query_kind kind, bool json,
                    const void *data, size_t len, struct buf *why) must_check;
void pyroscope_query_release(struct pyroscope_query *q);

struct pyroscope_label {
    const char *name, *value;
};

struct pyroscope_labels {
    const struct pyroscope_label *list;
    size_t len;
};

struct pyroscope_profile_type {
    const char *id; /* as in pyroscope_query */
};

struct pyroscope_point {
    int64_t time_ms;
    double value;
};

struct pyroscope_series {
    struct pyroscope_labels labels;
    const struct pyroscope_point *points;
    size_t len;
};

/* A flame graph by nodes: parents stand before their children. Node 0 is the root, "total". */
struct pyroscope_node {
    uint32_t parent;
    uint32_t name; /* of names */
    int64_t self;
};

struct pyroscope_flame {
    const struct pyroscope_node *nodes;
    size_t len;
    const char *const *names;
    size_t names_len;
};

/* Append answers as JSON or protobuf. They return 0 or a negative errno. */
int pyroscope_put_profile_types(const struct pyroscope_profile_type *types, size_t n, bool json,
                                struct buf *to) must_check;
/* Appends the answer to LabelNames or LabelValues. */
int pyroscope_put_names(const char *const *names, size_t n, bool json, struct buf *to) must_check;
int pyroscope_put_label_sets(const struct pyroscope_labels *sets, size_t n, bool json,
                             struct buf *to) must_check; /* of Series */
int pyroscope_put_series(const struct pyroscope_series *series, size_t n, bool json,
                         struct buf *to) must_check;
/*
 * Appends the answer to SelectMergeStacktraces. max_nodes: the most nodes that it may have, beyond
 * which the lightest ones are merged into "other"; 0: no limit.
 */
int pyroscope_put_flame(const struct pyroscope_flame *f, int64_t max_nodes, bool json,
                        struct buf *to) must_check;
/*
 * Appends an error in Connect's form, which is always JSON:
 * {"code":"invalid_argument","message":"..."}.
 */
void pyroscope_put_error(const char *code, const char *message, struct buf *to);
