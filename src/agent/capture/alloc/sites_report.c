/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of allocation sites: the sections SITES and ALLOC SITES, HEAP SUMMARY, and
 * jvmscope.AllocationSite events.
 */
#include "agent/capture/alloc/sites_private.h"
#include "agent/capture/monitors/monitors.h"
#include "agent/output/dictionary.h"
#include "agent/session/ending.h"
#include "base/map.h"
#include "base/parse.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row combines the sites of one class and one trace, as the output distinguishes traces. */
struct row {
    uint32_t site; /* the first of these sites */
    uint32_t trace;
    struct estimate live, allocated;
    struct estimate variance; /* of live, estimated from tracked objects */
    struct estimate error;    /* of live, the standard error; set by know_errors() */
    /* allocated and never tracked: it is not known whether they are alive */
    struct estimate unseen;
    double followed; /* objects that were tracked individually */
    double most;     /* so many objects one that was tracked stood for, at most */
    bool met;        /* an object of the row has been tracked */
    bool estimated;  /* found only by samples, although exact counts were recorded */
};

struct report {
    VEC(struct row) rows;
    bool by_allocation;
    bool collected; /* a collection has run, so `live` is known */
    /* number of such rows; the HPROF sections, which cannot mark them, omit them */
    struct estimate estimated;
};

