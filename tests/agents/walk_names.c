/* SPDX-License-Identifier: Apache-2.0 */
#include "walk_names.h"

#include "hotspot/method.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a method's name, from the VM's structures or from JVM TI; the caller frees it. */
char *name_of_walked(const struct walk_names *n, const struct walk_frame *f)
{
    char *text = NULL;
    static const char *const kinds[WALK_KINDS] = {[WALK_NATIVE] = "[native]",
                                                  [WALK_VM] = "[vm]",
                                                  [WALK_STUB] = "[stub]",
                                                  [WALK_GAP] = "[heap]",
                                                  [WALK_KERNEL] = "[kernel]"};
    if (!walk_is_java(f->kind)) {
        char stub[64] = "";
        walker_stub_name(n->walker, walk_id_pc(f->id), stub, sizeof(stub));
        struct symbol_place place = {0};
        if (!stub[0] && n->symbols && symbols_find(n->symbols, walk_id_pc(f->id) - 1, &place) == 0)
            return asprintf(&text, "%s %s:%s", kinds[f->kind], place.library,
                            place.name ? place.name : "?") < 0
                       ? NULL
                       : text;
        return asprintf(&text, "%s %s", kinds[f->kind], stub) < 0 ? NULL : text;
    }
    struct method_description d = {0};
    int r = walker_describe(n->walker, f->id, &d);
    if (r < 0)
        return strdup(r == -ESTALE ? "[unloaded]" : "?");
    if (asprintf(&text, "%s.%s%s", buf_str(&d.class_name), buf_str(&d.name),
                 buf_str(&d.signature)) < 0)
        text = NULL;
    method_description_release(&d);
    return text;
}

char *name_of_method_id(const struct walk_names *n, jmethodID id)
{
    char *name = NULL, *signature = NULL, *class_name = NULL, *text = NULL;
    jclass class = NULL;
    if (!id ||
        (*n->jvmti)->GetMethodName(n->jvmti, id, &name, &signature, NULL) != JVMTI_ERROR_NONE ||
        (*n->jvmti)->GetMethodDeclaringClass(n->jvmti, id, &class) != JVMTI_ERROR_NONE ||
        (*n->jvmti)->GetClassSignature(n->jvmti, class, &class_name, NULL) != JVMTI_ERROR_NONE)
        return strdup("?");
    size_t len = strlen(class_name);
    if (asprintf(&text, "%.*s.%s%s", (int)(len > 2 ? len - 2 : 0), class_name + 1, name,
                 signature) < 0)
        text = NULL;
    return text;
}

/* For hidden classes the VM's name and JVM TI's differ in one separator. */
int same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        /* VM anonymous classes (JDK 8, 11) have a number at the end. */
        if (*a == '.' && *b == '/' && b[1] >= '0' && b[1] <= '9')
            b = strchr(b, '.');
        if (!b)
            return 0;
        if (*a != *b &&
            !((*a == '+' || *a == '/' || *a == '.') && (*b == '.' || *b == '/' || *b == '+')))
            return 0;
    }
    return *a == *b;
}
