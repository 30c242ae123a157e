/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles that are sent: what is written can be read again, and input from elsewhere does no harm.
 */
#include "tests.h"

#include "base/protobuf.h"
#include "wire/multipart.h"
#include "wire/otlp.h"
#include "wire/pprof.h"
#include "wire/pyroscope.h"
#include "wire/unpack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static uint32_t number(int64_t n)
{
    assert_true(n >= 0);
    return (uint32_t)n;
}

static uint32_t string(struct wire_batch *b, const char *s)
{
    return number(wire_string(b, s, strlen(s)));
}

static uint32_t label(struct wire_batch *b, const char *key, const char *value)
{
    struct wire_label l = {string(b, key), string(b, value)};
    return number(wire_labels(b, &l, 1));
}

/* A batch with stacks that share frames, labels, links, and samples with and without times. */
static void fill(struct wire_batch *b)
{
    uint32_t resource = label(b, WIRE_SERVICE, "shop"), thread = label(b, WIRE_THREAD, "worker");
    uint32_t link = number(wire_link(b, &(struct wire_link){{1, 2, 3}, {4, 5}}));
    uint32_t node = 0;
    uint32_t profile = number(wire_profile(b));
    struct wire_profile *p = &b->profiles.data[profile];
    p->resource = resource;
    p->start_ns = 1700000000000000000;
    p->duration_ns = 1000000000;
    p->period = 10000000;
    p->period_type = (struct wire_type){string(b, "cpu"), string(b, "nanoseconds")};
    assert_int_equal(wire_type(b, p, "samples", "count"), 0);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "a.B.m%d", i % 7);
        struct wire_frame f = {.name = string(b, name),
                               .signature = i % 2 ? string(b, "(I)V") : 0,
                               .file = string(b, "B.java"),
                               .kind = string(b, i % 3 ? "interpreted" : "native"),
                               .line = i};
        node = number(wire_node(b, i % 5 ? node : 0, number(wire_frame(b, &f))));
        struct wire_sample s = {.time_ns = i % 4 ? p->start_ns + (uint64_t)i : 0,
                                .value = i % 3 + 1,
                                .node = node,
                                .labels = i % 2 ? thread : 0,
                                .link = i % 5 == 4 ? link : 0};
        assert_int_equal(wire_sample(b, p, &s), 0);
    }
}

static int64_t sum_of(const struct wire_batch *b)
{
    int64_t sum = 0;
    for (size_t i = 0; i < b->profiles.len; i++)
        for (size_t k = 0; k < b->profiles.data[i].samples.len; k++)
            sum += b->profiles.data[i].samples.data[k].value;
    return sum;
}

static void test_a_batch_stores_equal_things_once(void **state)
{
    struct wire_batch b = {0};
    fill(&b);
    size_t strings = b.strings.strings.len, frames = b.frames.len, nodes = b.nodes.len;
    size_t sets = b.sets.len, links = b.links.len;
    fill(&b);
    assert_int_equal(b.strings.strings.len, strings);
    assert_int_equal(b.frames.len, frames);
    assert_int_equal(b.nodes.len, nodes);
    assert_int_equal(b.sets.len, sets);
    assert_int_equal(b.links.len, links);
    assert_true(nodes > 10 && links == 2);
    struct wire_label l[] = {{string(&b, "b"), string(&b, "2")},
                             {string(&b, "a"), string(&b, "1")},
                             {string(&b, "b"), string(&b, "3")},
                             {string(&b, "c"), 0}};
    uint32_t set = number(wire_labels(&b, l, 4));
    assert_int_equal(b.sets.data[set].len, 2);
    assert_true(str_is(wire_label(&b, set, "b"), "3"));
    assert_true(str_is(wire_label(&b, set, "c"), ""));
    /* Text that is not UTF-8 is converted to it. */
    assert_true(str_is(wire_text(&b, number(wire_string(&b, "\xff", 1))), "\xef\xbf\xbd"));
    wire_batch_release(&b);
}

