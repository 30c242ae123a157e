/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs suspend, resume, interrupt, stop, pop, return and set. */
#include "agent/control/control.h"

#include "agent/stacks/names.h"
#include "agent/vm/shown_thread.h"
#include "agent/vm/thread_table.h"
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns any live thread except the agent's. */
static jthread thread_of(struct control_call *c, const char *operand)
{
    c->i->operand = operand;
    jthread t = thread_of_operand(c->i);
    const struct thread *entry = t ? threads_find(c->i->jni, t) : NULL;
    if (entry && entry->own) {
        buf_printf(c->i->why, "%s: the agent's own thread cannot be controlled", operand);
        return NULL;
    }
    return t;
}

jthread control_halted_thread(struct control_call *c, const char *operand)
{
    jthread t = thread_of(c, operand);
    jint state = 0;
    if (!t)
        return NULL;
    control_lock();
    bool held = halted_find(c->i->jni, t) != NULL;
    control_unlock();
    if (!held || (*c->i->ti)->GetThreadState(c->i->ti, t, &state) != JVMTI_ERROR_NONE ||
        !(state & JVMTI_THREAD_STATE_SUSPENDED)) {
        buf_printf(c->i->why, "%s: runs; suspend it first", operand);
        return NULL;
    }
    return t;
}

int control_suspend(struct control_call *c)
{
    char place[512];
    jthread t = thread_of(c, c->operands[0]);
    if (!t)
        return -ESRCH;
    _cleanup_free_ char *name = shown_thread_name(c->i->jni, t);
    /*
     * Callbacks of a step hold this lock. It is held here so that no thread is suspended inside
     * such a callback.
     */
    control_lock();
    int r = control_error(c, c->operands[0], (*c->i->ti)->SuspendThread(c->i->ti, t));
    bool entered = r == 0 && halted_add(c->i->jni, t, name, "suspended");
    control_unlock();
    if (r < 0)
        return r;
    if (!entered) {
        (*c->i->ti)->ResumeThread(c->i->ti, t);
        buf_string(c->i->why, "too many threads are held already");
        return -ENOSPC;
    }
    control_where(c->i, t, place, sizeof(place));
    buf_printf(c->done, "%s is suspended at %s", name ? name : "?", place);
    return 0;
}

int control_resume(struct control_call *c)
{
    jthread t = thread_of(c, c->operands[0]);
    if (!t)
        return -ESRCH;
    control_lock();
    struct halted *h = halted_find(c->i->jni, t);
    jvmtiError e = h ? control_release(c->i, h) : JVMTI_ERROR_NONE;
    control_unlock();
    if (!h) {
        buf_printf(c->i->why, "%s: is not held by jvmscope control", c->operands[0]);
        return -ESRCH;
    }
    buf_printf(c->done, "%s runs", c->operands[0]);
    return control_error(c, c->operands[0], e);
}

int control_interrupt(struct control_call *c)
{
    jthread t = thread_of(c, c->operands[0]);
    if (!t)
        return -ESRCH;
    buf_printf(c->done, "%s is interrupted", c->operands[0]);
    return control_error(c, c->operands[0], (*c->i->ti)->InterruptThread(c->i->ti, t));
}

/* Returns a Throwable of the class, created by its constructor without arguments, or NULL. */
static jobject make_throwable(struct control_call *c, const char *name)
{
    JNIEnv *jni = c->i->jni;
    jclass class = inspect_class_by_name(c->i, name),
           throwable = (*jni)->FindClass(jni, "java/lang/Throwable");
    if (!class || !throwable || !(*jni)->IsAssignableFrom(jni, class, throwable))
        return NULL;
    jmethodID make = (*jni)->GetMethodID(jni, class, "<init>", "()V");
    jobject o = make ? (*jni)->NewObject(jni, class, make) : NULL;
    return vm_clear_exception(jni) ? NULL : o;
}

