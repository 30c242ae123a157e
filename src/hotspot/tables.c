/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/tables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LEN = 256, ENTRIES_MAX = 20000, STRIDE_MAX = 256 };

/* Reads an exported 64-bit variable: the address of a table, or an offset within its entries. */
static int variable(const struct hotspot_image *image, const char *prefix, const char *name,
                    uint64_t *ret)
{
    char symbol[128];
    uint64_t address;
    snprintf(symbol, sizeof(symbol), "%s%s", prefix, name);
    int r = image->symbol(image->context, symbol, &address);
    return r < 0 ? r : image_u64(image, address, ret);
}

static int string_at(const struct hotspot_image *image, uint64_t address, char *ret)
{
    uint64_t text = 0;
    int r = image_u64(image, address, &text);
    return r < 0 ? r : image_string(image, text, ret, NAME_MAX_LEN);
}

struct table {
    const char *table;             /* the symbol that holds the table's address */
    const char *prefix;            /* the prefix of the symbols that describe an entry */
    const char *name, *field;      /* offsets of an entry's two names; `field` may be NULL */
    const char *is_static, *where; /* for fields only */
    const char *value;             /* offset of the value */
    unsigned value_size;
    enum table_kind kind;
};

static const struct table tables[] = {
    {"gHotSpotVMStructs", "gHotSpotVMStructEntry", "TypeNameOffset", "FieldNameOffset",
     "IsStaticOffset", "AddressOffset", "OffsetOffset", 8, TABLE_FIELD},
    {"gHotSpotVMTypes", "gHotSpotVMTypeEntry", "TypeNameOffset", NULL, NULL, NULL, "SizeOffset", 8,
     TABLE_TYPE},
    {"gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry", "NameOffset", NULL, NULL, NULL,
     "ValueOffset", 4, TABLE_CONSTANT},
    {"gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntry", "NameOffset", NULL, NULL, NULL,
     "ValueOffset", 8, TABLE_CONSTANT},
};

/* The offsets of an entry's parts, which the VM exports. */
struct entry_form {
    uint64_t first, stride, name, field, is_static, where, value;
};

static int read_form(const struct hotspot_image *image, const struct table *t,
                     struct entry_form *ret)
{
    struct entry_form f = {0};
    int r;
    if ((r = variable(image, t->table, "", &f.first)) < 0 ||
        (r = variable(image, t->prefix, "ArrayStride", &f.stride)) < 0 ||
        (r = variable(image, t->prefix, t->name, &f.name)) < 0 ||
        (r = variable(image, t->prefix, t->value, &f.value)) < 0)
        return r;
    if (t->field && ((r = variable(image, t->prefix, t->field, &f.field)) < 0 ||
                     (r = variable(image, t->prefix, t->is_static, &f.is_static)) < 0 ||
                     (r = variable(image, t->prefix, t->where, &f.where)) < 0))
        return r;
    if (!f.first || f.stride < 8 || f.stride > STRIDE_MAX ||
        MAX(MAX(f.name, f.field), MAX(f.where, f.value)) >= f.stride)
        return -EBADMSG;
    *ret = f;
    return 0;
}

/* Reads an entry as read_entry does, but without copies, from an image in place. */
static int entry_in_place(const struct table *t, const struct entry_form *f, const char *at,
                          struct table_entry *ret)
{
    const char *type, *name = "";
    int32_t flag = 0, small = 0;
    int64_t value = 0;
    memcpy(&type, at + f->name, sizeof(type));
    if (!type || !*type)
        return 1;
    if (t->field) {
        memcpy(&name, at + f->field, sizeof(name));
        memcpy(&flag, at + f->is_static, sizeof(flag));
    }
    if (t->value_size == 4)
        memcpy(&small, at + f->value, sizeof(small));
    else
        memcpy(&value, at + (flag ? f->where : f->value), sizeof(value));
    *ret = (struct table_entry){.kind = flag ? TABLE_STATIC : t->kind,
                                .type = type,
                                .name = name ? name : "",
                                .value = t->value_size == 4 ? small : value};
    return 0;
}

/* Reads one entry; returns 1 at the end of the table, which is an entry without a name. */
static int read_entry(const struct hotspot_image *image, const struct table *t,
                      const struct entry_form *f, uint64_t at, char type[NAME_MAX_LEN],
                      char name[NAME_MAX_LEN], struct table_entry *ret)
{
    if (image->in_place)
        return entry_in_place(t, f, (const char *)(uintptr_t)at, ret);
    int r = string_at(image, at + f->name, type);
    if (r < 0)
        return r;
    if (!type[0])
        return 1;
    *ret = (struct table_entry){.kind = t->kind, .type = type, .name = name};
    name[0] = 0;
    uint32_t flag = 0, small = 0;
    uint64_t value = 0;
    if (t->field) {
        if ((r = string_at(image, at + f->field, name)) < 0 ||
            (r = image_u32(image, at + f->is_static, &flag)) < 0)
            return r;
        if (flag)
            ret->kind = TABLE_STATIC;
    }
    if (t->value_size == 4) {
        r = image_u32(image, at + f->value, &small);
        ret->value = (int32_t)small;
    } else {
        r = image_u64(image, at + (flag ? f->where : f->value), &value);
        ret->value = (int64_t)value;
    }
    return r;
}

int hotspot_tables_visit(const struct hotspot_image *image,
                         int (*visit)(void *context, const struct table_entry *entry),
                         void *context)
{
    char type[NAME_MAX_LEN], name[NAME_MAX_LEN];
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        struct entry_form form;
        int r = read_form(image, &tables[i], &form);
        if (r < 0)
            return r;
        for (size_t n = 0;; n++) {
            struct table_entry entry;
            r = n < ENTRIES_MAX ? read_entry(image, &tables[i], &form, form.first + n * form.stride,
                                             type, name, &entry)
                                : -EBADMSG;
            if (r < 0)
                return r;
            if (r == 1)
                break;
            if ((r = visit(context, &entry)) != 0)
                return r;
        }
    }
    return 0;
}
