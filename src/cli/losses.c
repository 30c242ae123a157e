/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/losses.h"

#include "base/parse.h"
#include "cli/commands.h"

#include <string.h>

/* The commands that show what the captures record. */
static const struct {
    const char *const *captures, *command;
} shown_by[] = {
    {losses_of_trace, "trace"}, {losses_of_coverage, "coverage"}, {losses_of_threads, "threads"},
    {losses_of_vm, "vm"},       {losses_of_profile, "report"},    {losses_of_requests, "requests"},
};

/* "trace 12 calls (jvmscope trace)" */
static void put_other(struct buf *line, const char *capture, uint64_t amount, const char *what)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(shown_by) && !losses_is_of(shown_by[i].captures, capture))
        i++;
    buf_printf(line, "%s%s", line->len ? ", " : "losses of other captures: ", capture);
    if (what)
        buf_printf(line, " %s", COUNT_TEXT(amount, what));
    if (i < ARRAY_SIZE(shown_by))
        buf_printf(line, " (jvmscope %s)", shown_by[i].command);
}

static bool has_rows(const struct losses *l, const char *capture)
{
    for (size_t i = 0; i < l->rows.len; i++)
        if (!loss_is_held(l, &l->rows.data[i]) && strcmp(l->rows.data[i].capture, capture) == 0)
            return true;
    return false;
}

/*
 * Returns false if an earlier row is of the same kind as this one. Otherwise *ret is the amount of
 * all rows of this kind.
 */
static bool is_first_of_kind(const struct losses *l, size_t at, uint64_t *ret)
{
    const struct loss *row = &l->rows.data[at];
    *ret = 0;
    for (size_t i = 0; i < l->rows.len; i++) {
        const struct loss *other = &l->rows.data[i];
        if (loss_is_held(l, other) || strcmp(other->capture, row->capture) != 0 ||
            strcmp(other->what, row->what) != 0)
            continue;
        if (i < at)
            return false;
        *ret += other->amount;
    }
    return true;
}

/* known: what the output has stated already, or NULL */
static void report(const char *path, const struct losses *l, const char *const *captures,
                   const char *known)
{
    _cleanup_(buf_release) struct buf text = BUF(4096), others = BUF(4096);
    uint64_t amount;
    if (*l->damage)
        complain(path, "only part of it could be read", l->damage);
    for (size_t i = 0; i < l->rows.len; i++) {
        const struct loss *row = &l->rows.data[i];
        if (loss_is_held(l, row) || (known && strcmp(row->what, known) == 0))
            continue;
        buf_clear(&text);
        loss_sentence(l, row, &text);
        if (losses_concern(captures, row->capture))
            complain(path, buf_str(&text), NULL);
        else if (is_first_of_kind(l, i, &amount))
            put_other(&others, row->capture, amount, row->what);
    }
    for (size_t i = 0; i < l->early.len; i++) {
        buf_clear(&text);
        losses_early_sentence(&l->early.data[i], &text);
        if (losses_concern(captures, l->early.data[i].capture))
            complain(path, buf_str(&text), NULL);
        else if (!has_rows(l, l->early.data[i].capture)) /* named already */
            put_other(&others, l->early.data[i].capture, 0, NULL);
    }
    for (size_t i = 0; i < l->missing.len; i++) {
        buf_clear(&text);
        losses_missing_sentence(&l->missing.data[i], &text);
        if (losses_concern(captures, l->missing.data[i].capture))
            complain(path, buf_str(&text), NULL);
    }
    if (others.len)
        complain(path, buf_str(&others), NULL);
    for (size_t i = 0; i < l->reduced.len; i++) {
        buf_clear(&text);
        reduced_sentence(l, &l->reduced.data[i], &text);
        complain(path, buf_str(&text), NULL);
    }
    buf_clear(&text);
    if (losses_left_out_sentence(l, &text))
        complain(path, buf_str(&text), NULL);
    buf_clear(&text);
    if (losses_unended_sentence(l, &text))
        complain(path, buf_str(&text), NULL);
}

void losses_report(const char *path, const struct losses *l, const char *const *captures)
{
    report(path, l, captures, NULL);
}

void losses_report_file(const char *path, const char *const *captures)
{
    _cleanup_(losses_release) struct losses l = {0};
    losses_read_file(&l, path, true);
    losses_report(path, &l, captures);
}

void losses_report_as(const char *path, const char *shown, bool ended)
{
    _cleanup_(losses_release) struct losses l = {0};
    losses_read_file(&l, path, true);
    l.unended = l.unended && ended;
    losses_report(shown, &l, NULL);
}

void losses_report_known(const char *path, const char *const *captures, bool any)
{
    _cleanup_(losses_release) struct losses l = {0};
    losses_read_file(&l, path, any);
    losses_report(path, &l, captures);
}

static void report_read(const char *path, const char *const *captures, bool any, const char *known,
                        const char *why)
{
    _cleanup_(losses_release) struct losses l = {0};
    losses_read_file(&l, path, any);
    if (why && !l.cut && !*l.damage)
        complain(path, "only part of it could be read", why);
    report(path, &l, captures, known);
}

void losses_report_read(const char *path, const char *const *captures, bool any, const char *why)
{
    report_read(path, captures, any, NULL, why);
}

void losses_report_others(const char *path, const char *const *captures, const char *what,
                          const char *why)
{
    report_read(path, captures, true, what, why);
}
