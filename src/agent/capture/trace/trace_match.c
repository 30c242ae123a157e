/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/constants.h"
#include "agent/capture/trace/explain.h"
#include "agent/capture/trace/impossible.h"
#include "agent/capture/trace/natives.h"
#include "agent/capture/trace/paths.h"
#include "agent/capture/trace/trace_state.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/shown_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Returns the rules of the patterns that match a method by name or annotation, as a set. A bridge,
 * whose calls would appear twice under one name, matches only a pattern with its parameters.
 * Requires the lock.
 */
static uint64_t matched_rules(const struct instrument_class *c, const struct class_method *m,
                              struct str name, struct str descriptor)
{
    const struct trace_patterns *patterns = &method_trace.rules.patterns;
    const char *p = patterns->list;
    uint64_t rules = 0;
    if (choice_matches(method_trace.exclude, c->name, name, descriptor))
        return 0;
    bool bridge = m && class_method_is_bridge(c->file, m);
    for (unsigned i = 0; i < patterns->n; i++, p += strcspn(p, ":"), p += *p == ':') {
        if (bridge && !choice_names_parameters(p))
            continue;
        if (choice_matches_first(p, c->name, name, descriptor) ||
            (m && trace_annotated(p, c->file, m)))
            rules |= UINT64_C(1) << patterns->rules[i];
    }
    return rules;
}

/* Checks whether a method can meet the conditions of a set of rules. Requires the lock. */
static void fit(const struct traced_method *m, uint64_t set)
{
    for (unsigned i = 1; i < method_trace.rules.n; i++) {
        struct trace_rule *rule = &method_trace.rules.of[i];
        _cleanup_(buf_release) struct buf why = BUF(4096);
        if (!(set >> i & 1) || rule->fits)
            continue;
        rule->fits = !trace_is_impossible(rule->condition, m, NULL, &why);
        if (!rule->fits && !rule->impossible)
            rule->impossible = strdup(buf_str(&why));
    }
}

/*
 * Returns the number of a method that the patterns of these rules match, or -ENOMEM. Rules of
 * patterns that have been removed are dropped from the method. Requires the lock.
 */
static int add_method(struct str class_name, struct str name, struct str descriptor, bool has_this,
                      uint64_t rules)
{
    int number = trace_method_add(&method_trace.methods, class_name, name, descriptor, has_this);
    if (number < 0)
        return number;
    struct traced_method *m = &method_trace.methods.methods.data[number];
    uint64_t before = m->patterns == method_trace.patterns_changed ? m->rules : 0;
    m->patterns = method_trace.patterns_changed;
    m->rules = before | rules;
    atomic_fetch_add(&method_trace.methods_changed, 1);
    fit(m, rules);
    return number;
}

/* A view of the loaded classes, for conditions. */
struct classes {
    JNIEnv *jni;
    enum fit_when when;
};

static bool no_field(void *context, struct str type, const struct cond_test *t, struct buf *why)
{
    const struct classes *c = context;
    bool below = type.len; /* a class that is loaded later may have the field */
    return !(below && c->when == FIT_EARLY) &&
           trace_path_is_missing(c->jni, c->when == FIT_END, type, t, why);
}

static bool no_constant(void *context, struct str type, const struct cond_test *t, struct buf *why)
{
    const struct classes *c = context;
    return trace_no_constant(c->jni, t, type, why);
}

/*
 * Returns whether no method found so far for rule i can meet its condition, given the loaded
 * classes; if pattern is not NULL, only its methods count. In that case *why receives the reason
 * for one of the methods. The lock must not be held.
 */
static bool fits_no_class(JNIEnv *jni, unsigned i, const char *pattern, enum fit_when when,
                          struct buf *why)
{
    const struct trace_rule *rule = &method_trace.rules.of[i];
    const struct trace_classes classes = {no_field, no_constant, &(struct classes){jni, when}};
    bool any = false;
    for (size_t n = 0;; n++) {
        pthread_mutex_lock(&method_trace.lock);
        bool more = n < method_trace.methods.methods.len;
        struct traced_method m =
            more ? method_trace.methods.methods.data[n] : (struct traced_method){0};
        bool is = more && m.patterns == method_trace.patterns_changed && m.rules >> i & 1;
        pthread_mutex_unlock(&method_trace.lock);
        if (!more)
            return any;
        is = is && (!pattern || trace_method_matches(&m, pattern));
        any |= is;
        if (is && !trace_is_impossible(rule->condition, &m, &classes, why))
            return false;
    }
}

