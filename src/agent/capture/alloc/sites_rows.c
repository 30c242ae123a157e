/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the rows that reports of allocation sites show, with up-to-date figures and their errors.
 */
#include "agent/capture/alloc/sites_rows.h"

#include "agent/output/dictionary.h"
#include "agent/stacks/names.h"
#include "agent/vm/collect.h"
#include "base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

double sites_square_root(double x)
{
    if (x <= 0)
        return 0;
    double r = x > 1 ? x : 1;
    for (int i = 0; i < 100 && r * r > x * (1 + 1e-9); i++)
        r = (r + x / r) / 2;
    return r;
}

double sites_chance(jlong size, uint64_t interval)
{
    /* 1 - exp(-x) without libm: a series near 0, extended by 1 - (1 - p)^2. */
    if (!interval)
        return 1;
    double x = (double)size / (double)interval;
    int doublings = 0;
    while (x > 0.01) {
        x /= 2;
        doublings++;
    }
    double p = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4)));
    while (doublings--)
        p = p * (2 - p);
    return p;
}

uint64_t sites_rounded(double x)
{
    return x > 0 ? (uint64_t)(x + 0.5) : 0;
}

static void add(struct estimate *to, const struct estimate *e)
{
    to->objects += e->objects;
    to->bytes += e->bytes;
}

/*
 * Returns the number of objects that one tracked object of a row may represent, or 0 if every
 * object is tracked. If none could be tracked, because their constructor call cannot be found in
 * the bytecode, it is the number of all objects.
 */
static double stands_for(const struct site_row *r)
{
    double each = r->unseen.objects > 0 ? r->unseen.bytes / r->unseen.objects : 0;
    if (r->unseen.objects < 0.5)
        return 0;
    if (r->sampled)
        return 1 / sites_chance((jlong)MAX(each, 1), site_table.interval);
    return site_table.all || !r->tracked ? r->unseen.objects : r->most;
}

/*
 * Returns the standard error of a row's live objects. Even if no tracked object is alive, there may
 * be as many live objects as one tracked object represents, which no estimate of the variance
 * includes. The same holds for a stack that no stratum was attributed to, although its place had
 * some.
 */
static struct estimate reckon_error(const struct site_row *r)
{
    double unseen = MIN(stands_for(r), r->unseen.objects);
    double each = r->unseen.objects > 0 ? r->unseen.bytes / r->unseen.objects : 0;
    double size = r->allocated.objects > 0 ? r->allocated.bytes / r->allocated.objects : 0;
    struct estimate e = {
        MAX(MAX(sites_square_root(r->variance.objects), unseen), r->missed),
        MAX(MAX(sites_square_root(r->variance.bytes), unseen * each), r->missed * size)};
    /* Live objects cannot be larger than the heap. */
    if (site_table.heap > 0 && e.bytes > site_table.heap) {
        e.objects *= site_table.heap / e.bytes;
        e.bytes = site_table.heap;
    }
    return e;
}

void sites_know_errors(struct site_rows *r)
{
    for (size_t i = 0; i < r->rows.len; i++)
        r->rows.data[i].error = reckon_error(&r->rows.data[i]);
}

double sites_certain_bytes(const struct site_row *r)
{
    return r->live.bytes < r->error.bytes ? 0 : r->live.bytes;
}

static void add_live(struct site_row *to, const struct site_row *row)
{
    add(&to->live, &row->live);
    add(&to->variance, &row->variance);
    add(&to->unseen, &row->unseen);
    to->followed += row->followed;
    to->most = MAX(to->most, row->most);
    to->missed = MAX(to->missed, row->missed);
    to->tracked = to->tracked || row->tracked;
    to->sampled = to->sampled || row->sampled;
}

static void subtract(struct estimate *from, const struct estimate *e)
{
    from->objects -= e->objects;
    from->bytes -= e->bytes;
}

static const struct site_rows *sorted; /* the argument of rank(); reports run one at a time */

/* Orders rows by size. Rows whose figure may be due to chance come after those that are certain. */
static int rank(const void *a, const void *b)
{
    const struct site_row *x = a, *y = b;
    double p = sorted->by_allocation ? x->allocated.bytes : sites_certain_bytes(x);
    double q = sorted->by_allocation ? y->allocated.bytes : sites_certain_bytes(y);
    if (p == q && !sorted->by_allocation) {
        p = x->allocated.bytes;
        q = y->allocated.bytes;
    }
    return p != q ? (p < q ? 1 : -1) : (x->site > y->site) - (x->site < y->site);
}

