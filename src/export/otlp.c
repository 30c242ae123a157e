/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes OpenTelemetry's profiles (wire/otlp.h): one per metric, with the time, the thread and the
 * trace of each sample.
 */
#include "wire/otlp.h"
#include "export/batch.h"
#include "export/export.h"
#include "wire/resource.h"

#include <errno.h>

static int export_otlp(const struct export_source *s, FILE *out, struct buf *why)
{
    _cleanup_(wire_batch_release) struct wire_batch b = {.limits = wire_limits_wide};
    _cleanup_(buf_release) struct buf message = BUF(SIZE_MAX / 2);
    int64_t resource = wire_resource(&b, NULL, s->labels, why);
    if (resource < 0)
        return (int)resource;
    struct batch_source source = {.path = s->path,
                                  .profile = s->profile,
                                  .filter = s->filter,
                                  .only_metric = !s->all_metrics,
                                  .metric = s->metric,
                                  .resource = (uint32_t)resource};
    int r = batch_add(&b, &source, why);
    if (r == 0)
        r = otlp_encode(&b, &message);
    if (r == 0)
        fwrite(message.data, 1, message.len, out);
    return r;
}

const struct export_format export_format_otlp = {
    .extension = ".otlp",
    .what = "OpenTelemetry's profiles (OTLP 1.11)",
    .holds = HOLDS_STACKS | HOLDS_REQUESTS,
    .follows = FOLLOWS_SAMPLES,
    .write = export_otlp,
};