int control_stop_thread(struct control_call *c)
{
    jthread t = thread_of(c, c->operands[0]);
    if (!t)
        return -ESRCH;
    /*
     * Newer JDKs may no longer have ThreadDeath. An Error is thrown instead; the program prints its
     * stack trace.
     */
    const char *name = c->count > 1 ? c->operands[1] : "java.lang.ThreadDeath";
    if (c->count < 2 && !(*c->i->jni)->FindClass(c->i->jni, "java/lang/ThreadDeath")) {
        vm_clear_exception(c->i->jni);
        name = "java.lang.Error";
    }
    jobject thrown = make_throwable(c, name);
    if (!thrown) {
        buf_printf(c->i->why,
                   "%s: not a loaded subclass of Throwable with a constructor without arguments",
                   name);
        return -ESRCH;
    }
    buf_printf(c->done, "%s is thrown in %s", name, c->operands[0]);
    return control_error(c, c->operands[0], (*c->i->ti)->StopThread(c->i->ti, t, thrown));
}

int control_pop(struct control_call *c)
{
    char place[512];
    jthread t = control_halted_thread(c, c->operands[0]);
    if (!t)
        return -ESRCH;
    control_where(c->i, t, place, sizeof(place));
    buf_printf(c->done, "the call of %s begins anew when %s runs", place, c->operands[0]);
    return control_error(c, place, (*c->i->ti)->PopFrame(c->i->ti, t));
}

/* ---- values ---- */

static bool integer(const char *text, int64_t low, int64_t high, int64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 0);
    return *text && !*end && !errno && *ret >= low && *ret <= high;
}

static bool reference(struct control_call *c, const char *text, jvalue *ret)
{
    size_t n = strlen(text);
    int64_t number;
    ret->l = NULL;
    if (strcmp(text, "null") == 0)
        return true;
    if (*text == '@' && integer(text + 1, 1, INT64_MAX, &number))
        return (ret->l = inspect_object_of_number(c->i, number)) != NULL;
    if (n < 2 || *text != '"' || text[n - 1] != '"')
        return false;
    _cleanup_free_ char *inside = strndup(text + 1, n - 2);
    ret->l = inside ? (*c->i->jni)->NewStringUTF(c->i->jni, inside) : NULL;
    return !vm_clear_exception(c->i->jni) && ret->l;
}

/* Returns how a value of a type is written in a command. */
static const char *form_of(const char *signature)
{
    static const char *const forms[] = {
        ['Z'] = "true or false",
        ['B'] = "a number from -128 to 127",
        ['S'] = "a number from -32768 to 32767",
        ['I'] = "a number from -2147483648 to 2147483647",
        ['J'] = "a number",
        ['C'] = "'c' or the number of a character",
        ['F'] = "a number such as 1.5",
        ['D'] = "a number such as 1.5",
    };
    unsigned char type = (unsigned char)*signature;
    if (strcmp(signature, "Ljava/lang/String;") == 0)
        return "\"text\" with these quotation marks (for a shell '\"text\"'), null, or @NUMBER, a "
               "string that inspect shows";
    return type < ARRAY_SIZE(forms) && forms[type]
               ? forms[type]
               : "null or @NUMBER, an object of this type that inspect shows";
}

/*
 * Parses a value of the type given by a signature: a number, true, 'c', null, "text" or @17, an
 * object that inspect has shown.
 */
