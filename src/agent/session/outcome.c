/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/outcome.h"

#include "base/file.h"
#include "options/control.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns false if the program has closed the descriptor and reopened it for something else. */
static bool is_ours(int fd)
{
    char link[64], name[64] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return readlink(link, name, sizeof(name) - 1) > 0 &&
           strncmp(name, "/memfd:" OUTCOME_NAME, strlen("/memfd:" OUTCOME_NAME)) == 0;
}

int outcome_file(const struct options *o)
{
    int fd = o->v[OPT_OUTCOME].given ? (int)o->v[OPT_OUTCOME].number : -1;
    return fd >= 0 && is_ours(fd) ? fd : -1;
}

void outcome_refused(int file, int error, const char *then, struct buf *why)
{
    _cleanup_(buf_release) struct buf line = BUF(1 << 16);
    buf_string(why, then);
    buf_printf(&line, "%d\t\t", -error);
    for (size_t i = 0; i < why->len; i++)
        buf_u8(&line, why->data[i] < ' ' ? ' ' : why->data[i]);
    buf_u8(&line, '\n');
    if (file >= 0 && !buf_error(&line) && file_write_all(file, line.data, line.len) == 0)
        buf_clear(why);
}

void outcome_report(int file, const char *path, int error, const char *why, bool aloud)
{
    char line[PATH_MAX + 1024];
    int n = snprintf(line, sizeof(line), "%d\t%s\t%s\n", -error, path, why);
    if (file >= 0 && file_write_all(file, line, MIN((size_t)n, sizeof(line) - 1)) == 0)
        return;
    if (error < 0 && aloud)
        fprintf(stderr, "hprof: %s: %s\n", path, why);
}
