/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills a store with the profiles of many VMs, through the store's own code: each stack of a
 * recording comes as often in a stretch of time as chance has it (Poisson), by its share in the
 * recording and the load of the VM. Usage:
 *
 *   fleet_generate STORE END HOURS FROM TO BATCH RECORDING...
 *
 * END: seconds since 1970 at which the history ends. HOURS: how long it is. FROM
 * and TO: the VMs, of 1,000, 30 services in 3 versions each. BATCH: seconds that are added in one
 * step: 60 is what a machine sends, with a sample in every 10 s that has one; 86400 loads quickly:
 * only the first and the last hour of the last day have such detail, every other hour has one
 * bucket.
 *
 * Prints the samples that it added.
 */
#include "base/macro.h"
#include "fleet/reading.h"
#include "fleet/store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SERVICES = 30,
    VERSIONS = 3,
    VMS = 1000,
    HOUR_S = 3600,
    DAY_S = 86400,
    MERGE_EVERY_S = 300,
    NS_PER_SAMPLE = 10000000,
    TOGETHER = 64 /* uploads that are stored together, where the store can */
};

/* A version of a service: the batch that every VM of it uses, and the share of each stack. */
struct variant {
    struct batch b;
    double *share;
};

struct simulation {
    struct store *store;
    struct variant variants[SERVICES][VERSIONS];
    int64_t end_s;
    int hours, batch_s;
    uint64_t random, samples;
    VEC(struct store_adding *) adding;
};

static void fail(const char *what, int error, const struct buf *why)
{
    fprintf(stderr, "fleet_generate: %s: %s\n", what,
            why && why->len ? buf_str(why) : strerror(-error));
    exit(1);
}

static double chance(struct simulation *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (double)(s->random >> 11) / (double)(1ULL << 53);
}

static uint64_t poisson(struct simulation *s, double mean)
{
    double u = chance(s);
    if (mean > 30) {
        double normal = sqrt(-2 * log(1 - u)) * cos(2 * M_PI * chance(s));
        return (uint64_t)MAX(0.0, round(mean + sqrt(mean) * normal));
    }
    double p = exp(-mean), sum = p;
    uint64_t k = 0;
    while (u > sum && k < 200) {
        p *= mean / (double)++k;
        sum += p;
    }
    return k;
}

/* The recording's CPU samples as a service has them: its own classes, and its version. */
static void make_variant(struct variant *v, const struct batch *from, int service, int version)
{
    uint64_t all = 0;
    uint32_t frames[4096];
    int64_t r = batch_type(&v->b, "cpu", "nanoseconds");
    v->share = calloc(from->stacks.len, sizeof(double));
    if (r < 0 || !v->share)
        fail("variant", -ENOMEM, NULL);
    for (size_t i = 0; i < from->samples.len; i++) {
        const struct fleet_sample *x = &from->samples.data[i];
        if (strcmp(strpool_get(&from->strings, from->types.data[x->type].name).data, "cpu") != 0)
            continue;
        const struct fleet_stack *st = &from->stacks.data[x->stack];
        for (uint32_t k = 0; k < st->depth; k++) {
            const struct fleet_frame *f = &from->frames.data[from->path.data[st->first + k]];
            struct str label = strpool_get(&from->strings, f->label);
            char own[5000];
            bool shared = f->kind != FLEET_JAVA || strncmp(label.data, "java.", 5) == 0;
            int len = shared ? snprintf(own, sizeof(own), "%s", label.data)
                             : snprintf(own, sizeof(own), "s%02d.%s", service, label.data);
            r = batch_frame(&v->b, (enum fleet_kind)f->kind, own, (size_t)len);
            if (r < 0)
                fail("frame", (int)r, NULL);
            frames[k] = (uint32_t)r;
        }
        r = batch_stack(&v->b, frames, st->depth);
        if (r < 0)
            fail("stack", (int)r, NULL);
        v->share[r] += (double)x->count;
        all += x->count;
    }
    /* The last version takes half as long again in one of its stacks. */
    if (version == VERSIONS - 1 && v->b.stacks.len)
        v->share[0] *= 1.5;
    for (size_t i = 0; i < v->b.stacks.len; i++)
        v->share[i] /= (double)all;
}

static void add_bucket(struct simulation *s, struct variant *v, int64_t start_s, double samples)
{
    for (uint32_t i = 0; i < v->b.stacks.len; i++) {
        uint64_t n = poisson(s, v->share[i] * samples);
        if (!n)
            continue;
        struct fleet_sample x = {.stack = i, .count = n, .weight = n * NS_PER_SAMPLE};
        int r = batch_sample(&v->b, start_s * 1000000000, x);
        if (r < 0)
            fail("sample", r, NULL);
        s->samples += n;
    }
}

