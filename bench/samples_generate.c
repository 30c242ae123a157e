/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the recording that cpu=samples makes on a busy server in a day: 40,000 stacks of 30 frames
 * that share their roots, taken by 64 threads every half millisecond. The same seed gives the same
 * samples. Usage: samples_generate FILE [SAMPLES [SAMPLES_A_CHUNK]]
 */
#include "generate.h"
#include "generate_server.h"
#include "jfr/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, STACKS = 40000, DEPTH = 30, SHARED = 12 };

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    static char name[32], class[48];
    snprintf(name, sizeof(name), "method%llu", (unsigned long long)method % 7);
    snprintf(class, sizeof(class), "bench/p%llu/Server%llu", (unsigned long long)method % 31,
             (unsigned long long)method / 7);
    *ret = (struct jfr_method){.class = {.name = class}, .name = name, .descriptor = "()V"};
    return 0;
}

static uint64_t stacks[STACKS];

/*
 * Frames are stored leaf first. The outer frames are those of one of a hundred kinds of requests.
 */
static void make_stacks(struct jfr_writer *w)
{
    for (uint64_t i = 0; i < STACKS; i++) {
        struct jfr_frame frames[DEPTH] = {0};
        uint64_t request = i % 100;
        for (uint64_t k = 0; k < DEPTH; k++) {
            uint64_t root = DEPTH - k;
            frames[k] = (struct jfr_frame){root <= SHARED ? 1 + request * 13 + root
                                                          : 2000 + next_random() % 4000,
                                           (int32_t)k, JFR_FRAME_JIT};
        }
        stacks[i] = jfr_trace(w, frames, DEPTH, false);
        if (i % 512 == 0)
            (void)!jfr_writer_work(w);
    }
}

static void put_sample(struct jfr_writer *w, uint64_t time)
{
    struct jfr_event e;
    while (!jfr_begin(w, JFR_EXECUTION_SAMPLE, 0, &e))
        (void)!jfr_writer_work(w);
    uint64_t stack = next_random() % STACKS;
    jfr_put_time(&e, time);
    jfr_put_long(&e, (int64_t)(1 + next_random() % THREADS));
    jfr_put_long(&e, (int64_t)stacks[stack * (next_random() % 64) / 64]);
    jfr_put_long(&e, JFR_STATE_RUNNABLE);
    jfr_commit(&e);
}

int main(int argc, char **argv)
{
    uint64_t samples = argc > 2 ? strtoull(argv[2], NULL, 10) : 5000000;
    uint64_t a_chunk = argc > 3 ? strtoull(argv[3], NULL, 10) : UINT64_MAX;
    struct jfr_writer_options options = {.resolver = {.method = name_method}};
    struct jfr_writer *w = NULL;
    int r = argc > 1 ? jfr_writer_open(&w, argv[1], &options) : -EINVAL;
    if (r < 0) {
        fprintf(stderr, "samples_generate: %s: %s\n",
                argc > 1 ? argv[1] : "usage: samples_generate FILE [SAMPLES [SAMPLES_A_CHUNK]]",
                strerror(-r));
        return 1;
    }
    make_stacks(w);
    server_define_workers(w, THREADS);
    uint64_t begin = now_ns();
    for (uint64_t n = 0; n < samples; n++) {
        put_sample(w, begin + n * 500000);
        if (n % 4096 == 0)
            (void)!jfr_writer_work(w);
        if (n % a_chunk == a_chunk - 1)
            (void)!jfr_writer_rotate(w);
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
