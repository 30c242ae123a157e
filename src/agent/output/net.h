/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net=host:port: a connection to a front end. Bytes are sent from a bounded buffer by a thread of
 * our own, so that a front end that does not read cannot stop the program: a writer waits for room
 * for at most NET_PATIENCE_NS without progress, then the connection is abandoned and everything
 * that follows is counted as lost. Needs no JVM.
 */
#pragma once

#include "base/buf.h"
#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

enum { NET_BUFFER = 8 << 20 };

#define NET_PATIENCE_NS UINT64_C(2000000000)

struct net;

/*
 * Connects to "host:port" (also "[::1]:7000") within ten seconds. Returns 0, or a negative errno
 * with a sentence in why.
 */
int net_open(struct net **ret, const char *address, struct buf *why) must_check;
/*
 * Queues bytes, waiting for room if need be. Returns 0, or -EPIPE once the connection has ended;
 * bytes that were not queued are counted as lost.
 */
int net_write(struct net *n, const void *bytes, size_t len);
/*
 * Reads bytes from the front end: returns a number above zero, 0 at the end of the connection,
 * -EAGAIN when none arrived within wait_ms, or another negative errno. One thread at a time.
 */
int net_read(struct net *n, void *bytes, size_t size, int wait_ms);
/* Returns the number of bytes that were not sent and never will be. */
uint64_t net_lost(struct net *n);
/*
 * Sends what is queued, waiting like net_write, and ends the connection. net_read returns what has
 * already arrived, and 0 or an error after that.
 */
void net_close(struct net *n);
/* Adds a user of the connection, whose first user is the caller of net_open. Returns n. */
struct net *net_ref(struct net *n);
/* Removes a user, and frees the connection with the last one. Accepts NULL. */
void net_unref(struct net *n);
