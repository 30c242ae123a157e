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

static void put_ids(struct buf *b, size_t n, const uint64_t *ids)
{
    for (size_t i = 0; i < n; i++)
        buf_be64(b, ids[i]);
}

#define IDS(b, ...)                                                        \
    put_ids(b, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), \
            (const uint64_t[]){__VA_ARGS__})

/* The caller appends what a class has of its own: statics and fields, each with their number. */
static void put_class(struct buf *b, uint64_t id, uint64_t super, uint64_t loader)
{
    buf_u8(b, HPROF_CLASS_DUMP);
    buf_be64(b, id);
    buf_be32(b, 1);
    IDS(b, super, loader, 0, 0, 0, 0);
    buf_be32(b, 0); /* the size of instances */
    buf_be16(b, 0); /* constants */
}

static void put_field(struct buf *b, uint64_t name, enum hprof_type type)
{
    buf_be64(b, name);
    buf_u8(b, (uint8_t)type);
}

static void put_object(struct buf *b, enum hprof_sub_tag tag, uint64_t id)
{
    buf_u8(b, (uint8_t)tag);
    buf_be64(b, id);
    buf_be32(b, 1);
}

static void put_instance(struct buf *b, uint64_t id, uint64_t class, size_t n,
                         const uint64_t *values)
{
    put_object(b, HPROF_INSTANCE_DUMP, id);
    buf_be64(b, class);
    buf_be32(b, (uint32_t)(8 * n));
    put_ids(b, n, values);
}

static void put_array(struct buf *b, uint64_t id, uint32_t n)
{
    put_object(b, HPROF_OBJECT_ARRAY_DUMP, id);
    buf_be32(b, n);
    buf_be64(b, NODES);
}

static void put_thread_root(struct buf *b, enum hprof_sub_tag kind, uint64_t object,
                            uint32_t number)
{
    buf_u8(b, (uint8_t)kind);
    buf_be64(b, object);
    buf_be32(b, 7);
    buf_be32(b, number);
}

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
    struct buf dump = BUF(1 << 20);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == classes_last) {
            put_class(&dump, OBJECT, 0, 0);
            buf_be16(&dump, 0);
            buf_be16(&dump, 0);
            put_class(&dump, THREAD, OBJECT, 0);
            buf_be16(&dump, 0);
            buf_be16(&dump, 1);
            put_field(&dump, 0x2000 + 8 * 5, HPROF_LONG);
            put_class(&dump, NODE, OBJECT, MAIN);
            buf_be16(&dump, 1);
            put_field(&dump, 0x2000 + 8 * 8, HPROF_OBJECT);
            buf_be64(&dump, FIRST);
            buf_be16(&dump, 2);
            put_field(&dump, 0x2000 + 8 * 6, HPROF_OBJECT);
            put_field(&dump, 0x2000 + 8 * 7, HPROF_OBJECT);
            for (uint64_t class = CHARS; class <= NODES; class += 8) {
                put_class(&dump, class, OBJECT, 0);
                buf_be16(&dump, 0);
                buf_be16(&dump, 0);
            }
        } else {
            put_instance(&dump, MAIN, THREAD, 1, (const uint64_t[]){1}); /* tid 1 */
            put_instance(&dump, FIRST, NODE, 2, (const uint64_t[]){SECOND, TEXT});
            put_instance(&dump, SECOND, NODE, 2, (const uint64_t[]){0, MAIN});
            put_object(&dump, HPROF_PRIMITIVE_ARRAY_DUMP, TEXT);
            buf_be32(&dump, 3);
            buf_u8(&dump, HPROF_CHAR);
            buf_be16(&dump, 'a');
            buf_be32(&dump, 0);
            put_array(&dump, ARRAY, 3);
            IDS(&dump, MAIN, 0, FIRST);
            put_array(&dump, BIG, 20000);
            for (unsigned i = 0; i < 20000; i++)
                buf_be64(&dump, i == 19999 ? MAIN : 0);
        }
    }
    put_thread_root(&dump, HPROF_ROOT_THREAD_OBJECT, MAIN, 2);
    put_thread_root(&dump, HPROF_ROOT_JAVA_FRAME, FIRST, 2);
    put_thread_root(&dump, HPROF_ROOT_JNI_LOCAL, TEXT, 1);
    put_thread_root(&dump, HPROF_ROOT_JNI_LOCAL, TEXT, UINT32_MAX);
    buf_u8(&dump, HPROF_ROOT_STICKY_CLASS);
    buf_be64(&dump, NODE);
    buf_u8(&dump, HPROF_ROOT_JNI_GLOBAL);
    IDS(&dump, ARRAY, 0xbeef);
    hprof_segment(&w, dump.len);
    hprof_segment_bytes(&w, dump.data, dump.len);
    buf_release(&dump);
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
