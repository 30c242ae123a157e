/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of requests: which parts are folded, how many there can be, and what is counted for
 * each.
 */
#include "agent/capture/requests/names.h"
#include "agent/capture/requests/sql.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

static void is_folded(const char *method, const char *path, const char *want)
{
    char got[REQUEST_NAME_SIZE];
    request_fold(method, path, got);
    assert_string_equal(got, want);
}

static void test_folding(void **state)
{
    is_folded("GET", "/cart/17", "GET /cart/{id}");
    is_folded("GET", "/cart/17/items/4?x=9#part", "GET /cart/{id}/items/{id}");
    is_folded("POST", "/order/3f2504e0-4f89-11d3-9a0c-0305e82c3301/pay", "POST /order/{id}/pay");
    is_folded("GET", "/img/deadbeef01.png", "GET /img/{id}.png");
    is_folded("GET", "/day/2024-01-31", "GET /day/{id}");
    is_folded("GET", "/list/1,2,3,4", "GET /list/{id}");
    is_folded("GET", "/api/v1/item-123/part_7", "GET /api/v1/item-{id}/part_{id}");
    is_folded("GET", "/token/eyJhbGciOi1IUzI1NiJ9x7", "GET /token/{id}");
    is_folded("GET", "/a%20b/%2F12", "GET /a%20b/%2F{id}");
    is_folded("GET", "/shop;jsessionid=0A1B2C/cart;v=1", "GET /shop/cart");
    is_folded("GET", "", "GET /");
    is_folded("GET", "?q=1", "GET /");
    is_folded("GET", "*", "GET *");
    is_folded(NULL, "facade/deadbeef/sha256/utf8", "facade/deadbeef/sha256/utf8");
    is_folded("G\x1b[31m", "/a\nb\x7f\xc3\xa9<b>", "G?[31m /a?b\?\?\?<b>");
}

static void sql_is(const char *sql, const char *want)
{
    char got[100];
    sql_fold(sql, got, sizeof(got));
    assert_string_equal(got, want);
}

static void test_statements(void **state)
{
    sql_is("SELECT  a1, t2.b FROM t2\nWHERE id = 17 AND x>-4.5e-3",
           "SELECT a1, t2.b FROM t2 WHERE id = ? AND x>-?");
    sql_is("SELECT 'it''s', 'a\\'b' FROM t", "SELECT ? FROM t");
    sql_is("WHERE id IN (1, 2,3 , 'x', ?)", "WHERE id IN (?)");
    sql_is("VALUES (1, 'a'), (2, 'b')", "VALUES (?), (?)");
    sql_is("SELECT /* id 7 */ 1 -- secret\n FROM t", "SELECT ? FROM t");
    sql_is("SELECT 'no end", "SELECT ?");
    sql_is("SELECT $$body 5$$, $1", "SELECT ?, $1");
    sql_is("", "");
    sql_is("a\x1b[31m\xc3\xa9", "a [\?\?\?");
    char sql[5000], got[60];
    memset(sql, 'x', sizeof(sql) - 1);
    sql[sizeof(sql) - 1] = 0;
    sql_fold(sql, got, sizeof(got));
    assert_int_equal(strlen(got), sizeof(got) - 1);
    for (size_t i = 0; i + 1 < sizeof(sql); i++)
        sql[i] = ",' 1?-/*"[i * 7 % 8];
    for (size_t i = 0; i < 1000; i++)
        sql_fold(sql + i, got, 5 + i % 50); /* under the sanitizers */
}

static void test_names_are_not_too_long(void **state)
{
    char path[5000], got[REQUEST_NAME_SIZE];
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    request_fold("GET", path, got);
    assert_true(strlen(got) < REQUEST_NAME_SIZE);
    assert_string_equal(got + strlen(got) - 4, "a...");
    for (size_t i = 0; i < sizeof(path) - 1; i += 2)
        path[i] = '/';
    for (size_t n = 0; n + 1 < sizeof(path) - 1; n += 7) {
        path[n + 1] = '7';
        request_fold("A-METHOD-WITH-A-VERY-LONG-NAME", path + n % 50, got);
        assert_true(strlen(got) < REQUEST_NAME_SIZE);
    }
}

