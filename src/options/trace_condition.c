/* SPDX-License-Identifier: Apache-2.0 */
#include "options/trace_condition.h"

#include "base/macro.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 256 };

struct condition {
    struct logic logic;
    struct cond_test tests[LOGIC_NODES]; /* indexed by the numbers of their nodes */
    char texts[LOGIC_NODES][TEXT_MAX], paths[LOGIC_NODES][TEXT_MAX];
};

/* Reads the four hexadecimal digits at `at`. Returns -1 if they are something else. */
static int hex4(const char *at)
{
    char digits[5] = "";
    strncpy(digits, at, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (int)strtol(digits, NULL, 16) : -1;
}

/* Reads the UTF-16 unit at *at. A pair of surrogates is written as two of them. */
static int escaped_unit(const char **at)
{
    static const char names[] = "nrtbf\\'\"/", means[] = "\n\r\t\b\f\\'\"/";
    const char *name = **at ? strchr(names, **at) : NULL;
    int unit = name ? means[name - names] : **at == 'u' ? hex4(*at + 1) : -1;
    *at += name ? 1 : 5;
    return unit;
}

/*
 * Appends the character of the escape whose backslash precedes *at. Returns false when it is
 * not an escape.
 */
static bool put_escaped(struct buf *b, const char **at)
{
    int unit = escaped_unit(at);
    if (unit < 0)
        return false;
    uint32_t c = (uint32_t)unit;
    if (c >> 10 == 0xd800 >> 10 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        const char *next = *at + 1;
        int low = escaped_unit(&next);
        if (low >> 10 == 0xdc00 >> 10) {
            c = 0x10000 + ((c & 0x3ff) << 10) + ((uint32_t)low & 0x3ff);
            *at = next;
        }
    }
    if (c)
        utf8_put(b, c);
    else
        buf_bytes(b, "\xc0\x80", 2); /* as in modified UTF-8, because 0 would end the text */
    return true;
}

/*
 * Parses a text in quotes, with the escapes with which values are printed, so that these can be
 * copied.
 */
static int parse_text(struct logic_parser *p, char text[TEXT_MAX], struct cond_test *t)
{
    _cleanup_(buf_release) struct buf b = BUF(TEXT_MAX - 1);
    const char *at = p->at + 1;
    while (*at && *at != *p->at) {
        const char *start = at;
        if (*at != '\\') {
            buf_u8(&b, (uint8_t)*at++);
        } else if (at++, !put_escaped(&b, &at)) {
            p->at = start;
            return logic_fail(p, "no such escape in a text (write a backslash as \\\\)");
        }
    }
    if (!*at || buf_error(&b))
        return logic_fail(p, "a text without an end, or too long,");
    if (t->op != LOGIC_EQ && t->op != LOGIC_NE)
        return logic_fail(p, "a text can only be compared by == and !=");
    snprintf(text, TEXT_MAX, "%s", buf_str(&b));
    t->kind = COND_TEXT;
    t->text = text;
    p->at = at + 1;
    return 0;
}

static bool in_name(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'
               ? true
               : (c >= '0' && c <= '9') || c == '_' || c == '$' || c & 0x80;
}

/* Returns the length of an identifier path: names with dots between them. */
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

/* Reports a word that is neither a number nor a text. */
static int not_a_value(struct logic_parser *p, const struct cond_test *t, const char *word)
{
    char what[128] = "not a number";
    const char *dot = strrchr(word, '.');
    bool is_value = t->what <= COND_THIS || t->what == COND_STATIC;
    if (t->what == COND_TIME)
        snprintf(what, sizeof(what), "not a duration");
    else if (is_value && !t->length && *word && names_length(word) == strlen(word))
        snprintf(what, sizeof(what),
                 "texts and enum constants need quotes, as in '%s':", dot ? dot + 1 : word);
    return logic_fail(p, what);
}

static int parse_literal(struct logic_parser *p, int number, struct cond_test *t)
{
    struct condition *c = p->context;
    logic_skip_blanks(p);
    bool is_text = *p->at == '\'' || *p->at == '"';
    if (t->what == COND_THREAD && !is_text)
        return logic_fail(p, "a thread's name is a text, as in thread == 'main',");
    if (t->what == COND_THROWN && is_text)
        return logic_fail(p, "thrown says whether the call threw, as in thrown or !thrown, and is "
                             "not the exception's text;");
    if ((t->what == COND_TIME || t->what == COND_DEPTH || t->what == COND_THROWN || t->length) &&
        (is_text || strncmp(p->at, "null", 4) == 0))
        return logic_fail(
            p, "time, depth, thrown and lengths are compared with numbers only; this is none");
    if (logic_take_word(p, "null")) {
        t->kind = COND_NULL;
        return t->op == LOGIC_EQ || t->op == LOGIC_NE
                   ? 0
                   : logic_fail(p, "null can only be compared by == and !=");
    }
    if (is_text)
        return parse_text(p, c->texts[number], t);
    t->kind = COND_NUMBER;
    bool is_true = logic_take_word(p, "true");
    if (is_true || logic_take_word(p, "false")) {
        t->number = number_literal(is_true);
        t->boolean = true;
        t->text = is_true ? "true" : "false";
        return 0;
    }
    const char *before = p->at;
    char word[64];
    if (!logic_take_value(p, word, sizeof(word)))
        return logic_fail(p, "a number, text, true, false or null is missing");
    uint64_t ns;
    bool is_number = number_parse(&t->number, word);
    t->text = strcpy(c->texts[number], word);
    if (t->what == COND_TIME && is_number && t->number.real != 0) {
        logic_skip_blanks(p);
        bool apart = *p->at && strchr("nums", *p->at);
        p->at = before;
        return logic_fail(p, apart ? "the unit must follow without a blank, as in time > 5ms,"
                                   : "a unit is missing, as in time > 5ms,");
    }
    if (t->what == COND_TIME && parse_duration(word, 1, &ns) == 0)
        t->number = number_literal((int64_t)MIN(ns, (uint64_t)INT64_MAX));
    else if (!is_number) {
        p->at = before;
        return not_a_value(p, t, word);
    }
    bool counts = t->what == COND_TIME || t->what == COND_DEPTH || t->length;
    if (counts && number_excludes(t->op, &t->number, 0, INT64_MAX)) {
        p->at = before;
        return logic_fail(p, "no time, depth or length is less than 0, so this can never hold,");
    }
    return 0;
}

/* Parses what may follow a value: names of fields, and .length at the end. */
static int parse_path(struct logic_parser *p, int number, struct cond_test *t)
{
    struct condition *c = p->context;
    static const char length[] = ".length";
    const char *start = p->at;
    size_t n = *start == '.' ? 1 + names_length(start + 1) : 0;
    size_t end = sizeof(length) - 1;
    if (t->what == COND_STATIC)
        n = names_length(start);
    p->at += n;
    t->length = n >= end && memcmp(start + n - end, length, end) == 0;
    n -= t->length ? end : 0;
    if (n <= 1)
        return 0;
    if (t->what == COND_RETURN)
        return logic_fail(p, "fields are read when a call begins, so there is no return yet");
    if (n >= TEXT_MAX)
        return logic_fail(p, "too long");
    char *path = c->paths[number];
    bool dot = t->what != COND_STATIC;
    memcpy(path, start + dot, n - dot);
    path[n - dot] = 0;
    t->path = path;
    return 0;
}

/* Returns whether a text, number, null, true or false begins here. */
static bool begins_literal(const char *p)
{
    static const char *const words[] = {"null", "true", "false"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (names_length(p) == strlen(words[i]) && strncmp(p, words[i], strlen(words[i])) == 0)
            return true;
    p += strspn(p, "+-.");
    return *p == '"' || *p == '\'' || (*p >= '0' && *p <= '9');
}

static int parse_test(struct logic_parser *p, int number)
{
    static const struct {
        const char *name;
        enum cond_what what;
    } whats[] = {{"return", COND_RETURN}, {"this", COND_THIS},     {"time", COND_TIME},
                 {"depth", COND_DEPTH},   {"thrown", COND_THROWN}, {"thread", COND_THREAD}};

    struct condition *c = p->context;
    struct cond_test *test = &c->tests[number];
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(whats) && !found; i++) {
        found = logic_take_word(p, whats[i].name);
        test->what = whats[i].what;
    }
    bool is_arg = !found && logic_take(p, "arg");
    if (is_arg && *p->at == '0')
        return logic_fail(p, "arguments count from 1, so the first is arg1");
    if (is_arg && *p->at >= '1' && *p->at <= '9') {
        test->what = COND_ARG;
        unsigned long n = strtoul(p->at, (char **)&p->at, 10);
        found = n < 256;
        test->arg = (unsigned)n;
    }
    if (!found) {
        test->what = COND_STATIC;
        found = memchr(p->at, '.', names_length(p->at)) != NULL;
    }
    if (!found && !is_arg && begins_literal(p->at))
        return logic_fail(p, "a value such as arg1 goes to the left of the comparison, and what it "
                             "is compared with to the right");
    if (!found)
        return logic_fail(p,
                          "argN, return, this, time, depth, thrown, thread or pkg.Class.field is "
                          "missing");
    bool has_path = test->what <= COND_THIS || test->what == COND_STATIC;
    if (has_path && parse_path(p, number, test) < 0)
        return -EINVAL;
    test->op = logic_take_op(p);
    return test->op == LOGIC_IS ? 0 : parse_literal(p, number, test);
}

static bool is_same_value(const struct cond_test *a, const struct cond_test *b)
{
    return a->what == b->what && a->arg == b->arg && a->length == b->length &&
           strcmp(a->path ? a->path : "", b->path ? b->path : "") == 0;
}

static bool test_holds(const struct cond_test *t, const struct cond_value *v)
{
    if (!v->present)
        return false;
    if (t->op == LOGIC_IS)
        return v->text || (!v->null && number_compare(LOGIC_NE, &v->number, &(struct literal){0}));
    if (t->kind == COND_NULL)
        return v->null == (t->op == LOGIC_EQ);
    if (t->kind == COND_TEXT)
        return (v->text && utf8_equal(v->text, t->text)) == (t->op == LOGIC_EQ);
    if (v->null || v->text || v->object || (t->boolean && !v->boolean))
        return t->op == LOGIC_NE;
    return number_compare(t->op, &v->number, &t->number);
}

/* ---- what never holds, and what always does ---- */

/*
 * Returns whether the tests of a value can have these results for it. Some tests see the value as a
 * number, others as a text; a test without a comparison sees `is`.
 */
static bool all_agree(const struct condition *c, const enum logic_truth *of, int test,
                      const struct cond_value *number, const struct cond_value *text,
                      const struct cond_value *is)
{
    for (int i = 0; i < c->logic.count; i++) {
        const struct cond_test *t = &c->tests[i];
        if (c->logic.nodes[i].kind != LOGIC_TEST || of[i] == LOGIC_OPEN ||
            !is_same_value(t, &c->tests[test]))
            continue;
        const struct cond_value *v = t->op == LOGIC_IS ? is : t->kind == COND_TEXT ? text : number;
        if (test_holds(t, v) != (of[i] == LOGIC_TRUE))
            return false;
    }
    return true;
}

/* Tries the number alone, with each text with which a test compares, and with another text. */
static bool is_possible_as(const struct condition *c, const enum logic_truth *of, int test,
                           struct cond_value number)
{
    enum cond_what what = c->tests[test].what;
    bool counts =
        what == COND_TIME || what == COND_DEPTH || what == COND_THROWN || c->tests[test].length;
    struct cond_value text = {.present = true, .number = number_whole(1), .text = "\1"};
    if (all_agree(c, of, test, &number, &number, &number))
        return true;
    if (counts || !number.present || number.null)
        return false;
    for (int i = -1; i < c->logic.count; i++) {
        if (i >= 0 && c->tests[i].kind != COND_TEXT)
            continue;
        text.text = i < 0 ? text.text : c->tests[i].text;
        if (text.text && (all_agree(c, of, test, &number, &text, &number) ||
                          all_agree(c, of, test, &number, &text, &text) ||
                          all_agree(c, of, test, &text, &text, &text)))
            return true;
    }
    return false;
}

/* Tries a value; 0 and 1 may also stand for false and true. */
static bool is_possible_at(const struct condition *c, const enum logic_truth *of, int test,
                           struct cond_value v)
{
    enum cond_what what = c->tests[test].what;
    bool can_be_boolean = what != COND_TIME && what != COND_DEPTH && !c->tests[test].length &&
                          v.present && !v.null && v.number.kind == NUMBER_WHOLE &&
                          (v.number.whole == 0 || v.number.whole == 1);
    if (is_possible_as(c, of, test, v))
        return true;
    v.boolean = true;
    return can_be_boolean && is_possible_as(c, of, test, v);
}

/*
 * Tries numbers. The results of comparisons change only at their limits, so the limits and the
 * numbers next to them represent all numbers.
 */
static bool is_number_possible(const struct condition *c, const enum logic_truth *of, int test)
{
    const struct cond_test *t = &c->tests[test];
    bool whole = t->what == COND_TIME || t->what == COND_DEPTH || t->length;
    for (int i = 0; i < c->logic.count; i++) {
        struct number near[2 + NUMBER_NEAR] = {number_whole(0), number_whole(1)};
        if (c->logic.nodes[i].kind != LOGIC_TEST || !is_same_value(&c->tests[i], t))
            continue;
        unsigned n = 2 + number_near(&c->tests[i].number, whole, near + 2);
        for (unsigned k = 0; k < n; k++)
            if ((!whole || near[k].whole >= 0) &&
                is_possible_at(c, of, test,
                               (struct cond_value){.present = true, .number = near[k]}))
                return true;
    }
    return false;
}

static bool is_value_possible(const struct condition *c, const enum logic_truth *of, int test,
                              bool thrown)
{
    const struct cond_test *t = &c->tests[test];
    const struct cond_value absent = {0}, null = {.present = true, .null = true};
    if (t->what == COND_THROWN)
        return is_possible_as(
            c, of, test,
            (struct cond_value){.present = true, .number = number_whole(thrown), .boolean = true});
    if (t->what == COND_RETURN && thrown)
        return is_possible_at(c, of, test, absent);
    if (t->what == COND_THREAD)
        return is_possible_at(c, of, test, (struct cond_value){.present = true});
    bool always_present = t->what == COND_TIME || t->what == COND_DEPTH;
    return is_number_possible(c, of, test) ||
           (!always_present && (is_possible_at(c, of, test, absent) ||
                                (!t->length && is_possible_at(c, of, test, null))));
}

/* Returns whether tests can have these results; a call either returns or throws. */
static bool are_possible(const void *context, const enum logic_truth *of, int changed)
{
    const struct condition *c = context;
    bool is = false;
    for (int thrown = 0; thrown < 2 && !is; thrown++) {
        is = true;
        for (int i = 0; i < c->logic.count && is; i++)
            is = c->logic.nodes[i].kind != LOGIC_TEST || of[i] == LOGIC_OPEN ||
                 is_value_possible(c, of, i, thrown);
    }
    return is;
}

int condition_parse(struct condition **ret, const char *text, struct buf *why)
{
    struct condition *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    struct logic_parser p = {.logic = &c->logic, .why = why, .test = parse_test, .context = c};
    int r = logic_parse(&p, text);
    r = r < 0 ? r : logic_check(&p, &(struct logic_tests){.possible = are_possible, .context = c});
    if (r < 0) {
        free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void condition_free(struct condition *c)
{
    free(c);
}

void condition_number(struct condition *c, unsigned first)
{
    for (int i = 0; i < c->logic.count; i++)
        c->tests[i].id = first + (unsigned)i;
}

const struct cond_test *condition_path(const struct condition *c, unsigned i)
{
    for (int n = 0; n < c->logic.count; n++)
        if (c->logic.nodes[n].kind == LOGIC_TEST && c->tests[n].path && i-- == 0)
            return &c->tests[n];
    return NULL;
}

bool condition_tests_depth(const struct condition *c)
{
    bool is = false;
    for (int n = 0; !is && n < c->logic.count; n++)
        is = c->logic.nodes[n].kind == LOGIC_TEST && c->tests[n].what == COND_DEPTH;
    return is;
}

struct holding {
    const struct condition *c;
    void (*value)(void *context, const struct cond_test *t, struct cond_value *ret);
    void *context;
};

static bool holds(void *context, int number)
{
    const struct holding *h = context;
    struct cond_value v = {0};
    h->value(h->context, &h->c->tests[number], &v);
    return test_holds(&h->c->tests[number], &v);
}

bool condition_holds(const struct condition *c,
                     void (*value)(void *context, const struct cond_test *t,
                                   struct cond_value *ret),
                     void *context)
{
    return !c || logic_holds(&c->logic, holds, &(struct holding){c, value, context});
}

static bool cannot_hold(const struct condition *c, int at,
                        bool (*is_impossible)(void *, const struct cond_test *), void *context)
{
    const struct logic_node *n = &c->logic.nodes[at];
    switch (n->kind) {
    case LOGIC_AND:
        return cannot_hold(c, n->left, is_impossible, context) ||
               cannot_hold(c, n->right, is_impossible, context);
    case LOGIC_OR:
        return cannot_hold(c, n->left, is_impossible, context) &&
               cannot_hold(c, n->right, is_impossible, context);
    case LOGIC_NOT:
        return false;
    default:
        return is_impossible(context, &c->tests[at]);
    }
}

bool condition_is_unsatisfiable(const struct condition *c,
                                bool (*is_impossible)(void *context, const struct cond_test *t),
                                void *context)
{
    return c && cannot_hold(c, c->logic.root, is_impossible, context);
}

static const struct cond_test *required(const struct condition *c, int at, unsigned *i)
{
    const struct logic_node *n = &c->logic.nodes[at];
    if (n->kind == LOGIC_AND) {
        const struct cond_test *t = required(c, n->left, i);
        return t ? t : required(c, n->right, i);
    }
    return n->kind == LOGIC_TEST && (*i)-- == 0 ? &c->tests[at] : NULL;
}

const struct cond_test *condition_required(const struct condition *c, unsigned i)
{
    return c ? required(c, c->logic.root, &i) : NULL;
}
