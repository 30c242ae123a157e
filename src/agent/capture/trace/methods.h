/* SPDX-License-Identifier: Apache-2.0 */
/* Which methods are traced, and the probes in them. Knows no JVM. */
#pragma once

#include "agent/capture/trace/rules.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "classfile/rewrite.h"

struct traced_method {
    const char *text;       /* "pkg.Class.name(IJ)V" */
    const char *descriptor; /* "(IJ)V" */
    bool has_this;          /* the first value of a record is `this` */
    uint64_t rules;         /* rules of the patterns that the method matches, as a set (rules.h) */
    unsigned patterns;      /* version of the patterns for which this is true */
};

/*
 * An empty table is all zeros. Not thread-safe. Methods are never removed, because compiled code
 * may still refer to them.
 */
struct traced_methods {
    struct arena arena;
    VEC(struct traced_method) methods;
    struct map index; /* hash of the text -> number */
};

/*
 * trace_has_annotations returns whether one of the patterns is an annotation, "@pkg.Annotation";
 * trace_annotated, whether the first pattern of a list is an annotation that is present on method m
 * or its class c.
 */
bool trace_has_annotations(const char *patterns);
bool trace_annotated(const char *pattern, const struct class_file *c, const struct class_method *m);

/*
 * Returns the type in a pattern "implements pkg.Type", the first of a list; NULL: it is another
 * one.
 */
const char *trace_pattern_type(const char *pattern);
/* Returns whether the first pattern of a list is neither an annotation nor a type. */
bool trace_is_named(const char *pattern);
/* Returns whether a method matches the first pattern of a list, which is named. */
bool trace_method_matches(const struct traced_method *m, const char *pattern);

/*
 * Returns whether one of the methods that are traced by this version of the patterns matches the
 * first pattern of a list. For annotations and types this is unknown, and any method matches.
 */
bool trace_any_matches(const struct traced_methods *t, const char *pattern, unsigned patterns);

/*
 * Returns the number of a method, which is added if it is new, or -ENOMEM. has_this: it is not
 * static, so the first value of its records is `this`.
 */
int trace_method_add(struct traced_methods *t, struct str class_name, struct str name,
                     struct str descriptor, bool has_this);

/*
 * Inserts the probes of method `number`, which record the values of the paths in the conditions of
 * a set of rules. Returns 1, or an error of the edit.
 */
int trace_insert(struct edit *e, int number, bool has_this, const struct trace_rules *rules,
                 uint64_t set);
