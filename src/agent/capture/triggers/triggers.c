/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capture of triggers: their list, when they fire, the event that is written, and the status.
 */
#include "agent/capture/triggers/triggers.h"

#include "agent/capture/triggers/machine.h"
#include "agent/common/rounds.h"

#include "base/clock.h"
#include "base/parse.h"
#include "jfr/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest time between two actions of a trigger. */
#define ACTS_EVERY (60 * NS_PER_SECOND)

static const struct jfr_type trigger_type = {
    .name = "jvmscope.Trigger",
    .label = "Trigger",
    .category = "jvmscope",
    .description = "The condition of a trigger held",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"condition", "Condition", "java.lang.String"},
                         {"reason", "Reason", "java.lang.String"},
                         {"measured", "Measured", "java.lang.String"},
                         {"actions", "Actions", "java.lang.String",
                          .description = "The actions of the trigger, separated by semicolons"},
                         {"heldBack", "Held Back", "boolean",
                          .description = "The trigger did nothing, because it acted less than a "
                                         "minute ago or its actions are still running"}),
};

static struct {
    struct trigger *retired; /* removed from the list, but a reader may still use them */
    uint64_t serial;
    uint32_t type;
} triggers;

/* ---- firing ---- */

static void put_event(struct session *s, const struct trigger *t, uint64_t now, bool held_back)
{
    struct jfr_event e;
    size_t room = strlen(t->text) + sizeof(t->measured) + 256;
    for (unsigned i = 0; i < t->n_actions; i++)
        room += strlen(t->actions[i]) + 2;
    _cleanup_(buf_release) struct buf actions = BUF(1 << 16);
    for (unsigned i = 0; i < t->n_actions; i++)
        buf_printf(&actions, "%s%s", i ? "; " : "", t->actions[i]);
    if (!jfr_begin(s->out.jfr, triggers.type, room, &e))
        return;
    jfr_put_time(&e, now);
    jfr_put_string(&e, t->text);
    jfr_put_string(&e, t->reason);
    jfr_put_string(&e, t->measured);
    jfr_put_string(&e, t->n_actions ? buf_str(&actions) : "dump");
    jfr_put_byte(&e, held_back);
    jfr_commit(&e);
}

static bool test_holds(void *context, int number)
{
    const struct trigger *t = context;
    return t->tests[number].holds;
}

static void fire(struct session *s, struct trigger *t, uint64_t now)
{
    bool held_back = atomic_load(&t->busy) || (t->taken_ns && now - t->taken_ns < ACTS_EVERY);
    measures_report(t);
    put_event(s, t, now, held_back);
    t->fired++;
    t->last_ns = now;
    t->started_ns = now;
    if (held_back) {
        t->held_back++;
        return;
    }
    t->fired_ns = t->taken_ns = now;
    t->due_ns = now + t->after_ns;
    t->due = true;
    atomic_store(&t->busy, true);
}

/* Returns whether an event that the condition names happened in this round. */
static bool event_happened(const struct trigger *t)
{
    for (int i = 0; i < t->condition->logic.count; i++)
        if (t->condition->logic.nodes[i].kind == LOGIC_TEST && t->tests[i].holds &&
            trigger_is_momentary(&t->condition->tests[i]))
            return true;
    return false;
}

static void check(struct session *s, struct trigger *t, uint64_t now)
{
    if (atomic_load(&t->active)) {
        measures_of(t, now);
        bool holds = logic_holds(&t->condition->logic, test_holds, t);
        if (holds && (!t->held || event_happened(t)))
            fire(s, t, now);
        t->held = holds;
    }
    if (t->due && now >= t->due_ns)
        firings_take(s, t);
}

/* ---- the list ---- */

static void trigger_free(struct trigger *t)
{
    if (!t)
        return;
    for (int i = 0; t->condition && i < t->condition->logic.count; i++)
        free(t->tests[i].latencies);
    free(t->condition);
    free(t->text);
    free(t->pattern);
    for (unsigned i = 0; i < t->n_actions; i++)
        free(t->actions[i]);
    free(t);
}