static void example_is(const char *path, const char *want)
{
    char text[REQUEST_NAME_SIZE];
    request_example(path, text);
    assert_string_equal(text, want);
}

static void test_examples(void **state)
{
    example_is("/cart/17;jsessionid=5?user=3", "/cart/17");
    example_is("/o/6f1ed002ab5595859014ebf0951522d9/1", "/o/{id}/1");
    example_is("/o/123e4567-e89b-12d3-a456-426614174000",
               "/o/123e4567-e89b-12d3-a456-426614174000");
    example_is("", "/");
    example_is("/a\x1b[2J<b>", "/a?[2J<b>");
    unsigned folded = request_name_find(1, "GET /cart/{id}"),
             plain = request_name_find(1, "GET /cart"),
             route = request_name_find(1, "GET /{shop}/{item}"),
             other = request_name_find(1, "GET /{any}");
    request_name_example(folded, "/cart/17?x");
    request_name_example(folded, "/cart/18");
    assert_string_equal(request_name_at(folded)->example, "/cart/17");
    request_name_example(plain, "/cart");
    assert_string_equal(request_name_at(plain)->example, "");
    request_name_renamed(folded, route);
    assert_string_equal(request_name_at(route)->example, "/cart/17");
    request_name_renamed(plain, other);
    assert_string_equal(request_name_at(other)->example, "/cart");
    request_name_example(0, "/none");
    assert_string_equal(request_name_at(0)->example, "");
    request_names_release();
}

static void test_a_million_names(void **state)
{
    unsigned first = 0;
    for (int i = 0; i < 1000000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "GET /n%d", i);
        unsigned n = request_name_find(1, text);
        if (i == 0)
            first = n;
        assert_int_equal(n == 0, i >= REQUEST_NAMES_MAX);
        request_count(request_name_at(n), 1000, false, 1);
    }
    assert_int_equal(request_name_find(1, "GET /n0"), first);
    assert_int_equal(request_names_count(), REQUEST_NAMES_MAX + 1);
    assert_string_equal(request_name_at(0)->text, REQUEST_OTHER);
    assert_int_equal(request_name_at(0)->count, 1000000 - REQUEST_NAMES_MAX);
    request_names_release();
    assert_null(request_name_at(0));
}

static void test_counts(void **state)
{
    struct request_name *n = request_name_at(request_name_find(1, "GET /a"));
    for (uint64_t us = 0; us < 1000; us++)
        request_count(n, us * 1000, us % 10 == 0, 1);
    assert_int_equal(n->count, 1000);
    assert_int_equal(n->errors, 100);
    assert_int_equal(n->max_ns, 999000);
    assert_int_equal(n->total_ns, UINT64_C(999) * 500 * 1000);
    uint64_t all = 0;
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++)
        all += n->buckets[i];
    assert_int_equal(all, 1000);
    assert_int_equal(n->buckets[5], 1);
    request_names_release();
}

/* The slowest of a hundred thousand latencies, in any order, are counted among the slow ones. */
static void test_the_slowest_of_a_minute(void **state)
{
    const uint64_t minute = UINT64_C(60000000000);
    struct request_name *n = request_name_at(request_name_find(1, "GET /a"));
    unsigned kept = 0, top = 0, x = 1;
    for (int i = 0; i < 100000; i++) {
        x = x * 1664525u + 1013904223u;
        bool highest = i % 5000 == 7;
        bool slow = request_is_slow(n, highest ? UINT64_C(1) << 40 : x >> 8, minute);
        kept += slow;
        top += slow && highest;
    }
    assert_int_equal(top, 20);
    assert_true(kept < 20 * 12);
    assert_false(request_is_slow(n, 5, minute));
    assert_true(request_is_slow(n, 5, 2 * minute));
    request_names_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_names_are_not_too_long),
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_a_million_names),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_the_slowest_of_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
