/* SPDX-License-Identifier: Apache-2.0 */
#include "read_times.h"
#include "tests.h"

#include "base/cursor.h"
#include "base/file_format.h"
#include "hprof/command.h"
#include "hprof/text.h"
#include "hprof/text_reader.h"
#include "hprof/writer.h"

#include <errno.h>

struct memory {
    struct buf bytes;
    size_t refuse_after; /* the sink fails after this many bytes; 0 means never */
    unsigned calls_after_failure;
    bool failed;
};

static int memory_write(void *ctx, const void *bytes, size_t len)
{
    struct memory *m = ctx;
    m->calls_after_failure += m->failed;
    if (m->refuse_after && m->bytes.len + len > m->refuse_after) {
        m->failed = true;
        return -ENOSPC;
    }
    buf_bytes(&m->bytes, bytes, len);
    return 0;
}

#define MEMORY(m) ((struct hprof_sink){memory_write, &(m)})

static struct cursor record(struct cursor *c, unsigned tag, uint32_t time)
{
    assert_int_equal(cursor_u8(c), tag);
    assert_int_equal(cursor_be32(c), time);
    struct cursor body = cursor_sub(c, cursor_be32(c));
    assert_false(body.failed);
    return body;
}

static uint64_t id(struct cursor *c, unsigned size)
{
    return size == 8 ? cursor_be64(c) : cursor_be32(c);
}

static void assert_u4s(struct cursor *c, const uint32_t *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(cursor_be32(c), expected[i]);
}

