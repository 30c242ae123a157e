/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that are created in the index file, and what happens when the file cannot grow. */
#include "tests.h"

#include "analysis/critical_path.h"
#include "analysis/unknown_owners.h"
#include "base/clock.h"
#include "timeline/builder.h"
#include "timeline/index.h"
#include "timeline/pack.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANY = SANITIZED ? 2100000 : 3000000 }; /* an index has 2,000,000 at least */

/* Creates a timeline of a thread that notifies many times, in a file or (NULL) in memory. */
static struct timeline *notifies(const char *path)
{
    struct timeline_builder *b;
    struct timeline *t;
    assert_int_equal(timeline_builder_new(&b), 0);
    if (path)
        assert_int_equal(timeline_nodes_in(b, path), 0);
    assert_int_equal(timeline_thread(b, 10), 0);
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    timeline_origin(b, NS_PER_MS, 0);
    for (uint64_t i = 1; i < MANY; i++) {
        struct tl_event e = {
            .time = NS_PER_MS + i * 700, .kind = TLE_NOTIFY, .stack = TL_NONE, .other = TL_NONE};
        assert_int_equal(timeline_add(b, &e), 0);
    }
    assert_int_equal(timeline_finish(b, NS_PER_MS + MANY * UINT64_C(700), &t), 0);
    timeline_builder_free(b);
    assert_int_equal(t->n_nodes, MANY);
    return t;
}

static size_t files_in(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void same(const struct timeline *a, const struct timeline *b)
{
    assert_int_equal(a->n_nodes, b->n_nodes);
    assert_int_equal(a->n_packed, b->n_packed);
    assert_memory_equal(a->packed, b->packed, a->n_packed);
    assert_int_equal(a->n_blocks, b->n_blocks);
    assert_memory_equal(a->blocks, b->blocks, a->n_blocks * sizeof(*a->blocks));
}

static void nodes_lie_where_the_index_has_them(void **state)
{
    char folder[] = "test-nodes-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.timeline", folder);
    struct timeline *memory = notifies(NULL), *file = notifies(path), *mapped;
    same(file, memory);
    assert_non_null(file->packed_file);
    assert_null(memory->packed_file);
    timeline_save(file, path, 42);
    timeline_free(file);
    assert_int_equal(timeline_map(&mapped, path, 42), 0);
    same(mapped, memory);
    timeline_free(mapped);
    assert_int_equal(unlink(path), 0);
    /*
     * An unsaved timeline must never have a visible file, which a killed process would leave
     * behind.
     */
    file = notifies(path);
    assert_int_equal(files_in(folder), 0);
    timeline_free(file);
    assert_int_equal(files_in(folder), 0);
    timeline_free(memory);
    rmdir(folder);
}

static void a_full_disk_is_no_end(void **state)
{
    char folder[] = "test-nodes-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.timeline", folder);
    struct rlimit all, some;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    /* Less than the nodes need. */
    some = (struct rlimit){MIN((rlim_t)MANY * 2, all.rlim_max), all.rlim_max};
    struct timeline *memory = notifies(NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &some), 0);
    struct timeline *file = notifies(path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    same(file, memory);
    assert_null(file->packed_file);
    assert_int_equal(files_in(folder), 0);
    timeline_free(file);
    file = notifies("/tmp/no/such/folder/x.timeline");
    same(file, memory);
    timeline_free(file);
    timeline_free(memory);
    rmdir(folder);
}

enum { EVENTS = 200000, THREADS = 64, LOCKS = 200, PLACES = 500 };

