/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/alloc/alloc.h"
#include "agent/capture/alloc/sites_private.h"
#include "agent/vm/collect.h"
#include "agent/vm/patience.h"
#include "base/clock.h"
#include "base/parse.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SITES = 1 << 20, MAX_LIVE = 1 << 28 };

/*
 * Objects that were not counted because the lock could not be acquired: their bytes, and the number
 * of those whose size is unknown.
 */
static _Atomic uint64_t bytes_stopped, objects_stopped;

struct site_table site_table = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sites_set_depth(uint64_t depth)
{
    pthread_mutex_lock(&site_table.lock);
    site_table.depth = (uint32_t)MIN(depth, SITE_DEPTH_MAX - SITE_SKIP_MAX);
    site_table.round++;
    pthread_mutex_unlock(&site_table.lock);
}

void sites_begin(const struct options *o, bool exact, bool all)
{
    sites_set_depth(o->v[OPT_DEPTH].number);
    pthread_mutex_lock(&site_table.lock);
    site_table.by_thread = option_on(o, OPT_THREAD);
    site_table.exact = exact;
    site_table.all = all;
    site_table.complete = all;
    site_table.interval = site_table.followed = 0;
    site_table.began = now_ns();
    site_table.on = true;
    pthread_mutex_unlock(&site_table.lock);
}

/* How many waits of the program's threads for the lock have begun, and have ended. */
static _Atomic uint64_t waits_begun, waits_over;

/*
 * Releases the lock and acquires it again after the threads that waited for it have had it, or
 * after 5 ms. Code that handles millions of objects under the lock calls this regularly, because a
 * thread that waits in vain for PATIENCE_NS does not count its objects.
 */
static void yield_lock(void)
{
    enum { STEP_NS = 100 * 1000, STEPS = 50 };

    uint64_t begun = atomic_load(&waits_begun);
    pthread_mutex_unlock(&site_table.lock);
    for (int i = 0; i < STEPS && atomic_load(&waits_over) < begun; i++)
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    pthread_mutex_lock(&site_table.lock);
}

/* What was tracked in an earlier recording; under the lock, see sites_drop_forgotten. */
static __typeof__(site_table.live) forgotten;

/* Forgets what was tracked, and the figures of all sites together. Requires the lock. */
static void forget(void)
{
    if (!forgotten.len) {
        vec_release(&forgotten);
        forgotten = site_table.live;
        memset(&site_table.live, 0, sizeof(site_table.live));
    }
    for (size_t i = 0; i < site_table.live.len; i++)
        (void)!vec_push(&forgotten, site_table.live.data[i]);
    vec_clear(&site_table.live);
    site_table.samples = site_table.lost = site_table.not_followed = 0;
    site_table.variance_bytes = 0;
    atomic_store(&bytes_stopped, 0);
    atomic_store(&objects_stopped, 0);
}

void sites_drop_forgotten(JNIEnv *jni)
{
    pthread_mutex_lock(&site_table.lock);
    __typeof__(forgotten) old = forgotten;
    memset(&forgotten, 0, sizeof(forgotten));
    pthread_mutex_unlock(&site_table.lock);
    for (size_t i = 0; i < old.len && jni; i++)
        (*jni)->DeleteWeakGlobalRef(jni, old.data[i].object);
    vec_release(&old);
}

void sites_start_again(void)
{
    forget();
    for (size_t i = 0; i < site_table.sites.len; i++)
        site_table.sites.data[i] = (struct site){0};
    site_table.complete = site_table.all;
    __atomic_store_n(&site_table.followed, 0, __ATOMIC_RELAXED);
    site_table.began = now_ns();
}

void sites_end(void)
{
    JNIEnv *jni = vm_jni();
    pthread_mutex_lock(&site_table.lock);
    forget();
    if (site_table.garbage && jni)
        (*jni)->DeleteWeakGlobalRef(jni, site_table.garbage);
    site_table.garbage = NULL;
    strpool_release(&site_table.keys);
    strpool_release(&site_table.classes);
    vec_release(&site_table.sites);
    vec_release(&site_table.live);
    site_table.on = site_table.counted = site_table.prepared = false;
    site_table.round++;
    pthread_mutex_unlock(&site_table.lock);
    sites_drop_forgotten(jni);
}

