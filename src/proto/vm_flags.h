/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flags of a running VM, without asking it. They are read in its own memory, which has them
 * whatever set them: a program that creates the VM itself may set flags that no argument shows.
 * Where we may not read the memory, the VM's arguments say what they can.
 */
#pragma once

#include "hotspot/layout.h"
#include "proto/arguments.h"
#include "proto/vm_memory.h"

struct vm_flags {
    struct vm_memory memory;
    struct hotspot_layout layout;
    bool in_memory; /* the flags are read in the VM's memory */
    struct arguments arguments;
};

/*
 * Prepares to read the flags of a VM, from its arguments if its memory may not be read. vm->version
 * must be known (arguments_read).
 */
void vm_flags_open(struct vm_flags *ret, const struct vm *vm);
void vm_flags_close(struct vm_flags *f);

/*
 * Returns the value of a flag, 1 or 0, or -1 if the VM has no such flag or, where its memory may
 * not be read, no argument names it.
 */
int vm_flags_switch(struct vm_flags *f, const char *name);
/*
 * Returns the flag by which the VM makes an archive of its classes ("AOTCacheOutput"), or NULL
 * (hotspot_archive_flag).
 */
const char *vm_flags_archive(struct vm_flags *f);
