/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace=PATTERN records calls with their arguments and results. Threads write into rings (ring.h);
 * ten times per second the agent's thread pairs entries with exits, applies the condition, and
 * writes each call as one jvmscope.Call event (doc/format.md).
 */
#include "agent/capture/trace/method_trace.h"

#include "agent/capture/trace/explain.h"
#include "agent/capture/trace/hidden.h"
#include "agent/capture/trace/natives.h"
#include "agent/capture/trace/paths.h"
#include "agent/capture/trace/trace_state.h"
#include "agent/capture/trace/unmatched.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/running.h"
#include "agent/session/session.h"
#include "agent/stacks/names.h"
#include "base/clock.h"
#include "base/json.h"
#include "jfr/writer.h"
#include "options/names.h"
#include "options/trace_condition.h"
#include "options/trace_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct jfr_type unmatched_type = {
    .name = "jvmscope.TraceUnmatched",
    .label = "Trace Pattern Without Full Effect",
    .category = "jvmscope|Trace",
    .description = "A pattern that traced nothing, or not all that it means, in the recording",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS(
        {"pattern", "Pattern", "java.lang.String"},
        {"reason", "Reason", "java.lang.String", .description = "Why it traced nothing"},
        {"partly", "Partly", "boolean",
         .description = "True if it traced some methods; the reason is then that of the rest"}),
};

struct method_trace method_trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool any_is_unsatisfiable(JNIEnv *jni, struct buf *why)
{
    bool impossible = false;
    for (unsigned i = 1; i < method_trace.rules.n && !impossible; i++) {
        trace_fit_classes(jni, i, FIT_NOW);
        impossible = trace_is_unsatisfiable(i, why);
    }
    return impossible;
}

static bool trace_wanted(const struct options *o)
{
    return o->v[OPT_TRACE].text != NULL;
}

static int trace_load(struct session *s, struct buf *why)
{
    int r = trace_rules_set(&method_trace.rules, &s->options, why);
    if (r < 0)
        return r;
    method_trace.budget = budget_of(&s->options);
    method_trace.false_condition = 0;
    method_trace.unmet = method_trace.unmet_seen = 0;
    method_trace.fit_changed = atomic_load(&method_trace.methods_changed);
    method_trace.fit_due_ns = 0;
    method_trace.fit_wait_ns = NS_PER_SECOND;
    method_trace.live = vm_is_live();
    method_trace.arguments = method_trace.returned = BUF(TRACE_VALUES_MAX);
    method_trace.exception = method_trace.message = BUF(4096);
    method_trace.patterns_changed++;
    r = jfr_declare(s->out.jfr, &unmatched_type, 1, &method_trace.unmatched_type);
    return r < 0 ? r : jfr_declare(s->out.jfr, &trace_call_type, 1, &method_trace.type);
}

/*
 * Requests the static fields of the conditions before any class is searched. Returns 1 if there are
 * any, because their classes may be loaded later.
 */
static int name_statics(void)
{
    const struct cond_test *t;
    int r = 0;
    for (unsigned i = 1; i < method_trace.rules.n && r >= 0; i++)
        for (unsigned k = 0; r >= 0 && (t = condition_path(method_trace.rules.of[i].condition, k));
             k++)
            if (t->what == COND_STATIC)
                r = MIN(trace_path_name_static(t->path), 0) ?: 1;
    return r;
}

/* Finds the types and the static fields that patterns and conditions name. */
static int set_types(JNIEnv *jni, struct buf *why)
{
    int r = trace_types_set(&method_trace.types, &method_trace.rules.patterns, jni);
    if (r == -ENOSPC)
        buf_printf(why, "too many types after implements: at most %d", TRACE_TYPES_MAX);
    if (r >= 0)
        trace_paths_find(jni);
    return r;
}

/* Inserts probes into what the types of the patterns match now, and removes those of others. */
static int apply_types(JNIEnv *jni, bool wanted, struct buf *why)
{
    if (wanted && method_trace.typed)
        return instrument_change(&trace_typed_client, jni);
    if (!wanted && method_trace.typed)
        instrument_off(&trace_typed_client, jni);
    method_trace.typed = wanted;
    return wanted ? instrument_on(&trace_typed_client, jni, why) : 0;
}

/*
 * Inserts probes into everything that the patterns match now. again: the patterns were replaced; no
 * call is lost of methods that were traced before and still are.
 */
