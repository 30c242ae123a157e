/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic images of a VM for tests: its tables, code, methods and stacks, without a VM. */
#pragma once

#include "hotspot/code.h"
#include "hotspot/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A synthetic image: bytes at BASE with the four tables as libjvm exports them, made from what
 * tools/layouts wrote about a real libjvm, and whatever else a test adds.
 */
enum { BASE = 0x10000, IMAGE_SIZE = 1 << 20, STRIDE = 48 };

struct image {
    uint8_t *bytes;
    uint64_t used;
    uint64_t tables[4]; /* addresses of the variables that hold the tables' addresses */
    /* addresses of variables with the values 0, 8, 16 ...: the offsets within an entry */
    uint64_t numbers[64];
};

static inline uint64_t put(struct image *im, const void *bytes, size_t len)
{
    uint64_t at = im->used;
    if (at + len + 8 >= IMAGE_SIZE)
        abort();
    memcpy(im->bytes + at, bytes, len);
    im->used = (at + len + 7) & ~7ul;
    return BASE + at;
}

static inline uint64_t put_u64(struct image *im, uint64_t v)
{
    return put(im, &v, sizeof(v));
}

static inline uint64_t put_string(struct image *im, const char *s)
{
    return put(im, s, strlen(s) + 1);
}

static inline int image_read(void *context, uint64_t address, void *bytes, size_t len)
{
    struct image *im = context;
    if (address < BASE || address - BASE > IMAGE_SIZE || len > IMAGE_SIZE - (address - BASE))
        return -EFAULT;
    memcpy(bytes, im->bytes + (address - BASE), len);
    return 0;
}

static inline int image_symbol(void *context, const char *name, uint64_t *ret)
{
    static const char *const tables[] = {"gHotSpotVMStructs", "gHotSpotVMTypes",
                                         "gHotSpotVMIntConstants", "gHotSpotVMLongConstants"};

    static const struct {
        const char *suffix;
        unsigned offset;
    } parts[] = {{"TypeNameOffset", 0},  {"FieldNameOffset", 8}, {"TypeStringOffset", 16},
                 {"IsStaticOffset", 24}, {"AddressOffset", 40},  {"ArrayStride", STRIDE},
                 {"SizeOffset", 32},     {"ValueOffset", 32},    {"OffsetOffset", 32},
                 {"NameOffset", 0}};
    struct image *im = context;
    for (unsigned i = 0; i < 4; i++)
        if (strcmp(name, tables[i]) == 0) {
            *ret = im->tables[i];
            return im->tables[i] ? 0 : -ENOENT;
        }
    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++)
        if (strlen(name) > strlen(parts[i].suffix) &&
            strcmp(name + strlen(name) - strlen(parts[i].suffix), parts[i].suffix) == 0) {
            *ret = im->numbers[parts[i].offset / 8];
            return 0;
        }
    return -ENOENT;
}

/*
 * Loads tests/data/layouts/N.txt, without the lines that contain `skip`, and with changed values
 * for the entries in `change`.
 */
static inline struct hotspot_image make_image(struct image *im, int version, const char *skip,
                                              const char *change, int64_t value)
{
    char path[64], line[256];
    uint8_t *tables[3];
    size_t used[3] = {0};
    *im = (struct image){.bytes = calloc(1, IMAGE_SIZE), .used = 8};
    for (unsigned i = 0; i < 3; i++)
        tables[i] = calloc(300, STRIDE);
    snprintf(path, sizeof(path), "tests/data/layouts/%d.txt", version);
    FILE *f = fopen(path, "r");
    if (!f)
        abort();
    uint64_t major = put_u64(im, (uint64_t)(version == 8 ? 25 : version));
    while (fgets(line, sizeof(line), f)) {
        char what[16], type[128], field[64];
        long long number;
        if (sscanf(line, "%15s %127s %63s %lld", what, type, field, &number) != 4 ||
            (skip && strstr(line, skip)))
            continue;
        if (change && strstr(line, change))
            number = value;
        unsigned t = strcmp(what, "size") == 0 ? 1 : strcmp(what, "constant") == 0 ? 2 : 0;
        uint64_t entry[STRIDE / 8] = {put_string(im, type),
                                      strcmp(field, "-") ? put_string(im, field) : 0, 0, 0,
                                      (uint64_t)number};
        if (strcmp(what, "static") == 0) {
            entry[3] = 1;
            entry[5] = strstr(line, "_vm_major_version") ? major : put_u64(im, 0);
        }
        memcpy(tables[t] + used[t]++ * STRIDE, entry, STRIDE);
    }
    fclose(f);
    for (unsigned i = 0; i < 3; i++) {
        im->tables[i] = put_u64(im, put(im, tables[i], (used[i] + 1) * STRIDE));
        free(tables[i]);
    }
    im->tables[3] = put_u64(im, put(im, (uint8_t[STRIDE]){0}, STRIDE));
    for (unsigned i = 0; i <= STRIDE / 8; i++)
        im->numbers[i] = put_u64(im, i * 8);
    return (struct hotspot_image){im, image_symbol, image_read};
}

