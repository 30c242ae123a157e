/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of conditions: tests joined by && and ||, negated by !, grouped by parentheses. trace
 * --if and --on share this grammar and the way a wrong place is reported; each defines its own
 * tests.
 *
 * or: and { "||" and }
 *
 * and: not { "&&" not }
 *
 * not: "!" not | "(" or ")" | test
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

enum { LOGIC_NODES = 64 };

enum logic_kind { LOGIC_TEST, LOGIC_AND, LOGIC_OR, LOGIC_NOT };

struct logic {
    struct logic_node {
        enum logic_kind kind;
        int left, right;
        unsigned at; /* where it begins in the text */
    } nodes[LOGIC_NODES];

    int count, root;
};

struct logic_parser {
    struct logic *logic;
    const char *start, *at; /* the whole text, and the place that is read next */
    struct buf *why;
    int depth;
    /*
     * Reads the test at p->at, which belongs to node `number`. Returns 0, or what logic_fail
     * returns.
     */
    int (*test)(struct logic_parser *p, int number);
    void *context; /* for `test`, which may use it freely */
};

/*
 * Parses a whole text into an empty p->logic. Returns 0, or -EINVAL with a sentence in p->why that
 * shows the place.
 */
int logic_parse(struct logic_parser *p, const char *text) must_check;
/* Reports what is wrong at p->at. Returns -EINVAL. */
int logic_fail(struct logic_parser *p, const char *what);
void logic_skip_blanks(struct logic_parser *p);
/* Takes these characters, after blanks, if they are next. Returns whether they were. */
bool logic_take(struct logic_parser *p, const char *word);
/*
 * Takes a keyword, after blanks, if it is next and no letter, digit or underscore follows it.
 * Returns whether it was.
 */
bool logic_take_word(struct logic_parser *p, const char *word);

enum logic_op { LOGIC_IS, LOGIC_EQ, LOGIC_NE, LOGIC_LT, LOGIC_LE, LOGIC_GT, LOGIC_GE };

/* Takes a comparison. Returns LOGIC_IS when none is next. */
enum logic_op logic_take_op(struct logic_parser *p);
/*
 * Returns whether a comparison other than LOGIC_IS holds of two values, given how they are ordered;
 * none of the three is true if one of them is not a number.
 */
bool logic_passes(enum logic_op op, bool less, bool equal, bool greater);
/* Returns whether `a op b` holds; for LOGIC_IS, whether a is not 0. */
bool logic_compare(enum logic_op op, double a, double b);
/*
 * Takes the word up to a blank, a parenthesis or an operator into to[size]. Returns its length, or
 * 0, with nothing taken, when no word is next or it does not fit.
 */
size_t logic_take_value(struct logic_parser *p, char *to, size_t size);

enum { LOGIC_NEAR = 3 };

/*
 * Stores the numbers at which the truth of a comparison with a limit differs: the limit itself and
 * those next to it. whole: only whole numbers count.
 */
void logic_near(double limit, bool whole, double ret[LOGIC_NEAR]);

/* The truth value that is assumed for a test. */
enum logic_truth { LOGIC_OPEN, LOGIC_TRUE, LOGIC_FALSE };

struct logic_tests {
    /*
     * Returns whether all tests can have their truth values `of`, by the numbers of their nodes, at
     * the same time. It was possible before the value of the test `changed` was set.
     */
    bool (*possible)(const void *context, const enum logic_truth *of, int changed);
    /*
     * Returns whether a test refers to an event, so that it holds only for an instant. NULL: no
     * test does.
     */
    bool (*is_event)(const void *context, int number);
    const void *context;
};

/*
 * Refuses a condition that, or a part of which, never holds or always holds, and one that holds
 * while no event happens. Returns 0, or -EINVAL with a sentence in p->why that shows the place.
 */
int logic_check(struct logic_parser *p, const struct logic_tests *tests) must_check;

/* Returns whether the condition holds; the callback returns whether a test does. */
bool logic_holds(const struct logic *l, bool (*holds)(void *context, int number), void *context);
