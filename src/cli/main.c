/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "cli/commands.h"
#include "cli/nearest.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static void usage(const struct command *const *table, FILE *to)
{
    bool top = table == commands;
    if (top)
        fputs("usage: jvmscope COMMAND [OPTION ...]\n\n", to);
    command_summaries(table, to);
    fprintf(to, "\n`jvmscope help %s` says more%s.\n", top ? "COMMAND" : "COMMAND VERB",
            top ? "; `jvmscope --version` prints the version" : "");
}

const char *command_word(const struct command *c)
{
    const char *space = strrchr(c->name, ' ');
    return space ? space + 1 : c->name;
}

/* For a command that also works without a verb: returns whether its first operand is a verb. */
static bool names_verb(const struct command *const *verbs, int argc, char **argv)
{
    COMMAND_EACH(v, argc > 1 ? verbs : NULL)
    {
        if (strcmp(argv[1], command_word(v)) == 0)
            return true;
    }
    return false;
}

int command_dispatch(const struct command *const *table, int argc, char **argv)
{
    if (argc < 1) {
        usage(table, stderr);
        return 2;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        usage(table, stdout);
        return 0;
    }
    COMMAND_EACH(c, table)
    {
        if (strcmp(argv[0], command_word(c)) != 0)
            continue;
        bool verb = c->verbs && (!c->run || names_verb(c->verbs, argc, argv));
        return verb ? command_dispatch(c->verbs, argc - 1, argv + 1) : c->run(c, argc, argv);
    }
    struct nearest n = {.word = argv[0]};
    char guess[128];
    COMMAND_EACH(c, table)
    nearest_try(&n, command_word(c));
    snprintf(guess, sizeof(guess), "did you mean %s?", n.best ? n.best : "");
    const char *list = table == commands ? "jvmscope --help lists them" : "--help lists them";
    complain(argv[0], "no such command", n.best ? guess : list);
    return 2;
}

/* Returns true when standard output is a pipe whose reader has closed it. */
static bool reader_is_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO};
    return poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

/*
 * Checks that everything printed was written: a full disk behind standard output is a failure,
 * whenever it happened.
 */
static int output_end(int status)
{
    bool failed_before = ferror(stdout);
    errno = 0;
    bool failed = fflush(stdout) != 0 || failed_before;
    int error = errno;
    if (!failed || error == EPIPE || reader_is_gone())
        return status;
    /* stdio forgets the reason of an earlier failure. */
    complain("standard output", "cannot write",
             error ? strerror(error) : "not everything was taken");
    return status ? status : 1;
}

/* `jvmscope help COMMAND [VERB]` is `jvmscope COMMAND [VERB] --help`. */
static int help(int argc, char **argv)
{
    static char option[] = "--help";
    /* The word `help` makes room for the option: the words move up by one. */
    for (int i = 0; i + 1 < argc; i++)
        argv[i] = argv[i + 1];
    argv[argc - 1] = option;
    return command_dispatch(commands, argc, argv);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("jvmscope " JVMSCOPE_VERSION);
        return output_end(0);
    }
    /*
     * A file that reaches its size limit (ulimit -f) makes a write fail, as a full disk does,
     * instead of ending the process.
     */
    file_limit_begin();
    file_fault_begin();
    bool asks_for_help = argc > 1 && strcmp(argv[1], "help") == 0;
    int status =
        asks_for_help ? help(argc - 1, argv + 1) : command_dispatch(commands, argc - 1, argv + 1);
    return output_end(status);
}