static void test_what_otlp_writes_it_reads(void **state)
{
    struct wire_batch b = {0}, again = {0};
    struct buf message = BUF(1 << 20), second = BUF(1 << 20), why = BUF(1024);
    fill(&b);
    assert_int_equal(otlp_encode(&b, &message), 0);
    assert_true(otlp_is(message.data, message.len));
    assert_int_equal(otlp_decode(&again, message.data, message.len, &why), 0);
    assert_int_equal(sum_of(&again), sum_of(&b));
    assert_int_equal(again.frames.len, b.frames.len);
    assert_int_equal(again.nodes.len, b.nodes.len);
    struct wire_profile *p = &again.profiles.data[0];
    assert_int_equal(p->start_ns, 1700000000000000000);
    assert_int_equal(p->period, 10000000);
    assert_true(str_is(wire_label(&again, p->resource, WIRE_SERVICE), "shop"));
    struct wire_meaning m = wire_meaning(&again, p, 0);
    assert_true(m.metric == WIRE_CPU && m.ns == 10000000 && m.count == 1 && !m.repeated);
    /* A profile that was read keeps its id when it is written. */
    assert_int_equal(otlp_encode(&again, &second), 0);
    struct wire_batch third = {0};
    assert_int_equal(otlp_decode(&third, second.data, second.len, &why), 0);
    assert_memory_equal(third.profiles.data[0].id, p->id, sizeof(p->id));
    wire_batch_release(&b);
    wire_batch_release(&again);
    wire_batch_release(&third);
    buf_release(&message);
    buf_release(&second);
    buf_release(&why);
}

/* A pprof profile with two values per sample, labels and an inlined frame. */
static void make_pprof(struct buf *to)
{
    static const char *const strings[] = {"",      "samples", "count",  "cpu",  "nanoseconds",
                                          "a.B.c", "x.Y.z",   "thread", "main", "a.B.c(I)V"};
    struct buf part = BUF(4096), inner = BUF(4096);
    for (unsigned t = 1; t <= 3; t += 2) {
        protobuf_put_number(&part, 1, t);
        protobuf_put_number(&part, 2, t + 1);
        protobuf_put_part(to, 1, &part);
    }
    for (unsigned i = 1; i <= 40; i++) {
        buf_varint(&inner, i % 2 + 1);
        buf_varint(&inner, 1);
        protobuf_put_part(&part, 1, &inner);
        buf_varint(&inner, i);
        buf_varint(&inner, i * 10000000);
        protobuf_put_part(&part, 2, &inner);
        protobuf_put_number(&inner, 1, 7);
        protobuf_put_number(&inner, 2, 8);
        protobuf_put_part(&part, 3, &inner);
        protobuf_put_part(to, 2, &part);
    }
    for (unsigned i = 1; i <= 2; i++) {
        protobuf_put_number(&part, 1, i);
        for (unsigned line = 1; line <= i; line++) {
            protobuf_put_number(&inner, 1, line);
            protobuf_put_number(&inner, 2, 10 * line);
            protobuf_put_part(&part, 4, &inner);
        }
        protobuf_put_part(to, 4, &part);
        protobuf_put_number(&part, 1, i);
        protobuf_put_number(&part, 2, i + 4);
        protobuf_put_number(&part, 3, i == 1 ? 9 : 0);
        protobuf_put_part(to, 5, &part);
    }
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        protobuf_put_bytes(to, 6, strings[i], strlen(strings[i]));
    protobuf_put_number(to, 9, 1700000000000000000);
    protobuf_put_number(to, 12, 10000000);
    protobuf_put_number(&part, 1, 3);
    protobuf_put_number(&part, 2, 4);
    protobuf_put_part(to, 11, &part);
    buf_release(&part);
    buf_release(&inner);
}

static void test_pprof_is_read(void **state)
{
    struct wire_batch b = {0};
    struct buf pprof = BUF(1 << 20), why = BUF(1024);
    make_pprof(&pprof);
    assert_int_equal(pprof_decode(&b, pprof.data, pprof.len, 0, &why), 0);
    assert_int_equal(sum_of(&b), 820 + 820 * 10000000LL);
    struct wire_profile *p = &b.profiles.data[0];
    struct wire_meaning samples = wire_meaning(&b, p, 0), cpu = wire_meaning(&b, p, 1);
    assert_true(samples.metric == WIRE_CPU && samples.count == 1 && !samples.repeated);
    assert_true(cpu.metric == WIRE_CPU && cpu.ns == 1 && cpu.count == 10000000 && cpu.repeated);
    assert_true(str_is(wire_label(&b, p->samples.data[0].labels, WIRE_THREAD), "main"));
    assert_int_equal(b.nodes.len, 1 + 1 + 1 + 2);
    wire_batch_release(&b);
    buf_release(&pprof);
    buf_release(&why);
}

