/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of native functions, from the ELF symbol tables of the files that are mapped (.symtab, else
 * .dynsym; a separate debug file under /usr/lib/debug when there is one). A file is read when the
 * first address in it is asked for, which may take tens of milliseconds: from a plain native
 * thread, never from one that the VM's safepoints wait for, never from a handler.
 */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

struct symbols;

struct symbol_place {
    const char *library; /* the file's name without its folder; "" when the address is in none */
    /* NULL when no symbol covers the address. Both live as long as the table */
    const char *name;
    uint64_t offset; /* from the symbol's start, or from the library's */
};

struct symbols *symbols_new(void);
void symbols_free(struct symbols *s);
/*
 * The readable form of a C++ symbol of the plain kind ("_ZN9JavaCalls4callEv" is JavaCalls::call):
 * nested names, constructors and a compiler's clones, without arguments. A name of another kind is
 * copied as it is. Returns ret.
 */
const char *symbols_plain_name(const char *symbol, char *ret, size_t size);
/* Where an address lies. 0, or -ENOMEM. One thread at a time. */
int symbols_find(struct symbols *s, uint64_t address, struct symbol_place *ret) must_check;
