/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/contents.h"

#include "base/file.h"
#include "base/macro.h"
#include "cli/commands.h"
#include "cli/target.h"
#include "hprof/reader.h"
#include "hprof/text_reader.h"
#include "jfr/reader.h"
#include "options/options.h"
#include "profile/losses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES_MAX = 5 };

/* Waits that have not ended. Only those of threads that are blocked at monitors count. */
#define WAITING "jvmscope.Waiting"

/*
 * The events that a recording should contain, given its options (jdk.ActiveSetting). value: the
 * option's value; NULL means any but "n". Captures that always record something have no row.
 */
static const struct asked {
    const char *option, *value, *types[TYPES_MAX];
    struct contents_nothing nothing;
} rows[] = {
    {"cpu",
     "samples",
     {"jdk.ExecutionSample", "jdk.NativeMethodSample", "jvmscope.UnattributedSample"},
     {"holds no samples", "no thread used enough CPU time; --threads or "
                          "--cpu=wall shows what they wait for"}},
    {"cpu",
     "wall",
     {"jvmscope.WallSample", "jvmscope.UnattributedSample"},
     {"holds no samples", NULL}},
    {"cpu",
     "times",
     /* only the second one if the VM was killed before it could end the recording */
     {"jvmscope.CallTimes", "jvmscope.CallTimesLeft"},
     {"holds no calls", "no method that was called is instrumented"}},
    {"alloc",
     "sampled",
     {"jdk.ObjectAllocationSample", "jvmscope.AllocationSite"},
     {"holds no samples of allocations", "too little was allocated"}},
    {"alloc", "exact", {"jvmscope.AllocationSite"}, {"holds no allocations", NULL}},
    {"heap", "sites", {"jvmscope.AllocationSite"}, {"holds no allocation sites", NULL}},
    {"live", NULL, {"jvmscope.AllocationSite"}, {"holds no live objects", NULL}},
    {"monitor",
     NULL,
     {"jdk.JavaMonitorEnter", "jdk.JavaMonitorWait", "jdk.ThreadPark", WAITING},
     {"holds no waits for monitors", "there was no contention"}},
    {"trace",
     NULL,
     {"jvmscope.Call", "jvmscope.TraceUnmatched"},
     {"holds no calls", "the methods to trace were not called"}},
    {"log",
     NULL,
     {"jvmscope.Log", "jvmscope.LogNote"},
     {"holds no log records", "no place of --log was reached"}},
    {"watch",
     NULL,
     {"jvmscope.FieldAccess", "jvmscope.LogNote"},
     {"holds no accesses to the fields of --watch",
      "no instruction of a method made one, and those by reflection, VarHandle, Unsafe and JNI are "
      "not seen"}},
    {"exceptions",
     NULL,
     {"jvmscope.ExceptionCount", "jvmscope.ExceptionThrown"},
     {"holds no exceptions", "none was thrown"}},
    {"requests",
     NULL,
     {"jvmscope.Request", "jvmscope.RequestTotals"},
     {"holds no requests", "no server that is known received one in this time; "
                           "--requests='pkg.Class.method(..)' names others"}},
    {"cover", NULL, {"jvmscope.Coverage"}, {"holds no coverage", "no class to cover was loaded"}},
};

/* Returns true when the recording contains an event of one of the types, or cannot be read. */
static bool has_any(struct recording *r, const char *const types[TYPES_MAX])
{
    enum { ANY = 1, OPEN_WAIT };

    struct rec_select wanted[TYPES_MAX + 1] = {0};
    struct rec_event e;
    int more;
    for (int i = 0; i < TYPES_MAX && types[i]; i++)
        wanted[i] = (struct rec_select){types[i], strcmp(types[i], WAITING) == 0 ? OPEN_WAIT : ANY};
    if (recording_select(r, wanted) < 0)
        return true;
    recording_rewind(r);
    do
        more = recording_next(r, &e);
    while (more > 0 && e.tag == OPEN_WAIT &&
           strcmp(rec_string(&e.object, "kind", ""), "monitor") != 0);
    return more != 0;
}