/* Chooses the place of files for which the user named none: next to the ring. */
static int choose_pattern(const struct session *s, char *to, size_t size)
{
    const char *ring = s->out.path, *slash = strrchr(ring, '/');
    size_t n = 0;
    /* Percent signs in the folder itself are not expanded. */
    for (const char *p = ring; slash && p <= slash && n + 3 < size; p++) {
        to[n++] = *p;
        if (*p == '%')
            to[n++] = '%';
    }
    if (slash) {
        to[n] = 0;
        return snprintf(to + n, size - n, "jvmscope-%%p-%%t-%%r.jfr") < (int)(size - n)
                   ? 0
                   : -ENAMETOOLONG;
    }
    bool is_memory = option_is(&s->options, OPT_ALWAYS, "memory");
    const char *folder = !is_memory                             ? "."
                         : access("/var/tmp", W_OK | X_OK) == 0 ? "/var/tmp"
                                                                : "/tmp";
    return snprintf(to, size, "%s/jvmscope-%%p-%%t-%%r.jfr", folder) < (int)size ? 0
                                                                                 : -ENAMETOOLONG;
}

static struct trigger *trigger_new(const struct session *s, const struct options *o,
                                   const struct option_trigger *from, struct buf *why)
{
    struct trigger *t = calloc(1, sizeof(*t));
    char pattern[PATH_MAX];
    if (!t || trigger_condition_parse(&t->condition, from->condition, why) < 0)
        goto failed;
    const char *given = o->v[OPT_ON_FILE].text;
    if (!given && choose_pattern(s, pattern, sizeof(pattern)) < 0)
        goto failed;
    t->text = strdup(from->condition);
    t->pattern = strdup(given ? given : pattern);
    if (!t->text || !t->pattern)
        goto failed;
    for (unsigned i = 0; i < from->n_actions; i++) {
        t->actions[i] = strdup(from->actions[i]);
        if (!t->actions[i])
            goto failed;
        t->n_actions++;
    }
    t->before_ns = o->v[OPT_BEFORE].number;
    t->after_ns = o->v[OPT_AFTER].number;
    t->max_files = o->v[OPT_FILES].number;
    t->started_ns = now_ns();
    return t;

failed:
    trigger_free(t);
    return NULL;
}

/* Frees the triggers that are no longer in the list, once no callback can still use them. */
static void free_retired(void)
{
    while (triggers.retired && !triggers_are_read()) {
        struct trigger *t = triggers.retired;
        triggers.retired = t->retired;
        trigger_free(t);
    }
}

/*
 * Returns the index of a trigger that has been removed and no longer acts, or a new index, or
 * -ENOSPC.
 */
static int free_place(void)
{
    unsigned n = triggers_count();
    for (unsigned i = 0; i < n; i++) {
        struct trigger *t = trigger_at(i);
        if (!atomic_load(&t->active) && !atomic_load(&t->busy))
            return (int)i;
    }
    return n < TRIGGERS_AT_ONCE ? (int)n : -ENOSPC;
}

/* Returns the class for whose exceptions a trigger waits if it was never loaded, or NULL. */
static const char *class_never_loaded(const struct trigger *t)
{
    for (int i = 0; i < t->condition->logic.count; i++)
        if (t->condition->logic.nodes[i].kind == LOGIC_TEST &&
            t->condition->tests[i].measure == MEASURE_EXCEPTION &&
            !exception_class_seen(t->tests[i].counter))
            return t->condition->tests[i].name;
    return NULL;
}

static bool exception_is_reported(const struct trigger *t)
{
    for (int i = 0; i < t->condition->logic.count; i++)
        if (t->tests[i].is_other_reported)
            return true;
    return false;
}

/*
 * Appends why a trigger can never hold because of its class. tense: the verb of the sentence that
 * no class of this name is loaded, such as "was loaded" at the end of a recording. Returns whether
 * the class is loaded and is not an exception.
 */
static bool describe_unsatisfiable(JNIEnv *jni, struct buf *ret, struct trigger *t,
                                   const char *tense)
{
    for (int i = 0; i < t->condition->logic.count; i++) {
        _cleanup_(buf_release) struct buf why = BUF(4096);
        if (t->condition->logic.nodes[i].kind != LOGIC_TEST ||
            t->condition->tests[i].measure != MEASURE_EXCEPTION || t->tests[i].is_other_reported ||
            !exception_is_unsatisfiable(jni, t->tests[i].counter, tense, &why))
            continue;
        buf_printf(ret, "on=%s: %s", t->text, buf_str(&why));
        t->tests[i].is_other_reported = exception_is_other(t->tests[i].counter);
        return t->tests[i].is_other_reported;
    }
    return false;
}

/*
 * Returns the highest value that a measure can have within the limits of the process and its
 * container.
 */
static uint64_t most_of(enum measure m)
{
    return m == MEASURE_RSS || m == MEASURE_GROWTH ? machine_memory()
           : m == MEASURE_THREADS                  ? machine_thread_limit()
           : m == MEASURE_FD                       ? machine_descriptor_most()
                                                   : 0;
}

