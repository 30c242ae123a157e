/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions threads, groups and stack: states, locks held and waited for, frames with their
 * local variables.
 */
#include "agent/inspect/inspect.h"
#include "agent/stacks/names.h"
#include "agent/vm/error_words.h"
#include "agent/vm/os_thread.h"
#include "agent/vm/shown_thread.h"
#include "agent/vm/thread_table.h"
#include "agent/vm/virtual_list.h"
#include "base/parse.h"
#include "classfile/classfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *state_name(jint state)
{
    if (state & JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER)
        return "blocked";
    if (state & JVMTI_THREAD_STATE_SLEEPING)
        return "sleeping";
    if (state & JVMTI_THREAD_STATE_PARKED)
        return "parked";
    if (state & JVMTI_THREAD_STATE_IN_OBJECT_WAIT)
        return "waiting";
    if (state & JVMTI_THREAD_STATE_WAITING)
        return "waiting";
    if (state & JVMTI_THREAD_STATE_IN_NATIVE)
        return "native";
    if (state & JVMTI_THREAD_STATE_RUNNABLE)
        return "runnable";
    return state & JVMTI_THREAD_STATE_TERMINATED ? "terminated" : "new";
}

jthread inspect_thread_of_java_id(struct inspection *i, jlong java_id)
{
    jint n = 0;
    jthread *all = NULL, found = NULL;
    if (vm_all_threads(&n, &all) != JVMTI_ERROR_NONE)
        return NULL;
    for (jint k = 0; k < n; k++) {
        if (!found && shown_thread_java_id(i->jni, all[k]) == java_id)
            found = all[k];
        else
            (*i->jni)->DeleteLocalRef(i->jni, all[k]);
    }
    vm_free(all);
    return found;
}

static void put_os_thread(struct inspection *i, jthread thread, jlong java_id)
{
    pid_t tid = 0;
    for (struct thread *t = NULL; !tid && (t = threads_next(t));)
        if ((jlong)t->java_id == java_id)
            tid = atomic_load(&t->tid);
    if (!tid)
        tid = os_thread_id(i->jni, thread);
    if (tid) {
        json_key_i64(i->out, "tid", tid);
    }
}

/* Writes the kernel id of the carrier of a virtual thread, if there is one and the id is known. */
static void put_carrier(struct inspection *i, jthread t)
{
    jfieldID f = vm_field(i->jni, "java/lang/VirtualThread", "carrierThread", "Ljava/lang/Thread;");
    jobject on = f ? (*i->jni)->GetObjectField(i->jni, t, f) : NULL;
    pid_t tid = on ? os_thread_id(i->jni, on) : 0;
    if (tid)
        json_key_i64(i->out, "carrier_tid", tid);
    if (on)
        (*i->jni)->DeleteLocalRef(i->jni, on);
}

static void put_thread(struct inspection *i, jthread t)
{
    jvmtiThreadInfo info = {0};
    jint state = 0, frames = 0;
    jlong cpu;
    if ((*i->ti)->GetThreadInfo(i->ti, t, &info) != JVMTI_ERROR_NONE)
        return;
    jvmtiThreadGroupInfo group = {0};
    if (info.thread_group)
        (*i->ti)->GetThreadGroupInfo(i->ti, info.thread_group, &group);
    (*i->ti)->GetThreadState(i->ti, t, &state);
    (*i->ti)->GetFrameCount(i->ti, t, &frames);
    json_begin_object(i->out);
    json_key_i64(i->out, "id", inspect_object_number(i, t));
    _cleanup_free_ char *name = shown_thread_name(i->jni, t);
    json_key_string(i->out, "name", name);
    json_key_string(i->out, "group", group.name);
    json_key_string(i->out, "state", state_name(state));
    json_key_i64(i->out, "flags", state);
    json_key_bool(i->out, "suspended", state & JVMTI_THREAD_STATE_SUSPENDED);
    json_key_bool(i->out, "interrupted", state & JVMTI_THREAD_STATE_INTERRUPTED);
    json_key_bool(i->out, "daemon", info.is_daemon);
    json_key_i64(i->out, "priority", info.priority);
    bool is_virtual = thread_is_virtual(i->jni, t);
    jlong java_id = shown_thread_java_id(i->jni, t);
    json_key_bool(i->out, "virtual", is_virtual);
    json_key_i64(i->out, "java_id", java_id);
    if (!is_virtual)
        put_os_thread(i, t, java_id);
    else
        put_carrier(i, t);
    if (i->have.can_get_thread_cpu_time &&
        (*i->ti)->GetThreadCpuTime(i->ti, t, &cpu) == JVMTI_ERROR_NONE) {
        json_key_i64(i->out, "cpu_ns", cpu);
    }
    json_key_i64(i->out, "frames", frames);
    inspect_put_locks(i, java_id);
    json_end_object(i->out);
    vm_free_thread_info(i->jni, &info);
    vm_free(group.name);
    if (group.parent)
        (*i->jni)->DeleteLocalRef(i->jni, group.parent);
}

