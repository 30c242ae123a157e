/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the options of a recording, and completes and checks them together. */
#include "options/options.h"

#include "options/formats.h"
#include "options/names.h"
#include "options/trigger_condition.h"
#include "options/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends further parts to a list. */
static int join(struct options *o, enum option which, const char *text, struct buf *message)
{
    struct option_value *v = &o->v[which];
    char separator = option_table[which].separator, *all;
    if (asprintf(&all, "%s%.*s%s", v->given ? v->text : "", v->given ? 1 : 0, &separator, text) < 0)
        return -ENOMEM;
    free(o->joined[which]);
    v->text = o->joined[which] = all;
    /* the limit applies to the number of parts in all */
    return option_names_check(which, all, message);
}

/* Returns the combination of two values of one option, or NULL if they are incompatible. */
static const char *both(enum option which, const char *a, const char *b)
{
    static const struct {
        enum option which;
        const char *one, *other, *together;
    } pairs[] = {{OPT_CPU, "samples", "times", "samples|times"},
                 {OPT_CPU, "wall", "times", "wall|times"},
                 {OPT_HEAP, "sites", "dump", "all"}};

    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
        if (pairs[i].which == which &&
            ((strcmp(a, pairs[i].one) == 0 && strcmp(b, pairs[i].other) == 0) ||
             (strcmp(b, pairs[i].one) == 0 && strcmp(a, pairs[i].other) == 0)))
            return pairs[i].together;
    return NULL;
}

/* Begins a new trace= with its patterns. The options' storage owns the text. */
static int begin_trace(struct options *o, char *patterns, struct buf *message)
{
    if (o->n_traces == TRACES_MAX) {
        option_put(message, OPT_TRACE, patterns);
        buf_printf(message, ": more than %d of them; commas separate patterns", TRACES_MAX);
        return -EINVAL;
    }
    o->traces[o->n_traces] = (struct option_trace){.patterns = patterns};
    o->n_traces++;
    return 0;
}

/*
 * Reports that an option was given before as `first`, although it may be given only once, or only
 * once `where`.
 */
static void report_twice(struct buf *message, enum option which, const char *text,
                         const char *first, const char *where)
{
    option_put(message, which, text);
    buf_printf(message, ": given twice%s", where);
    if (text && first && strcmp(text, first) != 0) {
        buf_string(message, ", the first time as ");
        option_put(message, which, first);
    }
    if (which == OPT_CPU && text && first && strcmp(text, first) != 0)
        buf_string(message, ": of these only samples and times, or wall and times, go together");
}

/* Adds a condition to the preceding trace=. */
static int give_condition(struct options *o, const char *text, struct buf *message)
{
    struct option_value *v = &o->v[OPT_IF];
    struct option_trace *t = o->n_traces ? &o->traces[o->n_traces - 1] : NULL;
    const char *before = t ? t->condition : v->text;
    if (before) {
        report_twice(message, OPT_IF, text, before, t ? " for one trace" : "");
        return -EINVAL;
    }
    if (t)
        t->condition = text;
    else
        o->condition_first = text;
    *v = (struct option_value){.text = text, .given = true};
    return 0;
}

/* Begins an on=, or adds a then= to the preceding one. */
static int give_trigger(struct options *o, enum option which, const char *text, struct buf *message)
{
    struct option_trigger *t = o->n_triggers ? &o->triggers[o->n_triggers - 1] : NULL;
    if (which == OPT_ON && o->n_triggers == TRIGGERS_MAX) {
        option_put(message, OPT_ON, text);
        buf_printf(message, ": given more than %d times", TRIGGERS_MAX);
        return -EINVAL;
    }
    if (which == OPT_ON) {
        o->triggers[o->n_triggers++] = (struct option_trigger){.condition = text};
        return 0;
    }
    if (!t) {
        o->action_first = true;
        return 0;
    }
    if (t->n_actions == ACTIONS_MAX) {
        option_put(message, OPT_THEN, text);
        buf_string(message, ": ");
        option_put(message, OPT_ON, NULL);
        buf_printf(message, " takes %d of them", ACTIONS_MAX);
        return -EINVAL;
    }
    t->actions[t->n_actions++] = text;
    return 0;
}