/* ---- hostile input ---- */

static uint64_t seed = 1;

static uint32_t random_number(void)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(seed >> 33);
}

typedef int decoder(struct wire_batch *b, const void *data, size_t len, struct buf *why);

static int decode_pprof(struct wire_batch *b, const void *data, size_t len, struct buf *why)
{
    return pprof_decode(b, data, len, 0, why);
}

static int decode_push(struct wire_batch *b, const void *data, size_t len, struct buf *why)
{
    return pyroscope_push(b, false, data, len, why);
}

static int decode_push_json(struct wire_batch *b, const void *data, size_t len, struct buf *why)
{
    return pyroscope_push(b, true, data, len, why);
}

static int decode_contexts(struct wire_batch *b, const void *data, size_t len, struct buf *why)
{
    struct pyroscope_contexts c;
    int r = pyroscope_contexts(&c, b, data, len, why);
    if (r == 0)
        pyroscope_contexts_release(&c);
    return r;
}

/* Whatever bytes were changed, cut or doubled, the result is one that is documented. */
static void mutate(const struct buf *good, decoder *decode, int times)
{
    for (int i = 0; i < times; i++) {
        size_t len = random_number() % 4 ? good->len : random_number() % good->len;
        /* A separate copy, so that the sanitizer sees reads beyond its end. */
        uint8_t *bytes = malloc(len + 1);
        memcpy(bytes, good->data, len);
        for (uint32_t n = 1 + random_number() % 4; len && n > 0; n--)
            bytes[random_number() % len] = (uint8_t)(random_number() % 3 ? random_number() : 0xff);
        struct wire_batch b = {.limits = {.bytes = 4 << 20, .samples = 10000, .entries = 10000}};
        struct buf why = BUF(1024);
        int r = decode(&b, bytes, len, &why);
        assert_true(r == 0 || r == -EPROTO || r == -E2BIG || r == -ENOTSUP || r == -EINVAL);
        assert_true(r == 0 || why.len > 0);
        for (size_t k = 0; k < b.nodes.len; k++)
            assert_true(b.nodes.data[k].parent < b.nodes.len && b.nodes.data[k].parent <= k);
        for (size_t k = 0; k < b.profiles.len; k++)
            for (size_t s = 0; s < b.profiles.data[k].samples.len; s++)
                assert_true(b.profiles.data[k].samples.data[s].node < b.nodes.len &&
                            b.profiles.data[k].samples.data[s].type < b.profiles.data[k].types.len);
        wire_batch_release(&b);
        buf_release(&why);
        free(bytes);
    }
}

static void test_damaged_messages_do_no_harm(void **state)
{
    struct wire_batch b = {0};
    struct buf otlp = BUF(1 << 20), pprof = BUF(1 << 20), push = BUF(1 << 20), part = BUF(1 << 20),
               packed = BUF(1 << 20), json = BUF(1 << 20), contexts = BUF(4096);
    fill(&b);
    assert_int_equal(otlp_encode(&b, &otlp), 0);
    make_pprof(&pprof);
    assert_int_equal(wire_pack_gzip(pprof.data, pprof.len, &packed), 0);
    protobuf_put_bytes(&part, 1, pprof.data, pprof.len);
    struct buf series = BUF(1 << 20);
    protobuf_put_part(&series, 2, &part);
    protobuf_put_part(&push, 1, &series);
    buf_string(&json, "{\"series\":[{\"labels\":[{\"name\":\"a\",\"value\":\"b\"}],"
                      "\"samples\":[{\"rawProfile\":\"H4sIAAAAAAAA/w==\",\"ID\":\"x\"}]}]}");
    buf_bytes(&contexts,
              "\x0a\x0a\x08\x01\x12\x06\x0a\x04\x08\x01\x10\x02"
              "\x12\x07\x08\x01\x12\x03key\x12\x07\x08\x02\x12\x03val",
              30);
    mutate(&otlp, otlp_decode, 20000);
    mutate(&pprof, decode_pprof, 20000);
    mutate(&push, decode_push, 5000);
    mutate(&json, decode_push_json, 5000);
    mutate(&contexts, decode_contexts, 5000);
    wire_batch_release(&b);
    buf_release(&otlp);
    buf_release(&pprof);
    buf_release(&push);
    buf_release(&part);
    buf_release(&series);
    buf_release(&packed);
    buf_release(&json);
    buf_release(&contexts);
}

