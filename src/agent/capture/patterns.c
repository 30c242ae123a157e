/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports patterns of locks=, include= and others that match no loaded class, because a misspelt
 * pattern would otherwise leave a recording silently empty. The report is made when a recording of
 * a running VM begins, and at its end: in the recording, or, for HPROF's output, which has no place
 * for it, as a message.
 */
#include "agent/session/capture.h"

#include "agent/capture/trace/explain.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/loaded.h"
#include "agent/instrument/named_class.h"
#include "agent/session/session.h"
#include "agent/vm/field_guess.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/clock.h"
#include "base/dotted.h"
#include "base/pattern.h"
#include "classfile/classfile.h"
#include "jfr/writer.h"
#include "options/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct jfr_type unmatched_type = {
    .name = "jvmscope.PatternUnmatched",
    .label = "Pattern Without Effect",
    .category = "jvmscope",
    .description = "A pattern of an option that had no effect by the end of the recording",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS(
        {"option", "Option", "java.lang.String"}, {"pattern", "Pattern", "java.lang.String"},
        {"nested", "Similar Name", "java.lang.String"}, {"reason", "Reason", "java.lang.String"}),
};

enum { PATTERNS_MAX = 256 };

static const enum option lists[] = {OPT_LOCKS, OPT_INCLUDE,  OPT_EXCLUDE,
                                    OPT_SHOW,  OPT_TOSTRING, OPT_REQUESTS};

struct pattern {
    enum option option;
    char *text;
    bool matched;
    bool is_method; /* the pattern names a method of a loaded class */
    struct choice_guess guess;
    struct field_guess field; /* of show= */
    char method[400]; /* "pkg.Class.method", inherited or similar, for the one that requests= names
                       */
    /* Of requests=: the class and the name of a method that matches and cannot be a request. */
    char left_class[256], left_method[256];
    const char *left_why;
};

static const char is_abstract[] = "is abstract", is_native[] = "is native";

struct patterns {
    JNIEnv *jni;
    struct pattern *of; /* room for PATTERNS_MAX */
    unsigned n;
};

static uint32_t type;
/* the recording began in a VM that was already running, so its classes have been loaded */
static bool live;

static void patterns_release(struct patterns *p)
{
    for (unsigned i = 0; i < p->n; i++)
        free(p->of[i].text);
    free(p->of);
    *p = (struct patterns){0};
}

static void split(struct patterns *ret, enum option option, const char *list)
{
    /* The fields and classes of traced objects may be separated by these characters too. */
    const char *separators = option == OPT_SHOW || option == OPT_TOSTRING ? ":, " : ":";
    for (const char *p = list; p && *p && ret->n < PATTERNS_MAX;) {
        size_t n = strcspn(p, separators);
        bool none = !n || (option == OPT_REQUESTS && option_is_auto(p, n));
        char *text = none ? NULL : strndup(p, n);
        if (text)
            ret->of[ret->n++] = (struct pattern){.option = option, .text = text};
        p += n + (p[n] != 0);
    }
}

/*
 * Returns whether a class declares a method that the pattern matches and that f, unless it is NULL,
 * accepts.
 */
static bool declares_method(jclass c, struct str class_name, const char *pattern,
                            bool (*f)(void *context, jmethodID m, const char *name), void *context)
{
    jint n = 0;
    jmethodID *methods = NULL;
    bool is = false;
    if ((*vm.ti)->GetClassMethods(vm.ti, c, &n, &methods) != JVMTI_ERROR_NONE)
        return true; /* the VM does not report its loaded classes */
    for (jint i = 0; i < n && !is; i++) {
        char *name = NULL, *descriptor = NULL;
        if ((*vm.ti)->GetMethodName(vm.ti, methods[i], &name, &descriptor, NULL) !=
            JVMTI_ERROR_NONE)
            continue;
        is = choice_matches(pattern, class_name, (struct str){name, strlen(name)},
                            (struct str){descriptor, strlen(descriptor)}) &&
             (!f || f(context, methods[i], name));
        vm_free(name);
        vm_free(descriptor);
    }
    vm_free(methods);
    return is;
}

/* Returns the dot before the last name of a pattern, which types may follow, or NULL. */
static const char *last_dot(const char *pattern)
{
    return memrchr(pattern, '.', strcspn(pattern, "("));
}

/*
 * Returns whether the class or one of its methods matches: pkg.Outer.Inner may also be the method
 * Inner of pkg.Outer. Methods are searched only where the pattern names their class without a star.
 */
static bool is_chosen(const char *pattern, jclass c, struct str name)
{
    const char *last = last_dot(pattern);
    if (choice_matches_class(pattern, name))
        return true;
    return choice_may_match(pattern, name) &&
           (!last || !last[1] || memchr(pattern, '*', (size_t)(last - pattern)) ||
            declares_method(c, name, pattern, NULL, NULL));
}

