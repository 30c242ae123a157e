/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"

#include "base/nearest.h"
#include "base/parse.h"
#include "cli/capture.h"
#include "cli/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool arg_at(const struct arg_set *set, size_t i, struct arg_shown *ret)
{
    if (!set->args)
        return capture_arg_at(i, ret);
    for (size_t n = 0; n <= i; n++) {
        if (!set->args[n].name)
            return false;
    }
    const struct arg *a = &set->args[i];
    *ret = (struct arg_shown){a->name, a->value, a->help, a->letter, false, NULL, ""};
    return true;
}

/*
 * Returns true when `word` is this option. *ret_value is the value attached to it ("=x", or "x"
 * after a letter), or NULL.
 */
static bool is_arg(const struct arg *a, const char *word, const char **ret_value)
{
    size_t n = strlen(a->name);
    if (strncmp(word, a->name, n) == 0 && (word[n] == 0 || word[n] == '=')) {
        *ret_value = word[n] ? word + n + 1 : NULL;
        return true;
    }
    if (a->letter && word[0] == '-' && word[1] == a->letter && (a->kind != ARG_FLAG || !word[2])) {
        *ret_value = word[2] ? word + 2 : NULL;
        return true;
    }
    return false;
}

static bool allowed(const char *choices, const char *text)
{
    if (!choices || !strchr(choices, '|'))
        return true;
    size_t n = strlen(text);
    for (const char *c = choices; c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL) {
        if (strncmp(c, text, n) == 0 && (c[n] == '|' || c[n] == 0))
            return true;
    }
    return false;
}

/* Appends to a list. The texts live until the process ends. */
static const char *append(const char **list, const char *text)
{
    static struct text {
        struct text *next;
        char bytes[];
    } * all;

    size_t before = *list ? strlen(*list) + 1 : 0;
    size_t n = strlen(text);
    struct text *t = n ? malloc(sizeof(*t) + before + n + 1) : NULL;
    if (!t)
        return n ? "no memory" : "empty";
    snprintf(t->bytes, before + n + 1, "%s%s%s", *list ? *list : "", *list ? "," : "", text);
    t->next = all;
    all = t;
    *list = t->bytes;
    return NULL;
}

static const struct arg json_only_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct json_only, json), NULL, "print JSON"},
    {0},
};

static const struct arg_set json_only_set = {"What is shown", json_only_args};
const struct arg_set *const json_only_sets[] = {&json_only_set, NULL};

static const char *set_share(double *ret, const char *text)
{
    char *end;
    double percent = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !(percent > 0 && percent <= 100))
        return "not a share such as 1% or 0.1%; allowed: above 0% to 100%";
    *ret = percent / 100;
    return NULL;
}

/* The least and the largest value of an option that has a number. */
static uint64_t least(const struct arg *a)
{
    return MAX(a->min, a->kind == ARG_COUNT || a->kind == ARG_SPAN ? 1 : 0);
}

static uint64_t most(const struct arg *a)
{
    bool time = a->kind == ARG_DURATION || a->kind == ARG_SPAN;
    return a->max                ? a->max
           : time                ? PARSE_TIME_MAX_NS
           : a->kind == ARG_SIZE ? PARSE_SIZE_MAX
                                 : INT64_MAX;
}

/* A limit of a time or a size, in its unit. */
static const char *format_bound(char text[24], const struct arg *a, uint64_t bound)
{
    return a->kind == ARG_SIZE ? format_size(text, bound) : format_limit(text, bound);
}

/*
 * Returns what is wrong with a value that is not a number, or that is out of range. exceeds: it is
 * larger than the largest one
 */
static const char *wrong_number(const struct arg *a, const char *text, int error, bool exceeds)
{
    static const char *const expected[] = {[ARG_NUMBER] = "not a whole number; allowed",
                                           [ARG_COUNT] = "not a whole number; allowed",
                                           [ARG_DURATION] =
                                               "not a time such as 30s or 500ms; allowed",
                                           [ARG_SPAN] = "not a time such as 30s or 500ms; allowed",
                                           [ARG_SIZE] = "not a size such as 64m; allowed"};
    static char why[160];
    char low[24], high[24], range[64];
    if (a->kind == ARG_NUMBER || a->kind == ARG_COUNT)
        format_numbers(range, least(a), most(a), exceeds);
    else
        snprintf(range, sizeof(range), "%s to %s", format_bound(low, a, least(a)),
                 format_bound(high, a, most(a)));
    snprintf(why, sizeof(why), "%s: %s",
             error == -ERANGE ? "out of range"
             : !*text         ? "empty; allowed"
                              : expected[a->kind],
             range);
    return why;
}

