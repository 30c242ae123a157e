/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of allocation sites: the sections SITES and ALLOC SITES, HEAP SUMMARY, and jvmscope.AllocationSite events. */
#include "agent/capture/alloc/sites_private.h"
#include "agent/capture/monitors/monitors.h"
#include "agent/dictionary.h"
#include "base/map.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 10 }; /* followed objects say nothing about an error */

/* A row: sites of one class and one trace as the output knows traces. */
struct row {
    uint32_t site; /* the first of them */
    uint32_t trace;
    struct estimate live, allocated;
    bool estimated; /* known by samples alone, beside exact counts */
};

struct report {
    VEC(struct row) rows;
    bool by_allocation;
    struct estimate estimated; /* rows of that kind: HPROF's sections, which cannot mark them, leave them out */
};

static double square_root(double x)
{
    double r = x > 1 ? x : 1;
    for (int i = 0; i < 100; i++)
        r = (r + x / r) / 2;
    return r;
}

static uint64_t rounded(double x)
{
    return x > 0 ? (uint64_t)(x + 0.5) : 0;
}

static void add(struct estimate *to, const struct estimate *e)
{
    to->objects += e->objects;
    to->bytes += e->bytes;
}

static void subtract(struct estimate *from, const struct estimate *e)
{
    from->objects -= e->objects;
    from->bytes -= e->bytes;
}

static const struct report *sorted; /* of rank(); reports run one at a time */

static int rank(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double p = sorted->by_allocation ? x->allocated.bytes : x->live.bytes;
    double q = sorted->by_allocation ? y->allocated.bytes : y->live.bytes;
    if (p == q && !sorted->by_allocation) {
        p = x->allocated.bytes;
        q = y->allocated.bytes;
    }
    return p != q ? (p < q ? 1 : -1) : (x->site > y->site) - (x->site < y->site);
}

/* A site's key; its bytes stay where they are until the session's end. */
static struct str key_of(uint32_t site, struct site_head *ret_head)
{
    struct str key = strpool_get(&site_table.keys, site);
    memcpy(ret_head, key.data, sizeof(*ret_head));
    return key;
}

static const char *class_of(uint32_t site)
{
    struct site_head head;
    pthread_mutex_lock(&site_table.lock);
    key_of(site, &head);
    const char *name = strpool_get(&site_table.classes, head.class).data;
    pthread_mutex_unlock(&site_table.lock);
    return name;
}

/* Class and running method of a site, as one number. */
static uint64_t place_of(uint32_t site)
{
    struct site_head head;
    struct site_frame top = {0};
    struct str key = key_of(site, &head);
    if (key.len > sizeof(head))
        memcpy(&top, key.data + sizeof(head), sizeof(top));
    return top.method * UINT64_C(0x9e3779b97f4a7c15) + head.class;
}

/*
 * What was sampled where nothing is counted. With exact counts a stack may be met by a sample before the counter of its place
 * walked one: such live objects are given to the largest site of their class and method. What then remains was allocated by
 * code that could not be changed, and by the VM itself: estimated. No more can live than was counted.
 */
static int give_samples(struct report *r)
{
    struct map largest = {0};
    struct row *rows = r->rows.data;
    int error = 0;
    for (size_t i = 0; i < r->rows.len && !error; i++) {
        if (rows[i].allocated.objects <= 0)
            continue;
        uint64_t *at = map_at(&largest, place_of(rows[i].site), i, NULL);
        error = at ? 0 : -1;
        if (at && rows[*at].allocated.bytes < rows[i].allocated.bytes)
            *at = i;
    }
    for (size_t i = 0; i < r->rows.len && !error; i++) {
        const struct site *s = &site_table.sites.data[rows[i].site];
        if (s->allocated.objects > 0 || s->sampled.objects <= 0)
            continue;
        const uint64_t *at = map_get(&largest, place_of(rows[i].site));
        if (at) {
            add(&rows[*at].live, &rows[i].live);
            rows[i].live = (struct estimate){0};
        } else {
            rows[i].allocated = s->sampled;
            rows[i].estimated = true;
            add(&r->estimated, &s->sampled);
        }
    }
    for (size_t i = 0; i < r->rows.len; i++) {
        rows[i].live.objects = MIN(rows[i].live.objects, rows[i].allocated.objects);
        rows[i].live.bytes = MIN(rows[i].live.bytes, rows[i].allocated.bytes);
    }
    map_release(&largest);
    return error;
}

