/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include "base/clock.h"
#include "base/parse.h"

#include <stdio.h>

void progress_start(struct progress *p, const char *what)
{
    *p = (struct progress){.what = what, .start_ns = now_ns(), .terminal = isatty(STDERR_FILENO) == 1};
}

void progress_update(struct progress *p, uint64_t done, uint64_t total)
{
    uint64_t now = p->terminal ? now_ns() : 0;
    /* Work of less than half a second shows nothing. */
    if (!p->terminal || now - p->last_ns < NS_PER_SECOND / 10 || now - p->start_ns < NS_PER_SECOND / 2)
        return;
    p->last_ns = now;
    p->shown = true;
    char size[24];
    if (total)
        fprintf(stderr, "\r\033[K%s: %3.0f %%", p->what, 100.0 * (double)done / (double)total);
    else
        fprintf(stderr, "\r\033[K%s: %s", p->what, format_size(size, done));
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
