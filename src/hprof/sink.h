/* SPDX-License-Identifier: Apache-2.0 */
/* The destination of HPROF writers: a file, a socket, or memory. */
#pragma once

#include <stddef.h>

struct hprof_sink {
    /*
     * Takes all len bytes. Returns 0, or a negative errno, after which the writer does not call it
     * again.
     */
    int (*write)(void *ctx, const void *bytes, size_t len);
    void *ctx;
};
