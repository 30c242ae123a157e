/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi_agent.h"

long entries_of_leaf, exits_of_leaf, entries_of_thrower, exits_of_thrower, entries_with_object;
jobjectID wanted_receiver;
long total_entries, total_exits;

/* The method and thread that are counted. */
static jmethodID counted_method;
static JNIEnv *counted_env;
static long counted_entries, counted_exits;

long count_calls(JNIEnv *env, const char *what)
{
    const char *dot = strrchr(what, '.');
    char class_name[128] = "";
    if (!dot || (size_t)(dot - what) >= sizeof(class_name))
        return -1;
    memcpy(class_name, what, (size_t)(dot - what));
    counted_env = NULL;
    counted_method = method_named(class_name, dot + 1);
    counted_entries = counted_exits = 0;
    counted_env = env;
    return counted_method ? 0 : -1;
}

long counted_calls(void)
{
    return counted_entries * 1000000 + counted_exits;
}

void on_method(JVMPI_Event *e, int type)
{
    static jmethodID leaf, thrower;
    long *nesting;
    if (!leaf) {
        leaf = method_named("JvmpiWork", "leaf");
        thrower = method_named("JvmpiWork", "thrower");
    }
    __sync_fetch_and_add(type == JVMPI_EVENT_METHOD_EXIT ? &total_exits : &total_entries, 1);
    if (e->u.method.method_id == leaf && type != JVMPI_EVENT_METHOD_ENTRY2)
        __sync_fetch_and_add(type == JVMPI_EVENT_METHOD_EXIT ? &exits_of_leaf : &entries_of_leaf,
                             1);
    if (e->u.method.method_id == thrower && type != JVMPI_EVENT_METHOD_ENTRY2)
        __sync_fetch_and_add(
            type == JVMPI_EVENT_METHOD_EXIT ? &exits_of_thrower : &entries_of_thrower, 1);
    if (type == JVMPI_EVENT_METHOD_ENTRY2 && wanted_receiver &&
        e->u.method_entry2.obj_id == wanted_receiver)
        __sync_fetch_and_add(&entries_with_object, 1);
    if (e->env_id == counted_env && e->u.method.method_id == counted_method &&
        type != JVMPI_EVENT_METHOD_ENTRY2)
        *(type == JVMPI_EVENT_METHOD_EXIT ? &counted_exits : &counted_entries) += 1;
    nesting = (long *)jvmpi->GetThreadLocalStorage(e->env_id);
    if (!nesting) {
        nesting = (long *)calloc(1, sizeof(*nesting));
        jvmpi->SetThreadLocalStorage(e->env_id, nesting);
        if (jvmpi->GetThreadLocalStorage(e->env_id) != nesting) {
            char name[64] = "thread-local storage of an unknown thread: ";
            pthread_getname_np(pthread_self(), name + strlen(name), 16);
            fault(name);
        }
    }
    *nesting += type == JVMPI_EVENT_METHOD_EXIT ? -1 : 1;
}

/*
 * For the method "steps": the number of instructions, and what those of known tables and the true
 * conditions reported, in order: "t3 " a tableswitch's key, "l1 " the index of a lookupswitch's
 * pair, "i " a condition.
 */
long n_steps, plain_offsets;
char steps[400];

void on_instruction(JVMPI_Event *e)
{
    static jmethodID wanted;
    static jint before;
    char one[60] = "";
    if (!wanted)
        wanted = method_named("JvmpiWork", "steps");
    if (!wanted || e->u.instruction.method_id != wanted)
        return;
    if (n_steps++ == 0)
        before = -1;
    if (e->u.instruction.offset > before)
        plain_offsets++;
    before = e->u.instruction.offset;
    /* Finds them by their offsets in JvmpiWork's class file, which the program passes. */
    if (e->u.instruction.u.tableswitch_info.low == 10 &&
        e->u.instruction.u.tableswitch_info.hi == 13)
        sprintf(one, "t%d ", (int)e->u.instruction.u.tableswitch_info.key);
    else if (e->u.instruction.u.lookupswitch_info.pairs_total == 3)
        sprintf(one, "l%d ", (int)e->u.instruction.u.lookupswitch_info.chosen_pair_index);
    else if (e->u.instruction.u.if_info.is_true == JNI_TRUE)
        strcpy(one, "i ");
    if (strlen(steps) + strlen(one) < sizeof(steps))
        strcat(steps, one);
}