static void put_virtual(const struct existing_virtual *v, void *arg)
{
    put_thread(arg, v->thread);
}

static void put_not_listed(struct inspection *i, bool listed, uint64_t left)
{
    char text[128];
    if (listed && !left)
        return;
    if (listed)
        format_count(text, left, "virtual threads");
    else
        snprintf(text, sizeof(text), "virtual threads, which this VM does not list");
    json_key_string(i->out, "not_listed", text);
}

/* Returns whether a thread is one of the agent's, which are no part of the program. */
static bool is_own(struct inspection *i, jthread thread)
{
    const struct thread *t = threads_find(i->jni, thread);
    return t && t->own;
}

int inspect_threads(struct inspection *i)
{
    jint n = 0;
    jthread *list = NULL;
    if (vm_all_threads(&n, &list) != JVMTI_ERROR_NONE)
        return -ENOTSUP;
    inspect_find_locks(i);
    json_key_array(i->out, "threads");
    for (jint k = 0; k < n; k++) {
        if (!is_own(i, list[k]))
            put_thread(i, list[k]);
        (*i->jni)->DeleteLocalRef(i->jni, list[k]);
    }
    vm_free(list);
    uint64_t left = 0;
    bool listed = virtual_threads_visit(i->jni, put_virtual, i, &left) == 0;
    json_end_array(i->out);
    put_not_listed(i, listed, left);
    return 0;
}

enum { GROUP_DEPTH = 64 };

static void put_group(struct inspection *i, jthreadGroup g, int depth)
{
    jvmtiThreadGroupInfo info = {0};
    jint n_threads = 0, n_groups = 0;
    jthread *threads = NULL;
    jthreadGroup *groups = NULL;
    if ((*i->ti)->GetThreadGroupInfo(i->ti, g, &info) != JVMTI_ERROR_NONE)
        return;
    (*i->ti)->GetThreadGroupChildren(i->ti, g, &n_threads, &threads, &n_groups, &groups);
    json_begin_object(i->out);
    json_key_i64(i->out, "id", inspect_object_number(i, g));
    json_key_string(i->out, "name", info.name);
    json_key_i64(i->out, "max_priority", info.max_priority);
    json_key_bool(i->out, "daemon", info.is_daemon);
    json_key_array(i->out, "threads");
    for (jint k = 0; k < n_threads; k++) {
        _cleanup_free_ char *name =
            is_own(i, threads[k]) ? NULL : shown_thread_name(i->jni, threads[k]);
        if (name)
            json_string(i->out, name);
    }
    json_end_array(i->out);
    json_key_array(i->out, "groups");
    for (jint k = 0; k < n_groups && depth < GROUP_DEPTH; k++)
        put_group(i, groups[k], depth + 1);
    json_end_array(i->out);
    json_end_object(i->out);
    vm_free(info.name);
    vm_free(threads);
    vm_free(groups);
}

