/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures of timelines of any shape: runs must agree with the nodes, and a view from a file must
 * show the same.
 */
#include "tests.h"

#include "base/cursor.h"
#include "base/file.h"
#include "timeline/index.h"
#include "timeline/pack.h"
#include "timeline/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 5, NODES = 60000 };

static struct tl_node nodes[NODES];
static struct tl_thread threads[THREADS];
static const struct tl_context none = {TL_NONE, TL_NONE, TL_NONE, 0};
static struct timeline t;
static uint64_t seed;

static uint64_t chance(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static void forget(void)
{
    free((void *)(uintptr_t)t.packed);
    free((void *)(uintptr_t)t.blocks);
    free((void *)(uintptr_t)t.shapes);
    t = (struct timeline){0};
}

/*
 * Makes busy and quiet times, states without a length, and instants. One thread ends early, one
 * does nothing.
 */
static void make_timeline(uint64_t from_seed)
{
    uint32_t last[THREADS];
    uint64_t now = 1000, gap = 1;
    seed = from_seed;
    memset(last, 0xff, sizeof(last));
    for (uint32_t i = 0; i < NODES; i++) {
        if (i % 500 == 0)
            gap = (uint64_t)1 << chance(14);
        now += chance(gap);
        uint32_t thread = (uint32_t)chance(i > NODES / 2 ? THREADS - 2 : THREADS - 1);
        bool instant = chance(9) == 0;
        nodes[i] = (struct tl_node){
            .time = now,
            .kind = instant ? TL_TIMEOUT + chance(TL_KINDS - TL_TIMEOUT) : chance(TL_DEAD),
            .prev = last[thread],
            .waker = !instant && i > 50 && chance(3) == 0 ? i - 1 - (uint32_t)chance(50) : TL_NONE,
            .thread = thread};
        last[thread] = i;
    }
    for (uint32_t i = 0; i < THREADS; i++)
        threads[i] = (struct tl_thread){.end_ns = now + 1000, .last = last[i]};
    nodes[last[THREADS - 2]].kind = TL_DEAD;
    threads[THREADS - 2].end_ns = nodes[last[THREADS - 2]].time;
    forget();
    t = (struct timeline){.end_ns = now + 1000,
                          .threads = threads,
                          .n_threads = THREADS,
                          .contexts = &none,
                          .n_contexts = 1};
    struct tl_packer p;
    assert_int_equal(tl_packer_init(&p), 0);
    for (size_t i = 0; i < NODES; i += TL_BLOCK_NODES)
        assert_int_equal(
            tl_packer_put(&p, i >> TL_BLOCK_BITS, nodes + i, MIN(NODES - i, TL_BLOCK_NODES)), 0);
    assert_int_equal(tl_packer_finish(&p, &t), 0);
    tl_packer_release(&p);
}

/* Returns when the state of a node ends. */
static uint64_t end_of_state(uint32_t node)
{
    for (uint32_t i = node + 1; i < NODES; i++)
        if (nodes[i].thread == nodes[node].thread && tl_is_state((enum tl_kind)nodes[i].kind))
            return nodes[i].time;
    return MAX(threads[nodes[node].thread].end_ns, (uint64_t)nodes[node].time);
}

/*
 * Sums up the time of a thread by kind between two times, and returns how many of its states lie
 * there.
 */
static uint64_t sum_up(uint32_t thread, uint64_t from, uint64_t to, uint64_t sum[TL_KINDS])
{
    uint64_t n = 0;
    uint32_t before = TL_NONE;
    memset(sum, 0, TL_KINDS * sizeof(*sum));
    for (uint32_t i = 0; i <= NODES; i++) {
        if (i < NODES && (nodes[i].thread != thread || !tl_is_state((enum tl_kind)nodes[i].kind)))
            continue;
        if (before != TL_NONE) {
            uint64_t begin = MAX((uint64_t)nodes[before].time, from);
            uint64_t end = MIN(i < NODES ? (uint64_t)nodes[i].time : end_of_state(before), to);
            sum[nodes[before].kind] += end > begin ? end - begin : 0;
            n += end > begin;
        }
        before = i;
    }
    return n;
}

/* Checks that a run has the right length, and is either one state or several with their shares. */
static void check_run(struct cursor *c, uint32_t thread, uint64_t pixel, uint64_t begin,
                      uint64_t end, bool many, uint64_t to)
{
    uint64_t sum[TL_KINDS];
    if (!many) {
        uint64_t node = cursor_varint(c), kind = cursor_varint(c);
        assert_true(node < NODES);
        assert_int_equal(nodes[node].thread, thread);
        assert_int_equal(nodes[node].kind, kind);
        assert_true(nodes[node].time <= begin);
        assert_int_equal(MIN(end_of_state((uint32_t)node), to), MIN(end, to));
        return;
    }
    uint64_t head = cursor_varint(c), n = sum_up(thread, begin, end, sum);
    assert_true(end - begin <= pixel);
    assert_true(head >> 4 >= n); /* includes those without a length */
    for (uint64_t k = head & 15; k > 0; k--) {
        uint8_t kind = cursor_u8(c), share = cursor_u8(c);
        assert_int_equal(share, sum[kind] * 255 / (end - begin));
        sum[kind] = 0;
    }
    for (int k = 0; k < TL_KINDS; k++)
        assert_int_equal(sum[k] * 255 / (end - begin), 0);
}

/*
 * Checks that the runs of a row cover the time in which the thread exists, and returns their
 * number.
 */
static uint64_t check_row(struct cursor *c, const struct view_range *r, uint32_t thread,
                          uint64_t pixel)
{
    uint64_t at = r->from, n = cursor_varint(c), short_before = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t gap = cursor_varint(c), begin = at + gap / 2, end = begin + cursor_varint(c);
        assert_true(gap < 2 || i == 0);
        check_run(c, thread, pixel, begin, end, gap & 1, r->to);
        if (i > 0 && i + 1 < n)
            assert_true(end - begin >= pixel - pixel / 4 || short_before == 0 ||
                        short_before + end - begin >= pixel);
        short_before = end - begin < pixel - pixel / 4 ? end - begin : 0;
        at = end;
    }
    for (uint64_t k = cursor_varint(c), time = r->from; k > 0; k--) {
        time += cursor_varint(c);
        uint64_t kind = cursor_varint(c), node = cursor_varint(c);
        assert_true(node < NODES);
        assert_int_equal(nodes[node].time, time);
        assert_int_equal(nodes[node].kind, kind);
        assert_int_equal(nodes[node].thread, thread);
    }
    return n;
}

