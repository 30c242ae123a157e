/* SPDX-License-Identifier: Apache-2.0 */
#include "tests.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cursor.h"
#include "base/json.h"
#include "base/json_check.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/strpool.h"
#include "base/vec.h"

static void map_agrees_with_a_plain_array(void **state)
{
    enum { KEYS = 4096 };
    struct map m = {0};
    uint64_t truth[KEYS];
    bool have[KEYS] = {0};
    size_t len = 0;
    srandom(1);
    for (int step = 0; step < 200000; step++) {
        uint64_t k = (uint64_t)random() % KEYS, key = k << 56 | k;
        if (random() % 3) {
            truth[k] = (uint64_t)step;
            len += !have[k];
            have[k] = true;
            assert_int_equal(map_put(&m, key, truth[k]), 0);
        } else {
            assert_int_equal(map_remove(&m, key), have[k]);
            len -= have[k];
            have[k] = false;
        }
        assert_int_equal(m.len, len);
    }
    for (uint64_t k = 0; k < KEYS; k++) {
        uint64_t *v = map_get(&m, k << 56 | k);
        assert_int_equal(v != NULL, have[k]);
        if (v)
            assert_int_equal(*v, truth[k]);
    }
    size_t seen = 0;
    uint64_t key, value;
    for (size_t i = 0; map_next(&m, &i, &key, &value);)
        seen++;
    assert_int_equal(seen, len);
    map_release(&m);
}

static void strpool_numbers_strings_once(void **state)
{
    struct strpool p = {0};
    char text[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) {
            int n = snprintf(text, sizeof(text), "string %d", i);
            assert_int_equal(strpool_add(&p, text, (size_t)n), i);
        }
    }
    assert_int_equal(strpool_add(&p, "a\0b", 3), 5000);
    assert_int_equal(strpool_find(&p, "a\0b", 3), 5000);
    assert_int_equal(strpool_find(&p, "a", 1), -ENOENT);
    assert_string_equal(strpool_get(&p, 4999).data, "string 4999");
    assert_int_equal(strpool_get(&p, 99999).len, 0);
    strpool_release(&p);
}

static void numbers_survive_writing_and_reading(void **state)
{
    struct buf b = BUF(1 << 20);
    uint64_t values[130];
    for (int i = 0; i < 65; i++) {
        values[2 * i] = i < 64 ? UINT64_C(1) << i : 0;
        values[2 * i + 1] = values[2 * i] - 1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        buf_varint(&b, values[i]);
        buf_jfr_long(&b, values[i]);
        buf_be64(&b, values[i]);
        buf_be32(&b, (uint32_t)values[i]);
        buf_be16(&b, (uint16_t)values[i]);
    }
    assert_int_equal(buf_error(&b), 0);
    struct cursor c = cursor_of(b.data, b.len);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        assert_int_equal(cursor_varint(&c), values[i]);
        assert_int_equal(cursor_jfr_long(&c), values[i]);
        assert_int_equal(cursor_be64(&c), values[i]);
        assert_int_equal(cursor_be32(&c), (uint32_t)values[i]);
        assert_int_equal(cursor_be16(&c), (uint16_t)values[i]);
    }
    assert_int_equal(cursor_left(&c), 0);
    assert_false(c.failed);
    assert_int_equal(cursor_u8(&c), 0);
    assert_true(c.failed);
    buf_release(&b);
}

static void a_buffer_keeps_to_its_limit(void **state)
{
    struct buf b = BUF(10);
    buf_string(&b, "12345");
    buf_string(&b, "123456");
    assert_int_equal(buf_error(&b), -E2BIG);
    assert_int_equal(b.len, 5);
    buf_clear(&b);
    buf_printf(&b, "%s", "0123456789");
    assert_string_equal(buf_str(&b), "0123456789");
    buf_release(&b);
}

