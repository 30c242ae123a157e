/* SPDX-License-Identifier: Apache-2.0 */
#include "options/options.h"

#include "base/parse.h"
#include "options/log_spec.h"
#include "options/trace_condition.h"
#include "options/trigger_condition.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

#define LEAST_SHARE 0.0001 /* of OPTION_SHARE */

/* What writes values, and what changes all classes that are not left out. */
#define CALLS   "trace|log|watch"
#define CHANGED "cpu=times|cpu=old|alloc|live|heap|exceptions=counts|cover"

/* clang-format off */
const struct option_row option_table[OPTION_COUNT] = {
    /* HPROF's, in the order of its help. */
    [OPT_HEAP] = {"heap", "--heap", 0, OPTION_WORD, "dump|sites|all", "heap profiling",
                  .default_value = NULL, .bare = "all",
                  .gives = GIVES_STACKS | GIVES_HPROF},
    [OPT_CPU] = {"cpu", "--cpu", 0, OPTION_WORD, "samples|times|old|wall", "CPU usage; wall samples waiting threads too, and mounted virtual threads",
                 .bare = "samples",
                 .gives = GIVES_STACKS | GIVES_HPROF},
    [OPT_MONITOR] = {"monitor", "--monitors", 0, OPTION_YES_NO, "y|n", "monitor contention", .default_value = "n",
                     .bare = "y",
                     .gives = GIVES_STACKS | GIVES_WAITS | GIVES_HPROF},
    [OPT_FORMAT] = {"format", NULL, 0, OPTION_WORD, "a|b|r", "text (txt), binary or recording (jfr) output",
                    .default_value = "a"},
    [OPT_FILE] = {"file", "--output", 'o', OPTION_TEXT, "<file>", "write data to file; %p is the process id, %t the time",
                  .default_value = "java.hprof[{.txt}]"},
    [OPT_NET] = {"net", NULL, 0, OPTION_TEXT, "<host>:<port>", "send data over a socket"},
    [OPT_DEPTH] = {"depth", "--depth", 'd', OPTION_NUMBER, "<size>", "stack trace depth", .default_value = "4",
                   .default_record = "128", .max = 16384},
    [OPT_INTERVAL] = {"interval", "--interval", 'i', OPTION_DURATION, "<time>", "sample interval, such as 10ms or 500us",
                      .default_value = "10", .min = MS / 20, .max = 3600 * 1000 * MS},
    [OPT_CUTOFF] = {"cutoff", NULL, 0, OPTION_FRACTION, "<value>", "output cutoff point", .default_value = "0.0001"},
    [OPT_LINENO] = {"lineno", NULL, 0, OPTION_YES_NO, "y|n", "line number in traces?", .default_value = "y"},
    [OPT_THREAD] = {"thread", NULL, 0, OPTION_YES_NO, "y|n", "thread in traces?", .default_value = "n"},
    [OPT_DOE] = {"doe", NULL, 0, OPTION_YES_NO, "y|n", "dump on exit?", .default_value = "y"},
    [OPT_MSA] = {"msa", NULL, 0, OPTION_YES_NO, "y|n", "Solaris micro state accounting", .default_value = "n"},
    [OPT_FORCE] = {"force", NULL, 0, OPTION_YES_NO, "y|n", "force output to <file>", .default_value = "y"},
    [OPT_VERBOSE] = {"verbose", NULL, 0, OPTION_YES_NO, "y|n", "print messages about dumps", .default_value = "y",
                     .default_record = "n"},
    [OPT_GC_OKAY] = {"gc_okay", NULL, 0, OPTION_YES_NO, "y|n", "obsolete, no effect", .default_value = "n", .hidden = true},
    /* Ours. */
    [OPT_CLOCK] = {"clock", "--clock", 0, OPTION_WORD, "cpu|elapsed", "clock of cpu=times", .default_value = "cpu", .goes_with = "cpu=times|cpu=old"},
    [OPT_NATIVE] = {"native", "--native", 0, OPTION_YES_NO, "y|n", "native frames in samples",
                    .default_value = "n", .bare = "y", .goes_with = "cpu=samples|cpu=wall"},
    [OPT_ALLOC] = {"alloc", "--alloc", 0, OPTION_WORD, "sampled|exact", "allocation profile", .bare = "sampled",
                   .gives = GIVES_STACKS | GIVES_HPROF},
    [OPT_LIVE] = {"live", "--live", 0, OPTION_WORD, "exact", "live objects by site", .bare = "exact",
                  .gives = GIVES_STACKS | GIVES_HPROF},
    [OPT_ONOOM] = {"onoom", "--on-oom", 0, OPTION_WORD, "dump", "heap dump at OutOfMemoryError", .bare = "dump",
                   .gives = GIVES_HPROF},
    [OPT_PARK] = {"park", NULL, 0, OPTION_YES_NO, "y|n", "locks of java.util.concurrent with monitor=y", .default_value = "n",
                  .gives = GIVES_STACKS | GIVES_WAITS | GIVES_HPROF},
    [OPT_THREADS] = {"threads", "--threads", 0, OPTION_YES_NO, "y|n", "thread timeline", .default_value = "n", .bare = "y",
                     .gives = GIVES_STACKS | GIVES_WAITS, .shown_by = "threads summary"},
    [OPT_CONTANALYSIS] = {"contanalysis", "--contanalysis", 0, OPTION_YES_NO, "y|n", "contention analysis in the timeline",
                          .default_value = "y", .goes_with = "threads|locks|deadlock"},
    [OPT_LOCKS] = {"locks", "--locks", 0, OPTION_TEXT, .separator = ':', .values = "<pattern>", .help = "record every hold of monitors of these classes in the timeline",
                   .gives = GIVES_STACKS | GIVES_WAITS, .shown_by = "threads summary"},
    [OPT_DEADLOCK] = {"deadlock", "--deadlocks", 0, OPTION_YES_NO, "y|n", "look for deadlocks", .default_value = "n",
                      .bare = "y",
                      .gives = GIVES_STACKS | GIVES_WAITS, .shown_by = "threads deadlocks"},
    [OPT_REQUESTS] = {"requests", "--requests", 0, OPTION_TEXT, .separator = ':', .values = "<method>", .help = "requests to servers and calls of 'pkg.Class.method(..)'; turns on threads=y and cpu=samples",
                      .bare = "auto",
                      .gives = GIVES_STACKS | GIVES_WAITS, .shown_by = "requests slow"},
    [OPT_TRACE] = {"trace", "--trace", 0, OPTION_TEXT, .separator = ':', .values = "<pattern>", .help = "trace calls of these methods, with arguments and results",
                   .gives = GIVES_EVENTS, .shown_by = "trace"},
    [OPT_IF] = {"if", "--if", 0, OPTION_TEXT, "<condition>", "condition of the --trace before it: arg1 > 100 && time > 5ms", .goes_with = "trace"},
    [OPT_LIMIT] = {"limit", "--limit", 0, OPTION_NUMBER, "<calls>", "how many calls trace may record", .default_value = "10000000",
                   .min = 1, .max = UINT64_MAX, .goes_with = CALLS "|exceptions=stacks"},
    [OPT_RATE] = {"rate", "--rate", 0, OPTION_NUMBER, "<calls>", "how many calls a second trace may record",
                  .default_value = "10000000", .min = 1, .max = UINT64_MAX, .goes_with = CALLS},
    [OPT_BYTES] = {"bytes", "--bytes", 0, OPTION_SIZE, "<size>", "how many bytes of calls trace may record",
                   .default_value = "1g", .min = 1, .max = UINT64_MAX, .goes_with = CALLS},
    [OPT_SHOW] = {"show", "--show", 0, OPTION_TEXT, .separator = ',', .values = "<fields>", .help = "fields of traced objects to record: pkg.Class.field,...", .goes_with = CALLS},
    [OPT_TOSTRING] = {"tostring", "--to-string", 0, OPTION_TEXT, .separator = ',', .values = "<classes>", .help = "call toString() of these classes' traced objects", .goes_with = CALLS},
    [OPT_LOG] = {"log", "--log", 0, OPTION_TEXT, .separator = ';', .values = "<place text>", .help = "record values at lines: 'pkg.Class:12 {local} {this.field}; ...'",
                 .gives = GIVES_EVENTS, .shown_by = "trace"},
    [OPT_WATCH] = {"watch", "--watch", 0, OPTION_TEXT, .separator = ':', .values = "<fields>", .help = "record reads and writes of pkg.Class.field,...",
                   .gives = GIVES_EVENTS, .shown_by = "trace"},
    [OPT_EXCEPTIONS] = {"exceptions", "--exceptions", 0, OPTION_WORD, "counts|stacks", "exceptions by class, place and handler; a stack takes some microseconds",
                        .bare = "counts",
                        .gives = GIVES_EVENTS, .shown_by = "trace --exceptions"},
    [OPT_EVENTS] = {"events", "--events", 0, OPTION_YES_NO, "y|n", "what the VM does by itself: collections, safepoints, compilations, threads, classes",
                    .default_value = "n", .bare = "y",
                    .gives = GIVES_EVENTS, .shown_by = "trace"},
    [OPT_COVER] = {"cover", "--cover", 0, OPTION_YES_NO, "y|n", "line and branch coverage", .default_value = "n",
                   .bare = "y",
                   .gives = GIVES_EVENTS, .shown_by = "coverage"},
    [OPT_ALLOW_CONTROL] = {"allow-control", "--allow-control", 0, OPTION_YES_NO, "y|n",
                           "let jvmscope control suspend threads, set locals, redefine classes", .default_value = "n", .bare = "y"},
    [OPT_INCLUDE] = {"include", "--include", 0, OPTION_TEXT, .separator = ':', .values = "<pattern>", .help = "instrument only these classes", .goes_with = CHANGED},
    [OPT_EXCLUDE] = {"exclude", "--exclude", 0, OPTION_TEXT, .separator = ':', .values = "<pattern>", .help = "do not instrument these classes", .goes_with = CHANGED "|trace"},
    [OPT_ALWAYS] = {"always", "--always", 0, OPTION_WORD, "y|n|memory", "record all the time and keep the last minutes in a file, or in memory", .default_value = "n", .bare = "y"},
    [OPT_KEEP] = {"keep", "--keep", 0, OPTION_DURATION, "<time>", "how long --always keeps what it records", .default_value = "10m",
                  .min = 1000 * MS, .max = UINT64_C(30) * 86400 * 1000 * MS, .goes_with = "always=y|always=memory"},
    [OPT_MAX_SIZE] = {"maxsize", "--max-size", 0, OPTION_SIZE, "<size>", "how much room --always may take; it is allocated at the start", .default_value = "256m",
                      .min = 4 << 20, .max = UINT64_C(32) << 30, .goes_with = "always=y|always=memory"},
    [OPT_BUDGET] = {"budget", "--budget", 0, OPTION_SHARE, "<share, 0.01% to 100%>", "share of the program's CPU time that --always may cost; what costs most is reduced to stay below it",
                    .default_value = "1%", .goes_with = "always=y|always=memory"},
    [OPT_ON] = {"on", "--on", 0, OPTION_TEXT, .separator = ';', .values = "<condition>", .help = "with --always: when this happens, write the time around it into a file: 'request > 500ms', 'cpu > 90% for 30s'", .goes_with = "always=y|always=memory"},
    [OPT_THEN] = {"then", "--then", 0, OPTION_TEXT, .separator = ';', .values = "<action>", .help = "what the --on before it does: dump (the default), heap-dump or exec:COMMAND", .goes_with = "on"},
    [OPT_BEFORE] = {"before", "--before", 0, OPTION_DURATION, "<time>", "how much time before its cause a dump of --on covers", .default_value = "60s",
                    .min = 1000 * MS, .max = UINT64_C(30) * 86400 * 1000 * MS, .goes_with = "on"},
    [OPT_AFTER] = {"after", "--after", 0, OPTION_DURATION, "<time>", "how much time after its cause a dump of --on covers", .default_value = "10s",
                   .min = 0, .max = 3600 * 1000 * MS, .goes_with = "on"},
    [OPT_ON_FILE] = {"onfile", "--on-file", 0, OPTION_TEXT, "<file>", "where --on writes; %r is the reason, %t the time, %p the process id; by default beside the ring", .goes_with = "on"},
    [OPT_FILES] = {"files", "--files", 0, OPTION_NUMBER, "<files>", "how many files of --on to keep; the oldest are removed", .default_value = "10",
                   .min = 1, .max = 10000, .goes_with = "on"},
    [OPT_DURATION] = {"duration", "--time", 't', OPTION_DURATION, "<time>", "stop after this time, such as 30s or 5m",
                      .min = MS, .max = UINT64_MAX},
    [OPT_CHUNK] = {"chunk", "--chunk", 0, OPTION_SIZE, "<size>", "start a new chunk of a recording at this size",
                   .default_value = "64m", .min = 1 << 16, .max = UINT64_C(1) << 40},
    [OPT_TIMER] = {"timer", NULL, 0, OPTION_WORD, "auto|thread|perf",
                   "what drives cpu=samples: timers on threads' CPU clocks, or perf_event", .default_value = "auto"},
    [OPT_WALKER] = {"walker", NULL, 0, OPTION_WORD, "auto|vm|agct|jvmti",
                    "who walks stacks: the VM's structures read by us, AsyncGetCallTrace, or JVM TI at safepoints", .default_value = "auto"},
    [OPT_STACKS] = {"stacks", NULL, 0, OPTION_WORD, "check", "compare stacks in callbacks with GetStackTrace's", .hidden = true},
    [OPT_CONTROL] = {"control", NULL, 0, OPTION_WORD, "start|stop|ending|dump|status", "a message to an agent that is loaded",
                     .hidden = true},
    [OPT_REPLY] = {"reply", NULL, 0, OPTION_TEXT, "<file>", "where the answer to control goes", .hidden = true},
    [OPT_FAIL] = {"fail", NULL, 0, OPTION_TEXT, "<capture>:<step>", "for tests: this step of a capture's start fails",
                  .hidden = true},
    [OPT_OUTCOME] = {"outcome", NULL, 0, OPTION_NUMBER, "<descriptor>", "where run learns how the recording ended", .max = 65535,
                     .hidden = true},
};

