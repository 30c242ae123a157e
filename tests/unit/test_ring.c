/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way from signal handlers to one reader. */
#include "agent/capture/trace/ring.h"
#include "agent/sampler/ring.h"

#include "tests.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 1 << 16, WRITERS = 4, RECORDS = 4000 };

struct record {
    struct ring_record head;
    uint64_t writer, number, words;
    uint64_t word[];
};

static bool put(struct record_ring *r, uint64_t writer, uint64_t number)
{
    uint64_t position, words = (writer * 7 + number * 13) % 300;
    struct record *record =
        (struct record *)(void *)ring_take(r, sizeof(*record) + 8 * words, &position);
    if (!record)
        return false;
    record->writer = writer;
    record->number = number;
    record->words = words;
    for (uint64_t i = 0; i < words; i++)
        record->word[i] = writer << 32 | number;
    ring_put(&record->head, position);
    return true;
}

/* Checks the next record. Returns false when there is none. */
static bool take(struct record_ring *r, uint64_t next[WRITERS])
{
    struct record *record = (struct record *)(void *)ring_next(r);
    if (!record)
        return false;
    assert_true(record->writer < WRITERS);
    assert_int_equal(record->number, next[record->writer]++);
    for (uint64_t i = 0; i < record->words; i++)
        assert_int_equal(record->word[i], record->writer << 32 | record->number);
    ring_done(r, &record->head);
    return true;
}

static void nothing_fits_into_none(void **state)
{
    struct record_ring r = {0};
    uint64_t position;
    assert_null(ring_take(&r, 64, &position));
    assert_null(ring_next(&r));
    ring_close(&r);
}

static void a_full_one_refuses_and_goes_on(void **state)
{
    struct record_ring r;
    uint64_t written = 0, next[WRITERS] = {0}, position;
    assert_int_equal(ring_open(&r, SIZE), 0);
    for (unsigned round = 0; round < 100; round++) {
        while (put(&r, 0, written))
            written++;
        while (take(&r, next))
            ;
        assert_int_equal(next[0], written);
    }
    assert_null(ring_take(&r, SIZE + 64, &position));
    ring_close(&r);
}

static void the_reader_waits_for_what_is_being_written(void **state)
{
    struct record_ring r;
    uint64_t first, second;
    assert_int_equal(ring_open(&r, SIZE), 0);
    struct ring_record *a = ring_take(&r, 100, &first), *b = ring_take(&r, 100, &second);
    assert_true(a && b);
    ring_put(b, second);
    assert_null(ring_next(&r));
    ring_put(a, first);
    assert_ptr_equal(ring_next(&r), a);
    ring_done(&r, a);
    assert_ptr_equal(ring_next(&r), b);
    ring_done(&r, b);
    assert_null(ring_next(&r));
    ring_close(&r);
}

struct writer {
    struct record_ring *ring;
    uint64_t number;
};

static void *write_all(void *context)
{
    struct writer *w = context;
    for (uint64_t i = 0; i < RECORDS;)
        i += put(w->ring, w->number, i);
    return NULL;
}

static void many_write_and_one_reads(void **state)
{
    struct record_ring r;
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    uint64_t next[WRITERS] = {0};
    assert_int_equal(ring_open(&r, SIZE), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){&r, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_all, &writers[i]), 0);
    }
    for (uint64_t all = 0; all < WRITERS * RECORDS;)
        all += take(&r, next);
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(next[i], RECORDS);
    }
    assert_false(take(&r, next));
    ring_close(&r);
}

/* Reads all records and adds their sizes. Returns false if some bytes were not a record. */
static bool read_trace(struct trace_ring *r, unsigned *size)
{
    struct trace_cursor c;
    bool broken = false;
    trace_cursor_begin(&c, r);
    for (const struct trace_record *one; (one = trace_cursor_record(&c, &broken));
         trace_cursor_next(&c))
        *size += one->size;
    trace_cursor_end(&c);
    return !broken;
}

/* Begins a chunk of the stream as JvmscopeTrace.newChunk() does. */
static void begin_chunk(struct trace_ring *r)
{
    uint32_t read = (uint32_t)(r->tail / RING_CHUNK), number = (uint32_t)(r->head / RING_CHUNK) + 1;
    int32_t i = 0;
    while (r->chunks[i] > read && r->chunks[i] != number)
        assert_true(++i < r->n_chunks);
    r->chunks[i] = number;
    r->base = (int64_t)(uintptr_t)r->data + (int64_t)i * RING_CHUNK_MEMORY - r->head;
}

/* Writes a record that claims a size, as JvmscopeTrace.begin() and end() do. */
static void write_record(struct trace_ring *r, uint32_t claimed, uint32_t size, uint64_t call)
{
    struct trace_record one = {.size = claimed, .kind = 1, .call = call};
    if (r->head % RING_CHUNK == 0)
        begin_chunk(r);
    uint8_t *p = (uint8_t *)(uintptr_t)(r->base + r->head);
    memset(p, (int)(call & 0xff), size);
    memcpy(p, &one, sizeof(one));
    int64_t next = r->head + size;
    r->head = (next ^ r->head) < RING_CHUNK ? next : next & -RING_CHUNK;
}

