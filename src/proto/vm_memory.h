/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a VM, read from outside with the right that ptrace needs. The VM is not stopped.
 */
#pragma once

#include "hotspot/image.h"
#include "proto/vm.h"

struct vm_page;

struct vm_memory {
    int fd;
    uint64_t base; /* of libjvm.so */
    uint64_t hash, symbols, strings;
    struct vm_page *pages; /* what was read last */
};

#define VM_MEMORY ((struct vm_memory){.fd = -1})

/*
 * Opens the memory and finds libjvm's symbols. Returns 0, -EACCES or -EPERM (we may not read it),
 * -ENOENT (it has no libjvm.so whose symbols can be found) or another negative errno.
 */
int vm_memory_open(struct vm_memory *ret, const struct vm *vm) must_check;
void vm_memory_close(struct vm_memory *m);
/*
 * Returns the memory as the source of HotSpot's structures. Valid while m is open and does not
 * move.
 */
struct hotspot_image vm_memory_image(struct vm_memory *m);