#define U4S(c, ...)                                  \
    assert_u4s((c), (const uint32_t[]){__VA_ARGS__}, \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void records_are_those_of_the_table(unsigned ids)
{
    struct memory m = {.bytes = BUF(1 << 20)};
    struct hprof_writer w;
    assert_int_equal(hprof_writer_init(&w, MEMORY(m), HPROF_MAGIC_1_0_2, ids, 0x123456789abcULL),
                     0);
    w.time_us = 77;
    const struct hprof_heap_totals totals = {1, 2, 3, 4};
    hprof_utf8(&w, 9, "name", 4);
    hprof_load_class(&w, 1, 2, 3, 4);
    hprof_unload_class(&w, 1);
    hprof_frame(&w, 1, 2, 3, 4, 5, HPROF_LINE_NATIVE);
    hprof_trace(&w, 1, 2, (const uint64_t[]){3, 4}, 2);
    hprof_alloc_sites(&w, 5, 0.5F, &totals, &(struct hprof_site){11, 5, 6, 7, 8, 9, 1ULL << 32}, 1);
    hprof_heap_summary(&w, &totals);
    hprof_start_thread(&w, 1, 2, 3, 4, 5, 6);
    hprof_end_thread(&w, 1);
    hprof_cpu_samples(&w, 10, &(struct hprof_sample){9, 1}, 1);
    hprof_control_settings(&w, 3, 16);
    assert_int_equal(hprof_flush(&w), 0);
    assert_int_equal(w.offset, m.bytes.len);
    assert_int_equal(w.saturated, 1);

    struct cursor c = cursor_of(m.bytes.data, m.bytes.len);
    assert_memory_equal(cursor_take(&c, 19), HPROF_MAGIC_1_0_2, 19);
    U4S(&c, ids, 0x1234, 0x56789abc);
    struct cursor b = record(&c, 0x01, 77);
    assert_int_equal(id(&b, ids), 9);
    assert_int_equal(cursor_left(&b), 4);
    b = record(&c, 0x02, 77);
    U4S(&b, 1);
    assert_int_equal(id(&b, ids), 2);
    U4S(&b, 3);
    assert_int_equal(id(&b, ids), 4);
    b = record(&c, 0x03, 77);
    U4S(&b, 1);
    b = record(&c, 0x04, 77);
    for (unsigned i = 1; i <= 4; i++)
        assert_int_equal(id(&b, ids), i);
    U4S(&b, 5, (uint32_t)-3);
    b = record(&c, 0x05, 77);
    U4S(&b, 1, 2, 2);
    assert_int_equal(id(&b, ids), 3);
    assert_int_equal(id(&b, ids), 4);
    assert_int_equal(cursor_left(&b), 0);
    b = record(&c, 0x06, 77);
    assert_int_equal(cursor_be16(&b), 5);
    U4S(&b, 0x3f000000, 1, 2, 0, 3, 0, 4, 1);
    assert_int_equal(cursor_u8(&b), 11);
    U4S(&b, 5, 6, 7, 8, 9, UINT32_MAX);
    assert_int_equal(cursor_left(&b), 0);
    b = record(&c, 0x07, 77);
    U4S(&b, 1, 2, 0, 3, 0, 4);
    b = record(&c, 0x0a, 77);
    U4S(&b, 1);
    assert_int_equal(id(&b, ids), 2);
    U4S(&b, 3);
    for (unsigned i = 4; i <= 6; i++)
        assert_int_equal(id(&b, ids), i);
    b = record(&c, 0x0b, 77);
    U4S(&b, 1);
    b = record(&c, 0x0d, 77);
    U4S(&b, 10, 1, 9, 1);
    b = record(&c, 0x0e, 77);
    U4S(&b, 3);
    assert_int_equal(cursor_be16(&b), 16);
    assert_int_equal(cursor_left(&c), 0);
    hprof_writer_release(&w);
    buf_release(&m.bytes);
}

static void records_with_ids_of_four_bytes(void **state)
{
    records_are_those_of_the_table(4);
}

static void records_with_ids_of_eight_bytes(void **state)
{
    records_are_those_of_the_table(8);
}

/*
 * Sub-records of every kind and size, including an array larger than a segment. Each segment
 * contains complete sub-records.
 */
/* With a given clock, times over more than two wraps must be read as they were written. */
static void times_wrap_and_are_unrolled(void **state)
{
    const uint64_t minute = 60000000, wrap = UINT64_C(1) << 32;
    const uint64_t times[] = {1,
                              71 * minute,
                              wrap - 1,
                              wrap,
                              wrap + 5,
                              wrap + 2,
                              wrap + 71 * minute,
                              2 * wrap + 70 * minute,
                              3 * wrap + 35 * minute};
    struct memory m = {.bytes = BUF(1 << 20)};
    struct hprof_writer w;
    assert_int_equal(hprof_writer_init(&w, MEMORY(m), HPROF_MAGIC_1_0_2, 8, 1), 0);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        w.time_us = times[i];
        hprof_end_thread(&w, (uint32_t)i);
    }
    assert_int_equal(hprof_flush(&w), 0);
    uint64_t read[ARRAY_SIZE(times) + 1];
    assert_int_equal(read_times(m.bytes.data, m.bytes.len, read, ARRAY_SIZE(read)),
                     ARRAY_SIZE(times));
    struct cursor c = cursor_of(m.bytes.data, m.bytes.len);
    cursor_skip(&c, 31);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        record(&c, 0x0b, (uint32_t)times[i]);
        /*
         * A time of exactly 0 carries no information; it is read as the time of the previous
         * record.
         */
        assert_int_equal(read[i], times[i] == wrap ? wrap - 1 : times[i]);
    }
    hprof_writer_release(&w);
    buf_release(&m.bytes);
}

/*
 * For every total with 32 bits in its record: the largest value that fits is exact; one more is
 * written as that value and counted.
 */