static int parse_value(struct control_call *c, const char *text, const char *signature, jvalue *ret)
{
    static const struct {
        char type;
        int64_t low, high;
    } ranges[] = {{'B', INT8_MIN, INT8_MAX},
                  {'S', INT16_MIN, INT16_MAX},
                  {'I', INT32_MIN, INT32_MAX},
                  {'J', INT64_MIN, INT64_MAX},
                  {'C', 0, UINT16_MAX}};

    int64_t n = 0;
    char *end = NULL;
    bool good = false;
    *ret = (jvalue){.j = 0};
    switch (*signature) {
    case 'Z':
        good = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
        ret->i = text[0] == 't';
        break;
    case 'F':
    case 'D':
        ret->d = strtod(text, &end);
        good = *text && !*end;
        if (*signature == 'F')
            ret->f = (jfloat)ret->d;
        break;
    case 'L':
    case '[':
        good = reference(c, text, ret);
        break;
    default:
        for (size_t k = 0; k < ARRAY_SIZE(ranges); k++)
            if (ranges[k].type == *signature)
                good = integer(text, ranges[k].low, ranges[k].high, &n);
        if (!good && *signature == 'C' && strlen(text) == 3 && text[0] == '\'' && text[2] == '\'') {
            n = (unsigned char)text[1];
            good = true;
        }
        if (*signature == 'J')
            ret->j = n;
        else
            ret->i = (jint)n;
    }
    if (!good) {
        _cleanup_free_ char *type = inspect_type_name(signature);
        buf_printf(c->i->why, "%s: not a value of type %s, which is written as %s", text,
                   type ? type : signature, form_of(signature));
    }
    return good ? 0 : -EINVAL;
}

/* Returns whether an object is assignable to a type; JVM TI does not always check that. */
static bool fits(struct control_call *c, jobject o, const char *signature)
{
    _cleanup_free_ char *name = inspect_type_name(signature);
    jclass wanted = o && name ? inspect_class_by_name(c->i, name) : NULL;
    return !o || (wanted && (*c->i->jni)->IsInstanceOf(c->i->jni, o, wanted));
}

int control_return(struct control_call *c)
{
    jvmtiEnv *ti = c->i->ti;
    char place[512];
    jmethodID m;
    jlocation at;
    jthread t = control_halted_thread(c, c->operands[0]);
    if (!t)
        return -ESRCH;
    int r = control_error(c, c->operands[0], (*ti)->GetFrameLocation(ti, t, 0, &m, &at));
    const struct method *method = r == 0 ? names_method(c->i->jni, m) : NULL;
    if (!method)
        return -ESRCH;
    control_place(c->i->jni, m, at, place, sizeof(place));
    const char *type = strchr(method->descriptor, ')') + 1;
    const char *text = c->count > 1 ? c->operands[1] : NULL;
    jvalue v = {.j = 0};
    if ((*type == 'V') != !text) {
        _cleanup_free_ char *name = inspect_type_name(type);
        if (*type == 'V')
            buf_printf(c->i->why, "%s: returns nothing, so return takes no value", place);
        else
            buf_printf(c->i->why, "%s: returns a value of type %s, which is written as %s", place,
                       name ? name : type, form_of(type));
        return -EINVAL;
    }
    if (text && (r = parse_value(c, text, type, &v)) < 0)
        return r;
    if ((*type == 'L' || *type == '[') && !fits(c, v.l, type)) {
        buf_printf(c->i->why, "%s: not of the type that %s returns", text, place);
        return -EINVAL;
    }
    jvmtiError e = *type == 'V'                   ? (*ti)->ForceEarlyReturnVoid(ti, t)
                   : *type == 'J'                 ? (*ti)->ForceEarlyReturnLong(ti, t, v.j)
                   : *type == 'F'                 ? (*ti)->ForceEarlyReturnFloat(ti, t, v.f)
                   : *type == 'D'                 ? (*ti)->ForceEarlyReturnDouble(ti, t, v.d)
                   : *type == 'L' || *type == '[' ? (*ti)->ForceEarlyReturnObject(ti, t, v.l)
                                                  : (*ti)->ForceEarlyReturnInt(ti, t, v.i);
    buf_printf(c->done, "%s returns%s%s when %s runs", place, text ? " " : "", text ? text : "",
               c->operands[0]);
    return control_error(c, place, e);
}

/*
 * Finds the slot and signature of a local variable, given by its name, or by "#SLOT:TYPE" if the
 * class has no table of local variables.
 */