/* Decodes a dictionary whose table of this field has n equal entries. */
static int decode_table(unsigned field, size_t n, const char *entry, size_t len,
                        struct wire_batch *b, struct buf *why)
{
    struct buf dictionary = BUF(1 << 28), message = BUF(1 << 28);
    for (size_t i = 0; i < n; i++)
        protobuf_put_bytes(&dictionary, field, entry, len);
    protobuf_put_part(&message, 2, &dictionary);
    int r = otlp_decode(b, message.data, message.len, why);
    buf_release(&dictionary);
    buf_release(&message);
    return r;
}

static void test_what_grows_beyond_the_limits_is_refused(void **state)
{
    struct wire_batch b = {0};
    struct buf why = BUF(1024);
    assert_int_equal(decode_table(5, 1000001, "", 0, &b, &why), -E2BIG);
    assert_non_null(strstr(buf_str(&why), "too many entries"));
    wire_batch_release(&b);
    buf_clear(&why);
    /* Each frame of a stack adds one level. */
    struct wire_frame f = {.name = string(&b, "a")};
    int64_t frame = wire_frame(&b, &f), node = 0;
    for (int i = 0; i < 4096; i++)
        node = wire_node(&b, number(node), number(frame));
    assert_int_equal(wire_node(&b, number(node), number(frame)), -E2BIG);
    assert_string_equal(b.beyond, "a stack with too many frames");
    /* Memory is bounded, whatever it is used for. */
    wire_batch_release(&b);
    b.limits.bytes = 1 << 20;
    int64_t n = 0;
    for (int i = 0; i < 1000000 && n >= 0; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%d", i);
        n = wire_string(&b, text, strlen(text));
    }
    assert_int_equal(n, -E2BIG);
    wire_batch_release(&b);
    buf_release(&why);
}

static void test_a_short_message_with_long_stacks_is_refused(void **state)
{
    /* A location with 4,000 lines, to which 20,000 stacks refer, all of which are needed. */
    struct buf dictionary = BUF(1 << 26), part = BUF(1 << 20), message = BUF(1 << 26),
               profile = BUF(1 << 24), why = BUF(1024);
    protobuf_put_bytes(&dictionary, 5, "", 0);
    protobuf_put_bytes(&dictionary, 3, "", 0);
    protobuf_put_bytes(&dictionary, 2, "", 0);
    for (int i = 0; i < 4000; i++)
        protobuf_put_bytes(&part, 3, "", 0);
    protobuf_put_part(&dictionary, 2, &part);
    for (int i = 0; i < 20000; i++)
        protobuf_put_bytes(&dictionary, 7, "\x0a\x01\x01", 3);
    for (int i = 1; i < 20000; i++) {
        protobuf_put_number(&part, 1, (uint64_t)i);
        protobuf_put_bytes(&part, 4, "\x01", 1);
        protobuf_put_part(&profile, 2, &part);
    }
    protobuf_put_part(&part, 2, &profile);
    struct buf resource = BUF(1 << 25);
    protobuf_put_part(&resource, 2, &part);
    protobuf_put_part(&message, 1, &resource);
    protobuf_put_part(&message, 2, &dictionary);
    struct wire_batch b = {0};
    assert_int_equal(otlp_decode(&b, message.data, message.len, &why), -E2BIG);
    wire_batch_release(&b);
    buf_release(&dictionary);
    buf_release(&part);
    buf_release(&message);
    buf_release(&profile);
    buf_release(&resource);
    buf_release(&why);
}

