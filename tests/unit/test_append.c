/* SPDX-License-Identifier: Apache-2.0 */
/* What is appended to a recording is unchanged, by the recording's clock. */
#include "tests.h"

#include "base/clock.h"
#include "jfr/append.h"
#include "jfr/reader.h"
#include "jfr/writer.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct jfr_type types[] = {
    {.name = "test.Lasts",
     .kind = JFR_EVENT,
     .has = JFR_DURATION,
     .fields = JFR_FIELDS({"number", "", "long"}, {"name", "", "java.lang.String"},
                          {"when", "", "long", JFR_TICKS_STAMP}, {"last", "", "int"})},
    {.name = "test.Plain", .kind = JFR_EVENT, .fields = JFR_FIELDS({"number", "", "long"})},
};

enum { EVENTS = 20000, HEAD_SIZE_AT = 8, HEAD_HZ_AT = 56 };

static void make(char *name, int64_t first)
{
    struct jfr_writer_options options = {.chunk_bytes = 1 << 20};
    struct jfr_writer *w;
    uint32_t ids[ARRAY_SIZE(types)];
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(jfr_writer_open(&w, name, &options), 0);
    assert_int_equal(jfr_declare(w, types, ARRAY_SIZE(types), ids), 0);
    for (int64_t i = first; i < first + EVENTS; i++) {
        struct jfr_event e;
        uint64_t now = now_ns();
        assert_true(jfr_begin_growing(w, ids[i % 2], 0, &e));
        jfr_put_time(&e, now);
        if (i % 2 == 0)
            jfr_put_long(&e, i * 1000);
        jfr_put_long(&e, i);
        if (i % 2 == 0) {
            jfr_put_string(&e, "a name");
            jfr_put_time(&e, now);
            jfr_put_long(&e, i % 7);
        }
        jfr_commit(&e);
    }
    assert_int_equal(jfr_writer_close(w), 0);
    jfr_writer_free(w);
}

/* Gives a file's chunks another clock. */
static void set_clock(const char *name, uint64_t hz)
{
    int fd = open(name, O_RDWR);
    uint64_t value = htobe64(hz), size;
    for (off_t at = 0; pread(fd, &size, sizeof(size), at + HEAD_SIZE_AT) == sizeof(size);
         at += (off_t)be64toh(size))
        assert_int_equal(pwrite(fd, &value, sizeof(value), at + HEAD_HZ_AT), sizeof(value));
    close(fd);
}

static struct recording *open_file(const char *name)
{
    struct recording *r;
    const char *why;
    assert_int_equal(recording_open(&r, name, &why), 0);
    return r;
}

static off_t size_of(const char *name)
{
    struct stat st;
    assert_int_equal(stat(name, &st), 0);
    return st.st_size;
}

static const struct rec_select nothing[] = {{0}};

static int append(const char *to, const char *from, const struct rec_select *without)
{
    int to_fd = open(to, O_RDWR), from_fd = open(from, O_RDONLY);
    assert_true(to_fd >= 0 && from_fd >= 0);
    int r = jfr_append(to_fd, from_fd, without);
    close(to_fd);
    close(from_fd);
    return r;
}

/* Checks that the events of a recording from an offset on are those of another file. */
static void compare(struct recording *all, struct recording *before, uint64_t offset)
{
    struct rec_event e, b;
    int n = 0;
    while (recording_next(before, &b) == 1) {
        do
            assert_int_equal(recording_next(all, &e), 1);
        while (e.offset < offset);
        assert_string_equal(e.object.type->name, b.object.type->name);
        /* converted twice: to whole ticks of the other clock, and back */
        assert_in_range(e.start_ns - b.start_ns + 2, 0, 4);
        assert_in_range(e.duration_ns - b.duration_ns + 2, 0, 4);
        if (strncmp(b.object.type->name, "test.", 5) != 0)
            continue;
        n++;
        assert_int_equal(rec_long(&e.object, "number", -1), rec_long(&b.object, "number", -2));
        if (strcmp(b.object.type->name, "test.Lasts") != 0)
            continue;
        assert_string_equal(rec_string(&e.object, "name", ""), rec_string(&b.object, "name", "?"));
        assert_int_equal(rec_long(&e.object, "last", -1), rec_long(&b.object, "last", -2));
        assert_in_range(rec_ns(&e.object, "when", 0) - rec_ns(&b.object, "when", 1) + 2, 0, 4);
    }
    assert_int_equal(n, EVENTS);
    assert_int_equal(recording_next(all, &e), 0);
}

static void events_stay_as_they_are(void **state)
{
    static const uint64_t clocks[] = {1000000000, 2100000000, 24000000};
    for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
        char ours[] = "test-append-XXXXXX", other[] = "test-append-XXXXXX";
        make(ours, 0);
        make(other, EVENTS);
        set_clock(other, clocks[i]);
        off_t own = size_of(ours);
        assert_int_equal(append(ours, other, nothing), 0);
        /* what was appended, as a file of its own and as part of the recording */
        struct recording *all = open_file(ours), *before = open_file(other);
        compare(all, before, (uint64_t)own);
        recording_close(before);
        recording_close(all);
        unlink(ours);
        unlink(other);
    }
}

static void types_are_left_out(void **state)
{
    static const struct rec_select plain[] = {{"test.Plain", 0}, {0}};
    char ours[] = "test-append-XXXXXX", other[] = "test-append-XXXXXX";
    struct rec_event e;
    int lasts = 0, others = 0;
    make(ours, 0);
    make(other, EVENTS);
    off_t own = size_of(ours);
    assert_int_equal(append(ours, other, plain), 0);
    struct recording *all = open_file(ours);
    while (recording_next(all, &e) == 1)
        if (e.offset >= (uint64_t)own) {
            lasts += strcmp(e.object.type->name, "test.Lasts") == 0;
            others += strcmp(e.object.type->name, "test.Plain") == 0;
        }
    struct rec_info info;
    recording_info(all, &info);
    assert_false(info.truncated);
    assert_int_equal(lasts, EVENTS / 2);
    assert_int_equal(others, 0);
    recording_close(all);
    unlink(ours);
    unlink(other);
}

static void what_is_no_recording_changes_nothing(void **state)
{
    char ours[] = "test-append-XXXXXX", other[] = "test-append-XXXXXX";
    make(ours, 0);
    int fd = mkstemp(other);
    off_t size = size_of(ours);
    assert_int_equal(append(ours, other, nothing), -EBADMSG);
    assert_int_equal(write(fd, "no recording", 12), 12);
    close(fd);
    assert_int_equal(append(ours, other, nothing), -EBADMSG);
    assert_int_equal(size_of(ours), size);
    unlink(ours);
    unlink(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_stay_as_they_are),
        cmocka_unit_test(types_are_left_out),
        cmocka_unit_test(what_is_no_recording_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