static double square_root(double x)
{
    if (x <= 0)
        return 0;
    double r = x > 1 ? x : 1;
    for (int i = 0; i < 100 && r * r > x * (1 + 1e-9); i++)
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

/*
 * The number of objects that one tracked object of a row may represent; 0: every object is tracked.
 */
static double stands_for(const struct row *r)
{
    double each = r->unseen.objects > 0 ? r->unseen.bytes / r->unseen.objects : 0;
    if (r->unseen.objects < 0.5)
        return 0;
    /* Nor could any other object: its constructor call cannot be found in the bytecode. */
    if (site_table.all || (!site_table.interval && !r->met))
        return r->unseen.objects;
    return site_table.interval ? 1 / sites_chance((jlong)MAX(each, 1), site_table.interval)
                               : r->most;
}

/*
 * The standard error of a row's live objects. If no object was tracked, as many objects may be
 * alive as one tracked object would have represented, which no estimate of the variance includes.
 */
static struct estimate reckon_error(const struct row *r)
{
    double unseen = MIN(stands_for(r), r->unseen.objects);
    double each = r->unseen.objects > 0 ? r->unseen.bytes / r->unseen.objects : 0;
    struct estimate e = {MAX(square_root(r->variance.objects), unseen),
                         MAX(square_root(r->variance.bytes), unseen * each)};
    /* What is alive has room in the heap. */
    if (site_table.heap > 0 && e.bytes > site_table.heap) {
        e.objects *= site_table.heap / e.bytes;
        e.bytes = site_table.heap;
    }
    return e;
}

/* Called when the rows are complete. */
static void know_errors(struct report *r)
{
    for (size_t i = 0; i < r->rows.len; i++)
        r->rows.data[i].error = reckon_error(&r->rows.data[i]);
}

/*
 * The value by which rows are ranked when live bytes are requested. Rows whose figure is below its
 * error come last.
 */
static double certain_bytes(const struct row *r)
{
    return r->live.bytes < r->error.bytes ? 0 : r->live.bytes;
}

static void add_live(struct row *to, const struct row *row)
{
    add(&to->live, &row->live);
    add(&to->variance, &row->variance);
    add(&to->unseen, &row->unseen);
    to->followed += row->followed;
    to->most = MAX(to->most, row->most);
    to->met = to->met || row->met;
}

static void subtract(struct estimate *from, const struct estimate *e)
{
    from->objects -= e->objects;
    from->bytes -= e->bytes;
}

static const struct report *sorted; /* argument of rank(); reports run one at a time */

static int rank(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double p = sorted->by_allocation ? x->allocated.bytes : certain_bytes(x);
    double q = sorted->by_allocation ? y->allocated.bytes : certain_bytes(y);
    if (p == q && !sorted->by_allocation) {
        p = x->allocated.bytes;
        q = y->allocated.bytes;
    }
    return p != q ? (p < q ? 1 : -1) : (x->site > y->site) - (x->site < y->site);
}

/* A site's key. Its bytes do not move until the end of the session. */
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

/* A site's class and running method, combined into one number. */
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
 * No more objects can be alive than were counted. If stack samples gave a path to a place too small
 * a share, that is an error as well.
 */
static void cut_live(struct row *r)
{
    double objects = r->live.objects - r->allocated.objects,
           bytes = r->live.bytes - r->allocated.bytes;
    if (objects > 0) {
        r->live.objects = r->allocated.objects;
        r->variance.objects = MAX(r->variance.objects, objects * objects);
    }
    if (bytes > 0) {
        r->live.bytes = r->allocated.bytes;
        r->variance.bytes = MAX(r->variance.bytes, bytes * bytes);
    }
}

/*
 * Handles what was sampled where nothing is counted. With exact counts, a sample may find a stack
 * before a stack sample of its place's counter does; such live objects are given to the largest
 * site of the same class and method. The rest was allocated by code that cannot be instrumented and
 * by the VM itself, and is an estimate.
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
            add_live(&rows[*at], &rows[i]);
            rows[i].live = rows[i].variance = (struct estimate){0};
        } else {
            rows[i].allocated = s->sampled;
            rows[i].estimated = true;
            add(&r->estimated, &s->sampled);
        }
    }
    for (size_t i = 0; i < r->rows.len; i++)
        cut_live(&rows[i]);
    map_release(&largest);
    return error;
}

/* The bytes of the heap that are in use, 0 when the VM does not tell. */
static double heap_in_use(void)
{
    typedef jlong(JNICALL * amount)(void);
    amount total = (amount)vm_libjvm_function("JVM_TotalMemory"),
           unused = (amount)vm_libjvm_function("JVM_FreeMemory");
    return total && unused ? (double)MAX(total() - unused(), 0) : 0;
}

/* Collects garbage and counts what is alive. */
static void take_live(JNIEnv *jni)
{
    bool collected = collect_garbage(jni);
    double heap = heap_in_use();
    pthread_mutex_lock(&site_table.lock);
    site_table.collected = collected;
    site_table.heap = heap;
    sites_count_live(jni);
    pthread_mutex_unlock(&site_table.lock);
}

void sites_ending(JNIEnv *jni)
{
    take_live(jni);
    site_table.counted = true;
}

/*
 * Makes a row of each site, brought up to date, including live objects after a collection, when
 * r->collected.
 */
static int take_rows(JNIEnv *jni, unsigned flags, sites_settle *settle, struct report *r)
{
    if (r->collected && !site_table.counted)
        take_live(jni);
    pthread_mutex_lock(&site_table.lock);
    if (settle)
        settle(jni);
    int error = 0;
    for (size_t i = 0; i < site_table.sites.len && !error; i++) {
        const struct site *s = &site_table.sites.data[i];
        error = vec_push(&r->rows, ((struct row){.site = (uint32_t)i,
                                                 .live = s->live,
                                                 .variance = s->variance,
                                                 .followed = s->followed,
                                                 .most = s->most,
                                                 .met = s->met,
                                                 .allocated = s->allocated}));
    }
    if (!error && site_table.exact)
        error = give_samples(r);
    for (size_t i = 0; i < r->rows.len && !site_table.complete; i++) {
        struct row *row = &r->rows.data[i];
        double share = 1 - row->followed / MAX(row->allocated.objects, 1);
        if (share > 0)
            row->unseen =
                (struct estimate){share * row->allocated.objects, share * row->allocated.bytes};
    }
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

static uint32_t frames_of(uint32_t site, struct jfr_frame frames[SITE_DEPTH_MAX],
                          uint32_t *ret_thread)
{
    struct site_head head;
    pthread_mutex_lock(&site_table.lock);
    struct str key = key_of(site, &head);
    pthread_mutex_unlock(&site_table.lock);
    uint32_t n = (uint32_t)((key.len - sizeof(head)) / sizeof(struct site_frame));
    for (uint32_t f = 0; f < n; f++) {
        struct site_frame at;
        memcpy(&at, key.data + sizeof(head) + f * sizeof(at), sizeof(at));
        frames[f] =
            (struct jfr_frame){.method = at.method, .bci = (int32_t)at.bci, .type = JFR_FRAME_JIT};
    }
    *ret_thread = head.thread;
    return n;
}

/*
 * Combines sites that the output does not distinguish, which differ only in the place on a line or
 * have lineno=n, into one row.
 */
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
            add_live(&r->rows.data[*at], &row);
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
    return (struct hprof_heap_totals){rounded(live.bytes), rounded(live.objects),
                                      rounded(all.bytes), rounded(all.objects)};
}

/*
 * The standard error of all live bytes, derived from the tracked objects where there are more than
 * a few.
 */
static double error_of_all(const struct report *r)
{
    double variance = 0, unseen = 0;
    for (size_t i = 0; i < r->rows.len; i++) {
        const struct row *row = &r->rows.data[i];
        variance += row->variance.bytes;
        unseen = MAX(unseen, row->error.bytes);
    }
    return MAX(square_root(variance), unseen);
}

/* Rounds an estimate to the digits that its error supports, and limits it to what was allocated. */
static uint64_t told_with(double value, double error, uint64_t allocated)
{
    uint64_t step = 1;
    while ((double)step * 10 <= error)
        step *= 10;
    return MIN((rounded(value) + step / 2) / step * step, allocated);
}

static struct hprof_site site_record(struct session *s, const struct row *r)
{
    char name[1024];
    const char *class = class_of(r->site);
    monitors_source_name(class, name, sizeof(name));
    return (struct hprof_site){
        .array = class[0] == '[' ? (uint8_t)hprof_type_of_descriptor(class[1]) : 0,
        .class_serial = dictionary_class(s->out.dictionary, name, 0),
        .trace = r->trace,
        .live_bytes = rounded(r->live.bytes),
        .live_objects = rounded(r->live.objects),
        .alloc_bytes = rounded(r->allocated.bytes),
        .alloc_objects = rounded(r->allocated.objects)};
}

/*
 * Follows the table, whose columns are fixed: which of its live figures are estimates, and how
 * accurate they are.
 */
static void write_text_errors(struct hprof_text *t, const struct report *r, size_t n)
{
    double below = 0;
    unsigned rows = 0;
    if (error_of_all(r) < 0.5)
        return;
    hprof_text_live_errors_begin(t);
    for (size_t i = 0; i < n; i++) {
        struct estimate error = r->rows.data[i].error;
        if (error.objects >= 0.5)
            hprof_text_live_error(t, (uint32_t)i + 1, rounded(error.bytes), rounded(error.objects));
    }
    for (size_t i = 0; i < r->rows.len; i++) {
        const struct row *row = &r->rows.data[i];
        rows += row->live.bytes > 0 && certain_bytes(row) <= 0;
        below += certain_bytes(row) <= 0 ? row->live.bytes : 0;
    }
    hprof_text_live_errors_end(t, rows, rounded(below), rounded(error_of_all(r)));
}

static void write_text(struct session *s, const struct report *r, size_t n,
                       const struct hprof_heap_totals *all)
{
    struct hprof_text t;
    struct buf bytes;
    double accumulated = 0;
    char name[1024];
    out_section_open(&t, &bytes);
    hprof_text_sites_begin(&t, r->by_allocation ? "allocated bytes" : "live bytes", time(NULL));
    for (size_t i = 0; i < n; i++) {
        struct hprof_site site = site_record(s, &r->rows.data[i]);
        struct estimate error = r->rows.data[i].error;
        double self = r->by_allocation ? (double)site.alloc_bytes / (double)MAX(all->alloc_bytes, 1)
                                       : (double)site.live_bytes / (double)MAX(all->live_bytes, 1);
        accumulated += self;
        monitors_source_name(class_of(r->rows.data[i].site), name, sizeof(name));
        hprof_text_site(
            &t, &(struct hprof_text_site){
                    (uint32_t)i + 1, site.trace, 100 * self, 100 * accumulated,
                    told_with(r->rows.data[i].live.bytes, error.bytes, site.alloc_bytes),
                    told_with(r->rows.data[i].live.objects, error.objects, site.alloc_objects),
                    site.alloc_bytes, site.alloc_objects, name});
    }
    hprof_text_sites_end(&t);
    write_text_errors(&t, r, n);
    out_section_close(&s->out, &t, &bytes);
}

static void write_binary(struct session *s, const struct report *r, unsigned flags, double cutoff,
                         size_t n, const struct hprof_heap_totals *all)
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
    .description = "Objects of a class allocated by a stack since the last such event of it; live "
                   "ones as they changed",
    .kind = JFR_EVENT,
    .has = JFR_HAS_THREAD | JFR_HAS_STACK,
    .fields = JFR_FIELDS(
        {"class", "Class", "java.lang.String"}, {"objects", "Objects", "long", JFR_UNITS},
        {"bytes", "Bytes", "long", JFR_BYTES}, {"liveObjects", "Live Objects", "long", JFR_UNITS},
        {"liveBytes", "Live Bytes", "long", JFR_BYTES},
        {"estimated", "Estimated", "boolean",
         .description = "By samples: not all objects were counted"},
        {"liveKnown", "Live Known", "boolean",
         .description = "After a collection; else live objects were not looked for"},
        {"liveObjectsError", "Standard Error of Live Objects", "long", JFR_UNITS,
         .description = "0: exact"},
        {"liveBytesError", "Standard Error of Live Bytes", "long", JFR_BYTES,
         .description = "0: exact"},
        {"collected", "Collected", "boolean",
         .description = "Else live ones are of the VM's last collection"}),
};