/* clang-format on */

static bool flags;

void options_speak_of_flags(void)
{
    flags = true;
}

void option_put(struct buf *message, enum option which, const char *value)
{
    const struct option_row *row = &option_table[which];
    buf_string(message, flags && row->flag ? row->flag : row->name);
    if (value)
        buf_printf(message, "=%s", value);
}

int option_find(const char *name, size_t len)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(option_table[i].name) == len && memcmp(option_table[i].name, name, len) == 0)
            return i;
    return -ENOENT;
}

bool option_has_word(const char *words, const char *word, size_t len)
{
    for (const char *at = words; at && *at;) {
        size_t n = strcspn(at, "|");
        if (n == len && memcmp(at, word, n) == 0)
            return true;
        at += n + (at[n] == '|');
    }
    return false;
}

/* Sets the value of an option from its text; -EINVAL when it is not valid. */
static int set_value(struct option_value *v, const struct option_row *row, const char *text)
{
    int r = 0;
    char *end;
    switch (row->kind) {
    case OPTION_YES_NO:
        r = strcmp(text, "y") == 0 || strcmp(text, "n") == 0 ? 0 : -EINVAL;
        v->number = text[0] == 'y';
        break;
    case OPTION_WORD:
        r = option_has_word(row->values, text, strlen(text)) ? 0 : -EINVAL;
        break;
    case OPTION_NUMBER:
        r = parse_u64(text, row->min, row->max, &v->number);
        break;
    case OPTION_DURATION:
        r = parse_duration(text, MS, &v->number);
        break;
    case OPTION_SIZE:
        r = parse_size(text, &v->number);
        break;
    case OPTION_FRACTION:
        v->fraction = strtod(text, &end);
        r = *text && !*end && isfinite(v->fraction) && v->fraction >= 0 ? 0 : -EINVAL;
        break;
    case OPTION_SHARE:
        v->fraction = strtod(text, &end) / 100;
        r = *text >= '0' && *text <= '9' && strcmp(end, "%") == 0 && v->fraction >= LEAST_SHARE &&
                    v->fraction <= 1
                ? 0
                : -EINVAL;
        break;
    case OPTION_TEXT:
        r = *text ? 0 : -EINVAL;
        break;
    }
    if (r == 0 && (row->kind == OPTION_DURATION || row->kind == OPTION_SIZE) &&
        (v->number < row->min || v->number > row->max))
        r = -ERANGE;
    v->text = text;
    return r;
}

