/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

static _Thread_local struct buf *complaints;

void complain_to(struct buf *b)
{
    complaints = b;
}

static const char *alias_path, *alias_shown;

void complain_as(const char *path, const char *shown)
{
    alias_path = path;
    alias_shown = shown;
}

int complain(const char *where, const char *what, const char *why)
{
    _cleanup_(buf_release) struct buf line = BUF(1 << 20);
    const char *parts[] = {where, what, why};
    buf_string(&line, "jvmscope");
    if (where && alias_path && strcmp(where, alias_path) == 0)
        parts[0] = alias_shown;
    for (int i = 0; i < 3; i++) {
        if (parts[i])
            buf_printf(&line, ": %s", parts[i]);
    }
    if (complaints)
        buf_printf(complaints, "%s\n", buf_str(&line));
    else
        fprintf(stderr, "%s\n", buf_str(&line));
    return 1;
}

int complain_errno(const char *where, const char *what, int error)
{
    return complain(where, what, strerror(-error));
}

const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "cli/command_list.h"
#undef COMMAND
    NULL,
};