static void check_range(const struct timeline_view *v, uint64_t from, uint64_t to, uint32_t width)
{
    static const uint32_t all[THREADS] = {0, 1, 2, 3, 4};
    struct view_range r = {from, to, width, all, THREADS};
    struct buf out = BUF(1 << 24);
    assert_int_equal(timeline_view_rows(v, &r, &out), 0);
    struct cursor c = cursor_of(out.data, out.len);
    uint64_t pixel = MAX((to - from) / width, (uint64_t)1);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_true(check_row(&c, &r, i, pixel) <= 3 * (uint64_t)width + 3);
    assert_false(c.failed);
    assert_ptr_equal(c.at, c.end);
    buf_release(&out);
}

static void test_runs_say_what_the_nodes_say(void **state)
{
    for (uint64_t s = 1; s < 4; s++) {
        struct timeline_view *v;
        make_timeline(s);
        assert_int_equal(timeline_view_new(&v, &t), 0);
        check_range(v, 0, t.end_ns, 7);
        check_range(v, 0, t.end_ns, 100);
        for (int i = 0; i < 12; i++) {
            uint64_t span = (t.end_ns >> chance(16)) + 2, from = chance(t.end_ns - span / 2);
            check_range(v, from, from + span, (uint32_t)(1 + chance(60)));
        }
        timeline_view_free(v);
    }
}

