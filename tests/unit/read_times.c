/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Separate from test_hprof.c because one file cannot include both the writer's and the reader's
 * structures for the contents of a dump.
 */
#include "read_times.h"

#include "hprof/reader.h"

size_t read_times(const void *bytes, size_t len, uint64_t *times, size_t max)
{
    struct hprof_reader r;
    struct hprof_record record;
    size_t n = 0;
    if (hprof_reader_init(&r, bytes, len) < 0)
        return 0;
    while (n < max && hprof_next(&r, &record))
        times[n++] = record.time_us;
    return n;
}
