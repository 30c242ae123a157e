/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/value.h"

#include "answers/heap/collections.h"
#include "answers/heap/heap.h"
#include "answers/heap/shown.h"
#include "base/parse.h"
#include "base/real.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN = 80, MAX_DEPTH = 3 };

static bool box_value(const char *class, uint64_t bits, struct buf *b)
{
    float f;
    double d;
    uint32_t low = (uint32_t)bits;
    if (!strcmp(class, "java.lang.Integer") ||
        !strcmp(class, "java.util.concurrent.atomic.AtomicInteger"))
        buf_printf(b, "%" PRId32, (int32_t)bits);
    else if (!strcmp(class, "java.lang.Long") ||
             !strcmp(class, "java.util.concurrent.atomic.AtomicLong"))
        buf_printf(b, "%" PRId64, (int64_t)bits);
    else if (!strcmp(class, "java.lang.Short"))
        buf_printf(b, "%d", (int16_t)bits);
    else if (!strcmp(class, "java.lang.Byte"))
        buf_printf(b, "%d", (int8_t)bits);
    else if (!strcmp(class, "java.lang.Boolean") ||
             !strcmp(class, "java.util.concurrent.atomic.AtomicBoolean"))
        buf_string(b, bits ? "true" : "false");
    else if (!strcmp(class, "java.lang.Float"))
        real_put(b, (double)*(float *)memcpy(&f, &low, 4), true);
    else if (!strcmp(class, "java.lang.Double"))
        real_put(b, *(double *)memcpy(&d, &bits, 8), false);
    else if (!strcmp(class, "java.lang.Character")) {
        uint32_t c = (uint32_t)bits & 0xffff;
        buf_string(b, c == '\'' || c == '\\' ? "'\\" : "'");
        heap_put_character(b, c);
        buf_u8(b, '\'');
    } else
        return false;
    return true;
}

/* Classes that are shown by one of their fields. */
static const struct {
    const char *class, *field, *prefix;
} shown_by[] = {
    {"java.lang.Thread", "name", ""},
    {"java.lang.ThreadGroup", "name", ""},
    {"java.lang.Enum", "name", ""},
    {"java.lang.Module", "name", ""},
    {"java.net.URI", "string", ""},
    {"java.io.File", "path", ""},
    {"sun.nio.fs.UnixPath", "path", ""},
    {"java.util.Locale", "baseLocale", ""},
    {"sun.util.locale.BaseLocale", "language", ""},
    {"java.util.regex.Pattern", "pattern", ""},
    {"java.lang.Throwable", "detailMessage", ""},
    {"java.lang.reflect.Method", "name", ""},
    {"java.lang.reflect.Field", "name", ""},
    {"java.lang.Package", "pkgName", ""},
    {"java.util.jar.JarFile", "name", ""},
    {"java.util.zip.ZipFile", "name", ""},
    {"java.util.concurrent.atomic.AtomicReference", "value", ""},
    {"java.lang.ref.Reference", "referent", "-> "},
    {"java.util.UUID", "mostSigBits", "0x"},
};

static bool shown_value(const struct heap *h, uint64_t i, struct buf *b, int depth)
{
    for (size_t c = 0; c < ARRAY_SIZE(shown_by); c++) {
        int32_t base = heap_class_of(h, i);
        while (base != HEAP_NO_CLASS &&
               strcmp(h->dump->classes.data[base].name, shown_by[c].class) != 0)
            base = h->dump->classes.data[base].super;
        uint64_t value;
        if (base == HEAP_NO_CLASS)
            continue;
        if (!heap_get_object(h, i, shown_by[c].field, &value)) {
            if (strcmp(shown_by[c].class, "java.util.UUID") != 0 ||
                !heap_get(h, i, shown_by[c].field, &value))
                continue;
            uint64_t low = 0;
            (void)heap_get(h, i, "leastSigBits", &low);
            buf_printf(b, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
                       value >> 32, value >> 16 & 0xffff, value & 0xffff, low >> 48,
                       low & UINT64_C(0xffffffffffff));
            return true;
        }
        buf_string(b, shown_by[c].prefix);
        if (!heap_value(h, value, b, depth + 1))
            buf_string(b, heap_class_name(h, value));
        return true;
    }
    return false;
}

static bool array_value(const struct heap *h, const struct hprof_item *item, struct buf *b)
{
    if (item->tag == HPROF_OBJECT_ARRAY_DUMP) {
        uint64_t used = 0;
        for (uint32_t k = 0; k < MIN(item->count, 1u << 20); k++)
            used += hprof_id_at(item->body + (uint64_t)k * h->dump->header.id_size,
                                h->dump->header.id_size) != 0;
        buf_printf(b, "[%u], %s%" PRIu64 " set", item->count, item->count > 1u << 20 ? "over " : "",
                   used);
    } else {
        buf_printf(b, "[%u]", item->count);
        bool text = item->type == HPROF_BYTE && item->count > 0;
        for (uint32_t k = 0; k < MIN(item->count, 32u) && text; k++)
            text = item->body[k] >= 0x20 && item->body[k] < 0x7f;
        if (text) {
            buf_u8(b, ' ');
            size_t start = b->len;
            buf_bytes(b, item->body, MIN(item->count, 32u));
            heap_quote(b, start, item->count > 32);
        }
    }
    return true;
}