static void totals_beyond_32_bits_saturate_and_are_counted(void **state)
{
    const uint64_t most = UINT32_MAX;
    struct memory m = {.bytes = BUF(1 << 20)};
    struct hprof_writer w;
    assert_int_equal(hprof_writer_init(&w, MEMORY(m), HPROF_MAGIC_1_0_2, 8, 1), 0);
    for (unsigned more = 0; more < 2; more++) {
        uint64_t v = most + more;
        hprof_alloc_sites(&w, 0, 0, &(struct hprof_heap_totals){v, v, v, v},
                          &(struct hprof_site){0, 1, 2, v, v, v, v}, 1);
        hprof_heap_summary(&w, &(struct hprof_heap_totals){v, v, v, v});
        hprof_cpu_samples(&w, v, &(struct hprof_sample){v, 1}, 1);
        assert_int_equal(w.saturated, more * (2 + 4 + 2 + 2));
    }
    assert_int_equal(hprof_flush(&w), 0);
    struct cursor c = cursor_of(m.bytes.data, m.bytes.len);
    cursor_skip(&c, 31);
    for (unsigned more = 0; more < 2; more++) {
        struct cursor b = record(&c, 0x06, 0);
        cursor_skip(&b, 6);
        U4S(&b, most, most, more, more ? 0 : most, more, more ? 0 : most, 1);
        cursor_skip(&b, 1);
        U4S(&b, 1, 2, most, most, most, most);
        b = record(&c, 0x07, 0);
        U4S(&b, most, most, more, more ? 0 : most, more, more ? 0 : most);
        b = record(&c, 0x0d, 0);
        U4S(&b, most, 1, most, 1);
    }
    hprof_writer_release(&w);
    buf_release(&m.bytes);
}

static void a_segment_passes_its_parts_in_order(void **state)
{
    struct memory m = {.bytes = BUF(1 << 20)};
    struct hprof_writer w;
    assert_int_equal(hprof_writer_init(&w, MEMORY(m), HPROF_MAGIC_1_0_2, 8, 0), 0);
    hprof_utf8(&w, 9, "name", 4); /* is in the sink before the segment is */
    hprof_segment(&w, 5);
    hprof_segment_bytes(&w, "abc", 3);
    hprof_segment_bytes(&w, "de", 2);
    hprof_segment(&w, 1);
    hprof_segment_bytes(&w, "f", 1);
    hprof_dump_end(&w);
    assert_int_equal(hprof_flush(&w), 0);
    assert_int_equal(w.offset, m.bytes.len);

    struct cursor c = cursor_of(m.bytes.data, m.bytes.len);
    cursor_skip(&c, 31);
    record(&c, HPROF_UTF8, 0);
    struct cursor first = record(&c, HPROF_HEAP_DUMP_SEGMENT, 0);
    assert_memory_equal(cursor_take(&first, 5), "abcde", 5);
    struct cursor second = record(&c, HPROF_HEAP_DUMP_SEGMENT, 0);
    assert_memory_equal(cursor_take(&second, 1), "f", 1);
    record(&c, HPROF_HEAP_DUMP_END, 0);
    assert_int_equal(cursor_left(&c), 0);
    hprof_writer_release(&w);
    buf_release(&m.bytes);
}

static void a_failing_sink_is_called_no_more(void **state)
{
    struct memory m = {.bytes = BUF(1 << 20), .refuse_after = 5000};
    struct hprof_writer w;
    assert_int_equal(hprof_writer_init(&w, MEMORY(m), HPROF_MAGIC_1_0_1, 4, 0), 0);
    for (int i = 0; i < 20000; i++)
        hprof_utf8(&w, 1, "some text", 9);
    hprof_segment(&w, 4);
    hprof_segment_bytes(&w, "abcd", 4);
    hprof_dump_end(&w);
    assert_int_equal(hprof_flush(&w), -ENOSPC);
    assert_int_equal(m.calls_after_failure, 0);
    hprof_writer_release(&w);
    buf_release(&m.bytes);
}

static void a_segment_above_four_gib_is_an_error(void **state)
{
    struct memory m = {.bytes = BUF(1 << 20)};
    struct hprof_writer w;
    assert_int_equal(hprof_writer_init(&w, MEMORY(m), HPROF_MAGIC_1_0_1, 3, 0), -EINVAL);
    assert_int_equal(hprof_writer_init(&w, MEMORY(m), HPROF_MAGIC_1_0_1, 4, 0), 0);
    hprof_segment(&w, 1ULL << 32);
    assert_int_equal(hprof_error(&w), -EFBIG);
    hprof_writer_release(&w);
    buf_release(&m.bytes);
}

