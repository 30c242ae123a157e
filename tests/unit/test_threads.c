/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 18 programs with known answers, in virtual time: the length, states, edges and shares of the
 * path are exact.
 */
#include "tests.h"

#include "analysis/critical_path.h"
#include "analysis/deadlock.h"
#include "analysis/monitor_stats.h"
#include "analysis/replay.h"
#include "analysis/unknown_owners.h"
#include "analysis/what_if.h"
#include "base/clock.h"
#include "base/file.h"
#include "thread_programs.h"
#include "timeline/index.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct timeline *timeline;
static struct machine machine;
static struct critical_path path;

#define RUN(n, ...) run_program(n, (const struct step *const[]){__VA_ARGS__})
#define S(...)      ((const struct step[]){__VA_ARGS__, {END}})

static void forget(void)
{
    timeline_free(timeline);
    timeline = NULL;
    critical_path_release(&path);
    memset(&path, 0, sizeof(path));
}

/* Checks that every cause precedes its effect and that every thread's nodes are in sequence. */
static void check_graph(const struct timeline *t)
{
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node n = tl_node(t, i);
        assert_true(i == 0 || n.time >= tl_node(t, i - 1).time);
        if (n.prev != TL_NONE) {
            assert_true(n.prev < i);
            assert_int_equal(tl_node(t, n.prev).thread, n.thread);
        }
        if (n.edge != TL_NO_EDGE && n.waker != TL_NONE) {
            assert_true(n.waker < i);
            assert_true(n.edge == TL_BY_INTERRUPT || tl_node(t, n.waker).thread != n.thread);
        }
    }
}

static void check_path(const struct timeline *t)
{
    uint64_t at = path.segments.len ? path.segments.data[0].start : 0, sum = 0;
    for (size_t i = 0; i < path.segments.len; i++) {
        const struct path_segment *s = &path.segments.data[i];
        assert_int_equal(s->start, at);
        assert_true(s->end > s->start);
        at = s->end;
        sum += s->end - s->start;
    }
    assert_int_equal(sum, path.length);
    assert_int_equal(path.length, path.makespan);
}

static void check_replay(const struct timeline *t)
{
    uint64_t *times = malloc((t->n_nodes + 1) * sizeof(*times));
    struct what_if w = {.factor = 1};
    assert_int_equal(what_if_times(t, &w, times), 0);
    for (size_t i = 0; i < t->n_nodes; i++)
        assert_int_equal(times[i], tl_node(t, i).time);
    free(times);
}

/* Computes the path of `timeline`; every part must have its cause. */
static void check_all(void)
{
    assert_int_equal(critical_path(timeline, &PATH_OPTIONS, &path), 0);
    check_graph(timeline);
    check_path(timeline);
    check_replay(timeline);
    assert_int_equal(timeline->unbound, 0);
    assert_int_equal(path.states[PATH_UNKNOWN], 0);
}

static void run_program(int n, const struct step *const *scripts)
{
    forget();
    m_init(&machine, n, scripts);
    timeline = m_run(&machine);
    check_all();
}

static uint64_t ms(uint64_t n)
{
    return n * NS_PER_MS;
}

static bool is_lock(const struct timeline *t, uint32_t object, void *arg)
{
    return object == *(uint32_t *)arg;
}

static bool is_method(const struct timeline *t, uint32_t method, void *arg)
{
    return strcmp(tl_string(t, method), arg) == 0;
}

/*
 * Returns the makespan in us with a lock's sections scaled. If the two orders of replay differ, it
 * is that of the original order.
 */
static uint64_t with_lock(uint32_t object, double factor, uint64_t *ret_arbitrated)
{
    struct what_if w = {.lock = is_lock, .lock_arg = &object, .factor = factor};
    struct what_if_answer a;
    assert_int_equal(what_if(timeline, &PATH_OPTIONS, &w, &a), 0);
    if (ret_arbitrated)
        *ret_arbitrated = a.arbitrated / 1000;
    return a.kept / 1000;
}

static uint64_t with_method(const char *method, double factor)
{
    struct what_if w = {.method = is_method, .method_arg = (void *)method, .factor = factor};
    struct what_if_answer a;
    assert_int_equal(what_if(timeline, &PATH_OPTIONS, &w, &a), 0);
    return a.kept / 1000;
}

/* The pass over all nodes must agree with the query of a single node. */
static void check_replay_of(uint32_t object)
{
    struct what_if w = {.lock = is_lock, .lock_arg = &object, .factor = 0.25};
    uint64_t *times = malloc((timeline->n_nodes + 1) * sizeof(*times)),
             *each = malloc((timeline->n_nodes + 1) * sizeof(*each));
    struct scaled what;
    struct replay r;
    assert_int_equal(what_if_times(timeline, &w, times), 0);
    assert_int_equal(scaled_init(&what, timeline, &w), 0);
    assert_int_equal(replay_init(&r, timeline, &what, w.factor, HOLD_ENDS_LIKELY), 0);
    for (size_t i = 0; i < timeline->n_nodes; i++) {
        each[i] = replay_node(&r, each, (uint32_t)i);
        assert_int_equal(times[i], each[i]);
    }
    replay_release(&r);
    scaled_release(&what);
    free(times);
    free(each);
}

/*
 * Returns the time of the path, in ns, in sections of locks of this class, and whether all of it is
 * exact.
 */
static uint64_t lock_share(uint32_t object)
{
    struct holds h;
    struct path_shares shares;
    uint64_t ns = 0;
    assert_int_equal(holds_collect(timeline, NULL, NULL, &h), 0);
    assert_int_equal(path_lock_shares(timeline, &path, &h, &shares), 0);
    for (size_t i = 0; i < shares.rows.len; i++) {
        if (shares.rows.data[i].class == timeline->objects[object].class)
            ns = shares.rows.data[i].ns;
    }
    holds_release(&h);
    vec_release(&shares.rows);
    return ns;
}

static uint64_t on_thread(uint32_t thread)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < path.segments.len; i++)
        ns += path.segments.data[i].thread == thread
                  ? path.segments.data[i].end - path.segments.data[i].start
                  : 0;
    return ns;
}

/* Returns the path's threads in order, such as "0 2 0". Threads without time on it are left out. */
static const char *sequence(void)
{
    static char text[2000];
    size_t len = 0;
    text[0] = 0;
    for (size_t i = 0; i < path.segments.len; i++) {
        if (i == 0 || path.segments.data[i].thread != path.segments.data[i - 1].thread)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", len ? " " : "",
                                    path.segments.data[i].thread);
    }
    return text;
}

static struct monitor_stats stats_of(void)
{
    struct monitor_stats s;
    assert_int_equal(monitor_stats(timeline, &(struct stats_filter){0}, &s), 0);
    return s;
}

static void program_1_joins(void **state)
{
    RUN(4, S({START, 1}, {START, 2}, {START, 3}, {JOIN, 1}, {JOIN, 2}, {JOIN, 3}),
        S({IN, 1}, {SLEEP, 50}), S({IN, 2}, {SLEEP, 120}), S({IN, 3}, {SLEEP, 80}));
    assert_int_equal(path.length, ms(120));
    assert_int_equal(on_thread(2), ms(120));
    assert_int_equal(path.states[PATH_SLEEP], ms(120));
    assert_int_equal(path.edges[TL_BY_JOIN], 1);
    assert_int_equal(with_method("m2", 0.5), 80000);
}

static void program_2_start_and_join_within(void **state)
{
    RUN(3, S({START, 1}, {JOIN, 1}), S({SLEEP, 30}, {START, 2}, {JOIN, 2}, {SLEEP, 20}),
        S({SLEEP, 40}));
    assert_int_equal(path.length, ms(90));
    assert_string_equal(sequence(), "1 2 1");
    assert_int_equal(on_thread(1), ms(50));
    assert_int_equal(on_thread(2), ms(40));
    /* The start of thread 1 is at time 0, before the path. */
    assert_int_equal(path.edges[TL_BY_START], 1);
    assert_int_equal(path.edges[TL_BY_JOIN], 2);
}

#define SECTION                          \
    {LOCK, 0}, {SLEEP, 10}, {UNLOCK, 0}, \
    {                                    \
        REPEAT, 3, 5                     \
    }

