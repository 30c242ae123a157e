/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/constants.h"

#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"

#include <string.h>

enum { ENUM = 0x4000, NAMED_MAX = 8 };

struct search {
    JNIEnv *jni;
    struct str type; /* pkg/Class */
    const char *constant;
    unsigned n; /* how many constants there are */
    bool found;
    struct buf names; /* of the first constants */
};

static void see_constants(struct search *s, jclass c)
{
    jint n = 0;
    jfieldID *fields = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, c, &n, &fields) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n && !s->found; i++) {
        char *name = NULL;
        jint modifiers = 0;
        (*vm.ti)->GetFieldModifiers(vm.ti, c, fields[i], &modifiers);
        if (!(modifiers & ENUM) ||
            (*vm.ti)->GetFieldName(vm.ti, c, fields[i], &name, NULL, NULL) != JVMTI_ERROR_NONE)
            continue;
        s->found = strcmp(name, s->constant) == 0;
        if (s->n++ < NAMED_MAX)
            buf_printf(&s->names, "%s%s", s->names.len ? ", " : "", name);
        vm_free(name);
    }
    vm_free(fields);
}

static bool see_class(void *context, jclass c, struct str name)
{
    struct search *s = context;
    if (name.len == s->type.len && memcmp(name.data, s->type.data, name.len) == 0)
        see_constants(s, c);
    return s->found;
}

bool trace_no_constant(JNIEnv *jni, const struct cond_test *t, struct str type, struct buf *why)
{
    if (t->op != LOGIC_EQ || t->kind != COND_TEXT || t->length || type.len < 3 ||
        type.data[0] != 'L')
        return false;
    struct search s = {
        .jni = jni, .type = {type.data + 1, type.len - 2}, .constant = t->text, .names = BUF(4096)};
    int r = loaded_classes_each(vm.ti, jni, see_class, &s);
    bool none = r == 0 && s.n && !s.found;
    if (none) {
        buf_string(why, "is a ");
        buf_dotted(why, s.type.data, s.type.len);
        buf_printf(why, ", which has no constant %s; there %s %s%s", s.constant,
                   s.n == 1 ? "is" : "are", buf_str(&s.names), s.n > NAMED_MAX ? ", ..." : "");
    }
    buf_release(&s.names);
    return none;
}
