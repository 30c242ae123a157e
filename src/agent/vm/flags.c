/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/flags.h"

#include "agent/vm/image.h"
#include "agent/vm/vm.h"
#include "base/macro.h"
#include "hotspot/layout.h"

#include <pthread.h>

/* Read once, because the VM's tables have thousands of entries. */
static struct hotspot_layout layout;
static bool known;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_layout(void)
{
    char why[200];
    known = vm.hotspot && hotspot_layout_read(&vm_image, &layout, why, sizeof(why)) == 0;
}

bool vm_flag(const char *name)
{
    pthread_once(&once, read_layout);
    return known && hotspot_flag(&layout, &vm_image, name);
}

const char *vm_archive_flag(void)
{
    static const char *const texts[] = {"AOTCacheOutput", "AOTConfiguration",
                                        "ArchiveClassesAtExit"};
    static const char *const switches[] = {"DumpSharedSpaces", "DynamicDumpSharedSpaces",
                                           "RecordDynamicDumpInfo"};
    pthread_once(&once, read_layout);
    for (size_t i = 0; known && i < ARRAY_SIZE(texts); i++)
        if (hotspot_flag_is_given(&layout, &vm_image, texts[i]))
            return texts[i];
    for (size_t i = 0; known && i < ARRAY_SIZE(switches); i++)
        if (hotspot_flag(&layout, &vm_image, switches[i]))
            return switches[i];
    return NULL;
}