/* Stores a value. Returns NULL, or what is wrong with it. */
static const char *set_value(const struct arg *a, void *values, const char *text)
{
    void *at = (char *)values + a->offset;
    int r = 0;
    switch (a->kind) {
    case ARG_FLAG:
        *(bool *)at = true;
        return NULL;
    case ARG_LIST:
        return append(at, text);
    case ARG_TEXT:
        *(const char **)at = text;
        return !*text ? "empty" : allowed(a->value, text) ? NULL : "not one of its values";
    case ARG_NUMBER:
    case ARG_COUNT:
        r = text[strspn(text, "0123456789")] ? -EINVAL : parse_u64(text, 0, INT64_MAX, at);
        break;
    case ARG_DURATION:
    case ARG_SPAN:
        if (strtod(text, NULL) > 0 && !text[strspn(text, "0123456789.")])
            return "a unit is missing: 30s, 500ms";
        r = parse_duration(text, UINT64_C(1000000000), at);
        break;
    case ARG_SIZE:
        r = parse_size(text, at);
        break;
    case ARG_SHARE:
        return set_share(at, text);
    }
    bool exceeds = r == -ERANGE || (r == 0 && *(const uint64_t *)at > most(a));
    if (exceeds || (r == 0 && *(const uint64_t *)at < least(a)))
        r = -ERANGE;
    return r == 0 ? NULL : wrong_number(a, text, r, exceeds);
}

static void refer_to_help(const struct command *c)
{
    fprintf(stderr, "jvmscope: `jvmscope %s --help` has details\n", c->name);
}

/* Names the words that an operand can be, without the operands that follow them. */
static void list_words(const struct command *c)
{
    _cleanup_(buf_release) struct buf text = BUF(4096);
    for (const struct operand_word *w = c->words; w && w->usage; w++)
        buf_printf(&text, "%s%.*s", w == c->words ? "" : ", ", (int)strcspn(w->usage, " "),
                   w->usage);
    if (text.len)
        fprintf(stderr, "jvmscope: %s is one of: %s\n", c->words_title, buf_str(&text));
}

static void usage_error(const struct command *c, const char *what, const char *why)
{
    complain(c->name, what, why);
    refer_to_help(c);
}

/*
 * Returns whether a text may stand for a word of a usage, such as NAME, or gc|class|jni, of which
 * it must be one.
 */
static bool word_allows(const char *usage, size_t len, const char *text)
{
    for (size_t i = 0; i < len; i++)
        if (usage[i] >= 'A' && usage[i] <= 'Z')
            return true;
    for (const char *end = usage + len; usage < end;) {
        size_t n = strcspn(usage, "|] ");
        if (strlen(text) == n && strncmp(usage, text, n) == 0)
            return true;
        usage += n + 1;
    }
    return false;
}

/* Returns whether the operands after a word are those of its usage: "set THREAD [VALUE]". */
static bool follow(const char *usage, char **operands, int n)
{
    for (const char *at = usage + strcspn(usage, " "); *at; at += strcspn(at, " ")) {
        at++;
        bool optional = *at == '[';
        if (!n)
            return optional;
        if (!word_allows(at + optional, strcspn(at, " ") - optional, *operands))
            return false;
        operands++;
        n--;
    }
    return n == 0;
}

/* Complains and returns false if - is given for a file, which only the verbs of heap read. */
static bool check_files(const struct command *c, const struct operands *o)
{
    bool reads = c->heap_answer || strncmp(c->operands ? c->operands : "", "FILE", 4) != 0;
    for (int i = 0; i < o->count && !reads; i++)
        if (strcmp(o->list[i], "-") == 0 && access("-", F_OK) < 0) {
            complain(c->name, "- is not a file", "recordings are not read from standard input");
            return false;
        }
    return true;
}

/*
 * Checks the second operand of a command that takes one of its words there, and those that follow.
 * Complains and returns false if they are wrong.
 */
