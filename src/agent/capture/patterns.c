/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports patterns of locks=, include= and requests= that match no loaded class, because a misspelt
 * pattern would otherwise leave a recording silently empty. The report is made when a recording of
 * a running VM begins, and in the recording at its end.
 */
#include "agent/capture.h"

#include "agent/instrument/choice.h"
#include "agent/loaded_classes.h"
#include "agent/session.h"
#include "base/clock.h"
#include "jfr/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct jfr_type unmatched_type = {
    .name = "jvmscope.PatternUnmatched",
    .label = "Pattern without Classes",
    .category = "jvmscope",
    .description =
        "A pattern of an option that no class has matched up to the end of the recording",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"option", "Option", "java.lang.String"},
                         {"pattern", "Pattern", "java.lang.String"}),
};

enum { PATTERNS_MAX = 256 };

static const enum option lists[] = {OPT_LOCKS, OPT_INCLUDE, OPT_REQUESTS};

struct pattern {
    enum option option;
    char *text;
    bool matched;
};

struct patterns {
    struct pattern of[PATTERNS_MAX];
    unsigned n;
};

static uint32_t type;
/* the recording began in a VM that was already running and had loaded its classes */
static bool live;

static void patterns_release(struct patterns *p)
{
    for (unsigned i = 0; i < p->n; i++)
        free(p->of[i].text);
    p->n = 0;
}

/* requests= has "auto" too, which is none, and (..) behind its methods. */
static size_t length(enum option option, const char *pattern)
{
    size_t n = strcspn(pattern, ":");
    if (option == OPT_REQUESTS && n == 4 && memcmp(pattern, "auto", n) == 0)
        return 0;
    return option == OPT_REQUESTS && n > 4 && memcmp(pattern + n - 4, "(..)", 4) == 0 ? n - 4 : n;
}

static void split(struct patterns *ret, enum option option, const char *list)
{
    for (const char *p = list; p && *p && ret->n < PATTERNS_MAX;) {
        size_t n = strcspn(p, ":"), shown = length(option, p);
        char *text = shown ? strndup(p, shown) : NULL;
        if (text)
            ret->of[ret->n++] = (struct pattern){option, text, false};
        p += n + (p[n] == ':');
    }
}

static bool match(void *context, jclass c, struct str name)
{
    struct patterns *p = context;
    for (unsigned i = 0; i < p->n; i++)
        p->of[i].matched = p->of[i].matched || choice_may_match(p->of[i].text, name);
    return false;
}

/* The patterns of a session, and which of them match a loaded class. */
static void look(struct patterns *ret, const struct session *s, JNIEnv *jni)
{
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        split(ret, lists[i], s->options.v[lists[i]].text);
    if (loaded_classes_each(vm.ti, jni, match, ret) < 0)
        patterns_release(ret);
}

static bool wanted(const struct options *o)
{
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        any |= o->v[lists[i]].text != NULL;
    return any && option_is(o, OPT_FORMAT, "r");
}

static int load(struct session *s, struct buf *why)
{
    live = vm_is_live();
    return jfr_declare(s->out.jfr, &unmatched_type, 1, &type);
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    _cleanup_(patterns_release) struct patterns p = {0};
    if (live)
        look(&p, s, jni);
    for (unsigned i = 0; i < p.n; i++)
        if (!p.of[i].matched)
            session_message(s, "%s %s: no class that is loaded so far matches",
                            option_table[p.of[i].option].name, p.of[i].text);
    return 0;
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    _cleanup_(patterns_release) struct patterns p = {0};
    struct jfr_event e;
    if (reason != DUMP_REQUEST)
        look(&p, s, jni);
    for (unsigned i = 0; i < p.n; i++) {
        const char *name = option_table[p.of[i].option].name;
        if (p.of[i].matched ||
            !jfr_begin(s->out.jfr, type, strlen(name) + strlen(p.of[i].text) + 64, &e))
            continue;
        jfr_put_time(&e, now_ns());
        jfr_put_string(&e, name);
        jfr_put_string(&e, p.of[i].text);
        jfr_commit(&e);
    }
}

extern const struct capture capture_patterns;
const struct capture capture_patterns = {
    .name = "patterns",
    .records_only = true,
    .wanted = wanted,
    .load = load,
    .start = start,
    .dump = dump,
};
