/* SPDX-License-Identifier: Apache-2.0 */
/* Converts objects and classes to what the recording contains: identity hashes and constants. */

#include "agent/capture/threads/objects.h"

#include "agent/capture/threads/threads.h"
#include "agent/stacks/names.h"
#include "agent/vm/class_map.h"
#include "agent/vm/class_object.h"
#include "agent/vm/shown_class.h"
#include "base/dotted.h"

#include <stdlib.h>
#include <string.h>

uint32_t object_identity(jobject o)
{
    jint hash = 0;
    return o && (*vm.ti)->GetObjectHashCode(vm.ti, o, &hash) == JVMTI_ERROR_NONE ? (uint32_t)hash
                                                                                 : 0;
}

static struct class_map classes = {.lock = PTHREAD_MUTEX_INITIALIZER};
/* The constants of objects of java.lang.Class. */
static struct class_map class_objects = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t class_constant(jclass c)
{
    _cleanup_free_ char *signature = shown_class_signature(c);
    if (!signature)
        return 0;
    size_t len = strlen(signature);
    char *name = signature;
    if (*name == 'L' && len > 2) {
        signature[len - 1] = 0;
        name++;
    }
    return jfr_define_class(thread_capture.jfr, &(struct jfr_class){.name = name});
}

void object_class_name(uint64_t class, char *to, size_t size)
{
    char name[512] = "?";
    (void)jfr_class_name(thread_capture.jfr, class, name, sizeof(name));
    names_dotted(name, to, size);
}

uint64_t object_record_class(JNIEnv *jni, jclass c)
{
    uint64_t id = 0;
    if (class_map_get(&classes, jni, c, &id))
        return id;
    id = class_constant(c);
    if (id)
        class_map_put(&classes, jni, c, id);
    return id;
}

uint64_t object_record_class_object(JNIEnv *jni, jclass c)
{
    uint64_t id = 0;
    if (class_map_get(&class_objects, jni, c, &id))
        return id;
    _cleanup_free_ char *name = class_object_text(c);
    if (name)
        dotted_undo(name);
    id = name ? jfr_define_class(thread_capture.jfr, &(struct jfr_class){.name = name}) : 0;
    if (id)
        class_map_put(&class_objects, jni, c, id);
    return id;
}

uint64_t object_class(JNIEnv *jni, jobject o)
{
    jclass c = o ? (*jni)->GetObjectClass(jni, o) : NULL;
    uint64_t id = c && class_is_java_lang_class(jni, c) ? object_record_class_object(jni, o) : 0;
    if (c && !id)
        id = object_record_class(jni, c);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return id;
}

void objects_forget(void)
{
    class_map_release(&classes, vm_jni());
    class_map_release(&class_objects, vm_jni());
}
