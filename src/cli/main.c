/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/macro.h"
#include "cli/commands.h"
#include "options/options.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* Returns true when standard output is a pipe whose reader has closed it. */
static bool reader_is_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO};
    return poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

/*
 * Checks that everything printed was written. If standard output is a file on a full disk, that is
 * a failure, whenever it happened.
 */
static int output_end(int status)
{
    bool failed_before = ferror(stdout);
    errno = 0;
    bool failed = fflush(stdout) != 0 || failed_before;
    int error = errno;
    if (!failed || error == EPIPE || reader_is_gone())
        return status;
    /* stdio does not keep the reason for an earlier failure. */
    complain("standard output", "cannot write",
             error ? strerror(error) : "only a part was written");
    return status ? status : 1;
}

/*
 * `jvmscope help COMMAND [VERB]` is `jvmscope COMMAND [VERB] --help`. What follows is left out,
 * above all the program of `help run`.
 */
static int help(int argc, char **argv)
{
    static char option[] = "--help";
    bool verbs = false;
    /* `help help` is `help`, and nothing before `--` was an option. */
    for (; argc > 1 && (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--") == 0); argc--)
        argv++;
    for (const struct command *const *c = commands; argc > 2 && *c; c++)
        verbs |= (*c)->verbs && strcmp(argv[1], (*c)->name) == 0;
    /* Drops the word `help` and appends the option. */
    int words = MIN(argc - 1, verbs ? 2 : 1);
    for (int i = 0; i < words; i++)
        argv[i] = argv[i + 1];
    argv[words] = option;
    return command_dispatch(commands, words + 1, argv);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0)) {
        puts("jvmscope " JVMSCOPE_VERSION);
        return output_end(0);
    }
    /*
     * A file that reaches its size limit (ulimit -f) makes a write fail, as a full disk does,
     * instead of ending the process.
     */
    options_speak_of_flags();
    file_limit_begin();
    file_fault_begin();
    bool asks_for_help = argc > 1 && strcmp(argv[1], "help") == 0;
    int status =
        asks_for_help ? help(argc - 1, argv + 1) : command_dispatch(commands, argc - 1, argv + 1);
    return output_end(status);
}
