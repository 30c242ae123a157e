/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's options: one table that supplies the agent's parser and help as well as the command's
 * flags, help, manual pages and completion. Knows no JVM. HPROF's options and defaults are those of
 * the specification (Start-up); the rest are ours.
 */
#pragma once

#include "base/buf.h"
#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

enum option {
    OPT_HEAP,
    OPT_CPU,
    OPT_MONITOR,
    OPT_FORMAT,
    OPT_FILE,
    OPT_NET,
    OPT_DEPTH,
    OPT_INTERVAL,
    OPT_CUTOFF,
    OPT_LINENO,
    OPT_THREAD,
    OPT_DOE,
    OPT_MSA,
    OPT_FORCE,
    OPT_VERBOSE,
    OPT_GC_OKAY,
    OPT_CLOCK,
    OPT_NATIVE,
    OPT_ALLOC,
    OPT_LIVE,
    OPT_ONOOM,
    OPT_PARK,
    OPT_THREADS,
    OPT_CONTANALYSIS,
    OPT_LOCKS,
    OPT_DEADLOCK,
    OPT_REQUESTS,
    OPT_TRACE,
    OPT_IF,
    OPT_LIMIT,
    OPT_RATE,
    OPT_BYTES,
    OPT_SHOW,
    OPT_TOSTRING,
    OPT_LOG,
    OPT_WATCH,
    OPT_EXCEPTIONS,
    OPT_EVENTS,
    OPT_JFR,
    OPT_COVER,
    OPT_ALLOW_CONTROL,
    OPT_INCLUDE,
    OPT_EXCLUDE,
    OPT_ALWAYS,
    OPT_KEEP,
    OPT_MAX_SIZE,
    OPT_BUDGET,
    OPT_ON,
    OPT_THEN,
    OPT_BEFORE,
    OPT_AFTER,
    OPT_ON_FILE,
    OPT_FILES,
    OPT_DURATION,
    OPT_CHUNK,
    OPT_TIMER,
    OPT_WALKER,
    OPT_STACKS,
    OPT_CONTROL,
    OPT_REPLY,
    OPT_FAIL,
    OPT_OUTCOME,
    OPTION_COUNT
};

enum option_kind {
    OPTION_WORD,   /* one of `values` */
    OPTION_YES_NO, /* y or n; in the command the flag alone means y */
    OPTION_NUMBER, /* a whole number */
    /* with a unit; a number alone is in milliseconds. `number` is in nanoseconds */
    OPTION_DURATION,
    OPTION_SIZE,     /* bytes, with a unit */
    OPTION_FRACTION, /* `fraction` */
    OPTION_TEXT,     /* any text */
    OPTION_SHARE,    /* a percentage, "1%"; `fraction` is 0.01 */
};

struct option_row {
    const char *name; /* in the agent's option string */
    const char *flag; /* in the command, "--cpu"; NULL when the command does not have it */
    char letter;      /* in the command, 'i' for -i; 0 when there is none */
    enum option_kind kind;
    /* of a word: "samples|times|old"; otherwise the placeholder in help, "<ms>" */
    const char *values;
    const char *help;           /* one line without a full stop */
    const char *default_value;  /* NULL: off */
    const char *default_record; /* the default with format=r where it differs, else NULL */
    /* the value that the command's flag has without one (`--cpu`); NULL: it requires one */
    const char *bare;
    uint64_t min, max;   /* of a number, a duration (ns) or a size */
    uint64_t min_record; /* the least number in a recording, if that is above min */
    bool hidden;         /* omitted from help: obsolete, or internal between command and agent */
    /*
     * For a list, the separator between its parts in the stored value, else 0. In the input a comma
     * is accepted too, except for log=, whose texts may contain commas. A list that is given again
     * is extended; cpu and heap may be given twice with compatible values, and if once for each
     * trace; any other option may be given once.
     */
    char separator;
    /*
     * Options of which one must be given too, since this one only changes what they record:
     * "trace|cpu=times", by name and, where it matters, with the word. NULL: none.
     */
    const char *goes_with;
    /*
     * Like goes_with, for options that HPROF accepts in any case: the command notes that they have
     * no effect.
     */
    const char *acts_on;
    /*
     * What it makes the agent record, as a set of enum option_gives; 0: it only changes what other
     * options record. An option with any of them is a capture, and replaces the captures that are
     * chosen by default.
     */
    int gives;
    /* The value that always=y gives it when no capture is chosen. NULL: none. */
    const char *always_value;
    /*
     * The values that always=y refuses, since they count from the beginning of a recording or end
     * it: "times|old", or "*" for any. NULL: none.
     */
    const char *always_refuses;
    /* the command that shows what it records, if that is not `report` */
    const char *shown_by;
    /* the help of the command's flag where it differs from the agent's, else NULL */
    const char *flag_help;
};

