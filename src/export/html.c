/* SPDX-License-Identifier: Apache-2.0 */
/* One HTML file that needs nothing else: the page of web/ with the data in it. Names are data in it, never markup. */
#include "export/export.h"
#include "export/page.h"
#include "export/page_data.h"

#include <errno.h>

int export_html(const struct export_source *s, FILE *out, struct buf *why)
{
    if (!page_head[0]) {
        buf_string(why, "this build has no page: npm was missing when it was made (install npm and build again)");
        return -ENOTSUP;
    }
    const char *slash = strrchr(s->path, '/');
    _cleanup_(buf_release) struct buf data = BUF(SIZE_MAX / 2);
    struct json j = {&data, false};
    json_object(&j);
    json_key(&j, "version");
    json_string(&j, JVMSCOPE_VERSION);
    json_key(&j, "file");
    json_string(&j, slash ? slash + 1 : s->path);
    json_key(&j, "start_ms");
    json_u64(&j, s->profile->start_epoch_ns / 1000000);
    json_key(&j, "duration_ns");
    json_u64(&j, s->profile->duration_ns);
    json_key(&j, "metric");
    json_string(&j, profile_metrics[s->metric].name);
    int r = page_profile_json(&j, s->profile, &s->filter);
    json_object_end(&j);
    if (r == 0)
        r = buf_error(&data);
    if (r < 0)
        return r;
    fputs(page_head, out);
    /* Within <script> only "<" could begin something that is not data. JSON has it in strings alone. */
    for (size_t at = 0, n; at < data.len; at += n) {
        const uint8_t *stop = memchr(data.data + at, '<', data.len - at);
        n = stop ? (size_t)(stop - data.data) - at : data.len - at;
        fwrite(data.data + at, 1, n, out);
        if (stop) {
            fputs("\\u003c", out);
            n++;
        }
    }
    fputs(page_tail, out);
    return 0;
}
