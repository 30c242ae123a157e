/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a recording of execution samples in the form that the JVM's own recorder gives them: types
 * with the names and fields of the JDK, states and frame types as constants, and ids of stacks that
 * begin anew in each chunk, which has the constants that its events need. The same arguments give
 * the same bytes. Usage: jfr_generate FILE SAMPLES STACKS THREADS DEPTH [BYTES_A_CHUNK]
 */
#include "generate.h"

#include <endian.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    METADATA,
    CHECKPOINT,
    INT = 10,
    LONG,
    BOOLEAN,
    STRING,
    SYMBOL = 20,
    CLASS,
    METHOD,
    FRAME_TYPE,
    FRAME,
    STACK,
    THREAD,
    STATE,
    SAMPLE = 40,
    METHODS = 5000,
    FRAME_TYPES = 4,
    STATES = 6,
    STEP_NS = 500000
};

static const int64_t start_ns = INT64_C(1700000000) * 1000000000;

struct out {
    uint8_t *data;
    size_t len, cap;
};

static void put_bytes(struct out *o, const void *bytes, size_t len)
{
    if (o->len + len > o->cap) {
        o->cap = (o->len + len) * 2;
        o->data = realloc(o->data, o->cap);
        if (!o->data)
            exit(1);
    }
    memcpy(o->data + o->len, bytes, len);
    o->len += len;
}

static void put_u8(struct out *o, uint8_t v)
{
    put_bytes(o, &v, 1);
}

static void put_long(struct out *o, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        put_u8(o, (uint8_t)(v | 0x80));
    put_u8(o, (uint8_t)v);
}

static void put_text(struct out *o, const char *s)
{
    put_u8(o, 3);
    put_long(o, strlen(s));
    put_bytes(o, s, strlen(s));
}

static void put_be64(struct out *o, uint64_t v)
{
    v = htobe64(v);
    put_bytes(o, &v, sizeof(v));
}

/* Appends an event whose size takes four bytes. */
static void put_event(struct out *to, const struct out *body)
{
    uint64_t size = body->len + 4;
    for (int i = 0; i < 4; i++)
        put_u8(to, (uint8_t)((size >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0)));
    put_bytes(to, body->data, body->len);
}

/* ---- metadata ---- */

struct field {
    const char *name;
    int type;
    bool constant, array;
};