void sites_sort(struct site_rows *r)
{
    sorted = r;
    if (r->rows.len)
        qsort(r->rows.data, r->rows.len, sizeof(*r->rows.data), rank);
}

/* Returns a site's key, whose bytes do not move until the end of the session. */
static struct str key_of(uint32_t site, struct site_head *ret_head)
{
    struct str key = strpool_get(&site_table.keys, site);
    memcpy(ret_head, key.data, sizeof(*ret_head));
    return key;
}

const char *sites_class_of(uint32_t site)
{
    struct site_head head;
    pthread_mutex_lock(&site_table.lock);
    key_of(site, &head);
    const char *name = strpool_get(&site_table.classes, head.class).data;
    pthread_mutex_unlock(&site_table.lock);
    return name;
}

/*
 * Combines a site's class and running method into one number. If several loaders define the class,
 * its method is still one place, because it has one counter.
 */
static uint64_t place_of(JNIEnv *jni, uint32_t site)
{
    struct site_head head;
    struct site_frame top = {0};
    struct str key = key_of(site, &head);
    if (key.len > sizeof(head))
        memcpy(&top, key.data + sizeof(head), sizeof(top));
    const struct method *m =
        top.method ? names_method(jni, (jmethodID)(uintptr_t)top.method) : NULL;
    if (!m)
        return hash_u64(top.method) + head.class;
    uint64_t hash = hash_bytes(m->class_name, strlen(m->class_name));
    hash = hash_u64(hash ^ hash_bytes(m->name, strlen(m->name)));
    return hash_u64(hash ^ hash_bytes(m->descriptor, strlen(m->descriptor))) + head.class;
}

/* A site's class, thread and innermost frame, combined into one number. */
static uint64_t line_of(uint32_t site)
{
    struct site_head head;
    struct str key = key_of(site, &head);
    return hash_bytes(key.data, MIN(key.len, sizeof(head) + sizeof(struct site_frame)));
}

/*
 * Where the strata of a place were attributed to some of its stacks, finds out how many objects
 * each of the others may have had in them. Returns 0 or -ENOMEM.
 */
static int find_missed(struct site_rows *r)
{
    struct map most = {0};
    int error = 0;
    for (size_t i = 0; i < r->rows.len && !error; i++) {
        const struct site_row *row = &r->rows.data[i];
        uint64_t key = row->most > 1 ? line_of(row->site) : 0;
        const uint64_t *known = key ? map_get(&most, key) : NULL;
        if (key && (!known || *known < (uint64_t)row->most))
            error = map_put(&most, key, (uint64_t)row->most);
    }
    for (size_t i = 0; i < r->rows.len && most.len; i++) {
        struct site_row *row = &r->rows.data[i];
        const uint64_t *known = row->most > 1 ? NULL : map_get(&most, line_of(row->site));
        row->missed = known ? (double)*known : 0;
    }
    map_release(&most);
    return error;
}

/*
 * Limits the live objects to those that were counted. The excess counts as an error, because stack
 * samples may have given the path too small a share.
 */
static void cut_live(struct site_row *r)
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
 * Returns whether only the VM has reported what a site has counted, at calls that have no probe.
 * Samples show what compiled code allocated there.
 */
static bool is_without_probe(const struct site *s)
{
    return s->allocated.objects < s->without_probe + 0.5;
}

/*
 * Handles samples of sites that no probe has counted. With exact counts, a sample may find a stack
 * before a stack sample of its place's counter does; its objects are counted in another site of the
 * same class and method. All other samples are of objects that the VM itself or code without probes
 * allocated; their number is an estimate, and so is the number of live objects among those that are
 * counted but could not be tracked.
 */
static int give_samples(JNIEnv *jni, struct site_rows *r)
{
    const unsigned hold = names_hold();
    struct map counted = {0};
    struct site_row *rows = r->rows.data;
    int error = 0;
    for (size_t i = 0; i < r->rows.len && !error; i++) {
        if (is_without_probe(&site_table.sites.data[i]))
            continue;
        error = map_put(&counted, place_of(jni, rows[i].site), 1);
    }
    for (size_t i = 0; i < r->rows.len && !error; i++) {
        const struct site *s = &site_table.sites.data[rows[i].site];
        bool uncounted = is_without_probe(s) && !map_get(&counted, place_of(jni, rows[i].site));
        if (s->sampled.objects <= 0 || !(uncounted || (s->allocated.objects > 0 && !s->tracked)))
            continue;
        rows[i].sampled = true;
        if (!uncounted) {
            rows[i].live = s->sampled_live;
            rows[i].variance = s->sampled_variance;
            continue;
        }
        add(&rows[i].live, &s->sampled_live);
        add(&rows[i].variance, &s->sampled_variance);
        add(&rows[i].allocated, &s->sampled);
        rows[i].estimated = true;
        add(&r->estimated, &rows[i].allocated);
    }
    for (size_t i = 0; i < r->rows.len; i++)
        cut_live(&rows[i]);
    names_unhold(hold);
    map_release(&counted);
    return error;
}

