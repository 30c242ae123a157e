/* SPDX-License-Identifier: Apache-2.0 */
/* Where HPROF writers put their bytes: a file, a socket, memory. */
#pragma once

#include <stddef.h>

struct hprof_sink {
    /* Takes all len bytes; 0 or negative errno, after which the writer calls it no more. */
    int (*write)(void *ctx, const void *bytes, size_t len);
    void *ctx;
};
