/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in the program where a probe writes values: logpoints and watched fields. A site is made
 * when its class is rewritten and stays for good, since compiled code may still name it.
 */
#pragma once

#include "agent/capture/trace/log_spec.h"
#include "base/strpool.h"
#include "jfr/writer.h"

#include <stdbool.h>
#include <stdint.h>

enum { SITES_MAX = 1 << 14 };

enum log_site_kind { SITE_LOG, SITE_READ, SITE_WRITE };

struct log_site {
    enum log_site_kind kind;
    const char *place; /* pkg.Class.method:12 */
    /* of a log: literals and values in turn, see logpoints.c; of a watched field: pkg.Class.name */
    const char *text;
    const char *types; /* of the values in a record, one character each */
    /* of a watched field: the class that the instruction names, java/lang/String */
    char *owner;
    char *name, *descriptor;
};

/*
 * The site of the same kind, place and pc, or a new one: its number; -ENOBUFS, -ENOMEM. The strings
 * are copied.
 */
int log_site_add(const struct log_site *s, uint32_t pc) must_check;
/* NULL when there is none. The address stays. */
const struct log_site *log_site_at(unsigned number);
/* "pkg.Class.method:12" into to. */
void log_site_place(char *to, size_t size, struct str class_name, struct str method, unsigned line);
