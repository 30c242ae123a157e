/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options --request and --slowest, with which other commands limit what they show to certain
 * requests, and the complaints about recordings without such requests.
 */
#pragma once

#include "analysis/request_groups.h"
#include "cli/commands.h"
#include "profile/profile.h"

struct only_requests {
    const char *name; /* --request: a pattern */
    double slowest;   /* --slowest: a share; 0: all requests */
};

/* Rows of an option table, for a struct that has the struct above as its member `field`. */
#define ONLY_REQUESTS_ARGS(type, field)                                                            \
    {"--request",                                                                                  \
     0,                                                                                            \
     ARG_LIST,                                                                                     \
     offsetof(type, field.name),                                                                   \
     "NAME",                                                                                       \
     "only while a thread worked for a request of such a name (a part of it, * and ?, or =NAME)"}, \
    {                                                                                              \
        "--slowest", 0, ARG_SHARE, offsetof(type, field.slowest), "SHARE",                         \
            "only while a thread worked for one of the slowest requests of its name: 1%"           \
    }

static inline bool only_requests_given(const struct only_requests *o)
{
    return o->name || o->slowest > 0;
}

/* The option of these that was given, for messages. */
static inline const char *only_requests_option(const struct only_requests *o)
{
    return o->name ? "--request" : "--slowest";
}

/*
 * Finds when threads worked for the selected requests. The caller releases *ret. Returns 0, or the
 * exit status after a complaint.
 */
int only_requests_times(const struct only_requests *o, const char *path, struct request_times *ret);
/*
 * Removes from a profile all samples that do not belong to the selected requests, and all figures
 * without times of their own, such as exact calls. Returns 0, or the exit status after a complaint,
 * also when no sample is left.
 */
int only_requests_keep(const struct only_requests *o, const char *path, struct profile *p);

/*
 * Checks that each alternative of a pattern matches the name of a request. part: r lacks requests
 * that other options excluded. Returns 0, or the exit status after a complaint.
 */
int only_requests_check_names(const struct requests *r, const char *path, const char *pattern,
                              bool part);
/*
 * Complains that a recording holds no requests, and explains why or how to record some. Returns the
 * exit status.
 */
int only_requests_missing(const char *path);
