/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the TPTP thread profiler's XML (doc/trcxml.dtd) into a timeline. The element names in the
 * prose of its design document are accepted too.
 */
#pragma once

#include "base/buf.h"
#include "timeline/timeline.h"

#include <stddef.h>

/* Returns whether the bytes begin, after white space, with "<?xml" or "<TRACE". */
bool trcxml_is(const void *bytes, size_t len);
/* Reads the XML. Returns 0, -EBADMSG with the reason and the line in why, -ENOMEM, or -E2BIG. */
int trcxml_read(struct timeline **ret, const void *bytes, size_t len, struct buf *why) must_check;