static void durations_and_sizes(void **state)
{
    uint64_t v = 7;
    assert_int_equal(parse_duration("10ms", 1, &v), 0);
    assert_int_equal(v, 10000000);
    assert_int_equal(parse_duration("1.5s", 1, &v), 0);
    assert_int_equal(v, 1500000000);
    assert_int_equal(parse_duration("20", 1000000, &v), 0);
    assert_int_equal(v, 20000000);
    static const char *const bad[] = {"", "ms", "-1s", "1x", "1 s", "0x10", "nan", "1e400s", "99999999999d"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_true(parse_duration(bad[i], 1, &v) < 0);
    assert_int_equal(v, 20000000);
    assert_int_equal(parse_size("256M", &v), 0);
    assert_int_equal(v, 268435456);
    assert_int_equal(parse_size("1.5GiB", &v), 0);
    assert_int_equal(v, 1610612736);
    assert_int_equal(parse_u64("0x10", 0, 100, &v), 0);
    assert_int_equal(v, 16);
    assert_int_equal(parse_u64("101", 0, 100, &v), -ERANGE);
    assert_int_equal(parse_u64("1k", 0, 100, &v), -EINVAL);
    char text[24], path[20];
    assert_string_equal(format_duration(text, 1500000000), "1.50 s");
    assert_string_equal(format_size(text, 268435456), "256 MiB");
    assert_int_equal(expand_file_name("a-%p.jfr", 42, path, sizeof(path)), 0);
    assert_string_equal(path, "a-42.jfr");
    assert_int_equal(expand_file_name("%q", 42, path, sizeof(path)), -EINVAL);
    assert_int_equal(expand_file_name("0123456789012345678", 42, path, sizeof(path)), 0);
    assert_int_equal(expand_file_name("01234567890123456789", 42, path, sizeof(path)), -ENAMETOOLONG);
}

static void json_values_end_where_they_end(void **state)
{
    static const struct {
        const char *text;
        size_t len; /* of the value at its start, 0: none */
    } rows[] = {
        {"1,2", 1},
        {"-0.5e+3]", 7},
        {"\"a,\\\"]\" x", 7},
        {"[1,{\"a\": [ ]} ],", 15},
        {"null", 4},
        {"truex", 4},
        {"{}", 2},
        {"\"\xc3\xa9\"", 4},
        {"", 0},
        {"[1", 0},
        {"\"a", 0},
        {"[1,]", 0},
        {"{1:2}", 0},
        {"-", 0},
        {"1.", 0},
        {"\"\n\"", 0},
        {"\"\\x\"", 0},
        {"\"\\u12g4\"", 0},
        {"\"\xc3\"", 0},
        {"\"\xed\xa0\x80\"", 0},
        {"\"\xc0\x80\"", 0},
        {"nul", 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(json_value_len(rows[i].text, strlen(rows[i].text)), rows[i].len);
    char deep[200];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    assert_int_equal(json_value_len(deep, 200), 0);
    assert_int_equal(json_value_len(deep + 40, 120), 120);
}

static void json_is_always_valid_text(void **state)
{
    struct buf b = BUF(4096);
    struct json j = {.out = &b};
    json_object(&j);
    json_key(&j, "a");
    json_array(&j);
    json_u64(&j, UINT64_MAX);
    json_i64(&j, -1);
    json_bool(&j, true);
    json_null(&j);
    json_array_end(&j);
    json_key(&j, "b");
    /* A quote, a control, a broken byte, modified UTF-8's NUL and surrogate pair, a lone surrogate. */
    json_string(&j, "\"\x01\xff\xc0\x80\xed\xa0\xbd\xed\xb8\x80\xed\xa0\x80");
    json_object_end(&j);
    assert_string_equal(buf_str(&b),
                        "{\"a\":[18446744073709551615,-1,true,null],\"b\":\"\\\"\\u0001\xef\xbf\xbd\\u0000\xf0\x9f\x98\x80"
                        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}");
    buf_release(&b);
}

static void arena_allocations_do_not_overlap(void **state)
{
    struct arena a = {0};
    VEC(unsigned char *) all = {0};
    srandom(2);
    for (unsigned i = 0; i < 3000; i++) {
        size_t size = (size_t)random() % (i % 50 ? 200 : 100000) + 1;
        unsigned char *p = arena_alloc(&a, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, (int)(i & 0xff), size);
        assert_int_equal(vec_push(&all, p), 0);
    }
    for (unsigned i = 0; i < all.len; i++)
        assert_int_equal(all.data[i][0], i & 0xff);
    vec_release(&all);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_agrees_with_a_plain_array),
        cmocka_unit_test(strpool_numbers_strings_once),
        cmocka_unit_test(numbers_survive_writing_and_reading),
        cmocka_unit_test(a_buffer_keeps_to_its_limit),
        cmocka_unit_test(durations_and_sizes),
        cmocka_unit_test(json_values_end_where_they_end),
        cmocka_unit_test(json_is_always_valid_text),
        cmocka_unit_test(arena_allocations_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
