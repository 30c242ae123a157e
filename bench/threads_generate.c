/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the recording that threads=y makes on a busy server: 64 threads (or THREADS, 20,000 at
 * most) contend for 200 monitors and hand work to each other by park and unpark. Of every ten
 * events six are contended enters, two are parks and two are unparks. The same seed gives the same
 * events. Usage: threads_generate FILE [EVENTS [THREADS]] (the default is 10 million events of 27
 * bytes each)
 */
#include "generate.h"
#include "generate_server.h"
#include "jfr/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 20000 };

enum { ANALYSIS, UNPARK, TYPES };

static const struct jfr_type types[TYPES] = {
    SERVER_ANALYSIS,
    {.name = "jvmscope.Unpark",
     .label = "LockSupport.unpark",
     .kind = JFR_EVENT,
     .has = JFR_HAS_THREAD | JFR_HAS_STACK,
     .fields = JFR_FIELDS({"target", "Java Thread Id", "long"})},
};

static uint64_t n_threads = 64;

static struct jfr_writer *w;
static uint32_t ids[TYPES];
static uint64_t stacks[SERVER_STACKS], lock_class, queue_class;

static void make_constants(void)
{
    server_define_stacks(w, stacks);
    lock_class = jfr_define_class(w, &(struct jfr_class){.name = "bench/Server$Lock"});
    queue_class = jfr_define_class(
        w, &(struct jfr_class){
               .name = "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject"});
    server_define_workers(w, n_threads);
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
    jfr_put_long(e, (int64_t)stacks[(place * 3 + next_random() % 3) % SERVER_STACKS]);
}

/* Writes the event of a thread that waited for a monitor while another thread held it. */
static void enter(uint64_t thread, uint64_t start, uint64_t end, uint64_t *owners)
{
    struct jfr_event e;
    uint64_t lock = next_random() % SERVER_LOCKS,
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
    uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000, owners[SERVER_LOCKS] = {0};
    static uint64_t free_at[THREADS_MAX + 1];
    n_threads =
        argc > 3 ? MIN(strtoull(argv[3], NULL, 10), (unsigned long long)THREADS_MAX) : n_threads;
    struct jfr_writer_options options = {.resolver = {.method = server_method}};
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