/* Writes n records without values that claim this size, which may be invalid. */
static void write_trace(struct trace_ring *r, unsigned n, uint32_t size)
{
    for (; n; n--)
        write_record(r, size, sizeof(struct trace_record), 0);
}

static void what_is_no_record_is_skipped(void **state)
{
    const uint32_t bad[] = {0, 8, sizeof(struct trace_record) + 4, 3 * sizeof(struct trace_record),
                            UINT32_MAX & ~7u};
    struct trace_ring *r = trace_ring_new(1 << 20, 0);
    assert_non_null(r);
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        unsigned seen = 0;
        write_trace(r, 2, sizeof(struct trace_record));
        write_trace(r, 1, bad[i]);
        write_trace(r, 1, sizeof(struct trace_record));
        assert_false(read_trace(r, &seen));
        assert_int_equal(seen, 2 * sizeof(struct trace_record));
        assert_int_equal(trace_ring_used(r), 0);
        write_trace(r, 1, sizeof(struct trace_record));
        assert_true(read_trace(r, &seen));
        assert_int_equal(seen, 3 * sizeof(struct trace_record));
    }
}

/* A size of records that depends on the number of the call; some extend beyond their chunk. */
static uint32_t size_of(uint64_t call)
{
    return call % 50 == 49 ? RING_RECORD_MAX : sizeof(struct trace_record) + 8 * (call % 13);
}

static void write_next(struct trace_ring *r, uint64_t *call)
{
    write_record(r, size_of(*call), size_of(*call), *call);
    ++*call;
}

/* Reads up to n records, which must be calls from `call` on. Returns the next call. */
static uint64_t read_calls(struct trace_ring *r, uint64_t call, unsigned n)
{
    struct trace_cursor c;
    const struct trace_record *one;
    bool broken = false;
    trace_cursor_begin(&c, r);
    for (; n && (one = trace_cursor_record(&c, &broken)); n--, call++) {
        assert_int_equal(one->call, call);
        assert_int_equal(one->size, size_of(call));
        bool same = true;
        for (const uint8_t *v = one->values; v < (const uint8_t *)one + one->size; v++)
            same = same && *v == (call & 0xff);
        assert_true(same);
        trace_cursor_next(&c);
    }
    assert_false(broken);
    trace_cursor_end(&c);
    return call;
}

static void a_full_trace_ring_is_read_in_order(void **state)
{
    struct trace_ring *r = trace_ring_new(RING_ROOM_MIN, 0);
    uint64_t written = 0, read = 0;
    assert_non_null(r);
    srand(1);
    for (unsigned round = 0; round < 300; round++) {
        for (unsigned n = (unsigned)rand() % 4000; n; n--) {
            if (trace_ring_used(r) > (uint32_t)r->size - sizeof(struct trace_record))
                break;
            write_next(r, &written);
        }
        read = read_calls(r, read, (unsigned)rand() % 4000);
    }
    assert_true(read > 10000);
    assert_int_equal(read_calls(r, read, UINT_MAX), written);
    assert_int_equal(trace_ring_used(r), 0);
}

/* Returns how many pages of a ring's chunks are in memory. */
static size_t resident(struct trace_ring *r)
{
    static unsigned char pages[(size_t)RING_CHUNKS_MAX * RING_CHUNK_MEMORY / 4096];
    size_t all = (size_t)r->n_chunks * RING_CHUNK_MEMORY, n = 0;
    assert_int_equal(mincore(r->data, all, pages), 0);
    for (size_t i = 0; i < all / 4096; i++)
        n += pages[i] & 1;
    return n;
}

static void a_trace_ring_writes_into_memory_that_it_used_before(void **state)
{
    enum { BURST = 400 << 10, CHUNK_PAGES = RING_CHUNK_MEMORY / 4096 };

    struct trace_ring *r = trace_ring_new(RING_ROOM_MAX, 0);
    uint64_t call = 0;
    size_t after_one = 0;
    assert_non_null(r);
    for (unsigned round = 0; round < 100; round++) {
        uint64_t first = call;
        while (trace_ring_used(r) < BURST)
            write_next(r, &call);
        assert_int_equal(read_calls(r, first, UINT_MAX), call);
        if (round == 1)
            after_one = resident(r);
    }
    assert_in_range(resident(r), 1, after_one + CHUNK_PAGES);
    /* The memory of a flood is returned to the system. */
    uint64_t first = call;
    while (trace_ring_used(r) < RING_ROOM_MAX - RING_CHUNK)
        write_next(r, &call);
    assert_in_range(resident(r), RING_ROOM_MAX / 4096 / 2, SIZE_MAX);
    assert_int_equal(read_calls(r, first, UINT_MAX), call);
    assert_in_range(resident(r), 1, (RING_CHUNKS_MAX / 16 + 2) * CHUNK_PAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_fits_into_none),
        cmocka_unit_test(a_full_one_refuses_and_goes_on),
        cmocka_unit_test(the_reader_waits_for_what_is_being_written),
        cmocka_unit_test(many_write_and_one_reads),
        cmocka_unit_test(what_is_no_record_is_skipped),
        cmocka_unit_test(a_full_trace_ring_is_read_in_order),
        cmocka_unit_test(a_trace_ring_writes_into_memory_that_it_used_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