int inspect_groups(struct inspection *i)
{
    jint n = 0;
    jthreadGroup *top = NULL;
    if ((*i->ti)->GetTopThreadGroups(i->ti, &n, &top) != JVMTI_ERROR_NONE)
        return -ENOTSUP;
    json_key_array(i->out, "groups");
    for (jint k = 0; k < n; k++)
        put_group(i, top[k], 0);
    json_end_array(i->out);
    vm_free(top);
    return 0;
}

/* Returns whether the operand is the name or number of a thread. */
static bool is_operand(struct inspection *i, jthread t)
{
    char *end;
    long long number = strtoll(i->operand, &end, 10);
    if (*i->operand && !*end && inspect_object_number(i, t) == number)
        return true;
    _cleanup_free_ char *name = shown_thread_name(i->jni, t);
    return name && strcmp(name, i->operand) == 0;
}

struct virtual_search {
    struct inspection *i;
    jobject found; /* a global reference: those of the list last only while it is visited */
};

static void find_virtual(const struct existing_virtual *v, void *arg)
{
    struct virtual_search *s = arg;
    if (!s->found && is_operand(s->i, v->thread))
        s->found = (*s->i->jni)->NewGlobalRef(s->i->jni, v->thread);
}

static jthread virtual_thread_of_operand(struct inspection *i)
{
    struct virtual_search s = {.i = i};
    uint64_t left;
    if (virtual_threads_visit(i->jni, find_virtual, &s, &left) < 0 && !s.found)
        return NULL;
    jthread found = s.found ? (*i->jni)->NewLocalRef(i->jni, s.found) : NULL;
    if (s.found)
        (*i->jni)->DeleteGlobalRef(i->jni, s.found);
    return found;
}

jthread thread_of_operand(struct inspection *i)
{
    jint n = 0;
    jthread *list = NULL, found = NULL;
    if (vm_all_threads(&n, &list) != JVMTI_ERROR_NONE)
        return NULL;
    for (jint k = 0; k < n; k++) {
        if (!found && is_operand(i, list[k]))
            found = list[k];
        else
            (*i->jni)->DeleteLocalRef(i->jni, list[k]);
    }
    vm_free(list);
    if (!found)
        found = virtual_thread_of_operand(i);
    if (!found)
        buf_printf(i->why, "%s: no live thread of this name or number", i->operand);
    return found;
}

static bool local_of(struct inspection *i, jthread t, jint depth, jint slot, const char *signature,
                     jvalue *ret)
{
    jvalue v = {.j = 0};
    jvmtiError e;
    switch (*signature) {
    case 'J':
        e = (*i->ti)->GetLocalLong(i->ti, t, depth, slot, &v.j);
        break;
    case 'F':
        e = (*i->ti)->GetLocalFloat(i->ti, t, depth, slot, &v.f);
        break;
    case 'D':
        e = (*i->ti)->GetLocalDouble(i->ti, t, depth, slot, &v.d);
        break;
    case 'L':
    case '[':
        e = (*i->ti)->GetLocalObject(i->ti, t, depth, slot, &v.l);
        break;
    default: {
        jint value = 0;
        e = (*i->ti)->GetLocalInt(i->ti, t, depth, slot, &value);
        if (*signature == 'Z')
            v.z = (jboolean)value;
        else if (*signature == 'B')
            v.b = (jbyte)value;
        else if (*signature == 'C')
            v.c = (jchar)value;
        else if (*signature == 'S')
            v.s = (jshort)value;
        else
            v.i = value;
    }
    }
    *ret = v;
    return e == JVMTI_ERROR_NONE;
}

