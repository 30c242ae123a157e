/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coverage of a program: the methods with their lines and branch edges that ran or did not run,
 * from one recording or from several merged ones. A line ran when one of its starts ran; a branch
 * edge ran when any of the merged recordings or class loaders took it.
 *
 * Its functions begin with cover_.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"

struct cover_line {
    uint32_t line;
    /* the number of instructions at which the line begins, and how many of them ran */
    uint32_t starts, hit;
    uint32_t edges, taken;
};

struct cover_edge {
    uint32_t line, pc;
    uint32_t edge; /* COVER_FALL_THROUGH for the next instruction */
    bool hit;
};

#define COVER_FALL_THROUGH UINT32_MAX

struct cover_start {
    uint32_t line, nth; /* the nth start of the line in the method's table */
    bool hit;
};

struct cover_body {
    uint32_t class; /* index in classes */
    const char *name, *descriptor;
    VEC(struct cover_start) starts;
    VEC(struct cover_edge) edges;
};

struct cover_class {
    const char *name, *source; /* dotted; source may be NULL */
    VEC(uint32_t) bodies;
};

struct coverage {
    struct arena arena;
    struct strpool keys;
    VEC(struct cover_class) classes;
    VEC(struct cover_body) bodies;
    struct map class_index, body_index; /* numbers in keys -> indexes */
};

struct cover_sum {
    uint64_t classes, classes_hit, methods, methods_hit, lines, lines_hit, branches, branches_hit;
};

/*
 * Adds the contents of one event (doc/format.md, jvmscope.Coverage). Returns 0, -ENOMEM, or
 * -EBADMSG when the text has the wrong form, in which case nothing is added.
 */
int coverage_add(struct coverage *c, const char *class_name, const char *source, const char *method,
                 const char *descriptor, const char *lines, const char *branches) must_check;
/* Returns whether anything is known about a class, given its dotted name. */
bool coverage_has_class(const struct coverage *c, const char *name);
/* Orders classes by name and methods by their first line. */
void coverage_sort(struct coverage *c);
/*
 * Stores the lines of a class in ascending order, allocated by malloc. This and the functions below
 * return 0, -ENOMEM, or -EBADMSG if a line number exceeds 65535.
 */
int coverage_lines(const struct coverage *c, const struct cover_class *of, struct cover_line **ret,
                   size_t *ret_n) must_check;
/* Stores the lines of one method, as coverage_lines does for a class. */
int coverage_body_lines(const struct cover_body *b, struct cover_line **ret,
                        size_t *ret_n) must_check;
/*
 * Computes totals of a class, or of all classes when `of` is NULL. A method or class is hit when
 * one of its lines is. An error leaves *ret unchanged.
 */
int coverage_sum(const struct coverage *c, const struct cover_class *of,
                 struct cover_sum *ret) must_check;
/*
 * coverage_add_sum adds the totals of a class to *sum, coverage_add_body_sum those of a method,
 * without its class.
 */
int coverage_add_sum(const struct coverage *c, const struct cover_class *of,
                     struct cover_sum *sum) must_check;
int coverage_add_body_sum(const struct cover_body *b, struct cover_sum *sum) must_check;
/* Returns whether any line of the body ran. */
bool cover_body_hit(const struct cover_body *b);
/* Returns the lowest line number of the body; UINT32_MAX if the body has no lines. */
uint32_t cover_body_line(const struct cover_body *b);
void coverage_release(struct coverage *c);

/*
 * Appends the path of a class's source relative to a source folder: the folders of its package and
 * the SourceFile name or, if the class has none, the name of its outermost class with ".java".
 */
void cover_source_name(const struct cover_class *c, struct buf *b);
/*
 * Returns the path of a class's source, allocated by malloc: in the first folder of the list
 * `sources` (separated by commas) that has it, or only the part that cover_source_name appends when
 * `sources` is NULL. Returns NULL when `sources` has no such file that can be read, when the path
 * contains "/../", or when memory runs out.
 */
char *cover_source_path(const char *sources, const struct cover_class *c);
