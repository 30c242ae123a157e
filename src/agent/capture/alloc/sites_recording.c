/* SPDX-License-Identifier: Apache-2.0 */
/* Writes jvmscope.AllocationSite events. */
#include "agent/capture/alloc/sites_rows.h"
#include "agent/capture/monitors/monitors.h"

#include <stdio.h>
#include <string.h>

/* This event is described in doc/format.md. */
static const struct jfr_type type = {
    .name = "jvmscope.AllocationSite",
    .label = "Allocation Site",
    .category = "jvmscope",
    .description = "The objects of a class that a stack has allocated since its previous event, "
                   "and the change in the number of live ones",
    .kind = JFR_EVENT,
    .has = JFR_HAS_THREAD | JFR_HAS_STACK,
    .fields = JFR_FIELDS(
        {"class", "Class", "java.lang.String"},
        {"objects", "Objects", "long", JFR_UNITS,
         .description = "If several stacks lead to one place, the number of each stack is "
                        "estimated; its standard error is at most 1.1 % if the place allocated "
                        "many megabytes, and 9 % if it allocated little"},
        {"bytes", "Bytes", "long", JFR_BYTES,
         .description = "Estimated in the same way as objects"},
        {"liveObjects", "Live Objects", "long", JFR_UNITS},
        {"liveBytes", "Live Bytes", "long", JFR_BYTES},
        {"estimated", "Estimated", "boolean",
         .description = "The figures come from samples; not all objects were counted"},
        {"liveKnown", "Live Known", "boolean",
         .description =
             "True if a collection preceded the report; otherwise live figures are unknown"},
        {"liveObjectsError", "Standard Error of Live Objects", "long", JFR_UNITS,
         .description = "0 if the figure is exact"},
        {"liveBytesError", "Standard Error of Live Bytes", "long", JFR_BYTES,
         .description = "0 if the figure is exact"},
        {"collected", "Collected", "boolean",
         .description = "If false, live figures are as of the VM's last collection"},
        {"onlyCounted", "Not Supplemented by Samples", "boolean",
         .description = "No samples supplement the counts: the recording lacks what the VM itself "
                        "and code that is not changed allocated"},
        {"everyStack", "Every Stack", "boolean",
         .description =
             "The stack of each object was walked, so no count of a stack is estimated"}),
};

static int64_t change(double now, double reported)
{
    return (int64_t)sites_rounded(now) - (int64_t)sites_rounded(reported);
}

/*
 * Writes a row as jdk.ObjectAllocationSample for readers that know only jdk.* events (`jfr view
 * allocation-by-site`, JMC). Our own reader uses the events of sites.
 */
static void write_as_sample(struct jfr_writer *w, const struct site_row *row, uint32_t thread,
                            uint64_t trace, uint64_t now, int64_t bytes)
{
    const char *class = sites_class_of(row->site);
    size_t len = strlen(class);
    bool signature = class[0] == 'L' && class[len - 1] == ';';
    char name[1024];
    struct jfr_event e;
    snprintf(name, sizeof(name), "%.*s", (int)(signature ? len - 2 : len), class + signature);
    uint64_t constant = jfr_define_class(w, &(struct jfr_class){.name = name});
    if (bytes <= 0)
        return;
    if (!jfr_begin_growing(w, JFR_OBJECT_ALLOCATION_SAMPLE, 0, &e)) {
        jfr_lose_events(w, JFR_OBJECT_ALLOCATION_SAMPLE, 1);
        return;
    }
    jfr_put_time(&e, now);
    jfr_put_long(&e, thread);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, (int64_t)constant);
    jfr_put_long(&e, bytes);
    jfr_commit(&e);
}

/* How a row differs from what the recording already contains of its site. */
struct change {
    int64_t objects, bytes, live_objects, live_bytes;
    bool any;
};

