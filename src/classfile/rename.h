/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a class file and replaces names in it, so that one probe class, compiled once, fits every
 * VM.
 */
#pragma once

#include "base/buf.h"

struct class_renaming {
    /* complete CONSTANT_Utf8 strings: class names, descriptors, member names */
    const char *from, *to;
};

/*
 * Appends the copy to out. `renamings` ends with a row whose `from` is NULL. Returns 0, -EBADMSG,
 * or an error of the buf.
 */
int class_rename(const void *bytes, size_t len, const struct class_renaming *renamings,
                 struct buf *out) must_check;
