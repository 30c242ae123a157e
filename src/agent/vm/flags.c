/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/flags.h"

#include "agent/vm/image.h"
#include "agent/vm/vm.h"
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
    pthread_once(&once, read_layout);
    return known ? hotspot_archive_flag(&layout, &vm_image) : NULL;
}