/*
 * Reports which comparison cannot hold within these limits. The limits may change while the program
 * runs, so this is not an error. A value that the machine itself cannot reach is refused
 * (options/trigger_condition.h).
 */
static void report_limits(struct session *s, const struct trigger *t)
{
    for (int i = 0; i < t->condition->logic.count; i++) {
        const struct trigger_test *c = &t->condition->tests[i];
        bool is = t->condition->logic.nodes[i].kind == LOGIC_TEST && !c->share &&
                  (c->op == LOGIC_GT || c->op == LOGIC_GE);
        double most = is ? (double)most_of(c->measure) : 0;
        char text[64];
        if (most > 0 && (c->op == LOGIC_GT ? c->limit >= most : c->limit > most))
            session_report(s, "on=%s: never holds while %s is the limit of this process", t->text,
                           trigger_measured(text, c, most));
    }
}

/* Reports that an interval is shorter than the time between two actions. */
static void report_interval(struct session *s, const struct trigger *t)
{
    for (int i = 0; i < t->condition->logic.count; i++) {
        const struct trigger_test *c = &t->condition->tests[i];
        char text[64];
        if (t->condition->logic.nodes[i].kind == LOGIC_TEST && c->measure == MEASURE_EVERY &&
            c->limit < (double)ACTS_EVERY)
            session_report(
                s, "on=%s: acts once a minute, not every %s, because no trigger acts more often",
                t->text, trigger_measured(text, c, c->limit));
    }
}

/* Reports a class that was loaded later and whose objects are not exceptions. */
static void report_others(struct session *s, JNIEnv *jni, struct trigger *t)
{
    _cleanup_(buf_release) struct buf note = BUF(4096);
    for (int i = 0; i < t->condition->logic.count; i++)
        if (t->condition->logic.nodes[i].kind == LOGIC_TEST && !t->tests[i].is_other_reported &&
            t->condition->tests[i].measure == MEASURE_EXCEPTION &&
            exception_is_other(t->tests[i].counter) &&
            describe_unsatisfiable(jni, &note, t, "is loaded"))
            session_report(s, "%s", buf_str(&note));
}

/*
 * Callbacks may read the list at any time. A trigger is therefore added before it becomes active,
 * and a removed one keeps its place until another one needs it.
 */
static int add(struct session *s, JNIEnv *jni, const struct options *o,
               const struct option_trigger *from, struct buf *why)
{
    int place = free_place();
    if (place < 0) {
        buf_printf(why, "on=%s: a recording takes at most %d triggers", from->condition,
                   TRIGGERS_AT_ONCE);
        return place;
    }
    int r = firings_start(jni);
    if (r < 0) {
        buf_printf(why, "on=%s: the VM cannot start a thread for the agent", from->condition);
        return r;
    }
    struct trigger *t = trigger_new(s, o, from, why);
    if (!t)
        return -ENOMEM;
    r = firings_check_folder(t->pattern, why);
    if (r < 0) {
        trigger_free(t);
        return r;
    }
    rounds_need();
    t->number = (unsigned)place + 1;
    t->serial = ++triggers.serial;
    struct trigger *before = trigger_put((unsigned)place, t);
    if (before) {
        before->retired = triggers.retired;
        triggers.retired = before;
    }
    free_retired();
    r = measures_begin(t, s, jni, why);
    _cleanup_(buf_release) struct buf note = BUF(4096);
    bool later = vm.late || s->running;
    bool other = r == 0 && describe_unsatisfiable(jni, &note, t, "is loaded so far");
    if (other && later) {
        buf_bytes(why, note.data, note.len);
        measures_end(t, jni);
        return -EINVAL;
    }
    /* When a program starts, its classes are not loaded yet. */
    if (note.len && (later || other))
        session_report(s, "%s", buf_str(&note));
    if (r == 0) {
        report_limits(s, t);
        report_interval(s, t);
    }
    return r;
}

static void remove_all(JNIEnv *jni)
{
    struct trigger *t;
    for (unsigned i = 0; (t = trigger_at(i)); i++)
        measures_end(t, jni);
}

int triggers_change(struct session *s, JNIEnv *jni, const struct options *o, struct buf *why)
{
    uint64_t before = triggers.serial;
    int r = 0;
    if (!option_always(&s->options)) {
        buf_string(why, "the recording is not always on: begin one with attach --always");
        return -ESRCH;
    }
    for (unsigned i = 0; i < o->n_triggers && r == 0; i++) {
        if (strcmp(o->triggers[i].condition, TRIGGERS_NONE) == 0)
            remove_all(jni);
        else
            r = add(s, jni, o, &o->triggers[i], why);
    }
    struct trigger *t;
    for (unsigned i = 0; r < 0 && (t = trigger_at(i)); i++)
        if (t->serial > before)
            measures_end(t, jni);
    return r;
}