static int apply(JNIEnv *jni, bool again, struct buf *why)
{
    int statics = name_statics();
    if (statics == -ENOTSUP)
        buf_string(why, "too many static fields in conditions");
    int types = statics < 0 ? statics : set_types(jni, why);
    int r = types < 0 ? types
            : again   ? instrument_change(&trace_client, jni)
                      : instrument_on(&trace_client, jni, why);
    r = r < 0 ? r : apply_types(jni, types || statics, why);
    if (r >= 0 && again)
        native_calls_change(jni);
    if (r < 0 || again)
        return r;
    r = trace_natives_open(jni, drain_probe());
    r = r < 0 ? r : native_calls_on(&trace_native_client, jni, why);
    return r < 0 ? r : trace_hidden_on(jni);
}

static void take_back(JNIEnv *jni)
{
    trace_hidden_off();
    native_calls_off(&trace_native_client, jni);
    instrument_off(&trace_client, jni);
    if (method_trace.typed)
        instrument_off(&trace_typed_client, jni);
    method_trace.typed = false;
}

static bool is_traced(const struct method *m)
{
    return choice_matches(
        method_trace.rules.patterns.list, (struct str){m->class_name, strlen(m->class_name)},
        (struct str){m->name, strlen(m->name)}, (struct str){m->descriptor, strlen(m->descriptor)});
}

static void report_unmatched(void *context, const char *pattern, enum trace_result traced,
                             const char *why)
{
    session_message(context, "trace %s: %s: %s", pattern,
                    traced == TRACED_PARTLY ? "does not trace all that it matches"
                                            : "traces nothing so far",
                    why);
}

static void report_unsatisfiable(void *context, const char *patterns, const char *why)
{
    report_unmatched(context, patterns, TRACED_NOTHING, why);
}

static int trace_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    method_trace.exclude = s->options.v[OPT_EXCLUDE].text;
    int r = drain_open(&trace_call_reader, s, jni, why);
    if (r == 0)
        r = apply(jni, false, why);
    if (r >= 0 && method_trace.live && any_is_unsatisfiable(jni, why))
        return -EINVAL;
    if (r >= 0 && method_trace.live) {
        trace_each_unmatched(jni, NULL, report_unmatched, s);
        trace_each_unsatisfiable(jni, FIT_NOW, true, report_unsatisfiable, s);
        instrument_lose_running(s->out.jfr, jni, LOSS_TRACE_RUNNING, is_traced);
    }
    return r;
}

static int trace_begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    drain_begin();
    return 0;
}

struct unmatched {
    struct json *json;
    enum trace_result traced; /* only patterns with this result */
};

static void put_unmatched(void *context, const char *pattern, enum trace_result traced,
                          const char *why)
{
    const struct unmatched *u = context;
    struct json *j = u->json;
    if (traced != u->traced)
        return;
    json_begin_object(j);
    json_key_string(j, "pattern", pattern);
    json_key_string(j, "why", why);
    json_end_object(j);
}

/* Returns whether a method is traced now. Requires the lock. */
static bool is_traced_now(size_t i)
{
    const struct traced_method *m = &method_trace.methods.methods.data[i];
    return m->rules && m->patterns == method_trace.patterns_changed;
}

/* What a request adds or removes, and the methods that were traced before. */
struct change {
    const char *verb; /* "added" or "removed"; NULL: nothing is changed */
    const char *patterns;
    bool *traced;
    size_t n_traced;
};

static int change_begin(struct change *c, const char *verb, const char *patterns)
{
    pthread_mutex_lock(&method_trace.lock);
    c->n_traced = method_trace.methods.methods.len;
    c->traced = calloc(c->n_traced + 1, sizeof(*c->traced));
    for (size_t i = 0; c->traced && i < c->n_traced; i++)
        c->traced[i] = is_traced_now(i);
    pthread_mutex_unlock(&method_trace.lock);
    c->verb = verb;
    c->patterns = patterns;
    return c->traced ? 0 : -ENOMEM;
}

static void change_release(struct change *c)
{
    free(c->traced);
}

/*
 * Writes the answer to a request that adds or removes patterns: the patterns, and the methods that
 * are newly traced.
 */