static void program_3_one_lock(void **state)
{
    RUN(5,
        S({START, 1}, {START, 2}, {START, 3}, {START, 4}, {JOIN, 1}, {JOIN, 2}, {JOIN, 3},
          {JOIN, 4}),
        S(SECTION), S(SECTION), S(SECTION), S(SECTION));
    assert_int_equal(path.length, ms(200));
    assert_int_equal(lock_share(machine.objects[0]), ms(200));
    struct monitor_stats s = stats_of();
    uint64_t blocked = 0, finish = 0;
    for (uint32_t i = 1; i <= 4; i++) {
        blocked += s.threads.data[i].blocked_ns;
        finish += machine.finished_us[i] * 1000;
    }
    assert_int_equal(blocked, finish - ms(200));
    assert_int_equal(s.classes.len, 2); /* the lock, and the joined threads */
    assert_int_equal(s.classes.data[0].objects, 1);
    assert_int_equal(s.classes.data[0].threads, 4);
    assert_int_equal(s.intervals, s.caused);
    monitor_stats_release(&s);
    assert_int_equal(with_lock(machine.objects[0], 0.5, NULL), 100000);
}

#define OUT_AND_IN                                    \
    {SLEEP, 10}, {LOCK, 0}, {SLEEP, 30}, {UNLOCK, 0}, \
    {                                                 \
        REPEAT, 4, 10                                 \
    }

static void program_4_lock_and_outside(void **state)
{
    RUN(3, S({START, 1}, {START, 2}, {JOIN, 1}, {JOIN, 2}), S(OUT_AND_IN), S(OUT_AND_IN));
    assert_int_equal(path.length, ms(610));
    assert_int_equal(lock_share(machine.objects[0]), ms(600));
    assert_int_equal(path.edges[TL_BY_HANDOFF], 19);
    uint64_t arbitrated;
    assert_int_equal(with_lock(machine.objects[0], 0.5, &arbitrated), 310000);
    assert_int_equal(arbitrated, 310000);
    assert_in_range(with_lock(machine.objects[0], 1.0 / 6, &arbitrated), 154900, 155100);
    assert_in_range(arbitrated, 154900, 155100);
    assert_int_equal(with_lock(machine.objects[0], 1, &arbitrated), 610000);
    assert_int_equal(arbitrated, 610000);
}

#define ONCE                \
    {LOCK, 0}, {SLEEP, 40}, \
    {                       \
        UNLOCK, 0           \
    }

static void program_5_blocked_time_misleads(void **state)
{
    RUN(6,
        S({START, 1}, {START, 2}, {START, 3}, {START, 4}, {START, 5}, {JOIN, 1}, {JOIN, 2},
          {JOIN, 3}, {JOIN, 4}, {JOIN, 5}),
        S(ONCE), S(ONCE), S(ONCE), S(ONCE),
        S({LOCK, 1}, {SLEEP, 30}, {UNLOCK, 1}, {REPEAT, 3, 10}));
    assert_int_equal(path.length, ms(300));
    assert_int_equal(on_thread(5), ms(300));
    assert_int_equal(lock_share(machine.objects[0]), 0);
    struct monitor_stats s = stats_of();
    assert_int_equal(s.classes.data[0].block.total_ns, ms(240));
    monitor_stats_release(&s);
}

/*
 * Two waits of 20 ms, and one of which the recording has 10 ms: how long that took is unknown, so
 * it is not part of the least, the average and the percentiles.
 */
static void waits_that_are_cut_have_no_length(void **state)
{
    const struct step *const scripts[] = {
        S({START, 1}, {SLEEP, 50}), S({IN, 1}, {LOCK, 0}, {WAIT, 0, 20}, {WAIT, 0, 20}, {WAIT, 0})};
    forget();
    m_init(&machine, 2, scripts);
    timeline = m_run(&machine);
    for (unsigned began = 0; began < 3; began++) {
        /* Time 0 is then in the middle of the first wait. */
        timeline->began_before = began;
        struct monitor_stats s = stats_of();
        assert_int_equal(s.classes.len, 1);
        const struct wait_times *w = &s.classes.data[0].wait;
        assert_int_equal(w->count, 3);
        assert_int_equal(w->cut, began ? 2 : 1);
        assert_int_equal(w->total_ns, ms(50));
        assert_int_equal(w->min_ns, ms(20));
        assert_int_equal(w->max_ns, ms(20));
        assert_int_equal(w->avg_ns, ms(20));
        assert_int_equal(w->p50_ns, ms(20));
        assert_int_equal(w->p99_ns, ms(20));
        monitor_stats_release(&s);
    }
}

/*
 * Waits of 20, 20 and 10 ms follow each other. A part of the time has those that overlap it, for as
 * long as they do.
 */
static void waits_are_cut_to_the_part(void **state)
{
    const struct step *const scripts[] = {
        S({START, 1}, {SLEEP, 50}), S({IN, 1}, {LOCK, 0}, {WAIT, 0, 20}, {WAIT, 0, 20}, {WAIT, 0})};

    static const struct {
        uint64_t from, to, count, cut, before, total, most, least;
    } parts[] = {{0, 0, 3, 1, 0, 50, 20, 20},  {10, 0, 3, 2, 1, 40, 20, 20},
                 {0, 30, 2, 1, 0, 30, 20, 20}, {10, 45, 3, 2, 1, 35, 20, 20},
                 {5, 15, 1, 1, 1, 10, 10, 0},  {20, 30, 1, 1, 0, 10, 10, 0},
                 {30, 40, 1, 1, 1, 10, 10, 0}, {45, 50, 1, 1, 1, 5, 5, 0}};

    forget();
    m_init(&machine, 2, scripts);
    timeline = m_run(&machine);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        struct stats_filter f = {.from = ms(parts[i].from), .to = ms(parts[i].to)};
        struct monitor_stats s;
        assert_int_equal(monitor_stats(timeline, &f, &s), 0);
        const struct wait_times *w = &s.classes.data[0].wait;
        assert_int_equal(w->count, parts[i].count);
        assert_int_equal(w->cut, parts[i].cut);
        assert_int_equal(w->total_ns, ms(parts[i].total));
        assert_int_equal(w->max_ns, ms(parts[i].most));
        assert_int_equal(w->min_ns, ms(parts[i].least));
        assert_int_equal(s.threads.data[1].waited_ns, ms(parts[i].total));
        /* The other thread sleeps all the time. */
        assert_int_equal(s.began_before, parts[i].before + (parts[i].from != 0));
        uint64_t span = (parts[i].to ? parts[i].to : 50) - parts[i].from;
        assert_int_equal(s.threads.data[0].waited_ns, ms(span));
        monitor_stats_release(&s);
    }
}

static void program_6_ping_pong(void **state)
{
    RUN(3, S({START, 1}, {START, 2}, {JOIN, 1}, {JOIN, 2}),
        S({LOCK, 0}, {SLEEP, 4}, {NOTIFY, 0}, {WAIT, 0}, {REPEAT, 3, 50}, {UNLOCK, 0}),
        S({LOCK, 0}, {SLEEP, 4}, {NOTIFY, 0}, {WAIT, 0}, {REPEAT, 3, 49}, {SLEEP, 4}, {NOTIFY, 0},
          {UNLOCK, 0}));
    assert_int_equal(path.length, ms(400));
    assert_int_equal(on_thread(1), ms(200));
    assert_int_equal(on_thread(2), ms(200));
    unsigned changes = 0;
    for (size_t i = 1; i < path.segments.len; i++)
        changes += path.segments.data[i].thread != path.segments.data[i - 1].thread;
    assert_int_equal(changes, 99);
}

static void program_7_pipeline(void **state)
{
    RUN(4, S({START, 1}, {START, 2}, {START, 3}, {JOIN, 1}, {JOIN, 2}, {JOIN, 3}),
        S({IN, 1}, {SLEEP, 5}, {IN, 0}, {REL, 0, 1}, {REPEAT, 4, 20}),
        S({ACQ, 0, 1}, {IN, 2}, {SLEEP, 15}, {IN, 0}, {REL, 1, 1}, {REPEAT, 5, 20}),
        S({ACQ, 1, 1}, {IN, 3}, {SLEEP, 8}, {IN, 0}, {REPEAT, 4, 20}));
    assert_int_equal(path.length, ms(313));
    assert_int_equal(on_thread(2), ms(300));
    assert_int_equal(with_method("m2", 0.5), 172500);
    assert_int_equal(with_method("m1", 0.5), 310500);
}