void sites_lock(void)
{
    pthread_mutex_lock(&site_table.lock);
}

bool sites_lock_patiently(double bytes)
{
    atomic_fetch_add(&waits_begun, 1);
    bool locked = patience_lock(&site_table.lock);
    atomic_fetch_add(&waits_over, 1);
    if (locked)
        return true;
    if (bytes < 0)
        atomic_fetch_add(&objects_stopped, 1);
    else
        atomic_fetch_add(&bytes_stopped, (uint64_t)(bytes + 0.5));
    return false;
}

bool sites_all_tracked(void)
{
    return site_table.complete && !atomic_load(&bytes_stopped) && !atomic_load(&objects_stopped);
}

bool sites_warn_of_losses(struct session *s)
{
    const struct {
        enum jfr_loss of;
        uint64_t n;
    } lost[] = {
        {LOSS_ALLOC_SITE, site_table.lost + alloc_no_room},
        {LOSS_ALLOC_STOPPED, atomic_load(&bytes_stopped)},
        {LOSS_ALLOC_STOPPED_OBJECTS, atomic_load(&objects_stopped)},
    };

    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
        const struct jfr_loss_row *row = &jfr_loss_rows[lost[i].of];
        if (!lost[i].n)
            continue;
        session_warn(s, "heap=sites: not counted: %s: %s", COUNT_TEXT(lost[i].n, row->what),
                     row->reason);
        any = true;
    }
    return any;
}

bool sites_reachable(void)
{
    return patience_reachable(&site_table.lock);
}

void sites_unlock(void)
{
    pthread_mutex_unlock(&site_table.lock);
}

uint32_t sites_depth(void)
{
    return site_table.depth;
}

uint32_t sites_round(void)
{
    return site_table.round;
}

bool sites_by_thread(void)
{
    return site_table.by_thread;
}

int64_t sites_find(const char *signature, struct thread *self, const struct site_frame *frames,
                   uint32_t n)
{
    struct {
        struct site_head head;
        struct site_frame frames[SITE_DEPTH_MAX];
    } key;

    int64_t class =
        site_table.on ? strpool_add(&site_table.classes, signature, strlen(signature)) : -1;
    if (class < 0)
        return -1;
    key.head =
        (struct site_head){(uint32_t) class, site_table.by_thread && self ? self->serial : 0};
    if (n)
        memcpy(key.frames, frames, n * sizeof(*frames));
    size_t known = site_table.keys.strings.len, len = sizeof(key.head) + n * sizeof(*frames);
    if (known >= MAX_SITES)
        return strpool_find(&site_table.keys, (const char *)&key, len);
    int64_t site = strpool_add(&site_table.keys, (const char *)&key, len);
    if (site >= 0 && (size_t)site == site_table.sites.len &&
        vec_push(&site_table.sites, (struct site){0}) < 0)
        return -1;
    if (site >= 0 && key.head.thread)
        atomic_store_explicit(&self->counted, true, memory_order_relaxed);
    return site;
}

int64_t sites_line_of(int64_t number)
{
    struct site_frame top = {.bci = -1};
    struct str key = strpool_get(&site_table.keys, (uint32_t)number);
    if (key.len >= sizeof(struct site_head) + sizeof(top))
        memcpy(&top, key.data + sizeof(struct site_head), sizeof(top));
    return top.bci;
}

struct site *sites_at(int64_t number)
{
    return number >= 0 && (size_t)number < site_table.sites.len ? &site_table.sites.data[number]
                                                                : NULL;
}

void sites_without_probe(int64_t number)
{
    struct site *s = sites_at(number);
    if (s)
        s->without_probe++;
}

bool sites_follow_each(uint64_t n)
{
    uint64_t followed = __atomic_load_n(&site_table.followed, __ATOMIC_RELAXED);
    if (followed < SITES_FREE || n >= SITES_FEW)
        return followed < SITES_FREE;
    return followed < 2 * SITES_FREE ||
           followed - 2 * SITES_FREE < (now_ns() - site_table.began) / NS_PER_MS;
}

/* Adds the squares of a tracked object to those of its site, or subtracts them if sign is -1. */
static void add_squares(struct estimate *to, const struct followed *f, double sign)
{
    double w = f->weight, bytes = w * (double)f->size;
    if (w > 1) {
        to->objects += sign * w * w;
        to->bytes += sign * bytes * bytes;
    }
}

