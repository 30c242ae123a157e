/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/vm_flags.h"

void vm_flags_open(struct vm_flags *ret, const struct vm *vm)
{
    *ret = (struct vm_flags){.memory = VM_MEMORY};
    if (vm_memory_open(&ret->memory, vm) == 0) {
        struct hotspot_image image = vm_memory_image(&ret->memory);
        ret->in_memory = hotspot_layout_read_flags(&image, &ret->layout) == 0;
    }
    arguments_read(&ret->arguments, vm);
}

void vm_flags_close(struct vm_flags *f)
{
    vm_memory_close(&f->memory);
    arguments_release(&f->arguments);
}

int vm_flags_switch(struct vm_flags *f, const char *name)
{
    uint8_t value;
    if (!f->in_memory)
        return arguments_switch(&f->arguments, name);
    struct hotspot_image image = vm_memory_image(&f->memory);
    uint64_t at = hotspot_flag_address(&f->layout, &image, name);
    return at && image.read(image.context, at, &value, 1) == 0 ? value != 0 : -1;
}

const char *vm_flags_archive(struct vm_flags *f)
{
    struct hotspot_image image = vm_memory_image(&f->memory);
    if (f->in_memory)
        return hotspot_archive_flag(&f->layout, &image);
    for (const char *const *n = hotspot_archive_texts; *n; n++)
        if (arguments_have_value(&f->arguments, *n))
            return *n;
    for (const char *const *n = hotspot_archive_switches; *n; n++)
        if (arguments_switch(&f->arguments, *n) == 1)
            return *n;
    return NULL;
}