static int give(struct options *o, enum option which, char *text, struct buf *message)
{
    const struct option_row *row = &option_table[which];
    struct option_value *v = &o->v[which], new = {0};
    if (row->separator == ':' || row->separator == ',')
        option_list_normalize(text, row->separator);
    int r = option_value_set(&new, which, text, message);
    if (r == 0 && which == OPT_IF)
        return give_condition(o, text, message);
    if (r == 0 && which == OPT_TRACE)
        r = begin_trace(o, text, message);
    if (r == 0 && (which == OPT_ON || which == OPT_THEN))
        r = give_trigger(o, which, text, message);
    if (r == 0 && row->separator)
        r = join(o, which, text, message);
    else if (r == 0 && v->given && !(new.text = both(which, v->text, text)))
        r = -EEXIST;
    if (r == -EEXIST)
        report_twice(message, which, text, v->text, "");
    else if (r == 0 && !row->separator)
        *v = new;
    v->given = true;
    return r == -EEXIST ? -EINVAL : r;
}

/*
 * Parses one NAME=VALUE, or a further word of the preceding option, as in cpu=samples,times. *last
 * is the preceding option, or -1.
 */
static int parse_one(struct options *o, char *item, int *last, struct buf *message)
{
    size_t len = strcspn(item, "=");
    int i = option_find(item, len);
    bool further = i < 0 && !item[len] && (*last == OPT_CPU || *last == OPT_HEAP) &&
                   option_has_word(option_table[*last].values, item, len);
    if (further)
        return give(o, (enum option) * last, item, message);
    *last = i;
    if (i < 0) {
        buf_printf(message, "%.*s: no such option; -agentpath:libhprof.so=help lists them",
                   (int)MIN(len, 80), item);
        return -EINVAL;
    }
    const struct option_row *row = &option_table[i];
    if (item[len] != '=') {
        buf_printf(message, "%s: needs a value: %s=%s", row->name, row->name, row->values);
        return -EINVAL;
    }
    return give(o, (enum option)i, item + len + 1, message);
}

/* Writes an option as it is usually given: without its value if that is the default. */
static void option_put_short(struct buf *message, enum option which, const char *value)
{
    const char *bare = option_table[which].bare;
    option_put(message, which, bare && strcmp(value, bare) == 0 ? NULL : value);
}

/* Returns the part of an option's value that --always refuses, which the caller frees, or NULL. */
static char *refused_part(const struct options *o, enum option which)
{
    const char *refused = option_table[which].always_refuses, *at = o->v[which].text;
    if (!refused || !at)
        return NULL;
    if (strcmp(refused, "*") == 0)
        return strdup(at);
    for (size_t n; *at; at += n + (at[n] == '|')) {
        n = strcspn(at, "|");
        if (option_has_word(refused, at, n))
            return strndup(at, n);
    }
    return NULL;
}

/*
 * Checks that an always-on recording has only options that --always permits, because data that is
 * counted from the beginning of a recording cannot be limited to the last minutes, and that it has
 * a format and a file that can hold it.
 */
static int check_always(const struct options *o, struct buf *message)
{
    bool always = option_always(o);
    for (int i = 0; always && i < OPTION_COUNT; i++) {
        _cleanup_free_ char *part = refused_part(o, (enum option)i);
        if (!part)
            continue;
        option_put_short(message, OPT_ALWAYS, o->v[OPT_ALWAYS].text);
        buf_string(message, " records without an end and keeps the last minutes: ");
        option_put_short(message, (enum option)i, part);
        buf_string(message, " cannot be combined with it");
        return -EINVAL;
    }
    if (always && option_is(o, OPT_ALWAYS, "memory") &&
        (o->v[OPT_FILE].given || o->v[OPT_ONOOM].text)) {
        enum option file = o->v[OPT_FILE].given ? OPT_FILE : OPT_ONOOM;
        option_put(message, OPT_ALWAYS, "memory");
        buf_string(message, " writes no file: ");
        option_put(message, file, NULL);
        buf_string(message, " cannot be combined with it");
        return -EINVAL;
    }
    if (always && !option_format(o)->events) {
        option_put_short(message, OPT_ALWAYS, o->v[OPT_ALWAYS].text);
        buf_string(message, " is recorded only with format=r");
        return -EINVAL;
    }
    return 0;
}

static bool is_on(const struct options *o, enum option which)
{
    return option_table[which].kind == OPTION_YES_NO ? option_on(o, which)
                                                     : o->v[which].text != NULL;
}

/* Returns whether an option of the list is on: "trace|cpu=times". */
static bool any_is_on(const struct options *o, const char *list)
{
    for (const char *at = list; *at; at += strcspn(at, "|"), at += *at == '|') {
        size_t all = strcspn(at, "|"), len = MIN(strcspn(at, "="), all);
        int i = option_find(at, len);
        char word[24];
        snprintf(word, sizeof(word), "%.*s", len < all ? (int)(all - len - 1) : 0,
                 at + len + (len < all));
        if (i < 0)
            continue;
        if (len < all ? option_is(o, (enum option)i, word) : is_on(o, (enum option)i))
            return true;
    }
    return false;
}