/* Returns whether a class is among those to which a pattern of the option refers. */
static bool is_meant(const struct pattern *p, jclass c, struct str name)
{
    char class_name[512];
    if (p->option == OPT_LOCKS)
        return choice_matches_class(p->text, name);
    if (p->option == OPT_TOSTRING && strchr(p->text, '*')) {
        dotted_copy(class_name, sizeof(class_name), name);
        return pattern_match_one(p->text, class_name, strlen(class_name));
    }
    if (p->option == OPT_TOSTRING)
        return choice_is_class(name, p->text);
    if (p->option != OPT_SHOW)
        return is_chosen(p->text, c, name);
    const char *dot = strrchr(p->text, '.');
    if (!dot || (size_t)(dot - p->text) >= sizeof(class_name))
        return false;
    snprintf(class_name, sizeof(class_name), "%.*s", (int)(dot - p->text), p->text);
    return choice_is_class(name, class_name) && loaded_class_declares_field(vm.ti, c, dot + 1);
}

/* Considers a class that is named by the part of the pattern before its last dot. */
static void see_member(struct pattern *p, JNIEnv *jni, jclass c, struct str name)
{
    const char *dot = last_dot(p->text);
    _cleanup_free_ char *class =
        dot && p->option != OPT_TOSTRING ? strndup(p->text, (size_t)(dot - p->text)) : NULL;
    if (!class || !choice_is_class(name, class))
        return;
    if (p->option == OPT_SHOW) {
        field_guess_see(&p->field, jni, c, dot + 1);
        return;
    }
    _cleanup_(buf_release) struct buf method = BUF(sizeof(p->method));
    p->is_method = true;
    if (named_class_inherits(jni, c, dot + 1, &method) || named_class_similar(c, dot + 1, &method))
        snprintf(p->method, sizeof(p->method), "%s", buf_str(&method));
}

/* Considers a class as one whose name, in the option, is misspelt. */
static void see_spelling(struct pattern *p, jclass c, struct str name)
{
    const char *dot = last_dot(p->text);
    bool show = p->option == OPT_SHOW, member = show || p->option == OPT_REQUESTS;
    if ((!member && p->option != OPT_TOSTRING) || strchr(p->text, '*') || (member && !dot))
        return;
    struct choice_guess one = {0};
    _cleanup_free_ char *class =
        strndup(p->text, member ? (size_t)(dot - p->text) : strlen(p->text));
    if (class && !choice_is_class(name, class))
        choice_guess_spelling(&one, name, class);
    if (one.rank && (!show || loaded_class_declares_field(vm.ti, c, dot + 1)))
        choice_guess_prefer(&p->guess, &one);
}

/* Appends what the pattern probably means, if anything, as it should be written. */
static void put_guess(struct buf *b, const struct pattern *p)
{
    /* A request names a method: where its class is loaded, a similar class is not meant. */
    bool loaded = p->is_method && p->option == OPT_REQUESTS;
    if (p->guess.rank && !p->field.is_inherited && !*p->method && !loaded)
        buf_printf(b, "%s%s", p->guess.name, p->option == OPT_SHOW ? strrchr(p->text, '.') : "");
    else
        buf_string(b, *p->field.name ? p->field.name : p->method);
}

struct left_out {
    struct pattern *pattern;
    struct str class_name;
    const char *why; /* why no method of the class can be a request, or NULL */
};

/* Returns whether calls of a method can be requests. Keeps the first that cannot, and why. */
static bool can_be_request(void *context, jmethodID m, const char *name)
{
    const struct left_out *l = context;
    struct pattern *p = l->pattern;
    jint modifiers = 0;
    (void)(*vm.ti)->GetMethodModifiers(vm.ti, m, &modifiers);
    const char *why = l->why                     ? l->why
                      : modifiers & ACC_ABSTRACT ? is_abstract
                      : modifiers & ACC_NATIVE   ? is_native
                                                 : NULL;
    if (why && !p->left_why) {
        p->left_why = why;
        dotted_copy(p->left_class, sizeof(p->left_class), l->class_name);
        snprintf(p->left_method, sizeof(p->left_method), "%s", name);
    }
    return !why;
}

/*
 * Returns whether calls of some method of a class, which the pattern of requests= matches, can be
 * requests. The methods are not searched if the pattern has a star in the name of the class.
 */
static bool has_requests(struct pattern *p, jclass c, struct str name)
{
    const char *last = last_dot(p->text);
    struct left_out left = {.pattern = p, .class_name = name};
    if (last && memchr(p->text, '*', (size_t)(last - p->text)))
        return true;
    if (choice_is_core(name))
        left.why = "belongs to the JDK, whose methods cannot be requests";
    else if (!loaded_may_change(c, name))
        left.why = "belongs to a class that the VM does not allow to be changed";
    return declares_method(c, name, p->text, can_be_request, &left);
}

