/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a heap dump, laid out the way HotSpot does it, with about 46 million objects (2.3 GB) at a
 * scale of 1000: a linked list of 10.4 million nodes, strings with their arrays, hash maps whose
 * keys are spread over the heap, and arrays of objects and longs. The same seed gives the same
 * bytes. Usage: generate FILE [SCALE]
 */
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECT, STRING, BYTES, NODE, INTEGER, ENTRY, OBJECTS, LONGS, MAIN, CLASS, MAP, KINDS };

enum { OBJ = 2, BOOL = 4, BYTE = 8, INT = 10 };

static const struct {
    const char *name;
    unsigned fields_n, size; /* size in the VM; 0 for an array */

    struct {
        const char *name;
        unsigned type;
    } fields[4];
} kinds[KINDS] = {
    [OBJECT] = {"java/lang/Object", 0, 16},
    [STRING] = {"java/lang/String",
                4,
                24,
                {{"value", OBJ}, {"hash", INT}, {"coder", BYTE}, {"hashIsZero", BOOL}}},
    [BYTES] = {"[B", 0, 0},
    [NODE] = {"bench/List$Node", 2, 24, {{"next", OBJ}, {"item", OBJ}}},
    [INTEGER] = {"java/lang/Integer", 1, 16, {{"value", INT}}},
    [ENTRY] = {"java/util/HashMap$Node",
               4,
               32,
               {{"hash", INT}, {"key", OBJ}, {"value", OBJ}, {"next", OBJ}}},
    [OBJECTS] = {"[Ljava/lang/Object;", 0, 0},
    [LONGS] = {"[J", 0, 0},
    [MAIN] = {"bench/Main", 0, 16},
    [CLASS] = {"java/lang/Class", 0, 96},
    [MAP] = {"java/util/HashMap", 3, 32, {{"table", OBJ}, {"size", INT}, {"modCount", INT}}},
};

static FILE *out;
static uint8_t segment[2 << 20];
static size_t used;
static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void put(uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        segment[used++] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

static void record(unsigned tag, const void *body, size_t len)
{
    uint8_t head[9] = {(uint8_t)tag};
    uint32_t n = htobe32((uint32_t)len);
    memcpy(head + 5, &n, 4);
    fwrite(head, 1, sizeof(head), out);
    fwrite(body, 1, len, out);
}

static void flush(void)
{
    if (used)
        record(0x1c, segment, used);
    used = 0;
}

static void room(void)
{
    if (used > (1 << 20) - 4096)
        flush();
}

static void string(uint64_t id, const char *text)
{
    uint8_t body[256];
    uint64_t be = htobe64(id);
    memcpy(body, &be, 8);
    memcpy(body + 8, text, strlen(text));
    record(1, body, 8 + strlen(text));
}

static uint64_t class_id(int kind)
{
    return 0x7f0000000 + (uint64_t)kind * 128;
}

static uint64_t field_name(int kind, unsigned i)
{
    return 1000 + (uint64_t)kind * 8 + i;
}

static void head(uint8_t tag, uint64_t id)
{
    room();
    put(tag, 1);
    put(id, 8);
    put(1, 4);
}

static void instance(uint64_t id, int kind, unsigned bytes)
{
    head(0x21, id);
    put(class_id(kind), 8);
    put(bytes, 4);
}

static void classes(uint64_t root)
{
    for (int k = 0; k < KINDS; k++) {
        string(100 + (uint64_t)k, kinds[k].name);
        for (unsigned i = 0; i < kinds[k].fields_n; i++)
            string(field_name(k, i), kinds[k].fields[i].name);
        used = 0;
        put((uint64_t)k + 1, 4);
        put(class_id(k), 8);
        put(1, 4);
        put(100 + (uint64_t)k, 8);
        record(2, segment, used);
    }
    string(99, "root");
    used = 0;
    for (int k = 0; k < KINDS; k++) {
        head(0x20, class_id(k));
        put(k == OBJECT ? 0 : class_id(OBJECT), 8);
        for (int i = 0; i < 5; i++)
            put(0, 8);
        put(0, 4);
        put(0, 2);
        put(k == MAIN, 2);
        if (k == MAIN) {
            put(99, 8);
            put(OBJ, 1);
            put(root, 8);
        }
        put(kinds[k].fields_n, 2);
        for (unsigned i = 0; i < kinds[k].fields_n; i++) {
            put(field_name(k, i), 8);
            put(kinds[k].fields[i].type, 1);
        }
        room();
        put(5, 1);
        put(class_id(k), 8);
    }
}

static uint64_t address = 0x700000000;
static uint64_t *strings, strings_n;

static uint64_t take(uint64_t bytes)
{
    uint64_t at = address;
    address += (bytes + 7) / 8 * 8;
    return at;
}

/* The maps can refer to strings by address before they are written, because strings come first. */
static void write_strings(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        unsigned len = 8 + (unsigned)(next_random() % 24);
        uint64_t s = take(24), b = take(16 + len);
        strings[strings_n++] = s;
        instance(s, STRING, 14);
        put(b, 8);
        put(0, 4);
        put(0, 2);
        head(0x23, b);
        put(len, 4);
        put(BYTE, 1);
        for (unsigned c = 0; c < len; c++)
            segment[used++] = (uint8_t)('a' + (i * 31 + c * 7) % 26);
    }
}

