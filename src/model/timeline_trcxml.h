/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the thread profiler's XML (doc/trcxml.dtd) into a timeline. The names of the design's prose
 * are understood too.
 */
#pragma once

#include "base/buf.h"
#include "model/timeline.h"

#include <stddef.h>

/* True when the bytes look like such a file. */
bool trcxml_is(const void *bytes, size_t len);
/* -EBADMSG with the reason and line in why, or -ENOMEM. */
int trcxml_read(struct timeline **ret, const void *bytes, size_t len, struct buf *why) must_check;
