/* SPDX-License-Identifier: Apache-2.0 */
/* Causes of slow requests in words. */
#pragma once

#include "analysis/request_groups.h"
#include "base/buf.h"

/* Appends " in METHOD"; nothing for NULL. */
void request_put_in(struct buf *b, const char *method);
/* Returns whether the requests waited for something that only one thread at a time can own. */
bool request_cause_is_lock(const struct group_cause *c);
/* Appends a cause and the place of the slow requests: "lock of class Store in App.stock". */
void request_put_cause(struct buf *b, const struct group_cause *c);
