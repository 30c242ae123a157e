/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that a recording states repeatedly count once, in whichever order they are read. */
#include "tests.h"

#include "base/clock.h"
#include "jfr/writer.h"
#include "profile/load.h"

#include <stdlib.h>
#include <unistd.h>

static const struct jfr_type types[] = {
    {.name = "jvmscope.AllocatedBytes",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"bytes", "", "long"})},
    {.name = "jvmscope.SamplerCost", .kind = JFR_EVENT, .fields = JFR_FIELDS({"lost", "", "long"})},
    {.name = "jvmscope.CallTimesTotal",
     .kind = JFR_EVENT,
     .has = JFR_HAS_THREAD | JFR_HAS_STACK,
     .fields = JFR_FIELDS({"calls", "", "long"}, {"selfTime", "", "long", JFR_NANOS},
                          {"rawSelfTime", "", "long", JFR_NANOS})},
    {.name = "jvmscope.AllocationSite",
     .kind = JFR_EVENT,
     .has = JFR_HAS_THREAD | JFR_HAS_STACK,
     .fields = JFR_FIELDS({"class", "", "java.lang.String"}, {"objects", "", "long"},
                          {"liveObjects", "", "long"}, {"liveKnown", "", "boolean"},
                          {"liveObjectsError", "", "long"})},
};

enum { BYTES, SAMPLER, TOTAL, SITE, TYPES, SAMPLE, MOMENTS = 3, SECOND = 1000 * 1000 * 1000 };

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    *ret = (struct jfr_method){.class.name = "C", .name = "m", .descriptor = "()V"};
    return 0;
}

struct made {
    char name[40];
    struct jfr_writer *w;
    uint32_t ids[TYPES];
    uint64_t stack, t0;
};

/* What is known in second n: n * 1,000 bytes, n lost samples, n calls of n ms, 10 - n errors. */
static void put(struct made *m, int type, uint64_t n)
{
    struct jfr_event e;
    assert_true(jfr_begin(
        m->w, type == SAMPLE ? (uint32_t)JFR_OBJECT_ALLOCATION_SAMPLE : m->ids[type], 0, &e));
    jfr_put_time(&e, m->t0 + n * SECOND);
    if (type != BYTES && type != SAMPLER) {
        jfr_put_long(&e, 1);
        jfr_put_long(&e, (int64_t)m->stack);
    }
    if (type == BYTES)
        jfr_put_long(&e, (int64_t)n * 1000);
    if (type == SAMPLER)
        jfr_put_long(&e, (int64_t)n);
    if (type == TOTAL) {
        jfr_put_long(&e, (int64_t)n);
        jfr_put_long(&e, (int64_t)n * 1000000);
        jfr_put_long(&e, (int64_t)n * 1000000);
    }
    if (type == SITE) {
        jfr_put_string(&e, "C");
        jfr_put_long(&e, 1);
        jfr_put_long(&e, 1);
        jfr_put_byte(&e, n < MOMENTS - 1); /* nothing is known of the last one */
        jfr_put_long(&e, 10 - (int64_t)n);
    }
    if (type == SAMPLE) {
        jfr_put_long(&e, 0);
        jfr_put_long(&e, 2000);
    }
    jfr_commit(&e);
}

/* CPU time that belongs to no method: no calls and no stack. */
static void put_unread(struct made *m, int64_t ns)
{
    struct jfr_event e;
    assert_true(jfr_begin(m->w, m->ids[TOTAL], 0, &e));
    jfr_put_time(&e, m->t0);
    jfr_put_long(&e, 1);
    jfr_put_long(&e, 0);
    jfr_put_long(&e, 0);
    jfr_put_long(&e, ns);
    jfr_put_long(&e, ns);
    jfr_commit(&e);
}

/* unread_ns: 0: there is no such time. */
static void make(struct made *m, const uint64_t *order, bool sites, int64_t unread_ns)
{
    struct jfr_writer_options options = {.resolver.method = name_method, .slots = 1};
    struct jfr_frame frame = {.method = 1, .type = JFR_FRAME_JIT};
    strcpy(m->name, "test-load-order-XXXXXX");
    int fd = mkstemp(m->name);
    assert_true(fd >= 0);
    close(fd);
    m->t0 = now_ns();
    assert_int_equal(jfr_writer_open(&m->w, m->name, &options), 0);
    assert_int_equal(jfr_declare(m->w, types, TYPES, m->ids), 0);
    m->stack = jfr_trace(m->w, &frame, 1, false);
    for (int i = 0; i < MOMENTS; i++)
        for (int type = 0; type < TYPES; type++)
            if (type != SITE || sites)
                put(m, type, order[i]);
    put(m, SAMPLE, MOMENTS - 1);
    if (unread_ns)
        put_unread(m, unread_ns);
    assert_int_equal(jfr_writer_close(m->w), 0);
    jfr_writer_free(m->w);
}

static struct profile *load(const char *name)
{
    _cleanup_(buf_release) struct buf why = BUF(1000);
    struct profile *p;
    assert_int_equal(profile_load(&p, name, LOAD_SAMPLES, NULL, &why, NULL, NULL), 0);
    return p;
}

static const uint64_t orders[][MOMENTS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                           {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static void the_order_does_not_matter(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        struct made m;
        make(&m, orders[i], false, 0);
        struct profile *p = load(m.name);
        assert_int_equal(p->allocated, 2000);
        assert_int_equal(p->sampler.lost, 2);
        assert_int_equal(p->calls.len, 1);
        assert_int_equal(p->calls.data[0].calls, 2);
        assert_int_equal(p->calls.data[0].self_ns, 2000000);
        profile_free(p);
        unlink(m.name);
        make(&m, orders[i], true, 0);
        p = load(m.name);
        assert_int_equal(p->sites.len, 1);
        assert_int_equal(p->sites.data[0].objects, 3);
        assert_int_equal(p->sites.data[0].live_objects_error, 9);
        profile_free(p);
        unlink(m.name);
    }
}

/* The totals of a killed VM include the CPU time that belongs to no method. */
static void time_of_no_method_is_a_total(void **state)
{
    struct made m;
    make(&m, orders[0], false, 7000000);
    struct profile *p = load(m.name);
    int64_t of_method = 0, of_none = 0;
    assert_int_equal(p->calls.len, 2);
    for (size_t i = 0; i < p->calls.len; i++)
        *(p->calls.data[i].calls ? &of_method : &of_none) += p->calls.data[i].raw_ns;
    assert_int_equal(of_method, 2000000);
    assert_int_equal(of_none, 7000000);
    profile_free(p);
    unlink(m.name);
}

/* Recordings that follow each other in one file add up. */
static void recordings_of_one_file_add_up(void **state)
{
    char command[200];
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        struct made m, n;
        make(&m, orders[i], false, 0);
        make(&n, orders[ARRAY_SIZE(orders) - 1 - i], false, 0);
        snprintf(command, sizeof(command), "cat %s >>%s", n.name, m.name);
        assert_int_equal(system(command), 0);
        struct profile *p = load(m.name);
        assert_int_equal(p->allocated, 4000);
        profile_free(p);
        unlink(m.name);
        unlink(n.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_does_not_matter),
        cmocka_unit_test(time_of_no_method_is_a_total),
        cmocka_unit_test(recordings_of_one_file_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
