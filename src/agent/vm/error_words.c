/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/error_words.h"

/*
 * The errors are numbers, because the headers of JDK 8 lack the last error of a redefinition, and
 * headers before JDK 19 lack the errors about virtual threads.
 */
static const struct {
    int error;
    const char *words;
} words[] = {
    {JVMTI_ERROR_THREAD_NOT_SUSPENDED, "the thread runs; suspend it first"},
    {JVMTI_ERROR_THREAD_SUSPENDED, "is suspended already"},
    {JVMTI_ERROR_THREAD_NOT_ALIVE, "the thread has ended"},
    {JVMTI_ERROR_CLASS_NOT_PREPARED, "the class is not linked yet"},
    {JVMTI_ERROR_NO_MORE_FRAMES, "the stack has no such frame"},
    {JVMTI_ERROR_OPAQUE_FRAME, "the VM cannot change this frame: it or its caller is a native "
                               "method, or the thread is virtual"},
    {JVMTI_ERROR_TYPE_MISMATCH, "the value has another type"},
    {JVMTI_ERROR_INVALID_SLOT, "the frame has no such slot"},
    {JVMTI_ERROR_INVALID_CLASS_FORMAT, "the class file is not valid"},
    {JVMTI_ERROR_CIRCULAR_CLASS_DEFINITION, "the new class would be its own superclass"},
    {JVMTI_ERROR_FAILS_VERIFICATION, "the new class does not pass the VM's verification"},
    {JVMTI_ERROR_UNSUPPORTED_REDEFINITION_METHOD_ADDED,
     "the new class has a method that the loaded one lacks"},
    {JVMTI_ERROR_UNSUPPORTED_REDEFINITION_SCHEMA_CHANGED,
     "the new class has other fields than the loaded one"},
    {JVMTI_ERROR_UNSUPPORTED_REDEFINITION_HIERARCHY_CHANGED,
     "the new class has another superclass or other interfaces than the loaded one"},
    {JVMTI_ERROR_UNSUPPORTED_REDEFINITION_METHOD_DELETED,
     "the new class lacks a method that the loaded one has"},
    {JVMTI_ERROR_UNSUPPORTED_VERSION, "the class file is too new for this VM"},
    {JVMTI_ERROR_UNSUPPORTED_REDEFINITION_CLASS_MODIFIERS_CHANGED,
     "the new class has other modifiers than the loaded one"},
    {JVMTI_ERROR_UNSUPPORTED_REDEFINITION_METHOD_MODIFIERS_CHANGED,
     "a method of the new class has other modifiers than in the loaded one"},
    {72, "the new class has other nested, record or permitted classes than the loaded one"},
    {73, "the VM cannot do this to a virtual thread"},
    {JVMTI_ERROR_UNMODIFIABLE_CLASS, "the VM does not let this class be changed"},
    {JVMTI_ERROR_NOT_AVAILABLE, "this VM cannot do it"},
    {JVMTI_ERROR_MUST_POSSESS_CAPABILITY, "the VM does not allow it to the agent"},
    {JVMTI_ERROR_OUT_OF_MEMORY, "the VM has no memory for it"},
};

void vm_put_error(struct buf *out, jvmtiError e)
{
    for (size_t k = 0; k < ARRAY_SIZE(words); k++)
        if (words[k].error == (int)e) {
            buf_string(out, words[k].words);
            return;
        }
    buf_printf(out, "the VM answers with error %d of JVM TI", (int)e);
}
