/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the stacks of allocation sites: which frames a site has. */
#include "agent/capture/alloc/sites_private.h"
#include "agent/instrument/probe_class.h"
#include "agent/stacks/names.h"
#include "agent/stacks/own_stack.h"

#include <string.h>

/*
 * Returns whether a method belongs to the probe class. Which of its methods are on the stack
 * depends on the probe.
 */
static bool is_probe(const struct method *m)
{
    return m && strcmp(m->class_name, "java/lang/JvmscopeSites") == 0;
}

/*
 * JDK methods whose allocation is attributed to their caller, because they are native or the JIT
 * replaces them.
 */
static bool is_at_call(const struct method *m)
{
    static const struct {
        const char *class_name, *name;
    } rows[] = {
        {"java/lang/Object", "clone"},
        {"java/util/Arrays", "copyOf"},
        {"java/util/Arrays", "copyOfRange"},
        {"java/lang/reflect/Array", "newArray"},
        {"java/lang/reflect/Array", "newInstance"},
        {"jdk/internal/misc/Unsafe", "allocateInstance"},
        {"jdk/internal/misc/Unsafe", "allocateUninitializedArray"},
        {"jdk/internal/misc/Unsafe", "allocateUninitializedArray0"},
        {"sun/misc/Unsafe", "allocateInstance"},
    };

    for (size_t i = 0; m && i < ARRAY_SIZE(rows); i++)
        if (strcmp(m->class_name, rows[i].class_name) == 0 && strcmp(m->name, rows[i].name) == 0)
            return true;
    return false;
}

/* Returns the first bytecode index of the line that contains a bytecode index. */
static int64_t line_start(const struct method *m, int64_t bci)
{
    uint32_t line = m ? names_method_line(m, (int32_t)bci) : 0;
    for (size_t i = 0; line && i < m->n_lines; i++)
        if (m->lines[i].line == line)
            return m->lines[i].bci;
    return bci < 0 ? bci : 0;
}

/*
 * Returns whether a method makes the object of a capturing lambda expression. Before JDK 15 it
 * belongs to an anonymous class of the VM. The objects are counted at the invokedynamic.
 */
static bool makes_lambda(const struct method *m)
{
    return vm.version < 15 && m && strcmp(m->name, "get$Lambda") == 0 &&
           strstr(m->class_name, "$$Lambda");
}

/* Returns whether a method is code that the JDK generated for a method handle. */
static bool is_of_handle(const struct method *m)
{
    static const char *const starts[] = {"java/lang/invoke/LambdaForm$",
                                         "java/lang/invoke/Invokers$Holder",
                                         "java/lang/invoke/DirectMethodHandle$Holder"};
    for (size_t i = 0; m && i < ARRAY_SIZE(starts); i++)
        if (strncmp(m->class_name, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/*
 * Returns how many of n frames are left out: those of probes, then of methods that are counted at
 * their call site, or of what creates a lambda's object.
 */
static jint skipped(JNIEnv *jni, const jvmtiFrameInfo *found, jint n, enum site_top *ret_top)
{
    jint top = 0;
    *ret_top = SITE_TOP_OTHER;
    while (top < n && is_probe(names_method(jni, found[top].method)))
        top++;
    if (top < n && makes_lambda(names_method(jni, found[top].method))) {
        for (top++; top < n && is_of_handle(names_method(jni, found[top].method));)
            top++;
        return top;
    }
    if (top < n && is_at_call(names_method(jni, found[top].method)))
        *ret_top = found[top].location < 0 ? SITE_TOP_NATIVE : SITE_TOP_AT_CALL;
    while (top < n && is_at_call(names_method(jni, found[top].method)))
        top++;
    return top;
}

uint32_t sites_stack(JNIEnv *jni, struct site_frame frames[SITE_DEPTH_MAX], enum site_top *ret_top)
{
    return sites_stack_words(jni, frames, ret_top, NULL);
}

uint32_t sites_stack_words(JNIEnv *jni, struct site_frame frames[SITE_DEPTH_MAX],
                           enum site_top *ret_top, struct walk_words *ret_words)
{
    jvmtiFrameInfo found[SITE_DEPTH_MAX];
    enum site_top on_top = SITE_TOP_OTHER;
    jint n = 0, top = 0;
    uint32_t depth = site_table.depth, kept = 0;
    unsigned hold = names_hold();
    if (ret_words)
        ret_words->n = 0;
    /* Usually only a few frames are skipped, and each walked frame costs time. */
    for (jint extra = SITE_SKIP_FEW; depth || ret_top; extra = SITE_SKIP_MAX) {
        n = own_stack_words(jni, found, (jint)depth + extra, ret_words);
        top = skipped(jni, found, n, &on_top);
        if (top <= SITE_SKIP_FEW || n < (jint)depth + extra || extra == SITE_SKIP_MAX)
            break;
    }
    if (ret_top)
        *ret_top = on_top;
    /* Names are read while the class cannot be unloaded. */
    for (jint i = top; i < n && kept < depth; i++) {
        const struct method *m = names_method(jni, found[i].method);
        frames[kept++] = (struct site_frame){(uint64_t)(uintptr_t)found[i].method,
                                             line_start(m, found[i].location)};
    }
    names_unhold(hold);
    return kept;
}

bool sites_is_ours(JNIEnv *jni, const struct site_frame *frames, uint32_t n)
{
    unsigned hold = names_hold();
    bool ours = false;
    for (uint32_t i = 0; i < n && !ours; i++) {
        const struct method *m = names_method(jni, (jmethodID)(uintptr_t)frames[i].method);
        ours = m && probe_is_class(m->class_name);
    }
    names_unhold(hold);
    return ours;
}
