/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/named_class.h"

#include "agent/instrument/choice.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"

struct search {
    JNIEnv *jni;
    const char *name;
    char *nested;
    jclass found;
};

static bool see(void *context, jclass c, struct str name)
{
    struct search *s = context;
    if (choice_is_class(name, s->name)) {
        s->found = (*s->jni)->NewLocalRef(s->jni, c);
        return true;
    }
    if (choice_is_nested(name, s->name))
        dotted_copy(s->nested, NAMED_CLASS_SIZE, name);
    return false;
}

jclass named_class(JNIEnv *jni, const char *name, char ret_nested[NAMED_CLASS_SIZE])
{
    struct search s = {jni, name, ret_nested, NULL};
    ret_nested[0] = 0;
    loaded_classes_each(vm.ti, jni, see, &s);
    return s.found;
}