static bool check_words(const struct command *c, const struct operands *o)
{
    const char *given = o->list[1], *usage = NULL;
    char why[256];
    struct nearest n = {.word = given};
    for (const struct operand_word *w = c->words; w->usage; w++) {
        char word[64];
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(w->usage, " "), w->usage);
        (void)nearest_try(&n, word);
        if (strcmp(word, given) == 0)
            usage = w->usage;
    }
    if (!usage) {
        snprintf(why, sizeof(why), "unknown%s%s%s", *n.best ? "; did you mean " : "", n.best,
                 *n.best ? "?" : "");
        complain(c->name, given, why);
        list_words(c);
        refer_to_help(c);
        return false;
    }
    if (follow(usage, o->list + 2, o->count - 2))
        return true;
    const char *operands = usage + strcspn(usage, " ");
    snprintf(why, sizeof(why), "takes %s", *operands ? operands + 1 : "nothing");
    usage_error(c, given, why);
    return false;
}

/*
 * Takes the option at argv[*i]. Returns 1 when it belongs to this set, with *i at its last word, 0
 * when it does not, and -EINVAL after a complaint.
 */
static int take(const struct command *c, const struct arg_set *set, void *values, int argc,
                char **argv, int *i, uint64_t *given)
{
    if (!set->args) {
        int r = capture_parse(values, c, argc, argv, i);
        if (r < 0)
            refer_to_help(c);
        return r;
    }
    for (const struct arg *a = set->args; a->name; a++) {
        const char *value, *word = argv[*i];
        if (!is_arg(a, word, &value))
            continue;
        if (a->kind == ARG_FLAG && value) {
            usage_error(c, word, "takes no value");
            return -EINVAL;
        }
        if (a->kind != ARG_FLAG && !value) {
            value = args_next_value(c, a->name, argc, argv, i);
            if (!value) {
                refer_to_help(c);
                return -EINVAL;
            }
        }
        uint64_t bit = UINT64_C(1) << (a - set->args);
        if (*given & bit && a->kind != ARG_LIST) {
            usage_error(c, a->name, "given twice");
            return -EINVAL;
        }
        *given |= bit;
        const char *why = set_value(a, values, value);
        if (why) {
            char text[256], shown[128];
            bool one_of = strchr(a->value, '|') != NULL;
            snprintf(text, sizeof(text), "%s%s%s", why, one_of ? ": " : "", one_of ? a->value : "");
            snprintf(shown, sizeof(shown), "%s=%s", a->name, value);
            usage_error(c, shown, text);
            return -EINVAL;
        }
        return 1;
    }
    return 0;
}

static bool is_option(const struct command *c, const char *word)
{
    struct arg_shown a;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return true;
    for (const struct arg_set *const *set = c->sets; set && *set; set++)
        for (size_t i = 0; arg_at(*set, i, &a); i++) {
            size_t n = strlen(a.name);
            if ((strncmp(word, a.name, n) == 0 && (!word[n] || word[n] == '=')) ||
                (a.letter && word[0] == '-' && word[1] == a.letter && (!word[2] || a.value)))
                return true;
        }
    return false;
}

const char *args_next_value(const struct command *c, const char *name, int argc, char **argv,
                            int *i)
{
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    char why[400] = "needs a value";
    if (!next || strcmp(next, "--") == 0) {
        complain(c->name, argv[*i], why);
        return NULL;
    }
    if (is_option(c, next)) {
        snprintf(why, sizeof(why), "needs a value, and %.80s is an option; as a value: %s=%.80s",
                 next, name, next);
        complain(c->name, argv[*i], why);
        return NULL;
    }
    ++*i;
    return next;
}

/* Complains about an option that no set has, and suggests the one that was most likely meant. */
static void unknown_option(const struct command *c, const char *word)
{
    char name[64], what[128] = "no such option";
    struct nearest n = {.word = name};
    struct arg_shown a;
    snprintf(name, sizeof(name), "%.*s", (int)MIN(strcspn(word, "="), sizeof(name) - 1), word);
    for (const struct arg_set *const *set = c->sets; set && *set; set++)
        for (size_t k = 0; arg_at(*set, k, &a); k++)
            (void)nearest_try(&n, a.name);
    if (*n.best)
        snprintf(what, sizeof(what), "no such option; did you mean %s?", n.best);
    usage_error(c, word, what);
}

enum { SETS_MAX = 8 };