static void program_8_notified_before(void **state)
{
    RUN(2, S({START, 1}, {SLEEP, 10}, {LOCK, 0}, {WAIT, 0, 100}, {UNLOCK, 0}),
        S({LOCK, 0}, {NOTIFY, 0}, {UNLOCK, 0}));
    assert_int_equal(path.length, ms(110));
    assert_int_equal(path.states[PATH_TIMER], ms(100));
    assert_int_equal(path.edges[TL_BY_NOTIFY], 0);
    unsigned timeouts = 0;
    for (size_t i = 0; i < timeline->n_nodes; i++) {
        timeouts += tl_node(timeline, i).kind == TL_TIMEOUT;
        if (tl_node(timeline, i).kind == TL_NOTIFY)
            assert_int_equal(tl_node(timeline, i).waker, TL_NONE);
    }
    assert_int_equal(timeouts, 1);
}

#define WAITER S({LOCK, 0}, {WAIT, 0}, {SLEEP, 10}, {UNLOCK, 0})

static void program_9_notify_all(void **state)
{
    RUN(9,
        S({START, 1}, {START, 2}, {START, 3}, {START, 4}, {START, 5}, {START, 6}, {START, 7},
          {START, 8}, {SLEEP, 50}, {LOCK, 0}, {NOTIFYALL, 0}, {UNLOCK, 0}, {JOIN, 1}, {JOIN, 2},
          {JOIN, 3}, {JOIN, 4}, {JOIN, 5}, {JOIN, 6}, {JOIN, 7}, {JOIN, 8}),
        WAITER, WAITER, WAITER, WAITER, WAITER, WAITER, WAITER, WAITER);
    assert_int_equal(path.length, ms(130));
    assert_int_equal(path.edges[TL_BY_NOTIFY_ALL], 1);
    assert_int_equal(path.edges[TL_BY_HANDOFF], 7);
    assert_string_equal(sequence(), "0 1 2 3 4 5 6 7 8");
}

static void program_10_deadlocks(void **state)
{
    RUN(6, S({START, 1}, {START, 2}, {START, 3}, {START, 4}, {START, 5}),
        S({LOCK, 1}, {SLEEP, 50}, {LOCK, 2}), S({LOCK, 2}, {SLEEP, 50}, {LOCK, 1}),
        S({LOCK, 3}, {SLEEP, 20}, {LOCK, 4}), S({LOCK, 4}, {SLEEP, 30}, {LOCK, 5}),
        S({LOCK, 5}, {SLEEP, 40}, {LOCK, 3}));
    struct deadlocks d;
    assert_int_equal(deadlocks_find(timeline, &d), 0);
    assert_int_equal(d.list.len, 2);
    assert_int_equal(timeline->deadlocks, 2);
    assert_int_equal(d.list.data[0].waits.len, 2);
    assert_int_equal(d.list.data[0].formed_ns, ms(50));
    assert_int_equal(d.list.data[1].waits.len, 3);
    assert_int_equal(d.list.data[1].formed_ns, ms(40));
    const struct tl_context *c = tl_context_of(timeline, d.list.data[0].waits.data[0]);
    assert_int_equal(c->object, machine.objects[2]);
    assert_int_equal(c->other, 2);
    deadlocks_release(&d);
}

#define FAIR                               \
    {ACQ, 0, 1}, {SLEEP, 20}, {REL, 0, 1}, \
    {                                      \
        REPEAT, 3, 10                      \
    }

static void program_11_fair_lock(void **state)
{
    RUN(3, S({REL, 0, 1}, {START, 1}, {START, 2}, {JOIN, 1}, {JOIN, 2}), S(FAIR), S(FAIR));
    assert_int_equal(path.length, ms(400));
    assert_int_equal(path.edges[TL_BY_UNPARK], 19);
    uint64_t share = lock_share(machine.syncs[0]);
    assert_in_range(share, ms(380), ms(400));
}

/*
 * A lock was free when thread 1 took it, at 0 ms, and others wait for it from 10 ms on. It has the
 * same share of the path, and the same gain, as a monitor whose owner the VM names.
 */
static void a_lock_that_was_free_is_like_a_monitor(void **state)
{
#define OWNER(take, leave) S({IN, 1}, {take, 0, 1}, {IN, 2}, {SLEEP, 50}, {leave, 0, 1}, {IN, 0})
#define COMES(take, leave) \
    S({IN, 3}, {SLEEP, 10}, {take, 0, 1}, {IN, 4}, {SLEEP, 20}, {leave, 0, 1}, {IN, 0})
#define BOTH(take, leave)                                                                       \
    RUN(4, S({REL, 0, 1}, {START, 1}, {START, 2}, {START, 3}, {JOIN, 1}, {JOIN, 2}, {JOIN, 3}), \
        OWNER(take, leave), COMES(take, leave), COMES(take, leave))
    BOTH(LOCK, UNLOCK);
    assert_int_equal(path.length, ms(90));
    uint64_t share = lock_share(machine.objects[0]);
    assert_in_range(share, ms(60), ms(80));
    uint64_t halved = with_lock(machine.objects[0], 0.5, NULL);
    assert_in_range(halved, 50000, 60000);
    BOTH(ACQ, REL);
    assert_int_equal(path.length, ms(90));
    assert_int_equal(lock_share(machine.syncs[0]), share);
    assert_int_equal(with_lock(machine.syncs[0], 0.5, NULL), halved);
}

/* Returns how many ns a thread had a lock. */
static uint64_t held_by(uint32_t thread, uint32_t object)
{
    struct holds h;
    uint64_t ns = 0;
    assert_int_equal(holds_collect(timeline, NULL, NULL, &h), 0);
    for (size_t i = 0, n = hold_count(&h, thread); i < n; i++) {
        const struct tl_hold one = hold_of(&h, thread, i).hold;
        ns += tl_hold_object(&one) == object ? one.end - one.start : 0;
    }
    holds_release(&h);
    return ns;
}

/*
 * A thread that no longer wants the lock unparks the next one in the queue, although it never had
 * the lock. That one parks once more, and the owner had the lock all the time.
 */
