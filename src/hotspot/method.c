/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/method.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LIMIT = 1 << 16, LINES_MAX = 1 << 16, POOL_MAX = 1 << 17 };

static bool is_pointer(uint64_t address)
{
    return address >= 4096 && (address & 7) == 0;
}

/*
 * The first word of the symbol without its reference count, which is in the low 16 bits from JDK 17
 * on and in the next 16 bits before.
 */
static uint64_t without_count(const struct hotspot_layout *l, uint64_t symbol)
{
    return symbol & (l->symbol_length == 0 ? ~UINT64_C(0xffff0000) : ~UINT64_C(0xffff));
}

bool method_parts(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                  struct method_parts *ret)
{
    struct method_parts p;
    if (!is_pointer(method) || !load_u64(m, method + (uint64_t)l->method_const, &p.constant) ||
        !is_pointer(p.constant) || !load_u64(m, p.constant + (uint64_t)l->const_pool, &p.pool) ||
        !is_pointer(p.pool) || !load_u64(m, p.pool + (uint64_t)l->pool_holder, &p.holder) ||
        !is_pointer(p.holder) || !load_u64(m, p.holder + (uint64_t)l->klass_name, &p.class_name) ||
        !is_pointer(p.class_name) || !load_u64(m, p.class_name, &p.symbol))
        return false;
    p.symbol = without_count(l, p.symbol);
    *ret = p;
    return true;
}

at_each_sample bool method_parts_still_hold(const struct hotspot_layout *l, const struct memory *m,
                                            uint64_t method, const struct method_parts *p)
{
    struct method_parts now = {0};
    return load_u64(m, method + (uint64_t)l->method_const, &now.constant) &&
           load_u64(m, p->constant + (uint64_t)l->const_pool, &now.pool) &&
           load_u64(m, p->pool + (uint64_t)l->pool_holder, &now.holder) &&
           now.constant == p->constant && now.pool == p->pool && now.holder == p->holder;
}