/* Each site as a row, brought up to date after a collection. */
static int take_rows(JNIEnv *jni, unsigned flags, sites_settle *settle, struct report *r)
{
    (*vm.ti)->ForceGarbageCollection(vm.ti);
    pthread_mutex_lock(&site_table.lock);
    if (settle)
        settle(jni);
    sites_count_live(jni);
    int error = 0;
    for (size_t i = 0; i < site_table.sites.len && !error; i++) {
        const struct site *s = &site_table.sites.data[i];
        error = vec_push(&r->rows, ((struct row){.site = (uint32_t)i, .live = s->live, .allocated = s->allocated}));
    }
    if (!error && site_table.exact)
        error = give_samples(r);
    for (size_t i = 0; i < r->rows.len && flags & HPROF_SITES_INCREMENTAL; i++) {
        struct site *s = &site_table.sites.data[i];
        struct estimate now = r->rows.data[i].allocated;
        subtract(&r->rows.data[i].allocated, &s->told);
        s->told = now;
    }
    pthread_mutex_unlock(&site_table.lock);
    r->by_allocation = flags & HPROF_SITES_BY_ALLOCATION;
    return error;
}

static uint32_t frames_of(uint32_t site, struct jfr_frame frames[SITE_DEPTH_MAX], uint32_t *ret_thread)
{
    struct site_head head;
    pthread_mutex_lock(&site_table.lock);
    struct str key = key_of(site, &head);
    pthread_mutex_unlock(&site_table.lock);
    uint32_t n = (uint32_t)((key.len - sizeof(head)) / sizeof(struct site_frame));
    for (uint32_t f = 0; f < n; f++) {
        struct site_frame at;
        memcpy(&at, key.data + sizeof(head) + f * sizeof(at), sizeof(at));
        frames[f] = (struct jfr_frame){.method = at.method, .bci = (int32_t)at.bci, .type = JFR_FRAME_JIT};
    }
    *ret_thread = head.thread;
    return n;
}

/* Sites that the output does not tell apart become one row: other places on a line, lineno=n. */
static int merge_rows(struct session *s, JNIEnv *jni, struct report *r)
{
    struct jfr_frame frames[SITE_DEPTH_MAX];
    struct map known = {0};
    size_t kept = 0;
    int error = 0;
    for (size_t i = 0; i < r->rows.len && !error; i++) {
        struct row row = r->rows.data[i];
        struct site_head head;
        uint32_t thread;
        if (row.estimated || (row.allocated.objects <= 0 && row.live.objects <= 0))
            continue;
        uint32_t n = frames_of(row.site, frames, &thread);
        row.trace = dictionary_trace(s->out.dictionary, jni, frames, n, thread);
        pthread_mutex_lock(&site_table.lock);
        key_of(row.site, &head);
        pthread_mutex_unlock(&site_table.lock);
        bool added = false;
        uint64_t *at = map_at(&known, (uint64_t)row.trace << 32 | head.class, kept, &added);
        error = at ? 0 : -1;
        if (added)
            r->rows.data[kept++] = row;
        else if (at) {
            add(&r->rows.data[*at].live, &row.live);
            add(&r->rows.data[*at].allocated, &row.allocated);
        }
    }
    r->rows.len = kept;
    map_release(&known);
    return error;
}