static void who_gives_up_a_lock_did_not_have_it(void **state)
{
    enum { OWNER, GIVES_UP, WAITS };

    forget();
    m_init(&machine, 3, (const struct step *const[]){S({END}), S({END}), S({END})});
    uint32_t lock = machine.syncs[0];
    for (int i = GIVES_UP; i <= WAITS; i++)
        m_event(&machine, i, TLE_THREAD_START, TL_NONE, -1, 0, 0);
    machine.now = 10000;
    m_event(&machine, GIVES_UP, TLE_PARK, lock, -1, 20, 0);
    machine.now = 20000;
    m_event(&machine, WAITS, TLE_PARK, lock, -1, 0, 0);
    machine.now = 30000;
    m_event(&machine, GIVES_UP, TLE_PARKED, lock, -1, 20, TLE_TIMED_OUT);
    m_event(&machine, GIVES_UP, TLE_UNPARK, TL_NONE, WAITS, 0, 0);
    m_event(&machine, WAITS, TLE_PARKED, lock, -1, 0, 0);
    m_event(&machine, WAITS, TLE_PARK, lock, -1, 0, 0);
    machine.now = 100000;
    m_event(&machine, OWNER, TLE_UNPARK, TL_NONE, WAITS, 0, 0);
    m_event(&machine, WAITS, TLE_PARKED, lock, -1, 0, 0);
    m_event(&machine, OWNER, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    machine.now = 110000;
    m_event(&machine, WAITS, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    timeline = m_run(&machine);
    assert_int_equal(held_by(OWNER, lock), ms(90));
    assert_int_equal(held_by(GIVES_UP, lock), 0);
    assert_in_range(held_by(WAITS, lock), 0, ms(10));
}

/*
 * No thread waits from 20 to 50 ms, so nothing shows which thread had the lock then: the one that
 * releases it at 80 ms is not the previous owner.
 */
static void a_lock_for_which_nobody_waits_has_no_owner(void **state)
{
    enum { OWNER, TRIES, WAITS };

    forget();
    m_init(&machine, 3, (const struct step *const[]){S({END}), S({END}), S({END})});
    uint32_t lock = machine.syncs[0];
    for (int i = TRIES; i <= WAITS; i++)
        m_event(&machine, i, TLE_THREAD_START, TL_NONE, -1, 0, 0);
    machine.now = 10000;
    m_event(&machine, TRIES, TLE_PARK, lock, -1, 10, 0);
    machine.now = 20000;
    m_event(&machine, TRIES, TLE_PARKED, lock, -1, 10, TLE_TIMED_OUT);
    machine.now = 50000;
    m_event(&machine, WAITS, TLE_PARK, lock, -1, 0, 0);
    machine.now = 80000;
    m_event(&machine, OWNER, TLE_UNPARK, TL_NONE, WAITS, 0, 0);
    m_event(&machine, WAITS, TLE_PARKED, lock, -1, 0, 0);
    m_event(&machine, WAITS, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    timeline = m_run(&machine);
    assert_int_equal(held_by(OWNER, lock), ms(30));
    struct unknown_table unknown;
    assert_int_equal(unknown_owners_find(timeline, 0, 0, &unknown), 0);
    assert_int_equal(unknown.rows.len, 1);
    assert_int_equal(unknown.rows.data[0].waits, 2);
    assert_int_equal(unknown.rows.data[0].unknown, 1);
    assert_int_equal(unknown.rows.data[0].ns, ms(10));
    assert_true(unknown.rows.data[0].lock);
    vec_release(&unknown.rows);
}

/*
 * Checks for how long a thread had a monitor, in ms, under each assumption about the ends of holds.
 */
static void check_held(uint32_t thread, uint64_t at_once, uint64_t likely, uint64_t late)
{
    uint8_t *all = malloc(timeline->n_objects);
    struct hold_list l;
    struct sections s;
    uint64_t ns[HOLD_ENDS];
    assert_non_null(all);
    memset(all, 1, timeline->n_objects);
    assert_int_equal(hold_list_init(&l, timeline, NULL, NULL), 0);
    assert_int_equal(sections_init(&s, timeline, &l, all), 0);
    sections_inside_all(&s, thread, 0, timeline->end_ns, ns);
    /* what is not proven is rounded up to a 63rd of the hold */
    assert_in_range(ns[HOLD_ENDS_AT_ONCE], ms(at_once) - ms(likely) / 63, ms(at_once));
    assert_int_equal(ns[HOLD_ENDS_LIKELY], ms(likely));
    assert_int_equal(ns[HOLD_ENDS_LATE], ms(late));
    sections_release(&s);
    hold_list_release(&l);
    free(all);
}

/*
 * Thread 1 gets a monitor at 10 ms, leaves it at 15 ms, works for 100 ms and takes it again, for
 * which there is no event, until 120 ms. Thread 2 waits for it from 117 ms on.
 */
static void a_monitor_that_was_taken_again_was_not_held_between(void **state)
{
#define AGAIN(first, second, ...)                                                                  \
    RUN(4, S({START, 2}, {START, 1}, {START, 3}, {JOIN, 1}, {JOIN, 2}, {JOIN, 3}),                 \
        S({SLEEP, 1}, {IN, 1}, {LOCK, 0}, {first, 5}, {UNLOCK, 0}, {IN, 0}, {WORK, 100}, {IN, 1},  \
          {LOCK, 0}, {second, 5}, {UNLOCK, 0}),                                                    \
        S({IN, 1}, {LOCK, 0}, {SLEEP, 10}, {UNLOCK, 0}, {IN, 2}, {SLEEP, 107}, {IN, 1}, {LOCK, 0}, \
          {UNLOCK, 0}),                                                                            \
        S(__VA_ARGS__))
    /* The owner is in the same method once more. */
    AGAIN(SLEEP, SLEEP, {END});
    check_held(1, 3, 10, 110);
    /* Nothing shows that it has ever left the monitor. */
    AGAIN(WORK, WORK, {END});
    check_held(1, 3, 110, 110);
    AGAIN(SLEEP, WORK, {END});
    check_held(1, 3, 110, 110);
    /*
     * A thread that waits in vain from 15 to 115 ms shows that the monitor was held all the time.
     */
    RUN(4, S({START, 2}, {START, 1}, {START, 3}, {JOIN, 1}, {JOIN, 2}, {JOIN, 3}),
        S({SLEEP, 1}, {IN, 1}, {LOCK, 0}, {SLEEP, 5}, {WORK, 100}, {SLEEP, 5}, {UNLOCK, 0}),
        S({IN, 1}, {LOCK, 0}, {SLEEP, 10}, {UNLOCK, 0}, {IN, 2}, {SLEEP, 107}, {IN, 1}, {LOCK, 0},
          {UNLOCK, 0}),
        S({IN, 3}, {SLEEP, 6}, {LOCK, 0}, {UNLOCK, 0}));
    check_held(1, 110, 110, 110);
    /* In between it waited for something else. */
    RUN(3, S({START, 2}, {START, 1}, {JOIN, 1}, {JOIN, 2}),
        S({SLEEP, 1}, {IN, 1}, {LOCK, 0}, {SLEEP, 5}, {UNLOCK, 0}, {IN, 2}, {SLEEP, 100}, {IN, 1},
          {LOCK, 0}, {SLEEP, 5}, {UNLOCK, 0}),
        S({IN, 1}, {LOCK, 0}, {SLEEP, 10}, {UNLOCK, 0}, {IN, 2}, {SLEEP, 107}, {IN, 1}, {LOCK, 0},
          {UNLOCK, 0}));
    check_held(1, 3, 8, 8);
}

static void program_12_latch(void **state)
{
#define WORKER(i) S({SLEEP, 10 * i}, {REL, 0, 1})
    RUN(9,
        S({START, 1}, {START, 2}, {START, 3}, {START, 4}, {START, 5}, {START, 6}, {START, 7},
          {START, 8}, {ACQ, 0, 8}, {WORK, 1}),
        WORKER(1), WORKER(2), WORKER(3), WORKER(4), WORKER(5), WORKER(6), WORKER(7), WORKER(8));
    assert_int_equal(path.length, ms(81));
    assert_string_equal(sequence(), "8 0");
    assert_int_equal(path.edges[TL_BY_UNPARK], 1);
}

static void program_13_pool(void **state)
{
    RUN(3, S({START, 1}, {START, 2}, {REL, 0, 5}, {ACQ, 1, 5}),
        S({ACQ, 0, 1}, {SLEEP, 30}, {REL, 1, 1}, {REPEAT, 3, 3}),
        S({ACQ, 0, 1}, {SLEEP, 30}, {REL, 1, 1}, {REPEAT, 3, 2}));
    assert_int_equal(path.length, ms(90));
    assert_int_equal(path.states[PATH_SLEEP], ms(90));
    RUN(2, S({START, 1}, {ACQ, 1, 1}), S({SLEEP, 40}, {SLEEP, 20}, {REL, 1, 1}));
    assert_int_equal(path.length, ms(60));
    assert_int_equal(on_thread(1), ms(60));
}

static void program_14_barrier(void **state)
{
#define PARTY(a, b, c, d)                                                                    \
    S({SLEEP, a}, {BARRIER, 0, 3}, {SLEEP, b}, {BARRIER, 0, 3}, {SLEEP, c}, {BARRIER, 0, 3}, \
      {SLEEP, d}, {BARRIER, 0, 3})
    RUN(4, S({START, 1}, {START, 2}, {START, 3}, {JOIN, 1}, {JOIN, 2}, {JOIN, 3}),
        PARTY(10, 30, 20, 40), PARTY(20, 10, 30, 10), PARTY(30, 20, 10, 10));
    assert_int_equal(path.length, ms(130));
    assert_string_equal(sequence(), "3 1 2 1");
}

static void program_15_interrupt(void **state)
{
    RUN(2, S({START, 1}, {SLEEP, 60}, {INTERRUPT, 1}, {JOIN, 1}), S({SLEEP, 10000}, {SLEEP, 20}));
    assert_int_equal(path.length, ms(80));
    assert_string_equal(sequence(), "0 1");
    assert_int_equal(path.edges[TL_BY_INTERRUPT], 1);
    RUN(2, S({START, 1}, {SLEEP, 60}, {INTERRUPT, 1}, {JOIN, 1}),
        S({LOCK, 0}, {WAIT, 0}, {SLEEP, 20}, {UNLOCK, 0}));
    assert_int_equal(path.length, ms(80));
    assert_int_equal(path.edges[TL_BY_INTERRUPT], 1);
}

static void program_16_semaphore(void **state)
{
#define THIRTY S({ACQ, 0, 1}, {SLEEP, 30}, {REL, 0, 1})
    RUN(7,
        S({REL, 0, 2}, {START, 1}, {START, 2}, {START, 3}, {START, 4}, {START, 5}, {START, 6},
          {JOIN, 1}, {JOIN, 2}, {JOIN, 3}, {JOIN, 4}, {JOIN, 5}, {JOIN, 6}),
        THIRTY, THIRTY, THIRTY, THIRTY, THIRTY, THIRTY);
    assert_int_equal(path.length, ms(90));
    assert_int_equal(path.edges[TL_BY_UNPARK], 2);
}

static void program_17_readers_and_writer(void **state)
{
#define READER(n) S({ACQ, 0, 1}, {SLEEP, n}, {REL, 0, 1})
    RUN(6, S({REL, 0, 100}, {START, 1}, {START, 2}, {START, 3}, {START, 4}, {START, 5}, {JOIN, 5}),
        READER(20), READER(40), READER(60), READER(80),
        S({ACQ, 0, 100}, {SLEEP, 30}, {REL, 0, 100}));
    assert_int_equal(path.length, ms(110));
    assert_string_equal(sequence(), "4 5");
}

static void program_18_a_hundred(void **state)
{
    static const struct step one[] = {{LOCK, 0}, {SLEEP, 5}, {UNLOCK, 0}, {END}};
    static struct step main_script[210];
    static const struct step *scripts[101] = {main_script};
    for (int i = 1; i <= 100; i++) {
        main_script[i - 1] = (struct step){START, i};
        main_script[99 + i] = (struct step){JOIN, i};
        scripts[i] = one;
    }
    run_program(101, scripts);
    assert_int_equal(path.length, ms(500));
    assert_int_equal(path.edges[TL_BY_HANDOFF], 99);
    assert_int_equal(lock_share(machine.objects[0]), ms(500));
}

/* A thread is notified after it has timed out, so the next waiter gets the notification. */
static void a_notification_passes_a_waiter_that_timed_out(void **state)
{
    RUN(4,
        S({START, 1}, {START, 2}, {SLEEP, 5}, {LOCK, 0}, {SLEEP, 20}, {NOTIFY, 0}, {UNLOCK, 0},
          {JOIN, 2}),
        S({LOCK, 0}, {WAIT, 0, 10}, {UNLOCK, 0}), S({LOCK, 0}, {WAIT, 0}, {SLEEP, 7}, {UNLOCK, 0}),
        S({WORK, 1}));
    assert_int_equal(path.length, ms(32));
    assert_string_equal(sequence(), "0 2");
}

/*
 * main waits from 10.1 to 10.4 ms for something that T1 did at 10 ms according to its record, but
 * had not completed when main arrived.
 */
static void for_one_that_is_late(const struct tl_event *waits, const struct tl_event *does,
                                 const struct tl_event *waited)
{
    forget();
    m_init(&machine, 2, (const struct step *const[]){S({END}), S({END})});
    m_event(&machine, 0, TLE_CALL_START, TL_NONE, 1, 0, 0);
    m_event(&machine, 1, TLE_THREAD_START, TL_NONE, -1, 0, 0);
    const struct tl_event *events[] = {does, waits, waited};
    const unsigned at[] = {10000, 10100, 10400};
    for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
        struct tl_event e = *events[i];
        e.time = 1000000 + at[i] * UINT64_C(1000);
        e.stack = TL_NONE;
        assert_int_equal(timeline_add(machine.b, &e), 0);
    }
    machine.now = 11000;
    m_event(&machine, 0, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    assert_int_equal(timeline_finish(machine.b, 1000000 + ms(11), &timeline), 0);
    timeline_builder_free(machine.b);
    check_all();
    assert_int_equal(path.length, ms(11));
    assert_int_equal(on_thread(1), 10400000);
}

static void who_waits_for_one_that_is_late_knows_for_whom(void **state)
{
    /* The objects that m_init creates: the first is main, then T1, then Lock0. */
    const uint32_t t1 = 1, lock = 2;
    for_one_that_is_late(
        &(struct tl_event){.kind = TLE_WAIT, .object = t1, .other = TL_NONE},
        &(struct tl_event){
            .kind = TLE_THREAD_END, .thread = 1, .object = TL_NONE, .other = TL_NONE},
        &(struct tl_event){.kind = TLE_WAITED, .object = t1, .other = TL_NONE});
    assert_int_equal(path.edges[TL_BY_JOIN], 1);
    /* A VM that makes the waiter wait once more, for the monitor of the dying thread (JDK 27). */
    for_one_that_is_late(
        &(struct tl_event){.kind = TLE_CONTENDED_ENTER, .object = t1, .other = TL_NONE},
        &(struct tl_event){
            .kind = TLE_THREAD_END, .thread = 1, .object = TL_NONE, .other = TL_NONE},
        &(struct tl_event){.kind = TLE_CONTENDED_ENTERED, .object = t1, .other = TL_NONE});
    assert_int_equal(path.edges[TL_BY_JOIN], 1);
    for_one_that_is_late(
        &(struct tl_event){.kind = TLE_PARK, .object = TL_NONE, .other = TL_NONE},
        &(struct tl_event){
            .kind = TLE_UNPARK, .thread = 1, .object = TL_NONE, .other = 0, .took_ns = 350000},
        &(struct tl_event){.kind = TLE_PARKED, .object = TL_NONE, .other = TL_NONE});
    assert_int_equal(path.edges[TL_BY_UNPARK], 1);
    for_one_that_is_late(
        &(struct tl_event){.kind = TLE_CONTENDED_ENTER, .object = lock, .other = 1},
        &(struct tl_event){.kind = TLE_WAIT, .thread = 1, .object = lock, .other = TL_NONE},
        &(struct tl_event){.kind = TLE_CONTENDED_ENTERED, .object = lock, .other = TL_NONE});
    assert_int_equal(path.edges[TL_BY_HANDOFF], 1);
}

/*
 * A waiting thread asks for the owner after the time of its event, so the answer may be a thread
 * whose own first event is later.
 */
static void an_owner_that_is_seen_before_it_starts_is_started(void **state)
{
    enum { MAIN, BLOCKED, YOUNG };

    forget();
    m_init(&machine, 3, (const struct step *const[]){S({END}), S({END}), S({END})});
    uint32_t lock = machine.objects[0];
    m_event(&machine, MAIN, TLE_CALL_START, TL_NONE, BLOCKED, 0, 0);
    m_event(&machine, BLOCKED, TLE_THREAD_START, TL_NONE, -1, 0, 0);
    machine.now = 5000;
    m_event(&machine, MAIN, TLE_CALL_START, TL_NONE, YOUNG, 0, 0);
    m_event(&machine, MAIN, TLE_PARK, TL_NONE, -1, 0, 0);
    machine.now = 6000;
    m_event(&machine, BLOCKED, TLE_CONTENDED_ENTER, lock, YOUNG, 0, 0);
    machine.now = 7000;
    m_event(&machine, YOUNG, TLE_THREAD_START, TL_NONE, -1, 0, 0);
    machine.now = 20000;
    m_event(&machine, YOUNG, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    assert_int_equal(timeline_finish(machine.b, 1000000 + ms(20), &timeline), 0);
    timeline_builder_free(machine.b);
    assert_int_equal(timeline->threads[YOUNG].parent, MAIN);
    assert_int_equal(critical_path(timeline, &PATH_OPTIONS, &path), 0);
    check_path(timeline);
    assert_int_equal(path.edges[TL_BY_START], 1);
    assert_int_equal(on_thread(MAIN), ms(5));
    assert_int_equal(on_thread(YOUNG), ms(15));
}

/*
 * JDK 27: T1 wakes up at 12 ms and waits within Object.wait for the monitor, which T2 got from main
 * without a wait of its own.
 */
static void who_waits_on_within_wait_has_handed_nothing_over(void **state)
{
    forget();
    m_init(&machine, 3, (const struct step *const[]){S({END}), S({END}), S({END})});
    uint32_t lock = machine.objects[0],
             string = (uint32_t)timeline_string(machine.b, "java.lang.Object.wait0", 22);
    uint32_t within = (uint32_t)timeline_stack(machine.b, &(struct tl_frame){.method = string}, 1);
    for (int t = 1; t <= 2; t++) {
        m_event(&machine, 0, TLE_CALL_START, TL_NONE, t, 0, 0);
        m_event(&machine, t, TLE_THREAD_START, TL_NONE, -1, 0, 0);
        m_event(&machine, t, TLE_WAIT, lock, -1, 0, 0);
    }
    machine.now = 10000;
    m_event(&machine, 0, TLE_NOTIFY_ALL, lock, -1, 0, 0);
    machine.now = 12000;
    m_event(&machine, 1, TLE_WAITED, lock, -1, 0, 0);
    machine.now = 13000;
    m_event(&machine, 2, TLE_WAITED, lock, -1, 0, 0);
    machine.now = 14000;
    machine.threads[1].stack = within;
    m_event(&machine, 1, TLE_CONTENDED_ENTER, lock, 2, 0, 0);
    machine.now = 20000;
    m_event(&machine, 1, TLE_CONTENDED_ENTERED, lock, -1, 0, 0);
    machine.now = 21000;
    m_event(&machine, 1, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    assert_int_equal(timeline_finish(machine.b, 1000000 + ms(21), &timeline), 0);
    timeline_builder_free(machine.b);
    check_all();
    assert_int_equal(path.edges[TL_BY_HANDOFF], 1);
    assert_int_equal(path.edges[TL_BY_NOTIFY_ALL], 1);
    assert_int_equal(on_thread(0), ms(12));
    assert_int_equal(on_thread(2), ms(8));
    assert_int_equal(on_thread(1), ms(1));
}

static void before_a_signal_is_what_the_program_did(void **state)
{
    enum { MAIN, WORKER, DISPATCHER, HOOK };

    forget();
    m_init(&machine, 4, (const struct step *const[]){S({END}), S({END}), S({END}), S({END})});
    struct tl_thread *dispatcher = timeline_thread_at(machine.b, DISPATCHER);
    dispatcher->flags |= TL_THREAD_SYSTEM;
    dispatcher->name = (uint32_t)timeline_string(machine.b, "Signal Dispatcher", 17);
    m_event(&machine, DISPATCHER, TLE_THREAD_START, TL_NONE, -1, 0, TLE_EXISTING);
    machine.now = 5000;
    m_event(&machine, MAIN, TLE_CALL_START, TL_NONE, WORKER, 0, 0);
    m_event(&machine, WORKER, TLE_THREAD_START, TL_NONE, -1, 0, 0);
    m_event(&machine, MAIN, TLE_PARK, TL_NONE, -1, 0, 0);
    machine.now = 20000;
    m_event(&machine, DISPATCHER, TLE_CALL_START, TL_NONE, HOOK, 0, 0);
    m_event(&machine, HOOK, TLE_THREAD_START, TL_NONE, -1, 0, 0);
    machine.now = 22000;
    m_event(&machine, HOOK, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    assert_int_equal(timeline_finish(machine.b, 1000000 + ms(23), &timeline), 0);
    timeline_builder_free(machine.b);
    assert_int_equal(critical_path(timeline, &PATH_OPTIONS, &path), 0);
    check_path(timeline);
    assert_int_equal(path.length, ms(22));
    assert_int_equal(on_thread(MAIN), ms(5));
    assert_int_equal(on_thread(WORKER), ms(15));
    assert_int_equal(on_thread(DISPATCHER), 0);
    assert_int_equal(on_thread(HOOK), ms(2));
}

static void a_moment_within_belongs_to_who_runs_then(void **state)
{
    /* T1 ends after it has woken main and before main does anything else. */
    RUN(2, S({START, 1}, {ACQ, 4, 1}, {WORK, 10}), S({WORK, 5}, {REL, 4, 1}));
    critical_path_release(&path);
    assert_int_equal(
        critical_path(timeline, &(struct path_options){.to = ms(12), .end_thread = TL_NONE}, &path),
        0);
    assert_int_equal(path.edges[TL_BY_UNPARK], 1);
    assert_int_equal(on_thread(0), ms(7));
}

static void a_pause_splits_what_runs(void **state)
{
    forget();
    m_init(&machine, 1, (const struct step *const[]){S({WORK, 10}, {SLEEP, 10}, {WORK, 10})});
    assert_int_equal(timeline_pause(machine.b, 1000000 + ms(4), 1000000 + ms(6), 0), 0);
    assert_int_equal(timeline_pause(machine.b, 1000000 + ms(12), 1000000 + ms(13), 0), 0);
    timeline = m_run(&machine);
    assert_int_equal(critical_path(timeline, &PATH_OPTIONS, &path), 0);
    check_path(timeline);
    assert_int_equal(path.states[PATH_GC], ms(2));
    assert_int_equal(path.states[PATH_RUN], ms(18));
    assert_int_equal(path.states[PATH_SLEEP], ms(10));
}

static void a_delay_is_the_end_of_what_it_was_within(void **state)
{
    forget();
    m_init(&machine, 1, (const struct step *const[]){S({WORK, 10}, {SLEEP, 10}, {WORK, 10})});
    /*
     * Half of the first interval, and all of the second one, except for the time that the recording
     * does not cover.
     */
    assert_int_equal(timeline_delay(machine.b, 0, 1000000, 1000000 + ms(10), ms(5), false), 0);
    assert_int_equal(
        timeline_delay(machine.b, 0, 1000000 + ms(20), 1000000 + ms(40), ms(20), false), 0);
    timeline = m_run(&machine);
    assert_int_equal(critical_path(timeline, &PATH_OPTIONS, &path), 0);
    check_path(timeline);
    assert_int_equal(path.states[PATH_PREEMPTED], ms(15));
    assert_int_equal(path.states[PATH_RUN], ms(5));
    assert_int_equal(path.states[PATH_SLEEP], ms(10));
    assert_int_equal(path.segments.data[0].state, PATH_RUN);
    assert_int_equal(path.segments.data[1].state, PATH_PREEMPTED);
    assert_true(path.segments.data[1].inferred);
    assert_false(path.segments.data[0].inferred);
}

/* The kernel counts each processor, and when between two readings it was is unknown. */
static void a_delay_is_throttled_as_far_as_the_container_was(void **state)
{
    forget();
    m_init(&machine, 1, (const struct step *const[]){S({WORK, 10}, {SLEEP, 10}, {WORK, 10})});
    assert_int_equal(timeline_delay(machine.b, 0, 1000000, 1000000 + ms(10), ms(5), false), 0);
    assert_int_equal(timeline_delay(machine.b, 0, 1000000 + ms(20), 1000000 + ms(30), ms(4), false),
                     0);

    /* In the order of a file with two writers. */
    const struct {
        uint64_t at, total;
    } readings[] = {{0, 7}, {8, 7 + 2}, {21, 7 + 2}, {40, 7 + 2 + 30}, {12, 7 + 2}};

    for (size_t i = 0; i < ARRAY_SIZE(readings); i++)
        assert_int_equal(
            timeline_throttled(machine.b, 1000000 + ms(readings[i].at), ms(readings[i].total)), 0);
    assert_int_equal(timeline_throttled(machine.b, 1000000 + ms(60000), ms(90000)), 0);
    timeline = m_run(&machine);
    assert_int_equal(critical_path(timeline, &PATH_OPTIONS, &path), 0);
    check_path(timeline);
    assert_int_equal(path.states[PATH_THROTTLED], ms(2 + 4));
    assert_int_equal(path.states[PATH_PREEMPTED], ms(3));
    assert_int_equal(path.states[PATH_RUN], ms(5 + 6));
    assert_int_equal(path.states[PATH_SLEEP], ms(10));
}

/*
 * A thread that waits for pages of memory does not run in the collector's pauses either. What is
 * known of one run is together.
 */
static void page_faults_leave_out_pauses(void **state)
{
    forget();
    m_init(&machine, 1, (const struct step *const[]){S({WORK, 20}, {SLEEP, 10}, {WORK, 10})});
    const uint64_t at = 1000000;
    assert_int_equal(timeline_pause(machine.b, at + ms(2), at + ms(5), 0), 0);
    assert_int_equal(timeline_pause(machine.b, at + ms(18), at + ms(22), 0), 0);
    assert_int_equal(timeline_delay(machine.b, 0, at, at + ms(20), ms(9), true), 0);
    assert_int_equal(timeline_delay(machine.b, 0, at + ms(30), at + ms(40), ms(4), true), 0);
    assert_int_equal(timeline_delay(machine.b, 0, at, at + ms(20), ms(6), false), 0);
    timeline = m_run(&machine);
    assert_int_equal(timeline->n_delays, 2);
    const struct tl_delay *d = timeline->delays;
    assert_int_equal(d[0].ns, ms(6));
    assert_int_equal(d[0].fault_ns, ms(9 - 3 - 2));
    assert_int_equal(d[1].ns, 0);
    assert_int_equal(d[1].fault_ns, ms(4));
}

/*
 * Returns the CPU time that all analyses take for a thread that notifies n times and never waits.
 */
static clock_t time_of_instants(int n)
{
    forget();
    m_init(&machine, 1, (const struct step *const[]){S({END})});
    for (machine.now = 0; machine.now < (uint64_t)n; machine.now++)
        m_event(&machine, 0, TLE_NOTIFY, 0, -1, 0, 0);
    m_event(&machine, 0, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    assert_int_equal(timeline_finish(machine.b, 1000000 + 1000 * (uint64_t)n, &timeline), 0);
    timeline_builder_free(machine.b);
    clock_t start = clock();
    check_all();
    assert_int_equal(path.length, 1000 * (uint64_t)n);
    assert_int_equal(with_method("none", 0.5), n);
    return clock() - start;
}

/*
 * Each analysis examines each event only once, so ten times as many events take ten times as long.
 * Walking back from each event would make it a hundred times.
 */
static void instants_by_the_hundred_thousand(void **state)
{
    clock_t few = time_of_instants(10000);
    assert_in_range(time_of_instants(100000), 1, 40 * few);
}

/*
 * Random programs: the path is always as long as the program, and a replay without a change changes
 * nothing.
 */
static void any_program(void **state)
{
    static struct step scripts[8][80];
    const struct step *list[8];
    for (unsigned seed = 1; seed <= (SANITIZED ? 100 : 400); seed++) {
        srandom(seed);
        int n = 2 + (int)(random() % 7);
        for (int t = 0; t < n; t++) {
            int k = 0;
            if (t == 0) {
                for (int i = 0; i < 8; i++)
                    scripts[0][k++] = (struct step){REL, 4 + i % 4, 1 + i / 4};
                for (int i = 1; i < n; i++)
                    scripts[0][k++] = (struct step){START, i};
            }
            while (k < 40) {
                int o = (int)(random() % 4), d = 1 + (int)(random() % 20);
                switch (random() % 6) {
                case 0:
                    scripts[t][k++] = (struct step){SLEEP, d};
                    break;
                case 1:
                    scripts[t][k++] = (struct step){WORK, d};
                    break;
                case 2:
                    scripts[t][k++] = (struct step){LOCK, o};
                    scripts[t][k++] = (struct step){random() % 2 ? SLEEP : WORK, d};
                    scripts[t][k++] = (struct step){random() % 2 ? NOTIFY : NOTIFYALL, o};
                    scripts[t][k++] = (struct step){UNLOCK, o};
                    break;
                case 3:
                    scripts[t][k++] = (struct step){LOCK, o};
                    scripts[t][k++] = (struct step){WAIT, o, d};
                    scripts[t][k++] = (struct step){WORK, 1};
                    scripts[t][k++] = (struct step){UNLOCK, o};
                    break;
                case 4:
                    scripts[t][k++] = (struct step){ACQ, 4 + o, 1};
                    scripts[t][k++] = (struct step){SLEEP, d};
                    scripts[t][k++] = (struct step){REL, 4 + o, 1};
                    break;
                default:
                    scripts[t][k++] = (struct step){INTERRUPT, (int)(random() % n)};
                }
            }
            if (t == 0) {
                for (int i = 1; i < n; i++)
                    scripts[0][k++] = (struct step){JOIN, i};
            }
            scripts[t][k] = (struct step){END};
            list[t] = scripts[t];
        }
        forget();
        m_init(&machine, n, list);
        timeline = m_run(&machine);
        assert_int_equal(critical_path(timeline, &PATH_OPTIONS, &path), 0);
        assert_int_equal(path.makespan, machine.now * 1000);
        check_graph(timeline);
        check_path(timeline);
        check_replay(timeline);
        check_replay_of(machine.objects[1]);
        uint64_t arbitrated, kept = with_lock(machine.objects[0], 1, &arbitrated);
        assert_int_equal(kept, machine.now);
        (void)with_lock(machine.objects[1], 0.25, &arbitrated);
    }
}

/*
 * A timeline that is loaded from an index with its holds must give the same answers as the one that
 * was saved.
 */
static void check_same_what_if(const struct timeline *t)
{
    uint32_t object = machine.objects[0];
    struct what_if w = {.lock = is_lock, .lock_arg = &object, .factor = 0.5};
    struct what_if_answer of_file, of_memory;
    assert_int_equal(what_if(t, &PATH_OPTIONS, &w, &of_file), 0);
    assert_int_equal(what_if(timeline, &PATH_OPTIONS, &w, &of_memory), 0);
    assert_memory_equal(&of_file, &of_memory, sizeof(of_file));
    assert_true(of_file.scaled_ns > 0);
}

/* Holds of objects that do not exist are ignored; holds outside their array are refused. */
static void check_damaged_holds(const char *name)
{
    uint32_t object = machine.objects[0];
    struct what_if w = {.lock = is_lock, .lock_arg = &object, .factor = 0.5};
    struct what_if_answer a;
    struct timeline *t;
    assert_int_equal(timeline_map(&t, name, 42), 0);
    off_t holds = (off_t)((const char *)t->holds - (const char *)t->mapped);
    off_t first = (off_t)((const char *)t->hold_first - (const char *)t->mapped);
    uint64_t outside = t->n_holds + 1;
    size_t n = t->n_holds;
    timeline_free(t);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    /* objects that do not exist; and numbers that are too long and at last not complete */
    static const char *const bad[] = {"\x7f", "\xff"};
    for (size_t k = 0; k < ARRAY_SIZE(bad); k++) {
        for (size_t i = 0; i < n; i++)
            assert_int_equal(pwrite(fd, bad[k], 1, holds + (off_t)i), 1);
        assert_int_equal(timeline_map(&t, name, 42), 0);
        assert_int_equal(what_if(t, &PATH_OPTIONS, &w, &a), 0);
        assert_int_equal(a.scaled_ns, 0);
        timeline_free(t);
    }
    assert_int_equal(pwrite(fd, &outside, sizeof(outside), first + (off_t)sizeof(outside)),
                     sizeof(outside));
    assert_int_equal(timeline_map(&t, name, 42), -EPROTO);
    close(fd);
}

static bool every_lock(const struct timeline *t, uint32_t object, void *arg)
{
    return true;
}

/*
 * Some analyses use nodes before their bits are checked. Whatever the bits are, a node refers to
 * nothing that does not exist, and every analysis terminates.
 */
static void check_damaged_nodes(const struct timeline *t)
{
    struct timeline damaged = *t;
    uint8_t *packed = malloc(t->n_packed);
    uint64_t *times = malloc((t->n_nodes + 1) * sizeof(*times));
    assert_true(packed && times);
    damaged.packed = packed;
    for (size_t i = 0; i < (t->n_packed - TL_PACKED_PADDING) * 8; i++) {
        memcpy(packed, t->packed, t->n_packed);
        if (i % 16 == 0) /* every number of the block at once, or one bit */
            memset(packed, i % 32 ? 0xff : (int)(i / 16), t->n_packed);
        packed[i / 8] ^= (uint8_t)(1 << i % 8);
        for (uint32_t n = 0; n < t->n_nodes; n++) {
            const struct tl_node at = tl_node(&damaged, n);
            assert_true(at.prev == TL_NONE || at.prev < n);
            assert_true(at.waker == TL_NONE || at.waker < t->n_nodes);
            assert_true(at.thread < t->n_threads && at.context < t->n_contexts);
            assert_true(at.kind < TL_KINDS && at.edge < TL_EDGES);
        }
        struct critical_path p;
        int r = critical_path(&damaged, &PATH_OPTIONS, &p);
        assert_true(r == 0 || r == -EPROTO || r == -ENOENT);
        if (r == 0)
            critical_path_release(&p);
        r = what_if_times(&damaged, &(struct what_if){.lock = every_lock, .factor = 0.5}, times);
        assert_true(r == 0 || r == -EPROTO);
    }
    free(packed);
    free(times);
}

static uint8_t *at_offset(uint8_t *file, const struct timeline *t, const void *of)
{
    return file + ((const uint8_t *)of - (const uint8_t *)t->mapped);
}

/*
 * An index in which any byte of an array differs is refused, and so are blocks that point outside
 * of it.
 */
static void check_damaged_index(const char *name)
{
    struct timeline *t, *again;
    uint8_t *file;
    size_t len;
    assert_int_equal(file_read_path(name, 1 << 20, &file, &len), 0);
    assert_int_equal(timeline_map(&t, name, 42), 0);
    int fd = open(name, O_RDWR | O_CLOEXEC);

    const struct {
        const void *at;
        bool leads_outside;
    } places[] = {{t->packed, false},
                  {t->packed + t->n_packed - 1, false},
                  {t->blocks, false},
                  {(const char *)&t->blocks[0].at + 6, true},
                  {&t->blocks[0].begin[1], true},
                  {&t->blocks[0].begin[TL_COLUMNS], true},
                  {t->shapes, true},
                  {t->contexts, false},
                  {t->threads, false},
                  {t->text, false}};

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        uint8_t *byte = at_offset(file, t, places[i].at), bad = *byte ^ 0xff;
        assert_int_equal(pwrite(fd, &bad, 1, byte - file), 1);
        assert_int_equal(timeline_map(&again, name, 42), -EPROTO);
        int r = timeline_map_unchecked(&again, name, 42);
        assert_int_equal(r, places[i].leads_outside ? -EPROTO : 0);
        if (r == 0)
            timeline_free(again);
        assert_int_equal(pwrite(fd, byte, 1, byte - file), 1);
    }
    assert_int_equal(timeline_map(&again, name, 42), 0);
    timeline_free(again);
    timeline_free(t);
    free(file);
    close(fd);
}

/* When the file has no room for the holds, they stay in memory and the index is unchanged. */
static void check_full_disk(const char *name)
{
    struct rlimit all, some;
    struct timeline *t;
    struct stat before, after;
    assert_int_equal(stat(name, &before), 0);
    assert_int_equal(timeline_map(&t, name, 42), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    some = (struct rlimit){(rlim_t)before.st_size + 8, all.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &some), 0);
    assert_int_equal(hold_list_keep(t, NULL), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_true(t->holds && t->hold_first && t->n_holds > 1);
    check_same_what_if(t);
    timeline_free(t);
    assert_int_equal(stat(name, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(timeline_map(&t, name, 42), 0);
    assert_true(!t->holds && !t->hold_first);
    timeline_free(t);
}

/* The inferred ends in the index are those of the holds themselves. */
static void check_unsure(struct timeline *t)
{
    struct hold_list l;
    uint64_t less[2], more[2];
    uint8_t *wanted = calloc(t->n_objects, 1);
    const struct tl_unsure *unsure = t->unsure;
    assert_non_null(wanted);
    assert_int_equal(hold_list_init(&l, t, NULL, NULL), 0);
    assert_true(unsure && t->n_unsure == t->n_objects && l.bytes == t->holds);
    for (size_t i = 0; i < t->n_objects; i++) {
        wanted[i] = 1;
        t->unsure = unsure;
        hold_list_unsure(&l, t, wanted, &less[0], &more[0]);
        t->unsure = NULL;
        hold_list_unsure(&l, t, wanted, &less[1], &more[1]);
        assert_int_equal(less[0], less[1]);
        assert_int_equal(more[0], more[1]);
    }
    assert_true(less[0] > 0);
    t->unsure = unsure;
    hold_list_release(&l);
    free(wanted);
}

static void an_index_reads_back(void **state)
{
    RUN(3, S({START, 1}, {START, 2}, {JOIN, 1}, {JOIN, 2}), S(OUT_AND_IN), S(OUT_AND_IN));
    char name[] = "test-timeline-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    timeline_save(timeline, name, 42);
    timeline_index_close(timeline);
    struct timeline *t;
    assert_int_equal(timeline_map(&t, name, 43), -ESTALE);
    assert_int_equal(timeline_map(&t, name, 42), 0);
    assert_int_equal(t->n_nodes, timeline->n_nodes);
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node a = tl_node(t, i), b = tl_node(timeline, i);
        assert_memory_equal(&a, &b, offsetof(struct tl_node, flags) + 1);
    }
    assert_string_equal(tl_thread_name(t, 2), "T2");
    check_full_disk(name);
    /* Results computed for the whole path are still there when the index is opened again. */
    struct critical_path p;
    struct path_shares first, again;
    assert_int_equal(critical_path(t, &PATH_OPTIONS, &p), 0);
    assert_int_equal(path_shares_of(t, &PATH_OPTIONS, &p, &first), 0);
    timeline_free(t);
    assert_int_equal(timeline_map(&t, name, 42), 0);
    assert_true(t->holds && t->n_holds > 1 && t->n_hold_first == t->n_threads + 1);
    check_unsure(t);
    check_same_what_if(t);
    check_damaged_nodes(t);
    check_damaged_index(name);
    assert_true(t->shares && t->n_shares == first.rows.len && first.rows.len > 0);
    assert_int_equal(path_shares_of(t, &PATH_OPTIONS, &p, &again), 0);
    assert_int_equal(again.rows.len, first.rows.len);
    assert_memory_equal(again.rows.data, first.rows.data,
                        first.rows.len * sizeof(*first.rows.data));
    vec_release(&first.rows);
    vec_release(&again.rows);
    critical_path_release(&p);
    timeline_free(t);
    check_damaged_holds(name);
    assert_int_equal(truncate(name, 1000), 0);
    assert_int_equal(timeline_map(&t, name, 42), -EPROTO);
    unlink(name);
}

static int after(void **state)
{
    forget();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_1_joins),
        cmocka_unit_test(program_2_start_and_join_within),
        cmocka_unit_test(program_3_one_lock),
        cmocka_unit_test(program_4_lock_and_outside),
        cmocka_unit_test(program_5_blocked_time_misleads),
        cmocka_unit_test(waits_that_are_cut_have_no_length),
        cmocka_unit_test(waits_are_cut_to_the_part),
        cmocka_unit_test(program_6_ping_pong),
        cmocka_unit_test(program_7_pipeline),
        cmocka_unit_test(program_8_notified_before),
        cmocka_unit_test(program_9_notify_all),
        cmocka_unit_test(program_10_deadlocks),
        cmocka_unit_test(program_11_fair_lock),
        cmocka_unit_test(a_lock_that_was_free_is_like_a_monitor),
        cmocka_unit_test(who_gives_up_a_lock_did_not_have_it),
        cmocka_unit_test(a_monitor_that_was_taken_again_was_not_held_between),
        cmocka_unit_test(a_lock_for_which_nobody_waits_has_no_owner),
        cmocka_unit_test(program_12_latch),
        cmocka_unit_test(program_13_pool),
        cmocka_unit_test(program_14_barrier),
        cmocka_unit_test(program_15_interrupt),
        cmocka_unit_test(program_16_semaphore),
        cmocka_unit_test(program_17_readers_and_writer),
        cmocka_unit_test(program_18_a_hundred),
        cmocka_unit_test(a_notification_passes_a_waiter_that_timed_out),
        cmocka_unit_test(who_waits_for_one_that_is_late_knows_for_whom),
        cmocka_unit_test(who_waits_on_within_wait_has_handed_nothing_over),
        cmocka_unit_test(an_owner_that_is_seen_before_it_starts_is_started),
        cmocka_unit_test(before_a_signal_is_what_the_program_did),
        cmocka_unit_test(a_moment_within_belongs_to_who_runs_then),
        cmocka_unit_test(a_pause_splits_what_runs),
        cmocka_unit_test(a_delay_is_the_end_of_what_it_was_within),
        cmocka_unit_test(a_delay_is_throttled_as_far_as_the_container_was),
        cmocka_unit_test(page_faults_leave_out_pauses),
        cmocka_unit_test(instants_by_the_hundred_thousand),
        cmocka_unit_test(any_program),
        cmocka_unit_test(an_index_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, after);
}
