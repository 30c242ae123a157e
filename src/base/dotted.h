/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of classes as the language writes them, with dots where the class file and the VM have
 * slashes: "java/lang/String" is "java.lang.String".
 */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"

#include <stdio.h>
#include <string.h>

static inline char dotted(char c)
{
    return c == '/' ? '.' : c;
}

static inline void dotted_in_place(char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        name[i] = dotted(name[i]);
}

/* Copies a name with dots into to[size], cut where it is too long. */
static inline void dotted_copy(char *to, size_t size, struct str name)
{
    snprintf(to, size, "%.*s", (int)name.len, name.data);
    dotted_in_place(to, strlen(to));
}

/* Replaces the dots of a name by slashes: "java.lang.String" becomes "java/lang/String". */
static inline void dotted_undo(char *name)
{
    for (; *name; name++)
        *name = *name == '.' ? '/' : *name;
}

/* Appends a name with dots. */
static inline void dotted_append(struct buf *b, const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf_u8(b, (uint8_t)dotted(name[i]));
}