/* A limit of an option's range, in the option's unit. */
static const char *format_bound(char text[24], const struct option_row *row, uint64_t bound)
{
    if (row->kind == OPTION_DURATION)
        return format_duration(text, bound);
    if (row->kind == OPTION_SIZE)
        return format_size(text, bound);
    snprintf(text, 24, "%llu", (unsigned long long)bound);
    return text;
}

/* What has a grammar of its own is checked before anything is touched. */
static int check_text(enum option which, const char *text, struct buf *message)
{
    struct trigger_condition *c = NULL;
    if (which == OPT_ON && strcmp(text, TRIGGERS_NONE) != 0) {
        int r = trigger_condition_parse(&c, text, message);
        free(c);
        return r;
    }
    if (which == OPT_THEN && strcmp(text, "dump") != 0 && strcmp(text, "heap-dump") != 0 &&
        (strncmp(text, ACTION_EXEC, strlen(ACTION_EXEC)) != 0 || !text[strlen(ACTION_EXEC)])) {
        option_put(message, which, text);
        buf_string(message, ": allowed: dump, heap-dump, exec:COMMAND");
        return -EINVAL;
    }
    if (which == OPT_ON_FILE)
        return trigger_file_check(text, message);
    if (which == OPT_IF) {
        struct condition *condition = NULL;
        int r = condition_parse(&condition, text, message);
        condition_free(condition);
        return r;
    }
    if (which == OPT_LOG) {
        struct log_spec *specs = NULL;
        int r = log_specs_parse(&specs, text, message);
        log_specs_free(specs);
        return r;
    }
    return 0;
}

