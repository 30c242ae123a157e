/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables in which a HotSpot libjvm describes its own structures for the serviceability agent:
 * gHotSpotVMStructs (fields), gHotSpotVMTypes (sizes), gHotSpotVMIntConstants and
 * gHotSpotVMLongConstants. They also describe the layout of their own entries, so reading them does
 * not depend on a version.
 */
#pragma once

#include "hotspot/image.h"

#include <stdbool.h>

enum table_kind { TABLE_FIELD, TABLE_STATIC, TABLE_TYPE, TABLE_CONSTANT };

struct table_entry {
    enum table_kind kind;
    /* for a field: its structure; for a type or constant: its name. Valid during the call */
    const char *type;
    const char *name; /* the name of a field; otherwise "" */
    /* the offset, the address of the static field, the size in bytes, or the constant */
    int64_t value;
};

/*
 * Visits every entry until a visit returns a value other than 0. Returns that value, 0, -ENOENT (no
 * HotSpot with tables), -EFAULT, or -EBADMSG (the tables are malformed).
 */
int hotspot_tables_visit(const struct hotspot_image *image,
                         int (*visit)(void *context, const struct table_entry *entry),
                         void *context) must_check;
