/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values, read only from fields: nothing here runs code of the program. */
#include "agent/inspect/inspect.h"
#include "agent/instrument/named_class.h"
#include "agent/vm/shown_class.h"

#include "agent/stacks/names.h"
#include "base/generated_name.h"
#include "base/real.h"
#include "options/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SHOWN = 512 };

char *inspect_type_name(const char *signature)
{
    struct buf name = BUF(1 << 18);
    if (!signature_put_type(&name, signature, signature + strlen(signature)))
        buf_string(&name, signature);
    buf_u8(&name, 0);
    if (!buf_error(&name))
        return (char *)name.data;
    buf_release(&name);
    return NULL;
}

char *inspect_class_name(struct inspection *i, jclass c)
{
    _cleanup_free_ char *signature = c ? shown_class_signature(c) : NULL;
    return signature ? inspect_type_name(signature) : strdup("?");
}

bool inspect_is_agents_frame(struct inspection *i, const jvmtiFrameInfo *frame)
{
    const struct method *m = names_method(i->jni, frame->method);
    return m && generated_name_is_agents(m->class_name, strlen(m->class_name));
}

int inspect_find_loaded_classes(struct inspection *i, struct loaded_classes *ret)
{
    int r = loaded_classes(i->ti, i->jni, ret);
    jint n = 0;
    for (jint k = 0; r == 0 && k < ret->n; k++) {
        _cleanup_free_ char *name = inspect_class_name(i, ret->of[k]);
        if (name && generated_name_is_agents(name, strlen(name)))
            (*i->jni)->DeleteLocalRef(i->jni, ret->of[k]);
        else
            ret->of[n++] = ret->of[k];
    }
    ret->own = ret->n - n;
    ret->n = n;
    return r;
}

void inspect_no_class(struct inspection *i, const char *shown, const char *name, const char *method)
{
    struct choice_guess guess;
    jclass c = named_class(i->jni, name, &(struct wanted_member){.method = method}, &guess);
    if (c)
        (*i->jni)->DeleteLocalRef(i->jni, c);
    buf_printf(i->why, "%s: no loaded class of this name%s%s", shown,
               guess.rank ? "; there is " : "", guess.name);
}

jclass inspect_class_by_name(struct inspection *i, const char *name)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    jclass found = NULL;
    if (inspect_find_loaded_classes(i, &all) < 0)
        return NULL;
    for (jint k = 0; k < all.n && !found; k++) {
        _cleanup_free_ char *its = inspect_class_name(i, all.of[k]);
        if (its && strcmp(its, name) == 0)
            found = loaded_class_take(&all, k);
    }
    return found;
}

void inspect_put_modifiers(struct inspection *i, const char *key, jint modifiers,
                           enum member_kind kind)
{
    /*
     * The flags that the class file format defines for classes, fields and methods; other bits are
     * internal to HotSpot.
     */
    static const jint valid[] = {
        [KIND_CLASS] = 0x761f, [KIND_FIELD] = 0x50df, [KIND_METHOD] = 0x1dff};

    bool method = kind == KIND_METHOD;

    static const struct {
        jint bit;
        const char *field, *method;
    } names[] = {
        {0x1, "public", "public"},          {0x2, "private", "private"},
        {0x4, "protected", "protected"},    {0x8, "static", "static"},
        {0x10, "final", "final"},           {0x20, "super", "synchronized"},
        {0x40, "volatile", "bridge"},       {0x80, "transient", "varargs"},
        {0x100, "native", "native"},        {0x200, "interface", "interface"},
        {0x400, "abstract", "abstract"},    {0x800, "strictfp", "strictfp"},
        {0x1000, "synthetic", "synthetic"}, {0x2000, "annotation", "annotation"},
        {0x4000, "enum", "enum"},
    };
    _cleanup_(buf_release) struct buf text = BUF(256);
    for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
        if (modifiers & valid[kind] & names[k].bit)
            buf_printf(&text, "%s%s", text.len ? " " : "",
                       method ? names[k].method : names[k].field);
    }
    json_key_string(i->out, key, buf_str(&text));
}