void trace_fit_classes(JNIEnv *jni, unsigned i, enum fit_when when)
{
    struct trace_rule *rule = &method_trace.rules.of[i];
    _cleanup_(buf_release) struct buf why = BUF(16384);
    if (!rule->fits || !fits_no_class(jni, i, NULL, when, &why))
        return;
    char *impossible = strdup(buf_str(&why));
    pthread_mutex_lock(&method_trace.lock);
    free(rule->impossible);
    rule->impossible = impossible;
    rule->fits = !impossible;
    pthread_mutex_unlock(&method_trace.lock);
}

bool trace_is_unsatisfiable(unsigned i, struct buf *why)
{
    pthread_mutex_lock(&method_trace.lock);
    const struct trace_rule *rule = &method_trace.rules.of[i];
    bool used = trace_rules_used(&method_trace.rules) >> i & 1,
         impossible = used && !rule->fits && rule->impossible;
    if (impossible)
        buf_printf(why, "the condition can never hold: %s", rule->impossible);
    pthread_mutex_unlock(&method_trace.lock);
    return impossible;
}

bool trace_fits_nothing_loaded(JNIEnv *jni, unsigned i, struct buf *why)
{
    _cleanup_(buf_release) struct buf reason = BUF(16384);
    if (!method_trace.rules.of[i].fits || !fits_no_class(jni, i, NULL, FIT_NOW, &reason))
        return false;
    /* Afterwards, because a class may be loaded meanwhile, after which this is known for good. */
    trace_fit_classes(jni, i, FIT_EARLY);
    if (!trace_is_unsatisfiable(i, why))
        buf_printf(why, "the condition holds for no class loaded so far: %s", buf_str(&reason));
    return true;
}

void trace_report_rule(unsigned i, const char *why, trace_report *f, void *context)
{
    const struct trace_patterns *patterns = &method_trace.rules.patterns;
    _cleanup_(buf_release) struct buf of_rule = BUF(1 << 16);
    const char *p = patterns->list;
    for (unsigned n = 0; n < patterns->n; n++, p += strcspn(p, ":"), p += *p == ':')
        if (patterns->rules[n] == i)
            buf_printf(&of_rule, "%s%.*s", of_rule.len ? "," : "", (int)strcspn(p, ":"), p);
    method_trace.rules.of[i].reported = true;
    f(context, buf_str(&of_rule), why);
}

/*
 * Reports each pattern of rule i for whose methods the condition can never hold, separately,
 * because perhaps only methods of the other patterns can meet it.
 */
static void each_unsatisfiable_pattern(JNIEnv *jni, unsigned i, enum fit_when when, bool unreported,
                                       trace_report *f, void *context)
{
    struct trace_patterns *patterns = &method_trace.rules.patterns;
    const char *p = patterns->list;
    bool all = trace_rules_used(&method_trace.rules) >> i & 1;
    for (unsigned n = 0; n < patterns->n; n++, p += strcspn(p, ":"), p += *p == ':') {
        _cleanup_(buf_release) struct buf why = BUF(16384), reason = BUF(16384);
        _cleanup_free_ char *one = strndup(p, strcspn(p, ":"));
        if (!one || patterns->rules[n] != i)
            continue;
        if ((!unreported || !patterns->reported[n]) && trace_is_named(one) &&
            fits_no_class(jni, i, one, when, &reason)) {
            buf_printf(&why, "the condition can never hold: %s", buf_str(&reason));
            patterns->reported[n] = true;
            f(context, one, buf_str(&why));
        }
        all &= patterns->reported[n];
    }
    method_trace.rules.of[i].reported |= all; /* a class was loaded after the rule was checked */
}

void trace_each_unsatisfiable(JNIEnv *jni, enum fit_when when, bool unreported, trace_report *f,
                              void *context)
{
    for (unsigned i = 1; i < method_trace.rules.n; i++) {
        _cleanup_(buf_release) struct buf why = BUF(16384);
        if (unreported && method_trace.rules.of[i].reported)
            continue;
        trace_fit_classes(jni, i, when);
        if (trace_is_unsatisfiable(i, &why))
            trace_report_rule(i, buf_str(&why), f, context);
        else
            each_unsatisfiable_pattern(jni, i, when, unreported, f, context);
    }
}

/*
 * Inserts probes where patterns match by name. For a typed client, only methods that match by type
 * alone get probes, because the other methods already have them.
 */
