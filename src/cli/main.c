/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

static void usage(FILE *to)
{
    fputs("usage: jvmscope COMMAND [OPTION ...]\n\n", to);
    for (const struct command *c = commands; c->name; c++)
        fprintf(to, "  %-10s %s\n", c->name, c->summary);
    fputs("\n`jvmscope COMMAND --help` tells more.\n", to);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("jvmscope " JVMSCOPE_VERSION);
        return 0;
    }
    for (const struct command *c = commands; c->name; c++) {
        if (strcmp(argv[1], c->name) == 0)
            return c->run(argc - 1, argv + 1);
    }
    complain(argv[1], "no such command", "jvmscope --help lists them");
    return 2;
}
