/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a class file in which names are others: one probe class, compiled once, fits every VM. */
#pragma once

#include "base/buf.h"

struct class_renaming {
    const char *from, *to; /* whole CONSTANT_Utf8 strings: class names, descriptors, member names */
};

/* Appends the copy to out. `renamings` ends with a row whose `from` is NULL. -EBADMSG, or an error of the buf. */
int class_rename(const void *bytes, size_t len, const struct class_renaming *renamings, struct buf *out) must_check;
