/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/field_guess.h"

#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool set(struct field_guess *g, jclass c, const char *field)
{
    char class[256];
    _cleanup_free_ char *signature = shown_class_signature(c);
    if (!signature || *signature != 'L')
        return false;
    dotted_copy(class, sizeof(class), (struct str){signature + 1, strlen(signature) - 2});
    snprintf(g->name, sizeof(g->name), "%s.%s", class, field);
    return true;
}

/* Returns whether the class declares the wanted field. */
static bool see_one(struct field_guess *g, jclass c, const char *field)
{
    struct nearest n = {.word = field};
    if (loaded_class_declares_field(vm.ti, c, field))
        return set(g, c, field);
    if (loaded_class_nearest_field(vm.ti, c, FIELD_ANY, &n) &&
        (!*g->name || n.distance < g->distance) && set(g, c, n.best))
        g->distance = n.distance;
    return false;
}

void field_guess_see(struct field_guess *g, JNIEnv *jni, jclass c, const char *field)
{
    jclass k = (*jni)->NewLocalRef(jni, c);
    while (k && !g->is_inherited) {
        g->is_inherited = see_one(g, k, field);
        jclass next = (*jni)->GetSuperclass(jni, k);
        (*jni)->DeleteLocalRef(jni, k);
        k = next;
    }
    if (k)
        (*jni)->DeleteLocalRef(jni, k);
}