static const struct type {
    int id;
    const char *name, *super;
    struct field fields[7];
} types[] = {
    {INT, "int", NULL, {{0}}},
    {LONG, "long", NULL, {{0}}},
    {BOOLEAN, "boolean", NULL, {{0}}},
    {STRING, "java.lang.String", NULL, {{0}}},
    {SYMBOL, "jdk.types.Symbol", NULL, {{"string", STRING, 0, 0}}},
    {CLASS,
     "java.lang.Class",
     NULL,
     {{"name", SYMBOL, 1, 0}, {"modifiers", INT, 0, 0}, {"hidden", BOOLEAN, 0, 0}}},
    {METHOD,
     "jdk.types.Method",
     NULL,
     {{"type", CLASS, 1, 0},
      {"name", SYMBOL, 1, 0},
      {"descriptor", SYMBOL, 1, 0},
      {"modifiers", INT, 0, 0},
      {"hidden", BOOLEAN, 0, 0}}},
    {FRAME_TYPE, "jdk.types.FrameType", NULL, {{"description", STRING, 0, 0}}},
    {FRAME,
     "jdk.types.StackFrame",
     NULL,
     {{"method", METHOD, 1, 0},
      {"lineNumber", INT, 0, 0},
      {"bytecodeIndex", INT, 0, 0},
      {"type", FRAME_TYPE, 1, 0}}},
    {STACK, "jdk.types.StackTrace", NULL, {{"truncated", BOOLEAN, 0, 0}, {"frames", FRAME, 0, 1}}},
    {THREAD,
     "java.lang.Thread",
     NULL,
     {{"osName", STRING, 0, 0},
      {"osThreadId", LONG, 0, 0},
      {"javaName", STRING, 0, 0},
      {"javaThreadId", LONG, 0, 0},
      {"virtual", BOOLEAN, 0, 0}}},
    {STATE, "jdk.types.ThreadState", NULL, {{"name", STRING, 0, 0}}},
    {SAMPLE,
     "jdk.ExecutionSample",
     "jdk.jfr.Event",
     {{"startTime", LONG, 0, 0},
      {"sampledThread", THREAD, 1, 0},
      {"stackTrace", STACK, 1, 0},
      {"state", STATE, 1, 0}}},
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

static const char *strings[256];
static size_t n_strings;

static uint64_t string_of(const char *s)
{
    for (size_t i = 0; i < n_strings; i++)
        if (strcmp(strings[i], s) == 0)
            return i;
    strings[n_strings] = strdup(s);
    return n_strings++;
}

static void put_element(struct out *o, const char *name, int attributes)
{
    put_long(o, string_of(name));
    put_long(o, (uint64_t)attributes);
}

static void put_attribute(struct out *o, const char *name, const char *value)
{
    put_long(o, string_of(name));
    put_long(o, string_of(value));
}

static void put_number(struct out *o, const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    put_attribute(o, name, text);
}

static size_t count_fields(const struct type *t)
{
    size_t n = 0;
    while (n < 7 && t->fields[n].name)
        n++;
    return n;
}

static void put_metadata(struct out *to)
{
    struct out tree = {0}, body = {0};
    put_element(&tree, "root", 0);
    put_long(&tree, 1);
    put_element(&tree, "metadata", 0);
    put_long(&tree, TYPES);
    for (size_t i = 0; i < TYPES; i++) {
        const struct type *t = &types[i];
        put_element(&tree, "class", t->super ? 3 : 2);
        put_attribute(&tree, "name", t->name);
        put_number(&tree, "id", t->id);
        if (t->super)
            put_attribute(&tree, "superType", t->super);
        put_long(&tree, count_fields(t));
        for (size_t f = 0; f < count_fields(t); f++) {
            const struct field *of = &t->fields[f];
            put_element(&tree, "field", 2 + of->constant + of->array);
            put_attribute(&tree, "name", of->name);
            put_number(&tree, "class", of->type);
            if (of->constant)
                put_attribute(&tree, "constantPool", "true");
            if (of->array)
                put_attribute(&tree, "dimension", "1");
            put_long(&tree, 0);
        }
    }
    put_long(&body, METADATA);
    for (int i = 0; i < 3; i++) /* start time, duration, metadata id */
        put_long(&body, (uint64_t)i);
    put_long(&body, n_strings);
    for (size_t i = 0; i < n_strings; i++)
        put_text(&body, strings[i]);
    put_bytes(&body, tree.data, tree.len);
    put_event(to, &body);
    free(tree.data);
    free(body.data);
}

/* ---- chunks ---- */

static struct {
    FILE *file;
    uint64_t stacks, threads, depth;
    uint64_t *frames; /* [stacks][depth]: the method, and its line in the upper half */
    uint32_t *id;     /* by stack: its id in the chunk; 0: not used yet */
    uint64_t *used;   /* the stacks of the chunk, in the order of their ids */
    uint64_t n_used, events;
    struct out events_out;
    int64_t begin, now;
} g;

static void make_stacks(void)
{
    for (uint64_t i = 0; i < g.stacks; i++) {
        uint64_t request = i % 100;
        for (uint64_t k = 0; k < g.depth; k++) { /* innermost first; the roots are shared */
            uint64_t root = g.depth - k;
            uint64_t method = root <= g.depth * 2 / 5 ? request * 13 + root
                                                      : 1300 + next_random() % (METHODS - 1300);
            g.frames[i * g.depth + k] = method % METHODS | (method * 7 + root) % 400 << 32;
        }
    }
}

static void put_names(struct out *o, int type, const char *const *names, uint64_t n)
{
    put_long(o, (uint64_t)type);
    put_long(o, n);
    for (uint64_t i = 0; i < n; i++) {
        put_long(o, i + 1);
        put_text(o, names[i]);
    }
}

/* Symbols: 0 is "()V"; then a class and a method for each method. */
static void put_methods(struct out *o)
{
    static uint8_t seen[METHODS];
    char text[64];
    uint64_t n = 0;
    memset(seen, 0, sizeof(seen));
    for (uint64_t i = 0; i < g.n_used; i++)
        for (uint64_t k = 0; k < g.depth; k++)
            seen[(uint32_t)g.frames[g.used[i] * g.depth + k]] = 1;
    for (uint64_t m = 0; m < METHODS; m++)
        n += seen[m];
    put_long(o, METHOD);
    put_long(o, n);
    for (uint64_t m = 0; m < METHODS; m++)
        if (seen[m]) {
            put_long(o, m << 16 | 1);
            put_long(o, m + 1);
            put_long(o, 2 * m + 3);
            put_long(o, 1);
            put_long(o, 1);
            put_u8(o, 0);
        }
    put_long(o, CLASS);
    put_long(o, n);
    for (uint64_t m = 0; m < METHODS; m++)
        if (seen[m]) {
            put_long(o, m + 1);
            put_long(o, 2 * m + 2);
            put_long(o, 1);
            put_u8(o, 0);
        }
    put_long(o, SYMBOL);
    put_long(o, 2 * n + 1);
    put_long(o, 1);
    put_text(o, "()V");
    for (uint64_t m = 0; m < METHODS; m++)
        if (seen[m]) {
            snprintf(text, sizeof(text), "bench/p%d/Server%d", (int)m % 31, (int)m / 7);
            put_long(o, 2 * m + 2);
            put_text(o, text);
            snprintf(text, sizeof(text), "method%d", (int)m % 7);
            put_long(o, 2 * m + 3);
            put_text(o, text);
        }
}

static void put_constants(struct out *to)
{
    static const char *const frame_types[FRAME_TYPES] = {"Interpreted", "JIT compiled", "Inlined",
                                                         "Native"},
                             *const states[STATES] = {
                                 "STATE_NEW",      "STATE_TERMINATED",     "STATE_RUNNABLE",
                                 "STATE_SLEEPING", "STATE_IN_OBJECT_WAIT", "STATE_PARKED"};
    struct out o = {0};
    put_long(&o, CHECKPOINT);
    put_long(&o, (uint64_t)g.now);
    put_long(&o, 0);
    put_long(&o, 0); /* no checkpoint before this one */
    put_u8(&o, 1);
    put_long(&o, 7);
    put_names(&o, FRAME_TYPE, frame_types, FRAME_TYPES);
    put_names(&o, STATE, states, STATES);
    put_long(&o, THREAD);
    put_long(&o, g.threads);
    for (uint64_t i = 1; i <= g.threads; i++) {
        char name[24];
        snprintf(name, sizeof(name), "worker-%u", (unsigned)i);
        put_long(&o, i);
        put_text(&o, name);
        put_long(&o, 1000 + i);
        put_text(&o, name);
        put_long(&o, i);
        put_u8(&o, 0);
    }
    put_long(&o, STACK);
    put_long(&o, g.n_used);
    for (uint64_t i = 0; i < g.n_used; i++) {
        put_long(&o, i + 1);
        put_u8(&o, 0);
        put_long(&o, g.depth);
        for (uint64_t k = 0; k < g.depth; k++) {
            uint64_t frame = g.frames[g.used[i] * g.depth + k];
            put_long(&o, (frame & 0xffffffff) << 16 | 1);
            put_long(&o, frame >> 32);
            put_long(&o, (frame >> 32) * 3);
            put_long(&o, 1 + frame % 3);
        }
    }
    put_methods(&o);
    put_event(to, &o);
    free(o.data);
}

static void end_chunk(bool last)
{
    struct out o = {0}, head = {0};
    uint64_t constants = 68 + g.events_out.len;
    put_bytes(&o, g.events_out.data, g.events_out.len);
    put_constants(&o);
    uint64_t metadata = 68 + o.len;
    put_metadata(&o);
    put_bytes(&head, "FLR", 4);
    put_bytes(&head, "\0\2\0\1", 4);
    put_be64(&head, 68 + o.len);
    put_be64(&head, constants);
    put_be64(&head, metadata);
    put_be64(&head, (uint64_t)(start_ns + g.begin));
    put_be64(&head, (uint64_t)(g.now - g.begin));
    put_be64(&head, (uint64_t)g.begin); /* ticks are nanoseconds */
    put_be64(&head, 1000000000);
    put_bytes(&head, last ? "\0\0\0\3" : "\0\0\0\1", 4);
    fwrite(head.data, 1, head.len, g.file);
    fwrite(o.data, 1, o.len, g.file);
    free(head.data);
    free(o.data);
    g.events_out.len = 0;
    for (uint64_t i = 0; i < g.n_used; i++)
        g.id[g.used[i]] = 0;
    g.n_used = 0;
    g.begin = g.now;
}

static void put_sample(void)
{
    struct out *o = &g.events_out;
    uint64_t stack = next_random() % g.stacks;
    stack = stack * (next_random() % 64) / 64;
    if (!g.id[stack]) {
        g.used[g.n_used++] = stack;
        g.id[stack] = (uint32_t)g.n_used;
    }
    size_t at = o->len;
    put_u8(o, 0); /* the size, which fits in one byte */
    put_long(o, SAMPLE);
    put_long(o, (uint64_t)g.now);
    put_long(o, 1 + next_random() % g.threads);
    put_long(o, g.id[stack]);
    put_long(o, next_random() % 8 ? 3 : 1 + next_random() % STATES);
    o->data[at] = (uint8_t)(o->len - at);
    g.now += STEP_NS;
}

int main(int argc, char **argv)
{
    if (argc < 6 || !(g.file = fopen(argv[1], "w"))) {
        fprintf(stderr, "usage: jfr_generate FILE SAMPLES STACKS THREADS DEPTH [BYTES_A_CHUNK]\n");
        return 1;
    }
    uint64_t samples = strtoull(argv[2], NULL, 10),
             chunk = argc > 6 ? strtoull(argv[6], NULL, 10) : UINT64_MAX;
    g.stacks = strtoull(argv[3], NULL, 10);
    g.threads = strtoull(argv[4], NULL, 10);
    g.depth = strtoull(argv[5], NULL, 10);
    g.frames = calloc(g.stacks * g.depth, sizeof(*g.frames));
    g.id = calloc(g.stacks, sizeof(*g.id));
    g.used = calloc(g.stacks, sizeof(*g.used));
    if (!g.frames || !g.id || !g.used)
        return 1;
    make_stacks();
    for (uint64_t n = 0; n < samples; n++) {
        put_sample();
        if (g.events_out.len >= chunk && n + 1 < samples)
            end_chunk(false);
    }
    end_chunk(true);
    return fclose(g.file) != 0;
}
