/* SPDX-License-Identifier: Apache-2.0 */
/* Rings: what they keep and what is taken out of them, checked by events with known numbers. */
#include "tests.h"

#include "base/clock.h"
#include "base/vec.h"
#include "jfr/reader.h"
#include "jfr/ring.h"
#include "jfr/ring_read.h"
#include "jfr/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP, WAIT, WAITING, TYPES };

static const struct jfr_type rows[TYPES] = {
    {"jvmscope.test.Step", "Step", "Test", NULL, JFR_EVENT, JFR_HAS_THREAD | JFR_HAS_STACK,
     JFR_FIELDS({"number", "Number", "long"}, {"text", "Text", "java.lang.String"})},
    {"jvmscope.test.Wait", "Wait", "Test", NULL, JFR_EVENT, JFR_DURATION | JFR_HAS_THREAD,
     JFR_FIELDS({"number", "Number", "long"})},
    {"jvmscope.Waiting", "Waiting", "Test", NULL, JFR_EVENT, JFR_HAS_THREAD,
     JFR_FIELDS({"number", "Number", "long"})},
};

static char path[64], part_path[64];
static struct jfr_writer *w;
static uint32_t ids[TYPES];

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    static char name[32];
    snprintf(name, sizeof(name), "m%d", (int)method);
    *ret = (struct jfr_method){.class = {.name = "a/B"}, .name = name, .descriptor = "()V"};
    return 0;
}

static int name_thread(void *context, uint64_t id, struct jfr_thread *ret)
{
    static char name[32];
    snprintf(name, sizeof(name), "thread %d", (int)id);
    *ret = (struct jfr_thread){.os_name = name, .os_id = id, .java_name = name, .java_id = id};
    return 0;
}

static struct waker waker;

static int open_ring(const char *at, uint64_t bytes, uint64_t keep_ns)
{
    struct jfr_writer_options options = {.resolver = {NULL, name_method, name_thread},
                                         .slots = 4,
                                         .trace_bytes = 1 << 20,
                                         .ring_bytes = bytes,
                                         .keep_ns = keep_ns,
                                         .waker = &waker};
    int r = jfr_writer_open(&w, at, &options);
    return r ? r : jfr_declare(w, rows, TYPES, ids);
}

static int set_up(void **state)
{
    snprintf(path, sizeof(path), "test_jfr_ring.%d.ring", (int)getpid());
    snprintf(part_path, sizeof(part_path), "test_jfr_ring.%d.jfr", (int)getpid());
    w = NULL;
    return 0;
}

static int tear_down(void **state)
{
    jfr_writer_free(w);
    unlink(path);
    unlink(part_path);
    return 0;
}

static void step(uint64_t ns, int64_t number, const char *text)
{
    struct jfr_event e;
    struct jfr_frame frame = {(uint64_t)(number % 50), -1, JFR_FRAME_JIT};
    uint64_t trace = jfr_trace(w, &frame, 1, false);
    assert_true(jfr_begin(w, ids[STEP], 400, &e));
    jfr_put_time(&e, ns);
    jfr_put_long(&e, 5);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, number);
    jfr_put_string(&e, text);
    jfr_commit(&e);
}

static void wait_event(int type, uint64_t start, uint64_t ns, int64_t thread, int64_t number)
{
    struct jfr_event e;
    assert_true(jfr_begin(w, ids[type], 0, &e));
    jfr_put_time(&e, start);
    if (type == WAIT)
        jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, thread);
    jfr_put_long(&e, number);
    jfr_commit(&e);
}

static void setting(uint64_t ns, const char *value)
{
    struct jfr_event e;
    assert_true(jfr_begin(w, JFR_ACTIVE_SETTING, 0, &e));
    jfr_put_time(&e, ns);
    for (int i = 0; i < 4; i++)
        jfr_put_long(&e, 0);
    jfr_put_string(&e, "name");
    jfr_put_string(&e, value);
    jfr_commit(&e);
}

