/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* The length of a file name that is enough to recognize it. */
enum { NAME_BYTES = 400 };

/*
 * Leaves out control characters, because a file name may contain sequences that drive a terminal.
 */
static void print_name(const char *name)
{
    _cleanup_(buf_release) struct buf b = BUF(16 * NAME_BYTES);
    size_t len = strnlen(name, NAME_BYTES);
    for (size_t at = 0, n; at < len; at += n) {
        uint32_t v;
        n = utf8_next(name + at, len - at, &v);
        utf8_is_control(v) ? utf8_put_escaped(&b, v) : utf8_put(&b, v);
    }
    fprintf(stderr, "\r\033[K%s", buf_str(&b));
}

void progress_start(struct progress *p, const char *what)
{
    *p = (struct progress){
        .what = what, .start_ns = now_ns(), .terminal = isatty(STDERR_FILENO) == 1};
}

void progress_update(struct progress *p, uint64_t done, uint64_t total)
{
    uint64_t now = p->terminal ? now_ns() : 0;
    /* Nothing is shown for work that takes less than half a second. */
    if (!p->terminal || now - p->last_ns < NS_PER_SECOND / 10 ||
        now - p->start_ns < NS_PER_SECOND / 2)
        return;
    p->last_ns = now;
    p->shown = true;
    char size[24];
    print_name(p->what);
    if (total)
        fprintf(stderr, ": %3.0f %%", 100.0 * (double)done / (double)total);
    else
        fprintf(stderr, ": %s", format_size(size, done));
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
