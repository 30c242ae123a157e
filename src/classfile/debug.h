/* SPDX-License-Identifier: Apache-2.0 */
/* What compilers leave for debuggers: tables of locals, fields, source maps (JSR-45). Nothing here trusts them. Knows no JVM.
 */
#pragma once

#include "base/cursor.h"
#include "classfile/rewrite.h"

/* Contents of an attribute by name, of the table (attributes_count first) at `at`; failed when there is none. */
struct cursor class_attribute(const struct class_file *c, uint32_t at, const char *name);

struct class_local {
    struct str name, descriptor;
    uint16_t slot;
};

/* The local of a name that is live at pc. -ENODATA: no table of locals; -ENOENT: none of this name there. */
int edit_find_local(const struct edit *e, uint32_t pc, const char *name, struct class_local *ret);

/* A field that the class itself declares. False when there is none. */
bool class_find_field(const struct class_file *c, const char *name, struct str *ret_descriptor, uint16_t *ret_access);

/* Whether an annotation of a type ("Ljavax/inject/Inject;") is among the attributes in the table at `at`, of a class or a
 * method. */
bool class_annotated(const struct class_file *c, uint32_t at, const char *type);

/*
 * The lines of the class file's own numbering that stand for a line of a source file, by the class's source map: up to max,
 * ascending as the map has them; answers how many. The file is meant by its name or the end of its path.
 */
int smap_lines(struct str smap, const char *file, unsigned line, unsigned *ret, int max);