static int take_cut(const char *from, const struct jfr_ring_cut *cut, struct jfr_ring_part *ret)
{
    const char *why = NULL;
    _cleanup_close_ int fd = open(from, O_RDONLY | O_CLOEXEC);
    _cleanup_close_ int to = open(part_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && to >= 0);
    return jfr_ring_take(fd, cut, to, ret, &why);
}

static int take_from(const char *from, uint64_t last_ns, bool flushed, struct jfr_ring_part *ret)
{
    return take_cut(from, &(struct jfr_ring_cut){.last_ns = last_ns, .flushed = flushed}, ret);
}

struct numbers {
    VEC(int64_t) of[TYPES];
    int64_t times[400]; /* of the first steps, by number */
    size_t settings;
    uint64_t unresolved;
    int64_t first_ns, start_ns;
    bool unended, part;
};

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/*
 * Reads the part. Each step must have its stack and its thread if its number is below `named`.
 * Later steps may lack them, because their writer was killed before it wrote them.
 */
static void read_part_named(struct numbers *ret, int64_t named)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    static const struct rec_select wanted[] = {{"jvmscope.test.Step", STEP},
                                               {"jvmscope.test.Wait", WAIT},
                                               {"jvmscope.Waiting", WAITING},
                                               {"jdk.ActiveSetting", TYPES},
                                               {0}};
    const char *why;
    struct rec_event e;
    struct rec_info info;
    *ret = (struct numbers){.first_ns = INT64_MAX};
    assert_int_equal(recording_open(&r, part_path, &why), 0);
    assert_int_equal(recording_select(r, wanted), 0);
    while (recording_next(r, &e) > 0) {
        if (e.tag != WAITING)
            ret->first_ns = MIN(ret->first_ns, e.start_ns + e.duration_ns);
        if (e.tag == TYPES) {
            ret->settings++;
            continue;
        }
        int64_t number = rec_long(&e.object, "number", -1);
        assert_int_equal(vec_push(&ret->of[e.tag], number), 0);
        if (e.tag != STEP)
            continue;
        if (number < (int64_t)ARRAY_SIZE(ret->times))
            ret->times[number] = e.start_ns;
        char name[32];
        snprintf(name, sizeof(name), "m%d", (int)(number % 50));
        const struct rec_stack *stack = rec_stack(&e.object, "stackTrace");
        const struct rec_thread *thread = rec_thread(&e.object, "eventThread");
        if (number >= named)
            continue;
        assert_non_null(stack);
        assert_string_equal(stack->frames[0].method->name, name);
        assert_non_null(thread);
    }
    recording_info(r, &info);
    assert_false(info.truncated);
    ret->unresolved = info.unresolved;
    ret->start_ns = info.start_ns;
    ret->unended = info.unended;
    ret->part = info.part_of_ring;
    for (int i = 0; i < TYPES; i++)
        vec_sort(&ret->of[i], by_value);
}

static void read_part(struct numbers *ret)
{
    read_part_named(ret, INT64_MAX);
}

static void release(struct numbers *n)
{
    for (int i = 0; i < TYPES; i++)
        vec_release(&n->of[i]);
}

static void assert_run(const struct numbers *n, int64_t first, int64_t last)
{
    for (size_t i = 1; i < n->of[STEP].len; i++)
        if (n->of[STEP].data[i] != n->of[STEP].data[i - 1] + 1)
            print_error("no steps between %lld and %lld of %lld to %lld\n",
                        (long long)n->of[STEP].data[i - 1], (long long)n->of[STEP].data[i],
                        (long long)first, (long long)last);
    assert_int_equal(n->of[STEP].len, last - first + 1);
    for (size_t i = 0; i < n->of[STEP].len; i++)
        assert_int_equal(n->of[STEP].data[i], first + (int64_t)i);
}