/*
 * Returns whether the value of an option, as the recording contains it, asks for what is in a row.
 */
static bool asks_for(const struct asked *row, const char *name, const char *value)
{
    bool all = strcmp(row->option, "heap") == 0 && strcmp(value, "all") == 0;
    return strcmp(row->option, name) == 0 &&
           (all || (row->value ? option_has_word(value, row->value, strlen(row->value))
                               : strcmp(value, "n") != 0));
}

/*
 * What a recording was asked to contain: the options that are on, and the rows of asked[] that
 * apply.
 */
struct settings {
    bool on[OPTION_COUNT], asked[ARRAY_SIZE(rows)];
    bool counts_throws;         /* --exceptions counts, without stacks */
    bool only_named;            /* --requests names methods and has no "auto" */
    bool missing[OPTION_COUNT]; /* something that the option names does not exist */
    bool part;                  /* of a recording, by time, threads or classes */
};

static void note_setting(struct settings *s, const struct rec_event *e)
{
    const char *name = rec_string(&e->object, "name", ""),
               *value = rec_string(&e->object, "value", "");
    int option = option_find(name, strlen(name));
    if (option >= 0)
        s->on[option] = strcmp(value, "n") != 0;
    if (option == OPT_EXCEPTIONS)
        s->counts_throws = strcmp(value, "stacks") != 0;
    if (option == OPT_REQUESTS)
        s->only_named =
            strchr(value, '.') && strncmp(value, "auto:", 5) != 0 && !strstr(value, ":auto");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        s->asked[i] |= asks_for(&rows[i], name, value);
}

static struct contents_nothing why_nothing(const struct settings *s, const struct asked *row)
{
    struct contents_nothing ret = row->nothing;
    if (s->part)
        ret.why = CONTENTS_OF_A_PART;
    else if (s->only_named && strcmp(row->option, "requests") == 0)
        ret.why = "no method that --requests names was called in this time";
    else if (s->on[OPT_IF] && strcmp(row->option, "trace") == 0)
        ret.why = "the methods to trace were not called, or no call met the condition of --if";
    /* Counts come from probes in the classes that were chosen, stacks from the VM. */
    else if (strcmp(row->option, "exceptions") == 0 && s->counts_throws && s->on[OPT_INCLUDE])
        ret.why = "none was thrown in the classes that --include names; what other classes threw "
                  "was not counted";
    else if (strcmp(row->option, "exceptions") == 0 && s->counts_throws && s->on[OPT_EXCLUDE])
        ret.why = "none was thrown outside of the classes that --exclude names, in which throws "
                  "were not counted";
    return ret;
}

/* Returns whether the recording has lost what a row is about: "holds no calls" and "calls". */
static bool has_lost(struct recording *r, const struct asked *row)
{
    _cleanup_(losses_release) struct losses l = {0};
    bool read = losses_read(&l, r, true) == 0;
    for (size_t i = 0; read && i < l.rows.len; i++) {
        const struct loss *x = &l.rows.data[i];
        if (!loss_is_held(&l, x) && strcmp(x->capture, row->option) == 0 &&
            file_name_ends_in(row->nothing.what, x->what) &&
            !strstr(x->reason, "already in progress"))
            return true;
    }
    return false;
}

/* Returns why a recording has nothing of a row, considering what it has lost. */
static struct contents_nothing why_empty(struct recording *r, const struct settings *s,
                                         const struct asked *row)
{
    struct contents_nothing ret = why_nothing(s, row);
    if (!s->part && has_lost(r, row))
        ret.why = "all that there were are lost";
    return ret;
}

/* ---- which command shows what ---- */

/*
 * Each chunk of a ring repeats the settings. In a part of a ring they are complete when the first
 * one comes again; the rest, which may be 256 MiB, is not read.
 */