/* Lines as the original agent (JDK 8u504) printed them from the same values. */
static void text_has_the_columns_of_the_format(void **state)
{
    struct memory m = {.bytes = BUF(1 << 20)};
    struct hprof_text t;
    setenv("TZ", "UTC", 1);
    tzset();
    assert_int_equal(hprof_text_init(&t, MEMORY(m), 1), 0);
    const char *text = buf_str(&m.bytes);
    assert_ptr_equal(strstr(text, "JAVA PROFILE 1.0.1, created Thu Jan  1 00:00:01 1970\n"), text);
    assert_string_equal(strstr(text, "--------"), "--------\n\n");
    buf_clear(&m.bytes);

    hprof_text_thread_start(&t, 0x50000181, 200001, "main", "main");
    hprof_text_thread_end(&t, 200001);
    hprof_text_trace(&t, 300079, 200001);
    hprof_text_frame(&t, "CpuDeep.c", "CpuDeep.java", 9);
    hprof_text_frame(&t, "CpuDeep.n", "CpuDeep.java", HPROF_LINE_NATIVE);
    hprof_text_frame(&t, "X.y", NULL, HPROF_LINE_UNKNOWN);
    hprof_text_trace(&t, 300000, 0);
    hprof_text_trace_empty(&t);
    hprof_text_sites_begin(&t, "live bytes", 0);
    hprof_text_site(&t, &(struct hprof_text_site){1, 300454, 74.99, 74.99, 1600000, 20000, 1600000,
                                                  20000, "byte[]"});
    hprof_text_sites_end(&t);
    hprof_text_ranked_begin(&t, HPROF_RANKED_SAMPLES, 4, 0);
    hprof_text_ranked(&t, HPROF_RANKED_SAMPLES, 1, 50, 50, 2, 300077, "CpuDeep.c");
    hprof_text_ranked_end(&t, HPROF_RANKED_SAMPLES);
    hprof_text_ranked_begin(&t, HPROF_RANKED_TIMES, 64, 0);
    hprof_text_ranked_end(&t, HPROF_RANKED_TIMES);
    hprof_text_ranked_begin(&t, HPROF_RANKED_MONITORS, 30, 0);
    hprof_text_ranked(&t, HPROF_RANKED_MONITORS, 1, 100, 100, 3, 300077, "java.lang.Object");
    hprof_text_ranked_end(&t, HPROF_RANKED_MONITORS);
    hprof_text_old_begin(&t);
    hprof_text_old(&t, 2000, "Exc.thrower(I)V", "Exc.mid(I)V", 27);
    hprof_text_old(&t, 1, "A.<clinit>()V", NULL, 0);
    hprof_text_wait(&t, "LMonitors$1;", 0, 200001);
    hprof_text_waited(&t, "LMonitors$1;", 21, 0);
    hprof_text_monitors_begin(&t);
    hprof_text_monitors_thread(&t, 200003, 300086, 0x40 | 0x1);
    hprof_text_monitor(&t, "LX;", 200007, 1, (const uint32_t[]){200006, 200004}, 2, NULL, 0);
    hprof_text_monitor(&t, "LY;", 0, 0, NULL, 0, (const uint32_t[]){200001}, 1);
    hprof_text_monitors_end(&t);
    hprof_text_heap_begin(&t, 6902, 550624, 0);
    hprof_text_root(&t, HPROF_ROOT_THREAD_OBJECT, 0x50001af0, 200003, 300001, NULL);
    hprof_text_root(&t, HPROF_ROOT_JAVA_FRAME, 0x50001af9, 200000, 1, NULL);
    hprof_text_root(&t, HPROF_ROOT_JNI_GLOBAL, 0x50000167, 1, 300000, NULL);
    hprof_text_root(&t, HPROF_ROOT_STICKY_CLASS, 0x50001af4, 0, 0, "java.lang.Shutdown$Lock");
    hprof_text_class(&t, 0x500007ea, "Alloc$Node", 300440);
    hprof_text_class_link(&t, "super", 0x5000016b);
    hprof_text_class_link(&t, "signers", 0);
    hprof_text_static(&t, "head", 0x10);
    hprof_text_constant(&t, 5, 0x11);
    hprof_text_object(&t, 0x50000175, 376, 300001, "java.lang.Thread", 0x50000144);
    hprof_text_field(&t, "identity", 0x50000197);
    hprof_text_field(&t, "next", 0x5);
    hprof_text_field(&t, "none", 0);
    hprof_text_array(&t, 0x500001ab, 24, 300043, 1, "X[]", 0x500001aa);
    hprof_text_element(&t, 0, 0x500001a9);
    hprof_text_array(&t, 0x7f00500001ad, 32, 300045, 16, "char[]", 0);
    hprof_text_heap_end(&t);
    assert_int_equal(hprof_text_flush(&t), 0);
    assert_string_equal(buf_str(&m.bytes),
                        "THREAD START (obj=50000181, id = 200001, name=\"main\", group=\"main\")\n"
                        "THREAD END (id = 200001)\n"
                        "TRACE 300079: (thread=200001)\n"
                        "\tCpuDeep.c(CpuDeep.java:9)\n"
                        "\tCpuDeep.n(CpuDeep.java:Unknown line)\n"
                        "\tX.y(Unknown Source:Unknown line)\n"
                        "TRACE 300000:\n"
                        "\t<empty>\n"
                        "SITES BEGIN (ordered by live bytes) Thu Jan  1 00:00:00 1970\n"
                        "          percent          live          alloc'ed  stack class\n"
                        " rank   self  accum     bytes objs     bytes  objs trace name\n"
                        "    1 74.99% 74.99%   1600000 20000   1600000 20000 300454 byte[]\n"
                        "SITES END\n"
                        "CPU SAMPLES BEGIN (total = 4) Thu Jan  1 00:00:00 1970\n"
                        "rank   self  accum   count trace method\n"
                        "   1 50.00% 50.00%       2 300077 CpuDeep.c\n"
                        "CPU SAMPLES END\n"
                        "CPU TIME (ms) BEGIN (total = 64) Thu Jan  1 00:00:00 1970\n"
                        "rank   self  accum   count trace method\n"
                        "CPU TIME (ms) END\n"
                        "MONITOR TIME BEGIN (total = 30 ms) Thu Jan  1 00:00:00 1970\n"
                        "rank   self  accum   count trace monitor\n"
                        "   1 100.00% 100.00%       3 300077 java.lang.Object (Java)\n"
                        "MONITOR TIME END\n"
                        "count callee caller time\n"
                        "2000 Exc.thrower(I)V Exc.mid(I)V 27\n"
                        "1 A.<clinit>()V <unknown caller> 0\n"
                        "WAIT: MONITOR LMonitors$1;, timeout=0, thread 200001\n"
                        "WAITED: MONITOR LMonitors$1;, time_waited=21, <unknown thread>\n"
                        "MONITOR DUMP BEGIN\n"
                        "    THREAD 200003, trace 300086, status: SL\n"
                        "    MONITOR LX;\n"
                        "\towner: thread 200007, entry count: 1\n"
                        "\twaiting to enter: thread 200006, thread 200004\n"
                        "\twaiting to be notified:\n"
                        "    MONITOR LY; unowned\n"
                        "\twaiting to enter:\n"
                        "\twaiting to be notified: thread 200001\n"
                        "MONITOR DUMP END\n"
                        "HEAP DUMP BEGIN (6902 objects, 550624 bytes) Thu Jan  1 00:00:00 1970\n"
                        "ROOT 50001af0 (kind=<thread>, id=200003, trace=300001)\n"
                        "ROOT 50001af9 (kind=<Java stack>, thread=200000, frame=1)\n"
                        "ROOT 50000167 (kind=<JNI global ref>, id=1, trace=300000)\n"
                        "ROOT 50001af4 (kind=<system class>, name=java.lang.Shutdown$Lock)\n"
                        "CLS 500007ea (name=Alloc$Node, trace=300440)\n"
                        "\tsuper\t\t5000016b\n"
                        "\tstatic head\t10\n"
                        "\tconstant pool entry 5\t11\n"
                        "OBJ 50000175 (sz=376, trace=300001, class=java.lang.Thread@50000144)\n"
                        "\tidentity\t50000197\n"
                        "\tnext\t\t5\n"
                        "ARR 500001ab (sz=24, trace=300043, nelems=1, elem type=X[]@500001aa)\n"
                        "\t[0]\t\t500001a9\n"
                        "ARR 7f00500001ad (sz=32, trace=300045, nelems=16, elem type=char[])\n"
                        "HEAP DUMP END\n");
    hprof_text_release(&t);
    buf_release(&m.bytes);
}