/* The part that is taken out of several chunks is exactly what ended in the requested time. */
static void the_part_begins_at_the_event(void **state)
{
    struct jfr_ring_part part;
    struct numbers all, n;
    assert_int_equal(open_ring(path, 4 << 20, 60 * NS_PER_SECOND), 0);
    for (int i = 0; i < 400; i++) {
        step(now_ns(), i, "x");
        usleep(1000);
        if (i % 120 == 119) {
            assert_int_equal(jfr_writer_rotate(w), 0);
            setting(now_ns(), "x");
        }
    }
    assert_int_equal(jfr_writer_flush(w), 0);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(jfr_is_ring(fd));
    assert_int_equal(take_from(path, 0, true, &part), 0);
    read_part(&all);
    assert_run(&all, 0, 399);
    assert_int_equal(all.settings, 3);
    for (uint64_t ms = 0; ms < 500; ms += 50)
        for (int flushed = 0; flushed < 2; flushed++) {
            assert_int_equal(take_from(path, ms * NS_PER_MS + 1, flushed, &part), 0);
            assert_int_equal(part.damaged, 0);
            read_part(&n);
            assert_true(n.part);
            assert_int_equal(n.unended, !flushed);
            assert_int_equal(n.start_ns, part.start_ns);
            assert_int_equal(n.unresolved, 0);
            int64_t first = 0;
            while (first < 400 && all.times[first] < part.start_ns)
                first++;
            assert_run(&n, first, 399);
            assert_true(n.first_ns >= part.start_ns);
            release(&n);
        }
    release(&all);
}

/* A part whose beginning is given has that beginning, however late it is taken. */
static void the_part_begins_when_it_shall(void **state)
{
    struct jfr_ring_part part;
    struct numbers n;
    uint64_t middle = 0;
    assert_int_equal(open_ring(path, 4 << 20, 60 * NS_PER_SECOND), 0);
    for (int i = 0; i < 300; i++) {
        middle = i == 100 ? now_ns() : middle;
        step(now_ns(), i, "x");
        if (i % 120 == 119)
            assert_int_equal(jfr_writer_rotate(w), 0);
        if (i < 150 || i % 50)
            continue;
        usleep(1000);
        assert_int_equal(jfr_writer_flush(w), 0);
        struct jfr_ring_cut cut = {.since_ticks = jfr_writer_ticks(w, middle), .flushed = true};
        assert_int_equal(take_cut(path, &cut, &part), 0);
        read_part(&n);
        assert_run(&n, 100, i);
        release(&n);
    }
    struct jfr_ring_cut all = {.since_ticks = 1, .flushed = true};
    assert_int_equal(take_cut(path, &all, &part), 0);
    read_part(&n);
    assert_int_equal(n.of[STEP].data[0], 0);
    release(&n);
}

/* Waits, threads and settings that still held at the beginning of the part are in it. */
static void what_holds_at_the_beginning_is_kept(void **state)
{
    struct jfr_ring_part part;
    struct numbers n;
    assert_int_equal(open_ring(path, 4 << 20, 60 * NS_PER_SECOND), 0);
    usleep(300000);
    uint64_t now = now_ns(), s = NS_PER_SECOND, ms = NS_PER_MS;
    setting(now - 250 * ms, "kept");
    wait_event(WAITING, now - 90 * s, 0, 1, 1); /* goes on */
    wait_event(WAITING, now - 80 * s, 0, 2, 2); /* ended before the part */
    wait_event(WAIT, now - 80 * s, 80 * s - 200 * ms, 2, 3);
    wait_event(WAITING, now - 80 * s, 0, 3, 4); /* ended in it */
    wait_event(WAIT, now - 80 * s, 80 * s - ms, 3, 5);
    wait_event(WAIT, now - 250 * ms, ms, 3, 6);
    assert_int_equal(jfr_writer_flush(w), 0);
    struct jfr_ring_cut cut = {.since_ticks = jfr_writer_ticks(w, now - 100 * ms), .flushed = true};
    assert_int_equal(take_cut(path, &cut, &part), 0);
    read_part(&n);
    assert_int_equal(n.settings, 1);
    assert_int_equal(n.of[WAIT].len, 1);
    assert_int_equal(n.of[WAIT].data[0], 5);
    assert_int_equal(n.of[WAITING].len, 2);
    assert_int_equal(n.of[WAITING].data[0], 1);
    assert_int_equal(n.of[WAITING].data[1], 4);
    assert_true(n.first_ns >= part.start_ns);
    release(&n);
}

