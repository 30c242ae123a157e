/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the kernel's functions, from /proc/kallsyms, which shows their addresses to those who
 * may see them (kernel.kptr_restrict). Reading it takes some tens of milliseconds and a few
 * megabytes: when the first name is asked for.
 */
#pragma once

#include "base/macro.h"

#include <stdint.h>

struct kernel_symbols;

/* NULL: out of memory. Where the addresses are hidden no name is found. */
struct kernel_symbols *kernel_symbols_new(void);
void kernel_symbols_free(struct kernel_symbols *s);
/* The function that holds an address, NULL when it is not known. Lives as long as the table. */
const char *kernel_symbols_find(const struct kernel_symbols *s, uint64_t address);
