/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/constants.h"

#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"
#include "base/utf8.h"

#include <string.h>

enum { INTERFACE = 0x200, ENUM = 0x4000, NAMED_MAX = 8 };

struct search {
    JNIEnv *jni;
    struct str type; /* pkg/Class */
    const char *constant;
    unsigned n; /* number of constants */
    bool found;
    /* objects of the class have no known value with which they could be compared */
    bool plain;
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
        s->found = utf8_equal(name, s->constant);
        if (s->n++ < NAMED_MAX)
            buf_printf(&s->names, "%s%s", s->names.len ? ", " : "", name);
        vm_free(name);
    }
    vm_free(fields);
}

/*
 * Returns whether a class extends no class of a package java.*, except java.lang.Object and
 * java.lang.Record. A trace knows no value of such an object.
 */
static bool is_plain(JNIEnv *jni, jclass c)
{
    jint modifiers = INTERFACE;
    (*vm.ti)->GetClassModifiers(vm.ti, c, &modifiers);
    jclass super = modifiers & INTERFACE ? NULL : (*jni)->GetSuperclass(jni, c);
    bool plain = super;
    while (super && plain) {
        _cleanup_free_ char *name = shown_class_signature(super);
        plain =
            name && (strncmp(name, "Ljava/", 6) != 0 || strcmp(name, "Ljava/lang/Object;") == 0 ||
                     strcmp(name, "Ljava/lang/Record;") == 0);
        jclass above = (*jni)->GetSuperclass(jni, super);
        (*jni)->DeleteLocalRef(jni, super);
        super = above;
    }
    (*jni)->DeleteLocalRef(jni, super);
    return plain;
}

static bool see_class(void *context, jclass c, struct str name)
{
    struct search *s = context;
    if (name.len != s->type.len || memcmp(name.data, s->type.data, name.len) != 0)
        return false;
    if (s->constant)
        see_constants(s, c);
    s->plain = is_plain(s->jni, c);
    return s->found;
}

/*
 * Returns the constant's own name. The condition may write it as results show it,
 * shop.Shop$Color.RED, or as Java writes it, shop.Shop.Color.RED.
 */
static const char *constant_name(const char *text, struct str type)
{
    _cleanup_(buf_release) struct buf dotted = BUF(1 << 17);
    dotted_append(&dotted, type.data, type.len);
    bool qualified = !buf_error(&dotted) && strlen(text) > type.len + 1 && text[type.len] == '.';
    for (size_t i = 0; i < type.len && qualified; i++)
        qualified = text[i] == dotted.data[i] || (text[i] == '.' && dotted.data[i] == '$');
    return qualified ? text + type.len + 1 : text;
}

bool trace_no_constant(JNIEnv *jni, const struct cond_test *t, struct str type, struct buf *why)
{
    bool number = t->op != LOGIC_IS && t->op != LOGIC_NE && t->kind == COND_NUMBER,
         text = t->op == LOGIC_EQ && t->kind == COND_TEXT;
    if ((!number && !text && !t->length) || type.len < 3 || type.data[0] != 'L')
        return false;
    struct search s = {.jni = jni, .type = {type.data + 1, type.len - 2}, .names = BUF(4096)};
    bool of_jdk = s.type.len > 5 && memcmp(s.type.data, "java/", 5) == 0;
    s.constant = text ? constant_name(t->text, s.type) : NULL;
    int r = loaded_classes_each(vm.ti, jni, see_class, &s);
    bool none = r == 0 && s.n && !s.found;
    if (none) {
        buf_string(why, "is a ");
        dotted_append(why, s.type.data, s.type.len);
        buf_printf(why, ", which has no constant %s; there %s %s%s", s.constant,
                   s.n == 1 ? "is" : "are", buf_str(&s.names), s.n > NAMED_MAX ? ", ..." : "");
    }
    bool plain = r == 0 && s.plain && !of_jdk;
    if (plain) {
        buf_string(why, "is a ");
        dotted_append(why, s.type.data, s.type.len);
        buf_string(why, t->length
                            ? ", which has no length"
                            : ", whose objects are compared with null only, or by their fields");
    }
    buf_release(&s.names);
    return none || plain;
}