/* Adds an object that is alive to its site's figures. */
static void count_live(const struct followed *f)
{
    struct site *s = &site_table.sites.data[f->site];
    double size = (double)f->size, spread = f->weight * (f->weight - 1);
    struct estimate *live = f->sample ? &s->sampled_live : &s->live;
    struct estimate *variance = f->sample ? &s->sampled_variance : &s->variance;
    live->objects += f->weight;
    live->bytes += f->weight * size;
    if (f->sample || !site_table.exact) {
        variance->objects += spread;
        variance->bytes += spread * size * size;
    } else {
        add_squares(variance, f, 1);
    }
}

/*
 * protected by the lock; while live objects are counted, none may move in the list and count twice
 */
static bool counting;

/*
 * Drops dead objects when every object is tracked, and counts the others if `count`. They can be
 * millions, so the lock is released after every few thousand. Objects that are tracked after this
 * begins are neither dropped nor counted. The order, which only thin_out needs, is not kept.
 */
static void sweep_in_parts(JNIEnv *jni, bool count)
{
    enum { AT_ONCE = 4096 }; /* takes some tenths of a millisecond */

    for (size_t i = site_table.live.len, n = 1; i > 0 && counting == count; n++) {
        struct followed *f = &site_table.live.data[--i];
        if ((*jni)->IsSameObject(jni, f->object, NULL)) {
            (*jni)->DeleteWeakGlobalRef(jni, f->object);
            *f = site_table.live.data[--site_table.live.len];
        } else if (count) {
            count_live(f);
        }
        if (n % AT_ONCE == 0)
            yield_lock();
        i = MIN(i, site_table.live.len);
    }
}

/* Drops objects that are dead. Requires the lock. */
static void sweep(JNIEnv *jni)
{
    size_t kept = 0;
    if (site_table.all) {
        sweep_in_parts(jni, false);
        return;
    }
    for (size_t i = 0; i < site_table.live.len; i++) {
        struct followed *f = &site_table.live.data[i];
        if ((*jni)->IsSameObject(jni, f->object, NULL))
            (*jni)->DeleteWeakGlobalRef(jni, f->object);
        else
            site_table.live.data[kept++] = *f;
    }
    site_table.live.len = kept;
}

/*
 * Stops tracking one of every two consecutive objects of a site, chosen at random. Sites with few
 * objects keep them all, so their figures remain as exact as they are. Requires the lock.
 */
static void thin_out(JNIEnv *jni)
{
    size_t kept = 0;
    sweep(jni);
    if (site_table.live.len < SITES_HELD_MAX / 4 * 3)
        return;
    for (size_t i = 0; i < site_table.sites.len; i++)
        site_table.sites.data[i].held = site_table.sites.data[i].seen = 0;
    for (size_t i = 0; i < site_table.live.len; i++)
        site_table.sites.data[site_table.live.data[i].site].held++;
    for (size_t i = 0; i < site_table.live.len; i++) {
        struct followed f = site_table.live.data[i];
        struct site *s = &site_table.sites.data[f.site];
        if (s->held <= SITES_HELD_FEW) {
            site_table.live.data[kept++] = f;
            continue;
        }
        bool second = s->seen++ % 2;
        s->released = second ? !s->released : alloc_random_below(2);
        if (!f.sample) {
            s->followed -= f.weight <= 1;
            add_squares(&s->squares, &f, -1);
        }
        if (s->released) {
            (*jni)->DeleteWeakGlobalRef(jni, f.object);
            continue;
        }
        f.weight *= 2;
        if (!f.sample) {
            s->most = MAX(s->most, (double)f.weight);
            add_squares(&s->squares, &f, 1);
        }
        site_table.live.data[kept++] = f;
    }
    site_table.complete = site_table.complete && kept == site_table.live.len;
    site_table.live.len = kept;
}

/* Begins to track an object. Returns its site, or NULL if it is not tracked. Requires the lock. */
static struct site *track(JNIEnv *jni, struct followed f)
{
    struct site *s = sites_at(f.site);
    if (!site_table.all && site_table.live.len >= SITES_HELD_MAX)
        thin_out(jni);
    if (s && f.object && site_table.live.len < MAX_LIVE && vec_push(&site_table.live, f) == 0)
        return s;
    if (f.object)
        (*jni)->DeleteWeakGlobalRef(jni, f.object);
    site_table.not_followed++;
    site_table.complete = false;
    return NULL;
}

