/* SPDX-License-Identifier: Apache-2.0 */
/* What recorders say that they lost or left out, ours and the JDK's, in the words of reports. */
#include "tests.h"

#include "base/clock.h"
#include "jfr/losses.h"
#include "jfr/writer.h"
#include "profile/losses.h"

#include <stdlib.h>
#include <unistd.h>

/* With the JDK's fields. */
static const struct jfr_type types[] = {
    {.name = "jdk.CPUTimeSamplesLost",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"lostSamples", "", "int"})},
    {.name = "jdk.DataLoss",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"amount", "", "long"}, {"total", "", "long"})},
    {.name = "jvmscope.LeftOut",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"type", "", "java.lang.String"}, {"events", "", "long"})},
    {.name = "jvmscope.Missing",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"capture", "", "java.lang.String"}, {"what", "", "java.lang.String"},
                          {"reason", "", "java.lang.String"})},
};

enum { CPU, DATA, LEFT_OUT, MISSING };

struct fixture {
    char name[32];
    struct jfr_writer *w;
    uint32_t ids[ARRAY_SIZE(types)];
    struct losses l;
};

static void begin(struct fixture *f)
{
    struct jfr_writer_options options = {0};
    *f = (struct fixture){.name = "test-losses-XXXXXX"};
    close(mkstemp(f->name));
    assert_int_equal(jfr_writer_open(&f->w, f->name, &options), 0);
    assert_int_equal(jfr_declare(f->w, types, ARRAY_SIZE(types), f->ids), 0);
}

static void put(struct fixture *f, int type, const char *text, int64_t a, int64_t b)
{
    struct jfr_event e;
    assert_true(jfr_begin_growing(f->w, f->ids[type], 0, &e));
    jfr_put_time(&e, now_ns());
    if (text)
        jfr_put_string(&e, text);
    jfr_put_long(&e, a);
    if (type == DATA)
        jfr_put_long(&e, b);
    jfr_commit(&e);
}

static void read_back(struct fixture *f)
{
    struct recording *r;
    const char *why;
    assert_int_equal(jfr_writer_close(f->w), 0);
    jfr_writer_free(f->w);
    assert_int_equal(recording_open(&r, f->name, &why), 0);
    assert_int_equal(losses_read(&f->l, r, true), 0);
    recording_close(r);
    unlink(f->name);
}

static void assert_begins(const struct loss *loss, const struct losses *l, const char *text)
{
    struct buf sentence = BUF(4096);
    loss_sentence(l, loss, &sentence);
    assert_memory_equal(buf_str(&sentence), text, strlen(text));
    buf_release(&sentence);
}

static void the_losses_of_the_jdk_are_reported(void **state)
{
    struct fixture f;
    struct buf json = BUF(1 << 16);
    begin(&f);
    put(&f, CPU, NULL, 2, 0);
    put(&f, CPU, NULL, 1, 0);
    put(&f, DATA, NULL, 4096, 4096);
    read_back(&f);
    assert_int_equal(f.l.rows.len, 2);
    assert_begins(&f.l.rows.data[0], &f.l, "cpu: 3 samples were lost between ");
    assert_begins(&f.l.rows.data[1], &f.l, "recording: 4096 bytes were lost between ");
    struct json j = {.out = &json};
    json_begin_object(&j);
    losses_json(&f.l, losses_of_profile, &j);
    json_end_object(&j);
    assert_non_null(strstr(buf_str(&json), "\"lost\":4099,\"lost_here\":4099,"));
    buf_release(&json);
    losses_release(&f.l);
}