/* Appends why the methods that match cannot be requests. Searches all classes. */
static void put_left(JNIEnv *jni, const struct pattern *p, struct buf *why)
{
    buf_printf(why, "%s.%s %s", p->left_class, p->left_method, p->left_why);
    if (p->left_why == is_abstract)
        trace_explain_implemented(jni, p->left_class, p->left_method, why);
}

struct other_name {
    const struct pattern *pattern;
    jclass class;
};

static bool means(void *context, struct str name)
{
    const struct other_name *o = context;
    return is_meant(o->pattern, o->class, name);
}

static bool match(void *context, jclass c, struct str name)
{
    struct patterns *p = context;
    for (unsigned i = 0; i < p->n; i++) {
        struct pattern *one = &p->of[i];
        bool meant = one->matched || is_meant(one, c, name);
        one->matched |= meant && (one->option != OPT_REQUESTS || has_requests(one, c, name));
        if (meant)
            continue;
        see_member(one, p->jni, c, name);
        choice_guess_see(&one->guess, name, means, &(struct other_name){one, c});
        see_spelling(one, c, name);
    }
    return false;
}

/* Collects the patterns of a session, and finds which of them match a loaded class. */
static void fill(struct patterns *ret, const struct session *s, JNIEnv *jni)
{
    ret->jni = jni;
    ret->of = calloc(PATTERNS_MAX, sizeof(*ret->of));
    for (size_t i = 0; ret->of && i < ARRAY_SIZE(lists); i++)
        split(ret, lists[i], s->options.v[lists[i]].text);
    if (ret->n && loaded_classes_each(vm.ti, jni, match, ret) < 0)
        patterns_release(ret);
}

static bool wanted(const struct options *o)
{
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        any |= o->v[lists[i]].text != NULL;
    return any;
}

static int load(struct session *s, struct buf *why)
{
    live = vm_is_live();
    return !s->out.jfr ? 0 : jfr_declare(s->out.jfr, &unmatched_type, 1, &type);
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    _cleanup_(patterns_release) struct patterns p = {0};
    if (live)
        fill(&p, s, jni);
    for (unsigned i = 0; i < p.n; i++) {
        const struct pattern *one = &p.of[i];
        _cleanup_(buf_release) struct buf guess = BUF(4096);
        if (one->matched)
            continue;
        if (one->left_why) {
            put_left(jni, one, &guess);
            session_message(s, "%s %s: nothing so far: %s", option_table[one->option].name,
                            one->text, buf_str(&guess));
            continue;
        }
        put_guess(&guess, one);
        session_message(s, "%s %s: %s%s%s", option_table[one->option].name, one->text,
                        one->is_method
                            ? "nothing so far: the class is loaded and has no such method"
                        : one->option == OPT_SHOW ? "no class that is loaded so far has this field"
                                                  : "no class that is loaded so far matches",
                        guess.len ? ", but there is " : "", buf_str(&guess));
    }
    return 0;
}

static void report_unmatched(struct session *s, const struct pattern *p)
{
    _cleanup_(buf_release) struct buf guess = BUF(4096);
    put_guess(&guess, p);
    session_warn(s, "%s %s: nothing that was loaded matches%s%s", option_table[p->option].name,
                 p->text, guess.len ? ", but there is " : "", buf_str(&guess));
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    _cleanup_(patterns_release) struct patterns p = {0};
    struct jfr_event e;
    if (reason != DUMP_REQUEST)
        fill(&p, s, jni);
    for (unsigned i = 0; i < p.n; i++) {
        const char *name = option_table[p.of[i].option].name;
        _cleanup_(buf_release) struct buf guess = BUF(4096), left = BUF(4096);
        if (p.of[i].matched)
            continue;
        if (!s->out.jfr) {
            report_unmatched(s, &p.of[i]);
            continue;
        }
        if (p.of[i].left_why)
            put_left(jni, &p.of[i], &left);
        else
            put_guess(&guess, &p.of[i]);
        size_t texts = strlen(name) + strlen(p.of[i].text) + guess.len + left.len;
        if (!jfr_begin(s->out.jfr, type, texts + 64, &e))
            continue;
        jfr_put_time(&e, now_ns());
        jfr_put_string(&e, name);
        jfr_put_string(&e, p.of[i].text);
        jfr_put_string(&e, guess.len ? buf_str(&guess) : NULL);
        jfr_put_string(&e, left.len ? buf_str(&left) : NULL);
        jfr_commit(&e);
    }
}

const struct capture capture_patterns = {
    .name = "patterns",
    .wanted = wanted,
    .load = load,
    .start = start,
    .dump = dump,
};