static void read_settings(struct recording *r, struct settings *ret)
{
    static const struct rec_select wanted[] = {{"jdk.ActiveSetting", 1}, {0}};
    _cleanup_free_ char *first = NULL;
    struct rec_info info;
    struct rec_event e;
    recording_info(r, &info);
    ret->part = info.part_of;
    if (recording_select(r, wanted) < 0)
        return;
    while (recording_next(r, &e) > 0) {
        const char *name = rec_string(&e.object, "name", "");
        if (first && info.part_of_ring && strcmp(first, name) == 0)
            return;
        first = first ? first : strdup(name);
        note_setting(ret, &e);
    }
}

/*
 * Returns whether the recording has an event of these types that a command can show. Events that
 * only report a pattern without a method or a place of --log do not count.
 */
static bool has_shown(struct recording *r, const char *const types[TYPES_MAX])
{
    const char *shown[TYPES_MAX] = {0};
    for (int i = 0, n = 0; i < TYPES_MAX && types[i]; i++)
        if (strcmp(types[i], "jvmscope.TraceUnmatched") != 0 &&
            strcmp(types[i], "jvmscope.LogNote") != 0)
            shown[n++] = types[i];
    return has_any(r, shown);
}

/*
 * Returns the command that shows what an option has recorded, or NULL if it has recorded nothing.
 */
static const char *shown_by(struct recording *r, const struct settings *s, int option)
{
    const struct option_row *row = &option_table[option];
    bool has_rows = false, any = false;
    /* Its dump is a file of its own. */
    if (!s->on[option] || !row->gives || option == OPT_ONOOM)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(rows) && !any; i++) {
        if (strcmp(rows[i].option, row->name) != 0)
            continue;
        has_rows = true;
        any = s->asked[i] && has_shown(r, rows[i].types);
    }
    return has_rows && !any ? NULL : row->shown_by ? row->shown_by : "report";
}

bool contents_requested(const char *path, int option)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    struct settings s = {0};
    const char *why = NULL;
    if (recording_open(&r, path, &why) == 0)
        read_settings(r, &s);
    return s.on[option];
}

static const char *recording_shown_by(struct recording *r, const char *words)
{
    struct settings s = {0};
    const char *found = NULL;
    read_settings(r, &s);
    for (const char *at = words; !found && at && *at; at += strcspn(at, ","), at += *at == ',') {
        int option = option_find(at, strcspn(at, "=,"));
        found = option < 0 ? NULL : shown_by(r, &s, option);
    }
    for (int i = 0; !found && i < OPTION_COUNT; i++)
        found = shown_by(r, &s, i);
    return found;
}

/* The options with patterns, of which events say that they had no effect. */
static const enum option with_patterns[] = {OPT_TRACE,    OPT_LOG,   OPT_WATCH,
                                            OPT_REQUESTS, OPT_LOCKS, OPT_INCLUDE,
                                            OPT_EXCLUDE,  OPT_SHOW,  OPT_TOSTRING};

struct patterns {
    char *list;           /* the value of the option, or NULL */
    struct buf unmatched; /* "\nPATTERN\nPATTERN\n" */
};

/* Returns whether an option has patterns and all of them are unmatched. */
static bool all_unmatched(enum option option, struct patterns *p)
{
    /* The agent accepts several separators between the fields and classes of traced objects. */
    const char separator[] = {option_table[option].separator, 0};
    const char *separators = option == OPT_SHOW || option == OPT_TOSTRING ? ":, " : separator;
    bool all = p->list && p->unmatched.len && !buf_error(&p->unmatched);
    char *list = p->list;
    for (char *one; all && (one = strsep(&list, separators));) {
        _cleanup_(buf_release) struct buf framed = BUF(1 << 17);
        one += strspn(one, " ");
        if (option == OPT_LOG) /* a place, and what is logged there */
            one[strcspn(one, " ")] = 0;
        buf_printf(&framed, "\n%s\n", one);
        all = !*one || (!buf_error(&framed) && strstr(buf_str(&p->unmatched), buf_str(&framed)));
    }
    return all;
}

