/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what compilers store for debuggers: tables of locals, fields, source maps (JSR-45). All of
 * it is treated as untrusted. This code does not depend on a JVM.
 */
#pragma once

#include "base/cursor.h"
#include "base/nearest.h"
#include "classfile/rewrite.h"

/*
 * Returns the contents of a named attribute in the table that begins (with attributes_count) at
 * `at`; the cursor has failed when there is none.
 */
struct cursor class_attribute(const struct class_file *c, uint32_t at, const char *name);

struct class_local {
    struct str name, descriptor;
    uint16_t slot;
};

/*
 * Finds the local of this name that is live at pc. Returns 0, -ENODATA when the method has no table
 * of locals, or -ENOENT when the table has none of this name at pc.
 */
int debug_find_local(const struct edit *e, uint32_t pc, const char *name, struct class_local *ret);

/* Finds a field that the class itself declares. Returns false when there is none. */
bool class_find_field(const struct class_file *c, const char *name, struct str *ret_descriptor,
                      uint16_t *ret_access);

/*
 * Compares the misspelt name n->word with the names of the class's fields that the method can read
 * without another object and, if `locals` is true, of the locals that are live at pc. The result is
 * in n->best.
 */
void debug_nearest_name(const struct edit *e, uint32_t pc, bool locals, struct nearest *n);

/*
 * Returns whether a class or method has an annotation for whose type ("Ljavax/inject/Inject;")
 * is_wanted returns true; `at` is its table of attributes.
 */
bool class_annotated(const struct class_file *c, uint32_t at,
                     bool (*is_wanted)(const void *context, struct str type), const void *context);

/*
 * Finds the lines in the class file's own numbering that stand for a line of a source file,
 * according to the class's source map. Stores up to max of them, in the map's order, and returns
 * their number. The file may be given by its name or by the end of its path.
 */
int debug_smap_lines(struct str smap, const char *file, unsigned line, unsigned *ret, int max);
