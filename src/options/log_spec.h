/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses log=: "pkg.Class:123 total {total} of {this.items}", several separated by ';', or by ','
 * where a place follows whose class has a package or begins with a capital letter. A place is a
 * class or a source file (Cart.java, index.jsp) and a line. Braces contain a local, a field
 * (this.name or name), fields of these and a length (order.items.length), a static field
 * (pkg.Class.name), thread, or a slot with its type (#3:I) where the class has no table of locals.
 * Knows no JVM.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

enum { LOG_PARTS_MAX = 32, LOG_NAME_MAX = 256 };

struct log_part {
    enum { LOG_TEXT, LOG_NAME, LOG_THIS, LOG_FIELD, LOG_SLOT } kind;

    char *text;    /* of LOG_TEXT, the text; otherwise what is in the braces */
    unsigned slot; /* of LOG_SLOT */
    char type;     /* of LOG_SLOT: a descriptor's character, L for references */
};

struct log_spec {
    struct log_spec *next;
    char *place; /* package.Class or a file name */
    /*
     * Where the place may also be package.Class.method, as results have it: the class. NULL: a file
     * name, or no dot.
     */
    char *class_of_method;
    bool is_file;
    unsigned line;
    struct log_part parts[LOG_PARTS_MAX];
    unsigned n_parts;
    /* number of places in the code, counted by the code that inserts the probes */
    _Atomic unsigned found;
    _Atomic unsigned hidden; /* number of classes with this line that the agent cannot change */
};

/*
 * Parses the value of log=. The caller frees *ret, a list. Returns 0; -EINVAL with a sentence in
 * why; -ENOMEM.
 */
int log_specs_parse(struct log_spec **ret, const char *text, struct buf *why) must_check;
void log_specs_free(struct log_spec *s);
