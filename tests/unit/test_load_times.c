/* SPDX-License-Identifier: Apache-2.0 */
/* Times of counted calls that become negative when the cost of the probes is subtracted. */
#include "tests.h"

#include "base/clock.h"
#include "jfr/writer.h"
#include "profile/load.h"

#include <stdlib.h>
#include <unistd.h>

static const struct jfr_type type = {.name = "jvmscope.CallTimes",
                                     .kind = JFR_EVENT,
                                     .has = JFR_HAS_THREAD | JFR_HAS_STACK,
                                     .fields = JFR_FIELDS({"calls", "", "long"},
                                                          {"selfTime", "", "long", JFR_NANOS},
                                                          {"rawSelfTime", "", "long", JFR_NANOS},
                                                          {"openTime", "", "long", JFR_NANOS})};

/* A method of a stack: "ba" is b, called by a. "": CPU time without a stack and a call. */
struct call {
    const char *stack;
    int64_t self_ns, open_ns;
    int64_t settled_ns; /* its expected time */
};

enum { MOST = 6 };

static int name_method(void *context, uint64_t method, uint32_t kind, struct jfr_method *ret)
{
    static char names[256][2];
    names[method & 255][0] = (char)method;
    *ret = (struct jfr_method){.class.name = "C", .name = names[method & 255], .descriptor = "()V"};
    return 0;
}

static void put(struct jfr_writer *w, uint32_t id, const struct call *c)
{
    struct jfr_frame frames[MOST];
    uint32_t n = 0;
    for (; c->stack[n]; n++)
        frames[n] = (struct jfr_frame){.method = (uint8_t)c->stack[n], .type = JFR_FRAME_JIT};
    uint64_t stack = n ? jfr_trace(w, frames, n, false) : 0;
    struct jfr_event e;
    assert_true(jfr_begin(w, id, 0, &e));
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, 1);
    jfr_put_long(&e, (int64_t)stack);
    jfr_put_long(&e, n ? 1 : 0);
    jfr_put_long(&e, c->self_ns);
    jfr_put_long(&e, c->self_ns);
    jfr_put_long(&e, c->open_ns);
    jfr_commit(&e);
}

static struct profile *loaded(const struct call *calls, size_t n)
{
    char name[] = "/tmp/test-load-times-XXXXXX";
    struct jfr_writer_options options = {.resolver.method = name_method, .slots = 1};
    struct jfr_writer *w;
    uint32_t id;
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(jfr_writer_open(&w, name, &options), 0);
    assert_int_equal(jfr_declare(w, &type, 1, &id), 0);
    for (size_t i = 0; i < n; i++)
        put(w, id, &calls[i]);
    assert_int_equal(jfr_writer_close(w), 0);
    jfr_writer_free(w);
    _cleanup_(buf_release) struct buf why = BUF(1000);
    struct profile *p;
    assert_int_equal(profile_load(&p, name, LOAD_SUMS, NULL, &why, NULL, NULL), 0);
    unlink(name);
    return p;
}

/* The rows of calls and the weights of the view must agree. */
static void check(const struct call *calls, size_t n)
{
    _cleanup_(profile_freep) struct profile *p = loaded(calls, n);
    _cleanup_(profile_view_release) struct profile_view v = {0};
    uint64_t sum = 0, open = 0;
    assert_int_equal(p->calls.len, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(p->calls.data[i].self_ns, calls[i].settled_ns);
        assert_true(p->calls.data[i].open_ns <= p->calls.data[i].self_ns);
        sum += (uint64_t)calls[i].settled_ns;
        open += (uint64_t)p->calls.data[i].open_ns;
    }
    assert_int_equal(profile_view_init(&v, p, PROFILE_EXACT, NULL), 0);
    assert_int_equal(v.weight, sum);
    assert_int_equal(v.open, open);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(v.self[p->calls.data[i].node],
                         calls[i].settled_ns - p->calls.data[i].open_ns);
}

static void a_caller_bears_what_is_below_zero(void **state)
{
    const struct call calls[] = {{"a", 100, 0, 70}, {"ba", -30, 0, 0}, {"ca", 5, 0, 5}};
    check(calls, ARRAY_SIZE(calls));
    /* The next caller that was counted, if the direct caller was not. */
    const struct call deep[] = {{"a", 100, 0, 60}, {"dcba", -40, 0, 0}};
    check(deep, ARRAY_SIZE(deep));
    /* If that makes the caller negative, its caller is next. */
    const struct call chain[] = {{"a", 100, 0, 55}, {"ba", 10, 0, 0}, {"cba", -55, 0, 0}};
    check(chain, ARRAY_SIZE(chain));
}

/* Calls from elsewhere do not share the cost of the probes of these calls. */
static void what_no_caller_can_bear_is_left_out(void **state)
{
    const struct call calls[] = {{"a", 10, 0, 0}, {"ba", -60, 0, 0}, {"ca", 900, 0, 900}};
    check(calls, ARRAY_SIZE(calls));
    const struct call more[] = {{"a", -100, 0, 0}, {"ba", 60, 0, 60}, {"c", 30, 0, 30}};
    check(more, ARRAY_SIZE(more));
}

static void open_time_is_part_of_the_own(void **state)
{
    const struct call calls[] = {{"a", 100, 90, 70}, {"ba", -30, 0, 0}};
    check(calls, ARRAY_SIZE(calls));
}

static void calls_without_time_are_there(void **state)
{
    const struct call calls[] = {{"a", 0, 0, 0}, {"ba", -7, 0, 0}};
    check(calls, ARRAY_SIZE(calls));
}

/* Numbers of a damaged or forged file. */
static void any_numbers_can_be_read(void **state)
{
    const struct call calls[] = {{"a", INT64_MAX, INT64_MAX, 0},
                                 {"ba", INT64_MIN, 5, 0},
                                 {"c", INT64_MIN, INT64_MIN, 0},
                                 {"d", INT64_MAX, -1, 0},
                                 {"ed", INT64_MIN, 0, 0}};
    _cleanup_(profile_freep) struct profile *p = loaded(calls, ARRAY_SIZE(calls));
    for (size_t i = 0; i < p->calls.len; i++)
        assert_true(p->calls.data[i].self_ns >= p->calls.data[i].open_ns);
}

/* Each event has the difference from the one before. Time that methods have got is not left. */
static void time_without_a_reading_is_a_row_while_there_is_any(void **state)
{
    const struct call calls[] = {{"a", 100, 0, 100}, {"", 30, 0, 0}, {"", -10, 0, 0}};
    _cleanup_(profile_freep) struct profile *p = loaded(calls, ARRAY_SIZE(calls));
    assert_int_equal(p->calls.len, 2);
    const struct profile_calls *c = &p->calls.data[1];
    const struct profile_method *m = &p->methods.data[profile_node_frame(p, c->node)->method];
    assert_string_equal(profile_text(p, m->label).data, PROFILE_UNREAD);
    assert_int_equal(c->calls, 0);
    assert_int_equal(c->self_ns, 20);

    const struct call none[] = {{"a", 100, 0, 100}, {"", 30, 0, 0}, {"", -30, 0, 0}};
    _cleanup_(profile_freep) struct profile *q = loaded(none, ARRAY_SIZE(none));
    assert_int_equal(q->calls.len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_bears_what_is_below_zero),
        cmocka_unit_test(what_no_caller_can_bear_is_left_out),
        cmocka_unit_test(open_time_is_part_of_the_own),
        cmocka_unit_test(calls_without_time_are_there),
        cmocka_unit_test(any_numbers_can_be_read),
        cmocka_unit_test(time_without_a_reading_is_a_row_while_there_is_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