static struct hprof_heap_totals totals_of(const struct report *r)
{
    struct estimate live = {0}, all = {0};
    for (size_t i = 0; i < r->rows.len; i++) {
        add(&live, &r->rows.data[i].live);
        add(&all, &r->rows.data[i].allocated);
    }
    return (struct hprof_heap_totals){rounded(live.bytes), rounded(live.objects), rounded(all.bytes), rounded(all.objects)};
}

static struct hprof_site site_record(struct session *s, const struct row *r)
{
    char name[1024];
    const char *class = class_of(r->site);
    monitors_source_name(class, name, sizeof(name));
    return (struct hprof_site){.array = class[0] == '[' ? (uint8_t)hprof_type_of_descriptor(class[1]) : 0,
                               .class_serial = dictionary_class(s->out.dictionary, name, 0),
                               .trace = r->trace,
                               .live_bytes = rounded(r->live.bytes),
                               .live_objects = rounded(r->live.objects),
                               .alloc_bytes = rounded(r->allocated.bytes),
                               .alloc_objects = rounded(r->allocated.objects)};
}

static void write_text(struct session *s, const struct report *r, size_t n, const struct hprof_heap_totals *all)
{
    struct hprof_text t;
    struct buf bytes;
    double accumulated = 0;
    char name[1024];
    out_section_open(&t, &bytes);
    hprof_text_sites_begin(&t, r->by_allocation ? "allocated bytes" : "live bytes", time(NULL));
    for (size_t i = 0; i < n; i++) {
        struct hprof_site site = site_record(s, &r->rows.data[i]);
        double self = r->by_allocation ? (double)site.alloc_bytes / (double)MAX(all->alloc_bytes, 1)
                                       : (double)site.live_bytes / (double)MAX(all->live_bytes, 1);
        accumulated += self;
        monitors_source_name(class_of(r->rows.data[i].site), name, sizeof(name));
        hprof_text_site(&t,
                        &(struct hprof_text_site){(uint32_t)i + 1, site.trace, 100 * self, 100 * accumulated, site.live_bytes,
                                                  site.live_objects, site.alloc_bytes, site.alloc_objects, name});
    }
    hprof_text_sites_end(&t);
    out_section_close(&s->out, &t, &bytes);
}

static void write_binary(struct session *s, const struct report *r, unsigned flags, double cutoff, size_t n,
                         const struct hprof_heap_totals *all)
{
    struct hprof_site *sites = calloc(n + 1, sizeof(*sites));
    if (!sites)
        return;
    for (size_t i = 0; i < n; i++)
        sites[i] = site_record(s, &r->rows.data[i]);
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    hprof_alloc_sites(&s->out.binary, (uint16_t)flags, (float)cutoff, all, sites, (uint32_t)n);
    pthread_mutex_unlock(&s->out.lock);
    free(sites);
}

/* doc/format.md describes it. */
static const struct jfr_type type = {
    .name = "jvmscope.AllocationSite",
    .label = "Allocation Site",
    .category = "jvmscope",
    .description = "Objects of a class allocated by a stack since the last such event of it; live ones as they changed",
    .kind = JFR_EVENT,
    .has = JFR_HAS_THREAD | JFR_HAS_STACK,
    .fields = JFR_FIELDS({"class", "Class", "java.lang.String"}, {"objects", "Objects", "long", JFR_UNITS},
                         {"bytes", "Bytes", "long", JFR_BYTES}, {"liveObjects", "Live Objects", "long", JFR_UNITS},
                         {"liveBytes", "Live Bytes", "long", JFR_BYTES},
                         {"estimated", "Estimated", "boolean", .description = "By samples: not all objects were counted"}),
};

static int64_t change(double now, double told)
{
    return (int64_t)rounded(now) - (int64_t)rounded(told);
}

