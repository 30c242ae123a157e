/* SPDX-License-Identifier: Apache-2.0 */
#include "tests.h"

#include "agent/common/inside.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/class_name.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/generated_name.h"
#include "base/json.h"
#include "base/json_check.h"
#include "base/latency.h"
#include "base/map.h"
#include "base/mapped.h"
#include "base/nth.h"
#include "base/number.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/strpool.h"
#include "base/utf8.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_capture_is_idle_when_its_calls_have_ended(void **state)
{
    static struct inside i;
    assert_false(inside_enter(&i));
    inside_open(&i, 1);
    assert_true(inside_enter(&i));
    assert_false(inside_enter_at(&i, 2));
    inside_close(&i);
    assert_false(inside_enter(&i));
    assert_false(inside_is_idle(&i));
    inside_close(&i); /* does not wait again, and the call still hangs */
    assert_false(inside_is_idle(&i));
    inside_leave(&i);
    assert_true(inside_is_idle(&i));
}

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

/* Numbers of which many are equal, or nearly all differ, in any order. */
static void an_element_is_that_of_the_sorted_numbers(void **state)
{
    enum { MOST = 3000 };

    uint64_t sorted[MOST], numbers[MOST];
    srandom(2);
    for (size_t n = 1; n < MOST; n += 1 + n / 3) {
        for (uint64_t values = 1; values < UINT64_C(1) << 30; values *= 9) {
            for (size_t i = 0; i < n; i++)
                sorted[i] = values == 1 ? i : (uint64_t)random() % values;
            memcpy(numbers, sorted, n * sizeof(*numbers));
            qsort(sorted, n, sizeof(*sorted), order_ascending);
            for (size_t i = 0, k = 0; i < 8; i++, k = (size_t)random() % n) {
                assert_int_equal(nth_number(numbers, n, k), sorted[k]);
                assert_int_equal(numbers[k], sorted[k]);
            }
            assert_int_equal(nth_number(numbers, n, n - 1), sorted[n - 1]);
            qsort(numbers, n, sizeof(*numbers), order_ascending);
            assert_memory_equal(numbers, sorted, n * sizeof(*numbers));
        }
    }
}

