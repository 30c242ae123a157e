/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the page's requests about threads: for the part of the timeline that it shows, and for
 * details of what the user has clicked.
 */
#pragma once

#include "analysis/path_samples.h"
#include "serve/server.h"
#include "timeline/view.h"

#include <pthread.h>

/*
 * The threads of one file, loaded at the first request and only read from then on. The data for the
 * pictures are kept in a file next to it (PATH.view), which is mapped; then the timeline is checked
 * as a whole only when a question needs that.
 */
struct page_threads {
    pthread_mutex_t opening;
    _Atomic bool opened, checked;
    const char *file;   /* owned by the caller */
    struct timeline *t; /* NULL: it has none worth showing */
    struct timeline_view *view;
    struct critical_path path;
    bool path_in_view; /* its segments are in the view's file */
    bool sampled;      /* the samples of the path were read, at the first request for a segment */
    struct path_samples ran;
};

void page_threads_init(struct page_threads *s);
/*
 * Loads and checks the timeline once, or waits for another thread that does. Returns NULL when the
 * file has no timeline or it is damaged.
 */
struct timeline *page_threads_open(struct page_threads *s, const char *file);
void page_threads_release(struct page_threads *s);

/*
 * Answers "range" (binary: timeline_view_rows, timeline_view_arrows, then the critical path),
 * "node", "at", "segment", "monitors", and "ready", which loads what has an index. Returns the HTTP
 * status, SERVER_LATER while another request is loading, and -ENOENT for other questions.
 */
int page_threads_answer(struct page_threads *s, const char *file, const char *what,
                        const struct server_request *q, struct server_reply *reply);