/* One row as what came since the last time. False when there is no room in the recording. */
static bool write_event(struct session *s, const struct row *row, uint32_t event_type, uint64_t now)
{
    struct jfr_writer *w = s->out.jfr;
    struct jfr_frame frames[SITE_DEPTH_MAX];
    struct jfr_event e;
    uint32_t thread;
    char name[1024];
    pthread_mutex_lock(&site_table.lock);
    struct site told = site_table.sites.data[row->site];
    site_table.sites.data[row->site].told = row->allocated;
    site_table.sites.data[row->site].told_live = row->live;
    pthread_mutex_unlock(&site_table.lock);
    int64_t objects = change(row->allocated.objects, told.told.objects);
    int64_t live = change(row->live.objects, told.told_live.objects);
    if (!objects && !live)
        return true;
    uint32_t n = frames_of(row->site, frames, &thread);
    monitors_source_name(class_of(row->site), name, sizeof(name));
    uint64_t trace = jfr_trace(w, frames, n, false);
    while (!jfr_begin(w, event_type, strlen(name) + 256, &e))
        if (jfr_writer_work(w) < 0)
            return false;
    jfr_put_time(&e, now);
    jfr_put_long(&e, thread);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_string(&e, name);
    jfr_put_long(&e, objects);
    jfr_put_long(&e, change(row->allocated.bytes, told.told.bytes));
    jfr_put_long(&e, live);
    jfr_put_long(&e, change(row->live.bytes, told.told_live.bytes));
    jfr_put_byte(&e, row->estimated || !site_table.exact);
    jfr_commit(&e);
    return true;
}

static void write_recording(struct session *s, const struct report *r)
{
    uint32_t event_type;
    uint64_t now = now_ns();
    bool room = jfr_declare(s->out.jfr, &type, 1, &event_type) == 0;
    for (size_t i = 0; i < r->rows.len && room; i++)
        room = write_event(s, &r->rows.data[i], event_type, now);
    if (!room)
        session_message(s, "allocation sites: the recording has no room for all");
}

/* How good the figures are. */
static void tell_errors(struct session *s, const struct report *r, const struct hprof_heap_totals *all)
{
    char text[512];
    double bytes = (double)MAX(all->alloc_bytes, 1), live = (double)MAX(all->live_bytes, 1);
    char more[160] = "", error[80] = "too few for an error";
    if (site_table.live.len >= FEW)
        snprintf(error, sizeof(error), "standard error of live bytes %.2f %%",
                 100 * square_root(site_table.variance_live) / live);
    if (r->estimated.bytes > 0)
        snprintf(more, sizeof(more), "; besides, about %.0f bytes in %.0f objects by the VM and code that cannot be changed",
                 r->estimated.bytes, r->estimated.objects);
    if (site_table.all)
        snprintf(text, sizeof(text), "exact; %llu objects that live were followed from their allocation, %llu could not be",
                 (unsigned long long)site_table.live.len, (unsigned long long)site_table.not_followed);
    else if (site_table.exact)
        snprintf(text, sizeof(text), "allocated exact, live estimated from %zu followed objects, %s%s", site_table.live.len,
                 error, more);
    else
        snprintf(text, sizeof(text), "estimated from %llu samples, standard error of all bytes %.2f %%",
                 (unsigned long long)site_table.samples, 100 * square_root(site_table.variance_bytes) / bytes);
    session_message(s, "heap=sites: %s", text);
    if (option_on(&s->options, OPT_VERBOSE) && !vm.attached)
        fprintf(stderr, " (%s)", text);
}

/* The address that a weak reference holds; JDK 9 marks such references in the low bits. */
static uint64_t address_of(jweak weak)
{
    const uint64_t *at = (const uint64_t *)((uintptr_t)weak & ~(uintptr_t)7);
    return at ? *at : 0;
}

