/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <stdio.h>

int complain(const char *where, const char *what, const char *why)
{
    fputs("jvmscope", stderr);
    const char *const parts[] = {where, what, why};
    for (int i = 0; i < 3; i++) {
        if (parts[i])
            fprintf(stderr, ": %s", parts[i]);
    }
    fputc('\n', stderr);
    return 1;
}

const struct command commands[] = {
    {0},
};
