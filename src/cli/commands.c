/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "base/file.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *alias_path, *alias_shown;

void complain_as(const char *path, const char *shown)
{
    alias_path = path;
    alias_shown = shown;
}

bool complain_renames(const char *path)
{
    return alias_path && strcmp(path, alias_path) == 0;
}

/* A reason may itself begin with the file's name. */
static void put_shown(struct buf *line, const char *text)
{
    size_t n = alias_path ? strlen(alias_path) : 0;
    for (const char *at; n && (at = strstr(text, alias_path)); text = at + n)
        buf_printf(line, "%.*s%s", (int)(at - text), text, alias_shown);
    buf_string(line, text);
}

int complain(const char *where, const char *what, const char *why)
{
    _cleanup_(buf_release) struct buf line = BUF(1 << 20);
    const char *parts[] = {where, what, why};
    buf_string(&line, "jvmscope");
    for (int i = 0; i < 3; i++) {
        if (parts[i]) {
            buf_string(&line, ": ");
            put_shown(&line, parts[i]);
        }
    }
    fprintf(stderr, "%s\n", buf_str(&line));
    return 1;
}

int complain_of_options(const char *where, const char *what, const char *const *options, size_t n)
{
    _cleanup_(buf_release) struct buf given = BUF(4096);
    for (size_t i = 0; i < n; i++)
        if (options[i])
            buf_printf(&given, "%s%s", given.len ? " " : "", options[i]);
    return complain(where, what, buf_str(&given));
}

bool complain_of_input(const char *output, char *const *inputs, int n)
{
    struct stat to, from;
    if (stat(output, &to) < 0 || !S_ISREG(to.st_mode))
        return false;
    for (int i = 0; i < n; i++)
        if (stat(inputs[i], &from) == 0 && from.st_dev == to.st_dev && from.st_ino == to.st_ino) {
            complain(output, "is the file that is read", "name another output");
            return true;
        }
    return false;
}

/* Returns whether what was to be a file is the number of a process. */
static bool is_process(const char *where)
{
    char path[32];
    size_t n = strspn(where, "0123456789");
    return n && !where[n] && snprintf(path, sizeof(path), "/proc/%s", where) < (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

int complain_errno(const char *where, const char *what, int error)
{
    return complain(where, what,
                    error == -ENOENT && is_process(where)
                        ? "this is a process, not a file: jvmscope attach records it, and jvmscope "
                          "threads deadlocks, top and inspect look at it"
                        : file_map_why(error));
}

const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "cli/command_list.h"
#undef COMMAND
    NULL,
};

static void usage(const struct command *const *table, FILE *to)
{
    bool top = table == commands;
    if (top)
        fputs("usage: jvmscope COMMAND [OPTION ...]\n\n", to);
    else
        fprintf(to, "usage: jvmscope %.*s VERB [OPTION ...]\n\n", (int)strcspn(table[0]->name, " "),
                table[0]->name);
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
    COMMAND_EACH(v, argc > 1 ? verbs : NULL) {
        if (strcmp(argv[1], command_word(v)) == 0)
            return true;
    }
    return false;
}

/*
 * Suggests the word that was most likely meant, or else the verbs; there are too many commands to
 * list.
 */
static int no_such(const struct command *const *table, const char *word)
{
    struct nearest n = {.word = word};
    bool top = table == commands;
    _cleanup_(buf_release) struct buf why = BUF(4096);
    COMMAND_EACH(c, table)
        (void)nearest_try(&n, command_word(c));
    if (top)
        (void)nearest_try(&n, "help");
    if (*n.best)
        buf_printf(&why, "did you mean %s?", n.best);
    else if (top)
        buf_string(&why, "jvmscope --help lists them");
    else
        COMMAND_EACH(c, table)
            buf_printf(&why, "%s%s", c == table[0] ? "the verbs are " : ", ", command_word(c));
    _cleanup_(buf_release) struct buf where = BUF(1 << 20);
    const char *name = table[0]->name;
    if (!top)
        buf_printf(&where, "%.*s: ", (int)strcspn(name, " "), name);
    buf_string(&where, word);
    complain(buf_str(&where), top ? "no such command" : "no such verb", buf_str(&why));
    return 2;
}

/* group: the command whose verbs the table has; NULL: it has the commands themselves. */
static int dispatch(const struct command *group, const struct command *const *table, int argc,
                    char **argv)
{
    if (argc < 1) {
        usage(table, stderr);
        return 2;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        usage(table, stdout);
        return 0;
    }
    COMMAND_EACH(c, table) {
        if (strcmp(argv[0], command_word(c)) != 0)
            continue;
        bool verb = c->verbs && (!c->run || names_verb(c->verbs, argc, argv));
        if (verb)
            return dispatch(c, c->verbs, argc - 1, argv + 1);
        /* A word before the file, which is itself no file, is a misspelt verb. */
        if (c->verbs && argc > 2 && !strpbrk(argv[1], "-./") && argv[2][0] != '-' &&
            access(argv[1], F_OK) < 0)
            return no_such(c->verbs, argv[1]);
        return c->run ? c->run(c, argc, argv) : group->run_verb(c, argc, argv);
    }
    return no_such(table, argv[0]);
}

int command_dispatch(const struct command *const *table, int argc, char **argv)
{
    return dispatch(NULL, table, argc, argv);
}