/* Draws the rows and arrows of a range. */
static void draw(const struct timeline_view *v, uint64_t from, uint64_t to, struct buf *out)
{
    static const uint32_t shown[] = {3, 1};
    struct view_range r = {from, to, 200, shown, 2};
    assert_int_equal(timeline_view_rows(v, &r, out), 0);
    assert_int_equal(timeline_view_arrows(v, &r, out), 0);
}

static const char rest[] = "what the caller keeps";

static void test_a_kept_view_shows_the_same(void **state)
{
    char path[] = "test-view-XXXXXX";
    int fd = mkstemp(path);
    struct timeline_view *made, *kept;
    const void *found;
    size_t len;
    make_timeline(9);
    assert_int_equal(timeline_view_new(&made, &t), 0);
    assert_int_equal(timeline_view_save(made, path, 77, rest, sizeof(rest)), 0);
    assert_int_equal(timeline_view_map(&kept, &t, path, 78, &found, &len), -ESTALE);
    assert_int_equal(timeline_view_map(&kept, &t, path, 77, &found, &len), 0);
    assert_int_equal(len, sizeof(rest));
    assert_memory_equal(found, rest, len);
    for (uint64_t span = t.end_ns; span > 10; span /= 3) {
        struct buf a = BUF(1 << 24), b = BUF(1 << 24);
        draw(made, t.end_ns - span, t.end_ns, &a);
        draw(kept, t.end_ns - span, t.end_ns, &b);
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.data, b.data, a.len);
        buf_release(&a);
        buf_release(&b);
    }
    assert_int_equal(timeline_view_at(kept, 0, t.end_ns), timeline_view_at(made, 0, t.end_ns));
    timeline_view_free(made);
    timeline_view_free(kept);
    unlink(path);
    close(fd);
}

/* A damaged file is refused, or something is drawn, but never by reading outside the file. */
static void test_a_damaged_view_harms_nothing(void **state)
{
    char path[] = "test-view-XXXXXX";
    int fd = mkstemp(path);
    struct timeline_view *v;
    uint8_t *data;
    size_t len, n_rest;
    const void *found;
    make_timeline(11);
    assert_int_equal(timeline_view_new(&v, &t), 0);
    assert_int_equal(timeline_view_save(v, path, 1, NULL, 0), 0);
    timeline_view_free(v);
    assert_int_equal(file_read_path(path, SIZE_MAX / 2, &data, &len), 0);
    close(fd);
    int drawn = 0;
    for (int i = 0; i < 150; i++) {
        struct out_file f = OUT_FILE;
        struct buf out = BUF(1 << 22);
        size_t at = i < 50 ? 24 + chance(600) : chance(len - 8),
               cut = i % 10 == 9 ? chance(len) : len;
        uint64_t before, bad = i % 3 ? chance(UINT64_MAX) : chance(1 << 20);
        memcpy(&before, data + at, sizeof(before));
        memcpy(data + at, &bad, sizeof(bad));
        assert_int_equal(out_file_open(&f, path), 0);
        assert_int_equal(file_write_all(f.fd, data, cut), 0);
        assert_int_equal(out_file_commit(&f), 0);
        out_file_release(&f);
        if (timeline_view_map(&v, &t, path, 1, &found, &n_rest) == 0) {
            static const uint32_t all[THREADS] = {0, 1, 2, 3, 4};
            struct view_range r = {chance(t.end_ns / 2), t.end_ns, 300, all, THREADS};
            (void)!timeline_view_rows(v, &r, &out);
            (void)!timeline_view_arrows(v, &r, &out);
            timeline_view_free(v);
            drawn++;
        }
        memcpy(data + at, &before, sizeof(before));
        buf_release(&out);
    }
    assert_true(drawn > 30 && drawn < 150);
    free(data);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_say_what_the_nodes_say),
        cmocka_unit_test(test_a_kept_view_shows_the_same),
        cmocka_unit_test(test_a_damaged_view_harms_nothing),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    forget();
    return failed;
}
