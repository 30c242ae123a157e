/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation by site from the VM's own sampling (SampledObjectAlloc, JDK 11). An object of s bytes is seen with probability
 * p = 1 - exp(-s / interval); each seen one stands for 1 / p objects, which makes counts and bytes unbiased, and the sum of
 * (1 - p) / p^2 is the variance of the count (Horvitz and Thompson, 1952). Seen objects are held by weak references, so that
 * after a collection the same weights say what lives.
 */
#include "agent/capture/monitors.h"
#include "agent/dictionary.h"
#include "agent/names.h"
#include "agent/session.h"
#include "agent/thread_table.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTERVAL = 512 << 10, MAX_DEPTH = 1024, MAX_SITES = 1 << 18, MAX_LIVE = 1 << 17 };

struct estimate {
    double objects, bytes;
};

struct site {
    struct estimate allocated, live, told; /* live: of the last count; told: allocated at the last incremental report */
    uint32_t trace;                        /* 0: not asked of the dictionary yet */
};

/* A sample that may still live. */
struct sample {
    jweak object;
    uint32_t site;
    double weight, size;
};

static struct {
    pthread_mutex_t lock;
    bool on, by_thread;
    uint32_t depth;
    struct strpool keys, classes; /* struct key_head and frames; JVM descriptors */
    VEC(struct site) sites;
    VEC(struct sample) live;
    uint64_t samples, lost, not_followed;
    double variance_bytes; /* of all bytes allocated */
} alloc = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct key_head {
    uint32_t class, thread;
};

struct frame {
    uint64_t method;
    int64_t bci;
};

/* 1 - exp(-x) for x >= 0, without libm: a series near 0, doubled by 1 - (1 - p)^2. */
static double one_minus_exp(double x)
{
    int doublings = 0;
    for (; x > 0.01; x /= 2)
        doublings++;
    double p = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4)));
    while (doublings--)
        p = p * (2 - p);
    return p;
}

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

static bool wanted(const struct options *o)
{
    return option_is(o, OPT_HEAP, "sites") || (option_is(o, OPT_ALLOC, "sampled") && !option_is(o, OPT_FORMAT, "r"));
}

static int load(struct session *s, struct buf *why)
{
    if (s->out.format == 'r') {
        buf_printf(why, "heap=sites goes into HPROF text or binary alone");
        return -ENOTSUP;
    }
    alloc.depth = (uint32_t)MIN(s->options.v[OPT_DEPTH].number, MAX_DEPTH);
    alloc.by_thread = option_on(&s->options, OPT_THREAD);
    alloc.on = true;
    (*vm.ti)->SetHeapSamplingInterval(vm.ti, INTERVAL);
    return 0;
}

/* The site's number, or -1; under the lock. */
static int64_t find_site(const char *signature, const struct thread *self, const jvmtiFrameInfo *frames, jint n)
{
    struct {
        struct key_head head;
        struct frame frames[MAX_DEPTH];
    } key;
    int64_t class = strpool_add(&alloc.classes, signature, strlen(signature));
    if (class < 0)
        return -1;
    key.head = (struct key_head){(uint32_t) class, alloc.by_thread ? self->serial : 0};
    for (jint i = 0; i < n; i++)
        key.frames[i] = (struct frame){(uint64_t)(uintptr_t)frames[i].method, frames[i].location};
    size_t known = alloc.keys.strings.len, len = sizeof(key.head) + (size_t)n * sizeof(*key.frames);
    if (known >= MAX_SITES)
        return strpool_find(&alloc.keys, (const char *)&key, len);
    int64_t site = strpool_add(&alloc.keys, (const char *)&key, len);
    if (site >= 0 && (size_t)site == alloc.sites.len && vec_push(&alloc.sites, (struct site){0}) < 0)
        return -1;
    return site;
}

