/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct number number_whole(int64_t n)
{
    return (struct number){.kind = NUMBER_WHOLE, .whole = n};
}

struct literal number_literal(int64_t n)
{
    return (struct literal){.real = (double)n, .single = (double)(float)n, .floor = n};
}

/* Computes the floor of a double, which is exact. */
static void set_floor(struct literal *l)
{
    if (!(l->real >= -0x1p63 && l->real < 0x1p63)) {
        l->beyond = l->real < 0 ? -1 : 1;
        return;
    }
    l->floor = (int64_t)l->real;
    l->floor -= (double)l->floor > l->real;
    l->has_fraction = (double)l->floor != l->real;
}

/*
 * Parses digits, with or without a fraction, or in hexadecimal without one. A number that a double
 * would round is taken from the text.
 */
static bool parse_digits(struct literal *l, const char *text)
{
    const char *digits = text + strspn(text, "+-");
    bool hex = digits[0] == '0' && (digits[1] | 0x20) == 'x';
    digits += hex ? 2 : 0;
    const char *allowed = hex ? "0123456789abcdefABCDEF" : "0123456789";
    size_t n = strspn(digits, allowed);
    size_t more = 0;
    if (digits > text + (hex ? 3 : 1) || n == 0)
        return false;
    if (digits[n] == '.' && !hex)
        more = 1 + strspn(digits + n + 1, "0123456789");
    if (digits[n + more])
        return false;
    errno = 0;
    l->floor = strtoll(text, NULL, hex ? 16 : 10);
    if (errno)
        l->beyond = *text == '-' ? -1 : 1;
    l->has_fraction = more > 1 && strspn(digits + n + 1, "0") != more - 1;
    if (l->has_fraction && *text == '-' && l->floor == INT64_MIN)
        l->beyond = -1;
    else if (l->has_fraction && *text == '-')
        l->floor--;
    return true;
}

bool number_parse(struct literal *ret, const char *text)
{
    char *end;
    *ret = (struct literal){.real = strtod(text, &end)};
    if (*end || end == text)
        return false;
    ret->single = (double)strtof(text, NULL);
    /* A float has no such values, and no comparison may take the number for zero or infinity. */
    if (isinf(ret->single) || ret->single == 0)
        ret->single = ret->real;
    if (!parse_digits(ret, text)) {
        ret->has_fraction = false;
        ret->floor = 0;
        set_floor(ret);
    }
    return true;
}

struct number number_of_text(const char *text)
{
    struct literal l;
    if (!number_parse(&l, text))
        return (struct number){.kind = NUMBER_DOUBLE, .real = strtod(text, NULL)};
    if (!l.beyond && !l.has_fraction)
        return number_whole(l.floor);
    return (struct number){.kind = NUMBER_DOUBLE, .real = l.real};
}

int64_t number_limit(const struct literal *l, enum logic_op *op)
{
    bool less = *op == LOGIC_LT || *op == LOGIC_LE, greater = *op == LOGIC_GT || *op == LOGIC_GE;
    if (*op == LOGIC_IS)
        return 0;
    if (isnan(l->real) || l->beyond || (l->has_fraction && !less && !greater)) {
        bool all = *op == LOGIC_NE ||
                   (!isnan(l->real) && ((less && l->beyond > 0) || (greater && l->beyond < 0)));
        *op = all ? LOGIC_GE : LOGIC_LT;
        return INT64_MIN;
    }
    if (l->has_fraction)
        *op = less ? LOGIC_LE : LOGIC_GT;
    return l->floor;
}

bool number_compare(enum logic_op op, const struct number *n, const struct literal *with)
{
    if (n->kind != NUMBER_WHOLE)
        return logic_compare(op, n->real, n->kind == NUMBER_FLOAT ? with->single : with->real);
    int64_t a = n->whole, b = number_limit(with, &op);
    return op == LOGIC_IS ? a != 0 : logic_passes(op, a<b, a == b, a> b);
}

bool number_excludes(enum logic_op op, const struct literal *l, int64_t low, int64_t high)
{
    int64_t limit = number_limit(l, &op);
    switch (op) {
    case LOGIC_EQ:
        return limit < low || limit > high;
    case LOGIC_NE:
        return low == high && limit == low;
    case LOGIC_LT:
        return low >= limit;
    case LOGIC_LE:
        return low > limit;
    case LOGIC_GT:
        return high <= limit;
    case LOGIC_GE:
        return high < limit;
    default:
        return low == 0 && high == 0;
    }
}

/* Returns the float next to a finite one. The agent has no libm, so it cannot use nextafterf. */
static double next_float(double of, bool up)
{
    float f = (float)of;
    uint32_t bits;
    if (f == 0)
        return up ? 0x1p-149 : -0x1p-149;
    memcpy(&bits, &f, sizeof(bits));
    bits += (f > 0) == up ? 1 : UINT32_MAX;
    memcpy(&f, &bits, sizeof(f));
    return (double)f;
}

unsigned number_near(const struct literal *l, bool whole, struct number ret[NUMBER_NEAR])
{
    unsigned n = 0;
    ret[n++] = number_whole(l->floor);
    if (l->floor > INT64_MIN)
        ret[n++] = number_whole(l->floor - 1);
    if (l->floor < INT64_MAX)
        ret[n++] = number_whole(l->floor + 1);
    double near[LOGIC_NEAR];
    logic_near(l->real, false, near);
    for (unsigned i = 0; !whole && i < LOGIC_NEAR; i++)
        ret[n++] = (struct number){.kind = NUMBER_DOUBLE, .real = near[i]};
    double single = (double)(float)l->single;
    for (int i = -1; !whole && i < 2; i++)
        ret[n++] =
            (struct number){.kind = NUMBER_FLOAT, .real = i ? next_float(single, i > 0) : single};
    return n;
}