static void put_list(struct buf *message, const char *list)
{
    for (const char *at = list; *at; at += strcspn(at, "|"), at += *at == '|') {
        int all = (int)strcspn(at, "|");
        int len = (int)MIN(strcspn(at, "="), (size_t)all), i = option_find(at, (size_t)len);
        _cleanup_free_ char *value =
            len < all ? strndup(at + len + 1, (size_t)(all - len - 1)) : NULL;
        buf_string(message, at == list ? "" : at[all] ? ", " : " or ");
        if (i >= 0)
            option_put(message, (enum option)i, value);
    }
}

/* Refuses an option that applies to the preceding `to` if there is none before it. */
static int comes_first(enum option which, const char *text, enum option to, struct buf *message)
{
    option_put(message, which, text);
    buf_string(message, ": must follow the ");
    option_put(message, to, NULL);
    buf_string(message, " that it applies to");
    return -EINVAL;
}

bool option_has_effect(const struct options *o, enum option which)
{
    const struct option_row *row = &option_table[which];
    const char *list = row->goes_with ? row->goes_with : row->acts_on;
    return !list || any_is_on(o, list);
}

/* Refuses options that would change nothing, because they are mistakes. */
static int check_company(const struct options *o, struct buf *message)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_table[i];
        if (!o->v[i].given || row->acts_on || option_has_effect(o, (enum option)i))
            continue;
        option_put(message, (enum option)i, o->v[i].text);
        buf_string(message, ": has no effect without ");
        put_list(message, row->goes_with);
        return -EINVAL;
    }
    return 0;
}

/* Returns whether a list, separated by commas, contains a text. */
static bool lists(const char *list, const char *text, size_t len)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == len && memcmp(at, text, len) == 0)
            return true;
    return false;
}

/* Refuses fields of a class whose objects are recorded as what toString() returns. */
static int check_shown(const struct options *o, struct buf *message)
{
    const char *texts = o->v[OPT_TOSTRING].text;
    for (const char *at = o->v[OPT_SHOW].text; texts && at && *at; at += *at == ',') {
        size_t n = strcspn(at, ","), dot = n;
        while (dot && at[dot] != '.')
            dot--;
        if (lists(texts, at, dot)) {
            _cleanup_free_ char *field = strndup(at, n);
            option_put(message, OPT_SHOW, field);
            buf_string(message, ": has no effect, because ");
            option_put(message, OPT_TOSTRING, NULL);
            buf_string(message, " names this class: its objects are shown as that text");
            return -EINVAL;
        }
        at += n;
    }
    return 0;
}

static int check_together(const struct options *o, struct buf *message)
{
    int r = check_always(o, message);
    if (r < 0)
        return r;
    /* The specification's help, "Notes". */
    const struct out_format *format = option_format(o);
    if (!format->monitors && option_on(o, OPT_MONITOR)) {
        option_put_refusal(message, OPT_MONITOR, "y", format->letter);
        return -EINVAL;
    }
    if (!format->method_times && (option_is(o, OPT_CPU, "times") || option_is(o, OPT_CPU, "old"))) {
        option_put_refusal(message, OPT_CPU, "old|times", format->letter);
        return -EINVAL;
    }
    const struct option_row *depth = &option_table[OPT_DEPTH];
    if (format->events && o->v[OPT_DEPTH].given && o->v[OPT_DEPTH].number < depth->min_record) {
        option_put(message, OPT_DEPTH, "0");
        buf_printf(message, ": out of range: a recording needs stacks of %llu to %llu methods",
                   (unsigned long long)depth->min_record, (unsigned long long)depth->max);
        return -EINVAL;
    }
    if (option_on(o, OPT_PARK) && !option_on(o, OPT_MONITOR)) {
        buf_printf(message, "park=y requires monitor=y");
        return -EINVAL;
    }
    r = check_company(o, message);
    if (r == 0)
        r = check_shown(o, message);
    if (r == 0 && o->action_first)
        r = comes_first(OPT_THEN, o->v[OPT_THEN].text, OPT_ON, message);
    if (r == 0 && o->condition_first)
        r = comes_first(OPT_IF, o->condition_first, OPT_TRACE, message);
    return r;
}

/* Returns whether a comma at `to` would separate types of a method: trace=C.m(int,long). */
static bool is_within_types(const char *item, const char *to)
{
    int which = option_find(item, strcspn(item, "=")), open = 0;
    for (const char *p = item; p < to; p++)
        open += (*p == '(') - (*p == ')');
    return open > 0 && which >= 0 && option_table[which].separator == ':';
}

/*
 * Cuts the next item off *rest, in place. Items are separated by commas. Inside a value a comma is
 * preceded by a backslash, and backslashes that precede a comma or the end literally are doubled.
 * Elsewhere a backslash is an ordinary character.
 */