int sites_traces(struct session *s, JNIEnv *jni, struct map *ret)
{
    struct jfr_frame frames[SITE_DEPTH_MAX];
    int error = 0;
    /* A collector that moves objects moves one this young. */
    jbyteArray young = (*jni)->NewByteArray(jni, 8);
    jweak watched = young ? (*jni)->NewWeakGlobalRef(jni, young) : NULL;
    uint64_t before = address_of(watched);
    pthread_mutex_lock(&site_table.lock);
    uint32_t *serials = calloc(site_table.sites.len + 1, sizeof(*serials));
    size_t n = site_table.sites.len;
    for (size_t i = 0; i < site_table.live.len && !error; i++) {
        uint64_t address = address_of(site_table.live.data[i].object);
        if (address)
            error = map_put(ret, address, site_table.live.data[i].site);
    }
    pthread_mutex_unlock(&site_table.lock);
    if (!error && (!before || before != address_of(watched)))
        error = -EAGAIN;
    for (size_t i = 0; i < n && serials && !error; i++) {
        uint32_t thread, depth = frames_of((uint32_t)i, frames, &thread);
        serials[i] = dictionary_trace(s->out.dictionary, jni, frames, depth, thread);
    }
    uint64_t address, site;
    for (size_t i = 0; serials && !error && map_next(ret, &i, &address, &site);)
        *map_get(ret, address) = site < n ? serials[site] : 0;
    free(serials);
    if (watched)
        (*jni)->DeleteWeakGlobalRef(jni, watched);
    if (young)
        (*jni)->DeleteLocalRef(jni, young);
    vm_clear_exception(jni);
    return error;
}

static double order_bytes(const struct report *r, size_t i)
{
    return r->by_allocation ? r->rows.data[i].allocated.bytes : r->rows.data[i].live.bytes;
}

void sites_report(struct session *s, JNIEnv *jni, unsigned flags, double cutoff, sites_settle *settle)
{
    struct report r = {0};
    int error = take_rows(jni, flags, settle, &r);
    if (!error && s->out.format != 'r')
        error = merge_rows(s, jni, &r);
    struct hprof_heap_totals all = totals_of(&r);
    double whole = (double)(r.by_allocation ? all.alloc_bytes : all.live_bytes);
    sorted = &r;
    if (r.rows.len)
        qsort(r.rows.data, r.rows.len, sizeof(*r.rows.data), rank);
    size_t kept = 0;
    while (kept < r.rows.len && order_bytes(&r, kept) >= cutoff * whole && r.rows.data[kept].allocated.bytes > 0)
        kept++;
    if (error)
        session_message(s, "heap=sites: no memory for a report");
    else if (s->out.format == 'r')
        write_recording(s, &r);
    else if (s->out.format == 'a')
        write_text(s, &r, kept, &all);
    else
        write_binary(s, &r, flags, cutoff, kept, &all);
    if (!error)
        tell_errors(s, &r, &all);
    vec_release(&r.rows);
}

static void summarize(struct session *s, JNIEnv *jni, sites_settle *settle)
{
    struct report r = {0};
    int error = take_rows(jni, 0, settle, &r);
    struct hprof_heap_totals all = totals_of(&r);
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    if (!error && s->out.format == 'b')
        hprof_heap_summary(&s->out.binary, &all);
    pthread_mutex_unlock(&s->out.lock);
    vec_release(&r.rows);
}

void sites_request(struct session *s, JNIEnv *jni, const struct hprof_request *r, sites_settle *settle)
{
    if (r->command == HPROF_CMD_ALLOC_SITES)
        sites_report(s, jni, r->flags, (double)r->cutoff, settle);
    else if (r->command == HPROF_CMD_HEAP_SUMMARY)
        summarize(s, jni, settle);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_TRACES_ON)
        site_table.depth = (uint32_t)MIN(s->options.v[OPT_DEPTH].number, SITE_DEPTH_MAX - SITE_SKIP_MAX);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_TRACES_OFF)
        site_table.depth = 0;
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_MAX_DEPTH && site_table.depth)
        site_table.depth = MIN(r->depth, SITE_DEPTH_MAX - SITE_SKIP_MAX);
}
