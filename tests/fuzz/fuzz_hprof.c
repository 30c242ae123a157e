/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as HPROF's binary records and the sub-records of heap dumps: no read goes beyond them.
 */
#include "hprof/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t read_class(const struct hprof_item *item, unsigned id_size)
{
    struct hprof_class c;
    struct hprof_static s;
    uint64_t sum = 0;
    if (hprof_class_read(item, id_size, &c) < 0)
        return 0;
    for (unsigned k = c.constants; k && hprof_static_read(&c.constants_at, id_size, true, &s); k--)
        sum += s.value;
    for (unsigned k = c.statics; k && hprof_static_read(&c.statics_at, id_size, false, &s); k--)
        sum += s.value + s.name;
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hprof_reader r;
    struct hprof_record record;
    uint64_t sum = 0, before = 0;
    if (hprof_reader_init(&r, data, size) < 0)
        return 0;
    while (hprof_next(&r, &record)) {
        if (r.at <= before || r.at > size || record.body < data ||
            record.len > size - (uint64_t)(record.body - data))
            __builtin_trap();
        before = r.at;
        if (record.tag != HPROF_HEAP_DUMP && record.tag != HPROF_HEAP_DUMP_SEGMENT)
            continue;
        struct hprof_items it =
            hprof_items_of(record.body, record.body + record.len, r.header.id_size);
        struct hprof_item item;
        while (hprof_item_next(&it, &item) > 0) {
            for (uint64_t i = 0; i < item.body_len; i++)
                sum += item.body[i];
            sum += item.tag == HPROF_CLASS_DUMP ? read_class(&item, r.header.id_size) : item.count;
        }
    }
    __asm__ volatile("" : : "r"(sum)); /* what was read is wanted */
    return 0;
}