at_each_sample bool method_parts_hold(const struct hotspot_layout *l, const struct memory *m,
                                      uint64_t method, const struct method_parts *p)
{
    struct method_parts now = {0};
    return method_parts_still_hold(l, m, method, p) &&
           load_u64(m, p->holder + (uint64_t)l->klass_name, &now.class_name) &&
           load_u64(m, p->class_name, &now.symbol) && now.class_name == p->class_name &&
           without_count(l, now.symbol) == p->symbol;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

at_each_sample uint32_t method_parts_check(const struct method_parts *p)
{
    uint64_t h = mix(mix(mix(mix(p->constant, p->pool), p->holder), p->class_name), p->symbol);
    return (uint32_t)(h >> 16) & METHOD_CHECK_MASK;
}

at_each_sample bool method_bci(const struct hotspot_layout *l, const struct memory *m,
                               uint64_t method, uint64_t bcp, int32_t *ret_bci, bool *ret_native)
{
    uint64_t constant;
    uint16_t size;
    uint32_t words;
    if (!is_pointer(method) || !load_u64(m, method + (uint64_t)l->method_const, &constant) ||
        !is_pointer(constant) || !load_u16(m, constant + (uint64_t)l->const_code_size, &size) ||
        !load_u32(m, constant + (uint64_t)l->const_size, &words))
        return false;
    /* The ConstMethod's size, in words, includes at least its header and the code. */
    if (words > POOL_MAX || words * 8 < (uint32_t)l->sizeof_const_method + size)
        return false;
    uint64_t code = constant + (uint64_t)l->sizeof_const_method;
    *ret_native = size == 0;
    *ret_bci = bcp - code < size ? (int32_t)(bcp - code) : -1;
    return true;
}

static bool read_symbol(const struct hotspot_layout *l, const struct memory *m, uint64_t symbol,
                        struct buf *ret)
{
    uint16_t len;
    *ret = BUF(NAME_LIMIT);
    if (!is_pointer(symbol) || !load_u16(m, symbol + (uint64_t)l->symbol_length, &len))
        return false;
    uint8_t *bytes = buf_add(ret, len);
    return bytes && memory_read(m, symbol + (uint64_t)l->symbol_body, bytes, len);
}

/*
 * Appends the symbol at an index of a constant pool; the lowest bit of an entry may be a mark.
 * Returns false when it cannot be read or the index is 0, which is not an entry.
 */
static bool read_pool_symbol(const struct hotspot_layout *l, const struct memory *m, uint64_t pool,
                             uint16_t index, struct buf *ret)
{
    uint32_t length;
    uint64_t symbol;
    return load_u32(m, pool + (uint64_t)l->pool_length, &length) && index > 0 && index < length &&
           load_u64(m, pool + (uint64_t)l->sizeof_pool + 8 * (uint64_t)index, &symbol) &&
           read_symbol(l, m, symbol & ~UINT64_C(1), ret);
}

/* Entries of a constant pool as the VM stores them (JVM specification 4.4). */
enum { POOL_METHOD = 10, POOL_INTERFACE_METHOD = 11 };

/*
 * Finds the name of the class at an index. From JDK 9 on, an entry holds the index of its name;
 * before, it holds a class or its name.
 */
static bool read_pool_class(const struct hotspot_layout *l, const struct memory *m, uint64_t pool,
                            uint16_t index, struct buf *ret)
{
    uint64_t entry, at = pool + (uint64_t)l->sizeof_pool + 8 * (uint64_t)index;
    if (!load_u64(m, at, &entry))
        return false;
    if (l->version > 8)
        return read_pool_symbol(l, m, pool, (uint16_t)(entry >> 16), ret);
    return entry & 1 ? read_symbol(l, m, entry & ~UINT64_C(1), ret)
                     : method_class_name(l, m, entry, ret);
}

static struct str text_of(const struct buf *b)
{
    return (struct str){(const char *)b->data, b->data ? b->len : 0};
}

/*
 * Decodes a reference to a method: the indices of its class and of its name and type, which has the
 * index of the name.
 */
static void consider(const struct hotspot_layout *l, const struct memory *m, uint64_t pool,
                     uint16_t index, struct str host, struct generated_target *target)
{
    uint64_t first = pool + (uint64_t)l->sizeof_pool;
    uint32_t entry, length, type;
    struct buf class = BUF(NAME_LIMIT), name = BUF(NAME_LIMIT);
    if (load_u32(m, first + 8 * (uint64_t)index, &entry) &&
        load_u32(m, pool + (uint64_t)l->pool_length, &length) && (uint16_t)entry < length &&
        entry >> 16 < length && load_u32(m, first + 8 * (uint64_t)(entry >> 16), &type) &&
        read_pool_class(l, m, pool, (uint16_t)entry, &class) &&
        read_pool_symbol(l, m, pool, (uint16_t)type, &name))
        generated_target_consider(target, host, text_of(&class), text_of(&name));
    buf_release(&class);
    buf_release(&name);
}

/* The target of a lambda is one of the methods to which its class refers. */
static void find_lambda(const struct hotspot_layout *l, const struct memory *m, uint64_t pool,
                        struct method_description *d)
{
    enum { LAMBDA_POOL_MAX = 1000, TAGS_AT = 4 }; /* the elements of an array follow its length */

    uint64_t tags;
    uint32_t length;
    size_t host;
    struct str name = text_of(&d->class_name);
    if (!name.len || !generated_name_is_lambda(name.data, name.len, &host) ||
        l->pool_tags == LAYOUT_NONE || !load_u64(m, pool + (uint64_t)l->pool_tags, &tags) ||
        !is_pointer(tags) || !load_u32(m, pool + (uint64_t)l->pool_length, &length))
        return;
    for (uint32_t i = 1; i < MIN(length, (uint32_t)LAMBDA_POOL_MAX); i++) {
        uint8_t tag = 0;
        if (load_u8(m, tags + TAGS_AT + i, &tag) &&
            (tag == POOL_METHOD || tag == POOL_INTERFACE_METHOD))
            consider(l, m, pool, (uint16_t)i, (struct str){name.data, host}, &d->lambda);
    }
}

/* Adds the interfaces of a proxy's class. */
static void find_interfaces(const struct hotspot_layout *l, const struct memory *m, uint64_t holder,
                            struct method_description *d)
{
    enum { INTERFACES_MAX = 16, FIRST_AT = 8 }; /* the pointers follow the array's length */

    uint64_t array, class;
    uint32_t n;
    struct str name = text_of(&d->class_name);
    if (!name.len || !generated_name_is_proxy(name.data, name.len) ||
        l->class_interfaces == LAYOUT_NONE ||
        !load_u64(m, holder + (uint64_t)l->class_interfaces, &array) || !is_pointer(array) ||
        !load_u32(m, array, &n))
        return;
    for (uint32_t i = 0; i < MIN(n, (uint32_t)INTERFACES_MAX); i++) {
        struct buf interface = BUF(NAME_LIMIT);
        if (load_u64(m, array + FIRST_AT + 8 * (uint64_t)i, &class) &&
            method_class_name(l, m, class, &interface))
            generated_target_implements(&d->lambda, text_of(&interface));
        buf_release(&interface);
    }
}

static bool read_source_file(const struct hotspot_layout *l, const struct memory *m,
                             const struct method_parts *p, struct buf *ret)
{
    uint16_t index;
    uint64_t at = l->pool_source_file != LAYOUT_NONE ? p->pool + (uint64_t)l->pool_source_file
                                                     : p->holder + (uint64_t)l->class_source_file;
    if (!load_u16(m, at, &index))
        return false;
    return index == 0 || read_pool_symbol(l, m, p->pool, index, ret);
}

struct line_reader {
    const struct hotspot_layout *layout;
    const struct memory *memory;
    uint64_t at, end;
};

static bool read_byte(struct line_reader *r, uint8_t *ret)
{
    return r->at < r->end && load_u8(r->memory, r->at++, ret);
}

static bool read_signed(struct line_reader *r, int32_t *ret)
{
    uint32_t base = r->layout->unsigned5_base, sum = 0;
    for (unsigned i = 0; i < 5; i++) {
        uint8_t byte;
        if (!read_byte(r, &byte) || byte < base)
            return false;
        sum += (uint32_t)(byte - base) << (6 * i);
        if (byte < 256 - 64)
            break;
    }
    *ret = (int32_t)(sum >> 1) ^ -(int32_t)(sum & 1);
    return true;
}

/*
 * Decodes one step of the compressed table; false at its end. Small steps take one byte; others
 * have an escape byte and two numbers.
 */
static bool next_line(struct line_reader *r, int32_t *bci, int32_t *line)
{
    uint8_t byte;
    int32_t bci_step, line_step;
    if (!read_byte(r, &byte) || byte == 0)
        return false;
    if (byte == 0xff) {
        if (!read_signed(r, &bci_step) || !read_signed(r, &line_step))
            return false;
    } else {
        bci_step = byte >> 3;
        line_step = byte & 7;
    }
    *bci += bci_step;
    *line += line_step;
    return true;
}

/* Lines that cannot be read are left out: a method without lines still has a name. */
static int read_lines(const struct hotspot_layout *l, const struct memory *m, uint64_t constant,
                      struct method_description *d)
{
    uint32_t flags, words;
    if (d->code_size == 0 || !load_u32(m, constant + (uint64_t)l->const_flags, &flags) ||
        !(flags & (uint32_t)l->has_line_numbers) ||
        !load_u32(m, constant + (uint64_t)l->const_size, &words))
        return 0;
    uint64_t begin = constant + (uint64_t)l->sizeof_const_method + d->code_size,
             end = constant + 8 * (uint64_t)words;
    struct line_reader reader = {.layout = l, .memory = m, .at = begin, .end = end};
    int32_t bci = 0, line = 0;
    size_t count = 0;
    while (count < LINES_MAX && next_line(&reader, &bci, &line))
        count++;
    if (count == 0)
        return 0;
    d->lines = calloc(count, sizeof(*d->lines));
    if (!d->lines)
        return -ENOMEM;
    reader.at = begin;
    bci = line = 0;
    while (d->line_count < count && next_line(&reader, &bci, &line))
        d->lines[d->line_count++] = (struct bytecode_line){(uint16_t)bci, (uint32_t)line};
    return 0;
}

/*
 * Returns the data of the class loader, to which every class points; the boot loader's data has no
 * loader. 0 also when it cannot be read.
 */
static uint64_t find_loader(const struct hotspot_layout *l, const struct memory *m, uint64_t class)
{
    uint64_t data, loader;
    return load_u64(m, class + (uint64_t)l->klass_loader_data, &data) &&
                   load_u64(m, data + (uint64_t)l->loader_data_loader, &loader) && loader
               ? data
               : 0;
}

static int describe(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                    const struct method_parts *p, struct method_description *d)
{
    uint16_t name, signature;
    if (!load_u16(m, p->constant + (uint64_t)l->const_name, &name) ||
        !load_u16(m, p->constant + (uint64_t)l->const_signature, &signature) ||
        !load_u16(m, p->constant + (uint64_t)l->const_code_size, &d->code_size) ||
        !load_u16(m, method + (uint64_t)l->method_access, &d->modifiers) ||
        !read_symbol(l, m, p->class_name, &d->class_name) ||
        !read_pool_symbol(l, m, p->pool, name, &d->name) ||
        !read_pool_symbol(l, m, p->pool, signature, &d->signature) ||
        !read_source_file(l, m, p, &d->source_file))
        return -ESTALE;
    d->loader = find_loader(l, m, p->holder);
    d->holder = p->holder;
    find_lambda(l, m, p->pool, d);
    find_interfaces(l, m, p->holder, d);
    return read_lines(l, m, p->constant, d);
}

int method_describe(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                    uint32_t check, struct method_description *ret)
{
    struct method_description d = {0};
    struct method_parts p;
    if (!method_parts(l, m, method, &p) || method_parts_check(&p) != check)
        return -ESTALE;
    int r = describe(l, m, method, &p, &d);
    if (buf_error(&d.class_name) == -ENOMEM || buf_error(&d.name) == -ENOMEM ||
        buf_error(&d.signature) == -ENOMEM)
        r = -ENOMEM;
    if (r == 0 && !method_parts_hold(l, m, method, &p))
        r = -ESTALE;
    if (r < 0)
        method_description_release(&d);
    else
        *ret = d;
    return r;
}

bool method_class_name(const struct hotspot_layout *l, const struct memory *m, uint64_t address,
                       struct buf *ret)
{
    uint64_t symbol;
    return is_pointer(address) && load_u64(m, address + (uint64_t)l->klass_name, &symbol) &&
           read_symbol(l, m, symbol, ret);
}

void method_description_release(struct method_description *d)
{
    buf_release(&d->class_name);
    buf_release(&d->name);
    buf_release(&d->signature);
    buf_release(&d->source_file);
    free(d->lines);
    *d = (struct method_description){0};
}

uint32_t method_line_of(const struct method_description *d, int32_t bci)
{
    uint32_t line = 0, best = 0;
    if (bci < 0)
        return 0;
    for (size_t i = 0; i < d->line_count; i++)
        if (d->lines[i].bci <= (uint32_t)bci && (line == 0 || d->lines[i].bci >= best)) {
            best = d->lines[i].bci;
            line = d->lines[i].line;
        }
    return line;
}