static int find_local(struct control_call *c, jmethodID m, jlocation at, const char *name,
                      jint *ret_slot, char *signature, size_t size)
{
    jvmtiEnv *ti = c->i->ti;
    if (*name == '#') {
        char type;
        int slot, n = 0;
        if (sscanf(name, "#%d:%c%n", &slot, &type, &n) != 2 || name[n] ||
            !strchr("ZBCSIJFDL", type)) {
            buf_printf(c->i->why,
                       "%s: not a slot; #3:I is slot 3 as int (types: Z B C S I J F D L)", name);
            return -EINVAL;
        }
        *ret_slot = slot;
        snprintf(signature, size, type == 'L' ? "Ljava/lang/Object;" : "%c", type);
        return 0;
    }
    jint n = 0;
    bool found = false;
    jvmtiLocalVariableEntry *table = NULL;
    if ((*ti)->GetLocalVariableTable(ti, m, &n, &table) != JVMTI_ERROR_NONE) {
        buf_printf(
            c->i->why,
            "%s: the class was compiled without a table of locals (-g); name the slot, as in #1:I",
            name);
        return -ENODATA;
    }
    for (jint k = 0; k < n; k++) {
        if (!found && strcmp(table[k].name, name) == 0 && at >= table[k].start_location &&
            at < table[k].start_location + table[k].length) {
            found = true;
            *ret_slot = table[k].slot;
            snprintf(signature, size, "%s", table[k].signature);
        }
        vm_free(table[k].name);
        vm_free(table[k].signature);
        vm_free(table[k].generic_signature);
    }
    vm_free(table);
    if (!found)
        buf_printf(c->i->why, "%s: no local of this name is live there", name);
    return found ? 0 : -ESRCH;
}

int control_set(struct control_call *c)
{
    jvmtiEnv *ti = c->i->ti;
    const char *name = c->operands[2], *text = c->operands[3];
    char signature[512] = "";
    int64_t depth;
    jmethodID m = NULL;
    jlocation at = 0;
    jint slot = 0;
    jvalue v = {.j = 0};
    jthread t = control_halted_thread(c, c->operands[0]);
    if (!t)
        return -ESRCH;
    if (!integer(c->operands[1], 0, INT32_MAX, &depth)) {
        buf_printf(c->i->why, "%s: not a depth; 0 is the innermost frame", c->operands[1]);
        return -EINVAL;
    }
    jint frames = 0;
    int r = control_error(c, c->operands[0], (*ti)->GetFrameCount(ti, t, &frames));
    if (r == 0 && depth >= frames) {
        buf_printf(c->i->why, "%s: the thread has %s, and 0 is the innermost", c->operands[1],
                   COUNT_TEXT((uint64_t)frames, "frames"));
        r = -EINVAL;
    }
    if (r == 0)
        r = control_error(c, c->operands[1], (*ti)->GetFrameLocation(ti, t, (jint)depth, &m, &at));
    if (r == 0)
        r = find_local(c, m, at, name, &slot, signature, sizeof(signature));
    if (r == 0)
        r = parse_value(c, text, signature, &v);
    if (r < 0)
        return r;
    bool object = *signature == 'L' || *signature == '[';
    if (object && !fits(c, v.l, signature)) {
        buf_printf(c->i->why, "%s: not of the local's type", text);
        return -EINVAL;
    }
    jint d = (jint)depth;
    jvmtiError e = object              ? (*ti)->SetLocalObject(ti, t, d, slot, v.l)
                   : *signature == 'J' ? (*ti)->SetLocalLong(ti, t, d, slot, v.j)
                   : *signature == 'F' ? (*ti)->SetLocalFloat(ti, t, d, slot, v.f)
                   : *signature == 'D' ? (*ti)->SetLocalDouble(ti, t, d, slot, v.d)
                                       : (*ti)->SetLocalInt(ti, t, d, slot, v.i);
    buf_printf(c->done, "%s is %s", name, text);
    return control_error(c, name, e);
}