/* A ring that went round many times holds the newest events without a gap. */
static void a_full_ring_holds_the_newest(void **state)
{
    struct jfr_ring_part part;
    struct jfr_ring_state ring;
    struct numbers n;
    char text[300];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    const uint64_t bytes = 5000000;
    assert_int_equal(open_ring(path, bytes, 3600 * NS_PER_SECOND), 0);
    int64_t number = 0;
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < 200; i++)
            step(now_ns(), number++, text);
        assert_int_equal(jfr_writer_work(w), 0);
    }
    assert_int_equal(jfr_writer_flush(w), 0);
    assert_true(jfr_writer_ring(w, &ring));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_in_range(st.st_size, bytes - (bytes >> 4), bytes);
    assert_int_equal(ring.size, st.st_size);
    assert_in_range(ring.written, number * 300, number * 400);
    assert_in_range(ring.used, bytes / 2, bytes);
    assert_int_equal(take_from(path, 0, true, &part), 0);
    read_part(&n);
    assert_int_equal(n.unresolved, 0);
    /* At least half of what would fit. */
    assert_true((int64_t)n.of[STEP].len > (int64_t)bytes / 2 / 350);
    assert_run(&n, number - (int64_t)n.of[STEP].len, number - 1);
    release(&n);
}

/*
 * Captures write some events a while after they happened. What ended before the part is not in it,
 * also if the part is all that a full ring has left.
 */
static void nothing_ends_before_the_part(void **state)
{
    struct jfr_ring_part part;
    struct numbers n;
    char text[300];
    const uint64_t late = 2 * NS_PER_MS;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    assert_int_equal(open_ring(path, 4 << 20, 3600 * NS_PER_SECOND), 0);
    int64_t number = 0;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 200; i++, number++) {
            step(now_ns() - late, number, text);
            wait_event(WAIT, now_ns() - late, 5, 5, number);
        }
        assert_int_equal(jfr_writer_work(w), 0);
        usleep(200);
    }
    usleep(3000);
    for (int i = 0; i < 10; i++)
        step(now_ns(), number++, text);
    assert_int_equal(jfr_writer_flush(w), 0);
    uint64_t all = 0;
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(take_from(path, all * i / 8, true, &part), 0);
        read_part(&n);
        assert_true(part.start_ns > 0 && n.start_ns == part.start_ns);
        assert_true(n.first_ns >= part.start_ns);
        assert_run(&n, number - (int64_t)n.of[STEP].len, number - 1);
        all = i == 0 ? (uint64_t)(part.end_ns - part.start_ns) : all;
        if (i == 0)
            assert_true(n.of[STEP].len < 20000 && n.of[WAIT].len > 0);
        release(&n);
    }
}

