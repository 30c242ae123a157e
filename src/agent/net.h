/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net=host:port: a connection to a front-end. Bytes go out through a bounded buffer and a thread of
 * our own, so that a front-end that does not read never stops the program: a writer waits for room
 * for NET_PATIENCE_NS without progress, and then the connection is given up and what follows is
 * counted as lost. No JVM is needed here.
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
 * Connects to "host:port" ("[::1]:7000" too) within ten seconds. Negative errno with a sentence in
 * why.
 */
int net_open(struct net **ret, const char *address, struct buf *why) must_check;
/*
 * Queues bytes; 0 or, once the connection is over, -EPIPE. The bytes of such calls are counted as
 * lost.
 */
int net_write(struct net *n, const void *bytes, size_t len);
/*
 * Bytes from the front-end: above zero, 0 at the end of the connection, -EAGAIN when none came
 * within wait_ms, or another negative errno. One thread at a time.
 */
int net_read(struct net *n, void *bytes, size_t size, int wait_ms);
/* Bytes that were not sent and never will be. */
uint64_t net_lost(struct net *n);
/*
 * Sends what is queued, waiting as net_write does, and ends the connection: net_read answers 0 from
 * now on.
 */
void net_close(struct net *n);
/*
 * One more, one fewer user of the connection; net_open's caller is the first. NULL is allowed in
 * unref.
 */
struct net *net_ref(struct net *n);
void net_unref(struct net *n);
