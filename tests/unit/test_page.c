/* SPDX-License-Identifier: Apache-2.0 */
/* The data that the page gets from a recording that is made here. */
#include "tests.h"

#include "base/clock.h"
#include "jfr/writer.h"
#include "page/bands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define US UINT64_C(1000)

enum { SAFEPOINTS = 3 * PAGE_BANDS, APART_US = 50, STOPPED_US = 3, WAY_US = 1 };

/* The recording has its own pair of clock readings: its first event may be before ours. */
#define EARLIER (1000 * 1000 * US)

static char file[] = "test-page-XXXXXX";
static uint64_t t0;

static struct timeline timeline(void)
{
    return (struct timeline){.start_epoch = t0 - EARLIER,
                             .end_ns = 2 * EARLIER + (uint64_t)SAFEPOINTS * APART_US * US};
}

/* Safepoints at equal distances, which end in a loss-free recording. */
static void write_safepoints(int n)
{
    struct jfr_writer *writer;
    struct jfr_event e;
    memcpy(file + sizeof(file) - 7, "XXXXXX", 6);
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(jfr_writer_open(&writer, file, &(struct jfr_writer_options){.slots = 1}), 0);
    uint64_t start = now_ns(), epoch = clock_ns(CLOCK_REALTIME);
    t0 = epoch;
    for (int i = 0; i < n; i++) {
        if (i % 1000 == 0)
            assert_int_equal(jfr_writer_flush(writer), 0);
        uint64_t at = start + (uint64_t)i * APART_US * US;
        assert_true(jfr_begin(writer, JFR_SAFEPOINT_BEGIN, 0, &e));
        jfr_put_time(&e, at);
        jfr_put_long(&e, (int64_t)WAY_US * US);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, i + 1);
        jfr_put_int(&e, 0);
        jfr_put_int(&e, 0);
        jfr_commit(&e);
        assert_true(jfr_begin(writer, JFR_SAFEPOINT_END, 0, &e));
        jfr_put_time(&e, at + (uint64_t)STOPPED_US * US);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, i + 1);
        jfr_commit(&e);
    }
    assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
}

struct sums {
    uint64_t bands, events, stopped, way, end;
};

static uint64_t varint(const uint8_t **p)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return v;
    }
}

static size_t from_base64(const char *text, uint8_t *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    uint32_t bits = 0, have = 0;
    for (; *text && *text != '='; text++) {
        bits = bits << 6 | (uint32_t)(strchr(digits, *text) - digits);
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[n++] = (uint8_t)(bits >> have);
        }
    }
    return n;
}

static struct sums sums_of(struct buf *json, const char *kind)
{
    char key[32];
    snprintf(key, sizeof(key), "\"%s\":\"", kind);
    char *text = strstr(buf_str(json), key);
    assert_non_null(text);
    text += strlen(key);
    *strchr(text, '"') = 0;
    uint8_t *bytes = malloc(strlen(text) + 1);
    size_t n = from_base64(text, bytes);
    struct sums s = {0};
    uint64_t at = 0;
    for (const uint8_t *p = bytes; p < bytes + n; s.bands++) {
        at += varint(&p);
        assert_true(at >= s.end || !s.bands);
        s.end = at + varint(&p);
        s.stopped += varint(&p);
        s.way += varint(&p);
        s.events += varint(&p);
        (void)varint(&p);
    }
    free(bytes);
    return s;
}

static void bands_of(const struct timeline *t, struct buf *out)
{
    struct json j = {out, false};
    json_begin_object(&j);
    assert_int_equal(page_bands_json(&j, t, file), 0);
    json_end_object(&j);
}

static void too_many_safepoints_are_merged_and_none_is_lost(void **state)
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 2);
    write_safepoints(SAFEPOINTS);
    const struct timeline t = timeline();
    bands_of(&t, &out);
    struct sums s = sums_of(&out, "safepoints");
    assert_in_range(s.bands, PAGE_BANDS / 4, PAGE_BANDS);
    assert_int_equal(s.events, SAFEPOINTS);
    assert_int_equal(s.stopped, (uint64_t)SAFEPOINTS * STOPPED_US * US);
    assert_int_equal(s.way, (uint64_t)SAFEPOINTS * WAY_US * US);
    unlink(file);
}

static void few_safepoints_are_single_bands(void **state)
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 2);
    write_safepoints(100);
    const struct timeline t = timeline();
    bands_of(&t, &out);
    struct sums s = sums_of(&out, "safepoints");
    assert_int_equal(s.bands, 100);
    assert_int_equal(s.events, 100);
    unlink(file);
}

static void what_lies_outside_of_the_timeline_is_left_out(void **state)
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 2);
    write_safepoints(100);
    struct timeline t = timeline();
    /* about: the two clocks were not read at the same time */
    t.end_ns = EARLIER + 50 * APART_US * US;
    bands_of(&t, &out);
    struct sums s = sums_of(&out, "safepoints");
    assert_in_range(s.events, 1, 99);
    unlink(file);
}

static void a_recording_without_any_has_no_member(void **state)
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 2);
    write_safepoints(0);
    const struct timeline t = timeline();
    bands_of(&t, &out);
    assert_string_equal(buf_str(&out), "{}");
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_safepoints_are_merged_and_none_is_lost),
        cmocka_unit_test(few_safepoints_are_single_bands),
        cmocka_unit_test(what_lies_outside_of_the_timeline_is_left_out),
        cmocka_unit_test(a_recording_without_any_has_no_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