static void put_change(struct json *j, const struct change *c)
{
    if (!c->verb)
        return;
    json_key_array(j, c->verb);
    for (const char *p = c->patterns; *p; p += strcspn(p, ":"), p += *p == ':')
        json_string_n(j, p, strcspn(p, ":"));
    json_end_array(j);
    json_key_array(j, "methods_added");
    for (size_t i = 0; i < method_trace.methods.methods.len; i++)
        if (is_traced_now(i) && !(i < c->n_traced && c->traced[i]))
            json_string(j, method_trace.methods.methods.data[i].text);
    json_end_array(j);
}

/* Writes the patterns, each with its condition if it has one. Requires the lock. */
static void put_patterns(struct json *j, bool conditions)
{
    const struct trace_patterns *patterns = &method_trace.rules.patterns;
    const char *p = patterns->list;
    json_begin_array(j);
    for (unsigned i = 0; i < patterns->n; i++) {
        size_t n = strcspn(p, ":");
        if (!conditions) {
            json_string_n(j, p, n);
        } else if (patterns->rules[i]) {
            json_begin_object(j);
            json_key_string_n(j, "pattern", p, n);
            json_key_string(j, "if", method_trace.rules.of[patterns->rules[i]].text);
            json_end_object(j);
        }
        p += n + (p[n] == ':');
    }
    json_end_array(j);
}

static void put_all_unmatched(JNIEnv *jni, struct json *j, const char *key, const char *among,
                              enum trace_result traced)
{
    json_key_array(j, key);
    trace_each_unmatched(jni, among, put_unmatched, &(struct unmatched){j, traced});
    json_end_array(j);
}

static void put_state(JNIEnv *jni, const struct change *change, struct buf *out)
{
    struct json j = {.out = out};
    pthread_mutex_lock(&method_trace.lock);
    json_begin_object(&j);
    put_change(&j, change);
    json_key(&j, "patterns");
    put_patterns(&j, false);
    json_key(&j, "conditions");
    put_patterns(&j, true);
    json_key_array(&j, "methods"); /* the methods that match now */
    for (size_t i = 0; i < method_trace.methods.methods.len; i++)
        if (is_traced_now(i))
            json_string(&j, method_trace.methods.methods.data[i].text);
    json_end_array(&j);
    pthread_mutex_unlock(&method_trace.lock);
    if (change->verb && strcmp(change->verb, "added") == 0) {
        put_all_unmatched(jni, &j, "unmatched_added", change->patterns, TRACED_NOTHING);
        put_all_unmatched(jni, &j, "partly_traced_added", change->patterns, TRACED_PARTLY);
    }
    put_all_unmatched(jni, &j, "unmatched", NULL, TRACED_NOTHING);
    put_all_unmatched(jni, &j, "partly_traced", NULL, TRACED_PARTLY);
    json_end_object(&j);
}

/* Replaces the patterns, and inserts and removes probes accordingly. */
static int replace(JNIEnv *jni, struct trace_patterns patterns, struct trace_patterns *ret_before,
                   struct buf *why)
{
    if (!patterns.n)
        take_back(jni);
    pthread_mutex_lock(&method_trace.lock);
    bool traced = method_trace.rules.patterns.n > 0;
    *ret_before = method_trace.rules.patterns;
    method_trace.rules.patterns = patterns;
    method_trace.patterns_changed++;
    pthread_mutex_unlock(&method_trace.lock);
    return patterns.n ? apply(jni, traced, why) : 0;
}

/*
 * Adds the patterns of a list, or removes them. Returns 0, -ENOMEM, or -ESRCH with a sentence in
 * why when one that should be removed does not exist.
 */
static int change_patterns(struct trace_patterns *ret, const char *list, bool add, unsigned rule,
                           struct buf *why)
{
    _cleanup_free_ char *copy = strdup(list);
    const struct trace_patterns *now = &method_trace.rules.patterns;
    struct trace_patterns last = {0}, next;
    bool had = true;
    int r = copy ? 0 : -ENOMEM;
    for (char *one, *rest = copy; r == 0 && (one = strsep(&rest, ":"));) {
        r = add ? trace_patterns_with(&next, now, one, rule)
                : trace_patterns_without(&next, now, one, &had);
        if (r == 0) {
            trace_patterns_release(&last);
            last = next;
            now = &last;
        }
        if (r == 0 && !had) {
            buf_printf(why, "%s: " TRACE_PATTERN_ABSENT, one);
            r = -ESRCH;
        }
    }
    if (r < 0)
        trace_patterns_release(&last);
    else
        *ret = last;
    return r;
}