static void put_locals(struct inspection *i, jthread t, jint depth, const jvmtiFrameInfo *f)
{
    jint n = 0;
    jvmtiLocalVariableEntry *table = NULL;
    if (!i->have.can_access_local_variables)
        return;
    jobject self = NULL;
    jint modifiers = ACC_STATIC;
    (*i->ti)->GetMethodModifiers(i->ti, f->method, &modifiers);
    /* Not for static methods, because JDK 8 returns their first local variable. */
    if (!(modifiers & ACC_STATIC) &&
        (*i->ti)->GetLocalInstance(i->ti, t, depth, &self) == JVMTI_ERROR_NONE)
        inspect_put_object_key(i, "this", self);
    if ((*i->ti)->GetLocalVariableTable(i->ti, f->method, &n, &table) != JVMTI_ERROR_NONE)
        return;
    json_key_object(i->out, "locals");
    for (jint k = 0; k < n; k++) {
        const jvmtiLocalVariableEntry *e = &table[k];
        jvalue v;
        if (f->location >= e->start_location && f->location < e->start_location + e->length &&
            strcmp(e->name, "this") != 0 && local_of(i, t, depth, e->slot, e->signature, &v)) {
            json_key(i->out, e->name);
            inspect_put_value(i, e->signature, v);
        }
    }
    json_end_object(i->out);
    for (jint k = 0; k < n; k++) {
        vm_free(table[k].name);
        vm_free(table[k].signature);
        vm_free(table[k].generic_signature);
    }
    vm_free(table);
}

static void put_frame(struct inspection *i, jthread t, jint depth, const jvmtiFrameInfo *f)
{
    const struct method *m = names_method(i->jni, f->method);
    char name[512] = "?";
    json_begin_object(i->out);
    json_key_i64(i->out, "depth", depth);
    if (m)
        names_dotted(m->class_name, name, sizeof(name));
    json_key_string(i->out, "class", name);
    json_key_string(i->out, "method", m ? m->name : "?");
    json_key_string(i->out, "descriptor", m ? m->descriptor : NULL);
    json_key_i64(i->out, "bci", f->location);
    uint32_t line = m ? names_method_line(m, (int32_t)f->location) : 0;
    if (line) {
        json_key_u64(i->out, "line", line);
    }
    json_key_bool(i->out, "native", m && m->native);
    put_locals(i, t, depth, f);
    json_end_object(i->out);
}

enum { FRAMES_SHOWN = 1024 };

/* Says why no frame has its locals, if so. */
static void put_why_no_locals(struct inspection *i, jint state)
{
    enum { OF_SUSPENDED_ONLY = 21 };

    const char *why = NULL;
    if (!i->have.can_access_local_variables)
        why = vm.attached ? "the VM reports them only to an agent that was loaded at its start"
                          : "the VM reports them only if it was started with --allow-control";
    else if (vm.version >= OF_SUSPENDED_ONLY && !(state & JVMTI_THREAD_STATE_SUSPENDED))
        why = "since JDK 21 the VM reports those of suspended threads only (control suspend)";
    if (why)
        json_key_string(i->out, "locals_unknown", why);
}

int inspect_stack(struct inspection *i)
{
    jthread t = thread_of_operand(i);
    if (!t)
        return -ESRCH;
    jvmtiFrameInfo *frames = calloc(FRAMES_SHOWN, sizeof(*frames));
    jint n = 0, all = 0, state = 0;
    if (!frames)
        return -ENOMEM;
    jvmtiError e = (*i->ti)->GetStackTrace(i->ti, t, 0, FRAMES_SHOWN, frames, &n);
    (*i->ti)->GetFrameCount(i->ti, t, &all);
    (*i->ti)->GetThreadState(i->ti, t, &state);
    if (e == JVMTI_ERROR_NONE) {
        inspect_find_locks(i);
        json_key(i->out, "thread");
        put_thread(i, t);
        json_key_i64(i->out, "depth", all);
        json_key_array(i->out, "frames");
        /*
         * A thread that is not suspended continues to run while its frames are read, so each frame
         * is shown as the VM returns it at that moment.
         */
        for (jint k = 0; k < n; k++)
            if (!inspect_is_agents_frame(i, &frames[k]))
                put_frame(i, t, k, &frames[k]);
        json_end_array(i->out);
        put_why_no_locals(i, state);
    }
    free(frames);
    if (e != JVMTI_ERROR_NONE) {
        buf_printf(i->why, "%s: its stack cannot be read: ", i->operand);
        vm_put_error(i->why, e);
    }
    return e == JVMTI_ERROR_NONE ? 0 : -ENOTSUP;
}
