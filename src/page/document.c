/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document: the page from web/ with a recording's data in it. Names are always data and never
 * markup.
 */
#include "base/file.h"
#include "base/json.h"
#include "page/data.h"
#include "page/page.h"
#include "page/timeline.h"
#include "timeline/load.h"

#include <errno.h>
#include <string.h>

bool page_has_threads(const struct timeline *t)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        enum tl_kind kind = tl_node(t, (uint32_t)i).kind;
        if (kind != TL_RUN && kind != TL_DEAD && kind != TL_UNKNOWN)
            return true;
    }
    return false;
}

/*
 * Loads the timeline of the recording's threads unless the page requests it. A recording without
 * one is not an error. Adds to the warning why a timeline that is there cannot be shown.
 */
static void threads_load(const struct page_source *s, struct timeline **ret, struct buf *warning)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    if (s->timeline || s->site || (s->profile && s->profile->only_samples))
        return;
    int r = timeline_load(ret, s->path, &why);
    if (r == -EOVERFLOW || r == -E2BIG || r == -ENOMEM)
        buf_printf(warning, "%s%s", warning->len ? "; " : "", buf_str(&why));
}

static int threads_json(struct json *j, const struct page_source *s, const struct timeline *t)
{
    if (s->timeline)
        return page_timeline_json(j, s->timeline, s->path, true);
    return t && page_has_threads(t) ? page_timeline_json(j, t, s->path, false) : 0;
}

static void site_json(struct json *j, const struct page_site *site)
{
    json_key_object(j, "site");
    json_key_u64(j, "at", site->at);
    json_key_array(j, "files");
    for (size_t i = 0; i < site->count; i++)
        json_string(j, site->files[i]);
    json_end_array(j);
    json_key_array(j, "dumps");
    for (size_t i = 0; i < site->count; i++)
        if (site->dumps[i])
            json_u64(j, i);
    json_end_array(j);
    json_end_object(j);
}

int page_of_recording(const struct page_source *s, struct buf *out)
{
    struct json j = {out, false};
    _cleanup_(buf_release) struct buf warning = BUF(8192);
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    if (s->warning)
        buf_string(&warning, s->warning);
    threads_load(s, &t, &warning);
    json_begin_object(&j);
    json_key_string(&j, "version", JVMSCOPE_VERSION);
    json_key_string(&j, "file", s->name ? s->name : file_base(s->path));
    json_key_string(&j, "warning", warning.len ? buf_str(&warning) : NULL);
    json_key_string(&j, "whole", s->whole);
    json_key_string(&j, "part", s->part);
    json_key_u64(&j, "start_ms", s->profile->start_epoch_ns / 1000000);
    json_key_u64(&j, "duration_ns", s->profile->duration_ns);
    json_key_string(&j, "metric", profile_metrics[s->metric].name);
    int r = page_profile_json(&j, s->profile, &s->filter, s->fields, s->blob);
    if (r == 0)
        r = threads_json(&j, s, t);
    if (r == 0 && s->members->len)
        json_raw(&j, buf_str(s->members), s->members->len);
    if (s->site)
        site_json(&j, s->site);
    json_end_object(&j);
    return r < 0 ? r : buf_error(out);
}

void page_write(FILE *out, const struct buf *data)
{
    fputs(page_head, out);
    /*
     * Inside <script> only "<" could end the data. In JSON it occurs only in strings, so it can be
     * escaped.
     */
    for (size_t at = 0, n; at < data->len; at += n) {
        const uint8_t *stop = memchr(data->data + at, '<', data->len - at);
        n = stop ? (size_t)(stop - data->data) - at : data->len - at;
        fwrite(data->data + at, 1, n, out);
        if (stop) {
            fputs("\\u003c", out);
            n++;
        }
    }
    fputs(page_tail, out);
}