static void texts_of_either_encoding_are_equal(void **state)
{
    assert_true(utf8_equal("a\xf0\x9f\x98\x80", "a\xed\xa0\xbd\xed\xb8\x80") && utf8_equal("", ""));
    assert_true(utf8_equal("\xed\xa0\xbd", "\xed\xa0\xbd") && utf8_equal("\xc0\x80", "\xc0\x80"));
    assert_false(utf8_equal("\xf0\x9f\x98\x80", "\xed\xa0\xbd") || utf8_equal("a", "ab"));
    assert_false(utf8_equal("ab", "a") || utf8_equal("\xc0\x80", "") || utf8_equal("a", "b"));
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

static void whole_numbers_compare_exactly_and_floats_as_they_are_shown(void **state)
{
    static const struct {
        const char *literal;
        int64_t n;
        int order; /* of n and the literal */
    } whole[] = {{"9007199254740993", 9007199254740993, 0},
                 {"9007199254740993", 9007199254740992, -1},
                 {"9007199254740992.5", 9007199254740992, -1},
                 {"9007199254740992.5", 9007199254740993, 1},
                 {"-0.5", 0, 1},
                 {"-0.5", -1, -1},
                 {"1e3", 1000, 0},
                 {"0x20000000000063", 9007199254741091, 0},
                 {"0x20000000000061", 9007199254741088, -1},
                 {"-0x20000000000061", -9007199254741089, 0},
                 {"0x7fffffffffffffff", INT64_MAX, 0},
                 {"0x8000000000000000", INT64_MAX, -1},
                 {"9223372036854775807", INT64_MAX, 0},
                 {"9223372036854775808", INT64_MAX, -1},
                 {"-9223372036854775808", INT64_MIN, 0},
                 {"-9223372036854775808.5", INT64_MIN, 1},
                 {"-9223372036854775809", INT64_MIN, 1},
                 {"1e30", INT64_MAX, -1},
                 {"-inf", INT64_MIN, 1}};

    struct literal l;
    for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
        struct number n = number_whole(whole[i].n);
        int order = whole[i].order;
        assert_true(number_parse(&l, whole[i].literal));
        assert_int_equal(number_compare(LOGIC_EQ, &n, &l), order == 0);
        assert_int_equal(number_compare(LOGIC_NE, &n, &l), order != 0);
        assert_int_equal(number_compare(LOGIC_LT, &n, &l), order < 0);
        assert_int_equal(number_compare(LOGIC_LE, &n, &l), order <= 0);
        assert_int_equal(number_compare(LOGIC_GT, &n, &l), order > 0);
        assert_int_equal(number_compare(LOGIC_GE, &n, &l), order >= 0);
    }
    struct number tenth = {.kind = NUMBER_FLOAT, .real = (double)0.1f},
                  infinite = {.kind = NUMBER_FLOAT, .real = (double)(1 / 0.0f)};
    assert_true(number_parse(&l, "0.1"));
    assert_true(number_compare(LOGIC_EQ, &tenth, &l) && number_compare(LOGIC_LE, &tenth, &l));
    assert_true(number_parse(&l, "1e39"));
    assert_true(number_compare(LOGIC_GT, &infinite, &l) && number_compare(LOGIC_LT, &tenth, &l));
    assert_false(number_parse(&l, "1x") || number_parse(&l, ""));
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
    static const char *const bad[] = {"",     "ms",  "-1s",    "1x",          "1 s",
                                      "0x10", "nan", "1e400s", "99999999999d"};
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
    assert_string_equal(format_size(text, PARSE_SIZE_MAX), "1.00 EiB");
    assert_int_equal(parse_size("1.00EiB", &v), 0);
    assert_int_equal(v, PARSE_SIZE_MAX);
    char range[48];
    assert_string_equal(format_numbers(range, 0, 65535, false), "0 to 65535");
    assert_string_equal(format_numbers(range, 0, 65535, true), "0 to 65535");
    assert_string_equal(format_numbers(range, 1, INT64_MAX, false), "1 or more");
    assert_string_equal(format_numbers(range, 1, INT64_MAX, true), "less than 2^63");
    assert_string_equal(format_numbers(range, 1, UINT64_MAX, true), "less than 2^64");
    assert_string_equal(COUNT_TEXT(1, "classes"), "1 class");
    assert_string_equal(COUNT_TEXT(2, "classes"), "2 classes");
    assert_string_equal(COUNT_TEXT(1, "details of requests"), "1 detail of requests");
    assert_string_equal(COUNT_TEXT(1, "milliseconds of virtual threads"),
                        "1 millisecond of virtual threads");
    assert_string_equal(COUNT_TEXT(1, "works and parts"), "1 work or part");
    assert_string_equal(COUNT_TEXT(0, "works and parts"), "0 works and parts");
    assert_int_equal(expand_file_name("a-%p.jfr", 42, path, sizeof(path)), 0);
    assert_string_equal(path, "a-42.jfr");
    assert_int_equal(expand_file_name("%q", 42, path, sizeof(path)), -EINVAL);
    assert_int_equal(expand_file_name("0123456789012345678", 42, path, sizeof(path)), 0);
    assert_int_equal(expand_file_name("01234567890123456789", 42, path, sizeof(path)),
                     -ENAMETOOLONG);
}