static int64_t change(double now, double told)
{
    return (int64_t)rounded(now) - (int64_t)rounded(told);
}

/*
 * The same for readers that know only jdk.* events (`jfr view allocation-by-site`, JMC). Our own
 * reader uses the site events.
 */
static void write_as_sample(struct jfr_writer *w, const struct row *row, uint32_t thread,
                            uint64_t trace, uint64_t now, int64_t bytes)
{
    const char *class = class_of(row->site);
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

/* How a row differs from what the recording says of its site. */
struct change {
    int64_t objects, bytes, live_objects, live_bytes;
    bool any;
};

static struct change change_of(const struct report *r, const struct row *row)
{
    pthread_mutex_lock(&site_table.lock);
    struct site told = site_table.sites.data[row->site];
    pthread_mutex_unlock(&site_table.lock);
    struct estimate alive = r->collected ? row->live : told.told_live;
    struct change c = {.objects = change(row->allocated.objects, told.told.objects),
                       .bytes = change(row->allocated.bytes, told.told.bytes),
                       .live_objects = change(alive.objects, told.told_live.objects),
                       .live_bytes = change(alive.bytes, told.told_live.bytes)};
    c.any = c.objects || c.live_objects ||
            (r->collected && !told.live_is_told && row->allocated.objects > 0);
    return c;
}

/* The recording says what the row says, or that it was lost. */
static void set_told(const struct report *r, const struct row *row)
{
    pthread_mutex_lock(&site_table.lock);
    struct site *site = &site_table.sites.data[row->site];
    site->told = row->allocated;
    if (r->collected)
        site->told_live = row->live;
    site->live_is_told |= r->collected;
    pthread_mutex_unlock(&site_table.lock);
}

/*
 * Writes the change of one row since the last time. False when there is no room in the recording.
 */
static bool write_event(struct session *s, const struct report *r, const struct row *row,
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
    uint32_t n = frames_of(row->site, frames, &thread);
    monitors_source_name(class_of(row->site), name, sizeof(name));
    uint64_t trace = jfr_trace(w, frames, n, n == sites_depth());
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
    jfr_put_long(&e, (int64_t)rounded(row->error.objects));
    jfr_put_long(&e, (int64_t)rounded(row->error.bytes));
    jfr_put_byte(&e, site_table.collected);
    jfr_commit(&e);
    set_told(r, row);
    write_as_sample(w, row, thread, trace, now, c.bytes);
    ++*events;
    return true;
}

/* Counts the changes of all rows from one on as lost. */
static void lose_rows(struct jfr_writer *w, const struct report *r, size_t from,
                      uint32_t event_type)
{
    for (size_t i = from; i < r->rows.len; i++) {
        const struct row *row = &r->rows.data[i];
        struct change c = change_of(r, row);
        if (!c.any)
            continue;
        jfr_lose_events(w, event_type, 1);
        jfr_lose_held(w, HELD_OBJECTS, (uint64_t)MAX(c.objects, 0));
        jfr_lose_held(w, HELD_BYTES, (uint64_t)MAX(c.bytes, 0));
        set_told(r, row);
    }
}

/* later: what finds no room is written by the next report, and is not lost yet. */
static uint64_t write_recording(struct session *s, JNIEnv *jni, const struct report *r, bool later)
{
    enum { DRAIN_EVERY = 256 };

    uint32_t event_type;
    uint64_t now = now_ns(), events = 0;
    size_t i = 0;
    if (jfr_declare(s->out.jfr, &type, 1, &event_type) < 0)
        return 0;
    for (; i < r->rows.len; i++) {
        if (!write_event(s, r, &r->rows.data[i], event_type, now, &events))
            break;
        if (i % DRAIN_EVERY == DRAIN_EVERY - 1)
            session_drain(s, jni);
    }
    if (i < r->rows.len && !later) {
        lose_rows(s->out.jfr, r, i, event_type);
        session_message(s, "allocation sites: the recording has no room for all");
    }
    return events;
}

/* Describes the accuracy of the figures. */
static void tell_errors(struct session *s, const struct report *r,
                        const struct hprof_heap_totals *all)
{
    char text[512];
    double bytes = (double)MAX(all->alloc_bytes, 1), live = (double)MAX(all->live_bytes, 1);
    char more[160] = "", error[80] = "exact, every object was followed";
    if (site_table.exact && error_of_all(r) >= 0.5)
        snprintf(error, sizeof(error),
                 "estimated from %zu followed objects, standard error of live bytes %.2f %%",
                 site_table.live.len, MIN(100 * error_of_all(r) / live, 100));
    if (r->estimated.bytes > 0)
        snprintf(
            more, sizeof(more),
            "; besides, about %.0f bytes in %.0f objects by the VM and code that cannot be changed",
            r->estimated.bytes, r->estimated.objects);
    if (site_table.all)
        snprintf(text, sizeof(text),
                 "%s; followed %s that are alive from their allocation, and could not follow %llu",
                 site_table.collected ? "exact" : "allocated exact",
                 COUNT_TEXT(site_table.live.len, "objects"),
                 (unsigned long long)site_table.not_followed);
    else if (site_table.exact)
        snprintf(text, sizeof(text), "allocated exact, live %s%s", error, more);
    else
        snprintf(text, sizeof(text),
                 "estimated from %llu samples, standard error of all bytes %.2f %%",
                 (unsigned long long)site_table.samples,
                 100 * square_root(site_table.variance_bytes) / bytes);
    session_message(s, "heap=sites: %s", text);
    if (!site_table.collected)
        session_warn(
            s, "heap=sites: live figures are as of the VM's last collection and may count objects "
               "that nothing reaches: "
               "the VM ended without shutdown hooks, or its collector does not collect on request");
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
    /* An address may change while the object is this young, if the collector moves objects. */
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
    return r->by_allocation ? r->rows.data[i].allocated.bytes : certain_bytes(&r->rows.data[i]);
}

void sites_report(struct session *s, JNIEnv *jni, unsigned flags, double cutoff,
                  sites_settle *settle)
{
    struct report r = {.collected = true};
    int error = take_rows(jni, flags, settle, &r);
    if (!error && s->out.format != OUT_RECORDING)
        error = merge_rows(s, jni, &r);
    know_errors(&r);
    struct hprof_heap_totals all = totals_of(&r);
    double whole = (double)(r.by_allocation ? all.alloc_bytes : all.live_bytes);
    sorted = &r;
    if (r.rows.len)
        qsort(r.rows.data, r.rows.len, sizeof(*r.rows.data), rank);
    size_t kept = 0;
    while (kept < r.rows.len && order_bytes(&r, kept) >= cutoff * whole &&
           r.rows.data[kept].allocated.bytes > 0)
        kept++;
    if (error)
        session_message(s, "heap=sites: no memory for a report");
    else if (s->out.format == OUT_RECORDING)
        write_recording(s, jni, &r, false);
    else if (s->out.format == OUT_TEXT)
        write_text(s, &r, kept, &all);
    else
        write_binary(s, &r, flags, cutoff, kept, &all);
    if (!error)
        tell_errors(s, &r, &all);
    vec_release(&r.rows);
}

uint64_t sites_save(struct session *s, JNIEnv *jni, sites_settle *settle)
{
    struct report r = {0};
    uint64_t events = take_rows(jni, 0, settle, &r) == 0 ? write_recording(s, jni, &r, true) : 0;
    vec_release(&r.rows);
    return events;
}

static void summarize(struct session *s, JNIEnv *jni, sites_settle *settle)
{
    struct report r = {.collected = true};
    int error = take_rows(jni, 0, settle, &r);
    struct hprof_heap_totals all = totals_of(&r);
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    if (!error && s->out.format == OUT_BINARY)
        hprof_heap_summary(&s->out.binary, &all);
    pthread_mutex_unlock(&s->out.lock);
    vec_release(&r.rows);
}

void sites_request(struct session *s, JNIEnv *jni, const struct hprof_request *r,
                   sites_settle *settle)
{
    if (r->command == HPROF_CMD_ALLOC_SITES)
        sites_report(s, jni, r->flags, (double)r->cutoff, settle);
    else if (r->command == HPROF_CMD_HEAP_SUMMARY)
        summarize(s, jni, settle);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_TRACES_ON)
        site_table.depth =
            (uint32_t)MIN(s->options.v[OPT_DEPTH].number, SITE_DEPTH_MAX - SITE_SKIP_MAX);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_TRACES_OFF)
        site_table.depth = 0;
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_MAX_DEPTH &&
             site_table.depth)
        site_table.depth = MIN(r->depth, SITE_DEPTH_MAX - SITE_SKIP_MAX);
}
