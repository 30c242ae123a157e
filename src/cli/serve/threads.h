/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page asks about threads: the part of the timeline that it shows, and what lies behind a
 * click.
 */
#pragma once

#include "analysis/path_samples.h"
#include "model/timeline_view.h"
#include "serve/server.h"

#include <pthread.h>

/*
 * Of one file, looked at when it is first asked for; from then on only read. What the pictures are
 * made of is kept in a file beside it (PATH.view) that is mapped; the timeline is then checked as a
 * whole when the first question needs that.
 */
struct served_threads {
    pthread_mutex_t opening;
    _Atomic bool looked, checked;
    const char *file;   /* the caller's */
    struct timeline *t; /* NULL: it has none that is worth showing */
    struct timeline_view *view;
    struct critical_path path;
    bool path_in_view; /* its segments lie in the view's file */
    bool sampled;      /* what ran on it was looked for, when a segment was first asked for */
    struct path_samples ran;
};

void served_threads_init(struct served_threads *s);
/* Loads once, waiting for another thread that does. NULL when the file has no timeline. */
struct timeline *served_threads_open(struct served_threads *s, const char *file);
void served_threads_release(struct served_threads *s);

/*
 * Answers "range" (binary: timeline_view_rows, timeline_view_arrows, then the critical path),
 * "node", "at", "segment", "monitors", and "ready", which loads what has an index: the HTTP status,
 * SERVER_LATER while another request loads, -ENOENT when the question is none of these.
 */
int served_threads_answer(struct served_threads *s, const char *file, const char *what,
                          const struct server_request *q, struct server_reply *reply);