/* What the command calls values that the agent's help has a placeholder for. */
static const char *const placeholders[] = {[OPTION_NUMBER] = "a whole number",
                                           [OPTION_DURATION] = "a time such as 30s or 500ms",
                                           [OPTION_SIZE] = "a size such as 64m",
                                           [OPTION_SHARE] = "a share, 0.01% to 100%",
                                           [OPTION_TEXT] = "any text but the empty one"};

/* Sets *v, or describes what is wrong with the value. */
static int check_value(struct option_value *v, enum option which, const char *text,
                       struct buf *message)
{
    const struct option_row *row = &option_table[which];
    int r = set_value(v, row, text);
    if (r == -ERANGE) {
        char low[24], high[24];
        option_put(message, which, text);
        buf_string(message, ": out of range: ");
        if (row->max == UINT64_MAX && strtod(text, NULL) > (double)row->min)
            buf_string(message, "too large");
        else if (row->max == UINT64_MAX)
            buf_printf(message, "at least %s", format_bound(low, row, row->min));
        else
            buf_printf(message, "%s to %s", format_bound(low, row, row->min),
                       format_bound(high, row, row->max));
        return -EINVAL;
    }
    if (r < 0) {
        const char *what = placeholders[row->kind];
        option_put(message, which, text);
        buf_printf(message, ": not a value of this option; allowed: %s",
                   flags && what ? what : row->values);
        return -EINVAL;
    }
    return check_text(which, text, message);
}