static const char *condition_of(const struct trace_patterns *patterns, unsigned i)
{
    return patterns->rules[i] ? method_trace.rules.of[patterns->rules[i]].text : NULL;
}

/* Reports the patterns that were added again with another condition. */
static void report_replaced(struct session *s, const struct trace_patterns *before)
{
    const struct trace_patterns *now = &method_trace.rules.patterns;
    const char *p = before->list;
    for (unsigned i = 0; i < before->n; i++, p += strcspn(p, ":"), p += *p == ':') {
        const char *q = now->list;
        size_t len = strcspn(p, ":");
        for (unsigned k = 0; k < now->n; k++, q += strcspn(q, ":"), q += *q == ':') {
            const char *old = condition_of(before, i), *new = condition_of(now, k);
            if (strcspn(q, ":") != len || strncmp(p, q, len) != 0 ||
                strcmp(old ? old : "", new ? new : "") == 0)
                continue;
            session_message(s, "trace %.*s: replaced: %s%s, instead of %s%s", (int)len, p,
                            new ? "now with --if " : "now all calls", new ? new : "",
                            old ? "--if " : "all calls", old ? old : "");
        }
    }
}

static int add_patterns(struct session *s, JNIEnv *jni, const char *list, const char *condition,
                        struct buf *why)
{
    struct trace_patterns patterns, before;
    pthread_mutex_lock(&method_trace.lock);
    int rule = trace_rule_add(&method_trace.rules, condition, why);
    pthread_mutex_unlock(&method_trace.lock);
    int r = rule < 0 ? rule : change_patterns(&patterns, list, true, (unsigned)rule, why);
    if (r < 0)
        return r;
    /* Rings are emptied while classes are changed. */
    method_trace.trying = true;
    r = replace(jni, patterns, &before, why);
    if (r >= 0 && rule)
        trace_fit_classes(jni, (unsigned)rule, FIT_NOW);
    if (r >= 0 && rule && trace_is_unsatisfiable((unsigned)rule, why)) {
        r = replace(jni, before, &before, why);
        r = MIN(r, 0) ?: -EINVAL;
    }
    method_trace.trying = false;
    if (r >= 0) {
        trace_hidden_count(jni);
        report_replaced(s, &before);
        trace_each_unsatisfiable(jni, FIT_NOW, true, report_unsatisfiable, s);
    }
    trace_patterns_release(&before);
    return r;
}

static int remove_patterns(JNIEnv *jni, const char *list, struct buf *why)
{
    struct trace_patterns patterns, before;
    int r = change_patterns(&patterns, list, false, 0, why);
    if (r == 0) {
        r = replace(jni, patterns, &before, why);
        trace_patterns_release(&before);
    }
    return r;
}

int method_trace_switch(struct session *s, JNIEnv *jni, const char *request, struct buf *out,
                        struct buf *why)
{
    bool add = strncmp(request, "add ", 4) == 0, remove = strncmp(request, "remove ", 7) == 0;
    _cleanup_free_ char *list = strdup(add ? request + 4 : remove ? request + 7 : "");
    const char *condition = list && add ? trace_request_split(list) : NULL;
    _cleanup_(change_release) struct change change = {0};
    if (!method_trace.rules.patterns.list) {
        buf_string(why, "no calls are being traced");
        return -ESRCH;
    }
    int r = list ? 0 : -ENOMEM;
    if (r == 0 && remove)
        option_list_normalize(list, ':');
    if (r == 0 && (add || remove))
        r = change_begin(&change, add ? "added" : "removed", list);
    if (r == 0 && add)
        r = add_patterns(s, jni, list, condition, why);
    else if (r == 0 && remove)
        r = remove_patterns(jni, list, why);
    if (r >= 0)
        put_state(jni, &change, out);
    return r;
}

static void trace_stop(struct session *s, JNIEnv *jni)
{
    drain_shut(now_ns());
    take_back(jni);
    trace_types_release(&method_trace.types, jni);
    drain_close(&trace_call_reader, s->out.jfr, jni);
    jfr_lose(s->out.jfr, LOSS_TRACE_OPEN, method_trace.open.n_open);
    open_calls_release(&method_trace.open);
}

static void trace_release(struct session *s)
{
    trace_rules_release(&method_trace.rules);
    trace_paths_forget();
    method_trace.exclude = NULL;
    vec_release(&method_trace.known);
    trace_left_clear();
    buf_release(&method_trace.arguments);
    buf_release(&method_trace.returned);
    buf_release(&method_trace.exception);
    buf_release(&method_trace.message);
}

