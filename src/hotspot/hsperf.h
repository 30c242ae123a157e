/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters that HotSpot publishes in /tmp/hsperfdata_USER/PID (version 2.0 of the layout, JDK 5
 * to 27).
 */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the text of a string counter ("sun.rt.javaCommand") in the file's bytes; NULL when there
 * is no such counter, the file is damaged, or memory is exhausted. The caller frees the text.
 */
char *hsperf_string(const uint8_t *data, size_t len, const char *name);

/*
 * Returns the address of a numeric counter's value in the bytes, in the machine's byte order; NULL
 * when there is no such counter or the file is damaged.
 */
const uint8_t *hsperf_number_at(const uint8_t *data, size_t len, const char *name);
/*
 * Reads the value of a numeric counter ("java.threads.live"). Returns 0, or -ENOENT when there is
 * no such counter or the file is damaged.
 */
int hsperf_number(const uint8_t *data, size_t len, const char *name, int64_t *ret);
