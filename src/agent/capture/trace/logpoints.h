/* SPDX-License-Identifier: Apache-2.0 */
/* The row log= and watch=; watches.c puts the probes at the fields. */
#pragma once

#include "agent/instrument/instrument.h"
#include "base/buf.h"

/* Adds probe calls to code: the value on top of the record's place (a long below it) is written. */
int log_value(struct edit *e, struct buf *code, char type) must_check;

/* watch=: patterns "pkg.Class.field:...". 0 or -EINVAL with a sentence in why. */
int watches_set(const char *patterns, struct buf *why) must_check;
void watches_clear(void);
/*
 * Those that no code loaded so far reads or writes, one by one: *at is 0 at first. False when there
 * is no other.
 */
bool watches_not_found(unsigned *at, char *ret, size_t size);
extern const struct instrument_client watch_client;
/* places before super(), where an object may not be looked at */
uint64_t watches_without_object(void);