/* ---- bodies ---- */

static void test_bombs_are_not_unpacked(void **state)
{
    enum { ZEROS = 32 << 20, MAX_BYTES = 1 << 20 };

    uint8_t *zeros = calloc(1, ZEROS), *zstd = malloc(ZEROS);
    struct buf packed = BUF(ZEROS), out = BUF(ZEROS), why = BUF(1024);
    assert_int_equal(wire_pack_gzip(zeros, ZEROS, &packed), 0);
    assert_true(packed.len < 100000);
    assert_int_equal(unpack_bytes(packed.data, packed.len, MAX_BYTES, &out, &why), -E2BIG);
    assert_string_equal(buf_str(&why), "more than 1 MiB when it is unpacked");
    assert_int_equal(out.cap, 0);
    assert_int_equal(unpack_bytes(packed.data, packed.len, ZEROS, &out, &why), 0);
    assert_int_equal(out.len, ZEROS);
    buf_clear(&out);
    buf_clear(&why);
    size_t n = ZSTD_compress(zstd, ZEROS, zeros, ZEROS, 3);
    assert_int_equal(unpack_bytes(zstd, n, MAX_BYTES, &out, &why), -E2BIG);
    assert_int_equal(unpack_bytes(zstd, n, ZEROS, &out, &why), 0);
    assert_int_equal(out.len, ZEROS);
    buf_clear(&out);
    buf_clear(&why);
    assert_int_equal(unpack_bytes(zstd, n - 5, ZEROS, &out, &why), -EPROTO);
    assert_int_equal(unpack_bytes(packed.data, packed.len - 5, ZEROS, &out, &why), -EPROTO);
    /* A body that is not compressed is copied, within the same bound. */
    assert_int_equal(unpack_bytes("text", 4, 4, &out, &why), 0);
    assert_int_equal(unpack_bytes("text", 4, 3, &out, &why), -E2BIG);
    free(zeros);
    free(zstd);
    buf_release(&packed);
    buf_release(&out);
    buf_release(&why);
}

/* Zeros that fill the file up are allowed, as gzip allows them. */
static void test_what_follows_compressed_data_is_refused(void **state)
{
    uint8_t zstd[256];
    struct buf packed = BUF(4096), out = BUF(4096), why = BUF(1024);
    assert_int_equal(wire_pack_gzip("text", 4, &packed), 0);
    size_t one = packed.len;
    assert_int_equal(wire_pack_gzip("more", 4, &packed), 0);
    assert_int_equal(unpack_bytes(packed.data, packed.len, 100, &out, &why), 0);
    assert_int_equal(out.len, 8);
    packed.len = one;
    buf_bytes(&packed, "\0\0\0", 3);
    assert_int_equal(unpack_bytes(packed.data, packed.len, 100, &out, &why), 0);
    assert_int_equal(out.len, 12);
    buf_bytes(&packed, "x", 1);
    assert_int_equal(unpack_bytes(packed.data, packed.len, 100, &out, &why), -EPROTO);
    assert_string_equal(buf_str(&why), "something else follows the compressed data");
    size_t n = ZSTD_compress(zstd, sizeof(zstd), "text", 4, 3);
    memcpy(zstd + n, "rest", 4);
    assert_int_equal(unpack_bytes(zstd, n + 4, 100, &out, &why), -EPROTO);
    buf_release(&packed);
    buf_release(&out);
    buf_release(&why);
}