static void add_unmatched(struct patterns *of, int option, const char *pattern)
{
    for (size_t i = 0; i < ARRAY_SIZE(with_patterns); i++)
        if ((int)with_patterns[i] == option)
            buf_printf(&of[i].unmatched, "%s%s\n", of[i].unmatched.len ? "" : "\n", pattern);
}

/* Adds patterns of --trace, which are separated by commas outside of parentheses. */
static void add_unmatched_traces(struct patterns *of, const char *list)
{
    _cleanup_free_ char *copy = strdup(list);
    char *begin = copy;
    int depth = 0;
    for (char *p = copy; p; p++) {
        char c = *p;
        depth += (c == '(') - (c == ')');
        if (c && (c != ',' || depth > 0))
            continue;
        *p = 0;
        add_unmatched(of, OPT_TRACE, begin);
        if (!c)
            return;
        begin = p + 1;
    }
}

/* Copies the value of an option with patterns, unless it is known already. */
static void keep_setting(struct patterns *of, const struct rec_event *e)
{
    const char *name = rec_string(&e->object, "name", "");
    for (size_t i = 0; i < ARRAY_SIZE(with_patterns); i++)
        if (!of[i].list && strcmp(name, option_table[with_patterns[i]].name) == 0)
            of[i].list = strdup(rec_string(&e->object, "value", ""));
}

/*
 * Sets s->missing of the options all of whose patterns are unmatched. Returns whether one of them
 * has no row, and so no events of its own.
 */
static bool note_without_effect(struct settings *s, struct patterns *of)
{
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(with_patterns); i++) {
        enum option option = with_patterns[i];
        bool has_row = false;
        for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
            has_row |= strcmp(rows[k].option, option_table[option].name) == 0;
        s->missing[option] = all_unmatched(option, &of[i]);
        any |= s->missing[option] && !has_row;
        free(of[i].list);
        buf_release(&of[i].unmatched);
    }
    return any;
}

enum { SETTING = 1, UNMATCHED, PATTERN, NOTE };

/* Notes what was asked for, and which patterns had no effect. */
static void note_event(struct settings *s, struct patterns *of, const struct rec_event *e)
{
    const char *option = rec_string(&e->object, "option", "?");
    switch (e->tag) {
    case SETTING:
        note_setting(s, e);
        keep_setting(of, e);
        break;
    case UNMATCHED:
        if (!rec_long(&e->object, "partly", 0))
            add_unmatched_traces(of, rec_string(&e->object, "pattern", "?"));
        break;
    case PATTERN:
        add_unmatched(of, option_find(option, strlen(option)),
                      rec_string(&e->object, "pattern", "?"));
        break;
    case NOTE:
        add_unmatched(of, OPT_LOG, rec_string(&e->object, "place", "?"));
        add_unmatched(of, OPT_WATCH, rec_string(&e->object, "place", "?"));
    }
}

/* Returns whether the option that an event is about had no effect at all. */
static bool is_about_missing(const struct settings *s, const struct rec_event *e)
{
    const char *name = rec_string(&e->object, "option", "?");
    int option = e->tag == UNMATCHED ? OPT_TRACE : option_find(name, strlen(name));
    return e->tag == NOTE ? s->missing[OPT_LOG] || s->missing[OPT_WATCH]
                          : option >= 0 && s->missing[option];
}

