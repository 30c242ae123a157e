/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/look.h"

#include "agent/instrument/batches.h"
#include "base/clock.h"
#include "base/macro.h"

#include <string.h>

/* The VM parses and verifies each class, which takes a millisecond or less. */
enum { AT_ONCE = 32 };

/* What this thread is inspecting: classes in the order in which the VM will show them. */
static __thread struct looking {
    const jclass *classes;
    int n, shown;
    bool unchanged[AT_ONCE];
} * looking;

enum look_kind look_kind(JNIEnv *jni, jclass redefined)
{
    struct looking *l = looking;
    if (!l || !redefined)
        return LOOK_NOT;
    for (int i = l->shown; i < l->n; i++)
        if ((*jni)->IsSameObject(jni, l->classes[i], redefined)) {
            l->shown = i + 1;
            return i == l->n - 1 ? LOOK_REFUSED : LOOK_CODE;
        }
    return LOOK_NOT;
}

void look_saw(bool changes)
{
    looking->unchanged[looking->shown - 1] = !changes;
}

/* Inspects some classes; returns how many the VM has shown. */
static int look_at_some(const struct look *l, const jclass *classes, int n, bool *ret_unchanged)
{
    jclass all[AT_ONCE + 1];
    struct looking now = {.classes = all, .n = n + 1}, *outer = looking;
    memcpy(all, classes, (size_t)n * sizeof(*all));
    all[n] = l->refused;
    looking = &now;
    (void)l->transform(all, n + 1);
    looking = outer;
    memcpy(ret_unchanged, now.unchanged, (size_t)n);
    return MIN(now.shown, n);
}

int look_through(JNIEnv *jni, const struct look *l, jclass *classes, int n)
{
    int kept = 0;
    bool going_on = true;
    for (int i = 0, shown; i < n; i += shown) {
        bool unchanged[AT_ONCE] = {false};
        uint64_t start = now_ns();
        /* A class that cannot be linked makes the VM stop before it shows that class. */
        shown = going_on ? MAX(look_at_some(l, classes + i, MIN(n - i, (int)AT_ONCE), unchanged), 1)
                         : 1;
        for (int k = i; k < i + shown; k++) {
            jclass class = classes[k];
            if (unchanged[k - i])
                continue;
            classes[k] = classes[kept];
            classes[kept++] = class;
        }
        going_on = going_on && batches_rest(jni, l->pause, now_ns() - start);
    }
    return kept;
}