/* Prints what was read, for comparison with the expectation. */
static int print_item(void *ctx, const struct hprof_text_item *i)
{
    struct buf *b = ctx;
    buf_printf(b, "%d", i->kind);
    const uint64_t numbers[] = {i->serial, i->thread, i->trace, i->rank,
                                i->object, i->count,  i->total, (uint64_t)i->time_ms};
    for (size_t n = 0; n < ARRAY_SIZE(numbers); n++)
        buf_printf(b, " %llu", (unsigned long long)numbers[n]);
    const struct str names[] = {i->name, i->group, i->caller};
    for (size_t n = 0; n < ARRAY_SIZE(names); n++)
        buf_printf(b, " [%.*s]", (int)names[n].len, names[n].data ? names[n].data : "");
    for (size_t n = 0; n < i->n_frames; n++)
        buf_printf(b, " %.*s|%.*s|%d", (int)i->frames[n].method.len, i->frames[n].method.data,
                   (int)i->frames[n].source.len, i->frames[n].source.data, i->frames[n].line);
    if (i->kind == HPROF_ITEM_SITE)
        buf_printf(b, " %u %.2f %llu %llu", i->site.trace, i->site.self,
                   (unsigned long long)i->site.live_bytes,
                   (unsigned long long)i->site.alloc_objects);
    buf_u8(b, '\n');
    return 0;
}