/* The end of a wait is in the part if the part has the wait as one that goes on. */
static void a_reported_wait_has_its_end(void **state)
{
    struct jfr_ring_part part;
    struct numbers n;
    assert_int_equal(open_ring(path, 4 << 20, 60 * NS_PER_SECOND), 0);
    uint64_t now = now_ns(), s = NS_PER_SECOND, ms = NS_PER_MS;
    wait_event(WAITING, now - 80 * s, 0, 2, 2);
    usleep(5000);
    uint64_t from = now_ns();
    usleep(5000);
    assert_int_equal(jfr_writer_rotate(w), 0);
    wait_event(WAIT, now - 80 * s, from - ms - (now - 80 * s), 2, 3);
    wait_event(WAIT, now - 70 * s, from - ms - (now - 70 * s), 2, 4);
    wait_event(WAITING, now - 70 * s, 0, 2, 5); /* reported although it had ended */
    assert_int_equal(jfr_writer_flush(w), 0);
    struct jfr_ring_cut cut = {.since_ticks = jfr_writer_ticks(w, from), .flushed = true};
    assert_int_equal(take_cut(path, &cut, &part), 0);
    read_part(&n);
    assert_int_equal(n.of[WAITING].len, 1);
    assert_int_equal(n.of[WAIT].len, 1);
    assert_int_equal(n.of[WAIT].data[0], 3);
    release(&n);
}

/* An earlier failure to write is not blamed on the ring. */
static void a_disk_without_room_is_the_reason(void **state)
{
    const struct jfr_ring_cut all = {.flushed = true};
    const char *why = "?";
    struct jfr_ring_part part;
    assert_int_equal(open_ring(path, 4 << 20, 60 * NS_PER_SECOND), 0);
    step(now_ns(), 0, "x");
    assert_int_equal(jfr_writer_flush(w), 0);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_close_ int full = open("/dev/full", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && full >= 0);
    assert_int_equal(jfr_ring_take(fd, &all, full, &part, &why), -ENOSPC);
    assert_null(why);
}

/* A quiet program uses as many segments as its keep time needs, and they are used again. */
static void old_segments_are_used_again(void **state)
{
    struct jfr_ring_state ring;
    assert_int_equal(open_ring(path, 8 << 20, 1), 0);
    for (int i = 0; i < 20; i++) {
        step(now_ns(), i, "x");
        assert_int_equal(jfr_writer_rotate(w), 0);
    }
    assert_true(jfr_writer_ring(w, &ring));
    assert_in_range(ring.chunks, 2, 3);
    assert_true(ring.used < 2 << 20);
}

static void bounds_of_the_size(void **state)
{
    static const uint64_t refused[] = {1, 8192, 1 << 20, UINT64_C(1) << 40};
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        int r = open_ring(path, refused[i], NS_PER_SECOND);
        assert_true(r == -EINVAL || r == -ENOSPC || r == -EFBIG);
        assert_int_equal(access(path, F_OK), -1);
    }
    struct jfr_ring_part part;
    assert_int_equal(open_ring(path, (2 << 20) + 65536, NS_PER_SECOND), 0);
    step(now_ns(), 1, "x");
    assert_int_equal(jfr_writer_flush(w), 0);
    assert_int_equal(take_from(path, 0, true, &part), 0);
}