bool inspect_field_value(struct inspection *i, jobject holder, jclass c, jfieldID f,
                         const char *signature, bool is_static, jvalue *ret)
{
    JNIEnv *jni = i->jni;
    jvalue v = {.j = 0};
#define READ(code, member, type)                                         \
    case code:                                                           \
        v.member = is_static ? (*jni)->GetStatic##type##Field(jni, c, f) \
                             : (*jni)->Get##type##Field(jni, holder, f); \
        break
    switch (*signature) {
        READ('Z', z, Boolean);
        READ('B', b, Byte);
        READ('C', c, Char);
        READ('S', s, Short);
        READ('I', i, Int);
        READ('J', j, Long);
        READ('F', f, Float);
        READ('D', d, Double);
    default:
        v.l = is_static ? (*jni)->GetStaticObjectField(jni, c, f)
                        : (*jni)->GetObjectField(jni, holder, f);
    }
#undef READ
    if (vm_clear_exception(jni))
        return false;
    *ret = v;
    return true;
}

void inspect_put_string(struct inspection *i, const char *key, jstring s)
{
    const char *text = s ? (*i->jni)->GetStringUTFChars(i->jni, s, NULL) : NULL;
    if (key)
        json_key(i->out, key);
    json_string(i->out, text);
    if (text)
        (*i->jni)->ReleaseStringUTFChars(i->jni, s, text);
    if (s)
        (*i->jni)->DeleteLocalRef(i->jni, s);
}

static void put_text(struct inspection *i, jstring s)
{
    /* JNI's string functions copy; they run no code of the program. */
    jsize n = (*i->jni)->GetStringLength(i->jni, s), shown = MIN(n, TEXT_SHOWN);
    char text[TEXT_SHOWN * 3 + 1];
    (*i->jni)->GetStringUTFRegion(i->jni, s, 0, shown, text);
    if (vm_clear_exception(i->jni))
        return;
    text[sizeof(text) - 1] = 0;
    json_key_string(i->out, "value", text);
    if (shown < n) {
        json_key_i64(i->out, "length", n);
    }
}

/* Writes the field "value" of a box such as java.lang.Integer. */
static void put_boxed(struct inspection *i, jobject o, jclass c, const char *signature)
{
    jfieldID f = (*i->jni)->GetFieldID(i->jni, c, "value", signature);
    jvalue v;
    if (vm_clear_exception(i->jni) || !f || !inspect_field_value(i, o, c, f, signature, false, &v))
        return;
    json_key(i->out, "value");
    inspect_put_value(i, signature, v);
}

/*
 * Writes "constant": "shop.Color.RED" for a constant of an enum, also of one whose class is a body
 * of its own below the enum's.
 */
static void put_constant(struct inspection *i, jobject o, jclass c)
{
    JNIEnv *jni = i->jni;
    jclass of = vm_find_class(jni, "java/lang/Enum"), enum_class = NULL;
    if (of && (*jni)->IsInstanceOf(jni, o, of)) {
        jclass k = (*jni)->NewLocalRef(jni, c);
        while (k && !(*jni)->IsSameObject(jni, k, of)) {
            if (enum_class)
                (*jni)->DeleteLocalRef(jni, enum_class);
            enum_class = k;
            k = (*jni)->GetSuperclass(jni, k);
        }
        if (k)
            (*jni)->DeleteLocalRef(jni, k);
    }
    jfieldID f = enum_class ? vm_field(jni, "java/lang/Enum", "name", "Ljava/lang/String;") : NULL;
    jstring name = f ? (*jni)->GetObjectField(jni, o, f) : NULL;
    const char *text = name ? (*jni)->GetStringUTFChars(jni, name, NULL) : NULL;
    _cleanup_free_ char *its = text ? inspect_class_name(i, enum_class) : NULL;
    if (its) {
        _cleanup_(buf_release) struct buf constant = BUF(1 << 18);
        buf_printf(&constant, "%s.%s", its, text);
        json_key_string(i->out, "constant", buf_str(&constant));
    }
    if (text)
        (*jni)->ReleaseStringUTFChars(jni, name, text);
    vm_clear_exception(jni);
    if (name)
        (*jni)->DeleteLocalRef(jni, name);
    if (enum_class)
        (*jni)->DeleteLocalRef(jni, enum_class);
    if (of)
        (*jni)->DeleteLocalRef(jni, of);
}

