/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as HPROF text: items point into the text; nothing else is guaranteed. */
#include "hprof/text_reader.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
    const char *start, *end;
};

static void within(const struct text *t, struct str s)
{
    if (s.len && (s.data < t->start || s.data + s.len > t->end))
        abort();
}

static int item(void *ctx, const struct hprof_text_item *i)
{
    within(ctx, i->name);
    within(ctx, i->group);
    within(ctx, i->caller);
    for (size_t n = 0; n < i->n_frames; n++) {
        within(ctx, i->frames[n].method);
        within(ctx, i->frames[n].source);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text t = {(const char *)data, (const char *)data + size};
    struct hprof_text_summary summary;
    if (hprof_text_read(data, size, item, &t, &summary) == 0 && summary.unknown > summary.lines)
        abort();
    return 0;
}