static char *next_item(char **rest)
{
    char *item = *rest, *to = item, *at = item;
    if (!item)
        return NULL;
    while (*at && (*at != ',' || is_within_types(item, to))) {
        size_t run = strspn(at, "\\"), keep = run;
        bool escapes = at[run] == ',' || !at[run];
        if (escapes)
            keep = run / 2 + (run % 2 && !at[run]);
        memmove(to, at, keep);
        to += keep;
        at += run;
        if ((escapes && run % 2 && *at) || (!run && *at))
            *to++ = *at++;
    }
    *rest = *at ? at + 1 : NULL;
    *to = 0;
    return item;
}

/* Returns whether the options ask for something to be captured. */
static bool chooses_captures(const struct options *o)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_table[i].gives && is_on(o, (enum option)i))
            return true;
    return false;
}

/* Chooses what is recorded all the time when nothing in particular is asked for. */
static void choose_always(struct options *o)
{
    for (int i = 0; option_always(o) && i < OPTION_COUNT; i++)
        if (option_table[i].always_value && !o->v[i].given) {
            o->v[i].text = option_table[i].always_value;
            o->v[i].number = 1;
        }
}

/*
 * Applies the specification's default, heap=all, if no capture is requested, and only to HPROF's
 * outputs; a recording needs no default.
 */
static void choose_heap(struct options *o)
{
    if (!chooses_captures(o) && !option_format(o)->events)
        o->v[OPT_HEAP] = (struct option_value){.text = "all", .given = true};
}

/*
 * Turns on what shows the causes of requests: the timeline shows what a request waited for, and the
 * samples what it computed.
 */
static void choose_for_requests(struct options *o)
{
    if (!o->v[OPT_REQUESTS].text || !option_format(o)->events)
        return;
    if (!o->v[OPT_THREADS].given)
        o->v[OPT_THREADS] = (struct option_value){.text = "y", .number = 1, .given = true};
    if (!o->v[OPT_CPU].given)
        o->v[OPT_CPU] = (struct option_value){.text = "samples", .given = true};
}

/* Turns on the captures that record what the triggers wait for. */
static int choose_for_triggers(struct options *o)
{
    for (unsigned i = 0; i < o->n_triggers; i++) {
        struct trigger_condition *c = NULL;
        struct buf unused = BUF(4096);
        if (strcmp(o->triggers[i].condition, TRIGGERS_NONE) == 0)
            continue;
        int r = trigger_condition_parse(&c, o->triggers[i].condition, &unused);
        buf_release(&unused);
        if (r < 0)
            return r;
        if ((trigger_condition_has(c, MEASURE_REQUEST) ||
             trigger_condition_has(c, MEASURE_PERCENTILE)) &&
            !o->v[OPT_REQUESTS].text)
            o->v[OPT_REQUESTS] = (struct option_value){.text = "auto", .number = 1};
        if (trigger_condition_has(c, MEASURE_DEADLOCK) && !o->v[OPT_DEADLOCK].given)
            o->v[OPT_DEADLOCK] = (struct option_value){.text = "y", .number = 1, .given = true};
        free(c);
    }
    return 0;
}

int options_parse(struct options *ret, const char *text, struct buf *message)
{
    struct options o = {.storage = strdup(text ? text : "")};
    if (!o.storage)
        return -ENOMEM;
    if (strcmp(o.storage, "help") == 0) {
        o.help = true;
        *ret = o;
        return 0;
    }
    int r = 0;
    int last = -1;
    char *rest = o.storage, *item;
    while (r == 0 && (item = next_item(&rest)))
        r = *item ? parse_one(&o, item, &last, message) : 0;
    if (option_always(&o) && !o.v[OPT_FORMAT].given)
        o.v[OPT_FORMAT] = (struct option_value){.text = "r", .given = true};
    bool record = option_format(&o)->events;
    for (int i = 0; i < OPTION_COUNT && r == 0; i++) {
        const struct option_row *row = &option_table[i];
        const char *value =
            record && row->default_record ? row->default_record : row->default_value;
        if (!o.v[i].given && value)
            r = option_value_set(&o.v[i], (enum option)i, value, message);
    }
    if (r == 0 && !chooses_captures(&o))
        choose_always(&o);
    if (r == 0)
        r = choose_for_triggers(&o);
    if (r == 0)
        choose_for_requests(&o);
    if (r == 0)
        choose_heap(&o);
    if (r == 0)
        r = check_together(&o, message);
    if (r < 0)
        options_release(&o);
    else
        *ret = o;
    return r;
}

void options_release(struct options *o)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        free(o->joined[i]);
    free(o->storage);
    *o = (struct options){0};
}