static void what_the_system_did_not_permit_is_reported_once(void **state)
{
    struct fixture f;
    struct buf text = BUF(4096), json = BUF(1 << 16);
    struct losses both = {0};
    begin(&f);
    for (int i = 0; i < 2; i++) {
        struct jfr_event e;
        assert_true(jfr_begin_growing(f.w, f.ids[MISSING], 0, &e));
        jfr_put_time(&e, now_ns());
        jfr_put_string(&e, "cpu");
        jfr_put_string(&e, "no kernel frames");
        jfr_put_string(&e, "refused");
        jfr_commit(&e);
    }
    read_back(&f);
    assert_int_equal(losses_merge(&both, &f.l), 0);
    assert_int_equal(losses_merge(&both, &f.l), 0);
    assert_int_equal(both.missing.len, 1);
    losses_missing_sentence(&both.missing.data[0], &text);
    assert_string_equal(buf_str(&text), "cpu: no kernel frames: refused");
    struct json j = {.out = &json};
    json_begin_object(&j);
    losses_json(&both, NULL, &j);
    json_end_object(&j);
    assert_non_null(strstr(buf_str(&json), "\"lost\":0,"));
    assert_non_null(strstr(buf_str(&json), "\"missing\":[{\"capture\":\"cpu\","));
    buf_release(&json);
    buf_release(&text);
    losses_release(&both);
    losses_release(&f.l);
}

/*
 * A loss has the times of what was lost if they are known, however late it is counted, and
 * otherwise a span that begins before them.
 */
static void a_loss_has_the_time_of_what_was_lost(void **state)
{
    struct fixture f;
    int64_t offset = (int64_t)(clock_ns(CLOCK_REALTIME) - now_ns());
    begin(&f);
    usleep(20000);
    uint64_t made = now_ns();
    usleep(20000);
    uint64_t last = now_ns();
    for (int i = 0; i < 3; i++) { /* several reports, all of them later */
        usleep(110000);
        assert_int_equal(jfr_writer_work(f.w), 0);
        jfr_lose_event_at(f.w, f.ids[CPU], made + (uint64_t)i, last - 2 + (uint64_t)i);
        jfr_lose_at(f.w, LOSS_TRACE_LATE, made + (uint64_t)i);
        jfr_lose_events(f.w, JFR_OBJECT_ALLOCATION_SAMPLE, 1);
        jfr_lose_held(f.w, HELD_BYTES, 8);
    }
    read_back(&f);
    assert_int_equal(f.l.rows.len, 4);
    for (size_t i = 0; i < f.l.rows.len; i++) {
        const struct loss *row = &f.l.rows.data[i];
        bool calls = strcmp(row->capture, "trace") == 0, sum = strcmp(row->capture, "alloc") == 0;
        int64_t from = row->from_ns - offset, to = row->to_ns - offset,
                until = (int64_t)(calls ? made + 2 : last), apart = NS_PER_MS;
        assert_int_equal(row->amount, strcmp(row->what, "bytes") == 0 ? 24 : 3);
        assert_true(sum ? from <= (int64_t)made - 15 * apart
                        : from >= (int64_t)made - apart && from <= (int64_t)made + apart);
        assert_true(sum ? to >= until : to >= until - apart && to <= until + apart);
    }
    losses_release(&f.l);
}

static void what_was_left_out_is_one_sentence(void **state)
{
    struct fixture f;
    struct buf text = BUF(4096);
    struct losses both = {0};
    begin(&f);
    put(&f, LEFT_OUT, "jdk.ExecutionSample", 32, 0);
    put(&f, LEFT_OUT, "jdk.ThreadPark", 4, 0);
    read_back(&f);
    assert_int_equal(f.l.rows.len, 0);
    assert_int_equal(losses_merge(&both, &f.l), 0);
    assert_int_equal(losses_merge(&both, &f.l), 0);
    assert_true(losses_left_out_sentence(&both, &text));
    assert_string_equal(buf_str(&text),
                        "64 jdk.ExecutionSample and 8 jdk.ThreadPark events of the VM's own "
                        "recorder were left out: jvmscope recorded the same itself");
    buf_release(&text);
    losses_release(&both);
    losses_release(&f.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_losses_of_the_jdk_are_reported),
        cmocka_unit_test(what_the_system_did_not_permit_is_reported_once),
        cmocka_unit_test(a_loss_has_the_time_of_what_was_lost),
        cmocka_unit_test(what_was_left_out_is_one_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
