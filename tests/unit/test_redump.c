/* SPDX-License-Identifier: Apache-2.0 */
#include "tests.h"

#include "base/cursor.h"
#include "hprof/redump.h"

#include <errno.h>
#include <string.h>

static int append(void *ctx, const void *bytes, size_t len)
{
    buf_bytes(ctx, bytes, len);
    return 0;
}

#define SINK(b) ((struct hprof_sink){append, &(b)})

static void name(struct hprof_writer *w, uint64_t id, const char *s)
{
    hprof_utf8(w, id, s, strlen(s));
}

enum {
    OBJECT = 0x1000,
    THREAD = 0x1008,
    NODE = 0x1010,
    CHARS = 0x1018,
    NODES = 0x1020,
    AGENT = 0x1028
};

enum {
    MAIN = 0x8000,
    FIRST = 0x8010,
    SECOND = 0x8020,
    TEXT = 0x8030,
    ARRAY = 0x8040,
    BIG = 0x8050
};

/*
 * Makes a small heap as HotSpot's dumper writes it: main holds a node in a local, which refers to
 * another; classes come last if requested. Its thread is inside two probes, one of which a node's
 * method called.
 */
static void make_dump(struct buf *to, bool classes_last)
{
    struct hprof_writer w;
    assert_int_equal(hprof_writer_init(&w, SINK(*to), HPROF_MAGIC_1_0_2, 8, 1000), 0);
    static const char *const strings[] = {"java/lang/Object",
                                          "java/lang/Thread",
                                          "pkg/Node",
                                          "[C",
                                          "[[Lpkg/Node;",
                                          "tid",
                                          "next",
                                          "text",
                                          "shared",
                                          "run",
                                          "()V",
                                          "Node.java",
                                          "java/lang/JvmscopeTrace",
                                          "arg"};
    for (unsigned i = 0; i < ARRAY_SIZE(strings); i++)
        name(&w, 0x2000 + 8 * i, strings[i]);
    static const uint64_t ids[] = {OBJECT, THREAD, NODE, CHARS, NODES};
    for (unsigned i = 0; i < ARRAY_SIZE(ids); i++)
        hprof_load_class(&w, i + 1, ids[i], 1, 0x2000 + 8 * i);
    hprof_trace(&w, 1, 0, NULL, 0);
    hprof_frame(&w, 1, 0x2000 + 8 * 9, 0x2000 + 8 * 10, 0x2000 + 8 * 11, 3, 42);
    hprof_load_class(&w, 6, AGENT, 1, 0x2000 + 8 * 12);
    hprof_frame(&w, 2, 0x2000 + 8 * 13, 0x2000 + 8 * 10, 0, 6, -1);
    hprof_trace(&w, 2, 7, (const uint64_t[]){2, 2, 1}, 3);
    hprof_dump_begin(&w);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == classes_last) {
            const struct hprof_value tid = {.name = 0x2000 + 8 * 5, .type = HPROF_LONG};
            const struct hprof_value fields[] = {{.name = 0x2000 + 8 * 6, .type = HPROF_OBJECT},
                                                 {.name = 0x2000 + 8 * 7, .type = HPROF_OBJECT}};
            const struct hprof_value shared = {
                .name = 0x2000 + 8 * 8, .type = HPROF_OBJECT, .value = FIRST};
            hprof_class_dump(&w, &(struct hprof_class){.id = OBJECT, .trace = 1});
            hprof_class_dump(
                &w, &(struct hprof_class){
                        .id = THREAD, .super = OBJECT, .trace = 1, .fields = &tid, .n_fields = 1});
            hprof_class_dump(&w, &(struct hprof_class){.id = NODE,
                                                       .super = OBJECT,
                                                       .loader = MAIN,
                                                       .trace = 1,
                                                       .n_fields = 2,
                                                       .fields = fields,
                                                       .statics = &shared,
                                                       .n_statics = 1});
            hprof_class_dump(&w, &(struct hprof_class){.id = CHARS, .super = OBJECT, .trace = 1});
            hprof_class_dump(&w, &(struct hprof_class){.id = NODES, .super = OBJECT, .trace = 1});
        } else {
            hprof_instance_dump(&w, MAIN, 1, THREAD, 8);
            hprof_sub_id(&w, 1); /* tid 1 */
            hprof_instance_dump(&w, FIRST, 1, NODE, 16);
            hprof_sub_id(&w, SECOND);
            hprof_sub_id(&w, TEXT);
            hprof_instance_dump(&w, SECOND, 1, NODE, 16);
            hprof_sub_id(&w, 0);
            hprof_sub_id(&w, MAIN);
            hprof_primitive_array_dump(&w, TEXT, 1, HPROF_CHAR, 3);
            hprof_sub_u2(&w, 'a');
            hprof_sub_u4(&w, 0);
            hprof_object_array_dump(&w, ARRAY, 1, NODES, 3);
            hprof_sub_id(&w, MAIN);
            hprof_sub_id(&w, 0);
            hprof_sub_id(&w, FIRST);
            hprof_object_array_dump(&w, BIG, 1, NODES, 20000);
            for (unsigned i = 0; i < 20000; i++)
                hprof_sub_id(&w, i == 19999 ? MAIN : 0);
        }
    }
    hprof_root(&w, HPROF_ROOT_THREAD_OBJECT, MAIN, 7, 2);
    hprof_root(&w, HPROF_ROOT_JAVA_FRAME, FIRST, 7, 2);
    hprof_root(&w, HPROF_ROOT_JNI_LOCAL, TEXT, 7, 1);
    hprof_root(&w, HPROF_ROOT_JNI_LOCAL, TEXT, 7, UINT32_MAX);
    hprof_root(&w, HPROF_ROOT_STICKY_CLASS, NODE, 0, 0);
    hprof_root(&w, HPROF_ROOT_JNI_GLOBAL, ARRAY, 0xbeef, 0);
    hprof_dump_end(&w);
    assert_int_equal(hprof_flush(&w), 0);
    hprof_writer_release(&w);
}

