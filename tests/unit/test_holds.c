/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded holds compared with what contention shows, and their replay with limited memory. */
#include "tests.h"

#include "analysis/critical_path.h"
#include "analysis/monitor_stats.h"
#include "analysis/replay.h"
#include "base/clock.h"
#include "timeline/builder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Creates a builder with this many threads. */
static struct timeline_builder *builder_of(uint64_t threads)
{
    struct timeline_builder *b;
    assert_int_equal(timeline_builder_new(&b), 0);
    for (uint64_t thread = 0; thread < threads; thread++)
        assert_int_equal(timeline_thread(b, 10 + thread), thread);
    return b;
}

static void put_of(struct timeline_builder *b, uint64_t ms, uint32_t thread,
                   enum tl_event_kind kind, uint32_t object, uint32_t owner)
{
    struct tl_event e = {.time = (1 + ms) * NS_PER_MS,
                         .thread = thread,
                         .kind = (uint8_t)kind,
                         .object = object,
                         .stack = TL_NONE,
                         .other = owner};
    assert_int_equal(timeline_add(b, &e), 0);
}

static void put(struct timeline_builder *b, uint64_t ms, uint32_t thread, enum tl_event_kind kind,
                uint32_t owner)
{
    put_of(b, ms, thread, kind, 0, owner);
}

