/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the VM's dump: the result is an error or a rewritten dump, in both forms. */
#include "hprof/redump.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int drop(void *ctx, const void *bytes, size_t len)
{
    return 0;
}

static bool thread(void *ctx, uint64_t java_id, uint32_t *ret_serial, uint64_t *ret_object)
{
    *ret_serial = (uint32_t)java_id;
    *ret_object = java_id & 7;
    return java_id & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hprof_shapes shapes = {
        .alignment = 8, .reference = 4, .header = {12, 0, 16, 0, 16, 16, 16, 16, 16, 16, 16, 16}};
    for (int binary = 0; binary < 2; binary++) {
        uint32_t next_class = 1, next_trace = 1;
        uint64_t next_frame = 1, next_string = 1;
        struct hprof_writer w = {0};
        struct hprof_text t = {.sink = {drop, NULL}, .out = BUF(SIZE_MAX / 2)};
        if (hprof_writer_init(&w, (struct hprof_sink){drop, NULL}, HPROF_MAGIC_1_0_2, 8, 0) < 0)
            abort();
        const struct hprof_redump how = {.binary = binary ? &w : NULL,
                                         .text = binary ? NULL : &t,
                                         .shapes = &shapes,
                                         .next_class = &next_class,
                                         .next_trace = &next_trace,
                                         .next_frame = &next_frame,
                                         .next_string = &next_string,
                                         .thread = thread};
        struct hprof_redump_totals totals;
        if (hprof_redump(&how, data, size, &totals) == 0 && hprof_error(&w))
            abort();
        hprof_writer_release(&w);
        hprof_text_release(&t);
    }
    return 0;
}
