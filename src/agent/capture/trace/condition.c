/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/condition.h"

#include "base/parse.h"

#include <errno.h>
#include <string.h>

enum node_kind { NODE_TEST, NODE_AND, NODE_OR, NODE_NOT };

enum { NODES_MAX = 64, TEXT_MAX = 256, NESTING_MAX = 32 };

struct node {
    enum node_kind kind;
    struct cond_test test;
    int left, right;
};

struct condition {
    struct node nodes[NODES_MAX];
    int count, root;
    char texts[NODES_MAX][TEXT_MAX], paths[NODES_MAX][TEXT_MAX];
};

struct parser {
    struct condition *c;
    const char *start, *at;
    struct buf *why;
    int depth;
};

static int fail(struct parser *p, const char *what)
{
    buf_printf(p->why, "condition: %s at \"%.20s\"", what, *p->at ? p->at : "the end");
    return -EINVAL;
}

static void skip_blanks(struct parser *p)
{
    p->at += strspn(p->at, " \t");
}

static bool take(struct parser *p, const char *word)
{
    skip_blanks(p);
    size_t n = strlen(word);
    if (strncmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* A keyword ends where no letter or digit follows. */
static bool take_word(struct parser *p, const char *word)
{
    const char *before = p->at;
    if (take(p, word) && !((*p->at | 0x20) >= 'a' && (*p->at | 0x20) <= 'z') &&
        !(*p->at >= '0' && *p->at <= '9') && *p->at != '_')
        return true;
    p->at = before;
    return false;
}

static int add(struct parser *p, struct node n)
{
    if (p->c->count == NODES_MAX)
        return fail(p, "more than 64 terms");
    p->c->nodes[p->c->count] = n;
    return p->c->count++;
}

static int parse_literal(struct parser *p, struct cond_test *t)
{
    skip_blanks(p);
    bool is_text = *p->at == '\'' || *p->at == '"';
    if (t->what == COND_THREAD && !is_text)
        return fail(p, "a thread's name is a text, as in thread == 'main':");
    if ((t->what == COND_TIME || t->what == COND_DEPTH || t->what == COND_THROWN || t->length) &&
        (is_text || strncmp(p->at, "null", 4) == 0))
        return fail(p, "time, depth, thrown and lengths are numbers:");
    if (take_word(p, "null")) {
        t->kind = COND_NULL;
        return t->op == COND_EQ || t->op == COND_NE
                   ? 0
                   : fail(p, "null can only be compared by == and !=");
    }
    if (*p->at == '\'' || *p->at == '"') {
        const char *end = strchr(p->at + 1, *p->at);
        if (!end || end - p->at > TEXT_MAX)
            return fail(p, "a text without an end, or too long,");
        if (t->op != COND_EQ && t->op != COND_NE)
            return fail(p, "a text can only be compared by == and !=");
        char *text = p->c->texts[p->c->count < NODES_MAX ? p->c->count : NODES_MAX - 1];
        memcpy(text, p->at + 1, (size_t)(end - p->at - 1));
        text[end - p->at - 1] = 0;
        t->kind = COND_TEXT;
        t->text = text;
        p->at = end + 1;
        return 0;
    }
    t->kind = COND_NUMBER;
    bool is_true = take_word(p, "true");
    if (is_true || take_word(p, "false")) {
        t->number = is_true;
        return 0;
    }
    char word[64];
    size_t n = strcspn(p->at, " \t)&|=<>!");
    if (n == 0 || n >= sizeof(word))
        return fail(p, "a number, text, true, false or null is missing");
    memcpy(word, p->at, n);
    word[n] = 0;
    char *end;
    uint64_t ns;
    t->number = strtod(word, &end);
    if (t->what == COND_TIME && parse_duration(word, 1, &ns) == 0)
        t->number = (double)ns;
    else if (*end)
        return fail(p, t->what == COND_TIME ? "not a duration" : "not a number");
    p->at += n;
    return 0;
}

static bool in_name(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'
               ? true
               : (c >= '0' && c <= '9') || c == '_' || c == '$' || c & 0x80;
}

/* Length of an identifier path: names with dots between them. */
static size_t names_length(const char *at)
{
    size_t n = 0;
    while (in_name(at[n]) && !(at[n] >= '0' && at[n] <= '9')) {
        while (in_name(at[n]))
            n++;
        if (at[n] != '.' || !in_name(at[n + 1]))
            break;
        n++;
    }
    return n;
}

/* Parses what follows a value: names of fields, and .length at the end. */
static int parse_path(struct parser *p, struct cond_test *t)
{
    static const char length[] = ".length";
    const char *start = p->at;
    size_t n = *start == '.' ? 1 + names_length(start + 1) : 0, end = sizeof(length) - 1;
    if (t->what == COND_STATIC)
        n = names_length(start);
    p->at += n;
    t->length = n >= end && memcmp(start + n - end, length, end) == 0;
    n -= t->length ? end : 0;
    if (n <= 1)
        return 0;
    if (t->what == COND_RETURN)
        return fail(p, "fields are read as a call begins: there is no return then");
    if (n >= TEXT_MAX || p->c->count == NODES_MAX)
        return fail(p, "too long");
    char *path = p->c->paths[p->c->count];
    bool dot = t->what != COND_STATIC;
    memcpy(path, start + dot, n - dot);
    path[n - dot] = 0;
    t->path = path;
    return 0;
}

static int parse_test(struct parser *p)
{
    static const struct {
        const char *name;
        enum cond_what what;
    } whats[] = {{"return", COND_RETURN}, {"this", COND_THIS},     {"time", COND_TIME},
                 {"depth", COND_DEPTH},   {"thrown", COND_THROWN}, {"thread", COND_THREAD}};

    static const char *const ops[] = {[COND_EQ] = "==", [COND_NE] = "!=", [COND_LE] = "<=",
                                      [COND_GE] = ">=", [COND_LT] = "<",  [COND_GT] = ">"};

    static const enum cond_op order[] = {COND_EQ, COND_NE, COND_LE, COND_GE, COND_LT, COND_GT};
    struct node n = {.kind = NODE_TEST};
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(whats) && !found; i++) {
        found = take_word(p, whats[i].name);
        n.test.what = whats[i].what;
    }
    if (!found && take(p, "arg") && *p->at >= '1' && *p->at <= '9') {
        n.test.what = COND_ARG;
        unsigned long number = strtoul(p->at, (char **)&p->at, 10);
        found = number < 256;
        n.test.arg = (unsigned)number;
    }
    if (!found) {
        n.test.what = COND_STATIC;
        found = memchr(p->at, '.', names_length(p->at)) != NULL;
    }
    if (!found)
        return fail(p, "argN, return, this, time, depth, thrown, thread or pkg.Class.field is "
                       "missing");
    bool has_path = n.test.what <= COND_THIS || n.test.what == COND_STATIC;
    if (has_path && parse_path(p, &n.test) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(order) && n.test.op == COND_IS; i++)
        n.test.op = take(p, ops[order[i]]) ? order[i] : COND_IS;
    int r = n.test.op == COND_IS ? 0 : parse_literal(p, &n.test);
    return r < 0 ? r : add(p, n);
}

static int parse_or(struct parser *p);

static int parse_not(struct parser *p)
{
    if (++p->depth > NESTING_MAX)
        return fail(p, "nested too deep");
    int r;
    skip_blanks(p);
    if (p->at[0] == '!' && p->at[1] != '=') {
        p->at++;
        r = parse_not(p);
        r = r < 0 ? r : add(p, (struct node){.kind = NODE_NOT, .left = r});
    } else if (take(p, "(")) {
        r = parse_or(p);
        if (r >= 0 && !take(p, ")"))
            r = fail(p, ") is missing");
    } else {
        r = parse_test(p);
    }
    p->depth--;
    return r;
}

static int parse_chain(struct parser *p, enum node_kind kind, const char *word,
                       int (*inner)(struct parser *p))
{
    int left = inner(p);
    while (left >= 0 && take(p, word)) {
        int right = inner(p);
        left =
            right < 0 ? right : add(p, (struct node){.kind = kind, .left = left, .right = right});
    }
    return left;
}

static int parse_and(struct parser *p)
{
    return parse_chain(p, NODE_AND, "&&", parse_not);
}

static int parse_or(struct parser *p)
{
    return parse_chain(p, NODE_OR, "||", parse_and);
}

int condition_parse(struct condition **ret, const char *text, struct buf *why)
{
    struct condition *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    struct parser p = {.c = c, .start = text, .at = text, .why = why};
    int root = parse_or(&p);
    skip_blanks(&p);
    if (root >= 0 && *p.at)
        root = fail(&p, "not understood");
    if (root < 0) {
        free(c);
        return root;
    }
    c->root = root;
    *ret = c;
    return 0;
}

void condition_free(struct condition *c)
{
    free(c);
}

void condition_number(struct condition *c, unsigned first)
{
    for (int i = 0; i < c->count; i++)
        c->nodes[i].test.id = first + (unsigned)i;
}

const struct cond_test *condition_path(const struct condition *c, unsigned i)
{
    for (int n = 0; n < c->count; n++)
        if (c->nodes[n].kind == NODE_TEST && c->nodes[n].test.path && i-- == 0)
            return &c->nodes[n].test;
    return NULL;
}

static bool compare(enum cond_op op, double a, double b)
{
    switch (op) {
    case COND_EQ:
        return a == b;
    case COND_NE:
        return a != b;
    case COND_LT:
        return a < b;
    case COND_LE:
        return a <= b;
    case COND_GT:
        return a > b;
    case COND_GE:
        return a >= b;
    default:
        return a != 0;
    }
}

static bool test_holds(const struct cond_test *t, const struct cond_value *v)
{
    if (!v->there)
        return false;
    if (t->op == COND_IS)
        return v->text || (!v->null && v->number != 0);
    if (t->kind == COND_NULL)
        return v->null == (t->op == COND_EQ);
    if (t->kind == COND_TEXT)
        return (v->text && strcmp(v->text, t->text) == 0) == (t->op == COND_EQ);
    return !v->null && !v->text && compare(t->op, v->number, t->number);
}

static bool holds(const struct condition *c, int at,
                  void (*value)(void *, const struct cond_test *, struct cond_value *),
                  void *context)
{
    const struct node *n = &c->nodes[at];
    switch (n->kind) {
    case NODE_AND:
        return holds(c, n->left, value, context) && holds(c, n->right, value, context);
    case NODE_OR:
        return holds(c, n->left, value, context) || holds(c, n->right, value, context);
    case NODE_NOT:
        return !holds(c, n->left, value, context);
    default:
        break;
    }
    struct cond_value v = {0};
    value(context, &n->test, &v);
    return test_holds(&n->test, &v);
}

bool condition_holds(const struct condition *c,
                     void (*value)(void *context, const struct cond_test *t,
                                   struct cond_value *ret),
                     void *context)
{
    return !c || holds(c, c->root, value, context);
}

static bool cannot_hold(const struct condition *c, int at,
                        bool (*never)(void *, const struct cond_test *), void *context)
{
    const struct node *n = &c->nodes[at];
    switch (n->kind) {
    case NODE_AND:
        return cannot_hold(c, n->left, never, context) || cannot_hold(c, n->right, never, context);
    case NODE_OR:
        return cannot_hold(c, n->left, never, context) && cannot_hold(c, n->right, never, context);
    case NODE_NOT:
        return false;
    default:
        return never(context, &n->test);
    }
}

bool condition_never(const struct condition *c,
                     bool (*never)(void *context, const struct cond_test *t), void *context)
{
    return c && cannot_hold(c, c->root, never, context);
}

static const struct cond_test *required(const struct condition *c, int at, unsigned *i)
{
    const struct node *n = &c->nodes[at];
    if (n->kind == NODE_AND) {
        const struct cond_test *t = required(c, n->left, i);
        return t ? t : required(c, n->right, i);
    }
    return n->kind == NODE_TEST && (*i)-- == 0 ? &n->test : NULL;
}

const struct cond_test *condition_required(const struct condition *c, unsigned i)
{
    return c ? required(c, c->root, &i) : NULL;
}
