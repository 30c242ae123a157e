/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in the program where a probe writes values: logpoints and watched fields. A site is
 * created when its class is rewritten and is never freed, since compiled code may still refer to
 * it.
 */
#pragma once

#include "base/strpool.h"
#include "jfr/writer.h"
#include "options/log_spec.h"

#include <stdbool.h>
#include <stdint.h>

enum { SITES_MAX = 1 << 14 };

enum log_site_kind { SITE_LOG, SITE_READ, SITE_WRITE };

struct log_site {
    enum log_site_kind kind;
    const char *place; /* pkg.Class.method:12 */
    /*
     * of a log: literals and values alternating, see log_code.h; of a watched field:
     * pkg.Class.name
     */
    const char *text;
    const char *types; /* types of the values in a record, one character each */
    /* of a watched field: the class that the instruction names, java/lang/String */
    char *owner;
    char *name, *descriptor;
};

/*
 * Returns the number of the site of the same kind, place and pc, or of a new one, or -ENOBUFS or
 * -ENOMEM. The strings are copied.
 */
int log_site_add(const struct log_site *s, uint32_t pc) must_check;
/* Returns a place by its number, NULL when there is none. The address remains valid. */
const struct log_site *log_site_at(unsigned number);
/* Writes a place such as "pkg.Class.method:12" into to[size]. */
void log_site_place(char *to, size_t size, struct str class_name, struct str method, unsigned line);