int option_check(enum option which, const char *text, struct buf *message)
{
    struct option_value v = {0};
    return check_value(&v, which, text, message);
}

/* Replaces commas, and blanks that follow them, by the list's separator, in place. */
static void one_separator(char *list, char separator)
{
    char *to = list;
    for (const char *at = list; *at; at++) {
        bool between = *at == ',';
        *to++ = between ? separator : *at;
        if (between)
            at += strspn(at + 1, " ");
    }
    *to = 0;
}

/* Appends further parts to a list, whose own separator commas are. */
static int join(struct options *o, enum option which, const char *text)
{
    struct option_value *v = &o->v[which];
    char separator = option_table[which].separator, *all;
    if (asprintf(&all, "%s%.*s%s", v->given ? v->text : "", v->given ? 1 : 0, &separator, text) < 0)
        return -ENOMEM;
    if (separator != ';')
        one_separator(all, separator);
    free(o->joined[which]);
    v->text = o->joined[which] = all;
    return 0;
}

/* The combination of two values of one option; NULL when they are incompatible. */
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

/* Begins a trace= with its own patterns. The text is owned by the options' storage. */
static int begin_trace(struct options *o, char *patterns, struct buf *message)
{
    if (o->n_traces == TRACES_MAX) {
        option_put(message, OPT_TRACE, patterns);
        buf_printf(message, ": given more than %d times; commas separate patterns", TRACES_MAX);
        return -EINVAL;
    }
    one_separator(patterns, ':');
    o->traces[o->n_traces] = (struct option_trace){.patterns = patterns};
    if (o->condition_first && o->n_traces == 0)
        o->traces[0].condition = o->v[OPT_IF].text;
    o->n_traces++;
    return 0;
}

