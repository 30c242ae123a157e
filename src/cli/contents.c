/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/contents.h"

#include "base/macro.h"
#include "cli/commands.h"
#include "jfr/reader.h"
#include "options/options.h"

#include <string.h>

enum { TYPES_MAX = 5 };

/*
 * What the options that a recording contains as jdk.ActiveSetting ask for. value: of the option;
 * NULL means any but "n". Captures that always record something have no row.
 */
static const struct asked {
    const char *option, *value, *types[TYPES_MAX], *nothing;
} rows[] = {
    {"cpu",
     "samples",
     {"jdk.ExecutionSample", "jdk.NativeMethodSample", "jvmscope.UnattributedSample"},
     "holds no samples: no thread used enough CPU time"},
    {"cpu", "wall", {"jvmscope.WallSample", "jvmscope.UnattributedSample"}, "holds no samples"},
    {"cpu",
     "times",
     /* the second one alone when the VM was killed before it could end the recording */
     {"jvmscope.CallTimes", "jvmscope.CallTimesLeft"},
     "holds no calls: no method that was called is instrumented"},
    {"alloc",
     "sampled",
     {"jdk.ObjectAllocationSample", "jvmscope.AllocationSite"},
     "holds no samples of allocations: too little was allocated"},
    {"alloc", "exact", {"jvmscope.AllocationSite"}, "holds no allocations"},
    {"heap", "sites", {"jvmscope.AllocationSite"}, "holds no allocation sites"},
    {"live", NULL, {"jvmscope.AllocationSite"}, "holds no live objects"},
    {"monitor",
     NULL,
     {"jdk.JavaMonitorEnter", "jdk.JavaMonitorWait", "jdk.ThreadPark"},
     "holds no waits for monitors: there was no contention"},
    {"trace",
     NULL,
     {"jvmscope.Call", "jvmscope.TraceUnmatched"},
     "holds no calls of the methods to trace"},
    {"log",
     NULL,
     {"jvmscope.Log", "jvmscope.LogNote"},
     "holds no log records: no place of --log was reached"},
    {"watch",
     NULL,
     {"jvmscope.FieldAccess", "jvmscope.LogNote"},
     "holds no accesses to the fields of --watch"},
    {"exceptions",
     NULL,
     {"jvmscope.ExceptionCount", "jvmscope.ExceptionThrown"},
     "holds no exceptions"},
    {"cover", NULL, {"jvmscope.Coverage"}, "holds no coverage: no class to cover was loaded"},
};

/* Returns true when the recording contains an event of one of the types, or cannot be read. */
static bool has_any(struct recording *r, const char *const types[TYPES_MAX])
{
    struct rec_select wanted[TYPES_MAX + 1] = {0};
    struct rec_event e;
    for (int i = 0; i < TYPES_MAX && types[i]; i++)
        wanted[i] = (struct rec_select){types[i], 1};
    if (recording_select(r, wanted) < 0)
        return true;
    recording_rewind(r);
    return recording_next(r, &e) != 0;
}

void contents_tell(const char *path, const char *shown)
{
    enum { SETTING = 1, UNMATCHED, PATTERN, NOTE };

    static const struct rec_select wanted[] = {{"jdk.ActiveSetting", SETTING},
                                               {"jvmscope.TraceUnmatched", UNMATCHED},
                                               {"jvmscope.PatternUnmatched", PATTERN},
                                               {"jvmscope.LogNote", NOTE},
                                               {0}};
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event e;
    bool asked[ARRAY_SIZE(rows)] = {0};
    if (recording_open(&r, path, &why) < 0 || recording_select(r, wanted) < 0)
        return;
    while (recording_next(r, &e) > 0) {
        if (e.tag == UNMATCHED) {
            complain(rec_string(&e.object, "pattern", "?"), "the pattern traced nothing",
                     rec_string(&e.object, "reason", "no method matches"));
            continue;
        }
        if (e.tag == NOTE) {
            const char *text = rec_string(&e.object, "text", "?");
            complain(rec_string(&e.object, "place", "?"),
                     text + (strncmp(text, "note: ", 6) == 0 ? 6 : 0), NULL);
            continue;
        }
        if (e.tag == PATTERN) {
            const char *option = rec_string(&e.object, "option", "?");
            int i = option_find(option, strlen(option));
            complain(i >= 0 && option_table[i].flag ? option_table[i].flag : option,
                     i == OPT_SHOW ? "no class that was loaded has this field"
                                   : "no class that was loaded matches",
                     rec_string(&e.object, "pattern", "?"));
            continue;
        }
        const char *name = rec_string(&e.object, "name", ""),
                   *value = rec_string(&e.object, "value", "");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            bool all = strcmp(rows[i].option, "heap") == 0 && strcmp(value, "all") == 0;
            asked[i] |= strcmp(name, rows[i].option) == 0 &&
                        (all || (rows[i].value ? strcmp(value, rows[i].value) == 0
                                               : strcmp(value, "n") != 0));
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (asked[i] && !has_any(r, rows[i].types))
            complain(shown, rows[i].nothing, NULL);
}
