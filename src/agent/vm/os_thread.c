/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/os_thread.h"

#include "agent/vm/image.h"
#include "hotspot/tables.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Offsets in the VM's structures; -1: unknown. */
static struct {
    int64_t os_thread, id;
} layout = {-1, -1};

static int match(void *context, const struct table_entry *e)
{
    if (e->kind != TABLE_FIELD)
        return 0;
    if (strcmp(e->name, "_osthread") == 0 &&
        (strcmp(e->type, "Thread") == 0 || strcmp(e->type, "JavaThread") == 0))
        layout.os_thread = e->value;
    if (strcmp(e->name, "_thread_id") == 0 && strcmp(e->type, "OSThread") == 0)
        layout.id = e->value;
    return layout.os_thread >= 0 && layout.id >= 0;
}

static void find_layout(void)
{
    if (vm.hotspot && hotspot_tables_visit(&vm_image, match, NULL) < 0)
        layout.os_thread = layout.id = -1;
}

pid_t os_thread_id(JNIEnv *jni, jthread thread)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t os_thread = 0;
    uint32_t id = 0;
    char path[64];
    pthread_once(&once, find_layout);
    uint64_t vm_thread = vm_thread_address(jni, thread);
    if (!vm_thread || layout.os_thread < 0 || layout.id < 0 ||
        image_u64(&vm_image, vm_thread + (uint64_t)layout.os_thread, &os_thread) < 0 ||
        !os_thread || image_u32(&vm_image, os_thread + (uint64_t)layout.id, &id) < 0)
        return 0;
    /* The thread may have ended meanwhile, so the number that was read may be anything. */
    snprintf(path, sizeof(path), "/proc/self/task/%u", id);
    return id <= INT32_MAX && access(path, F_OK) == 0 ? (pid_t)id : 0;
}