static void a_ring_without_a_path_is_in_memory(void **state)
{
    struct jfr_ring_part part;
    struct numbers n;
    char link[64];
    assert_int_equal(open_ring(NULL, 4 << 20, NS_PER_SECOND), 0);
    step(now_ns(), 7, "x");
    assert_int_equal(jfr_writer_flush(w), 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", jfr_writer_descriptor(w));
    assert_int_equal(take_from(link, 0, true, &part), 0);
    read_part(&n);
    assert_run(&n, 7, 7);
    release(&n);
}

/* ---- a recorder that is copied while it writes, and killed ---- */

struct shared {
    _Atomic int64_t written; /* the number of steps */
    _Atomic int64_t named;   /* all names of this many of them are in the file */
};

static struct shared *shared;

static void *write_steps(void *unused)
{
    char text[200];
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    for (int64_t i = 0;; i++) {
        struct jfr_event e;
        struct jfr_frame frame = {(uint64_t)(i % 50), -1, JFR_FRAME_JIT};
        uint64_t trace = jfr_trace(w, &frame, 1, false);
        while (!jfr_begin(w, ids[STEP], 400, &e))
            usleep(100);
        jfr_put_time(&e, now_ns());
        jfr_put_long(&e, 5);
        jfr_put_long(&e, (int64_t)trace);
        jfr_put_long(&e, i);
        jfr_put_string(&e, text);
        jfr_commit(&e);
        atomic_store(&shared->written, i + 1);
        if (i % 500 == 0)
            usleep(1000);
    }
    return NULL;
}

static pid_t start_recorder(uint64_t bytes)
{
    atomic_store(&shared->written, 0);
    atomic_store(&shared->named, 0);
    pid_t pid = fork();
    if (pid)
        return pid;
    /* removed here so that a failed test does not leave it behind */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_t thread;
    if (open_ring(path, bytes, 3600 * NS_PER_SECOND) ||
        pthread_create(&thread, NULL, write_steps, NULL))
        _exit(1);
    for (;;) {
        int64_t written = atomic_load(&shared->written);
        (void)waker_wait(&waker, 10 * NS_PER_MS);
        if (jfr_writer_work(w) == 0)
            atomic_store(&shared->named, written);
    }
}

static void await(int64_t number)
{
    for (int i = 0; atomic_load(&shared->written) < number && i < 60000; i++)
        usleep(1000);
    assert_true(atomic_load(&shared->written) >= number);
}

static void a_killed_recorder_leaves_all_it_published(void **state)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 12; round++) {
        struct jfr_ring_part part;
        struct numbers n;
        pid_t pid = start_recorder(3 << 20);
        await(1000 + round * 2300);
        if (round % 3 == 0) {
            /* A copy that is made while it writes has no gap either. */
            int64_t named = atomic_load(&shared->named);
            int r = take_from(path, 0, false, &part);
            assert_true(r == 0 || r == -EAGAIN);
            if (r == 0) {
                read_part_named(&n, named);
                assert_run(&n, n.of[STEP].data[0], n.of[STEP].data[n.of[STEP].len - 1]);
                release(&n);
            }
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_int_equal(take_from(path, 0, false, &part), 0);
        read_part_named(&n, atomic_load(&shared->named));
        assert_true(n.unended);
        assert_int_equal(part.damaged, 0);
        int64_t last = n.of[STEP].data[n.of[STEP].len - 1];
        assert_in_range(last, atomic_load(&shared->written) - 1, atomic_load(&shared->written));
        assert_run(&n, n.of[STEP].data[0], last);
        release(&n);
        unlink(path);
    }
    munmap(shared, 4096);
}

/* Whatever happened to the file, it is read without a crash, or refused with a reason. */
static void damaged_rings_are_read_or_refused(void **state)
{
    struct jfr_ring_part part;
    assert_int_equal(open_ring(path, 4 << 20, 60 * NS_PER_SECOND), 0);
    for (int i = 0; i < 2000; i++) {
        step(now_ns(), i, "text");
        wait_event(WAIT, now_ns() - 1000, 1000, 3, i);
        if (i % 400 == 399)
            assert_int_equal(jfr_writer_rotate(w), 0);
    }
    assert_int_equal(jfr_writer_close(w), 0);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    size_t len = (size_t)st.st_size, read = 0;
    uint8_t *good = malloc(len);
    assert_int_equal(pread(fd, good, len, 0), len);
    size_t segment = (len - JFR_RING_HEAD) / 4;
    srand(1);
    for (int i = 0; i < 300; i++) {
        /* Damage matters most in the heads. */
        size_t at = i % 3 == 0 ? (size_t)rand() % 128
                    : i % 3 == 1
                        ? JFR_RING_HEAD + (size_t)rand() % 4 * segment + (size_t)rand() % 72
                        : JFR_RING_HEAD + (size_t)rand() % 4 * segment + (size_t)rand() % 40000;
        uint8_t bytes[8];
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)(rand() % 3 ? rand() : 0xff);
        assert_int_equal(pwrite(fd, bytes, 1 + (size_t)i % 8, (off_t)at), 1 + i % 8);
        int r = take_from(path, i % 2 ? NS_PER_SECOND / 1000 : 0, i % 5 == 0, &part);
        assert_true(r == 0 || r == -EBADMSG || r == -EAGAIN);
        read += r == 0;
        assert_int_equal(pwrite(fd, good + at, 8, (off_t)at), 8);
    }
    assert_true(read > 100);
    for (size_t cut = 0; cut < len; cut += len / 20) {
        assert_int_equal(ftruncate(fd, (off_t)cut), 0);
        int r = take_from(path, 0, false, &part);
        assert_true(r == 0 || r == -EBADMSG);
        assert_int_equal(ftruncate(fd, (off_t)len), 0);
        assert_int_equal(pwrite(fd, good, len, 0), len);
    }
    free(good);
}