static void test_multipart(void **state)
{
    static const char type[] = "multipart/form-data; boundary=\"x-y\"",
                      body[] = "preamble\r\n--x-y\r\nContent-Disposition: form-data; name=\"jfr\"; "
                               "filename=\"a b.jfr\"\r\nContent-Type: application/octet-stream\r\n"
                               "\r\nFLR\r\n--x-\r\n\r\n--x-y\r\n"
                               "content-disposition: form-data; name=empty\r\n\r\n\r\n--x-y--\r\n";
    struct multipart m;
    struct multipart_part p;
    assert_true(multipart_begin(&m, type, body, strlen(body)));
    assert_true(multipart_next(&m, &p));
    assert_true(str_is(p.name, "jfr") || (p.name.len == 3 && !memcmp(p.name.data, "jfr", 3)));
    assert_true(p.file_name.len == 7 && !memcmp(p.file_name.data, "a b.jfr", 7));
    assert_int_equal(p.len, strlen("FLR\r\n--x-\r\n"));
    assert_true(multipart_next(&m, &p));
    assert_true(p.name.len == 5 && p.len == 0);
    assert_false(multipart_next(&m, &p));
    assert_false(m.failed);
    assert_false(multipart_begin(&m, "text/plain", body, strlen(body)));
    assert_false(multipart_begin(&m, "multipart/form-data", body, strlen(body)));
    for (size_t len = 0; len < strlen(body) - 4; len++) {
        uint8_t *cut = malloc(len + 1);
        memcpy(cut, body, len);
        assert_true(multipart_begin(&m, type, cut, len));
        while (multipart_next(&m, &p))
            assert_true(p.data >= cut && p.data + p.len <= cut + len);
        assert_true(m.failed);
        free(cut);
    }
}

/* ---- Pyroscope ---- */

static const char *argument(const void *request, const char *key)
{
    const char *const *pairs = request;
    for (; pairs[0]; pairs += 2)
        if (strcmp(pairs[0], key) == 0)
            return pairs[1];
    return NULL;
}

static void test_the_query_of_ingest(void **state)
{
    const char *const query[] = {"name",   "shop.cpu{region=eu,zone=\"a b\"}",
                                 "from",   "1700000000",
                                 "until",  "1700000010000",
                                 "format", "jfr",
                                 NULL};
    struct wire_batch b = {0};
    struct pyroscope_ingest i;
    struct buf why = BUF(1024);
    assert_int_equal(pyroscope_ingest(&i, &b, argument, query, &why), 0);
    assert_string_equal(buf_str(&i.service), "shop.cpu");
    assert_true(str_is(wire_label(&b, i.labels, "zone"), "a b"));
    assert_int_equal(i.format, PYROSCOPE_JFR);
    assert_int_equal(i.from_ns, 1700000000000000000);
    assert_int_equal(i.until_ns, 1700000010000000000);
    pyroscope_ingest_release(&i);
    const char *const open[] = {"name", "shop{a=b", NULL}, *const none[] = {NULL};
    assert_int_equal(pyroscope_ingest(&i, &b, argument, open, &why), -EINVAL);
    assert_int_equal(pyroscope_ingest(&i, &b, argument, none, &why), -EINVAL);
    wire_batch_release(&b);
    buf_release(&why);
}

