/* SPDX-License-Identifier: Apache-2.0 */
#include "export/kinds.h"

#include "base/macro.h"
#include "export/export.h"
#include "jfr/reader.h"

#include <stdlib.h>

/*
 * The kinds of data. A message about a kind that only recordings contain ends with the command that
 * shows it.
 */
static const struct kind {
    enum event_data kind;
    const char *name, *command;
} kinds[] = {
    {HOLDS_STACKS, "samples", "report"},
    {HOLDS_CALLS, "the counts of calls", "report"},
    {HOLDS_WAITS, "the waits of threads", "threads summary"},
    {HOLDS_REQUESTS, "requests", "requests"},
    {HOLDS_TRACE, "traced calls", "trace"},
    {HOLDS_LOG, "log records and accesses to fields", "trace"},
    {HOLDS_EXCEPTIONS, "the counts of exceptions", "trace --exceptions"},
    {HOLDS_COVERAGE, "coverage", "coverage"},
    {HOLDS_VM, "the VM's own activity", "vm"},
    {HOLDS_PAUSES, "pauses for collections", "vm"},
};

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

/* Returns which of the requested kinds events of a type count for: the last one, if several. */
static unsigned kind_among(unsigned of, const struct event_row *row)
{
    unsigned kinds_of_type = row->holds & of;
    while (kinds_of_type & (kinds_of_type - 1))
        kinds_of_type &= kinds_of_type - 1;
    return kinds_of_type;
}

/* Returns which of the kinds `of` a profile has. */
static unsigned kinds_known(const struct profile *p, unsigned of)
{
    unsigned found = 0;
    for (size_t t = 0; t < p->types.strings.len; t++)
        found |= kind_among(of, catalog_find(strpool_get(&p->types, t).data));
    return found;
}

unsigned export_kinds_in(const char *path, const struct profile *profile, unsigned of)
{
    if (profile && profile->types_known)
        return kinds_known(profile, of);
    size_t n, wanted_n = 0;
    const struct event_row *rows = catalog_rows(&n);
    _cleanup_free_ struct rec_select *wanted = calloc(n + 1, sizeof(*wanted));
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event e;
    unsigned found = 0;
    for (size_t i = 0; wanted && i < n; i++)
        if (kind_among(of, &rows[i]))
            wanted[wanted_n++] = (struct rec_select){rows[i].type, (int)i};
    if (!wanted_n || recording_open(&r, path, &why) < 0 || recording_select(r, wanted) < 0)
        return 0;
    while (found != of && recording_next(r, &e) > 0)
        found |= kind_among(of, &rows[e.tag]);
    return found;
}

unsigned export_put_holders(struct buf *to, enum event_data kind)
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

static void put_sentence(struct buf *to, const struct kind *k, bool partly)
{
    buf_printf(to, "the output lacks %s%s, which ", partly ? "most of " : "", k->name);
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
        put_sentence(&text, &kinds[i], format->holds_partly & kinds[i].kind);
        f(context, buf_str(&text));
    }
}