static bool find_thread(void *ctx, uint64_t java_id, uint32_t *ret_serial, uint64_t *ret_object)
{
    *ret_serial = 200001;
    *ret_object = 0x50000001;
    return java_id == 1;
}

static uint32_t instance_size(void *ctx, const char *class, size_t len, uint32_t fields_size)
{
    return len == 8 && memcmp(class, "pkg/Node", 8) == 0 && fields_size == 16 ? 24 : 0;
}

static const struct hprof_shapes shapes = {
    .alignment = 8, .reference = 4, .header = {12, 0, 16, 0, 16, 16, 16, 16, 16, 16, 16, 16}};

static int redump(const struct buf *dump, struct hprof_writer *binary, struct hprof_text *text,
                  struct hprof_redump_totals *totals)
{
    uint32_t next_class = 100, next_trace = 300001;
    uint64_t next_frame = 0x70000001, next_string = 0xa0000001;
    const struct hprof_redump how = {
        .binary = binary,
        .text = text,
        .empty_trace = 300000,
        .unknown_thread = 200000,
        .thread_in_trace = true,
        .shapes = &shapes,
        .next_class = &next_class,
        .next_trace = &next_trace,
        .next_frame = &next_frame,
        .next_string = &next_string,
        .thread = find_thread,
        .instance_size = instance_size,
    };
    return hprof_redump(&how, dump->data, dump->len, totals);
}

static void a_dump_becomes_text(void **state)
{
    for (int classes_last = 0; classes_last < 2; classes_last++) {
        struct buf dump = BUF(1 << 22), out = BUF(1 << 22);
        struct hprof_text t = {.sink = SINK(out), .out = BUF(1 << 22)};
        struct hprof_redump_totals totals;
        make_dump(&dump, classes_last);
        assert_int_equal(redump(&dump, NULL, &t, &totals), 0);
        assert_int_equal(hprof_text_flush(&t), 0);
        assert_int_equal(totals.objects, 11);
        /* The size of Thread is computed: 12 + 8. */
        assert_int_equal(totals.bytes, 24 + 24 + 24 + 24 + 32 + 80016);
        const char *expected[] = {
            "TRACE 300001: (thread=200001)\n\tpkg.Node.run(Node.java:42)\nHEAP DUMP BEGIN (11 "
            "objects, 80144 bytes) ",
            "CLS 1010 (name=pkg.Node, "
            "trace=300000)\n\tsuper\t\t1000\n\tloader\t\t50000001\n\tstatic shared\t8010\n",
            "OBJ 50000001 (sz=24, trace=300000, class=java.lang.Thread@1008)\n"
            "OBJ 8010 (sz=24, trace=300000, class=pkg.Node@1010)\n\tnext\t\t8020\n\ttext\t\t8030\n"
            "OBJ 8020 (sz=24, trace=300000, class=pkg.Node@1010)\n\ttext\t\t50000001\n"
            "ARR 8030 (sz=24, trace=300000, nelems=3, elem type=char[])\n"
            "ARR 8040 (sz=32, trace=300000, nelems=3, elem "
            "type=pkg.Node[][]@1020)\n\t[0]\t\t50000001\n\t[2]\t\t8010\n"
            "ARR 8050 (sz=80016, trace=300000, nelems=20000, elem "
            "type=pkg.Node[][]@1020)\n\t[19999]\t\t50000001\n",
            "ROOT 50000001 (kind=<thread>, id=200001, trace=300001)\n"
            "ROOT 8010 (kind=<Java stack>, thread=200001, frame=0)\n"
            "ROOT 8030 (kind=<JNI local ref>, thread=200001, frame=0)\n"
            "ROOT 8030 (kind=<JNI local ref>, thread=200001, frame=-1)\n"
            "ROOT 1010 (kind=<system class>, name=pkg.Node)\n"
            "ROOT 8040 (kind=<JNI global ref>, id=beef, trace=300000)\nHEAP DUMP END\n",
        };
        for (unsigned i = 0; i < ARRAY_SIZE(expected); i++)
            if (!strstr(buf_str(&out), expected[i]))
                fail_msg("not found:\n%s\nin:\n%s", expected[i], buf_str(&out));
        hprof_text_release(&t);
        buf_release(&dump);
        buf_release(&out);
    }
}