static void check_query(bool json, const void *data, size_t len)
{
    struct pyroscope_query q;
    struct buf why = BUF(1024);
    assert_int_equal(pyroscope_query(&q, PYROSCOPE_SELECT_SERIES, json, data, len, &why), 0);
    assert_string_equal(q.profile_type, "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
    assert_int_equal(q.matchers.len, 2);
    assert_string_equal(q.matchers.data[0].value, "a\"b");
    assert_int_equal(q.matchers.data[1].how, MATCH_NOT_REGEX);
    assert_int_equal(q.start_ms, 1700000000000);
    assert_int_equal(q.group_by.len, 1);
    assert_true(q.step_s == 15);
    assert_true(q.average);
    pyroscope_query_release(&q);
    buf_release(&why);
}

static void test_queries_in_both_forms(void **state)
{
    static const char type[] = "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                      selector[] = "{service_name=\"a\\\"b\", pod!~`x.*`,}",
                      json[] =
                          "{\"profileTypeID\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\","
                          "\"labelSelector\":\"{service_name=\\\"a\\\\\\\"b\\\", pod!~`x.*`,}\","
                          "\"start\":\"1700000000000\",\"end\":1700000600000,\"step\":15,"
                          "\"groupBy\":[\"pod\"],"
                          "\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\"}";
    struct buf message = BUF(4096), why = BUF(1024);
    protobuf_put_bytes(&message, 1, type, strlen(type));
    protobuf_put_bytes(&message, 2, selector, strlen(selector));
    protobuf_put_number(&message, 3, 1700000000000);
    protobuf_put_bytes(&message, 5, "pod", 3);
    protobuf_put_double(&message, 6, 15);
    protobuf_put_number(&message, 7, 1);
    check_query(false, message.data, message.len);
    check_query(true, json, strlen(json));
    struct pyroscope_query q;
    static const char *const bad[] = {"{\"labelSelector\":\"{a=}\"}", "{\"labelSelector\":\"{a\"}",
                                      "[]", "{", "{\"labelSelector\":\"a b\"}"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        buf_clear(&why);
        assert_true(
            pyroscope_query(&q, PYROSCOPE_SELECT_SERIES, true, bad[i], strlen(bad[i]), &why) < 0);
        assert_true(why.len > 0);
    }
    assert_int_equal(pyroscope_query_kind("SelectMergeStacktraces"),
                     PYROSCOPE_SELECT_MERGE_STACKTRACES);
    assert_int_equal(pyroscope_query_kind("Diff"), PYROSCOPE_QUERIES);
    buf_release(&message);
    buf_release(&why);
}

static void test_answers_in_json(void **state)
{
    /* main 3 { work 5 { leaf 2 }, rest 1 } */
    static const struct pyroscope_node nodes[] = {
        {0, 0, 0}, {0, 1, 3}, {1, 2, 5}, {2, 3, 2}, {1, 4, 1}};
    static const char *const names[] = {"total", "main", "work", "leaf", "rest"};
    struct pyroscope_flame f = {nodes, ARRAY_SIZE(nodes), names, ARRAY_SIZE(names)};
    struct buf out = BUF(1 << 16);
    assert_int_equal(pyroscope_put_flame(&f, 0, true, &out), 0);
    assert_string_equal(
        buf_str(&out),
        "{\"flamegraph\":{\"names\":[\"total\",\"main\",\"work\",\"leaf\",\"rest\"],\"levels\":["
        "{\"values\":[\"0\",\"11\",\"0\",\"0\"]},{\"values\":[\"0\",\"11\",\"3\",\"1\"]},"
        "{\"values\":[\"3\",\"7\",\"5\",\"2\",\"0\",\"1\",\"1\",\"4\"]},"
        "{\"values\":[\"8\",\"2\",\"2\",\"3\"]}],\"total\":\"11\",\"maxSelf\":\"5\"}}");
    buf_clear(&out);
    /* The lightest are combined; nothing is lost. */
    assert_int_equal(pyroscope_put_flame(&f, 3, true, &out), 0);
    assert_non_null(strstr(buf_str(&out), "\"other\""));
    assert_non_null(strstr(buf_str(&out), "{\"values\":[\"8\",\"2\",\"2\",\"5\"]}"));
    assert_non_null(strstr(buf_str(&out), "\"total\":\"11\""));
    buf_clear(&out);
    struct pyroscope_profile_type t = {"memory:alloc_space:bytes:space:bytes"};
    assert_int_equal(pyroscope_put_profile_types(&t, 1, true, &out), 0);
    assert_string_equal(buf_str(&out),
                        "{\"profileTypes\":[{\"ID\":\"memory:alloc_space:bytes:space:bytes\","
                        "\"name\":\"memory\",\"sampleType\":\"alloc_space\",\"sampleUnit\":"
                        "\"bytes\",\"periodType\":\"space\",\"periodUnit\":\"bytes\"}]}");
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_stores_equal_things_once),
        cmocka_unit_test(test_what_otlp_writes_it_reads),
        cmocka_unit_test(test_pprof_is_read),
        cmocka_unit_test(test_damaged_messages_do_no_harm),
        cmocka_unit_test(test_what_grows_beyond_the_limits_is_refused),
        cmocka_unit_test(test_a_short_message_with_long_stacks_is_refused),
        cmocka_unit_test(test_bombs_are_not_unpacked),
        cmocka_unit_test(test_what_follows_compressed_data_is_refused),
        cmocka_unit_test(test_multipart),
        cmocka_unit_test(test_the_query_of_ingest),
        cmocka_unit_test(test_queries_in_both_forms),
        cmocka_unit_test(test_answers_in_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