/*
 * Writes each node with its Integer before the next node, the order in which a program that fills a
 * list allocates them.
 */
static uint64_t write_list(uint64_t n)
{
    uint64_t first = address;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t node = take(24), item = take(16);
        instance(node, NODE, 16);
        put(i + 1 < n ? address : 0, 8);
        put(item, 8);
        instance(item, INTEGER, 4);
        put(i, 4);
    }
    return first;
}

/*
 * Writes maps of 3 entries with a table of 16, whose keys and values are any of the strings, and
 * one array that holds the maps.
 */
static void write_maps(uint64_t maps, uint64_t *ids)
{
    for (uint64_t m = 0; m < maps; m++) {
        uint64_t map = take(32), table = take(16 + 16 * 4), entries[3];
        ids[m] = map;
        for (int e = 0; e < 3; e++)
            entries[e] = take(32);
        instance(map, MAP, 16);
        put(table, 8);
        put(3, 8);
        head(0x22, table);
        put(16, 4);
        put(class_id(OBJECTS), 8);
        for (int b = 0; b < 16; b++)
            put(b % 5 == 2 ? entries[b / 5] : 0, 8);
        for (int e = 0; e < 3; e++) {
            instance(entries[e], ENTRY, 28);
            put((uint64_t)e, 4);
            put(strings[(m * 3 + (uint64_t)e) % strings_n], 8);
            put(strings[next_random() % strings_n], 8);
            put(0, 8);
        }
    }
}

static void write_longs(uint64_t n, uint64_t *ids)
{
    for (uint64_t i = 0; i < n; i++) {
        unsigned len = 20 + (unsigned)(next_random() % 20);
        ids[i] = take(16 + len * 8);
        head(0x23, ids[i]);
        put(len, 4);
        put(11, 1);
        for (unsigned k = 0; k < len; k++)
            put(i ^ k, 8);
    }
}

static void array(uint64_t id, const uint64_t *elements, uint64_t n)
{
    flush();
    head(0x22, id);
    put(n, 4);
    put(class_id(OBJECTS), 8);
    /*
     * The segment does not fit into the buffer. Its length is known, so its body is written
     * directly.
     */
    uint8_t h[9] = {0x1c};
    uint32_t len = htobe32((uint32_t)(used + n * 8));
    memcpy(h + 5, &len, 4);
    fwrite(h, 1, 9, out);
    fwrite(segment, 1, used, out);
    used = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t be = htobe64(elements[i]);
        fwrite(&be, 1, 8, out);
    }
}

int main(int argc, char **argv)
{
    uint64_t scale = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    uint64_t list = 10400 * scale, texts = 8000 * scale, maps = 1640 * scale, longs = 1200 * scale;
    if (argc < 2 || !(out = fopen(argv[1], "wb")))
        return 2;
    setvbuf(out, NULL, _IOFBF, 1 << 20);
    strings = malloc(texts * 8);
    uint64_t *ids = malloc((maps + 1) * 8), *long_ids = malloc((longs + 1) * 8), top[3];
    fwrite("JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\1\x90\0\0\0\0", 1, 31, out);
    uint64_t root = take(16 + 3 * 4), map_array = take(16 + maps * 4),
             long_array = take(16 + longs * 4);
    classes(root);
    top[2] = map_array;
    /*
     * The arrays that hold everything are written last, but their addresses come first, as they do
     * after a compaction.
     */
    write_strings(texts);
    top[0] = write_list(list);
    write_maps(maps, ids);
    top[1] = long_array;
    write_longs(longs, long_ids);
    array(long_array, long_ids, longs);
    array(map_array, ids, maps);
    array(root, top, 3);
    fwrite("\x2c\0\0\0\0\0\0\0\0", 1, 9, out);
    return fclose(out) != 0;
}
