/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that stand for others: how many there really are, and how far their sums may be off. */
#include "tests.h"

#include "base/clock.h"
#include "jfr/writer.h"
#include "page/data.h"
#include "profile/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    *ret = (struct jfr_method){.class.name = "C", .name = "m", .descriptor = "()V"};
    return 0;
}

static const struct jfr_type budget = {
    .name = "jvmscope.Budget",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"what", "", "java.lang.String"}, {"oneOf", "", "int"})};

/*
 * Writes n samples of two threads in turn, each of them as `weight` equal events; thinned: because
 * the budget left out the others, and not because the sampler was late.
 */
static void make(char name[40], unsigned n, unsigned weight, bool thinned)
{
    uint32_t id;
    struct jfr_writer_options options = {.resolver.method = name_method, .slots = 1};
    struct jfr_frame frame = {.method = 1, .type = JFR_FRAME_JIT};
    struct jfr_writer *w;
    strcpy(name, "test-load-thinned-XXXXXX");
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    uint64_t t0 = now_ns();
    assert_int_equal(jfr_writer_open(&w, name, &options), 0);
    assert_int_equal(jfr_declare(w, &budget, 1, &id), 0);
    uint64_t stack = jfr_trace(w, &frame, 1, false);
    if (thinned) {
        struct jfr_event e;
        assert_true(jfr_begin(w, id, 0, &e));
        jfr_put_time(&e, t0);
        jfr_put_string(&e, "CPU samples");
        jfr_put_int(&e, 16);
        jfr_commit(&e);
    }
    for (unsigned i = 0; i < n * weight; i++) {
        struct jfr_event e;
        unsigned sample = i / weight;
        assert_true(jfr_begin(w, JFR_EXECUTION_SAMPLE, 0, &e));
        jfr_put_time(&e, t0 + sample / 2 * 10 * NS_PER_MS); /* both threads at the same time */
        jfr_put_long(&e, 1 + sample % 2);
        jfr_put_long(&e, (int64_t)stack);
        jfr_put_long(&e, 1);
        jfr_commit(&e);
    }
    assert_int_equal(jfr_writer_close(w), 0);
    jfr_writer_free(w);
}

/* Returns the weight below which the page marks a row. */
static uint64_t page_marks_below(const struct profile *p)
{
    static const char key[] = "\"rough_below\":";
    _cleanup_(buf_release) struct buf data = BUF(1 << 20);
    struct json j = {.out = &data};
    json_begin_object(&j);
    assert_int_equal(page_profile_json(&j, p, &(struct profile_filter){0}, NULL, NULL), 0);
    json_end_object(&j);
    const char *at = strstr(buf_str(&data), key);
    assert_non_null(at);
    return strtoull(at + sizeof(key) - 1, NULL, 10);
}

static void check(unsigned n, unsigned weight, bool thinned, enum load_detail detail)
{
    _cleanup_(buf_release) struct buf why = BUF(1000);
    char name[40];
    struct profile *p;
    struct profile_view v;
    make(name, n, weight, thinned);
    assert_int_equal(profile_load(&p, name, detail, NULL, &why, NULL, NULL), 0);
    assert_int_equal(profile_view_init(&v, p, PROFILE_CPU, &(struct profile_filter){0}), 0);
    assert_int_equal(v.weight, n * weight);
    assert_int_equal(profile_kept(&v), thinned ? n : 0);
    /* a sample of weight w has the variance w^2 */
    if (thinned)
        assert_true(fabs(profile_standard_error(&v) / (weight * sqrt(n)) - 1) < 0.001);
    assert_int_equal(profile_least_weight(&v), thinned ? FEWEST_READINGS * weight : 0);
    if (detail == LOAD_CELLS)
        assert_int_equal(page_marks_below(p), profile_least_weight(&v));
    profile_view_release(&v);
    profile_free(p);
    unlink(name);
}

static void samples_that_stand_for_others_are_counted_once(void **state)
{
    for (int detail = LOAD_SAMPLES; detail <= LOAD_CELLS; detail++)
        for (unsigned weight = 1; weight <= 16; weight *= 2) {
            check(40, weight, true, (enum load_detail)detail);
            check(3, weight, true, (enum load_detail)detail);
            check(40, weight, false, (enum load_detail)detail);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_that_stand_for_others_are_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
