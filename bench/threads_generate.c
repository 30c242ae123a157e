/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the recording that threads=y makes on a busy server: 64 threads (or THREADS, 20,000 at
 * most) contend for 200 monitors and hand work to each other by park and unpark. Of every ten
 * events six are contended enters, two are parks and two are unparks. The same seed gives the same
 * events. Usage: threads_generate FILE [EVENTS [THREADS]] (the default is 10 million events of 27
 * bytes each)
 */
#include "generate.h"
#include "jfr/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 20000, LOCKS = 200, STACKS = 500, DEPTH = 16 };

enum { ANALYSIS, UNPARK, TYPES };

static const struct jfr_type types[TYPES] = {
    {.name = "jvmscope.ThreadAnalysis",
     .label = "Thread Analysis",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"contanalysis", "Notify, Start and Interrupt Are Recorded", "boolean"},
                          {"natives", "Native Methods Bound", "int"},
                          {"owners", "Owners Are Read From the VM", "boolean"})},
    {.name = "jvmscope.Unpark",
     .label = "LockSupport.unpark",
     .kind = JFR_EVENT,
     .has = JFR_HAS_THREAD | JFR_HAS_STACK,
     .fields = JFR_FIELDS({"target", "Java Thread Id", "long"})},
};

static uint64_t n_threads = 64;

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    static char name[32];
    snprintf(name, sizeof(name), "method%llu", (unsigned long long)method);
    *ret =
        (struct jfr_method){.class = {.name = "bench/Server"}, .name = name, .descriptor = "()V"};
    return 0;
}

static struct jfr_writer *w;
static uint32_t ids[TYPES];
static uint64_t stacks[STACKS], lock_class, queue_class;

static void make_constants(void)
{
    for (uint64_t i = 0; i < STACKS; i++) {
        struct jfr_frame frames[DEPTH] = {0};
        for (uint64_t k = 0; k < DEPTH; k++)
            frames[k] = (struct jfr_frame){1 + (i * 7 + k * 31) % 900, (int32_t)k, JFR_FRAME_JIT};
        stacks[i] = jfr_trace(w, frames, DEPTH, false);
    }
    lock_class = jfr_define_class(w, &(struct jfr_class){.name = "bench/Server$Lock"});
    queue_class = jfr_define_class(
        w, &(struct jfr_class){
               .name = "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject"});
    for (uint64_t i = 1; i <= n_threads; i++) {
        char name[16];
        snprintf(name, sizeof(name), "worker-%llu", (unsigned long long)i);
        (void)!jfr_define_thread(
            w, i,
            &(struct jfr_thread){.os_name = name, .os_id = i, .java_name = name, .java_id = i});
    }
}

/* Each lock is taken at three places. */
static void begin(uint32_t type, uint64_t start, uint64_t thread, int64_t duration, uint64_t place,
                  struct jfr_event *e)
{
    while (!jfr_begin(w, type, 0, e))
        (void)!jfr_writer_work(w);
    jfr_put_time(e, start);
    if (duration >= 0)
        jfr_put_long(e, duration);
    jfr_put_long(e, (int64_t)thread);
    jfr_put_long(e, (int64_t)stacks[(place * 3 + next_random() % 3) % STACKS]);
}

/* Writes the event of a thread that waited for a monitor while another thread held it. */
static void enter(uint64_t thread, uint64_t start, uint64_t end, uint64_t *owners)
{
    struct jfr_event e;
    uint64_t lock = next_random() % LOCKS,
             owner = owners[lock] ? owners[lock] : thread % n_threads + 1;
    begin(JFR_JAVA_MONITOR_ENTER, start, thread, (int64_t)(end - start), lock, &e);
    jfr_put_long(&e, (int64_t)lock_class);
    jfr_put_long(&e, (int64_t)(owner == thread ? thread % n_threads + 1 : owner));
    jfr_put_long(&e, (int64_t)(0x1000 + lock));
    jfr_commit(&e);
    owners[lock] = thread;
}

static void park(uint64_t thread, uint64_t start, uint64_t end)
{
    struct jfr_event e;
    uint64_t waker = thread % n_threads + 1;
    begin(ids[UNPARK], end - 2000, waker, -1, thread, &e);
    jfr_put_long(&e, (int64_t)thread);
    jfr_commit(&e);
    begin(JFR_THREAD_PARK, start, thread, (int64_t)(end - start), thread, &e);
    jfr_put_long(&e, (int64_t)queue_class);
    jfr_put_long(&e, INT64_MIN);
    jfr_put_long(&e, INT64_MIN);
    jfr_put_long(&e, (int64_t)(0x5000 + thread));
    jfr_commit(&e);
}

int main(int argc, char **argv)
{
    uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000, owners[LOCKS] = {0};
    static uint64_t free_at[THREADS_MAX + 1];
    n_threads =
        argc > 3 ? MIN(strtoull(argv[3], NULL, 10), (unsigned long long)THREADS_MAX) : n_threads;
    struct jfr_writer_options options = {.resolver = {.method = name_method}};
    int r = argc > 1 ? jfr_writer_open(&w, argv[1], &options) : -EINVAL;
    if (r == 0)
        r = jfr_declare(w, types, TYPES, ids);
    if (r < 0) {
        fprintf(stderr, "threads_generate: %s: %s\n",
                argc > 1 ? argv[1] : "usage: threads_generate FILE [EVENTS [THREADS]]",
                strerror(-r));
        return 1;
    }
    make_constants();
    uint64_t now = now_ns();
    struct jfr_event e;
    if (jfr_begin(w, ids[ANALYSIS], 0, &e)) {
        jfr_put_time(&e, now);
        jfr_put_byte(&e, 1);
        jfr_put_int(&e, 9);
        jfr_put_byte(&e, 1);
        jfr_commit(&e);
    }
    for (uint64_t n = 0; n < events;) {
        uint64_t thread = 1 + next_random() % n_threads, length = 3000 + next_random() % 40000,
                 start = now - length;
        now += 500 + next_random() % 1000;
        if (start <= free_at[thread])
            continue; /* this thread is still busy with something else */
        free_at[thread] = now;
        if (next_random() % 8 < 6) {
            enter(thread, start, now, owners);
            n++;
        } else {
            park(thread, start, now);
            n += 2;
        }
        if (n % 4096 < 2)
            (void)!jfr_writer_work(w);
    }
    struct jfr_counters c;
    r = jfr_writer_close(w);
    jfr_writer_counters(w, &c);
    printf("%llu events, %llu bytes, %llu lost\n", (unsigned long long)c.events,
           (unsigned long long)c.bytes,
           (unsigned long long)(c.lost_busy + c.lost_room + c.lost_size));
    jfr_writer_free(w);
    return r < 0;
}