static uint32_t chance(uint32_t n)
{
    static uint64_t seed = 88172645463325252u;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static void add(struct timeline_builder *b, uint64_t time, enum tl_event_kind kind, uint32_t thread,
                uint32_t object, uint32_t stack, uint32_t other)
{
    struct tl_event e = {.time = time,
                         .thread = thread,
                         .kind = (uint8_t)kind,
                         .object = object,
                         .stack = stack,
                         .other = other};
    assert_int_equal(timeline_add(b, &e), 0);
}

/*
 * Threads of a busy server: they contend for locks at places in the program, and of every ten
 * events two are parks and two are unparks.
 */
static struct timeline *server(void)
{
    struct timeline_builder *b;
    struct timeline *t;
    assert_int_equal(timeline_builder_new(&b), 0);
    uint32_t lock = (uint32_t)timeline_string(b, "Lock", 4), owner[LOCKS] = {0};
    for (uint64_t i = 0; i < THREADS; i++)
        assert_true(timeline_thread(b, i + 1) >= 0);
    for (uint64_t i = 0; i < LOCKS; i++)
        assert_true(timeline_object(b, i, lock) >= 0);
    for (uint32_t i = 0; i < PLACES; i++)
        assert_true(timeline_stack(b, &(struct tl_frame){lock, i}, 1) >= 0);
    uint64_t now = 1;
    for (size_t i = 0; i < EVENTS; now += 500 + chance(1000)) {
        uint32_t thread = chance(THREADS), object = chance(LOCKS);
        bool parks = chance(8) >= 6;
        uint32_t stack = ((parks ? thread : object) * 3 + chance(3)) % PLACES;
        uint32_t other = parks ? (thread + 1) % THREADS : owner[object];
        if (parks) {
            add(b, now, TLE_PARK, thread, object, stack, TL_NONE);
            add(b, now + 100, TLE_UNPARK, other, TL_NONE, stack, thread);
            add(b, now + 200, TLE_PARKED, thread, object, TL_NONE, TL_NONE);
        } else if (other != thread) {
            add(b, now, TLE_CONTENDED_ENTER, thread, object, stack, other);
            add(b, now + 200, TLE_CONTENDED_ENTERED, thread, object, TL_NONE, TL_NONE);
            owner[object] = thread;
        }
        i += parks ? 2 : other != thread;
    }
    assert_int_equal(timeline_finish(b, now, &t), 0);
    timeline_builder_free(b);
    return t;
}

/*
 * Threads that wait for each other keep their locks, although the recording's end ends the holds.
 */
static void deadlock_holds_to_the_end(void **state)
{
    struct timeline_builder *b;
    struct timeline *t;
    assert_int_equal(timeline_builder_new(&b), 0);
    uint32_t lock = (uint32_t)timeline_string(b, "Lock", 4), deadlocks = 0;
    for (uint64_t i = 0; i < 2; i++)
        assert_true(timeline_thread(b, i + 1) >= 0 && timeline_object(b, i, lock) >= 0);
    add(b, 10, TLE_ACQUIRE, 0, 0, TL_NONE, TL_NONE);
    add(b, 11, TLE_ACQUIRE, 1, 1, TL_NONE, TL_NONE);
    add(b, 20, TLE_CONTENDED_ENTER, 0, 1, TL_NONE, 1);
    add(b, 30, TLE_CONTENDED_ENTER, 1, 0, TL_NONE, 0);
    add(b, 90, TLE_RELEASE, 0, 0, TL_NONE, TL_NONE);
    add(b, 90, TLE_RELEASE, 1, 1, TL_NONE, TL_NONE);
    assert_int_equal(timeline_finish(b, 90, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(t->deadlocks, 1);
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node n = tl_node(t, i);
        assert_int_not_equal(n.kind, TL_RELEASE);
        deadlocks += n.kind == TL_DEADLOCK;
        if (n.kind == TL_DEADLOCK)
            assert_int_equal(n.time + t->origin_ns, 30);
    }
    assert_int_equal(deadlocks, 2);
    timeline_free(t);
}

/*
 * Events that refer to nodes packed long ago: a permit that is used at last, and threads that have
 * waited for each other from the beginning, whose deadlock is inserted there at the end.
 */
static void old_nodes_change(void **state)
{
    enum { NOISE = 300000 };

    struct timeline_builder *b;
    struct timeline *t;
    assert_int_equal(timeline_builder_new(&b), 0);
    uint32_t lock = (uint32_t)timeline_string(b, "Lock", 4), unparks = TL_NONE, deadlocks = 0;
    for (uint64_t i = 0; i < 4; i++)
        assert_true(timeline_thread(b, i + 1) >= 0 && timeline_object(b, i, lock) >= 0);
    add(b, 10, TLE_UNPARK, 3, TL_NONE, TL_NONE, 1);
    add(b, 20, TLE_CONTENDED_ENTER, 0, 0, TL_NONE, 2);
    add(b, 30, TLE_CONTENDED_ENTER, 2, 2, TL_NONE, 0);
    for (uint64_t i = 0; i < NOISE; i++)
        add(b, 40 + i, TLE_NOTIFY, 3, 3, TL_NONE, TL_NONE);
    add(b, 50 + NOISE, TLE_PARK, 1, TL_NONE, TL_NONE, TL_NONE);
    add(b, 60 + NOISE, TLE_PARKED, 1, TL_NONE, TL_NONE, TL_NONE);
    assert_int_equal(timeline_finish(b, 70 + NOISE, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(t->deadlocks, 1);
    uint32_t last[4] = {TL_NONE, TL_NONE, TL_NONE, TL_NONE};
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node n = tl_node(t, i);
        assert_true(i == 0 || n.time >= tl_node(t, i - 1).time);
        assert_int_equal(n.prev, last[n.thread]);
        last[n.thread] = i;
        unparks = n.kind == TL_UNPARK ? i : unparks;
        deadlocks += n.kind == TL_DEADLOCK;
        assert_int_equal(n.time + t->origin_ns, n.kind == TL_DEADLOCK ? 30 : n.time + 10);
    }
    assert_int_equal(deadlocks, 2);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(t->threads[i].last, last[i]);
    const struct tl_node runs = tl_node(t, t->threads[1].last), permit = tl_node(t, unparks);
    assert_int_equal(runs.edge, TL_BY_UNPARK);
    assert_int_equal(runs.waker, unparks);
    assert_int_equal(permit.waker, t->threads[1].last);
    timeline_free(t);
}

/* The index, with the holds of all locks, has at most 24 bytes for each event of a recording. */
static void an_event_takes_few_bytes(void **state)
{
    char folder[] = "test-nodes-XXXXXX", path[64];
    struct stat st;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.timeline", folder);
    struct timeline *t = server();
    struct critical_path p;
    struct path_shares shares;
    struct unknown_table unknown;
    timeline_save(t, path, 42);
    assert_int_equal(critical_path_and_shares(t, &PATH_OPTIONS, &p, &shares, &unknown), 0);
    timeline_index_close(t);
    assert_true(t->n_holds > EVENTS);
    assert_int_equal(stat(path, &st), 0);
    /* what does not grow with the recording: contexts, threads, and the table of shapes */
    size_t fixed = t->n_contexts * sizeof(*t->contexts) + (64 << 10);
    assert_in_range(st.st_size, EVENTS * 16, EVENTS * 24 + fixed);
    critical_path_release(&p);
    vec_release(&shares.rows);
    vec_release(&unknown.rows);
    timeline_free(t);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_lie_where_the_index_has_them),
        cmocka_unit_test(a_full_disk_is_no_end),
        cmocka_unit_test(an_event_takes_few_bytes),
        cmocka_unit_test(deadlock_holds_to_the_end),
        cmocka_unit_test(old_nodes_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
