/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a recording from many threads, and from a signal handler in each of them:
 *
 *     jfr_stress FILE [threads=4] [ms=1000] [chunk=BYTES] [pause=NS] [traces=N] [methods=N]
 * [max=BYTES] [big=1] [idle=1]
 *
 * Each thread writes jvmscope.test.Tick events numbered from 0 without a gap (a lost one repeats
 * its number), so a reader can tell what is missing. At the end it prints the counters as key=value
 * words; "ready" comes first, when the file is open.
 */
#include "base/clock.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

static const struct jfr_type types[] = {
    {"jvmscope.test.Tick", "Tick", "jvmscope|Test", NULL, JFR_EVENT, JFR_HAS_THREAD | JFR_HAS_STACK,
     JFR_FIELDS({"writer", "Writer", "int"}, {"number", "Number", "long"},
                {"text", "Text", "java.lang.String"})},
};

static struct jfr_writer *w;
static uint32_t tick_type;
static atomic_bool stop;
static long n_threads = 4, ms = 1000, chunk, pause_ns, n_traces = 200, n_methods = 100, max_bytes,
            big, idle;
static __thread long self = -1;
static __thread uint64_t samples;
static char text[20000];
static uint64_t written[4096], sampled[4096];

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    static char name[64], class[64];
    static const struct jfr_line lines[] = {{0, 10}, {5, 11}, {20, 12}};
    snprintf(name, sizeof(name), "method%llu", (unsigned long long)method & 0xffff);
    snprintf(class, sizeof(class), "test/pack/Class%llu",
             (unsigned long long)(method & 0xffff) / 10);
    *ret = (struct jfr_method){.class = {.name = class, .package = "test/pack", .loader = "app"},
                               .name = name,
                               .descriptor = "(I)V",
                               .modifiers = 9,
                               .lines = lines,
                               .n_lines = 3};
    return 0;
}

static uint64_t some_trace(uint64_t which)
{
    struct jfr_frame frames[64]; /* the handler may interrupt the thread while it fills its own */
    uint32_t n = 1 + which % 40;
    for (uint32_t i = 0; i < n; i++)
        frames[i] = (struct jfr_frame){0x7f0000000000 + (which * 7 + i) % (uint64_t)n_methods,
                                       (int32_t)(which + i) % 30, 1 + i % 3};
    return jfr_trace(w, frames, n, which % 16 == 0);
}

static void on_signal(int signal)
{
    int saved = errno;
    struct jfr_event e;
    uint64_t trace = some_trace((uint64_t)(self * 31) + samples % (uint64_t)n_traces);
    if (self >= 0 && jfr_begin(w, JFR_EXECUTION_SAMPLE, 0, &e)) {
        jfr_put_time(&e, now_ns());
        jfr_put_long(&e, 100 + self);
        jfr_put_long(&e, (int64_t)trace);
        jfr_put_long(&e, JFR_STATE_RUNNABLE);
        jfr_commit(&e);
        samples++;
    }
    errno = saved;
}

static void tick(long number)
{
    struct jfr_event e;
    bool long_text = big && number % 50 == 0;
    uint64_t trace = some_trace((uint64_t)number % (uint64_t)n_traces);
    if (!jfr_begin(w, tick_type, long_text ? sizeof(text) + 200 : 0, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, 100 + self);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_int(&e, (int32_t)self);
    jfr_put_long(&e, number);
    jfr_put_string(&e, long_text ? text : number % 3 ? "some text" : NULL);
    jfr_commit(&e);
    written[self]++;
}

static void *run(void *arg)
{
    self = (long)(intptr_t)arg;
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec every = {{0, 200000}, {0, 200000}};
    if (!timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer))
        timer_settime(timer, 0, &every, NULL);
    while (!stop) {
        if (!idle)
            tick((long)written[self]);
        if (pause_ns || idle) {
            struct timespec nap = {0, idle ? 1000000 : pause_ns};
            nanosleep(&nap, NULL);
        }
    }
    timer_delete(timer);
    sampled[self] = samples;
    return NULL;
}

static struct waker waker;

static void *work(void *arg)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!stop) {
        (void)waker_wait(&waker, 20 * NS_PER_MS);
        jfr_writer_work(w);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        long *value;
    } words[] = {{"threads", &n_threads}, {"ms", &ms},           {"chunk", &chunk},
                 {"pause", &pause_ns},    {"traces", &n_traces}, {"methods", &n_methods},
                 {"max", &max_bytes},     {"big", &big},         {"idle", &idle}};

    for (int i = 2; i < argc; i++)
        for (size_t k = 0; k < ARRAY_SIZE(words); k++)
            if (!strncmp(argv[i], words[k].name, strlen(words[k].name)) &&
                argv[i][strlen(words[k].name)] == '=')
                *words[k].value = atol(strchr(argv[i], '=') + 1);
    struct jfr_writer_options options = {.resolver = {.method = name_method},
                                         .chunk_bytes = (uint64_t)chunk,
                                         .max_bytes = (uint64_t)max_bytes,
                                         .waker = &waker};
    int ret = argc < 2 ? -EINVAL : jfr_writer_open(&w, argv[1], &options);
    if (!ret)
        ret = jfr_declare(w, types, 1, &tick_type);
    if (ret) {
        printf("error=%d\n", -ret);
        return 1;
    }
    for (long i = 0; i < n_threads; i++) {
        char name[32];
        snprintf(name, sizeof(name), "writer %ld \xc3\xa4", i);
        jfr_define_thread(
            w, (uint64_t)(100 + i),
            &(struct jfr_thread){name, (uint64_t)i, name, (uint64_t)i + 1, "main", false});
    }
    memset(text, 'x', sizeof(text) - 1);
    printf("ready\n");
    fflush(stdout);
    sigaction(SIGPROF, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL);
    static pthread_t threads[4096];
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    for (long i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i);
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
    stop = true;
    for (long i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    pthread_join(worker, NULL);
    ret = jfr_writer_close(w);
    struct jfr_counters n;
    jfr_writer_counters(w, &n);
    uint64_t ticks = 0, all_samples = 0;
    for (long i = 0; i < n_threads; i++) {
        ticks += written[i];
        all_samples += sampled[i];
    }
#define SHOW(name) printf(#name "=%llu ", (unsigned long long)n.name)
    printf("close=%d ticks=%llu samples=%llu ", -ret, (unsigned long long)ticks,
           (unsigned long long)all_samples);
    SHOW(events);
    SHOW(bytes);
    SHOW(chunks);
    SHOW(lost_busy);
    SHOW(lost_room);
    SHOW(lost_size);
    SHOW(lost_shape);
    SHOW(lost_closed);
    SHOW(traces);
    SHOW(lost_traces);
    SHOW(unresolved);
    SHOW(lost_constants);
    printf("error=%d\n", -n.error);
    jfr_writer_free(w);
    return 0;
}