static void report_unsatisfied(void *context, const char *pattern, const char *why)
{
    session_report(context, "trace %s: traces nothing so far: %s", pattern, why);
}

/*
 * Reports conditions on fields that no loaded class has, once the condition has failed for a call.
 * A class that is loaded later may still have the field.
 */
static void report_unmet(struct session *s, JNIEnv *jni)
{
    uint64_t fresh = method_trace.unmet & ~method_trace.unmet_seen;
    method_trace.unmet_seen |= fresh;
    for (unsigned i = 1; fresh && i < method_trace.rules.n; i++) {
        _cleanup_(buf_release) struct buf why = BUF(16384);
        bool due = fresh >> i & 1 && !method_trace.rules.of[i].reported;
        if (due && trace_fits_nothing_loaded(jni, i, &why))
            trace_report_rule(i, buf_str(&why), report_unsatisfied, s);
    }
}

/*
 * Reports conditions that can never hold, while the program runs. They are checked soon after the
 * method's class was loaded, and then at growing intervals, because they may depend on classes that
 * are loaded later.
 */
static void report_impossible(struct session *s, JNIEnv *jni)
{
    unsigned changed = atomic_load(&method_trace.methods_changed);
    uint64_t now = now_ns();
    if (method_trace.rules.n <= 1)
        return;
    if (method_trace.fit_changed != changed) {
        method_trace.fit_changed = changed;
        method_trace.fit_wait_ns = NS_PER_SECOND;
    } else if (now < method_trace.fit_due_ns) {
        return;
    } else {
        method_trace.fit_wait_ns *= 2;
    }
    method_trace.fit_due_ns = now + method_trace.fit_wait_ns;
    trace_each_unsatisfiable(jni, FIT_EARLY, true, report_unsatisfied, s);
}

static void trace_drain(struct session *s, JNIEnv *jni)
{
    drain_round(s, jni);
    open_calls_forget_idle(&method_trace.open);
    if (!method_trace.trying) {
        report_impossible(s, jni);
        report_unmet(s, jni);
    }
    budget_lose(&method_trace.budget, s->out.jfr, LOSS_TRACE_LIMIT, LOSS_TRACE_RATE,
                LOSS_TRACE_BYTES);
}

static void write_unmatched(void *context, const char *pattern, enum trace_result traced,
                            const char *why)
{
    struct jfr_writer *w = context;
    struct jfr_event e;
    if (!jfr_begin(w, method_trace.unmatched_type, strlen(pattern) + strlen(why) + 64, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, pattern);
    jfr_put_string(&e, why);
    jfr_put_byte(&e, traced == TRACED_PARTLY);
    jfr_commit(&e);
}

static void write_unsatisfiable(void *context, const char *patterns, const char *why)
{
    write_unmatched(context, patterns, TRACED_NOTHING, why);
}

static void trace_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    if (reason == DUMP_REQUEST)
        return;
    trace_each_unmatched(jni, NULL, write_unmatched, s->out.jfr);
    trace_each_unsatisfiable(jni, FIT_END, false, write_unsatisfiable, s->out.jfr);
}

static void trace_status(struct session *s, struct buf *out)
{
    uint64_t methods = 0; /* the table also has those of earlier recordings */
    pthread_mutex_lock(&method_trace.lock);
    for (size_t i = 0; i < method_trace.methods.methods.len; i++)
        methods += is_traced_now(i);

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"calls", method_trace.budget.written},
                {"methods", methods},
                {"condition_false", method_trace.false_condition},
                {"open", method_trace.open.n_open}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(out, "trace.%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    pthread_mutex_unlock(&method_trace.lock);
    budget_status(&method_trace.budget, "trace", out);
    native_calls_status(out);
}

const struct capture capture_method_trace = {
    .name = "trace",
    .options = OPTION_BIT(OPT_TRACE) | OPTION_BIT(OPT_IF),
    .changes_classes = true,
    .needs = {.can_retransform_classes = 1},
    .records_only = true,
    .wanted = trace_wanted,
    .load = trace_load,
    .start = trace_start,
    .begin = trace_begin,
    .shut = drain_shut,
    .overloaded = drain_is_overloaded,
    .stop = trace_stop,
    .release = trace_release,
    .flush = trace_drain,
    .drain = trace_drain,
    .dump = trace_dump,
    .status = trace_status,
};
