/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables in which a HotSpot libjvm describes its own structures to the serviceability agent:
 * gHotSpotVMStructs (fields), gHotSpotVMTypes (sizes), gHotSpotVMIntConstants and
 * gHotSpotVMLongConstants. They describe their own entries too, so that reading them needs no
 * knowledge of a version.
 */
#pragma once

#include "hotspot/image.h"

#include <stdbool.h>

enum table_kind { TABLE_FIELD, TABLE_STATIC, TABLE_TYPE, TABLE_CONSTANT };

struct table_entry {
    enum table_kind kind;
    /* of a field: the structure; of a type or constant: its name. Valid during the call */
    const char *type;
    const char *name; /* of a field; otherwise "" */
    int64_t value;    /* offset, address of the static, size in bytes, or the constant */
};

/*
 * Visits every entry. A visitor that answers other than 0 ends it with that. 0, -ENOENT (not a
 * HotSpot with tables), -EFAULT, -EBADMSG (the tables are not what they should be).
 */
int hotspot_tables_visit(const struct hotspot_image *image,
                         int (*visit)(void *context, const struct table_entry *entry),
                         void *context) must_check;
