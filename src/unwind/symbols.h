/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of native functions, from the ELF symbol tables of the mapped files (.symtab, else .dynsym;
 * a separate debug file below /usr/lib/debug when there is one). A file is read when the first
 * address in it is requested, which may take some milliseconds. Call this from an ordinary
 * native thread, never from one that the VM's safepoints wait for, and never from a signal handler.
 */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

struct symbols;

struct symbol_place {
    const char *library; /* the file's name without its folder; "" when the address is in no file */
    /* NULL when no symbol covers the address. Both are valid as long as the table */
    const char *name;
    uint64_t offset; /* from the symbol's start, or from the library's */
};

/*
 * Creates a table of the symbols of this process. A library is read when an address in it is looked
 * up for the first time. Returns NULL when out of memory. The agent never frees its table; tests
 * do.
 */
struct symbols *symbols_new(void);
void symbols_free(struct symbols *s);
/*
 * Writes the readable form of a simple C++ symbol ("_ZN9JavaCalls4callEv" is JavaCalls::call)
 * without its arguments: nested names, constructors, and clones that a compiler made. Other names
 * are copied unchanged. Returns ret.
 */
const char *symbols_plain_name(const char *symbol, char *ret, size_t size);
/*
 * Finds the library and the function that contain an address. Returns 0 or -ENOMEM. Only one thread
 * at a time may call it.
 */
int symbols_find(struct symbols *s, uint64_t address, struct symbol_place *ret) must_check;