static void report_pattern(const struct rec_event *e)
{
    const char *subject = rec_string(&e->object, "pattern", "?"),
               *option = rec_string(&e->object, "option", "?"),
               *nested = rec_string(&e->object, "nested", NULL),
               *reason = rec_string(&e->object, "reason", NULL);
    int i = option_find(option, strlen(option));
    _cleanup_(buf_release) struct buf text = BUF(4096);
    if (reason && *reason) {
        buf_printf(&text, "%s: no call of it can be a request", subject);
        complain(option_table[OPT_REQUESTS].flag, buf_str(&text), reason);
        return;
    }
    buf_string(&text, subject);
    if (nested && *nested)
        buf_printf(&text, i == OPT_SHOW ? ", but there is %s" : ", but %s was", nested);
    complain(i >= 0 && option_table[i].flag ? option_table[i].flag : option,
             i == OPT_SHOW ? "no class that was loaded has this field"
                           : "nothing that was loaded matches",
             buf_str(&text));
}

/* Prints which pattern or place had no effect. */
static void report_event(const struct rec_event *e)
{
    const char *subject = rec_string(&e->object, "pattern", "?"),
               *reason = rec_string(&e->object, "reason", "no method matches"),
               *text = rec_string(&e->object, "text", "?");
    switch (e->tag) {
    case UNMATCHED:
        complain(subject,
                 rec_long(&e->object, "partly", 0) ? "the pattern did not trace all that it matches"
                                                   : "the pattern traced nothing",
                 target_has_reported_why(subject, reason) ? NULL : reason);
        break;
    case NOTE:
        complain(rec_string(&e->object, "place", "?"),
                 text + (strncmp(text, "note: ", 6) == 0 ? 6 : 0), NULL);
        break;
    case PATTERN:
        report_pattern(e);
    }
}

int contents_report(const char *path, const char *shown)
{
    static const struct rec_select wanted[] = {{"jdk.ActiveSetting", SETTING},
                                               {"jvmscope.TraceUnmatched", UNMATCHED},
                                               {"jvmscope.PatternUnmatched", PATTERN},
                                               {"jvmscope.LogNote", NOTE},
                                               {0}};
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event e;
    struct settings s = {0};
    struct patterns patterns[ARRAY_SIZE(with_patterns)];
    if (recording_open(&r, path, &why) < 0)
        return 0;
    bool empty = !recording_shown_by(r, NULL);
    if (recording_select(r, wanted) < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
        patterns[i] = (struct patterns){.unmatched = BUF(1 << 20)};
    recording_rewind(r);
    while (recording_next(r, &e) > 0)
        note_event(&s, patterns, &e);
    int status = note_without_effect(&s, patterns);
    recording_rewind(r);
    while (recording_next(r, &e) > 0) {
        const char *subject = rec_string(&e.object, e.tag == NOTE ? "place" : "pattern", "?");
        /*
         * What the command has already reported is repeated only if it explains why the recording
         * is empty, or why the status is 1.
         */
        if (e.tag != SETTING &&
            (empty || is_about_missing(&s, &e) || !target_has_reported(subject)))
            report_event(&e);
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int option = option_find(rows[i].option, strlen(rows[i].option));
        if (s.asked[i] && !(s.missing[option] ? has_any : has_shown)(r, rows[i].types)) {
            struct contents_nothing nothing = why_empty(r, &s, &rows[i]);
            complain(shown, nothing.what, nothing.why);
        }
        if (s.asked[i] && s.missing[option] && !has_shown(r, rows[i].types))
            status = 1;
    }
    return status;
}

void contents_report_patterns(const char *path)
{
    static const struct rec_select wanted[] = {{"jvmscope.PatternUnmatched", PATTERN}, {0}};
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event e;
    if (recording_open(&r, path, &why) < 0 || recording_select(r, wanted) < 0)
        return;
    while (recording_next(r, &e) > 0)
        report_pattern(&e);
}

static const char *hprof_shown_by(const struct file_map *map)
{
    struct hprof_reader reader;
    struct hprof_record record;
    bool samples = false, sites = false;
    if (hprof_reader_init(&reader, map->data, map->len) < 0)
        return NULL;
    while (hprof_next(&reader, &record)) {
        if (record.tag == HPROF_HEAP_DUMP || record.tag == HPROF_HEAP_DUMP_SEGMENT)
            return "heap leaks";
        /*
         * Each record begins with its totals; a record without rows ends there. Dumps of samples
         * add up; of the tables of sites only the last one counts.
         */
        if (record.tag == HPROF_CPU_SAMPLES)
            samples |= record.len > 8;
        else if (record.tag == HPROF_ALLOC_SITES)
            sites = record.len > 34;
    }
    return samples || sites ? "report" : NULL;
}

/* Dumps of samples and times add up; of the tables of sites only the last one counts. */
static int note_text_row(void *context, const struct hprof_text_item *item)
{
    bool *has_rows = context;
    switch (item->kind) {
    case HPROF_ITEM_RANKED:
    case HPROF_ITEM_OLD:
        *has_rows = true;
        return -ECANCELED; /* one row is enough */
    case HPROF_ITEM_SITES_BEGIN:
    case HPROF_ITEM_SITE:
        *has_rows = item->kind == HPROF_ITEM_SITE;
        return 0;
    default:
        return 0;
    }
}

/* Returns whether a text file has a row that report would show. */
static bool text_has_rows(const struct file_map *map)
{
    bool has_rows = false;
    struct hprof_text_summary summary;
    int r = hprof_text_read(map->data, map->len, note_text_row, &has_rows, &summary);
    return has_rows && (r == 0 || r == -ECANCELED);
}

const char *contents_shown_by(const char *path, const char *words)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    if (recording_open(&r, path, &why) == 0)
        return recording_shown_by(r, words);
    struct file_map map = {0};
    if (file_map_open(&map, path) < 0)
        return NULL;
    const char *found = hprof_shown_by(&map);
    found = found ? found : text_has_rows(&map) ? "report" : NULL;
    file_map_release(&map);
    return found;
}