static struct change change_of(const struct site_rows *r, const struct site_row *row)
{
    pthread_mutex_lock(&site_table.lock);
    struct site reported = site_table.sites.data[row->site];
    pthread_mutex_unlock(&site_table.lock);
    struct estimate alive = r->collected ? row->live : reported.reported_live;
    struct change c = {.objects = change(row->allocated.objects, reported.reported.objects),
                       .bytes = change(row->allocated.bytes, reported.reported.bytes),
                       .live_objects = change(alive.objects, reported.reported_live.objects),
                       .live_bytes = change(alive.bytes, reported.reported_live.bytes)};
    c.any = c.objects || c.live_objects ||
            (r->collected && !reported.live_is_reported && row->allocated.objects > 0);
    return c;
}

/* Notes that the recording now contains the row as it is, or that the difference was lost. */
static void set_reported(const struct site_rows *r, const struct site_row *row)
{
    pthread_mutex_lock(&site_table.lock);
    struct site *site = &site_table.sites.data[row->site];
    site->reported = row->allocated;
    if (r->collected)
        site->reported_live = row->live;
    site->live_is_reported |= r->collected;
    pthread_mutex_unlock(&site_table.lock);
}

/*
 * Writes the change of one row since the last time. Returns false if there is no room in the
 * recording.
 */
static bool write_event(struct session *s, const struct site_rows *r, const struct site_row *row,
                        uint32_t event_type, uint64_t now, uint64_t *events)
{
    struct jfr_writer *w = s->out.jfr;
    struct jfr_frame frames[SITE_DEPTH_MAX];
    struct jfr_event e;
    uint32_t thread;
    char name[1024];
    struct change c = change_of(r, row);
    if (!c.any)
        return true;
    uint32_t n = sites_frames_of(row->site, frames, &thread);
    monitors_source_name(sites_class_of(row->site), name, sizeof(name));
    uint64_t trace = jfr_trace_growing(w, frames, n, n == sites_depth());
    if (!jfr_begin_growing(w, event_type, strlen(name) + 256, &e))
        return false;
    jfr_put_time(&e, now);
    jfr_put_long(&e, thread);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_string(&e, name);
    jfr_put_long(&e, c.objects);
    jfr_put_long(&e, c.bytes);
    jfr_put_long(&e, c.live_objects);
    jfr_put_long(&e, c.live_bytes);
    jfr_put_byte(&e, row->estimated || !site_table.exact);
    jfr_put_byte(&e, r->collected);
    jfr_put_long(&e, (int64_t)sites_rounded(row->error.objects));
    jfr_put_long(&e, (int64_t)sites_rounded(row->error.bytes));
    jfr_put_byte(&e, site_table.collected);
    jfr_put_byte(&e, site_table.exact && !site_table.interval);
    jfr_put_byte(&e, site_table.all);
    jfr_commit(&e);
    set_reported(r, row);
    write_as_sample(w, row, thread, trace, now, c.bytes);
    ++*events;
    return true;
}

/* Counts the changes of all rows from a given one on as lost. */
static void lose_rows(struct jfr_writer *w, const struct site_rows *r, size_t from,
                      uint32_t event_type)
{
    for (size_t i = from; i < r->rows.len; i++) {
        const struct site_row *row = &r->rows.data[i];
        struct change c = change_of(r, row);
        if (!c.any)
            continue;
        jfr_lose_events(w, event_type, 1);
        jfr_lose_held(w, HELD_OBJECTS, (uint64_t)MAX(c.objects, 0));
        jfr_lose_held(w, HELD_BYTES, (uint64_t)MAX(c.bytes, 0));
        set_reported(r, row);
    }
}

bool sites_write_recording(struct session *s, JNIEnv *jni, const struct site_rows *r, bool later,
                           uint64_t *ret_events)
{
    enum { DRAIN_EVERY = 256 };

    uint32_t event_type;
    uint64_t now = now_ns();
    size_t i = 0;
    if (jfr_declare(s->out.jfr, &type, 1, &event_type) < 0)
        return false;
    for (; i < r->rows.len; i++) {
        if (!write_event(s, r, &r->rows.data[i], event_type, now, ret_events))
            break;
        if (i % DRAIN_EVERY == DRAIN_EVERY - 1)
            session_drain(s, jni);
    }
    if (i < r->rows.len && !later) {
        lose_rows(s->out.jfr, r, i, event_type);
        session_message(s, "allocation sites: the recording has no room for all");
    }
    return i == r->rows.len;
}
