/* SPDX-License-Identifier: Apache-2.0 */
#include "base/logic.h"

#include "base/macro.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

/*
 * STEPS_MAX: limit of the search for conditions that never hold; a condition that takes more steps
 * is accepted.
 */
enum { NESTING_MAX = 32, STEPS_MAX = 2048 };

int logic_fail(struct logic_parser *p, const char *what)
{
    if (*p->at)
        buf_printf(p->why, "condition: %s at \"%.20s\" (character %zu)", what, p->at,
                   (size_t)(p->at - p->start) + 1);
    else
        buf_printf(p->why, "condition: %s at its end", what);
    return -EINVAL;
}

void logic_skip_blanks(struct logic_parser *p)
{
    p->at += strspn(p->at, " \t");
}

bool logic_take(struct logic_parser *p, const char *word)
{
    logic_skip_blanks(p);
    size_t n = strlen(word);
    if (strncmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

bool logic_take_word(struct logic_parser *p, const char *word)
{
    const char *before = p->at;
    if (logic_take(p, word) && !((*p->at | 0x20) >= 'a' && (*p->at | 0x20) <= 'z') &&
        !(*p->at >= '0' && *p->at <= '9') && *p->at != '_')
        return true;
    p->at = before;
    return false;
}

enum logic_op logic_take_op(struct logic_parser *p)
{
    /* Operators of two characters come first. */
    static const struct {
        const char *text;
        enum logic_op op;
    } ops[] = {{"==", LOGIC_EQ}, {"!=", LOGIC_NE}, {"<=", LOGIC_LE},
               {">=", LOGIC_GE}, {"<", LOGIC_LT},  {">", LOGIC_GT}};

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        if (logic_take(p, ops[i].text))
            return ops[i].op;
    return LOGIC_IS;
}

bool logic_passes(enum logic_op op, bool less, bool equal, bool greater)
{
    switch (op) {
    case LOGIC_EQ:
        return equal;
    case LOGIC_NE:
        return !equal;
    case LOGIC_LT:
        return less;
    case LOGIC_LE:
        return less || equal;
    case LOGIC_GT:
        return greater;
    default:
        return greater || equal;
    }
}

bool logic_compare(enum logic_op op, double a, double b)
{
    return op == LOGIC_IS ? a != 0 : logic_passes(op, a<b, a == b, a> b);
}

size_t logic_take_value(struct logic_parser *p, char *to, size_t size)
{
    logic_skip_blanks(p);
    size_t n = strcspn(p->at, " \t()&|=<>!");
    if (n == 0 || n >= size)
        return 0;
    memcpy(to, p->at, n);
    to[n] = 0;
    p->at += n;
    return n;
}

static int add(struct logic_parser *p, struct logic_node node)
{
    if (p->logic->count == LOGIC_NODES)
        return logic_fail(p, "more than 64 terms");
    p->logic->nodes[p->logic->count] = node;
    return p->logic->count++;
}

static int parse_test(struct logic_parser *p)
{
    int number = p->logic->count;
    if (number == LOGIC_NODES)
        return logic_fail(p, "more than 64 terms");
    logic_skip_blanks(p);
    unsigned at = (unsigned)(p->at - p->start);
    int r = p->test(p, number);
    return r < 0 ? r : add(p, (struct logic_node){.kind = LOGIC_TEST, .at = at});
}

static int parse_or(struct logic_parser *p);

static int parse_not(struct logic_parser *p)
{
    if (++p->depth > NESTING_MAX)
        return logic_fail(p, "nested too deep");
    int r;
    logic_skip_blanks(p);
    unsigned start = (unsigned)(p->at - p->start);
    if (p->at[0] == '!' && p->at[1] != '=') {
        p->at++;
        r = parse_not(p);
        r = r < 0 ? r : add(p, (struct logic_node){.kind = LOGIC_NOT, .left = r, .at = start});
    } else if (logic_take(p, "(")) {
        r = parse_or(p);
        if (r >= 0 && !logic_take(p, ")"))
            r = logic_fail(p, ") is missing");
    } else {
        r = parse_test(p);
    }
    p->depth--;
    return r;
}

static int parse_chain(struct logic_parser *p, enum logic_kind kind, const char *word,
                       int (*inner)(struct logic_parser *p))
{
    logic_skip_blanks(p);
    unsigned start = (unsigned)(p->at - p->start);
    int left = inner(p);
    while (left >= 0 && logic_take(p, word)) {
        int right = inner(p);
        left = right < 0 ? right : add(p, (struct logic_node){kind, left, right, start});
    }
    return left;
}

static int parse_and(struct logic_parser *p)
{
    return parse_chain(p, LOGIC_AND, "&&", parse_not);
}

static int parse_or(struct logic_parser *p)
{
    return parse_chain(p, LOGIC_OR, "||", parse_and);
}

int logic_parse(struct logic_parser *p, const char *text)
{
    p->start = p->at = text;
    p->depth = 0;
    int root = parse_or(p);
    logic_skip_blanks(p);
    if (root >= 0 && *p->at)
        root = logic_fail(p, *p->at == '=' ? "equal is written ==:" : "not understood");
    if (root < 0)
        return root;
    p->logic->root = root;
    return 0;
}

/* ---- what never holds, and what always does ---- */

/* Returns the double next to a finite one. The agent has no libm, so it cannot use nextafter. */
static double next_to(double of, bool up)
{
    uint64_t bits;
    if (of == 0)
        return up ? DBL_TRUE_MIN : -DBL_TRUE_MIN;
    memcpy(&bits, &of, sizeof(bits));
    bits += (of > 0) == up ? 1 : UINT64_MAX;
    memcpy(&of, &bits, sizeof(of));
    return of;
}

void logic_near(double limit, bool whole, double ret[LOGIC_NEAR])
{
    bool has_fractions = limit > -0x1p52 && limit < 0x1p52; /* larger doubles are whole */
    double down = has_fractions ? (double)(int64_t)limit : limit;
    down -= down > limit;
    ret[0] = whole ? down : limit;
    ret[1] = whole && has_fractions ? down - 1 : next_to(limit, false);
    ret[2] = whole && has_fractions ? down + 1 : next_to(limit, true);
}

struct search {
    const struct logic *logic;
    const struct logic_tests *tests;
    enum logic_truth of[LOGIC_NODES];
    unsigned steps;
};

/* Returns the value of a node. If it is LOGIC_OPEN, *ret_open is a test on which it depends. */
static enum logic_truth truth_at(const struct search *s, int at, int *ret_open)
{
    const struct logic_node *n = &s->logic->nodes[at];
    if (n->kind == LOGIC_TEST) {
        *ret_open = at;
        return s->of[at];
    }
    enum logic_truth left = truth_at(s, n->left, ret_open);
    if (n->kind == LOGIC_NOT)
        return left == LOGIC_OPEN ? left : left == LOGIC_TRUE ? LOGIC_FALSE : LOGIC_TRUE;
    enum logic_truth decides = n->kind == LOGIC_AND ? LOGIC_FALSE : LOGIC_TRUE;
    if (left == decides)
        return left;
    int open = *ret_open;
    enum logic_truth right = truth_at(s, n->right, ret_open);
    if (right == decides || left != LOGIC_OPEN)
        return right;
    *ret_open = open;
    return LOGIC_OPEN;
}

/* Returns whether the node can have this value, by trying both values of each test. */
static bool can_be(struct search *s, int at, enum logic_truth wanted)
{
    int open;
    enum logic_truth now = truth_at(s, at, &open);
    if (now != LOGIC_OPEN || s->steps >= STEPS_MAX)
        return now != LOGIC_OPEN ? now == wanted : true;
    s->steps++;
    bool can = false;
    for (enum logic_truth v = LOGIC_TRUE; v <= LOGIC_FALSE && !can; v++) {
        s->of[open] = v;
        can = s->tests->possible(s->tests->context, s->of, open) && can_be(s, at, wanted);
    }
    s->of[open] = LOGIC_OPEN;
    return can;
}

static const char *why_constant(struct search *s, int at)
{
    enum logic_kind kind = s->logic->nodes[at].kind;
    if (!can_be(s, at, LOGIC_TRUE))
        return kind == LOGIC_AND ? "these terms exclude each other, so this can never hold,"
                                 : "this can never hold,";
    if (!can_be(s, at, LOGIC_FALSE))
        return kind == LOGIC_OR ? "one of these terms holds at any time, so this always holds,"
                                : "this always holds,";
    return NULL;
}

int logic_check(struct logic_parser *p, const struct logic_tests *tests)
{
    struct search s = {.logic = p->logic, .tests = tests};
    const char *why = NULL;
    int at = 0;
    /* The parts of a node precede it, so the place is that of its smallest part. */
    while (at < p->logic->count && !(why = why_constant(&s, at)))
        at++;
    if (!why && tests->is_event) {
        at = p->logic->root;
        for (int i = 0; i < p->logic->count; i++)
            s.of[i] = p->logic->nodes[i].kind == LOGIC_TEST && tests->is_event(tests->context, i)
                          ? LOGIC_FALSE
                          : LOGIC_OPEN;
        if (!can_be(&s, at, LOGIC_FALSE))
            why = "this holds all the time while nothing happens,";
    }
    if (!why)
        return 0;
    p->at = p->start + p->logic->nodes[at].at;
    return logic_fail(p, why);
}

static bool holds_at(const struct logic *l, int at, bool (*holds)(void *, int), void *context)
{
    const struct logic_node *n = &l->nodes[at];
    switch (n->kind) {
    case LOGIC_AND:
        return holds_at(l, n->left, holds, context) && holds_at(l, n->right, holds, context);
    case LOGIC_OR:
        return holds_at(l, n->left, holds, context) || holds_at(l, n->right, holds, context);
    case LOGIC_NOT:
        return !holds_at(l, n->left, holds, context);
    default:
        return holds(context, at);
    }
}

bool logic_holds(const struct logic *l, bool (*holds)(void *context, int number), void *context)
{
    return holds_at(l, l->root, holds, context);
}