static void text_is_read_back(void **state)
{
    struct memory m = {.bytes = BUF(1 << 20)};
    struct hprof_text t;
    assert_int_equal(hprof_text_init(&t, MEMORY(m), 1), 0);
    hprof_text_thread_start(&t, 0x50000181, 200001, "a \"name\"\nof two lines, group=\"x\")",
                            "main");
    hprof_text_trace(&t, 300079, 200001);
    hprof_text_frame(&t, "A.b", "A 1.java", 9);
    hprof_text_frame(&t, "A.<init>", "A.java", HPROF_LINE_NATIVE);
    hprof_text_thread_end(&t, 200001);
    hprof_text_trace(&t, 300000, 0);
    hprof_text_trace_empty(&t);
    hprof_text_ranked_begin(&t, HPROF_RANKED_MONITORS, 30, 0);
    hprof_text_ranked(&t, HPROF_RANKED_MONITORS, 1, 99.5, 99.5, 3, 300077, "java.lang.Object");
    hprof_text_ranked_end(&t, HPROF_RANKED_MONITORS);
    hprof_text_sites_begin(&t, "live bytes", 0);
    hprof_text_site(&t, &(struct hprof_text_site){1, 300454, 74.99, 74.99, 1600000, 20000, 1600000,
                                                  20000, "byte[]"});
    hprof_text_sites_end(&t);
    hprof_text_left_out(&t, 2, 4000, 5);
    hprof_text_waited(&t, "LX;", 21, 0);
    hprof_text_old_begin(&t);
    hprof_text_old(&t, 2, "A.b(I)V", NULL, 7);
    hprof_text_old(&t, 3, "A.c()V", "A.b(I)V", 8);
    hprof_text_heap_begin(&t, 1, 24, 0);
    hprof_text_object(&t, 1, 24, 300000, "A", 2);
    hprof_text_field(&t, "next", 5);
    hprof_text_heap_end(&t);
    assert_int_equal(hprof_text_flush(&t), 0);
    struct buf got = BUF(1 << 20);
    struct hprof_text_summary summary;
    assert_int_equal(hprof_text_read(m.bytes.data, m.bytes.len, print_item, &got, &summary), 0);
    assert_string_equal(
        buf_str(&got),
        "0 200001 0 0 0 1342177665 0 0 0 [a \"name\"\nof two lines, group=\"x\")] [main] []\n"
        "2 300079 200001 0 0 0 0 0 0 [] [] [] A.b|A 1.java|9 A.<init>|A.java|-1\n"
        "1 200001 0 0 0 0 0 0 0 [] [] []\n"
        "2 300000 0 0 0 0 0 0 0 [] [] []\n"
        "3 0 0 0 0 0 0 30 0 [] [] []\n"
        "4 0 0 300077 1 0 3 0 0 [java.lang.Object] [] []\n"
        "5 0 0 0 0 0 0 0 0 [] [] []\n"
        "6 0 0 0 0 0 0 0 0 [live bytes] [] []\n"
        "7 0 0 0 0 0 0 0 0 [byte[]] [] [] 300454 74.99 1600000 20000\n"
        "8 0 0 0 0 0 0 0 0 [] [] []\n"
        "9 0 0 0 0 0 2 4000 0 [] [] []\n"
        "13 0 0 0 0 0 0 0 21 [LX;] [] []\n"
        "10 0 0 0 0 0 0 0 0 [] [] []\n"
        "11 0 0 0 0 0 2 7 0 [A.b(I)V] [] []\n"
        "11 0 0 0 0 0 3 8 0 [A.c()V] [] [A.b(I)V]\n"
        "14 0 0 0 0 0 1 24 0 [] [] []\n"
        "15 0 0 0 0 0 1 24 0 [] [] []\n");
    assert_int_equal(summary.unknown, 0);
    assert_false(summary.cut);
    buf_clear(&got);
    assert_int_equal(hprof_text_read(m.bytes.data, m.bytes.len - 5, print_item, &got, &summary), 0);
    assert_true(summary.cut);
    assert_int_equal(hprof_text_read("JAVA", 4, print_item, &got, &summary), -EBADMSG);
    buf_release(&got);
    hprof_text_release(&t);
    buf_release(&m.bytes);
}

