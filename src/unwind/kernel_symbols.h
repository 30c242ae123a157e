/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel functions from /proc/kallsyms, which shows addresses only to privileged readers
 * (kernel.kptr_restrict). Reading it takes tens of milliseconds and a few megabytes, so it is read
 * when the first name is requested.
 */
#pragma once

#include "base/macro.h"

#include <stdint.h>

struct kernel_symbols;

/*
 * Reads the kernel's symbols. Returns NULL when out of memory. When the addresses are hidden, no
 * name is found.
 */
struct kernel_symbols *kernel_symbols_new(void);
/*
 * Returns the name of the last symbol at or below an address, which is valid as long as the table;
 * NULL when no symbol is.
 */
const char *kernel_symbols_find(const struct kernel_symbols *s, uint64_t address);