static int note_table(void *context, const struct hprof_text_item *item)
{
    bool *has_table = context;
    *has_table = item->kind == HPROF_ITEM_RANKED_BEGIN || item->kind == HPROF_ITEM_SITES_BEGIN ||
                 item->kind == HPROF_ITEM_OLD_BEGIN || item->kind == HPROF_ITEM_HEAP_BEGIN;
    return *has_table ? -ECANCELED : 0;
}

static bool hprof_has_table(struct hprof_reader *reader)
{
    struct hprof_record record;
    while (hprof_next(reader, &record))
        if (record.tag == HPROF_CPU_SAMPLES || record.tag == HPROF_ALLOC_SITES ||
            record.tag == HPROF_HEAP_SUMMARY || record.tag == HPROF_HEAP_DUMP ||
            record.tag == HPROF_HEAP_DUMP_SEGMENT)
            return true;
    return false;
}

bool contents_lacks_tables(const char *path)
{
    struct hprof_text_summary summary;
    struct hprof_reader reader;
    struct file_map map = {0};
    bool lacks = false, has_table = false;
    if (file_map_open(&map, path) < 0)
        return false;
    if (hprof_reader_init(&reader, map.data, map.len) == 0)
        lacks = !hprof_has_table(&reader);
    else
        lacks = hprof_text_read(map.data, map.len, note_table, &has_table, &summary) == 0;
    file_map_release(&map);
    return lacks;
}

int contents_complain(const char *path, const char *const *options, const char *what,
                      const char *why)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    struct settings s = {0};
    const char *reason = NULL;
    struct contents_nothing nothing = {what, why};
    if (recording_open(&r, path, &reason) == 0)
        read_settings(r, &s);
    for (; *options && nothing.what == what; options++)
        for (size_t i = 0; i < ARRAY_SIZE(rows) && nothing.what == what; i++)
            if (s.asked[i] && strcmp(rows[i].option, *options) == 0)
                nothing = why_empty(r, &s, &rows[i]);
    return complain(path, nothing.what, nothing.why);
}
