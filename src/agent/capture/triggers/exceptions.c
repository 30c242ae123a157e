/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the exceptions for which triggers wait, by a probe in the constructors of their classes:
 * JVM TI's Exception event is slow, and an agent that attaches cannot get it. A constructor that
 * calls this(..) has no probe, so each object counts once; the constructors of subclasses call one
 * that has a probe.
 */
#include "agent/capture/triggers/triggers.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/named_class.h"
#include "agent/instrument/probe_class.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeAlarm"

enum { COUNTERS_MAX = 64 };

static struct {
    pthread_mutex_t lock;
    char *names[COUNTERS_MAX]; /* pkg/Class */
    _Atomic int n;
    _Atomic uint64_t counts[COUNTERS_MAX];
    _Atomic bool seen[COUNTERS_MAX];  /* the VM has loaded a class of this name */
    _Atomic bool other[COUNTERS_MAX]; /* that class does not extend Throwable */
    jclass probe;
    bool on;
} alarms = {.lock = PTHREAD_MUTEX_INITIALIZER};

EXPORT void JNICALL Java_java_lang_JvmscopeAlarm_count(JNIEnv *jni, jclass class, jint counter,
                                                       jboolean is_thrown);

void JNICALL Java_java_lang_JvmscopeAlarm_count(JNIEnv *jni, jclass class, jint counter,
                                                jboolean is_thrown)
{
    if (counter < 0 || counter >= COUNTERS_MAX)
        return;
    if (!is_thrown)
        atomic_store(&alarms.other[counter], true);
    else
        atomic_fetch_add_explicit(&alarms.counts[counter], 1, memory_order_relaxed);
}

static int counter_of(struct str class_name)
{
    int found = -1;
    pthread_mutex_lock(&alarms.lock);
    for (int i = 0; i < alarms.n && found < 0; i++)
        if (str_is(class_name, alarms.names[i]))
            found = i;
    pthread_mutex_unlock(&alarms.lock);
    return found;
}

static bool wants(struct str class_name)
{
    int counter = counter_of(class_name);
    if (counter >= 0)
        atomic_store(&alarms.seen[counter], true);
    return counter >= 0;
}

/* Returns whether a constructor calls another one of its class. */
static bool calls_this(const struct instrument_class *c, const struct edit *e)
{
    struct class_member called;
    if (!e->super_end || e->super_pc + 2 >= e->code_len)
        return false;
    uint16_t index = (uint16_t)(e->code[e->super_pc + 1] << 8 | e->code[e->super_pc + 2]);
    return class_member(c->file, index, &called) && called.owner.len == c->name.len &&
           memcmp(called.owner.data, c->name.data, c->name.len) == 0;
}

static int edit_class(const struct instrument_class *c, struct edit *e)
{
    int counter = counter_of(c->name);
    if (counter < 0 || !e->constructor || calls_this(c, e))
        return 0;
    _cleanup_(buf_release) struct buf code = BUF(16);
    int ref = rewrite_methodref(e->rewrite, PROBE, "constructed", "(Ljava/lang/Object;I)V");
    if (ref < 0)
        return ref;
    /* Before the call of super() the object cannot be passed to a probe. */
    if (e->super_end)
        code_load(&code, 'L', 0);
    else
        code_op(&code, OP_ACONST_NULL);
    int r = code_int(e->rewrite, &code, counter);
    code_invokestatic(&code, ref);
    r = r < 0 ? r
              : edit_insert(e, e->super_end ? EDIT_AFTER : EDIT_ENTRY,
                            e->super_end ? e->super_pc : 0, 0, &code, 2);
    return r < 0 ? r : 1;
}

static const struct instrument_client client = {
    .name = "triggers", .edit = edit_class, .wants = wants, .seldom = true};

static char *internal_name(const char *class_name)
{
    char *copy = strdup(class_name);
    if (copy)
        dotted_undo(copy);
    return copy;
}

int exception_counter(JNIEnv *jni, const char *class_name, struct buf *why)
{
    static const jvmtiCapabilities changes = {.can_retransform_classes = 1};
    jvmtiCapabilities missing = {0};
    if (vm_need(&changes, &missing) < 0 || !vm_capabilities_empty(&missing)) {
        buf_printf(why, "exception %s: this VM does not allow classes to be changed", class_name);
        return -ENOTSUP;
    }
    char *name = internal_name(class_name);
    if (!name)
        return -ENOMEM;
    int known = counter_of((struct str){name, strlen(name)});
    int r = known >= 0 ? 0 : probe_define(jni, PROBE, &alarms.probe, why);
    if (known >= 0 || r < 0 || alarms.n == COUNTERS_MAX) {
        free(name);
        if (known < 0 && r == 0)
            buf_printf(why, "exception %s: all conditions together can name at most %d classes",
                       class_name, COUNTERS_MAX);
        return known >= 0 ? known : r < 0 ? r : -ENOSPC;
    }
    pthread_mutex_lock(&alarms.lock);
    int counter = alarms.n;
    alarms.names[counter] = name;
    atomic_store(&alarms.counts[counter], 0);
    atomic_store(&alarms.seen[counter], false);
    atomic_store(&alarms.other[counter], false);
    alarms.n = counter + 1;
    pthread_mutex_unlock(&alarms.lock);
    r = alarms.on ? instrument_change(&client, jni) : instrument_on(&client, jni, why);
    alarms.on = alarms.on || r == 0;
    return r < 0 ? r : counter;
}

uint64_t exception_count(int counter)
{
    return counter < 0 ? 0 : atomic_load(&alarms.counts[counter]);
}

bool exception_class_seen(int counter)
{
    return counter < 0 || atomic_load(&alarms.seen[counter]);
}

bool exception_is_unsatisfiable(JNIEnv *jni, int counter, const char *tense, struct buf *why)
{
    if (counter < 0)
        return false;
    jclass throwable = (*jni)->FindClass(jni, "java/lang/Throwable");
    if (!throwable) {
        vm_clear_exception(jni);
        return false;
    }
    struct choice_guess guess;
    jclass c = named_class(jni, alarms.names[counter], &(struct wanted_member){0}, &guess);
    bool is_thrown = c && (*jni)->IsAssignableFrom(jni, c, throwable);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    (*jni)->DeleteLocalRef(jni, throwable);
    _cleanup_free_ char *name = strdup(alarms.names[counter]);
    bool was_loaded = !c && exception_class_seen(counter);
    if (!name || was_loaded || is_thrown)
        return false;
    dotted_in_place(name, strlen(name));
    if (c)
        buf_printf(why, "%s is not an exception: it is not below java.lang.Throwable", name);
    else if (guess.rank)
        buf_printf(why, "no class %s %s, but %s %.*s", name, tense, guess.name,
                   (int)strcspn(tense, " "), tense);
    else
        buf_printf(why, "no class %s %s%s", name, tense,
                   strchr(name, '$') ? "" : "; nested ones are Outer$Inner");
    if (c)
        atomic_store(&alarms.other[counter], true);
    return true;
}

bool exception_is_other(int counter)
{
    return counter >= 0 && atomic_load(&alarms.other[counter]);
}

void exception_counters_stop(JNIEnv *jni)
{
    if (alarms.on)
        instrument_off(&client, jni);
    alarms.on = false;
    pthread_mutex_lock(&alarms.lock);
    for (int i = 0; i < alarms.n; i++)
        free(alarms.names[i]);
    alarms.n = 0;
    pthread_mutex_unlock(&alarms.lock);
}