/* ---- the capture ---- */

static bool triggers_wanted(const struct options *o)
{
    return option_always(o);
}

static int triggers_load(struct session *s, struct buf *why)
{
    return jfr_declare(s->out.jfr, &trigger_type, 1, &triggers.type);
}

static int triggers_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    return triggers_change(s, jni, &s->options, why);
}

/*
 * Reports what the triggers wrote, because nobody can ask for it later, and which of them could
 * never fire.
 */
static void report_triggers(struct session *s, JNIEnv *jni)
{
    struct trigger *t;
    for (unsigned i = 0; (t = trigger_at(i)); i++) {
        char file[PATH_MAX], error[256];
        _cleanup_(buf_release) struct buf note = BUF(4096);
        if (!atomic_load(&t->active))
            continue;
        bool exists = firings_last(t, file, error);
        describe_unsatisfiable(jni, &note, t, "was loaded");
        if (note.len)
            session_report(s, "%s", buf_str(&note));
        if (file[0])
            session_report(s, "on=%s: wrote %s, the last is %s%s", t->text,
                           COUNT_TEXT(atomic_load(&t->written), "files"), file,
                           exists ? "" : ", which has been removed");
        if (error[0])
            session_report(s, "on=%s: %llu failed, the last: %s", t->text,
                           (unsigned long long)atomic_load(&t->failed), error);
    }
}

static void triggers_stop(struct session *s, JNIEnv *jni)
{
    firings_stop(s, jni);
    report_triggers(s, jni);
    measures_stop(jni);
}

static void triggers_release(struct session *s)
{
    /* While the VM ends, the thread of firings.c may still use the triggers. */
    triggers_clear(vm.dying ? NULL : trigger_free);
    if (!vm.dying)
        free_retired();
}

static void triggers_flush(struct session *s, JNIEnv *jni)
{
    uint64_t now = now_ns();
    struct trigger *t;
    if (!trigger_at(0))
        return;
    measures_read(s, now);
    for (unsigned i = 0; (t = trigger_at(i)); i++)
        check(s, t, now);
    for (unsigned i = 0; (t = trigger_at(i)); i++)
        if (atomic_load(&t->active))
            report_others(s, jni, t);
}

static void triggers_status(struct session *s, struct buf *out)
{
    struct trigger *t;
    for (unsigned i = 0; (t = trigger_at(i)); i++) {
        char file[PATH_MAX], error[256];
        if (!atomic_load(&t->active))
            continue;
        bool exists = firings_last(t, file, error);
        buf_printf(out, "trigger.%u.condition %s\ntrigger.%u.then ", t->number, t->text, t->number);
        for (unsigned k = 0; k < t->n_actions; k++)
            buf_printf(out, "%s%s", k ? "; " : "", t->actions[k]);
        buf_printf(out, "%s\n", t->n_actions ? "" : "dump");

        const struct {
            const char *name;
            uint64_t value;
        } rows[] = {{"fired", t->fired},
                    {"held_back", t->held_back},
                    {"written", atomic_load(&t->written)},
                    {"failed", atomic_load(&t->failed)},
                    {"last_ms", t->last_ns ? clock_wall_ms(t->last_ns) : 0}};

        for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
            buf_printf(out, "trigger.%u.%s %llu\n", t->number, rows[k].name,
                       (unsigned long long)rows[k].value);
        if (exception_is_reported(t))
            buf_printf(out, "trigger.%u.no_exception 1\n", t->number);
        if (class_never_loaded(t))
            buf_printf(out, "trigger.%u.not_loaded %s\n", t->number, class_never_loaded(t));
        if (t->fired)
            buf_printf(out, "trigger.%u.measured %s\n", t->number, t->measured);
        if (file[0])
            buf_printf(out, "trigger.%u.file %s\n", t->number, file);
        if (file[0] && !exists)
            buf_printf(out, "trigger.%u.file_removed 1\n", t->number);
        if (error[0])
            buf_printf(out, "trigger.%u.error %s\n", t->number, error);
    }
}

const struct capture capture_triggers = {
    .name = "triggers",
    .options = OPTION_BIT(OPT_ON),
    .records_only = true,
    .wanted = triggers_wanted,
    .load = triggers_load,
    .start = triggers_start,
    .stop = triggers_stop,
    .release = triggers_release,
    .flush = triggers_flush,
    .status = triggers_status,
};
