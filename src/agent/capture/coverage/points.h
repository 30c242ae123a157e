/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The points at which coverage is counted: line starts and branch edges of methods. Knows no JVM. Numbers are given once per
 * method body: the same bytes in a class of the same name (loaded again, by another loader, transformed again) are the same
 * points.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "classfile/rewrite.h"

#include <stdint.h>

struct cover_point {
    uint32_t line; /* 0: not known */
    uint32_t pc;   /* of the line's start, or of the branch */
    uint32_t at;   /* of a line start: the pc before which its probe is put */
    uint32_t edge; /* LINE_START; else the edge, FALL_THROUGH for the one to the next instruction */
    uint32_t
        probe; /* number, among the method's points, of the one whose probe tells of this one: its own, or passed with it */
};

#define LINE_START   UINT32_MAX
#define FALL_THROUGH (UINT32_MAX - 1)

struct cover_method {
    const char *class_name; /* java/lang/String */
    const char *source;     /* NULL: not known */
    const char *name, *descriptor;
    const struct cover_point *points;
    uint32_t first, count; /* numbers first .. first + count - 1 */
};

/* Zeroed is empty and valid. Not for two threads at once. */
struct cover_table {
    struct arena arena;
    VEC(struct cover_method *) methods;
    struct map index; /* hash of class, method and code -> number in methods */
    uint32_t points;
    VEC(struct cover_point) scratch;
    VEC(uint8_t) ways;    /* by pc: how it is come to */
    VEC(uint32_t) starts; /* by pc: number of the line start there, plus 1 */
};

/*
 * The points of a method being edited, found or added. NULL: nothing to count here (no line numbers, compiler-made), memory is
 * out or `limit` points would be passed (*ret_error is -ENOMEM or -ENOBUFS then, else 0).
 */
const struct cover_method *cover_add(struct cover_table *t, struct str class_name, struct str source, const struct edit *e,
                                     uint32_t limit, int *ret_error);
/* The first edge of a switch or branch that leads to the same place: edges of one target are one point. */
unsigned cover_same_edge(const struct edit *e, uint32_t pc, unsigned edge);
void cover_release(struct cover_table *t);
