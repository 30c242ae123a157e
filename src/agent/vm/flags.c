/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/flags.h"

#include "agent/vm/image.h"
#include "agent/vm/vm.h"
#include "hotspot/layout.h"

bool vm_flag(const char *name)
{
    struct hotspot_layout layout;
    char why[200];
    return vm.hotspot && hotspot_layout_read(&vm_image, &layout, why, sizeof(why)) == 0 &&
           hotspot_flag(&layout, &vm_image, name);
}