/* ---- code ---- */

/* An nmethod of JDK 17 at the start of a heap with one block, and the contents of its tables. */
struct code_image {
    struct image im;
    struct hotspot_layout layout;
    struct memory memory;
    struct code_cache cache;
    uint64_t blob, code, method[2];
};

static inline void poke(struct image *im, uint64_t address, const void *bytes, size_t len)
{
    memcpy(im->bytes + (address - BASE), bytes, len);
}

static inline void poke64(struct image *im, uint64_t address, uint64_t v)
{
    poke(im, address, &v, 8);
}

static inline void poke32(struct image *im, uint64_t address, uint32_t v)
{
    poke(im, address, &v, 4);
}

static inline void make_code(struct code_image *c, const uint8_t *scopes, size_t scopes_len)
{
    char why[200];
    struct hotspot_image image = make_image(&c->im, 17, NULL, NULL, 0);
    if (hotspot_layout_read(&image, &c->layout, why, sizeof(why)) < 0)
        abort();
    const struct hotspot_layout *l = &c->layout;
    c->memory = (struct memory){&c->im, image_read};
    static const uint8_t zeros[8192];
    c->im.used = (c->im.used + 127) & ~127ul;
    uint64_t heap = put(&c->im, zeros, sizeof(zeros)), segmap = put(&c->im, zeros, 64);
    c->cache = (struct code_cache){
        .layout = l, .low = heap, .high = heap + sizeof(zeros), .heap_count = 1};
    c->cache.heaps[0] = (struct code_heap){heap, heap + sizeof(zeros), segmap, 7};
    /* One block of eight segments, followed by free ones. */
    for (unsigned i = 0; i < 64; i++)
        c->im.bytes[segmap - BASE + i] = i < 8 ? (uint8_t)i : 0xff;
    c->im.bytes[heap - BASE + (unsigned)l->block_used] = 1;
    c->blob = heap + (uint64_t)l->sizeof_block;
    c->code = c->blob + 400;
    poke64(&c->im, c->blob + (uint64_t)l->blob_name, put_string(&c->im, "nmethod"));
    poke32(&c->im, c->blob + (uint64_t)l->blob_size, 900);
    poke64(&c->im, c->blob + (uint64_t)l->blob_code_begin, c->code);
    poke64(&c->im, c->blob + (uint64_t)l->blob_code_end, c->code + 200);
    poke32(&c->im, c->blob + (uint64_t)l->blob_frame_size, 6);
    poke32(&c->im, c->blob + (uint64_t)l->blob_frame_complete, 12);
    poke64(&c->im, c->blob + (uint64_t)l->nm_method, c->method[0] = 0x5000);
    c->method[1] = 0x6000;
    poke32(&c->im, c->blob + (uint64_t)l->nm_metadata, 620);
    /* The metadata begins at 620, so that its second entry is deliberately not aligned. */
    poke64(&c->im, c->blob + 624, 0);
    poke(&c->im, c->blob + 620, (uint64_t[]){0x5000, 0x6000}, 16);
    poke64(&c->im, c->blob + (uint64_t)l->nm_scopes_data_begin, c->blob + 640);
    poke(&c->im, c->blob + 640, scopes, scopes_len);
    poke32(&c->im, c->blob + (uint64_t)l->nm_scopes_pcs, 700);
    poke32(&c->im, c->blob + (uint64_t)l->nm_dependencies, 700 + 4 * 16);
    const uint32_t pcs[4][4] = {{UINT32_MAX, 0}, {20, 1}, {60, 8}, {INT32_MAX, 0}};
    poke(&c->im, c->blob + 700, pcs, sizeof(pcs));
}
