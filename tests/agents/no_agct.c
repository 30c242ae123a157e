/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: hides AsyncGetCallTrace, which VMs other than HotSpot do not have. */
#include <dlfcn.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);
    if (!real)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real && strcmp(name, "AsyncGetCallTrace") != 0 ? real(handle, name) : NULL;
}
