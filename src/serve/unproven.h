/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that have not shown the token yet, or whose request is not complete, newest first.
 * Beyond a limit the oldest one is ended, so that idle connections keep nobody out.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

/* A connection, as the first member of a server's own struct. */
struct unproven_link {
    struct unproven_link *older, *newer;
    int fd;
    bool is_listed;
};

struct unproven_list {
    struct unproven_link *newest;
    int n;
};

static inline void unproven_remove(struct unproven_list *list, struct unproven_link *g)
{
    if (!g->is_listed)
        return;
    *(g->newer ? &g->newer->older : &list->newest) = g->older;
    if (g->older)
        g->older->newer = g->newer;
    g->newer = g->older = NULL;
    g->is_listed = false;
    list->n--;
}

static inline void unproven_add(struct unproven_list *list, struct unproven_link *g, int most)
{
    if (g->is_listed)
        return;
    g->newer = NULL;
    g->older = list->newest;
    if (g->older)
        g->older->newer = g;
    list->newest = g;
    g->is_listed = true;
    if (++list->n <= most)
        return;
    struct unproven_link *oldest = list->newest;
    while (oldest->older)
        oldest = oldest->older;
    unproven_remove(list, oldest);
    shutdown(oldest->fd, SHUT_RDWR); /* the daemon notices the end and closes the connection */
}
