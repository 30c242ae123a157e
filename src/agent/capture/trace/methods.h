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
    uint64_t rules;         /* those of the patterns that it matches, as a set (rules.h) */
    unsigned patterns;      /* which patterns: they are counted as they change */
};

/*
 * Zeroed is empty and valid. Not for two threads at once. Methods are kept for good: compiled code
 * may still name them.
 */
struct traced_methods {
    struct arena arena;
    VEC(struct traced_method) methods;
    struct map index; /* hash of the text -> number */
};

/*
 * True when one of the patterns (separated by ':') matches: package.Class.method with `*`, a prefix
 * that ends at a '.' or '$', or the same with a descriptor behind it, "pkg.Class.method(I)V".
 */
bool trace_matches(const char *patterns, struct str class_name, struct str method,
                   struct str descriptor);
/* The same of the first pattern of a list. */
bool trace_matches_first(const char *pattern, struct str class_name, struct str method,
                         struct str descriptor);

/*
 * The patterns without descriptors, by which classes are chosen. The caller frees; NULL: no memory.
 */
char *trace_class_patterns(const char *patterns);

/*
 * Whether one of the patterns is an annotation, "@pkg.Annotation"; and whether the first pattern of
 * a list is such a one that is on the method or its class.
 */
bool trace_has_annotations(const char *patterns);
bool trace_annotated(const char *pattern, const struct class_file *c, const struct class_method *m);

/*
 * Whether one of the methods is of the first pattern of a list; of annotations and types it is not
 * known which: any method is.
 */
bool trace_any_matches(const struct traced_methods *t, const char *pattern);

/* The number of a method, added when it is new; -ENOMEM. */
int trace_method_add(struct traced_methods *t, struct str class_name, struct str name,
                     struct str descriptor, bool has_this);

/*
 * Inserts the probes of method `number`, which record what the conditions of a set of rules reach
 * by paths. 1, or an error of the edit.
 */
int trace_insert(struct edit *e, int number, bool has_this, const struct trace_rules *rules,
                 uint64_t set);
