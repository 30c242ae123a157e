/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/other_agent.h"

#include "agent/vm/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <jni.h>
#include <stdint.h>

/* A native method of a probe class; every build exports it. */
#define MARK Java_java_lang_JvmscopeEnding_ending

EXPORT void JNICALL MARK(JNIEnv *jni, jclass class, jboolean now);

#define NAME_OF(function)  NAME_OF_(function)
#define NAME_OF_(function) #function

static int check_library(void *library, const char *path, void *context)
{
    void *mark = *path ? dlsym(library, NAME_OF(MARK)) : NULL;
    if (!mark || (uintptr_t)mark == (uintptr_t)MARK)
        return 0;
    buf_printf(context, "another build of the agent is loaded in this VM, which keeps it: %s",
               path);
    return -EEXIST;
}

int other_agent_check(struct buf *why)
{
    return libraries_visit(check_library, why);
}