static int edit_where(const struct instrument_class *c, struct edit *e, bool by_type)
{
    struct str name = class_utf8(c->file, e->method->name),
               descriptor = class_utf8(c->file, e->method->descriptor);
    bool has_this = !(e->method->access & ACC_STATIC) && !str_is(name, "<init>");
    struct trace_rules known = {0};
    struct shown_name room;
    int number = 0;
    pthread_mutex_lock(&method_trace.lock);
    uint64_t matched = matched_rules(c, e->method, name, descriptor);
    uint64_t rules = by_type ? trace_types_rules(&method_trace.types, c->name) : matched;
    if (drain_is_used(c->name) || choice_matches(method_trace.exclude, c->name, name, descriptor) ||
        (by_type && class_method_is_bridge(c->file, e->method)))
        rules = 0;
    if (rules)
        number = add_method(instrument_shown_name(c, &room), name, descriptor, has_this, rules);
    /*
     * The class may later turn out to be below a type of a pattern; its calls are then recorded for
     * that pattern as well.
     */
    uint64_t probed =
        by_type || !method_trace.types.n_names ? rules : trace_rules_used(&method_trace.rules) | 1;
    if (rules) /* the rules remain valid while others are added */
        known = method_trace.rules;
    pthread_mutex_unlock(&method_trace.lock);
    if (!rules || number < 0 || (by_type && matched))
        return MIN(number, 0);
    return trace_insert(e, number, has_this, &known, probed);
}

static int trace_edit(const struct instrument_class *c, struct edit *e)
{
    return edit_where(c, e, false);
}

static bool is_excluded(struct str class_name)
{
    return choice_matches_class(method_trace.exclude, class_name);
}

static bool trace_wants(struct str class_name)
{
    pthread_mutex_lock(&method_trace.lock);
    const char *patterns = method_trace.rules.patterns.list;
    bool wants = choice_may_match(patterns, class_name) ||
                 (trace_has_annotations(patterns) && !instrument_is_jdk(class_name));
    pthread_mutex_unlock(&method_trace.lock);
    return wants && !is_excluded(class_name);
}

/* Counts a matching method that was left alone, and remembers the reason. */
static void left_where(const struct instrument_class *c, const struct class_method *m,
                       enum instrument_reason why, bool by_type)
{
    struct str name = class_utf8(c->file, m->name), descriptor = class_utf8(c->file, m->descriptor);
    if (drain_is_used(c->name))
        return;
    pthread_mutex_lock(&method_trace.lock);
    bool matched = by_type ? trace_types_rules(&method_trace.types, c->name) &&
                                 !choice_matches(method_trace.exclude, c->name, name, descriptor)
                           : matched_rules(c, m, name, descriptor) != 0;
    pthread_mutex_unlock(&method_trace.lock);
    if (matched)
        trace_left_add(c->name, name, descriptor, why);
}

static void trace_left(const struct instrument_class *c, const struct class_method *m,
                       enum instrument_reason why)
{
    left_where(c, m, why, false);
}

const struct instrument_client trace_client = {
    .name = "trace", .edit = trace_edit, .wants = trace_wants, .left = trace_left};

/*
 * ---- "implements pkg.Type": decided when a class has been loaded and its supertypes are known
 * ----
 */

static void types_on_class(JNIEnv *jni, jclass class, struct str name)
{
    trace_types_on_class(&method_trace.types, jni, class, name);
    trace_paths_on_class(jni, class, name);
}

static bool typed_wants(struct str name)
{
    pthread_mutex_lock(&method_trace.lock);
    bool wants = trace_types_rules(&method_trace.types, name) != 0;
    pthread_mutex_unlock(&method_trace.lock);
    return wants && !is_excluded(name);
}

static void typed_left(const struct instrument_class *c, const struct class_method *m,
                       enum instrument_reason why)
{
    left_where(c, m, why, true);
}

static int typed_edit(const struct instrument_class *c, struct edit *e)
{
    return edit_where(c, e, true);
}

const struct instrument_client trace_typed_client = {.name = "trace implements",
                                                     .edit = typed_edit,
                                                     .wants = typed_wants,
                                                     .left = typed_left,
                                                     .on_class = types_on_class,
                                                     .loaded_only = true};

/* ---- native methods: chosen by name alone ---- */

static bool native_wants_class(struct str class_name)
{
    pthread_mutex_lock(&method_trace.lock);
    bool wants = choice_may_match(method_trace.rules.patterns.list, class_name);
    pthread_mutex_unlock(&method_trace.lock);
    return wants && !is_excluded(class_name) && !drain_is_used(class_name);
}

static int native_wants(const struct native_method *m)
{
    pthread_mutex_lock(&method_trace.lock);
    const struct instrument_class c = {.name = m->class_name};
    uint64_t rules = matched_rules(&c, NULL, m->name, m->descriptor);
    int number =
        rules ? add_method(m->class_name, m->name, m->descriptor, !m->is_static, rules) : -ENOENT;
    pthread_mutex_unlock(&method_trace.lock);
    return number;
}

const struct native_client trace_native_client = {.name = "trace",
                                                  .wants_class = native_wants_class,
                                                  .wants = native_wants,
                                                  .enter = trace_native_enter,
                                                  .exit = trace_native_exit};