/* A recorded hold takes precedence, although contention suggests an earlier beginning. */
static void holds_that_were_recorded_are_exact(void **state)
{
    struct timeline_builder *b = builder_of(2);
    struct timeline *t;
    struct holds h;
    struct hold_table table;
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    timeline_origin(b, NS_PER_MS, 0);
    put(b, 0, 1, TLE_CONTENDED_ENTER, 0); /* thread 0 owns it, which is not recorded yet */
    put(b, 1, 0, TLE_ACQUIRE, TL_NONE);
    put(b, 4, 0, TLE_RELEASE, TL_NONE);
    put(b, 4, 1, TLE_CONTENDED_ENTERED, TL_NONE);
    put(b, 4, 1, TLE_ACQUIRE, TL_NONE);
    put(b, 9, 1, TLE_RELEASE, TL_NONE);
    assert_int_equal(timeline_finish(b, 10 * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(holds_collect_linked(t, NULL, NULL, &h), 0);
    for (uint32_t thread = 0; thread < 2; thread++) {
        assert_int_equal(hold_count(&h, thread), 1);
        assert_int_equal(hold_of(&h, thread, 0).hold.flags,
                         thread ? HOLD_EXACT | HOLD_WOKEN : HOLD_EXACT);
    }
    /* The lock was acquired where the wait for it ended. */
    assert_int_equal(tl_node(t, h.links[hold_slot(&h, 1, 0)].acquire).kind, TL_RUN);
    assert_int_equal(hold_stats(t, &h, &(struct stats_filter){0}, &table), 0);
    assert_int_equal(table.rows.len, 1);
    assert_int_equal(table.rows.data[0].count, 2);
    assert_int_equal(table.rows.data[0].total_ns, 8 * NS_PER_MS);
    assert_int_equal(table.rows.data[0].min_ns, 3 * NS_PER_MS);
    assert_int_equal(table.rows.data[0].max_ns, 5 * NS_PER_MS);
    assert_int_equal(table.rows.data[0].objects, 1);
    assert_int_equal(table.rows.data[0].threads, 2);
    vec_release(&table.rows);
    holds_release(&h);
    timeline_free(t);
}

/* An object belongs to the wait for it, and to the segment that begins when that wait ends. */
static void objects_of_a_path_are_those_of_waits(void **state)
{
    struct timeline_builder *b = builder_of(2);
    struct timeline *t;
    struct critical_path path;
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    assert_int_equal(timeline_object(b, 78, (uint32_t)timeline_string(b, "Group", 5)), 1);
    timeline_origin(b, NS_PER_MS, 0);
    put(b, 0, 1, TLE_ACQUIRE, TL_NONE);
    put(b, 1, 0, TLE_CONTENDED_ENTER, 1);
    put(b, 4, 1, TLE_RELEASE, TL_NONE);
    put(b, 4, 0, TLE_CONTENDED_ENTERED, 1);
    put_of(b, 8, 0, TLE_NOTIFY_ALL, 1, TL_NONE);
    put_of(b, 9, 0, TLE_THREAD_END, TL_NONE, TL_NONE);
    assert_int_equal(timeline_finish(b, 10 * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(critical_path(t, &(struct path_options){.end_thread = 0}, &path), 0);
    assert_true(path.segments.len >= 2);
    for (size_t i = 0; i < path.segments.len; i++) {
        const struct path_segment *s = &path.segments.data[i];
        assert_int_equal(s->object, s->edge == TL_NO_EDGE ? TL_NONE : 0);
    }
    assert_int_equal(path.edges[TL_BY_HANDOFF], 1);
    critical_path_release(&path);
    timeline_free(t);
}

/*
 * Time in which any lock of the class is held counts once: from 1 to 8, and at 9, where another
 * lock is held at the same time.
 */
static void two_locks_of_a_class_share_once(void **state)
{
    struct timeline_builder *b = builder_of(1);
    struct timeline *t;
    struct holds h;
    struct critical_path path;
    struct path_shares shares;
    for (uint64_t object = 0; object < 3; object++)
        assert_int_equal(
            timeline_object(
                b, 77 + object,
                (uint32_t)timeline_string(b, object == 2 ? "Other" : "Lock", object == 2 ? 5 : 4)),
            object);
    timeline_origin(b, NS_PER_MS, 0);

    const struct {
        uint64_t ms;
        enum tl_event_kind kind;
        uint32_t object;
    } events[] = {{1, TLE_ACQUIRE, 0}, {2, TLE_ACQUIRE, 2}, {3, TLE_ACQUIRE, 1},
                  {5, TLE_RELEASE, 0}, {6, TLE_RELEASE, 2}, {8, TLE_RELEASE, 1},
                  {9, TLE_ACQUIRE, 0}, {10, TLE_RELEASE, 0}};

    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        put_of(b, events[i].ms, 0, events[i].kind, events[i].object, TL_NONE);
    assert_int_equal(timeline_finish(b, 13 * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(holds_collect(t, NULL, NULL, &h), 0);
    assert_int_equal(hold_count(&h, 0), 4);
    assert_int_equal(critical_path(t, &(struct path_options){.end_thread = TL_NONE}, &path), 0);
    assert_int_equal(path_lock_shares(t, &path, &h, &shares), 0);
    assert_int_equal(shares.rows.len, 2);
    assert_int_equal(shares.rows.data[0].ns, 8 * NS_PER_MS);
    assert_int_equal(shares.rows.data[0].holds_on_path, 3);
    assert_int_equal(shares.rows.data[1].ns, 4 * NS_PER_MS);
    vec_release(&shares.rows);
    critical_path_release(&path);
    holds_release(&h);
    timeline_free(t);
}

/*
 * Half a million nodes of three threads that take a lock from each other. The third was unparked
 * before, and parks in round `parks`.
 */
static struct timeline *contention(unsigned rounds, unsigned parks)
{
    struct timeline_builder *b = builder_of(3);
    struct timeline *t;
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    timeline_origin(b, NS_PER_MS, 0);
    put_of(b, 0, 0, TLE_UNPARK, TL_NONE, 2);
    for (unsigned i = 1; i < rounds; i++) {
        put(b, 3 * i, i % 3, TLE_CONTENDED_ENTER, (i + 1) % 3);
        put(b, 3 * i + 1, i % 3, TLE_CONTENDED_ENTERED, (i + 1) % 3);
        if (i == parks)
            put_of(b, 3 * i + 1, 2, TLE_PARK, TL_NONE, TL_NONE);
        if (i == parks)
            put_of(b, 3 * i + 2, 2, TLE_PARKED, TL_NONE, TL_NONE);
    }
    assert_int_equal(timeline_finish(b, (1 + 3 * rounds) * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    return t;
}

static bool any_lock(const struct timeline *t, uint32_t object, void *arg)
{
    return true;
}

/*
 * Replays with a ring of this many times. The result about two moments and the ends of the threads
 * must be the same as with all times.
 */
static int replay_in(const struct timeline *t, size_t n_times)
{
    const struct what_if w = {.lock = any_lock, .factor = 0.5};
    const uint64_t from = t->end_ns / 3, to = t->end_ns / 2;
    uint64_t *all = malloc((t->n_nodes + 1) * sizeof(*all)),
             *ring = malloc(n_times * (1 + KEPT_MORE) * sizeof(*ring));
    uint64_t at_from[3] = {0}, at_to[3] = {0};
    struct scaled what;
    struct replay r;
    struct replay_kept k;
    assert_non_null(all);
    assert_non_null(ring);
    assert_int_equal(what_if_times(t, &w, all), 0);
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node n = tl_node(t, i);
        if (n.time <= from)
            at_from[n.thread] = all[i] + (from - n.time);
        if (n.time <= to)
            at_to[n.thread] = all[i] + (to - n.time);
    }
    assert_int_equal(scaled_init(&what, t, &w), 0);
    assert_int_equal(replay_init(&r, t, &what, w.factor, HOLD_ENDS_LIKELY), 0);
    assert_int_equal(replay_kept_begin(&k, t, &r, 1, ring, n_times, from, to), 0);
    int result = replay_kept_end(&k);
    for (uint32_t i = 0; result == 0 && i < 3; i++) {
        assert_int_equal(replay_kept_moment(&k, 0, KEPT_FROM, i), at_from[i]);
        assert_int_equal(replay_kept_moment(&k, 0, KEPT_TO, i), at_to[i]);
        assert_int_equal(replay_kept_last(&k, 0, i), all[t->threads[i].last]);
        assert_true(replay_kept_last(&k, 0, i) < tl_node(t, t->threads[i].last).time);
    }
    replay_kept_release(&k);
    replay_release(&r);
    scaled_release(&what);
    free(all);
    free(ring);
    return result;
}

static void a_replay_needs_few_times(void **state)
{
    struct timeline *t = contention(200000, 20000);
    assert_true(t->n_nodes > 1 << 19);
    assert_int_equal(replay_in(t, 1 << 18), 0);
    timeline_free(t);
    /* continues through an unpark that is not in the ring any more */
    t = contention(200000, 150000);
    assert_int_equal(replay_in(t, 1 << 18), -ERANGE);
    assert_int_equal(replay_in(t, t->n_nodes + 1), 0);
    timeline_free(t);
}

static bool is_number(const struct timeline *t, uint32_t object, void *arg)
{
    return object == *(uint32_t *)arg;
}

/*
 * HOLDER has LOCK until 10 ms, OTHER until 12 ms, then CALLER, who requests it at 9 ms, from a
 * section of BEFORE that begins at 1 ms. CALLER may call notifyAll at 13 ms in the method that took
 * the lock, and is in that method again at 900 ms, but was not in it all the time.
 */
static void held_by_caller(bool notifies, uint64_t end_ms)
{
    enum { CALLER, OTHER, HOLDER, LOCK = 0, BEFORE };

    struct timeline_builder *b = builder_of(3);
    struct timeline *t;
    struct holds h;
    for (uint64_t object = 0; object < 2; object++)
        assert_int_equal(timeline_object(b, 77 + object,
                                         (uint32_t)timeline_string(b, object ? "Before" : "Lock",
                                                                   object ? 6 : 4)),
                         object);
    struct tl_frame frames[] = {
        {.method = (uint32_t)timeline_string(b, "java.lang.Object.notifyAll", 26)},
        {.method = (uint32_t)timeline_string(b, "Table.lock", 10)}};
    uint32_t calls = (uint32_t)timeline_stack(b, frames, 2),
             takes = (uint32_t)timeline_stack(b, frames + 1, 1);
    timeline_origin(b, NS_PER_MS, 0);

    const struct {
        uint64_t ms;
        uint32_t thread;
        enum tl_event_kind kind;
        uint32_t object, stack, owner;
    } events[] = {
        {0, HOLDER, TLE_THREAD_START, TL_NONE, TL_NONE, TL_NONE},
        {0, CALLER, TLE_THREAD_START, TL_NONE, TL_NONE, TL_NONE},
        {0, OTHER, TLE_THREAD_START, TL_NONE, TL_NONE, TL_NONE},
        {1, CALLER, TLE_ACQUIRE, BEFORE, TL_NONE, TL_NONE},
        {5, OTHER, TLE_CONTENDED_ENTER, LOCK, takes, HOLDER},
        {9, CALLER, TLE_RELEASE, BEFORE, TL_NONE, TL_NONE},
        {9, CALLER, TLE_CONTENDED_ENTER, LOCK, takes, HOLDER},
        {10, OTHER, TLE_CONTENDED_ENTERED, LOCK, TL_NONE, TL_NONE},
        {12, CALLER, TLE_CONTENDED_ENTERED, LOCK, TL_NONE, OTHER},
        {13, CALLER, TLE_NOTIFY_ALL, LOCK, calls, TL_NONE},
        {900, CALLER, TLE_CONTENDED_ENTER, LOCK, takes, OTHER},
        {950, CALLER, TLE_CONTENDED_ENTERED, LOCK, TL_NONE, OTHER},
        {951, OTHER, TLE_THREAD_END, TL_NONE, TL_NONE, TL_NONE},
        {960, CALLER, TLE_THREAD_END, TL_NONE, TL_NONE, TL_NONE},
        {960, HOLDER, TLE_THREAD_END, TL_NONE, TL_NONE, TL_NONE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
        if (events[i].kind == TLE_NOTIFY_ALL && !notifies)
            continue;
        struct tl_event e = {.time = (1 + events[i].ms) * NS_PER_MS,
                             .thread = events[i].thread,
                             .kind = (uint8_t)events[i].kind,
                             .object = events[i].object,
                             .stack = events[i].stack,
                             .other = events[i].owner};
        assert_int_equal(timeline_add(b, &e), 0);
    }
    assert_int_equal(timeline_finish(b, 961 * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    uint32_t number = LOCK;
    assert_int_equal(holds_collect(t, is_number, &number, &h), 0);
    assert_int_equal(hold_of(&h, CALLER, 0).hold.start, 12 * NS_PER_MS);
    assert_int_equal(hold_of(&h, CALLER, 0).hold.end, end_ms * NS_PER_MS);
    holds_release(&h);
    /*
     * Without that section CALLER comes first. It then holds the lock for a millisecond, not until
     * its next event.
     */
    struct what_if_answer a;
    struct what_if w = {.lock = is_number, .lock_arg = &number, .factor = 0};
    number = BEFORE;
    assert_int_equal(what_if(t, &(struct path_options){.end_thread = TL_NONE}, &w, &a), 0);
    assert_int_equal(a.before, 960 * NS_PER_MS);
    assert_in_range(a.arbitrated, 940 * NS_PER_MS, 960 * NS_PER_MS);
    timeline_free(t);
}

static void a_lock_is_not_held_to_the_next_event(void **state)
{
    held_by_caller(true, 13);
    held_by_caller(false, 14); /* as long as OTHER held it */
}

/*
 * FIRST holds LOCK for 10 ms. SECOND requests it at 5 ms, gets it 3 ms after its release, and holds
 * it for 2 ms. Without the sections no thread waits: SECOND continues at 5 ms, and FIRST, which
 * then runs for 10 ms, need not wake it. (Only the simulation can show that.)
 */
static void who_does_not_wait_is_not_woken(void **state)
{
    enum { FIRST, SECOND, LOCK = 0 };

    static const struct {
        uint64_t ms;
        uint32_t thread;
        enum tl_event_kind kind;
    } events[] = {{0, FIRST, TLE_THREAD_START}, {0, SECOND, TLE_THREAD_START},
                  {0, FIRST, TLE_ACQUIRE},      {5, SECOND, TLE_CONTENDED_ENTER},
                  {10, FIRST, TLE_RELEASE},     {13, SECOND, TLE_CONTENDED_ENTERED},
                  {13, SECOND, TLE_ACQUIRE},    {15, SECOND, TLE_RELEASE},
                  {15, FIRST, TLE_NOTIFY},      {16, SECOND, TLE_THREAD_END},
                  {20, FIRST, TLE_THREAD_END}};

    struct timeline_builder *b = builder_of(2);
    struct timeline *t;
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), LOCK);
    timeline_origin(b, NS_PER_MS, 0);
    for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
        bool starts = events[i].kind == TLE_THREAD_START || events[i].kind == TLE_THREAD_END;
        put_of(b, events[i].ms, events[i].thread, events[i].kind, starts ? TL_NONE : LOCK, TL_NONE);
    }
    assert_int_equal(timeline_finish(b, 21 * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    struct what_if_answer a;
    struct what_if w = {.lock = any_lock, .factor = 0};
    /* In ms; at most the 3 ms that waking SECOND took. */
    for (uint64_t wake = 0; wake < 5; wake++) {
        t->wake_ns = wake * NS_PER_MS;
        assert_int_equal(what_if(t, &(struct path_options){.end_thread = TL_NONE}, &w, &a), 0);
        assert_int_equal(a.before, 20 * NS_PER_MS);
        assert_int_equal(a.kept, (10 - MIN(wake, 3U)) * NS_PER_MS);
        assert_int_equal(a.arbitrated, a.kept);
        assert_int_equal(a.answer, a.kept);
    }
    timeline_free(t);
}

/*
 * FIRST holds LONG for 10 ms and then FREE for 5 ms; SECOND holds FREE from 2 to 7 ms. With LONG
 * scaled to 3 ms, FIRST requests FREE at 3 ms and holds it from 7 to 12 ms. If both held it at the
 * same time in the recording, they are readers and do not wait for each other: FIRST then holds it
 * until 8 ms.
 */
static void a_lock_that_was_free_is_waited_for(void **state)
{
    enum { FIRST, SECOND, LONG = 0, FREE };

    static const struct {
        uint64_t ms;
        uint32_t thread;
        enum tl_event_kind kind;
        uint32_t object;
    } events[] = {{0, FIRST, TLE_THREAD_START, TL_NONE}, {0, SECOND, TLE_THREAD_START, TL_NONE},
                  {0, FIRST, TLE_ACQUIRE, LONG},         {2, SECOND, TLE_ACQUIRE, FREE},
                  {7, SECOND, TLE_RELEASE, FREE},        {8, SECOND, TLE_THREAD_END, TL_NONE},
                  {10, FIRST, TLE_RELEASE, LONG},        {10, FIRST, TLE_ACQUIRE, FREE},
                  {15, FIRST, TLE_RELEASE, FREE},        {15, FIRST, TLE_THREAD_END, TL_NONE}};

    for (int readers = 0; readers < 2; readers++) {
        struct timeline_builder *b = builder_of(4);
        struct timeline *t;
        assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Long", 4)), LONG);
        assert_int_equal(timeline_object(b, 78, (uint32_t)timeline_string(b, "Free", 4)), FREE);
        timeline_origin(b, NS_PER_MS, 0);
        for (uint32_t i = 0; i < 4; i++) { /* two others, one after the other or at the same time */
            bool release = readers ? i >= 2 : i % 2;
            put_of(b, i, 2 + (readers ? i % 2 : i / 2), release ? TLE_RELEASE : TLE_ACQUIRE, FREE,
                   TL_NONE);
        }
        for (size_t i = 0; i < ARRAY_SIZE(events); i++)
            put_of(b, 4 + events[i].ms, events[i].thread, events[i].kind, events[i].object,
                   TL_NONE);
        assert_int_equal(timeline_finish(b, 20 * NS_PER_MS, &t), 0);
        timeline_builder_free(b);
        struct what_if_answer a;
        uint32_t number = LONG;
        struct what_if w = {.lock = is_number, .lock_arg = &number, .factor = 0.3};
        assert_int_equal(
            what_if(t, &(struct path_options){.from = 4 * NS_PER_MS, .end_thread = TL_NONE}, &w,
                    &a),
            0);
        assert_int_equal(a.before, 15 * NS_PER_MS);
        assert_int_equal(a.kept, 8 * NS_PER_MS);
        assert_int_equal(a.arbitrated, (readers ? 8 : 12) * NS_PER_MS);
        timeline_free(t);
    }
}

/*
 * A thread that notifies 10,000 times at random intervals of 1 to 100 ms, and waits for an hour
 * once, in the middle.
 */
static void pieces_say_how_runs_differ(void **state)
{
    enum { PIECES = 10000 };

    struct timeline_builder *b = builder_of(1);
    struct timeline *t;
    struct critical_path path;
    uint64_t now = 0, hour = UINT64_C(3600000);
    double spread, mean = 50.5, squares = 0;
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    timeline_origin(b, NS_PER_MS, 0);
    put_of(b, now, 0, TLE_THREAD_START, TL_NONE, TL_NONE);
    srandom(1);
    for (unsigned i = 0; i < PIECES; i++) {
        uint64_t ms = 1 + (uint64_t)random() % 100;
        squares += ((double)ms - mean) * ((double)ms - mean);
        put_of(b, now += ms, 0, TLE_NOTIFY, 0, TL_NONE);
        if (i != PIECES / 2)
            continue;
        put_of(b, now, 0, TLE_SLEEP, TL_NONE, TL_NONE);
        put_of(b, now += hour, 0, TLE_SLEPT, TL_NONE, TL_NONE);
    }
    put_of(b, now, 0, TLE_THREAD_END, TL_NONE, TL_NONE);
    assert_int_equal(timeline_finish(b, (2 + now) * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(critical_path(t, &(struct path_options){.end_thread = TL_NONE}, &path), 0);
    assert_int_equal(path_spread(t, &path, &spread), 0);
    /* The spread of a sum of that many independent values. */
    double expected = sqrt(squares) * NS_PER_MS;
    assert_true(spread > 0.7 * expected && spread < 1.4 * expected);

    struct what_if_answer a;
    struct what_if w = {.lock = any_lock, .factor = 1};
    assert_int_equal(what_if(t, &(struct path_options){.end_thread = TL_NONE}, &w, &a), 0);
    assert_int_equal(a.answer, a.before);
    assert_in_range(a.spread, (uint64_t)spread - 1, (uint64_t)spread + 1);
    assert_in_range(a.high - a.answer, 2.5 * spread, 2.7 * spread);
    assert_in_range(a.answer - a.low, 2.5 * spread, 2.7 * spread);
    critical_path_release(&path);
    timeline_free(t);
}

/*
 * Every second span of 10 ms has a pause of 4 ms. A path through a span without a pause must show
 * the same spread, and so must a path through half of the recording.
 */
static void what_is_random_is_asked_of_the_whole_recording(void **state)
{
    struct timeline_builder *b = builder_of(1);
    struct timeline *t;
    timeline_origin(b, NS_PER_MS, 0);
    uint32_t name = (uint32_t)timeline_string(b, "Pause", 5);
    put_of(b, 0, 0, TLE_THREAD_START, TL_NONE, TL_NONE);
    for (uint64_t ms = 13; ms < 200; ms += 20)
        assert_int_equal(timeline_pause(b, ms * NS_PER_MS, (ms + 4) * NS_PER_MS, name), 0);
    put_of(b, 200, 0, TLE_THREAD_END, TL_NONE, TL_NONE);
    assert_int_equal(timeline_finish(b, 201 * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    for (uint64_t to = 10; to <= 100; to += 90) {
        struct critical_path path;
        double spread;
        assert_int_equal(
            critical_path(t, &(struct path_options){.to = to * NS_PER_MS, .end_thread = TL_NONE},
                          &path),
            0);
        assert_int_equal(path.states[PATH_GC], to == 10 ? 0 : 5 * 4 * NS_PER_MS);
        assert_int_equal(path_spread(t, &path, &spread), 0);
        assert_in_range(spread, 4.1 * NS_PER_MS * (to == 10 ? 1 : 3),
                        4.3 * NS_PER_MS * (to == 10 ? 1 : 3.2));
        critical_path_release(&path);
    }
    timeline_free(t);
}

/*
 * Two threads hand LOCK over to each other, which takes 1 to 4 ms: each hand-over may take 2 or 4
 * ms as well as 3.
 */
static void hand_overs_may_take_longer(void **state)
{
    enum { ROUNDS = 40, HELD = 5 };

    struct timeline_builder *b = builder_of(2);
    struct timeline *t;
    uint64_t now = 0;
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    timeline_origin(b, NS_PER_MS, 0);
    for (uint32_t thread = 0; thread < 2; thread++)
        put_of(b, 0, thread, TLE_THREAD_START, TL_NONE, TL_NONE);
    put(b, 0, 0, TLE_ACQUIRE, TL_NONE);
    put(b, 0, 1, TLE_CONTENDED_ENTER, 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t has = i % 2, comes = 1 - has;
        put(b, now += HELD, has, TLE_RELEASE, TL_NONE);
        if (i + 1 < ROUNDS)
            put(b, now, has, TLE_CONTENDED_ENTER, comes);
        else
            put_of(b, now, has, TLE_THREAD_END, TL_NONE, TL_NONE);
        now += 1 + i % 4;
        put(b, now, comes, TLE_CONTENDED_ENTERED, TL_NONE);
        put(b, now, comes, TLE_ACQUIRE, TL_NONE);
    }
    put(b, now += HELD, 0, TLE_RELEASE, TL_NONE);
    put_of(b, now, 0, TLE_THREAD_END, TL_NONE, TL_NONE);
    assert_int_equal(timeline_finish(b, (2 + now) * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    struct what_if_answer a;
    struct what_if w = {.lock = any_lock, .factor = 1};
    assert_int_equal(what_if(t, &(struct path_options){.end_thread = TL_NONE}, &w, &a), 0);
    assert_int_equal(a.before, now * NS_PER_MS);
    assert_int_equal(a.answer, a.before);
    uint64_t around = (uint64_t)(1.833 * sqrt(2) * (double)a.spread);
    assert_int_equal(a.answer - a.low - around, ROUNDS * NS_PER_MS);
    assert_int_equal(a.high - a.answer - around, ROUNDS * NS_PER_MS);
    timeline_free(t);
}

/*
 * A thread that waits for a lock has left it, even if its new owner is unknown. Three short holds
 * with sleeps in between are therefore not one long hold, whose shortening would make the program
 * faster.
 */
static void who_waits_for_a_lock_has_left_it(void **state)
{
    enum { ROUNDS = 3, ROUND_MS = 400 };

    struct timeline_builder *b = builder_of(1);
    struct timeline *t;
    struct holds h;
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    timeline_origin(b, NS_PER_MS, 0);
    put_of(b, 0, 0, TLE_THREAD_START, TL_NONE, TL_NONE);
    for (uint64_t now = 0; now < ROUNDS * ROUND_MS; now += ROUND_MS) {
        put(b, now + 20, 0, TLE_CONTENDED_ENTER, TL_NONE);
        put(b, now + 100, 0, TLE_CONTENDED_ENTERED, TL_NONE);
        put_of(b, now + 100, 0, TLE_SLEEP, TL_NONE, TL_NONE);
        put_of(b, now + ROUND_MS, 0, TLE_SLEPT, TL_NONE, TL_NONE);
    }
    put_of(b, ROUNDS * ROUND_MS, 0, TLE_THREAD_END, TL_NONE, TL_NONE);
    assert_int_equal(timeline_finish(b, (1 + ROUNDS * ROUND_MS) * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(holds_collect(t, NULL, NULL, &h), 0);
    assert_int_equal(hold_count(&h, 0), ROUNDS);
    assert_true(hold_of(&h, 0, 0).hold.flags & HOLD_END_INFERRED);
    const struct hold_read first = hold_of(&h, 0, 0);
    assert_int_equal(hold_latest(first.hold.start, first.hold.end, first.side.unsure_us),
                     (ROUND_MS + 20) * NS_PER_MS);
    holds_release(&h);
    struct what_if_answer a;
    struct what_if w = {.lock = any_lock, .factor = 0.5};
    assert_int_equal(what_if(t, &(struct path_options){.end_thread = TL_NONE}, &w, &a), 0);
    assert_int_equal(a.before, ROUNDS * ROUND_MS * NS_PER_MS);
    assert_int_equal(a.high, a.before); /* what they would take if they were left at once */
    timeline_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_not_held_to_the_next_event),
        cmocka_unit_test(who_does_not_wait_is_not_woken),
        cmocka_unit_test(a_lock_that_was_free_is_waited_for),
        cmocka_unit_test(pieces_say_how_runs_differ),
        cmocka_unit_test(what_is_random_is_asked_of_the_whole_recording),
        cmocka_unit_test(hand_overs_may_take_longer),
        cmocka_unit_test(who_waits_for_a_lock_has_left_it),
        cmocka_unit_test(holds_that_were_recorded_are_exact),
        cmocka_unit_test(objects_of_a_path_are_those_of_waits),
        cmocka_unit_test(two_locks_of_a_class_share_once),
        cmocka_unit_test(a_replay_needs_few_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