/*
 * The outputs that can be made from what an option records. A page can be made from stacks or
 * waits; GIVES_EVENTS stands for a recording alone.
 */
enum option_gives {
    GIVES_STACKS = 1,
    GIVES_WAITS = 2,
    GIVES_HPROF = 4,
    GIVES_EVENTS = 8,
    GIVES_PAGE = 16
};

/* The table, by enum option. */
extern const struct option_row option_table[OPTION_COUNT];

/*
 * Makes messages call options by the command's flags (--cpu=times) where options have one, instead
 * of by the agent's words (cpu=times). For the whole process, before any message.
 */
void options_speak_of_flags(void);
/*
 * Appends the name of an option for messages, with a value unless that is NULL: "--cpu=times". A
 * long value is cut.
 */
void option_put(struct buf *message, enum option which, const char *value);

struct option_value {
    const char *text; /* NULL: off. As given, or the default */
    uint64_t number;  /* of a number, duration or size; 1 for y */
    double fraction;
    bool given;
};

enum { TRACES_MAX = 63 }; /* a set of their conditions is a word of 64 bits */

/* A trace= and the if= that follows it. */
struct option_trace {
    const char *patterns;  /* one pattern, or several separated by ':' */
    const char *condition; /* NULL: none */
};

enum { TRIGGERS_MAX = 32, ACTIONS_MAX = 4 };

/* An on= and the then= that follow it. */
struct option_trigger {
    const char *condition;
    const char *actions[ACTIONS_MAX]; /* dump, heap-dump, exec:COMMAND; none means dump */
    unsigned n_actions;
};

struct options {
    struct option_value v[OPTION_COUNT];
    struct option_trace traces[TRACES_MAX]; /* in the order given */
    unsigned n_traces;
    struct option_trigger triggers[TRIGGERS_MAX]; /* in the order given */
    unsigned n_triggers;
    bool action_first;           /* the first then= stands before the first on= */
    const char *condition_first; /* an if= that precedes all traces, or NULL */
    char *storage; /* owns the texts as given, and the parts of `traces` and `triggers` */
    char *joined[OPTION_COUNT]; /* all parts of lists */
    bool help;                  /* the text requests help; nothing else is set then */
};

/*
 * Parses "cpu=samples,depth=8". Inside a value a comma is preceded by a backslash, and backslashes
 * that precede a comma or the end are doubled. Text may be NULL. Returns 0, or -EINVAL (`message`
 * names the option and the allowed values), or -ENOMEM. The caller releases the result.
 */
int options_parse(struct options *ret, const char *text, struct buf *message) must_check;
void options_release(struct options *o);
/* Returns whether the settings of --jfr are a file's, not one of the names that the JDK knows. */
bool option_is_settings_file(const char *text);
/*
 * Checks the value of a single option. Returns 0, or a negative errno; -EINVAL with a sentence in
 * `message`.
 */
int option_check(enum option which, const char *text, struct buf *message) must_check;
/* Appends the table in the form of HPROF's help. */
void options_help(struct buf *out);

/* Returns the enum option that the agent calls by this name of len bytes, or -ENOENT. */
int option_find(const char *name, size_t len);
/* Returns whether a word is in a list of words separated by '|'. */
bool option_has_word(const char *words, const char *word, size_t len);

/* Returns whether `word` is the value of an option, or one of its words ("samples|times"). */
static inline bool option_is(const struct options *o, enum option which, const char *word)
{
    const char *text = o->v[which].text;
    return text && option_has_word(text, word, __builtin_strlen(word));
}

/* Returns whether the recording is always on, and so written into a ring (jfr/ring.h). */
static inline bool option_always(const struct options *o)
{
    return o->v[OPT_ALWAYS].text && o->v[OPT_ALWAYS].text[0] != 'n';
}

/*
 * Returns whether an option changes anything, given the others: false if it goes with some
 * (goes_with, acts_on) and none of these is on.
 */
bool option_has_effect(const struct options *o, enum option which);

/*
 * Returns whether an option of y or n is y; for a number, a duration or a size, whether it is not
 * 0.
 */
static inline bool option_on(const struct options *o, enum option which)
{
    return o->v[which].number != 0;
}