static void *values_of(const struct arg_values *values, const struct arg_set *set)
{
    void *others = NULL;
    for (; values->values; values++) {
        if (values->set == set)
            return values->values;
        if (!values->set)
            others = values->values;
    }
    if (!others)
        abort(); /* a set of the command has no struct: a mistake that any option of it reveals */
    return others;
}

/* given: a bit for each option that was taken so far, by set. */
static int take_from_any(const struct command *c, const struct arg_values *values, int argc,
                         char **argv, int *i, uint64_t given[SETS_MAX])
{
    int r = 0;
    for (size_t n = 0; r == 0 && c->sets && c->sets[n] && n < SETS_MAX; n++)
        r = take(c, c->sets[n], values_of(values, c->sets[n]), argc, argv, i, &given[n]);
    if (r == 0)
        unknown_option(c, argv[*i]);
    return r;
}

static void help_row(const struct arg_shown *a, FILE *to)
{
    char left[64];
    if (a->letter)
        snprintf(left, sizeof(left), "-%c, %s", a->letter, a->name);
    else
        snprintf(left, sizeof(left), "    %s", a->name);
    size_t n = strlen(left);
    if (a->value)
        snprintf(left + n, sizeof(left) - n, a->value_optional ? "[=%s]" : " %s", a->value);
    if (strlen(left) > 34)
        fprintf(to, "  %s\n%*s%s", left, 37, "", a->help);
    else
        fprintf(to, "  %-34s %s", left, a->help);
    if (a->standard)
        fprintf(to, " (%s%s)", a->standard, a->unit);
    fputc('\n', to);
}

void command_summaries(const struct command *const *table, FILE *to)
{
    COMMAND_EACH(c, table)
        fprintf(to, "  %-22s %s\n", c->name, c->summary);
}

static void help(const struct command *c, FILE *to)
{
    const char *operands = c->operands ? c->operands : "";
    fprintf(to, "usage: jvmscope %s%s%s%s\n%s\n", c->name, c->sets ? " [OPTION ...]" : "",
            *operands ? " " : "", operands, c->summary);
    struct arg_shown a;
    for (size_t n = 0; c->sets && c->sets[n]; n++) {
        fprintf(to, "\n%s:\n", c->sets[n]->title);
        for (size_t i = 0; arg_at(c->sets[n], i, &a); i++)
            help_row(&a, to);
    }
    if (c->words)
        fprintf(to, "\n%s:\n", c->words_title);
    for (const struct operand_word *w = c->words; w && w->usage; w++)
        fprintf(to, "  %-34s %s\n", w->usage, w->summary);
    if (c->format)
        fputs("\nFormats, by the extension of the output:\n", to);
    struct operand_word format;
    for (size_t i = 0; c->format && c->format(i, &format); i++)
        fprintf(to, "  %-34s %s\n", format.usage, format.summary);
    if (c->verbs) {
        fputs("\nVerbs:\n", to);
        command_summaries(c->verbs, to);
    }
    if (c->examples) {
        fputs("\nExamples:\n", to);
        print_own(to, c->examples);
    }
}

bool args_parse(const struct command *c, const struct arg_values *values, int argc, char **argv,
                struct operands *ret, int *ret_status)
{
    int operands = 1; /* they are moved to argv[1..operands-1] */
    bool options = true;
    uint64_t given[SETS_MAX] = {0};
    *ret_status = 2;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
            continue;
        }
        if (options && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            help(c, stdout);
            *ret_status = 0;
            return false;
        }
        bool is_operand =
            c->operands_may_begin_with_dash && operands > c->min_operands && !is_option(c, word);
        if (options && word[0] == '-' && word[1] && !is_operand) {
            if (take_from_any(c, values, argc, argv, &i, given) <= 0)
                return false;
            continue;
        }
        argv[operands++] = argv[i];
        if (c->operands_end_options && operands > c->min_operands)
            options = false;
    }
    *ret = (struct operands){operands - 1, argv + 1};
    if (ret->count < c->min_operands || (c->max_operands >= 0 && ret->count > c->max_operands)) {
        bool few = ret->count < c->min_operands;
        complain(c->name, few ? "missing operand" : ret->list[c->max_operands],
                 few ? c->operands : "one operand too many");
        if (few)
            list_words(c);
        refer_to_help(c);
        return false;
    }
    return (!c->words || check_words(c, ret)) && check_files(c, ret);
}