/*
 * A condition belongs to the preceding trace=; one that precedes all of them belongs to the only
 * one.
 */
static int give_condition(struct options *o, const char *text, struct buf *message)
{
    struct option_value *v = &o->v[OPT_IF];
    struct option_trace *t = o->n_traces ? &o->traces[o->n_traces - 1] : NULL;
    const char *before = t ? t->condition : v->text;
    if (before) {
        option_put(message, OPT_IF, text);
        buf_printf(message, ": given twice%s, and ", t ? " for one trace" : "");
        option_put(message, OPT_IF, before);
        buf_string(message, " before");
        return -EINVAL;
    }
    if (t)
        t->condition = text;
    o->condition_first |= !t;
    *v = (struct option_value){.text = text, .given = true};
    return 0;
}

/* Begins an on=, or adds a then= to the one before it. */
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
    int r = check_value(&new, which, text, message);
    if (r == 0 && which == OPT_IF)
        return give_condition(o, text, message);
    if (r == 0 && which == OPT_TRACE)
        r = begin_trace(o, text, message);
    if (r == 0 && (which == OPT_ON || which == OPT_THEN))
        r = give_trigger(o, which, text, message);
    if (r == 0 && row->separator)
        r = join(o, which, text);
    else if (r == 0 && v->given && !(new.text = both(which, v->text, text)))
        r = -EEXIST;
    if (r == -EEXIST) {
        option_put(message, which, text);
        buf_string(message, ": given twice, and ");
        option_put(message, which, v->text);
        buf_string(message, " before");
    } else if (r == 0 && !row->separator)
        *v = new;
    v->given = true;
    return r == -EEXIST ? -EINVAL : r;
}

/* Parses one NAME=VALUE. */
static int parse_one(struct options *o, char *item, struct buf *message)
{
    size_t len = strcspn(item, "=");
    int i = option_find(item, len);
    if (i < 0) {
        buf_printf(message, "%.*s: no such option; `help` lists them", (int)len, item);
        return -EINVAL;
    }
    const struct option_row *row = &option_table[i];
    if (item[len] != '=') {
        buf_printf(message, "%s: needs a value: %s=%s", row->name, row->name, row->values);
        return -EINVAL;
    }
    return give(o, (enum option)i, item + len + 1, message);
}

