/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/class_object.h"

#include "agent/vm/shown_class.h"
#include "agent/vm/vm.h"
#include "base/class_name.h"

#include <stdlib.h>
#include <string.h>

bool class_is_java_lang_class(JNIEnv *jni, jclass c)
{
    jclass of_classes = (*jni)->GetObjectClass(jni, c);
    bool same = (*jni)->IsSameObject(jni, c, of_classes);
    (*jni)->DeleteLocalRef(jni, of_classes);
    return same;
}

char *class_object_text(jclass object)
{
    _cleanup_free_ char *signature = shown_class_signature(object);
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    size_t len = signature ? strlen(signature) : 0;
    const char *primitive = len == 1 ? class_name_primitive(*signature) : NULL;
    if (!len)
        return NULL;
    buf_string(&b, "class ");
    if (primitive)
        buf_string(&b, primitive);
    else if (*signature == 'L' && len > 2)
        (void)class_name_put(&b, (struct str){signature + 1, len - 2});
    else
        (void)class_name_put(&b, (struct str){signature, len});
    return buf_error(&b) ? NULL : strdup(buf_str(&b));
}

/* Returns whether a thread owns the monitor of an object, or waits for it. */
static bool is_in_use(const struct class_finder *f, jobject object)
{
    jvmtiMonitorUsage u = {0};
    if (!f->sees_monitors || (*f->ti)->GetObjectMonitorUsage(f->ti, object, &u) != JVMTI_ERROR_NONE)
        return false;
    bool used = u.owner || u.waiter_count || u.notify_waiter_count;
    if (u.owner)
        (*f->jni)->DeleteLocalRef(f->jni, u.owner);
    for (jint i = 0; i < u.waiter_count; i++)
        (*f->jni)->DeleteLocalRef(f->jni, u.waiters[i]);
    for (jint i = 0; i < u.notify_waiter_count; i++)
        (*f->jni)->DeleteLocalRef(f->jni, u.notify_waiters[i]);
    vm_free(u.waiters);
    vm_free(u.notify_waiters);
    return used;
}

static void list_classes(struct class_finder *f)
{
    f->listed = true;
    if (loaded_classes(f->ti, f->jni, &f->all) < 0 ||
        !(f->hashes = calloc((size_t)f->all.n + 1, sizeof(*f->hashes))))
        return;
    for (jint i = 0; i < f->all.n; i++)
        (void)!(*f->ti)->GetObjectHashCode(f->ti, f->all.of[i], &f->hashes[i]);
}

jclass class_find_by_hash(struct class_finder *f, jint hash)
{
    jint n = 0, n_used = 0;
    jclass last = NULL, last_used = NULL;
    if (!f->listed)
        list_classes(f);
    for (jint i = 0; f->hashes && i < f->all.n; i++)
        if (f->hashes[i] == hash) {
            n++;
            last = f->all.of[i];
        }
    for (jint i = 0; n > 1 && i < f->all.n; i++)
        if (f->hashes[i] == hash && is_in_use(f, f->all.of[i])) {
            n_used++;
            last_used = f->all.of[i];
        }
    return n == 1 ? last : n_used == 1 ? last_used : NULL;
}

void class_finder_release(struct class_finder *f)
{
    loaded_classes_release(&f->all);
    free(f->hashes);
    f->hashes = NULL;
}