bool heap_value(const struct heap *h, uint64_t i, struct buf *b, int depth)
{
    struct hprof_item item;
    uint64_t bits;
    if (i >= h->n || depth > MAX_DEPTH || !heap_item(h, i, &item))
        return false;
    if (item.tag == HPROF_CLASS_DUMP) {
        int32_t class = heap_dump_class(h->dump, item.id);
        buf_string(b, class == HEAP_NO_CLASS ? "?" : h->dump->classes.data[class].name);
        return true;
    }
    if (item.tag != HPROF_INSTANCE_DUMP)
        return array_value(h, &item, b);
    if (heap_class_of(h, i) == h->dump->string_class) {
        size_t start = b->len;
        if (!heap_string(h, i, b, SHOWN))
            return false;
        heap_quote(b, start, b->len - start >= SHOWN);
        return true;
    }
    if (heap_get(h, i, "value", &bits) && box_value(heap_class_name(h, i), bits, b))
        return true;
    if (heap_collection_size(h, i, &bits)) {
        buf_printf(b, "size %" PRIu64, bits);
        return true;
    }
    return heap_shown(h, i, b) || shown_value(h, i, b, depth);
}

void heap_answer_value(struct answer *a, const struct heap *h, uint64_t i)
{
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    if (heap_value(h, i, &b, 0))
        answer_text(a, buf_str(&b));
    else
        answer_null(a);
}

/* The name of the class that an object of java.lang.Class stands for; NULL for other objects. */
static const char *stands_for(const struct heap *h, uint64_t i)
{
    int32_t class = i < h->n && heap_class_of(h, i) == h->dump->class_class
                        ? heap_dump_class(h->dump, heap_id(h, i))
                        : HEAP_NO_CLASS;
    return class == HEAP_NO_CLASS ? NULL : h->dump->classes.data[class].name;
}

void heap_describe(const struct heap *h, uint64_t i, struct buf *b)
{
    const char *class = stands_for(h, i);
    if (class) {
        buf_printf(b, "class %s @ 0x%" PRIx64, class, heap_id(h, i));
        return;
    }
    buf_string(b, heap_class_name(h, i));
    if (i >= h->n)
        return;
    buf_printf(b, " @ 0x%" PRIx64, heap_id(h, i));
    size_t before = b->len;
    buf_u8(b, ' ');
    if (!heap_value(h, i, b, 0))
        b->len = before;
}

void heap_describe_short(const struct heap *h, uint64_t i, struct buf *b)
{
    const char *class = stands_for(h, i);
    if (class) {
        buf_printf(b, "class %s", class);
        return;
    }
    buf_string(b, heap_class_name(h, i));
    size_t before = b->len;
    buf_u8(b, ' ');
    if (i >= h->n || !heap_value(h, i, b, 0))
        b->len = before;
}

int heap_object_named(const struct heap_call *c, const char *text, uint64_t *ret)
{
    const struct heap *h = c->heap;
    uint64_t id;
    if (strcmp(text, "root") == 0 || strcmp(text, "roots") == 0) {
        *ret = h->n;
        return 0;
    }
    if (parse_u64(text, 0, UINT64_MAX, &id) < 0) {
        answer_refuse(c->answer, text, "no address of an object", "as in 0x7f00beef8");
        return 2;
    }
    id = heap_ids_find(&h->ids, id);
    if (id == HEAP_NONE)
        return answer_refuse(c->answer, text, "no object of the dump has this address", NULL);
    *ret = id;
    return 0;
}

static void static_name(const struct heap *h, const struct hprof_item *item, uint64_t id,
                        struct buf *b)
{
    struct hprof_class c;
    struct hprof_static s;
    if (hprof_class_read(item, h->dump->header.id_size, &c) < 0)
        return;
    for (unsigned k = c.statics;
         k && hprof_static_read(&c.statics_at, h->dump->header.id_size, false, &s); k--) {
        struct str name = heap_dump_string(h->dump, s.name);
        if (s.type == HPROF_OBJECT && s.value == id) {
            buf_string(b, "static ");
            buf_bytes(b, name.data, name.data ? name.len : 0);
            return;
        }
    }
    buf_string(b, id == c.super ? "<super class>" : id == c.loader ? "<class loader>" : "<class>");
}

void heap_link_name(const struct heap *h, uint64_t from, uint64_t to, struct buf *b)
{
    struct hprof_item item;
    struct heap_field f;
    const unsigned n = h->dump->header.id_size;
    uint64_t id = heap_id(h, to);
    if (!heap_item(h, from, &item))
        return;
    if (item.tag == HPROF_OBJECT_ARRAY_DUMP) {
        for (uint64_t k = 0; k < item.count; k++) {
            if (hprof_id_at(item.body + k * n, n) == id) {
                buf_printf(b, "[%" PRIu64 "]", k);
                return;
            }
        }
    } else if (item.tag == HPROF_CLASS_DUMP) {
        static_name(h, &item, id, b);
    } else if (item.tag == HPROF_INSTANCE_DUMP) {
        for (unsigned k = 0; heap_field_at(h->dump, heap_class_of(h, from), k, &f); k++) {
            if (f.type == HPROF_OBJECT && (uint64_t)f.offset + n <= item.body_len &&
                hprof_id_at(item.body + f.offset, n) == id) {
                buf_string(b, f.name);
                return;
            }
        }
    }
    if (item.tag != HPROF_CLASS_DUMP && item.class_id == id)
        buf_string(b, "<class>");
}
