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
 * The text of a string counter ("sun.rt.javaCommand") in the file's bytes, malloc'ed; NULL when it
 * is not there, the file is damaged or memory is out.
 */
char *hsperf_string(const uint8_t *data, size_t len, const char *name);

/*
 * Where the value of a number counter lies in the bytes, in the machine's order of bytes; NULL when
 * it is not there.
 */
const uint8_t *hsperf_number_at(const uint8_t *data, size_t len, const char *name);
/*
 * The value of a number counter ("java.threads.live"). 0, or -ENOENT when it is not there or the
 * file is damaged.
 */
int hsperf_number(const uint8_t *data, size_t len, const char *name, int64_t *ret);
