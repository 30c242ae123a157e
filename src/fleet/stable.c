/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/stable.h"

#include "base/generated_name.h"
#include "base/macro.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* What generators put in front of the part of a name that differs from run to run. */
static const char *const generators[] = {
    "$$EnhancerBySpringCGLIB$$",
    "$$FastClassBySpringCGLIB$$",
    "$$EnhancerByCGLIB$$",
    "$$FastClassByCGLIB$$",
    "$$KeyFactoryByCGLIB$$",
    "$$SpringCGLIB$$",
    "$$EnhancerByGuice$$",
    "$$FastClassByGuice$$",
    "$ByteBuddy$",
    "$HibernateProxy$",
    "$HibernateAccessOptimizer$",
    "$MockitoMock$",
    "$$EnhancerByMockitoWithCGLIB$$",
    "_$$_jvst",
    "_$$_javassist_",
    "$auxiliary$",
    "$Proxy",
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Removes the word at `at`: its letters, digits and underscores, or its digits alone. */
static size_t cut_after(char *label, size_t len, size_t at, bool digits_only)
{
    size_t end = at;
    while (end < len && (digits_only ? isdigit((unsigned char)label[end]) : is_word(label[end])))
        end++;
    memmove(label + at, label + end, len - end);
    return len - (end - at);
}

/*
 * A proxy's package is numbered by its class loader: "jdk.proxy2.$Proxy14" and
 * "com.sun.proxy.$Proxy14".
 */
static size_t settle_proxy_package(char *label, size_t len)
{
    static const char package[] = "jdk.proxy";
    size_t n = sizeof(package) - 1;
    return len > n && memcmp(label, package, n) == 0 && memmem(label, len, ".$Proxy", 7)
               ? cut_after(label, len, n, true)
               : len;
}

size_t fleet_stable_label(char *label, size_t len)
{
    /* Only the class name is normalized, and only its end may look like an address. */
    char *dot = memrchr(label, '.', len);
    if (dot && dot > label && !memchr(label, '[', (size_t)(dot - label))) {
        size_t class_len = (size_t)(dot - label),
               settled = generated_name_normalize(label, class_len);
        memmove(label + settled, label + class_len, len - class_len);
        len -= class_len - settled;
    }
    if (!memchr(label, '$', len))
        return len;
    for (size_t i = 0; i < ARRAY_SIZE(generators); i++) {
        const char *mark = generators[i];
        char *at = memmem(label, len, mark, strlen(mark));
        if (!at)
            continue;
        size_t behind = (size_t)(at - label) + strlen(mark);
        bool is_proxy = strcmp(mark, "$Proxy") == 0;
        if (is_proxy && at > label && at[-1] != '.')
            continue; /* a class that was given this name in its source code */
        len = cut_after(label, len, behind, is_proxy);
    }
    return settle_proxy_package(label, len);
}
