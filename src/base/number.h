/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as conditions compare them: whole ones exactly, whatever their size, and a float or a
 * double with the literal rounded to its type, so that a number that a trace shows equals itself.
 */
#pragma once

#include "base/logic.h"

#include <stdbool.h>
#include <stdint.h>

/* A number of the program. */
struct number {
    enum number_kind { NUMBER_WHOLE, NUMBER_DOUBLE, NUMBER_FLOAT } kind;

    int64_t whole; /* of NUMBER_WHOLE */
    double real;   /* of the others */
};

struct number number_whole(int64_t n);
/*
 * Returns the number of a text such as that of a BigInteger; a double if the number is not whole or
 * does not fit in 64 bits.
 */
struct number number_of_text(const char *text);

/* A number as it was written. */
struct literal {
    double real, single; /* rounded to a double, and to a float */
    /*
     * For comparisons with whole numbers: its floor, and whether it is greater than its floor.
     * beyond: -1 or 1 if the floor does not fit in 64 bits.
     */
    int64_t floor;
    bool has_fraction;
    int beyond;
};

struct literal number_literal(int64_t n);
/* Reads the whole text as a number. Returns false when the text is not a number. */
bool number_parse(struct literal *ret, const char *text) must_check;

/* Returns whether `n op with` holds; for LOGIC_IS, whether n is not 0. */
bool number_compare(enum logic_op op, const struct number *n, const struct literal *with);
/*
 * Converts a comparison with a literal to one of whole numbers: returns the whole limit and changes
 * *op. For LOGIC_IS the limit is 0. A comparison that no whole number passes becomes < INT64_MIN,
 * and one that all pass becomes >= INT64_MIN.
 */
int64_t number_limit(const struct literal *l, enum logic_op *op);
/* Returns whether no whole number from low to high passes the comparison. */
bool number_excludes(enum logic_op op, const struct literal *l, int64_t low, int64_t high);

enum { NUMBER_NEAR = 9 };

/*
 * Finds the numbers at which the truth of a comparison with the literal differs: the literal itself
 * and those next to it. whole: only whole numbers. Returns how many there are.
 */
unsigned number_near(const struct literal *l, bool whole, struct number ret[NUMBER_NEAR]);