/* What counts from the beginning of a recording cannot be cut to its last minutes. */
static int check_always(const struct options *o, struct buf *message)
{
    static const struct {
        enum option option;
        const char *word; /* NULL: any value but n */
    } refused[] = {{OPT_CPU, "times"},  {OPT_CPU, "old"},           {OPT_CPU, "wall"},
                   {OPT_HEAP, NULL},    {OPT_ALLOC, "exact"},       {OPT_LIVE, NULL},
                   {OPT_COVER, NULL},   {OPT_EXCEPTIONS, "counts"}, {OPT_NET, NULL},
                   {OPT_DURATION, NULL}};

    bool always = option_always(o);
    for (size_t i = 0; always && i < ARRAY_SIZE(refused); i++) {
        const struct option_row *row = &option_table[refused[i].option];
        const char *text = o->v[refused[i].option].text, *word = refused[i].word;
        if (!text || (word && !option_is(o, refused[i].option, word)) ||
            (row->kind == OPTION_YES_NO && !option_on(o, refused[i].option)))
            continue;
        option_put(message, OPT_ALWAYS, o->v[OPT_ALWAYS].text);
        buf_string(message, " records without an end and keeps the last minutes: ");
        option_put(message, refused[i].option, word ? word : text);
        buf_string(message, " does not go with it");
        return -EINVAL;
    }
    if (always && option_is(o, OPT_ALWAYS, "memory") &&
        (o->v[OPT_FILE].given || o->v[OPT_ONOOM].text)) {
        enum option file = o->v[OPT_FILE].given ? OPT_FILE : OPT_ONOOM;
        option_put(message, OPT_ALWAYS, "memory");
        buf_string(message, " writes no file: ");
        option_put(message, file, o->v[file].text);
        buf_string(message, " does not go with it");
        return -EINVAL;
    }
    if (always && !option_is(o, OPT_FORMAT, "r")) {
        option_put(message, OPT_ALWAYS, o->v[OPT_ALWAYS].text);
        buf_string(message, " is a recording: it goes with format=r");
        return -EINVAL;
    }
    return 0;
}

/* Whether an option of the list is on: "trace|cpu=times". */
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
        bool is_set = option_table[i].kind == OPTION_YES_NO ? option_on(o, (enum option)i)
                                                            : o->v[i].text != NULL;
        if (len < all ? option_is(o, (enum option)i, word) : is_set)
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

/* An option that would change nothing is a mistake. */
static int check_company(const struct options *o, struct buf *message)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_table[i];
        if (!o->v[i].given || !row->goes_with || any_is_on(o, row->goes_with))
            continue;
        option_put(message, (enum option)i, o->v[i].text);
        buf_string(message, ": changes nothing without ");
        put_list(message, row->goes_with);
        return -EINVAL;
    }
    return 0;
}

