/* SPDX-License-Identifier: Apache-2.0 */
#include "export/kinds.h"

#include "export/export.h"
#include "jfr/reader.h"

#include <string.h>

enum { TYPES_MAX = 8 };

/*
 * The kinds of contents. A message about a kind that only recordings contain ends with the command
 * that shows it.
 */
static const struct kind {
    enum export_kind kind;
    const char *name, *command, *types[TYPES_MAX];
} kinds[] = {
    {HOLDS_STACKS,
     "samples",
     "report",
     {"jdk.ExecutionSample", "jdk.NativeMethodSample", "jdk.CPUTimeSample",
      "jvmscope.UnattributedSample", "jvmscope.WallSample", "jdk.ObjectAllocationSample",
      "jvmscope.AllocationSite", "jvmscope.CallTimes"}},
    {HOLDS_CALLS, "the counts of calls", "report", {"jvmscope.CallTimes"}},
    {HOLDS_WAITS,
     "the waits of threads",
     "threads summary",
     {"jvmscope.ThreadAnalysis", "jdk.JavaMonitorEnter", "jdk.JavaMonitorWait", "jdk.ThreadPark",
      "jdk.ThreadSleep", "jdk.SocketRead", "jdk.FileRead"}},
    {HOLDS_REQUESTS, "requests", "requests", {"jvmscope.Request", "jvmscope.RequestTotals"}},
    {HOLDS_TRACE,
     "traced calls and log records",
     "trace",
     {"jvmscope.Call", "jvmscope.Log", "jvmscope.FieldAccess", "jdk.MethodTrace",
      "jdk.MethodTiming"}},
    {HOLDS_EXCEPTIONS,
     "the counts of exceptions",
     "trace --exceptions",
     {"jvmscope.ExceptionCount"}},
    {HOLDS_COVERAGE, "coverage", "coverage", {"jvmscope.Coverage"}},
    {HOLDS_VM,
     "what the VM did by itself",
     "vm",
     {"jdk.GarbageCollection", "jdk.Compilation", "jvmscope.Compiled", "jvmscope.ClassLoading",
      "jvmscope.SafepointTotals", "jvmscope.ProcessFigures"}},
};

static bool is_of(const struct kind *kind, const char *type)
{
    for (size_t k = 0; k < TYPES_MAX && kind->types[k]; k++)
        if (strcmp(type, kind->types[k]) == 0)
            return true;
    return false;
}

unsigned export_kind_of(const char *type)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (is_of(&kinds[i], type))
            return kinds[i].kind;
    return 0;
}

void export_kind_names(struct buf *to, unsigned of)
{
    bool first = true;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!(of & kinds[i].kind))
            continue;
        buf_printf(to, "%s%s", first ? "" : ", ", kinds[i].name);
        first = false;
    }
}

/*
 * Returns which of the kinds a profile has. A type that belongs to several kinds counts for the
 * last one of those that are requested.
 */
static unsigned kinds_known(const struct profile *p, unsigned of)
{
    unsigned found = 0;
    for (size_t t = 0; t < p->types.strings.len; t++)
        for (size_t i = ARRAY_SIZE(kinds); i-- > 0;)
            if (of & kinds[i].kind && is_of(&kinds[i], strpool_get(&p->types, t).data)) {
                found |= kinds[i].kind;
                break;
            }
    return found;
}

unsigned export_kinds_in(const char *path, const struct profile *profile, unsigned of)
{
    if (profile && profile->types_known)
        return kinds_known(profile, of);
    struct rec_select wanted[ARRAY_SIZE(kinds) * TYPES_MAX + 1] = {0};
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event e;
    unsigned found = 0;
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        for (size_t k = 0; k < TYPES_MAX && kinds[i].types[k] && of & kinds[i].kind; k++)
            wanted[n++] = (struct rec_select){kinds[i].types[k], (int)i};
    if (!of || recording_open(&r, path, &why) < 0 || recording_select(r, wanted) < 0)
        return 0;
    while (found != of && recording_next(r, &e) > 0)
        found |= kinds[e.tag].kind;
    return found;
}

unsigned export_put_holders(struct buf *to, enum export_kind kind)
{
    unsigned n = 0, at = 0;
    for (const struct export_format *const *f = export_formats; *f; f++)
        n += ((*f)->holds & kind) != 0;
    for (const struct export_format *const *f = export_formats; *f; f++)
        if ((*f)->holds & kind)
            buf_printf(to, "%s%s", at++ == 0 ? "" : at == n ? " and " : ", ", (*f)->extension);
    buf_printf(to, " %s", n == 1 ? "holds" : "hold");
    return n;
}

static void put_sentence(struct buf *to, const struct kind *k)
{
    buf_printf(to, "the output lacks %s, which ", k->name);
    if (export_put_holders(to, k->kind) == 1)
        buf_printf(to, " and jvmscope %s shows", k->command);
}

void export_each_left_out(const struct export_format *format, const char *path,
                          const struct profile *profile,
                          void (*f)(void *context, const char *sentence), void *context)
{
    unsigned left = HOLDS_ALL & ~(unsigned)format->holds;
    unsigned present = export_kinds_in(path, profile, left);
    if (profile && profile->calls.len)
        present |= HOLDS_CALLS & left;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        _cleanup_(buf_release) struct buf text = BUF(4096);
        if (!(present & kinds[i].kind))
            continue;
        put_sentence(&text, &kinds[i]);
        f(context, buf_str(&text));
    }
}
