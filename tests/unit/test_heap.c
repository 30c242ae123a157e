/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares dominators and retained sizes with brute force; tests the numbering of objects and the
 * store of references.
 */
#include "heap/dominators.h"
#include "heap/ids.h"
#include "heap/memory.h"
#include "hprof/reader.h"
#include "tests.h"

enum { MAX_NODES = 200, MAX_EDGES = 1200 };

static uint64_t state;

static uint64_t rnd(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

struct graph {
    unsigned nodes, edges_n, roots_n;

    struct {
        unsigned from, to;
        bool weak;
    } edges[MAX_EDGES];

    uint64_t roots[MAX_NODES];
};

/* Determines what is reachable from the roots without the node `without`. */
static void reach(const struct graph *g, unsigned without, bool strong, bool seen[MAX_NODES])
{
    memset(seen, 0, MAX_NODES * sizeof(bool));
    for (unsigned i = 0; i < g->roots_n; i++)
        seen[g->roots[i]] = g->roots[i] != without;
    for (bool again = true; again;) {
        again = false;
        for (unsigned e = 0; e < g->edges_n; e++) {
            unsigned to = g->edges[e].to;
            if (seen[g->edges[e].from] && !seen[to] && to != without &&
                !(strong && g->edges[e].weak)) {
                seen[to] = true;
                again = true;
            }
        }
    }
}

static void random_graph(struct graph *g)
{
    g->nodes = 1 + (unsigned)rnd(rnd(2) ? 12 : MAX_NODES);
    g->edges_n = (unsigned)rnd(MIN(MAX_EDGES, g->nodes * (1 + rnd(6))) + 1);
    unsigned shape = (unsigned)rnd(3);
    for (unsigned e = 0; e < g->edges_n; e++) {
        g->edges[e].from = (unsigned)rnd(g->nodes);
        /*
         * The target is any node, a node nearby, or the next node of a chain with a few references
         * back.
         */
        unsigned to = shape == 0 || rnd(8) == 0 ? (unsigned)rnd(g->nodes)
                                                : g->edges[e].from + 1 + (unsigned)rnd(3);
        g->edges[e].to = to % g->nodes;
        g->edges[e].weak = false;
    }
    g->roots_n = 0;
    bool root[MAX_NODES] = {0};
    for (unsigned i = (unsigned)rnd(4); i; i--)
        root[rnd(g->nodes)] = true;
    for (unsigned i = 0; i < g->nodes; i++) {
        if (root[i])
            g->roots[g->roots_n++] = i;
    }
}

static void store(struct graph *g, struct edges *e, bool weak)
{
    assert_int_equal(edges_init(e, g->nodes, 1 << 20), 0);
    struct edge_writer w = {.edges = e};
    for (unsigned n = 0; n < g->nodes; n++) {
        unsigned count = 0, first = MAX_EDGES;
        for (unsigned i = 0; i < g->edges_n; i++) {
            if (g->edges[i].from == n && g->edges[i].to != n) {
                first = MIN(first, i);
                count++;
            }
        }
        if (!count)
            continue;
        bool is_weak = weak && rnd(3) == 0;
        assert_int_equal(edges_begin(&w, n, count, is_weak), 0);
        g->edges[first].weak = is_weak;
        for (unsigned i = 0; i < g->edges_n; i++) {
            if (g->edges[i].from == n)
                edges_add(&w, g->edges[i].to);
        }
        edges_end(&w);
    }
    assert_int_equal(edges_finish(&w), 0);
}

static bool dominates(const struct dominators *d, unsigned a, unsigned b)
{
    uint64_t to = dominators_get(d->number, a, d->wide);
    for (uint64_t v = dominators_get(d->number, b, d->wide); v > 1;
         v = dominators_get(d->idom, v, d->wide)) {
        if (v == to)
            return true;
    }
    return false;
}

static void check_graph(bool wide, bool strong)
{
    struct graph g;
    struct edges e;
    struct dominators d;
    bool all[MAX_NODES], without[MAX_NODES];
    random_graph(&g);
    store(&g, &e, strong);
    assert_int_equal(dominators_search(&d, &e, g.roots, g.roots_n, wide, strong), 0);
    /* Objects to which only weak references lead count as retained by the root. */
    assert_int_equal(dominators_finish(&d, &e, NULL, 2), 0);
    for (uint64_t i = 0; i < d.extra_n; i++) {
        assert_true(g.roots_n < MAX_NODES);
        g.roots[g.roots_n++] = d.extra[i];
    }
    reach(&g, MAX_NODES, strong, all);
    uint64_t reached = 1;
    for (unsigned i = 0; i < g.nodes; i++) {
        assert_int_equal(dominators_get(d.number, i, wide) != 0, all[i]);
        reached += all[i];
    }
    assert_int_equal(d.reached, reached);
    for (unsigned a = 0; a < g.nodes; a++) {
        if (!all[a])
            continue;
        reach(&g, a, strong, without);
        for (unsigned b = 0; b < g.nodes; b++) {
            if (all[b])
                assert_int_equal(dominates(&d, a, b), a == b || !without[b]);
        }
    }
    dominators_release(&d);
}

static void dominators_match_brute_force(void **unused)
{
    state = 20261121;
    for (int i = 0; i < (SANITIZED ? 300 : 3000); i++)
        check_graph(false, false);
}

static void dominators_of_wide_graphs(void **unused)
{
    state = 4242;
    for (int i = 0; i < (SANITIZED ? 60 : 600); i++)
        check_graph(true, false);
}

static void dominators_without_weak_references(void **unused)
{
    state = 777;
    for (int i = 0; i < (SANITIZED ? 100 : 1000); i++)
        check_graph(i % 2, true);
}

/*
 * A list on which recursive algorithms overflow the stack. Each node also refers back to the first
 * one, at the end of its run, so that the search must use its own stack.
 */
static void dominators_of_a_long_list(void **unused)
{
    enum { N = 2000000 };
    struct edges e;
    struct dominators d;
    uint64_t root = 0;
    assert_int_equal(edges_init(&e, N, (uint64_t)N * 24), 0);
    struct edge_writer w = {.edges = &e};
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(edges_begin(&w, i, 2, false), 0);
        if (i + 1 < N)
            edges_add(&w, i + 1);
        edges_add(&w, 0);
        edges_end(&w);
    }
    assert_int_equal(edges_finish(&w), 0);
    assert_int_equal(dominators_search(&d, &e, &root, 1, false, false), 0);
    assert_int_equal(dominators_finish(&d, &e, NULL, 1), 0);
    assert_int_equal(d.reached, N + 1);
    for (uint64_t i = 1; i < N; i += 997) {
        uint64_t v = dominators_get(d.number, i, false);
        assert_int_equal(dominators_get(d.idom, v, false), dominators_get(d.number, i - 1, false));
    }
    dominators_release(&d);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void check_ids(unsigned n, uint64_t range, unsigned shift, bool bitmap)
{
    uint64_t *ids = malloc(n * sizeof(*ids)), min = UINT64_MAX, max = 0, bits = 0,
             base = 1000 + rnd(1000);
    struct heap_ids m;
    for (unsigned i = 0; i < n; i++) {
        ids[i] = base + (rnd(range) << shift);
        min = MIN(min, ids[i]);
        max = MAX(max, ids[i]);
    }
    for (unsigned i = 0; i < n; i++)
        bits |= ids[i] - min;
    assert_int_equal(heap_ids_init(&m, min, max, bits, n), 0);
    assert_int_equal(m.bitmap, bitmap);
    struct heap_ids_adder adder = {.ids = &m};
    struct heap_finder finder;
    for (unsigned i = 0; i < n; i++)
        heap_ids_add(&adder, ids[i], i);
    heap_ids_add_end(&adder);
    assert_int_equal(heap_ids_seal(&m), 0);
    assert_int_equal(heap_finder_init(&finder, &m), 0);
    qsort(ids, n, sizeof(*ids), by_value);
    unsigned distinct = 0;
    for (unsigned i = 0; i < n; i++) {
        if (i && ids[i] == ids[i - 1])
            continue;
        assert_int_equal(heap_ids_find(&m, ids[i]), distinct);
        heap_finder_expect(&finder, ids[i]);
        assert_int_equal(heap_finder_find(&finder, ids[i]), distinct);
        for (uint64_t near = ids[i] - 1; near <= ids[i] + (2 << shift); near++)
            assert_int_equal(heap_finder_find(&finder, near), heap_ids_find(&m, near));
        assert_int_equal(heap_ids_at(&m, distinct), ids[i]);
        if (i + 1 < n && ids[i + 1] > ids[i] + 1)
            assert_true(heap_ids_find(&m, ids[i] + 1) == HEAP_NONE);
        distinct++;
    }
    assert_int_equal(m.count, distinct);
    assert_true(heap_ids_find(&m, min - 1) == HEAP_NONE);
    assert_true(heap_ids_find(&m, max + 1) == HEAP_NONE);
    assert_true(heap_finder_find(&finder, min - 1) == HEAP_NONE);
    assert_true(heap_finder_find(&finder, max + 1) == HEAP_NONE);
    heap_finder_release(&finder);
    heap_ids_release(&m);
    free(ids);
}

static void ids_are_found(void **unused)
{
    state = 99;
    check_ids(1, 1, 3, true);
    check_ids(50000, 200000, 3, true);
    check_ids(50000, 100000, 0, true);
    check_ids(50000, UINT64_C(1) << 40, 3, false);
    check_ids(50000, UINT64_C(1) << 50, 0, false);
    for (int i = 0; i < 20; i++) /* a few ids as in a damaged dump, in some rounds 2^63 apart */
        check_ids(4, UINT64_C(1) << 52, 12, false);
}

static void memory_is_used_again(void **unused)
{
    uint8_t *p = heap_memory_again(NULL, 100);
    assert_non_null(p);
    p[99] = 1;
    for (uint64_t bytes = 1; bytes < 16 << 20; bytes *= 3) {
        p = heap_memory_again(p, bytes);
        assert_non_null(p);
        memset(p, 7, bytes);
    }
    p = heap_memory_again(p, 5000);
    assert_int_equal(p[4999], 7);
    heap_memory_limit(1 << 20, NULL);
    uint64_t spilled = heap_memory_spilled();
    p = heap_memory_again(p, 4 << 20); /* more than the limit: in a file */
    assert_non_null(p);
    memset(p, 7, 4 << 20);
    p = heap_memory_again(p, 1000);
    assert_true(heap_memory_spilled() >= spilled + (4 << 20));
    memset(p, 7, 1000);
    heap_memory_free(p);
    heap_memory_limit(0, NULL);
}

/* A HEAP DUMP whose length was never set, an empty one, and a truncated one. */
static void reader_measures_heap_dumps(void **unused)
{
    static const uint8_t head[] = "JAVA PROFILE 1.0.1\0\0\0\0\4\0\0\0\0\0\0\0\0";
    static const uint8_t roots[] = {0xff, 0, 0, 0, 1, 0xff, 0, 0, 0, 2};
    static const uint8_t end[] = {0x2c, 0, 0, 0, 0, 0, 0, 0, 0};
    uint8_t file[128];
    size_t n = 0;
    struct hprof_reader r;
    struct hprof_record record;
#define PUT(bytes, len) (memcpy(file + n, bytes, len), n += (len))
    PUT(head, 31);
    PUT("\x0c\0\0\0\0\0\0\0\0", 9);
    PUT(roots, sizeof(roots));
    PUT(end, sizeof(end));
    assert_int_equal(hprof_reader_init(&r, file, n), 0);
    assert_true(hprof_next(&r, &record));
    assert_int_equal(record.len, sizeof(roots));
    assert_true(hprof_next(&r, &record));
    assert_int_equal(record.tag, HPROF_HEAP_DUMP_END);
    assert_false(hprof_next(&r, &record));
    assert_int_equal(r.end, HPROF_END_CLEAN);
    n = 0;
    PUT(head, 31);
    PUT("\x0c\0\0\0\0\0\0\0\0", 9);
    PUT(end, sizeof(end));
    assert_int_equal(hprof_reader_init(&r, file, n), 0);
    assert_true(hprof_next(&r, &record));
    assert_int_equal(record.len, 0);
    n = 0;
    PUT(head, 31);
    PUT("\x0c\0\0\0\0\0\0\0\x40", 9);
    PUT(roots, sizeof(roots));
    assert_int_equal(hprof_reader_init(&r, file, n), 0);
    assert_true(hprof_next(&r, &record));
    assert_true(record.cut);
    assert_false(hprof_next(&r, &record));
    assert_int_equal(r.end, HPROF_END_CUT);
    assert_int_equal(record.len, sizeof(roots));
    struct hprof_items it = hprof_items_of(record.body, record.body + record.len - 1, 4);
    struct hprof_item item;
    assert_int_equal(hprof_item_next(&it, &item), 1);
    assert_int_equal(item.id, 1);
    assert_int_equal(hprof_item_next(&it, &item), -ENODATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dominators_match_brute_force),
        cmocka_unit_test(dominators_of_wide_graphs),
        cmocka_unit_test(dominators_without_weak_references),
        cmocka_unit_test(dominators_of_a_long_list),
        cmocka_unit_test(ids_are_found),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(reader_measures_heap_dumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