/*
 * Rewriting the result again gives the same text, except for the numbers that were changed already.
 */
static void a_dump_becomes_binary(void **state)
{
    struct buf dump = BUF(1 << 22), binary = BUF(1 << 22), out = BUF(1 << 22);
    struct hprof_writer w;
    struct hprof_text t = {.sink = SINK(out), .out = BUF(1 << 22)};
    struct hprof_redump_totals totals, again;
    make_dump(&dump, false);
    assert_int_equal(hprof_writer_init(&w, SINK(binary), HPROF_MAGIC_1_0_2, 8, 0), 0);
    assert_int_equal(redump(&dump, &w, NULL, &totals), 0);
    assert_int_equal(hprof_flush(&w), 0);
    assert_int_equal(redump(&binary, NULL, &t, &again), 0);
    assert_int_equal(hprof_text_flush(&t), 0);
    assert_int_equal(totals.objects, again.objects);
    assert_int_equal(totals.roots, again.roots);
    assert_non_null(strstr(
        buf_str(&out), "OBJ 8010 (sz=24, trace=300000, class=pkg.Node@1010)\n\tnext\t\t8020\n"));
    assert_non_null(strstr(buf_str(&out), "\t[19999]\t\t50000001\n"));
    /*
     * The class is now named java.lang.Thread instead of the VM's java/lang/Thread, so it belongs
     * to no thread.
     */
    assert_non_null(strstr(buf_str(&out), "(kind=<thread>, id=200000, trace=300001)\n"));
    assert_non_null(strstr(buf_str(&out), "elem type=pkg.Node[][]@1020"));
    /* Only the rewritten frames count, and the probe's are not among them. */
    assert_non_null(strstr(buf_str(&out), "\tpkg.Node.run(Node.java:42)\n"));
    assert_null(strstr(buf_str(&out), "Jvmscope"));
    assert_non_null(strstr(buf_str(&out), "(kind=<Java stack>, thread=200000, frame=0)\n"));
    assert_non_null(strstr(buf_str(&out), "(kind=<JNI local ref>, thread=200000, frame=0)\n"));
    hprof_writer_release(&w);
    hprof_text_release(&t);
    buf_release(&dump);
    buf_release(&binary);
    buf_release(&out);
}

static void cut_dumps_end_early_or_are_refused(void **state)
{
    struct buf dump = BUF(1 << 22);
    make_dump(&dump, false);
    for (size_t len = 0; len < dump.len; len += len < 2000 || len > dump.len - 300 ? 1 : 997) {
        struct buf out = BUF(1 << 22), part = dump;
        struct hprof_text t = {.sink = SINK(out), .out = BUF(1 << 22)};
        struct hprof_redump_totals totals = {0};
        part.len = len;
        int r = redump(&part, NULL, &t, &totals);
        assert_true(r == 0 || r == -EBADMSG);
        hprof_text_release(&t);
        buf_release(&out);
    }
    buf_release(&dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dump_becomes_text),
        cmocka_unit_test(a_dump_becomes_binary),
        cmocka_unit_test(cut_dumps_end_early_or_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
