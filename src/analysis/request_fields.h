/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of the heat map of requests: columns of time by rows of latency, for each name. For
 * each moment of a thread this says for the requests of which fields it worked, so that samples can
 * be summed up for any choice of fields.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "profile/requests.h"

/* Rows are logarithmic, REQUEST_ROWS_OF_TEN for a factor of ten, from 1 us on. */
enum { REQUEST_COLUMNS = 200, REQUEST_ROWS_OF_TEN = 8, REQUEST_ROWS = 9 * REQUEST_ROWS_OF_TEN };

/* Returns the column in which a request began. */
uint32_t request_column(const struct requests *r, const struct request *q);
uint32_t request_row(const struct request *q);

struct request_field {
    uint32_t name; /* number of requests.names */
    uint32_t column, row;
};

struct request_set {
    uint32_t first, count; /* of request_fields.members */
};

/* In this time a thread worked for requests of the fields of a set. */
struct request_stretch {
    uint64_t thread;
    int64_t start_ns, end_ns;
    uint32_t set;
};

struct request_fields {
    /* The members of each set are sorted and distinct. No two sets have the same members. */
    VEC(struct request_field) members;
    VEC(struct request_set) sets;
    VEC(struct request_stretch) stretches; /* sorted by thread, then by time; disjoint */
    struct map index;                      /* sets by the hash of their members */
    /* Fields are whole names, with column and row 0: there would be too many sets of others. */
    bool names_only;
};

/*
 * Returns 0, -ENOMEM, or -E2BIG when threads worked for too many requests at the same time. The
 * caller releases *ret unless an error is returned.
 */
int request_fields_init(struct request_fields *ret, const struct requests *r) must_check;
/*
 * Returns the set of fields for whose requests a thread worked at a time, in ns since 1970;
 * REQUEST_NONE when it worked for none.
 */
uint32_t request_fields_at(const struct request_fields *f, uint64_t thread, int64_t time_ns);
void request_fields_release(struct request_fields *f);
