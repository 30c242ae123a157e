/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/lambda.h"

#include "agent/vm/vm.h"
#include "base/macro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void find_interfaces(jclass class, struct generated_target *ret)
{
    jint n = 0;
    jclass *of = NULL;
    JNIEnv *jni = vm_jni();
    if (!jni || (*vm.ti)->GetImplementedInterfaces(vm.ti, class, &n, &of) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        char *signature = NULL;
        bool known =
            (*vm.ti)->GetClassSignature(vm.ti, of[i], &signature, NULL) == JVMTI_ERROR_NONE;
        (*jni)->DeleteLocalRef(jni, of[i]);
        if (!known)
            continue;
        size_t len = strlen(signature);
        if (len > 2)
            generated_target_implements(ret, (struct str){signature + 1, len - 2});
        vm_free(signature);
    }
    vm_free(of);
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

struct considered {
    struct str host;
    struct generated_target *target;
};

static void consider(void *context, struct str owner, struct str name)
{
    const struct considered *c = context;
    generated_target_consider(c->target, c->host, owner, name);
}

void lambda_target(jclass class, const char *signature, struct generated_target *ret)
{
    size_t host;
    if (generated_name_is_proxy(signature, strlen(signature)))
        find_interfaces(class, ret);
    if (signature[0] != 'L' ||
        !generated_name_is_lambda(signature + 1, strlen(signature + 1), &host))
        return;
    struct considered considered = {{signature + 1, host}, ret};
    each_member(class, METHOD, consider, &considered);
}

void lambda_each_field(jclass c, void (*f)(void *context, struct str owner, struct str name),
                       void *context)
{
    each_member(c, FIELD, f, context);
}

char *lambda_class_signature(jclass class)
{
    char *signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return NULL;
    struct generated_target lambda = {0};
    lambda_target(class, signature, &lambda);
    size_t len = strlen(signature),
           settled = generated_name_normalize_known(signature, len, &lambda);
    size_t extra = lambda.text[0] ? strlen(lambda.text) + 2 : 0;
    char *text = malloc(settled + extra + 1);
    if (text)
        memcpy(text, signature, settled);
    vm_free(signature);
    if (text && extra)
        settled += (size_t)snprintf(text + settled - 1, extra + 2, "[%s];", lambda.text) - 1;
    if (text)
        text[settled] = 0;
    return text;
}
