/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the uploads in a spool to a collector, and requests answers from it. */
#pragma once

#include "base/buf.h"
#include "cli/fleet/spool.h"

struct sender {
    char *url;              /* without a slash at its end */
    char *authorization;    /* a header, or NULL */
    uint64_t not_before_ns; /* the collector asked to wait until then */
    bool complained;
};

/* Returns whether a text can be the address of a collector, http://HOST:PORT. */
bool sender_is_url(const char *text);
/*
 * Prepares to send to a collector. url: its address; token: the text that it requires, "@FILE" to
 * read it from a file, or NULL. Returns 0, or the exit status after a complaint. The caller calls
 * sender_release in any case.
 */
int sender_open(struct sender *s, const char *url, const char *token);
void sender_release(struct sender *s);
/*
 * Sends uploads in order until the collector cannot accept one now. An upload that it will never
 * accept is removed, with a complaint.
 */
void sender_send(struct sender *s, struct spool *spool);
/*
 * Gets `path`, with its query, from the collector, and appends what it answers. Returns 0, or the
 * exit status after a complaint.
 */
int sender_get(const struct sender *s, const char *path, struct buf *answer);
/* Cuts a message after its first line, and returns that line. */
const char *send_first_line(struct buf *text);