static void put_known(struct inspection *i, jobject o, jclass c, const char *name)
{
    static const struct {
        const char *name, *signature;
    } boxes[] = {{"java.lang.Integer", "I"},
                 {"java.lang.Long", "J"},
                 {"java.lang.Boolean", "Z"},
                 {"java.lang.Double", "D"},
                 {"java.lang.Float", "F"},
                 {"java.lang.Short", "S"},
                 {"java.lang.Byte", "B"},
                 {"java.lang.Character", "C"},
                 {"java.util.concurrent.atomic.AtomicInteger", "I"},
                 {"java.util.concurrent.atomic.AtomicLong", "J"}};

    size_t len = strlen(name);
    if (strcmp(name, "java.lang.String") == 0) {
        put_text(i, o);
    } else if (strcmp(name, "java.lang.Class") == 0) {
        _cleanup_free_ char *itself = inspect_class_name(i, o);
        json_key_string(i->out, "value", itself);
    } else if (len > 2 && strcmp(name + len - 2, "[]") == 0) {
        json_key_i64(i->out, "length", (*i->jni)->GetArrayLength(i->jni, o));
    }
    for (size_t b = 0; b < ARRAY_SIZE(boxes); b++) {
        if (strcmp(name, boxes[b].name) == 0)
            put_boxed(i, o, c, boxes[b].signature);
    }
}

void inspect_put_object(struct inspection *i, jobject o)
{
    if (!o) {
        json_null(i->out);
        return;
    }
    jclass c = (*i->jni)->GetObjectClass(i->jni, o);
    _cleanup_free_ char *name = inspect_class_name(i, c);
    json_begin_object(i->out);
    json_key_i64(i->out, "id", inspect_object_number(i, o));
    json_key_string(i->out, "class", name);
    if (name)
        put_known(i, o, c, name);
    put_constant(i, o, c);
    json_end_object(i->out);
    (*i->jni)->DeleteLocalRef(i->jni, c);
}

void inspect_put_object_key(struct inspection *i, const char *key, jobject o)
{
    json_key(i->out, key);
    inspect_put_object(i, o);
    if (o)
        (*i->jni)->DeleteLocalRef(i->jni, o);
}

/* JSON numbers cannot represent NaN or integers beyond 2^53, so these are written as strings. */
static void put_number(struct inspection *i, double d, bool is_float)
{
    char text[32];
    real_text(d, is_float, text);
    if (d - d == 0)
        json_raw(i->out, text, strlen(text));
    else
        json_string(i->out, text);
}

void inspect_put_value(struct inspection *i, const char *signature, jvalue v)
{
    char text[32];
    switch (*signature) {
    case 'Z':
        json_bool(i->out, v.z);
        break;
    case 'B':
        json_i64(i->out, v.b);
        break;
    case 'C': {
        /* Writes one UTF-16 unit in (modified) UTF-8. */
        char utf[4] = {(char)v.c};
        if (v.c >= 0x800 || v.c == 0)
            snprintf(utf, sizeof(utf), "%c%c%c", 0xe0 | v.c >> 12, 0x80 | (v.c >> 6 & 0x3f),
                     0x80 | (v.c & 0x3f));
        else if (v.c >= 0x80)
            snprintf(utf, sizeof(utf), "%c%c", 0xc0 | v.c >> 6, 0x80 | (v.c & 0x3f));
        if (v.c == 0)
            json_string_n(i->out, "\xc0\x80", 2);
        else
            json_string(i->out, utf);
        break;
    }
    case 'S':
        json_i64(i->out, v.s);
        break;
    case 'I':
        json_i64(i->out, v.i);
        break;
    case 'J':
        snprintf(text, sizeof(text), "%lld", (long long)v.j);
        if (v.j > (INT64_C(1) << 53) || v.j < -(INT64_C(1) << 53))
            json_string(i->out, text);
        else
            json_i64(i->out, v.j);
        break;
    case 'F':
        put_number(i, (double)v.f, true);
        break;
    case 'D':
        put_number(i, v.d, false);
        break;
    default:
        inspect_put_object(i, v.l);
        if (v.l)
            (*i->jni)->DeleteLocalRef(i->jni, v.l);
    }
}
