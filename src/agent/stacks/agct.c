/* SPDX-License-Identifier: Apache-2.0 */
/* Walks stacks with AsyncGetCallTrace, which HotSpot exports but declares in no header. */
#include "agent/stacks/stack.h"

#include <dlfcn.h>
#include <stddef.h>

struct agct_frame {
    jint bci; /* -3 for a native method */
    jmethodID method;
};

struct agct_trace {
    JNIEnv *env;
    jint n; /* the number of frames, or a negative code of failure */
    struct agct_frame *frames;
};

typedef void agct_fn(struct agct_trace *trace, jint depth, void *ucontext);

static agct_fn *agct;

_Static_assert(sizeof(struct agct_frame) == sizeof(struct jfr_frame), "converted in place");

const char *const walk_failure_names[WALK_FAILURES] = {
    [WALK_NOT_JAVA] = "no Java frame",
    [WALK_NO_METHODS] = "walker not ready",
    [WALK_GC] = "garbage collection",
    [WALK_UNKNOWN_VM] = "unknown frame in VM code",
    [WALK_BROKEN_VM] = "broken stack in VM code",
    [WALK_UNKNOWN_JAVA] = "unknown frame in Java code",
    [WALK_BROKEN_JAVA] = "broken stack in Java code",
    [WALK_STATE] = "unknown thread state",
    [WALK_EXITING] = "thread exit",
    [WALK_DEOPT] = "deoptimisation",
    [WALK_SAFEPOINT] = "safepoint",
    [WALK_UNSIGNALLED] = "ended before its first sample",
    [WALK_OTHER] = "other",
};

static int walk(void *ucontext, JNIEnv *env, struct jfr_frame *frames, uint32_t max, bool *ret_cut)
{
    struct agct_trace trace = {.env = env, .frames = (struct agct_frame *)(void *)frames};
    agct(&trace, (jint)max, ucontext);
    if (trace.n <= 0)
        return trace.n > -WALK_UNSIGNALLED ? -1 + trace.n : -1 - WALK_OTHER;
    for (jint i = 0; i < trace.n; i++) {
        struct agct_frame f = trace.frames[i];
        frames[i] = (struct jfr_frame){
            .method = (uintptr_t)f.method,
            .bci = f.bci >= 0 ? f.bci : -1,
            .type = f.bci == -3 ? JFR_FRAME_NATIVE : JFR_FRAME_JAVA,
        };
    }
    return trace.n;
}

stack_walk_fn *stack_agct(void)
{
    if (!agct)
        agct = (agct_fn *)dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
    /*
     * libjvm is usually loaded without RTLD_GLOBAL, so find it by the address of a function in its
     * JNI table.
     */
    Dl_info where;
    if (!agct && dladdr((void *)(*vm.java)->GetEnv, &where) && where.dli_fname) {
        void *libjvm = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (libjvm) {
            agct = (agct_fn *)dlsym(libjvm, "AsyncGetCallTrace");
            dlclose(libjvm);
        }
    }
    return agct ? walk : NULL;
}
