/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's options: one table from which come the agent's parser and its help, and the command's
 * flags, help, manual pages and completion. Knows no JVM. HPROF's options and defaults are the
 * specification's (Start-up); the rest are ours.
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
    OPT_COVER,
    OPT_ALLOW_CONTROL,
    OPT_INCLUDE,
    OPT_EXCLUDE,
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
    OPTION_YES_NO, /* y or n; in the command a bare flag means y */
    OPTION_NUMBER, /* a whole number */
    /* with a unit; a bare number counts in milliseconds. `number` is in nanoseconds */
    OPTION_DURATION,
    OPTION_SIZE,     /* bytes, with a unit */
    OPTION_FRACTION, /* `fraction` */
    OPTION_TEXT,     /* anything */
};

struct option_row {
    const char *name; /* in the agent's option string */
    const char *flag; /* in the command, "--cpu"; NULL when the command has none */
    char letter;      /* in the command, 'i' for -i; 0 when none */
    enum option_kind kind;
    /* of a word: "samples|times|old"; otherwise what help shows, "<ms>" */
    const char *values;
    const char *help;           /* one line without a full stop */
    const char *default_value;  /* NULL: off */
    const char *default_record; /* the default with format=r where it differs, else NULL */
    /* the value that the command's flag means alone (`--cpu`); NULL: it needs one */
    const char *bare;
    /* words that are not built yet, "times|old"; "*" is all but the default; NULL: all are built */
    const char *not_built;
    uint64_t min, max; /* of a number, a duration (ns) or a size */
    bool hidden;       /* not in help: obsolete, or between command and agent */
    /*
     * Of a list, between its parts in the value that is kept, else 0. In what is given a comma is
     * as good, but for log=, whose texts may have commas. A list that is given again goes on; cpu
     * and heap may be given twice with what goes together, if once for each trace; anything else
     * may be given once.
     */
    char separator;
};

/* The table, by enum option. */
extern const struct option_row option_table[OPTION_COUNT];

struct option_value {
    const char *text; /* NULL: off. As given or the default */
    uint64_t number;  /* of a number, duration, size; 1 for y */
    double fraction;
    bool given;
};

enum { TRACES_MAX = 64 };

/* One trace= and the if= behind it. */
struct option_trace {
    const char *patterns;  /* one, or several with ':' between them */
    const char *condition; /* NULL: none */
};

struct options {
    struct option_value v[OPTION_COUNT];
    struct option_trace traces[TRACES_MAX]; /* in the order given */
    unsigned n_traces;
    bool condition_first;       /* an if= stands before all traces */
    char *storage;              /* holds the texts as given, and the parts of `traces` */
    char *joined[OPTION_COUNT]; /* of lists, all of their parts */
    bool help;                  /* the text asks for help; nothing else is set then */
};

/*
 * Parses "cpu=samples,depth=8"; a comma inside a value has a backslash before it, and backslashes
 * that stand before a comma or the end are doubled. Text may be NULL. 0; -EINVAL (a message is in
 * `message`: it names the option and the allowed values), -ENOSYS (the same, for what is not built)
 * or -ENOMEM. The caller releases.
 */
int options_parse(struct options *ret, const char *text, struct buf *message) must_check;
void options_release(struct options *o);
/*
 * What is wrong with the value of one option, as a sentence in `message`: -EINVAL, or -ENOSYS.
 * Needs no other option.
 */
int option_check(enum option which, const char *text, struct buf *message) must_check;
/* The table as HPROF's help has it. */
void options_help(struct buf *out);

/* A row by the agent's name (len bytes) or -ENOENT. */
int option_find(const char *name, size_t len);
/* Whether a value is of an option's allowed words, or none of those not built. */
bool option_has_word(const char *words, const char *word, size_t len);

/* Whether an option has a value; cpu may have two of its words, "samples|times". */
static inline bool option_is(const struct options *o, enum option which, const char *word)
{
    const char *text = o->v[which].text;
    return text && option_has_word(text, word, __builtin_strlen(word));
}

static inline bool option_on(const struct options *o, enum option which)
{
    return o->v[which].number != 0;
}
