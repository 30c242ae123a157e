/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/other_agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <jni.h>
#include <link.h>
#include <stdint.h>

/* A native method of a probe class; every build exports it. */
#define MARK Java_java_lang_JvmscopeEnding_ending

EXPORT void JNICALL MARK(JNIEnv *jni, jclass class, jboolean now);

#define NAME_OF(function)  NAME_OF_(function)
#define NAME_OF_(function) #function

static int look(struct dl_phdr_info *info, size_t size, void *found)
{
    /* The program itself has no name. */
    void *library = *info->dlpi_name ? dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!library)
        return 0;
    void *mark = dlsym(library, NAME_OF(MARK));
    dlclose(library);
    if (!mark || (uintptr_t)mark == (uintptr_t)MARK)
        return 0;
    *(const char **)found = info->dlpi_name;
    return 1;
}

int other_agent_check(struct buf *why)
{
    const char *name = NULL;
    if (!dl_iterate_phdr(look, &name))
        return 0;
    buf_printf(why, "another build of the agent is loaded in this VM, which keeps it: %s", name);
    return -EEXIST;
}
