/* SPDX-License-Identifier: Apache-2.0 */
/* Records on their way from signal handlers to one reader. */
#include "agent/capture/trace/ring.h"
#include "agent/sampler/ring.h"

#include "tests.h"

#include <pthread.h>
#include <string.h>

enum { SIZE = 1 << 16, WRITERS = 4, RECORDS = 4000 };

struct record {
    struct ring_record head;
    uint64_t writer, number, words;
    uint64_t word[];
};

static bool put(struct ring *r, uint64_t writer, uint64_t number)
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
static bool take(struct ring *r, uint64_t next[WRITERS])
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
    struct ring r = {0};
    uint64_t position;
    assert_null(ring_take(&r, 64, &position));
    assert_null(ring_next(&r));
    ring_close(&r);
}

static void a_full_one_refuses_and_goes_on(void **state)
{
    struct ring r;
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
    struct ring r;
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
    struct ring *ring;
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
    struct ring r;
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

/* Writes n records that claim this size and may be invalid. */
static void write_trace(struct trace_ring *r, unsigned n, uint32_t size)
{
    for (; n; n--) {
        struct trace_record one = {.size = size, .kind = 1};
        memcpy(r->data + r->head, &one, sizeof(one));
        r->head += sizeof(one);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_fits_into_none),
        cmocka_unit_test(a_full_one_refuses_and_goes_on),
        cmocka_unit_test(the_reader_waits_for_what_is_being_written),
        cmocka_unit_test(many_write_and_one_reads),
        cmocka_unit_test(what_is_no_record_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