/* Returns the bytes of the heap that are in use, or 0 if the VM does not report them. */
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

void sites_prepare(JNIEnv *jni, enum dump_reason reason)
{
    if (site_table.counted || reason == DUMP_EXIT)
        return;
    take_live(jni);
    site_table.prepared = true;
}

int sites_take_rows(JNIEnv *jni, unsigned flags, sites_settle *settle, struct site_rows *r)
{
    if (r->collected && !site_table.counted && !site_table.prepared)
        take_live(jni);
    site_table.prepared = false;
    pthread_mutex_lock(&site_table.lock);
    if (settle)
        settle(jni);
    int error = 0;
    for (size_t i = 0; i < site_table.sites.len && !error; i++) {
        const struct site *s = &site_table.sites.data[i];
        error = vec_push(&r->rows, ((struct site_row){.site = (uint32_t)i,
                                                      .live = s->live,
                                                      .variance = s->variance,
                                                      .followed = s->followed,
                                                      .most = s->most,
                                                      .tracked = s->tracked,
                                                      .sampled = !site_table.exact,
                                                      .allocated = s->allocated}));
    }
    if (!error && site_table.exact)
        error = give_samples(jni, r);
    if (!error && site_table.exact && !sites_all_tracked())
        error = find_missed(r);
    for (size_t i = 0; i < r->rows.len && !sites_all_tracked(); i++) {
        struct site_row *row = &r->rows.data[i];
        double share = 1 - row->followed / MAX(row->allocated.objects, 1);
        if (share > 0)
            row->unseen =
                (struct estimate){share * row->allocated.objects, share * row->allocated.bytes};
    }
    for (size_t i = 0; i < r->rows.len && flags & HPROF_SITES_INCREMENTAL; i++) {
        struct site *s = &site_table.sites.data[i];
        struct estimate now = r->rows.data[i].allocated;
        subtract(&r->rows.data[i].allocated, &s->reported);
        s->reported = now;
    }
    pthread_mutex_unlock(&site_table.lock);
    r->by_allocation = flags & HPROF_SITES_BY_ALLOCATION;
    return error;
}

uint32_t sites_frames_of(uint32_t site, struct jfr_frame frames[SITE_DEPTH_MAX],
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
            (struct jfr_frame){.method = at.method, .bci = (int32_t)at.bci, .type = JFR_FRAME_JAVA};
    }
    *ret_thread = head.thread;
    return n;
}

int sites_merge_rows(struct session *s, JNIEnv *jni, struct site_rows *r)
{
    struct jfr_frame frames[SITE_DEPTH_MAX];
    struct map known = {0};
    size_t kept = 0;
    int error = 0;
    for (size_t i = 0; i < r->rows.len && !error; i++) {
        struct site_row row = r->rows.data[i];
        struct site_head head;
        uint32_t thread;
        if (row.estimated || (row.allocated.objects <= 0 && row.live.objects <= 0))
            continue;
        uint32_t n = sites_frames_of(row.site, frames, &thread);
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

struct hprof_heap_totals sites_totals(const struct site_rows *r)
{
    struct estimate live = {0}, all = {0};
    for (size_t i = 0; i < r->rows.len; i++) {
        add(&live, &r->rows.data[i].live);
        add(&all, &r->rows.data[i].allocated);
    }
    return (struct hprof_heap_totals){sites_rounded(live.bytes), sites_rounded(live.objects),
                                      sites_rounded(all.bytes), sites_rounded(all.objects)};
}

double sites_error_of_all(const struct site_rows *r)
{
    double variance = 0, unseen = 0;
    for (size_t i = 0; i < r->rows.len; i++) {
        const struct site_row *row = &r->rows.data[i];
        variance += row->variance.bytes;
        unseen = MAX(unseen, row->error.bytes);
    }
    return MAX(sites_square_root(variance), unseen);
}