static void json_values_end_where_they_end(void **state)
{
    static const struct {
        const char *text;
        size_t len; /* length of the value at its start, or 0 */
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
    json_begin_object(&j);
    json_key(&j, "a");
    json_begin_array(&j);
    json_u64(&j, UINT64_MAX);
    json_i64(&j, -1);
    json_bool(&j, true);
    json_null(&j);
    json_end_array(&j);
    json_key(&j, "b");
    /*
     * A quote, a control character, an invalid byte, modified UTF-8's NUL and surrogate pair, and a
     * lone surrogate.
     */
    json_string(&j, "\"\x01\xff\xc0\x80\xed\xa0\xbd\xed\xb8\x80\xed\xa0\x80");
    json_end_object(&j);
    assert_string_equal(buf_str(&b), "{\"a\":[18446744073709551615,-1,true,null],\"b\":"
                                     "\"\\\"\\u0001\xef\xbf\xbd\\u0000\xf0\x9f\x98\x80"
                                     "\\ud800\"}");
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

/* Creates a folder with a file and with root/, in which some links lead outside. */
static void make_root(char folder[32])
{
    strcpy(folder, "test-root-XXXXXX");
    assert_non_null(mkdtemp(folder));
    int fd = open(folder, O_PATH | O_DIRECTORY);
    assert_int_equal(mkdirat(fd, "root", 0700), 0);
    assert_int_equal(mkdirat(fd, "root/etc", 0700), 0);
    close(openat(fd, "secret", O_CREAT | O_WRONLY, 0600));
    close(openat(fd, "root/etc/own", O_CREAT | O_WRONLY, 0600));
    assert_int_equal(symlinkat("../../secret", fd, "root/etc/up"), 0);
    assert_int_equal(symlinkat("/etc/passwd", fd, "root/etc/away"), 0);
    assert_int_equal(symlinkat("/etc", fd, "root/folder"), 0);
    assert_int_equal(symlinkat("own", fd, "root/etc/near"), 0);
    close(fd);
}

typedef int (*opener)(int root, const char *path, int flags, mode_t mode);

static bool opens(opener open_it, int root, const char *path, int flags)
{
    int fd = open_it(root, path, flags, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void no_link_leads_out_of_a_root(void **state)
{
    static const opener openers[] = {file_open_in_root, file_open_in_root_by_steps};
    char folder[32], path[64], command[64];
    make_root(folder);
    snprintf(path, sizeof(path), "%s/root", folder);
    int root = open(path, O_PATH | O_DIRECTORY);
    for (size_t i = 0; i < ARRAY_SIZE(openers); i++) {
        assert_true(opens(openers[i], root, "/etc/own", O_RDONLY | O_NOFOLLOW));
        assert_true(opens(openers[i], root, "/etc", O_PATH | O_DIRECTORY));
        assert_true(opens(openers[i], root, "/", O_PATH | O_DIRECTORY));
        assert_false(opens(openers[i], root, "/etc/up", O_RDONLY));
        /* root/etc/passwd does not exist. */
        assert_false(opens(openers[i], root, "/etc/away", O_RDONLY));
        assert_false(opens(openers[i], root, "/../secret", O_RDONLY));
        assert_false(opens(openers[i], root, "/etc/near", O_RDONLY | O_NOFOLLOW));
        assert_false(opens(openers[i], root, "/folder/passwd", O_RDONLY));
    }
    assert_true(opens(file_open_in_root, root, "/folder/own", O_RDONLY));
    assert_true(opens(file_open_in_root, root, "/etc/near", O_RDONLY));
    close(root);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void only_a_file_of_its_kind_may_be_replaced(void **state)
{
    static const struct {
        const char *text;
        bool foreign;
    } files[] = {{"", false}, {"KI", false}, {"KIND and more", false}, {"KING", true}, {"x", true}};

    char path[] = "/tmp/jvmscope-kind-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        ssize_t n = (ssize_t)strlen(files[i].text);
        assert_int_equal(pwrite(fd, files[i].text, (size_t)n, 0), n);
        assert_int_equal(file_is_foreign(path, "KIND", 4), files[i].foreign);
    }
    close(fd);
    unlink(path);
    assert_false(file_is_foreign(path, "KIND", 4));
    assert_true(file_is_foreign("/tmp", "KIND", 4));
}

static void a_file_appears_whole_or_not_at_all(void **state)
{
    char folder[] = "test-out-XXXXXX", path[64];
    struct stat st;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/out", folder);
    for (int round = 0; round < 2; round++) {
        struct out_file f = OUT_FILE;
        assert_int_equal(out_file_open_private(&f, path), 0);
        FILE *stream = out_file_stream(&f);
        fprintf(stream, "round %d", round);
        fclose(stream);
        assert_int_equal(stat(path, &st), round - 1); /* the previous file, or none */
        assert_int_equal(out_file_commit(&f), 0);
        out_file_release(&f);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 7);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    struct out_file like = OUT_FILE, full = OUT_FILE;
    char other[80];
    snprintf(other, sizeof(other), "%s.other", path);
    assert_int_equal(out_file_open_like(&like, other, path), 0);
    assert_int_equal(out_file_commit(&like), 0);
    out_file_release(&like);
    assert_int_equal(stat(other, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(out_file_open(&full, "/dev/full"), 0);
    FILE *stream = out_file_stream(&full);
    fprintf(stream, "never");
    fclose(stream);
    assert_int_equal(out_file_commit(&full), -ENOSPC);
    out_file_release(&full);
    unlink(other);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else remains */
}

static void names_of_made_classes_mean_the_same_in_every_run(void **state)
{
    static const char *const rows[][2] = {
        {"Shop$$Lambda$14/0x0000000800c031f0", "Shop$$Lambda"},
        {"com/shop/Shop$$Lambda$1/471910020", "com/shop/Shop$$Lambda"},
        {"LShop$$Lambda.0x00007fa170001228;", "LShop$$Lambda;"},
        {"[Lcom/shop/Shop$$Lambda+0x00007fa170001228;", "[Lcom/shop/Shop$$Lambda;"},
        {"Shop$$Lambda$74+0x00007fd9ec007400/1434568", "Shop$$Lambda"},
        {"Shop$$Lambda/0xab[]", "Shop$$Lambda[]"},
        {"Shop$$Lambda$7", "Shop$$Lambda"},
        {"java.lang.invoke.LambdaForm$MH.0x000000007d043400", "java.lang.invoke.LambdaForm$MH"},
        {"sun/reflect/GeneratedMethodAccessor12", "sun/reflect/GeneratedMethodAccessor"},
        {"com.shop.Cart$14", "com.shop.Cart$14"},
        {"com/shop/Cart", "com/shop/Cart"},
        {"a.b0x12.C", "a.b0x12.C"},
        {"Shop$$LambdaShop$1", "Shop$$LambdaShop$1"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s", rows[i][0]);
        name[generated_name_normalize(name, strlen(name))] = 0;
        assert_string_equal(name, rows[i][1]);
        name[generated_name_normalize(name, strlen(name))] = 0;
        assert_string_equal(name, rows[i][1]);
    }
    size_t host = 0;
    assert_true(generated_name_is_anonymous("a/B/1234", 8));
    assert_false(generated_name_is_anonymous("a/B/", 4) || generated_name_is_anonymous("1234", 4) ||
                 generated_name_is_anonymous("a/B12", 5) ||
                 generated_name_is_anonymous("a/B/0x12", 8));
    assert_true(generated_name_is_lambda("a/B$$Lambda$3/0x12", 18, &host) && host == 3);
    assert_false(generated_name_is_lambda("a/B$$LambdaMaker", 16, &host) ||
                 generated_name_is_lambda("a/B", 3, &host));
    assert_true(generated_name_is_agents("java/lang/JvmscopeTrace", 23) &&
                generated_name_is_agents("java.lang.JvmscopeTrace", 23) &&
                generated_name_is_agents("jvmscope.Binder", 15));
    assert_false(generated_name_is_agents("java/lang/Jvm", 13) ||
                 generated_name_is_agents("com/shop/JvmscopeTrace", 22));
    assert_true(generated_name_is_agents_library("libhprof.so.start", 17) &&
                generated_name_is_agents_library("memfd:.jvmscope-1.2.3.so.f", 26) &&
                generated_name_is_agents_library(".jvmscope-1.so.f", 16));
    assert_false(generated_name_is_agents_library("libhprof", 8) ||
                 generated_name_is_agents_library("libjvm.so.start", 15));
}

static void names_of_class_files_become_those_of_sources(void **state)
{
    static const struct {
        const char *internal, *name;
        bool shorter;
    } rows[] = {
        {"java/lang/String", "java.lang.String", false},
        {"[Ljava/lang/String;", "java.lang.String[]", false},
        {"[[I", "int[][]", false},
        {"[Z", "boolean[]", false},
        {"I", "I", false}, /* a class without a package */
        {"[LI;", "I[]", false},
        {"[La/B$$Lambda$3/0x12;", "a.B$$Lambda[]", true},
        {"a/B$$Lambda$3/0x12", "a.B$$Lambda", true},
        {"[", "[]", false},
        {"", "", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf b = BUF(100);
        buf_string(&b, "x ");
        assert_int_equal(
            class_name_put(&b, (struct str){rows[i].internal, strlen(rows[i].internal)}),
            rows[i].shorter);
        assert_string_equal(buf_str(&b) + 2, rows[i].name);
        buf_release(&b);
    }
    static const char letters[] = "ZBCSIJFDV";
    for (int c = -128; c < 128; c++)
        assert_int_equal(!!class_name_primitive((char)c), c && strchr(letters, c));
}

static void a_proxy_is_called_by_its_interfaces(void **state)
{
    static const char *const rows[][2] = {
        {"jdk/proxy12/$Proxy34", "jdk/proxy/$Proxy"},
        {"Lcom/sun/proxy/$Proxy3;", "Lcom/sun/proxy/$Proxy;"},
        {"$Proxy0", "$Proxy"},
        {"L$Proxy0;", "L$Proxy;"},
        {"com/jdk/proxy3/$Proxy4", "com/jdk/proxy3/$Proxy"},
        {"com/shop/My$Proxy0", "com/shop/My$Proxy0"},
        {"com/shop/$Proxy0$Impl", "com/shop/$Proxy0$Impl"},
    };
    struct generated_target t = {0};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s", rows[i][0]);
        assert_int_equal(generated_name_is_proxy(name, strlen(name)),
                         strcmp(rows[i][0], rows[i][1]) != 0);
        name[generated_name_normalize_for(name, strlen(name), &t)] = 0;
        assert_string_equal(name, rows[i][0]); /* no interface is known */
    }
    generated_target_implements(&t, (struct str){"com/shop/Order", 14});
    generated_target_implements(&t, (struct str){"Named", 5});
    assert_string_equal(t.text, "Order,Named");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s", rows[i][0]);
        name[generated_name_normalize_for(name, strlen(name), &t)] = 0;
        assert_string_equal(name, rows[i][1]);
    }
}

static void consider(struct generated_target *t, const char *class, const char *method)
{
    static const struct str host = {"a/Shop", 6};
    generated_target_consider(t, host, (struct str){class, strlen(class)},
                              (struct str){method, strlen(method)});
}

static void a_lambda_stands_for_the_method_that_its_class_calls(void **state)
{
    struct generated_target t = {0};
    consider(&t, "java/lang/Object", "<init>");
    consider(&t, "a/Shop$$Lambda$3", "<init>");
    assert_string_equal(t.text, "");
    consider(&t, "java/lang/Integer", "valueOf");
    assert_string_equal(t.text, "Integer::valueOf");
    consider(&t, "java/util/ArrayList", "<init>");
    assert_string_equal(t.text, "ArrayList::new");
    consider(&t, "a/Shop", "lambda$main$0");
    consider(&t, "java/lang/Integer", "intValue");
    assert_string_equal(t.text, "lambda$main$0");
}

/* Each bucket begins where the one before it ends, and is narrow enough for two digits. */
static void buckets_of_latencies_touch_and_are_narrow(void **state)
{
    uint32_t last = latency_bucket(UINT64_MAX);
    assert_true(last < LATENCY_BUCKETS);
    for (uint32_t i = 0; i <= last; i++) {
        uint64_t least = latency_least_ns(i), next = latency_least_ns(i + 1);
        assert_int_equal(latency_bucket(least), i);
        assert_int_equal(latency_bucket(least + 999), i);
        if (i > 0)
            assert_int_equal(latency_bucket(least - 1), i - 1);
        if (i >= 128 && i < last)
            assert_true((next - least) * 64 <= least);
    }
    assert_int_equal(latency_bucket(0), 0);
    assert_int_equal(latency_bucket(127999), 127);
    assert_int_equal(latency_bucket(128000), 128);
    assert_int_equal(latency_least_ns(UINT32_MAX), UINT64_MAX);
}

/* Returns the process's memory in pages, as Linux counts it. */
static uint64_t pages_in_memory(void)
{
    uint64_t all = 0, in_memory = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%" SCNu64 " %" SCNu64, &all, &in_memory), 2);
    fclose(f);
    return in_memory;
}

/*
 * Returns how many of 1,000 pages that are only read need memory of their own: none where Linux
 * maps its page of zeros, all where it does not, as in some virtual machines.
 */
static uint64_t own_pages_of_1000(size_t page)
{
    char *p = mmap(NULL, 1000 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(madvise(p, 1000 * page, MADV_NOHUGEPAGE), 0);
    uint64_t before = pages_in_memory();
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(((volatile char *)p)[i * page], 0);
    uint64_t own = pages_in_memory() - before;
    munmap(p, 1000 * page);
    return own;
}

static void memory_that_was_touched_is_counted_until_it_is_freed(void **state)
{
    enum { BYTES = 40 << 20 };

    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)pages_in_memory();                /* allocates what it needs */
    uint64_t own = own_pages_of_1000(page); /* Linux may count some later */
    assert_true(own < 100 || own > 900);
    uint64_t touched = 101 + (own > 900 ? 49 : 0); /* of the 50 that are read, one was written */
    uint64_t before = mapped_resident();
    char *lazy = mapped_new(BYTES);
    assert_non_null(lazy);
    assert_int_equal(madvise(lazy, BYTES, MADV_NOHUGEPAGE), 0);
    assert_int_equal(mapped_resident(), before);
    for (size_t i = 0; i < 100; i++)
        lazy[i * (BYTES / 100)] = 1;
    lazy[BYTES - 1] = 1;
    assert_int_equal(mapped_resident(), before + 101 * page);
    /* Pages that are only read usually need no memory of their own. */
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(((volatile char *)lazy)[BYTES - (i + 1) * page], 0);
    assert_int_equal(mapped_resident(), before + touched * page);
    char *present = mapped_new_huge(1 << 20);
    assert_non_null(present);
    assert_int_equal((uintptr_t)present % (1 << 20), 0);
    assert_int_equal(mapped_resident(), before + touched * page);
    memset(present, 1, 1 << 20);
    assert_int_equal(mapped_resident(), before + touched * page + (1 << 20));
    mapped_free(lazy, BYTES);
    assert_int_equal(mapped_resident(), before + (1 << 20));
    mapped_free(present, 1 << 20);
    mapped_free(NULL, 1 << 20);
    assert_int_equal(mapped_resident(), before);
}

static void every_table_is_counted_and_may_shrink(void **state)
{
    enum { TABLES = 1000 };

    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t before = mapped_resident();
    static char *tables[TABLES];
    for (size_t i = 0; i < TABLES; i++) {
        assert_non_null(tables[i] = mapped_new(4 * page));
        tables[i][0] = tables[i][3 * page] = 1;
    }
    assert_int_equal(mapped_resident(), before + 2 * TABLES * page);
    for (size_t i = 0; i < TABLES; i += 2)
        mapped_shrink(tables[i], 4 * page, page);
    assert_int_equal(mapped_resident(), before + (TABLES / 2 + TABLES) * page);
    for (size_t i = 0; i < TABLES; i++)
        mapped_free(tables[i], i % 2 ? 4 * page : page);
    assert_int_equal(mapped_resident(), before);
}

static void *own_id(void *ret)
{
    *(pid_t *)ret = gettid();
    return NULL;
}

static void an_ended_thread_has_used_no_time(void **state)
{
    pthread_t thread;
    pid_t id;
    assert_int_equal(pthread_create(&thread, NULL, own_id, &id), 0);
    pthread_join(thread, NULL);
    while (tgkill(getpid(), id, 0) == 0)
        sched_yield();
    /* The clock of a thread's CPU time, as in slot_clock. */
    for (int i = 0; i < 10; i++)
        assert_int_equal(clock_ns((clockid_t)(~(unsigned)id << 3 | 6)), 0);
}

static int calls;

static int next(void)
{
    return ++calls;
}

static void the_smaller_and_the_larger_are_computed_once(void **state)
{
    assert_int_equal(MIN(next(), 5), 1);
    assert_int_equal(MIN(5, next()), 2);
    assert_int_equal(MAX(next(), 1), 3);
    assert_int_equal(MAX(1, next()), 4);
    assert_int_equal(MAX(MIN(next(), 9), MIN(2, 3)), 5);
    assert_true(MIN(-1, 0u) == 0 && MAX(1, 0.5) == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_file_of_its_kind_may_be_replaced),
        cmocka_unit_test(an_ended_thread_has_used_no_time),
        cmocka_unit_test(the_smaller_and_the_larger_are_computed_once),
        cmocka_unit_test(a_capture_is_idle_when_its_calls_have_ended),
        cmocka_unit_test(map_agrees_with_a_plain_array),
        cmocka_unit_test(an_element_is_that_of_the_sorted_numbers),
        cmocka_unit_test(texts_of_either_encoding_are_equal),
        cmocka_unit_test(strpool_numbers_strings_once),
        cmocka_unit_test(numbers_survive_writing_and_reading),
        cmocka_unit_test(whole_numbers_compare_exactly_and_floats_as_they_are_shown),
        cmocka_unit_test(a_buffer_keeps_to_its_limit),
        cmocka_unit_test(durations_and_sizes),
        cmocka_unit_test(buckets_of_latencies_touch_and_are_narrow),
        cmocka_unit_test(json_values_end_where_they_end),
        cmocka_unit_test(json_is_always_valid_text),
        cmocka_unit_test(arena_allocations_do_not_overlap),
        cmocka_unit_test(memory_that_was_touched_is_counted_until_it_is_freed),
        cmocka_unit_test(every_table_is_counted_and_may_shrink),
        cmocka_unit_test(no_link_leads_out_of_a_root),
        cmocka_unit_test(a_file_appears_whole_or_not_at_all),
        cmocka_unit_test(names_of_made_classes_mean_the_same_in_every_run),
        cmocka_unit_test(names_of_class_files_become_those_of_sources),
        cmocka_unit_test(a_proxy_is_called_by_its_interfaces),
        cmocka_unit_test(a_lambda_stands_for_the_method_that_its_class_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
