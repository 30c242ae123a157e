/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the recording that requests=auto,threads=y makes of a server that has answered many
 * requests: 64 threads, 50 names, a wait for a monitor in every request of which details are kept.
 * Usage: requests_generate FILE [REQUESTS [KEPT]] (10 million; 200,000, which is what the agent
 * keeps of as many at 20,000 per second). With KEPT = REQUESTS the file is what it was if all were
 * kept.
 */
#include "base/latency.h"
#include "generate.h"
#include "generate_server.h"
#include "jfr/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, NAMES = 50, NS = 25000 };

enum { REQUEST, WORK, TOTALS, ANALYSIS, TYPES };

static const struct jfr_type types[TYPES] = {
    {.name = "jvmscope.Request",
     .label = "Request",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS({"id", "Number", "long"},
                          {"name", "Name", "java.lang.String", .contextual = true},
                          {"kind", "Kind", "java.lang.String"}, {"status", "Status", "int"})},
    {.name = "jvmscope.RequestWork",
     .label = "Work for a Request",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS({"request", "Request", "long"}, {"handOver", "Way", "java.lang.String"},
                          {"queued", "Time in a Queue Before", "long", JFR_NANOS})},
    {.name = "jvmscope.RequestTotals",
     .label = "Totals of a Name",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"name", "Name", "java.lang.String"},
                          {"kind", "Kind", "java.lang.String"}, {"count", "Requests", "long"},
                          {"errors", "Errors", "long"}, {"totalTime", "Sum", "long", JFR_NANOS},
                          {"maxTime", "Longest", "long", JFR_NANOS},
                          {"buckets", "Histogram", "java.lang.String"})},
    SERVER_ANALYSIS,
};

static struct jfr_writer *w;
static uint32_t ids[TYPES];
static uint64_t stacks[SERVER_STACKS], names[NAMES], kind, entry, lock_class;

static struct {
    uint64_t count, sum, max, buckets[LATENCY_BUCKETS];
} totals[NAMES];

static void make_constants(void)
{
    server_define_stacks(w, stacks);
    lock_class = jfr_define_class(w, &(struct jfr_class){.name = "bench/Server$Lock"});
    kind = jfr_define_string(w, "servlet");
    entry = jfr_define_string(w, "entry");
    for (uint64_t i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "GET /path%llu/{id}", (unsigned long long)i);
        names[i] = jfr_define_string(w, name);
    }
    server_define_workers(w, THREADS);
}

static void begin(uint32_t type, uint64_t start, size_t room, struct jfr_event *e)
{
    while (!jfr_begin(w, type, room, e))
        (void)!jfr_writer_work(w);
    jfr_put_time(e, start);
}

/* The latter half of a request is a wait for a monitor that the thread before it had. */
static void put_details(uint64_t id, uint64_t name, uint64_t thread, uint64_t start, uint64_t ns)
{
    struct jfr_event e;
    uint64_t lock = next_random() % SERVER_LOCKS;
    begin(ids[REQUEST], start, 0, &e);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)id);
    jfr_put_string_id(&e, names[name]);
    jfr_put_string_id(&e, kind);
    jfr_put_int(&e, 200);
    jfr_commit(&e);
    begin(ids[WORK], start, 0, &e);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)id);
    jfr_put_string_id(&e, entry);
    jfr_put_long(&e, 0);
    jfr_commit(&e);
    begin(JFR_JAVA_MONITOR_ENTER, start + ns / 4, 0, &e);
    jfr_put_long(&e, (int64_t)(ns / 2));
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)stacks[lock * 3 % SERVER_STACKS]);
    jfr_put_long(&e, (int64_t)lock_class);
    jfr_put_long(&e, (int64_t)(thread % THREADS + 1));
    jfr_put_long(&e, (int64_t)(0x1000 + lock));
    jfr_commit(&e);
}

static void put_totals(uint64_t now)
{
    static char text[40 << 10];
    for (int i = 0; i < NAMES; i++) {
        size_t len = 0;
        for (unsigned b = 0; b < LATENCY_BUCKETS && len + 40 < sizeof(text); b++)
            if (totals[i].buckets[b])
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u:%llu", len ? " " : "",
                                        b, (unsigned long long)totals[i].buckets[b]);
        struct jfr_event e;
        begin(ids[TOTALS], now, len + 160, &e);
        jfr_put_string_id(&e, names[i]);
        jfr_put_string_id(&e, kind);
        jfr_put_long(&e, (int64_t)totals[i].count);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, (int64_t)totals[i].sum);
        jfr_put_long(&e, (int64_t)totals[i].max);
        jfr_put_string_n(&e, text, len);
        jfr_commit(&e);
        (void)!jfr_writer_work(w);
    }
}

int main(int argc, char **argv)
{
    uint64_t requests = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000;
    uint64_t kept = argc > 3 ? strtoull(argv[3], NULL, 10) : 200000, put = 0;
    struct jfr_writer_options options = {.resolver = {.method = server_method}};
    int r = argc > 1 ? jfr_writer_open(&w, argv[1], &options) : -EINVAL;
    r = r ? r : jfr_declare(w, types, TYPES, ids);
    if (r < 0) {
        fprintf(stderr, "requests_generate: %s: %s\n",
                argc > 1 ? argv[1] : "usage: requests_generate FILE [REQUESTS [KEPT]]",
                strerror(-r));
        return 1;
    }
    make_constants();
    uint64_t began = now_ns(), now = began;
    struct jfr_event e;
    begin(ids[ANALYSIS], now, 0, &e);
    jfr_put_byte(&e, 1);
    jfr_put_int(&e, 9);
    jfr_put_byte(&e, 1);
    jfr_commit(&e);
    /* A thread has one request after the other; one in a hundred takes ten times as long. */
    for (uint64_t i = 0; i < requests; i++) {
        uint64_t thread = 1 + i % THREADS, name = next_random() % NAMES,
                 ns = NS / 2 * THREADS / 16 + next_random() % (NS * 2);
        ns = next_random() % 100 ? ns : 10 * ns;
        now = began + i / THREADS * THREADS * NS + thread * 100;
        ns = MIN(ns, (uint64_t)THREADS * NS - 1000);
        totals[name].count++;
        totals[name].sum += ns;
        totals[name].max = MAX(totals[name].max, ns);
        totals[name].buckets[latency_bucket(ns)]++;
        if (put * requests <= i * kept && put < kept) {
            put_details(i + 1, name, thread, now, ns);
            put++;
        }
        if (i % 4096 == 0)
            (void)!jfr_writer_work(w);
    }
    put_totals(now);
    struct jfr_counters c;
    r = jfr_writer_close(w);
    jfr_writer_counters(w, &c);
    printf("%llu requests, details of %llu, %llu bytes, %llu lost\n", (unsigned long long)requests,
           (unsigned long long)put, (unsigned long long)c.bytes,
           (unsigned long long)(c.lost_busy + c.lost_room + c.lost_size));
    jfr_writer_free(w);
    return r < 0;
}