static int check_together(const struct options *o, struct buf *message)
{
    int r = check_always(o, message);
    if (r < 0)
        return r;
    /* The specification's help, "Notes". */
    if (option_is(o, OPT_FORMAT, "b") && option_on(o, OPT_MONITOR)) {
        buf_printf(message, "format=b cannot be used with monitor=y");
        return -EINVAL;
    }
    if (option_is(o, OPT_FORMAT, "b") &&
        (option_is(o, OPT_CPU, "times") || option_is(o, OPT_CPU, "old"))) {
        buf_printf(message, "format=b cannot be used with cpu=old|times");
        return -EINVAL;
    }
    if (o->condition_first && o->n_traces > 1) {
        option_put(message, OPT_IF, o->traces[0].condition);
        buf_string(message, ": stands behind the trace that it is for");
        return -EINVAL;
    }
    if (option_on(o, OPT_PARK) && !option_on(o, OPT_MONITOR)) {
        buf_printf(message, "park=y goes with monitor=y");
        return -EINVAL;
    }
    r = check_company(o, message);
    if (r == 0 && o->action_first) {
        option_put(message, OPT_THEN, o->v[OPT_THEN].text);
        buf_string(message, ": stands behind the ");
        option_put(message, OPT_ON, NULL);
        buf_string(message, " that it is for");
        r = -EINVAL;
    }
    return r;
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
    while (*at && *at != ',') {
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

/* What is recorded all the time when nothing in particular is asked for. */
static const struct {
    enum option option;
    const char *value;
} always_captures[] = {{OPT_CPU, "samples"},
                       {OPT_THREADS, "y"},
                       {OPT_ALLOC, "sampled"},
                       {OPT_REQUESTS, "auto"},
                       {OPT_EVENTS, "y"}};

/* Whether the options ask for something to be captured. */
static bool chooses_captures(const struct options *o)
{
    static const enum option captures[] = {
        OPT_HEAP,  OPT_CPU,     OPT_MONITOR, OPT_ALLOC, OPT_LIVE,     OPT_ONOOM,   OPT_PARK,
        OPT_LOCKS, OPT_THREADS, OPT_TRACE,   OPT_COVER, OPT_DEADLOCK, OPT_REQUESTS};

    for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++)
        if (option_table[captures[i]].kind == OPTION_YES_NO ? option_on(o, captures[i])
                                                            : o->v[captures[i]].text != NULL)
            return true;
    return false;
}

static void choose_always(struct options *o)
{
    bool more = option_on(o, OPT_EVENTS) || o->v[OPT_LOG].text || o->v[OPT_WATCH].text ||
                o->v[OPT_EXCEPTIONS].text;
    for (size_t i = 0; option_always(o) && !more && i < ARRAY_SIZE(always_captures); i++) {
        struct option_value *v = &o->v[always_captures[i].option];
        v->text = always_captures[i].value;
        v->number = 1;
    }
}

/*
 * The specification's default, heap=all, applies where no capture is requested, and only to HPROF's
 * outputs; a recording needs none.
 */
static void choose_heap(struct options *o)
{
    if (!chooses_captures(o) && !option_is(o, OPT_FORMAT, "r"))
        o->v[OPT_HEAP] = (struct option_value){.text = "all", .given = true};
}

/* What a request waited for is in the timeline, and what it computed in the samples. */
static void choose_for_requests(struct options *o)
{
    if (!o->v[OPT_REQUESTS].text || !option_is(o, OPT_FORMAT, "r"))
        return;
    if (!o->v[OPT_THREADS].given)
        o->v[OPT_THREADS] = (struct option_value){.text = "y", .number = 1, .given = true};
    if (!o->v[OPT_CPU].given)
        o->v[OPT_CPU] = (struct option_value){.text = "samples", .given = true};
}

/* What triggers wait for has to be recorded. */
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
    char *rest = o.storage, *item;
    while (r == 0 && (item = next_item(&rest)))
        r = *item ? parse_one(&o, item, message) : 0;
    if (option_always(&o) && !o.v[OPT_FORMAT].given)
        o.v[OPT_FORMAT] = (struct option_value){.text = "r", .given = true};
    bool record = option_is(&o, OPT_FORMAT, "r");
    for (int i = 0; i < OPTION_COUNT && r == 0; i++) {
        const struct option_row *row = &option_table[i];
        const char *value =
            record && row->default_record ? row->default_record : row->default_value;
        if (!o.v[i].given && value)
            r = set_value(&o.v[i], row, value);
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

void options_help(struct buf *out)
{
    buf_printf(out,
               "hprof, the profiling agent of jvmscope " JVMSCOPE_VERSION "\n\n"
               "usage: java -agentlib:hprof=[help]|[<option>=<value>, ...]\n\n"
               "%-32s %-55s %s\n%-32s %-55s %s\n",
               "Option Name and Value", "Description", "Default", "---------------------",
               "-----------", "-------");
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_table[i];
        if (row->hidden)
            continue;
        char left[80];
        snprintf(left, sizeof(left), "%s=%s", row->name, row->values);
        buf_printf(out, "%-32s %-55s %s\n", left, row->help,
                   i == OPT_HEAP        ? "all"
                   : row->default_value ? row->default_value
                                        : "off");
    }
    buf_printf(out, "\n-Xrunhprof:... and -agentpath:<libhprof.so>=... take the same. format=b "
                    "goes with neither monitor=y nor\n"
                    "cpu=old|times. On JDK 8 the name hprof finds the JDK's own agent first: use "
                    "-agentpath there.\n");
}
