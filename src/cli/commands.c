/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/builtin.h"

#include <stdio.h>
#include <string.h>

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

int complain_errno(const char *where, const char *what, int error)
{
    return complain(where, what, strerror(-error));
}

const struct command commands[] = {
    {
        .name = "report",
        .run = cmd_report,
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "print the ranked methods and the hottest stacks of a recording",
        .description =
            "Reads a recording (JFR of any JDK, HPROF text or binary, collapsed stacks) and prints its methods, ranked by "
            "their own time (self), with the time of what they called (total; recursion counts once), and the hottest "
            "stacks, the running method first.",
        .examples = "  jvmscope report app.jfr                          the whole recording\n"
                    "  jvmscope report --thread 'worker-*' app.jfr      of some threads alone\n"
                    "  jvmscope report --from 10s --to 20s app.jfr      of a window of time\n"
                    "  jvmscope report --json app.jfr                   for a program\n",
        .sets = report_sets,
    },
    {
        .name = "diff",
        .run = cmd_diff,
        .operands = "BASE NEW",
        .min_operands = 2,
        .max_operands = 2,
        .summary = "compare the methods of two recordings",
        .description = "Prints the methods whose share of the whole changed most from one recording to the other.",
        .examples = "  jvmscope diff before.jfr after.jfr\n",
        .sets = diff_sets,
    },
    {
        .name = "convert",
        .run = cmd_convert,
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "turn a recording, or a part of it, into another format",
        .description = "Writes what is selected of a recording in another format; the extension of the output picks it.",
        .examples = "  jvmscope convert app.jfr -o app.html             flame graph and table, one file, works offline\n"
                    "  jvmscope convert app.jfr -o app.pb.gz            for pprof\n"
                    "  jvmscope convert --thread main app.jfr -o main.collapsed\n",
        .sets = convert_sets,
    },
    {0},
};