static void step_with(uint64_t trace, int64_t number)
{
    struct jfr_event e;
    assert_true(jfr_begin_growing(w, ids[STEP], 400, &e));
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, 5);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, number);
    jfr_put_string(&e, "x");
    jfr_commit(&e);
}

/* One that no other number has. */
static uint64_t deep_stack(int64_t number)
{
    struct jfr_frame frames[21];
    for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
        frames[i] =
            (struct jfr_frame){i ? 7 : (uint64_t)(number % 50), (int32_t)number, JFR_FRAME_JIT};
    return jfr_trace(w, frames, ARRAY_SIZE(frames), false);
}

/* Keeps one stack, as the owner of a ring does with those of waits. */
static void work_and_keep(uint64_t *kept)
{
    (void)!jfr_writer_work(w);
    if (!jfr_traces_due(w))
        return;
    *kept = jfr_trace_keep(w, *kept);
    assert_true(*kept);
    jfr_traces_kept(w);
}

/*
 * Memory for stacks is reused; each event has its own stack, and a stack that is still needed is
 * kept.
 */
static void stacks_of_many_times_their_memory(void **state)
{
    enum { STEPS = 50000, KEPT = 3 };

    struct jfr_ring_part part;
    struct jfr_counters counters;
    struct numbers n;
    assert_int_equal(open_ring(path, 4 << 20, 60 * NS_PER_SECOND), 0);
    uint64_t kept = deep_stack(KEPT), first = kept;
    for (int64_t i = 0; i < STEPS; i++) {
        uint64_t trace = deep_stack(50 + i);
        for (; !trace; trace = deep_stack(50 + i)) {
            usleep(1000);
            work_and_keep(&kept);
        }
        step_with(trace, 50 + i);
        if (i % 100 == 0) {
            step_with(kept, KEPT);
            work_and_keep(&kept);
        }
    }
    jfr_writer_counters(w, &counters);
    assert_true(counters.traces >= STEPS); /* 16 times what there is memory for */
    assert_true(kept != first);
    assert_false(jfr_trace_stays(w, first));
    assert_int_equal(jfr_trace_keep(w, first), 0);
    assert_int_equal(jfr_writer_flush(w), 0);
    assert_int_equal(take_from(path, 0, true, &part), 0);
    read_part(&n);
    assert_true(n.of[STEP].len > 5000);
    assert_int_equal(n.of[STEP].data[0], KEPT);
    assert_int_equal(n.of[STEP].data[n.of[STEP].len - 1], 50 + STEPS - 1);
    assert_int_equal(n.unresolved, 0);
    release(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_part_begins_at_the_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_part_begins_when_it_shall, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_holds_at_the_beginning_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_ring_holds_the_newest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_ends_before_the_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reported_wait_has_its_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_disk_without_room_is_the_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(old_segments_are_used_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stacks_of_many_times_their_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_of_the_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_ring_without_a_path_is_in_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_killed_recorder_leaves_all_it_published, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(damaged_rings_are_read_or_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