void sites_expect(int64_t site, double weight, uint32_t size, bool expected)
{
    struct site *s = sites_at(site);
    if (!s)
        return;
    s->tracked = true;
    s->most = MAX(s->most, weight);
    add_squares(&s->squares, &(struct followed){.weight = (float)weight, .size = size},
                expected ? 1 : -1);
}

void sites_divide(int64_t number, double weight, double size)
{
    struct site *s = sites_at(number);
    if (!s || weight <= 1)
        return;
    s->division.objects += weight * weight / 2;
    s->division.bytes += weight * weight * size * size / 2;
}

void sites_follow(JNIEnv *jni, int64_t site, jweak object, double weight, jlong size)
{
    struct followed f = {object, (uint32_t)site, (float)weight, (uint64_t)size, false};
    struct site *s = track(jni, f);
    if (!s)
        return;
    s->followed += weight <= 1;
    s->tracked = true;
    s->most = MAX(s->most, weight);
    add_squares(&s->squares, &f, 1);
    site_table.complete = site_table.complete && weight <= 1;
    __atomic_store_n(&site_table.followed, site_table.followed + 1, __ATOMIC_RELAXED);
}

void sites_follow_sample(JNIEnv *jni, int64_t site, jweak object, double weight, jlong size)
{
    (void)track(jni,
                (struct followed){object, (uint32_t)site, (float)weight, (uint64_t)size, true});
}

void sites_flush(JNIEnv *jni, struct jfr_writer *w)
{
    pthread_mutex_lock(&site_table.lock);
    jfr_lose_total(w, LOSS_ALLOC_SITE, site_table.lost + alloc_no_room);
    jfr_lose_total(w, LOSS_ALLOC_FOLLOW, site_table.not_followed);
    jfr_lose_total(w, LOSS_ALLOC_STOPPED, atomic_load(&bytes_stopped));
    jfr_lose_total(w, LOSS_ALLOC_STOPPED_OBJECTS, atomic_load(&objects_stopped));
    pthread_mutex_unlock(&site_table.lock);
    /* Without a collection no object has died. */
    if (site_table.garbage && !(*jni)->IsSameObject(jni, site_table.garbage, NULL))
        return;
    bool busy = alloc_busy;
    alloc_busy = true;
    jweak garbage = collect_make_garbage(jni);
    alloc_busy = busy;
    pthread_mutex_lock(&site_table.lock);
    if (site_table.garbage)
        (*jni)->DeleteWeakGlobalRef(jni, site_table.garbage);
    site_table.garbage = garbage;
    sweep(jni);
    pthread_mutex_unlock(&site_table.lock);
}

void sites_count_live(JNIEnv *jni)
{
    static const struct estimate none;
    for (size_t i = 0; i < site_table.sites.len; i++) {
        struct site *s = &site_table.sites.data[i];
        s->live = s->variance = s->sampled_live = s->sampled_variance = none;
    }
    counting = site_table.all;
    if (counting)
        sweep_in_parts(jni, true);
    else
        sweep(jni);
    for (size_t i = 0; i < site_table.live.len && !counting; i++)
        count_live(&site_table.live.data[i]);
    counting = false;
    for (size_t i = 0; i < site_table.sites.len && site_table.exact; i++) {
        struct site *s = &site_table.sites.data[i];
        s->variance.objects =
            alloc_variance(s, s->variance.objects, s->squares.objects, s->division.objects);
        s->variance.bytes =
            alloc_variance(s, s->variance.bytes, s->squares.bytes, s->division.bytes);
    }
    if (site_table.exact)
        alloc_complete_live();
}

void sites_status(struct buf *out)
{
    pthread_mutex_lock(&site_table.lock);
    buf_printf(out,
               "alloc.samples %llu\nalloc.sites %zu\nalloc.lost %llu\nalloc.not_followed %llu\n",
               (unsigned long long)site_table.samples, site_table.sites.len,
               (unsigned long long)site_table.lost, (unsigned long long)site_table.not_followed);
    pthread_mutex_unlock(&site_table.lock);
}
