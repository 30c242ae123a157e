/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/code_names.h"

#include "agent/vm/vm.h"
#include "base/macro.h"

#include <stdlib.h>

/* The start of an entry of a constant pool (JVM specification 4.4); NULL when there is none. */
struct pool_entry {
    const uint8_t *at, *end;
};

static uint16_t short_at(const struct pool_entry *e, size_t at)
{
    return e->at && e->end - e->at >= (ptrdiff_t)(at + 2)
               ? (uint16_t)(e->at[at] << 8 | e->at[at + 1])
               : 0;
}

static struct str pool_text(const struct pool_entry *pool, size_t n, uint16_t index)
{
    const struct pool_entry *e = index < n ? &pool[index] : NULL;
    size_t len = e && e->at && e->at[0] == 1 ? short_at(e, 1) : 0;
    return len && e->end - e->at >= (ptrdiff_t)(3 + len)
               ? (struct str){(const char *)e->at + 3, len}
               : (struct str){"", 0};
}

static void index_pool(struct pool_entry *pool, size_t n, const uint8_t *at, const uint8_t *end)
{
    static const uint8_t sizes[] = {
        [3] = 5,  [4] = 5,  [5] = 9,  [6] = 9,  [7] = 3,  [8] = 3,  [9] = 5,  [10] = 5,
        [11] = 5, [12] = 5, [15] = 4, [16] = 3, [17] = 5, [18] = 5, [19] = 3, [20] = 3};
    for (size_t i = 1; i < n && end - at >= 3; i++) {
        uint8_t tag = at[0];
        size_t size = tag == 1                  ? 3 + (size_t)(at[1] << 8 | at[2])
                      : tag < ARRAY_SIZE(sizes) ? sizes[tag]
                                                : 0;
        if (!size)
            return;
        pool[i] = (struct pool_entry){at, end};
        at += MIN(size, (size_t)(end - at));
        i += tag == 5 || tag == 6; /* longs and doubles occupy two entries */
    }
}

/* Tags of references to members; those to an interface's methods come after METHOD. */
enum { FIELD = 9, METHOD = 10 };

/* Calls f with the fields or the methods to which a class's constant pool refers. */
static void each_member(jclass c, uint8_t kind,
                        void (*f)(void *context, struct str owner, struct str name), void *context)
{
    jint count = 0, size = 0;
    unsigned char *bytes = NULL;
    if ((*vm.ti)->GetConstantPool(vm.ti, c, &count, &size, &bytes) != JVMTI_ERROR_NONE)
        return;
    size_t n = count > 0 ? (size_t)count : 0;
    struct pool_entry *pool = calloc(n + 1, sizeof(*pool));
    if (pool)
        index_pool(pool, n, bytes, bytes + size);
    for (size_t i = 1; pool && i < n; i++) {
        const struct pool_entry *e = &pool[i];
        uint16_t type = short_at(e, 3), class_at = short_at(e, 1);
        if (e->at && (e->at[0] == kind || (kind == METHOD && e->at[0] == METHOD + 1)) && type < n &&
            class_at < n)
            f(context, pool_text(pool, n, short_at(&pool[class_at], 1)),
              pool_text(pool, n, short_at(&pool[type], 1)));
    }
    free(pool);
    vm_free(bytes);
}

void code_each_field(jclass c, void (*f)(void *context, struct str owner, struct str name),
                     void *context)
{
    each_member(c, FIELD, f, context);
}

void code_each_method(jclass c, void (*f)(void *context, struct str owner, struct str name),
                      void *context)
{
    each_member(c, METHOD, f, context);
}