static bool has_detail(const struct simulation *s, int64_t hour_s)
{
    return s->batch_s < DAY_S || hour_s >= fleet_floor(s->end_s, HOUR_S) ||
           hour_s == fleet_floor(s->end_s - DAY_S, HOUR_S);
}

static void finish(struct simulation *s)
{
    for (size_t i = 0; i < s->adding.len; i++) {
        _cleanup_(buf_release) struct buf why = BUF(4096);
        bool is_new;
        int r = store_add_end(s->store, s->adding.data[i], &is_new, &why);
        if (r < 0)
            fail("store", r, &why);
    }
    vec_clear(&s->adding);
}

/* As a collector does from time to time. */
static void merge(struct simulation *s)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    finish(s);
    int r = store_merge(s->store, &why);
    if (r < 0)
        fail("merging", r, &why);
}

/* One step of one VM: [start, end) in seconds since 1970. */
static void add_step(struct simulation *s, int vm, int64_t start_s, int64_t end_s)
{
    char host[32], instance[32], version[16], service[32], id[64];
    int of = vm % SERVICES, nth = vm / SERVICES % VERSIONS;
    struct variant *v = &s->variants[of][nth];
    /* Between a twentieth of a processor and one and a half, most of them little. */
    double cores = 0.05 + 1.45 * pow((double)(vm * 7919 % VMS) / VMS, 3);
    snprintf(service, sizeof(service), "service-%02d", of);
    snprintf(version, sizeof(version), "1.%d", nth);
    snprintf(host, sizeof(host), "host-%03d", vm / 8);
    snprintf(instance, sizeof(instance), "host-%03d:%d", vm / 8, 1000 + vm);
    struct fleet_origin origin = {"default", service, version, host, instance, NULL, 0};
    vec_clear(&v->b.samples);
    int64_t step, from = fleet_floor(start_s, FLEET_BUCKET_S);
    for (int64_t t = from; t < end_s; t += step) {
        step = has_detail(s, fleet_floor(t, HOUR_S)) ? FLEET_BUCKET_S
                                                     : fleet_floor(t, HOUR_S) + HOUR_S - t;
        step = MIN(step, end_s - t);
        add_bucket(s, v, t, cores * 100 * (double)step);
    }
    struct fleet_hash upload = {{0}};
    struct fleet_sha sha;
    snprintf(id, sizeof(id), "%d %lld", vm, (long long)start_s);
    fleet_sha_begin(&sha);
    fleet_sha_add_text(&sha, id, strlen(id));
    upload = fleet_sha_end(&sha);
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct store_adding *adding;
    bool is_new;
    int r = batch_close(&v->b);
    if (r == 0)
        r = store_add_begin(s->store, &origin, &upload, &v->b, &adding, &is_new, &why);
    if (r == 0 && adding)
        r = vec_push(&s->adding, adding);
    if (r < 0)
        fail("store", r, &why);
    if (s->adding.len == TOGETHER)
        finish(s);
}

static void read_recordings(struct simulation *s, char **paths, int n)
{
    for (int i = 0; i < n; i++) {
        _cleanup_(buf_release) struct buf why = BUF(4096);
        struct fleet_batches read = {0};
        struct fleet_reading how = {.path = paths[i],
                                    .format = FLEET_FILE,
                                    .limits = &reading_default_limits,
                                    .from_ns = 1};
        int r = fleet_read(&read, &how, &why);
        if (r < 0)
            fail(paths[i], r, &why);
        for (int service = i; service < SERVICES; service += n)
            for (int version = 0; version < VERSIONS; version++)
                make_variant(&s->variants[service][version], &read.list.data[0], service, version);
        fleet_batches_release(&read);
    }
}

int main(int argc, char **argv)
{
    static struct simulation s = {.random = 88172645463325252ULL};
    _cleanup_(buf_release) struct buf why = BUF(4096);
    if (argc < 8)
        return 2;
    s.end_s = fleet_floor(atoll(argv[2]), FLEET_BUCKET_S);
    s.hours = atoi(argv[3]);
    s.batch_s = atoi(argv[6]);
    read_recordings(&s, argv + 7, argc - 7);
    int r = store_open(&s.store, argv[1], true, &why);
    if (r < 0)
        fail(argv[1], r, &why);
    for (int64_t t = s.end_s - (int64_t)s.hours * HOUR_S; t < s.end_s; t += s.batch_s) {
        if (t % MERGE_EVERY_S == 0)
            merge(&s);
        for (int vm = atoi(argv[4]); vm < atoi(argv[5]); vm++)
            add_step(&s, vm, t, MIN(t + s.batch_s, s.end_s));
    }
    merge(&s);
    vec_release(&s.adding);
    store_close(s.store);
    printf("%llu\n", (unsigned long long)s.samples);
    return 0;
}
