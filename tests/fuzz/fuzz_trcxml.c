/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as XML of the thread profiler: read, and analysed if they are valid. */
#include "analysis/critical_path.h"
#include "analysis/what_if.h"
#include "timeline/trcxml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool all(const struct timeline *t, uint32_t object, void *arg)
{
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf why = BUF(4096);
    struct timeline *t = NULL;
    if (trcxml_read(&t, data, size, &why) == 0) {
        struct critical_path p;
        struct what_if w = {.lock = all, .factor = 0.5, .bounds = true};
        struct what_if_answer a;
        if (t->n_nodes && critical_path(t, &PATH_OPTIONS, &p) == 0) {
            uint64_t sum = 0;
            for (size_t i = 0; i < p.segments.len; i++)
                sum += p.segments.data[i].end - p.segments.data[i].start;
            if (sum != p.makespan)
                __builtin_trap();
            critical_path_release(&p);
            (void)!what_if(t, &PATH_OPTIONS, &w, &a);
        }
        timeline_free(t);
    }
    buf_release(&why);
    return 0;
}
