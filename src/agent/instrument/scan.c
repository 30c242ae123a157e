/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/scan.h"

#include "agent/instrument/batches.h"
#include "base/clock.h"
#include "base/macro.h"

#include <string.h>

/*
 * The largest number of classes in a batch. The VM parses and verifies each class, which takes up
 * to a millisecond.
 */
enum { AT_ONCE = 32 };

/* What this thread is inspecting: classes in the order in which the VM will show them. */
static __thread struct running {
    const jclass *classes;
    int n, shown;
    bool unchanged[AT_ONCE];
} * running;

enum scan_kind scan_kind(JNIEnv *jni, jclass redefined)
{
    struct running *l = running;
    if (!l || !redefined)
        return SCAN_NONE;
    for (int i = l->shown; i < l->n; i++)
        if ((*jni)->IsSameObject(jni, l->classes[i], redefined)) {
            l->shown = i + 1;
            return i == l->n - 1 ? SCAN_REFUSED : SCAN_CODE;
        }
    return SCAN_NONE;
}

void scan_report(bool changes)
{
    running->unchanged[running->shown - 1] = !changes;
}

/* Inspects some classes; returns how many the VM has shown. */
static int scan_some(const struct scan *s, const jclass *classes, int n, bool *ret_unchanged)
{
    jclass all[AT_ONCE + 1];
    struct running now = {.classes = all, .n = n + 1}, *outer = running;
    memcpy(all, classes, (size_t)n * sizeof(*all));
    all[n] = s->refused;
    running = &now;
    (void)s->transform(all, n + 1);
    running = outer;
    memcpy(ret_unchanged, now.unchanged, (size_t)n);
    return MIN(now.shown, n);
}

int scan_loaded(JNIEnv *jni, const struct scan *s, jclass *classes, int n)
{
    int kept = 0;
    bool going_on = true;
    for (int i = 0, shown; i < n; i += shown) {
        bool unchanged[AT_ONCE] = {false};
        uint64_t start = now_ns();
        /* A class that cannot be linked makes the VM stop before it shows that class. */
        shown =
            going_on ? MAX(scan_some(s, classes + i, MIN(n - i, (int)AT_ONCE), unchanged), 1) : 1;
        for (int k = i; k < i + shown; k++) {
            jclass class = classes[k];
            if (unchanged[k - i])
                continue;
            classes[k] = classes[kept];
            classes[kept++] = class;
        }
        going_on = going_on && batches_rest(jni, s->pause, now_ns() - start);
    }
    return kept;
}
