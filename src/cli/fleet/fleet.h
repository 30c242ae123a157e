/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "base/parse.h"

#include <stdbool.h>
#include <stdint.h>

enum { FLEET_PARAMS = 64 };

/* The options of all verbs of `fleet`. */
struct fleet_options {
    const char *store, *collector, *token, *tenant;
    const char *service, *version, *host, *instance, *labels, *from, *to, *request;
    const char *metric, *price, *method, *base;
    uint64_t limit;
    bool json;
};

/*
 * Prints the answer to a question: unchanged with `json`, otherwise as a table. Complains with the
 * reason if the answer is empty. Returns the exit status.
 */
int fleet_print(const char *verb, const struct buf *answer, const struct fleet_options *o);