static void count(JNIEnv *jni, int64_t site, jobject object, jlong size)
{
    double p = one_minus_exp((double)size / INTERVAL), weight = 1 / p;
    struct sample s = {NULL, (uint32_t)site, weight, (double)size};
    alloc.samples++;
    if (site < 0) {
        alloc.lost++;
        return;
    }
    alloc.sites.data[site].allocated.objects += weight;
    alloc.sites.data[site].allocated.bytes += weight * (double)size;
    alloc.variance_bytes += (1 - p) / (p * p) * (double)size * (double)size;
    if (alloc.live.len < MAX_LIVE)
        s.object = (*jni)->NewWeakGlobalRef(jni, object);
    if (!s.object || vec_push(&alloc.live, s) < 0)
        alloc.not_followed++;
}

static void JNICALL on_sample(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object, jclass class, jlong size)
{
    jvmtiFrameInfo frames[MAX_DEPTH];
    jint n = 0;
    char *signature = NULL;
    struct thread *self = threads_self(jni);
    if (!self || self->own || (*ti)->GetClassSignature(ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    if (alloc.depth)
        (*ti)->GetStackTrace(ti, NULL, 0, (jint)alloc.depth, frames, &n);
    for (jint i = 0; i < n; i++)
        names_method(jni, frames[i].method); /* while the class cannot be unloaded */
    pthread_mutex_lock(&alloc.lock);
    if (alloc.on)
        count(jni, find_site(signature, self, frames, n), object, size);
    pthread_mutex_unlock(&alloc.lock);
    vm_free(signature);
}

/* Drops samples that have died; under the lock. */
static void sweep(JNIEnv *jni)
{
    size_t kept = 0;
    for (size_t i = 0; i < alloc.live.len; i++) {
        struct sample *s = &alloc.live.data[i];
        if ((*jni)->IsSameObject(jni, s->object, NULL))
            (*jni)->DeleteWeakGlobalRef(jni, s->object);
        else
            alloc.live.data[kept++] = *s;
    }
    alloc.live.len = kept;
}

static void flush(struct session *s, JNIEnv *jni)
{
    pthread_mutex_lock(&alloc.lock);
    sweep(jni);
    pthread_mutex_unlock(&alloc.lock);
}

static void release(struct session *s)
{
    pthread_mutex_lock(&alloc.lock);
    JNIEnv *jni = vm_jni();
    for (size_t i = 0; i < alloc.live.len && jni; i++)
        (*jni)->DeleteWeakGlobalRef(jni, alloc.live.data[i].object);
    strpool_release(&alloc.keys);
    strpool_release(&alloc.classes);
    vec_release(&alloc.sites);
    vec_release(&alloc.live);
    alloc.samples = alloc.lost = alloc.not_followed = 0;
    alloc.variance_bytes = 0;
    alloc.on = false;
    pthread_mutex_unlock(&alloc.lock);
}

/* ---- reports ---- */

struct row {
    uint32_t site;
    struct estimate live, allocated;
};

static bool by_allocation; /* of the report that is being made; reports run one at a time */

static int rank(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double p = by_allocation ? x->allocated.bytes : x->live.bytes, q = by_allocation ? y->allocated.bytes : y->live.bytes;
    if (p == q && !by_allocation) {
        p = x->allocated.bytes;
        q = y->allocated.bytes;
    }
    return p != q ? (p < q ? 1 : -1) : (x->site > y->site) - (x->site < y->site);
}

/* Counts what lives; under the lock, after a collection. */
static void count_live(JNIEnv *jni)
{
    sweep(jni);
    for (size_t i = 0; i < alloc.sites.len; i++)
        alloc.sites.data[i].live = (struct estimate){0};
    for (size_t i = 0; i < alloc.live.len; i++) {
        const struct sample *s = &alloc.live.data[i];
        alloc.sites.data[s->site].live.objects += s->weight;
        alloc.sites.data[s->site].live.bytes += s->weight * s->size;
    }
}

static void add(struct estimate *to, const struct estimate *e)
{
    to->objects += e->objects;
    to->bytes += e->bytes;
}

static struct hprof_heap_totals totals_of(const struct row *rows, size_t n)
{
    struct estimate live = {0}, all = {0};
    for (size_t i = 0; i < n; i++) {
        add(&live, &rows[i].live);
        add(&all, &rows[i].allocated);
    }
    return (struct hprof_heap_totals){rounded(live.bytes), rounded(live.objects), rounded(all.bytes), rounded(all.objects)};
}

static struct row *take_rows(JNIEnv *jni, unsigned flags, size_t *ret_n)
{
    (*vm.ti)->ForceGarbageCollection(vm.ti);
    pthread_mutex_lock(&alloc.lock);
    count_live(jni);
    *ret_n = alloc.sites.len;
    struct row *rows = calloc(*ret_n + 1, sizeof(*rows));
    for (size_t i = 0; rows && i < *ret_n; i++) {
        struct site *s = &alloc.sites.data[i];
        rows[i] = (struct row){(uint32_t)i, s->live, s->allocated};
        if (flags & HPROF_SITES_INCREMENTAL) {
            rows[i].allocated.objects -= s->told.objects;
            rows[i].allocated.bytes -= s->told.bytes;
            s->told = s->allocated;
        }
    }
    pthread_mutex_unlock(&alloc.lock);
    by_allocation = flags & HPROF_SITES_BY_ALLOCATION;
    if (rows)
        qsort(rows, *ret_n, sizeof(*rows), rank);
    return rows;
}

/* A site's key; its bytes stay where they are until release. */
static struct str key_of(uint32_t site, const char **ret_class)
{
    struct key_head head;
    pthread_mutex_lock(&alloc.lock);
    struct str key = strpool_get(&alloc.keys, site);
    memcpy(&head, key.data, sizeof(head));
    *ret_class = strpool_get(&alloc.classes, head.class).data;
    pthread_mutex_unlock(&alloc.lock);
    return key;
}

static uint32_t trace_of(struct session *s, JNIEnv *jni, struct str key)
{
    struct jfr_frame frames[MAX_DEPTH];
    struct key_head head;
    memcpy(&head, key.data, sizeof(head));
    uint32_t n = (uint32_t)((key.len - sizeof(head)) / sizeof(struct frame));
    for (uint32_t f = 0; f < n; f++) {
        struct frame at;
        memcpy(&at, key.data + sizeof(head) + f * sizeof(at), sizeof(at));
        frames[f] = (struct jfr_frame){.method = at.method, .bci = (int32_t)at.bci};
    }
    return dictionary_trace(s->out.dictionary, jni, frames, n, head.thread);
}

static struct hprof_site site_record(struct session *s, JNIEnv *jni, const struct row *r)
{
    const char *class;
    char name[1024];
    struct str key = key_of(r->site, &class);
    monitors_source_name(class, name, sizeof(name));
    return (struct hprof_site){.array = class[0] == '[' ? (uint8_t)hprof_type_of_descriptor(class[1]) : 0,
                               .class_serial = dictionary_class(s->out.dictionary, name, 0),
                               .trace = trace_of(s, jni, key),
                               .live_bytes = rounded(r->live.bytes),
                               .live_objects = rounded(r->live.objects),
                               .alloc_bytes = rounded(r->allocated.bytes),
                               .alloc_objects = rounded(r->allocated.objects)};
}

static void write_text(struct session *s, JNIEnv *jni, const struct row *rows, size_t n, const struct hprof_heap_totals *all)
{
    struct hprof_text t;
    struct buf bytes;
    double accumulated = 0;
    char name[1024];
    out_section_open(&t, &bytes);
    hprof_text_sites_begin(&t, by_allocation ? "allocated bytes" : "live bytes", time(NULL));
    for (size_t i = 0; i < n; i++) {
        const char *class;
        struct hprof_site r = site_record(s, jni, &rows[i]);
        double self = by_allocation ? (double)r.alloc_bytes / (double)MAX(all->alloc_bytes, 1)
                                    : (double)r.live_bytes / (double)MAX(all->live_bytes, 1);
        accumulated += self;
        key_of(rows[i].site, &class);
        monitors_source_name(class, name, sizeof(name));
        hprof_text_site(&t, &(struct hprof_text_site){(uint32_t)i + 1, r.trace, 100 * self, 100 * accumulated, r.live_bytes,
                                                      r.live_objects, r.alloc_bytes, r.alloc_objects, name});
    }
    hprof_text_sites_end(&t);
    out_section_close(&s->out, &t, &bytes);
}

static void write_binary(struct session *s, JNIEnv *jni, unsigned flags, double cutoff, const struct row *rows, size_t n,
                         const struct hprof_heap_totals *all)
{
    struct hprof_site *sites = calloc(n + 1, sizeof(*sites));
    if (!sites)
        return;
    for (size_t i = 0; i < n; i++)
        sites[i] = site_record(s, jni, &rows[i]);
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    hprof_alloc_sites(&s->out.binary, (uint16_t)flags, (float)cutoff, all, sites, (uint32_t)n);
    pthread_mutex_unlock(&s->out.lock);
    free(sites);
}

static void report(struct session *s, JNIEnv *jni, unsigned flags, double cutoff)
{
    size_t n = 0, kept = 0;
    struct row *rows = take_rows(jni, flags, &n);
    if (!rows) {
        session_message(s, "heap=sites: no memory for a report");
        return;
    }
    struct hprof_heap_totals all = totals_of(rows, n);
    double whole = (double)(by_allocation ? all.alloc_bytes : all.live_bytes);
    while (kept < n && (by_allocation ? rows[kept].allocated.bytes : rows[kept].live.bytes) >= cutoff * whole &&
           rows[kept].allocated.bytes > 0)
        kept++;
    if (s->out.format == 'a')
        write_text(s, jni, rows, kept, &all);
    else
        write_binary(s, jni, flags, cutoff, rows, kept, &all);
    free(rows);
    double error = all.alloc_bytes ? 100 * square_root(alloc.variance_bytes) / (double)all.alloc_bytes : 0;
    session_message(s, "heap=sites: estimated from %llu samples; standard error of all bytes %.2f %%",
                    (unsigned long long)alloc.samples, error);
    if (option_on(&s->options, OPT_VERBOSE) && !vm.attached)
        fprintf(stderr, " (estimated from %llu samples, standard error of all bytes %.2f %%)",
                (unsigned long long)alloc.samples, error);
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    report(s, jni, 0, s->options.v[OPT_CUTOFF].fraction);
}

static void summarize(struct session *s, JNIEnv *jni)
{
    size_t n = 0;
    struct row *rows = take_rows(jni, 0, &n);
    struct hprof_heap_totals all = rows ? totals_of(rows, n) : (struct hprof_heap_totals){0};
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    if (s->out.format == 'b')
        hprof_heap_summary(&s->out.binary, &all);
    pthread_mutex_unlock(&s->out.lock);
    free(rows);
}

static void request(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    if (r->command == HPROF_CMD_ALLOC_SITES)
        report(s, jni, r->flags, (double)r->cutoff);
    else if (r->command == HPROF_CMD_HEAP_SUMMARY)
        summarize(s, jni);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_TRACES_ON)
        alloc.depth = (uint32_t)MIN(s->options.v[OPT_DEPTH].number, MAX_DEPTH);
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_TRACES_OFF)
        alloc.depth = 0;
    else if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_MAX_DEPTH && alloc.depth)
        alloc.depth = MIN(r->depth, MAX_DEPTH);
}

static void status(struct session *s, struct buf *out)
{
    pthread_mutex_lock(&alloc.lock);
    buf_printf(out, "alloc.samples %llu\nalloc.sites %zu\nalloc.lost %llu\nalloc.not_followed %llu\n",
               (unsigned long long)alloc.samples, alloc.sites.len, (unsigned long long)alloc.lost,
               (unsigned long long)alloc.not_followed);
    pthread_mutex_unlock(&alloc.lock);
}

static const struct vm_callbacks events = {.ti = {.SampledObjectAlloc = on_sample}};

const struct capture capture_alloc_sampled = {
    .name = "alloc",
    .title = "allocation sites",
    .options = OPTION_BIT(OPT_HEAP) | OPTION_BIT(OPT_ALLOC),
    .needs = {.can_generate_sampled_object_alloc_events = 1},
    .events = &events,
    .wanted = wanted,
    .load = load,
    .release = release,
    .flush = flush,
    .dump = dump,
    .request = request,
    .status = status,
};
