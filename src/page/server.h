/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the requests of the page of recordings and heap dumps. */
#pragma once

#include "serve/server.h"

struct page_server;

/*
 * Serves these files, whose paths it does not copy. sources: a list of folders of the program's
 * source files, or NULL. A query of a heap dump may take query_limit_ns. Returns 0 or -ENOMEM.
 */
int page_server_new(struct page_server **ret, char **paths, size_t count, const char *sources,
                    uint64_t query_limit_ns) must_check;
void page_server_free(struct page_server *s);
DEFINE_CLEANUP(struct page_server *, page_server_free)

/* The function answer of struct server_options; its context is the page_server. */
int page_server_answer(void *context, const struct server_request *q, struct server_reply *reply);
