/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of requests: method and route, with what differs from request to request folded, and
 * for each name exact counts and a histogram of latencies. Knows no JVM.
 */
#pragma once

#include "base/latency.h"
#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { REQUEST_NAMES_MAX = 1000, REQUEST_NAME_SIZE = 200, SLOWEST_KEPT = 20 };

#define REQUEST_OTHER "[other names]"

struct request_name {
    char text[REQUEST_NAME_SIZE];
    int kind;
    uint64_t string; /* its constant in the recording */
    /* The path of one of its requests, by request_example; "": none, or the name is the path. */
    char example[REQUEST_NAME_SIZE];
    atomic_bool has_example; /* whether `example` has its value, which does not change again */
    _Atomic uint64_t count, errors, total_ns, max_ns;
    _Atomic uint64_t buckets[LATENCY_BUCKETS];
    /* the counts that have been written, and the counts that have been reported as lost */
    uint64_t reported, lost;

    /*
     * The slowest latencies of this minute, with the fastest of them at [0]. Protected by `busy`.
     */
    struct {
        atomic_flag busy;
        uint64_t minute;
        uint64_t ns[SLOWEST_KEPT];
    } slow;
};

/*
 * Writes the name of a request, given its method (may be NULL) and path, as a zero-terminated
 * string of at most REQUEST_NAME_SIZE - 1 characters: no query string, no path parameters; numbers,
 * hexadecimal ids and long mixed tokens become {id}; what is not printable ASCII becomes '?'.
 */
void request_fold(const char *method, const char *path, char ret[REQUEST_NAME_SIZE]);

/*
 * Writes the name of a request from its method, which may be NULL or empty, and its route, in which
 * nothing is folded.
 */
void request_join(const char *method, const char *route, char ret[REQUEST_NAME_SIZE]);

/*
 * Writes a path as an example of what a name stands for: without query string and path parameters,
 * and with {id} for long mixed tokens, which may be secrets.
 */
void request_example(const char *path, char ret[REQUEST_NAME_SIZE]);

/*
 * Returns the number of a name, which is added if it is new; 0, the number of REQUEST_OTHER, when
 * there are too many or no memory. Any thread.
 */
unsigned request_name_find(int kind, const char *text);
/* Gives a name the path of one of its requests as its example, unless it has one. Any thread. */
void request_name_example(unsigned number, const char *path);
/* Makes the example of a request's former name one of its new name as well. */
void request_name_renamed(unsigned from, unsigned to);
/* Returns the name with this number; NULL when there is none. */
struct request_name *request_name_at(unsigned number);
unsigned request_names_count(void);
/* Gives each new name its constant in the recording; called once for each. */
void request_names_define(uint64_t (*define)(const char *text));
void request_names_release(void);

/* Counts a request that took ns and stands for `weight` requests. */
void request_count(struct request_name *n, uint64_t ns, bool error, uint32_t weight);
/*
 * Returns whether a latency is among the slowest that its name has had so far in the minute of
 * `now`.
 */
bool request_is_slow(struct request_name *n, uint64_t ns, uint64_t now);
