/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/named_class.h"

#include "agent/instrument/choice.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"

struct search {
    JNIEnv *jni;
    const char *name;
    struct choice_guess guess;
    jclass found;
};

static bool means(void *context, struct str name)
{
    const struct search *s = context;
    return choice_is_class(name, s->name);
}

static bool see(void *context, jclass c, struct str name)
{
    struct search *s = context;
    if (choice_is_class(name, s->name)) {
        s->found = (*s->jni)->NewLocalRef(s->jni, c);
        return true;
    }
    choice_guess_see(&s->guess, name, means, s);
    choice_guess_spelling(&s->guess, name, s->name);
    return false;
}

jclass named_class(JNIEnv *jni, const char *name, struct choice_guess *ret_guess)
{
    struct search s = {.jni = jni, .name = name};
    loaded_classes_each(vm.ti, jni, see, &s);
    *ret_guess = s.guess;
    return s.found;
}