static void a_text_is_known_by_how_it_begins(void **state)
{
    static const char *const texts[] = {
        "JAVA PROFILE 1.0.1, created Mon",
        "count callee caller time\n1 a b 2\n",
        "TRACE 1:\n\t<empty>\n",
        "TRACE 4294967295: (thread=200001)\n",
        "THREAD START (obj=7f, id = 200001, name=\"main\", group=\"main\")\n",
        "THREAD END (id = 200001)\n",
        "WAIT: MONITOR La;, timeout=0, <unknown thread>\n",
        "WAITED: MONITOR La;, time_waited=1, thread 200001\n",
        "SITES BEGIN (ordered by live bytes) Mon",
        "HEAP DUMP BEGIN (1 objects, 16 bytes) Mon",
        "MONITOR DUMP BEGIN\n",
        "MONITOR TIME BEGIN (total = 1 ms) Mon",
    };
    static const char *const others[] = {
        "",
        "JAVA PROFILE 1.0.2",
        "TRACE",
        "TRACE :\n",
        "TRACE 1: started",
        "TRACE 12345678901:\n",
        "TRACE request 1:\n",
        "THREAD START\n",
        "WAIT: MONITOR",
        "count callee caller time of day\n",
        " SITES BEGIN (ordered by live bytes)",
        "root:x:0:0:root:/root:/bin/bash\n",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        assert_true(file_format_of(texts[i], strlen(texts[i])) == FORMAT_HPROF_TEXT);
        assert_true(file_format_of(texts[i], 5) ==
                    FORMAT_OTHER); /* nothing beyond the end is read */
    }
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_false(file_format_of(others[i], strlen(others[i])) == FORMAT_HPROF_TEXT);
}

