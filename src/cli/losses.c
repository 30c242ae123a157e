/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/losses.h"

#include "cli/commands.h"

static void report(const char *path, struct buf *sentence, struct buf *ret_text)
{
    complain(path, buf_str(sentence), NULL);
    if (ret_text)
        buf_printf(ret_text, "%s%s", ret_text->len ? "; " : "", buf_str(sentence));
}

void losses_report(const char *path, const struct losses *l, struct buf *ret_text)
{
    _cleanup_(buf_release) struct buf text = BUF(4096);
    for (size_t i = 0; i < l->rows.len; i++) {
        if (loss_is_held(l, &l->rows.data[i]))
            continue;
        buf_clear(&text);
        loss_sentence(l, &l->rows.data[i], &text);
        report(path, &text, ret_text);
    }
    for (size_t i = 0; i < l->early.len; i++) {
        buf_clear(&text);
        losses_early_sentence(&l->early.data[i], &text);
        report(path, &text, ret_text);
    }
    for (size_t i = 0; i < l->reduced.len; i++) {
        buf_clear(&text);
        reduced_sentence(l, &l->reduced.data[i], &text);
        report(path, &text, ret_text);
    }
    buf_clear(&text);
    if (losses_unended_sentence(l, &text))
        report(path, &text, ret_text);
}

static void read_file(const char *path, struct losses *ret, bool any)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    if (recording_open(&r, path, &why) < 0)
        return;
    if (losses_read(ret, r, any) < 0)
        losses_release(ret);
}

void losses_report_file(const char *path, struct buf *ret_text)
{
    _cleanup_(losses_release) struct losses l = {0};
    read_file(path, &l, true);
    losses_report(path, &l, ret_text);
}

void losses_report_as(const char *path, const char *shown, bool ended)
{
    _cleanup_(losses_release) struct losses l = {0};
    read_file(path, &l, true);
    l.unended = l.unended && ended;
    losses_report(shown, &l, NULL);
}

void losses_report_known(const char *path, bool any)
{
    _cleanup_(losses_release) struct losses l = {0};
    read_file(path, &l, any);
    losses_report(path, &l, NULL);
}

void losses_report_read(const char *path, bool any, const char *why)
{
    _cleanup_(losses_release) struct losses l = {0};
    read_file(path, &l, any);
    if (why && !l.cut)
        complain(path, "read as far as possible", why);
    losses_report(path, &l, NULL);
}

void losses_json_of_file(const char *path, const char *const *captures, bool any, struct json *j)
{
    _cleanup_(losses_release) struct losses l = {0};
    read_file(path, &l, any);
    losses_json(&l, captures, j);
}