static void commands_come_in_any_pieces(void **state)
{
    static const uint8_t stream[] = {
        1,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        0, /* force gc */
        /* Sites, by allocation, gc; 0.1. */
        3,
        0,
        0,
        0,
        2,
        0,
        0,
        0,
        6,
        0,
        6,
        0x3d,
        0xcc,
        0xcc,
        0xcd,
        77,
        0,
        0,
        0,
        3,
        0,
        0,
        0,
        2,
        1,
        2, /* unknown */
        8,
        0,
        0,
        0,
        4,
        0,
        0,
        0,
        4,
        0,
        6,
        0,
        9, /* max depth 9 */
        /* Sampling off for one thread. */
        8,
        0,
        0,
        0,
        5,
        0,
        0,
        0,
        10,
        0,
        4,
        0,
        0,
        0,
        0,
        0x50,
        0,
        0,
        1,
        /* Sampling on, with an id of 4 bytes. */
        8,
        0,
        0,
        0,
        5,
        0,
        0,
        0,
        6,
        0,
        3,
        0,
        0,
        0,
        0,
        /* The cutoff is not a number. */
        3,
        0,
        0,
        0,
        6,
        0,
        0,
        0,
        6,
        0,
        0,
        0x7f,
        0xc0,
        0,
        0,
        /* Too long. */
        2,
        0,
        0,
        0,
        7,
        0,
        0,
        0,
        20,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        1,
        /* Too short. */
        7,
        0,
        0,
        0,
        8,
        0,
        0,
        0,
        5,
        0,
        0,
        0,
        0,
        0,
        255,
        0,
        0,
        0,
        9,
        0,
        0,
        0,
        0,
    };
    static const struct hprof_request expected[] = {
        {.command = HPROF_CMD_FORCE_GC, .serial = 1},
        {.command = HPROF_CMD_ALLOC_SITES, .serial = 2, .flags = 6, .cutoff = 0.1F},
        {.command = HPROF_CMD_CONTROL, .serial = 4, .control = HPROF_CONTROL_MAX_DEPTH, .depth = 9},
        {.command = HPROF_CMD_CONTROL,
         .serial = 5,
         .control = HPROF_CONTROL_SAMPLING_OFF,
         .object = 0x50000001},
        {.command = HPROF_CMD_CONTROL, .serial = 5, .control = HPROF_CONTROL_SAMPLING_ON},
        {.command = HPROF_CMD_EOF, .serial = 9},
    };
    for (size_t piece = 1; piece <= sizeof(stream); piece++) {
        struct hprof_commands c = {.id_size = 8};
        struct hprof_request r;
        size_t n = 0, used;
        for (size_t at = 0; at < sizeof(stream); at += used) {
            size_t len = MIN(piece - at % piece, sizeof(stream) - at);
            if (!hprof_command_next(&c, stream + at, len, &used, &r))
                continue;
            assert_true(n < ARRAY_SIZE(expected));
            const struct hprof_request *e = &expected[n++];
            assert_int_equal(r.command, e->command);
            assert_int_equal(r.serial, e->serial);
            assert_int_equal(r.flags, e->flags);
            assert_int_equal(r.control, e->control);
            assert_int_equal(r.object, e->object);
            assert_int_equal(r.depth, e->depth);
            assert_true(r.cutoff == e->cutoff);
        }
        assert_int_equal(n, ARRAY_SIZE(expected));
        assert_int_equal(c.refused, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_with_ids_of_four_bytes),
        cmocka_unit_test(records_with_ids_of_eight_bytes),
        cmocka_unit_test(times_wrap_and_are_unrolled),
        cmocka_unit_test(totals_beyond_32_bits_saturate_and_are_counted),
        cmocka_unit_test(a_segment_passes_its_parts_in_order),
        cmocka_unit_test(a_failing_sink_is_called_no_more),
        cmocka_unit_test(a_segment_above_four_gib_is_an_error),
        cmocka_unit_test(text_has_the_columns_of_the_format),
        cmocka_unit_test(text_is_read_back),
        cmocka_unit_test(a_text_is_known_by_how_it_begins),
        cmocka_unit_test(commands_come_in_any_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
