/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other uses of the option tables than --help: manual pages, as source for scdoc, and completion
 * for shells.
 */
#include "base/file.h"
#include "cli/commands.h"

#include <string.h>

/* Prints text that contains no markup. */
static void put_plain(const char *text)
{
    for (; *text; text++) {
        if (strchr("\\*_~#<>", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void put_heading(const char *text)
{
    printf("## ");
    put_plain(text);
    puts("\n");
}

/* For the parts below a heading of the lowest level. */
static void put_bold(const char *text)
{
    printf("*");
    put_plain(text);
    puts("*\n");
}

/* Prints the options by their sets. */
static void manual_options(const struct command *c, void (*put_title)(const char *text))
{
    struct arg_shown a;
    for (size_t n = 0; c->sets && c->sets[n]; n++) {
        put_title(c->sets[n]->title);
        for (size_t i = 0; arg_at(c->sets[n], i, &a); i++) {
            if (a.letter)
                printf("*-%c*, ", a.letter);
            printf("*%s*", a.name);
            if (a.value) {
                printf(a.value_optional ? "[=_" : " _");
                put_plain(a.value);
                printf(a.value_optional ? "_]" : "_");
            }
            printf("\n\t");
            put_plain(a.help);
            if (a.standard)
                printf(" (%s%s)", a.standard, a.unit);
            puts(".\n");
        }
    }
}

/*
 * Prints examples. A line "  command   what it does" becomes a definition, and a command alone a
 * paragraph; a line that starts far to the right continues the previous one.
 */
static void manual_examples(const char *examples)
{
    enum { FAR = 16 };

    for (const char *line = examples; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = strcspn(line, "\n"), start = strspn(line, " ");
        const char *gap = start < FAR ? memmem(line + start, n - start, "  ", 2) : NULL;
        size_t end = gap ? (size_t)(gap - line) : n;
        size_t rest = end + strspn(line + end, " ");
        char text[512];
        if (start >= FAR)
            fputs("\t", stdout);
        else if (line != examples)
            fputs("\n", stdout);
        snprintf(text, sizeof(text), "%.*s", (int)(end - start), line + start);
        put_plain(text);
        putchar('\n');
        snprintf(text, sizeof(text), "%.*s", (int)(n - MIN(rest, n)), line + rest);
        if (!*text)
            continue;
        fputs("\t", stdout);
        put_plain(text);
        putchar('\n');
    }
    putchar('\n');
}

static void manual_synopsis(const struct command *c)
{
    printf("*jvmscope %s*%s ", c->name, c->sets ? " [_OPTION_ ...]" : "");
    put_plain(c->operands ? c->operands : "");
    puts("\n");
}

static void manual_description(const struct command *c)
{
    print_own(stdout, c->description ? c->description : c->summary);
    puts("\n");
}

static void manual_verbs(const struct command *c)
{
    puts("# VERBS\n");
    COMMAND_EACH(v, c->verbs) {
        put_heading(v->name);
        manual_synopsis(v);
        manual_description(v);
        manual_options(v, put_bold);
        if (v->examples) {
            put_bold("Examples");
            manual_examples(v->examples);
        }
    }
}

/* Prints the words that an operand can be. */
static void manual_words(const struct command *c)
{
    printf("# %s\n\n", c->words_title);
    for (const struct operand_word *w = c->words; w->usage; w++) {
        int n = (int)strcspn(w->usage, " ");
        printf("*%.*s*", n, w->usage);
        put_plain(w->usage + n);
        printf("\n\t");
        put_plain(w->summary);
        puts(".\n");
    }
}

static void manual_formats(const struct command *c)
{
    struct operand_word format;
    puts("# FORMATS\n\nThe extension of the output picks the format:\n");
    for (size_t i = 0; c->format(i, &format); i++) {
        printf("*%s*\n\t", format.usage);
        put_plain(format.summary);
        puts(".\n");
    }
}

static void manual_see_also(const struct command *c)
{
    puts("# SEE ALSO\n");
    for (const char *name = c->related ? c->related : ""; *name; name += strspn(name, " ")) {
        int len = (int)strcspn(name, " ");
        printf("*jvmscope-%.*s*(1), ", len, name);
        name += len;
    }
    puts("*jvmscope*(1)");
}

/* Prints commands with their output. */
static void manual_transcript(const char *text)
{
    puts("# OUTPUT\n\nThe program is examples/Shop.java. Three dots stand for lines that are left "
         "out.\n\n```");
    print_own(stdout, text);
    puts("```\n");
}

/* transcript: commands with their output, or NULL */
static void print_manual(const struct command *c, const char *transcript)
{
    printf("jvmscope-%s(1) \"\" \"jvmscope\"\n\n# NAME\n\njvmscope-%s - %s\n\n", c->name, c->name,
           c->summary);
    puts("# SYNOPSIS\n");
    if (c->run || c->heap_answer)
        manual_synopsis(c);
    if (c->verbs)
        printf("*jvmscope %s* _VERB_ [_OPTION_ ...] ...\n\n", c->name);
    puts("# DESCRIPTION\n");
    manual_description(c);
    if (c->sets) {
        puts("# OPTIONS\n");
        manual_options(c, put_heading);
    }
    if (c->format)
        manual_formats(c);
    if (c->words)
        manual_words(c);
    if (c->verbs)
        manual_verbs(c);
    if (c->examples) {
        puts("# EXAMPLES\n");
        manual_examples(c->examples);
    }
    if (transcript)
        manual_transcript(transcript);
    if (c->caveats) {
        puts("# CAVEATS\n");
        print_own(stdout, c->caveats);
        puts("\n");
    }
    puts("# EXIT STATUS\n\n0 done, 1 failed, 2 wrong usage. *jvmscope run* exits as the program "
         "did, and with 1 if that was 0 but something could not be recorded.\n");
    manual_see_also(c);
}

static void print_manual_of_all(void)
{
    puts("jvmscope(1) \"\" \"jvmscope\"\n\n# NAME\n\njvmscope - profile, time, dump and explain "
         "Java programs\n\n# SYNOPSIS\n\n"
         "*jvmscope* _COMMAND_ [_OPTION_ ...] ...\n\n# DESCRIPTION\n\n"
         "A profiling system for the Java virtual machine, HotSpot 8 to 27. Each command has a "
         "page of its own.\n\n# COMMANDS\n");
    COMMAND_EACH(c, commands) {
        printf("*jvmscope-%s*(1)\n\t", c->name);
        put_plain(c->summary);
        puts(".\n");
    }
}

static int cmd_manual(const struct command *self, int argc, char **argv)
{
    struct operands operands;
    int status;
    if (!args_parse(self, NULL, argc, argv, &operands, &status))
        return status;
    if (!operands.count) {
        print_manual_of_all();
        return 0;
    }
    _cleanup_free_ uint8_t *transcript = NULL;
    size_t len;
    int r = operands.count > 1 ? file_read_path(operands.list[1], 1 << 20, &transcript, &len) : 0;
    if (r < 0)
        return complain_errno(operands.list[1], NULL, r);
    COMMAND_EACH(c, commands) {
        if (strcmp(c->name, operands.list[0]) == 0) {
            print_manual(c, (const char *)transcript);
            return 0;
        }
    }
    return complain(operands.list[0], "no such command", NULL);
}

static void bash_words(const struct command *c, const char *indent)
{
    struct arg_shown a;
    printf("%s%s) words=\"--help", indent, command_word(c));
    for (size_t n = 0; c->sets && c->sets[n]; n++) {
        for (size_t i = 0; arg_at(c->sets[n], i, &a); i++)
            printf(" %s", a.name);
    }
    COMMAND_EACH(v, c->verbs)
        printf(" %s", command_word(v));
    for (const struct operand_word *w = c->words; w && w->usage; w++)
        printf(" %.*s", (int)strcspn(w->usage, " "), w->usage);
    puts("\" ;;");
}

static void print_bash(void)
{
    puts("# jvmscope completion for bash: source it, or put it into /etc/bash_completion.d\n"
         "_jvmscope() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} words=");
    puts("    if [ \"$COMP_CWORD\" = 1 ]; then");
    printf("        words=\"--help --version");
    COMMAND_EACH(c, commands)
        printf(" %s", c->name);
    puts("\"\n    else\n        case ${COMP_WORDS[1]} in");
    COMMAND_EACH(c, commands)
        bash_words(c, "        ");
    puts("        esac\n    fi\n"
         "    case $word in\n"
         "    -*) ;;\n"
         "    *) [ \"$COMP_CWORD\" -gt 1 ] && case ${COMP_WORDS[1]} in\n"
         "        attach | status | dump | stop | top | inspect | control)\n"
         "            words+=\" $(jvmscope list | awk 'NR > 1 { print $1 }')\" ;;\n"
         "        *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "        esac ;;\n"
         "    esac\n"
         "    COMPREPLY+=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o filenames -F _jvmscope jvmscope");
}

static void fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void print_fish(void)
{
    puts("# jvmscope completion for fish: put it into ~/.config/fish/completions/jvmscope.fish");
    struct arg_shown a;
    COMMAND_EACH(c, commands) {
        printf("complete -c jvmscope -n __fish_use_subcommand -f -a %s -d ", c->name);
        fish_text(c->summary);
        putchar('\n');
        for (size_t n = 0; c->sets && c->sets[n]; n++) {
            for (size_t i = 0; arg_at(c->sets[n], i, &a); i++) {
                printf("complete -c jvmscope -n '__fish_seen_subcommand_from %s' -l %s%s -d ",
                       c->name, a.name + 2, a.value && !a.value_optional ? " -r" : "");
                fish_text(a.help);
                putchar('\n');
            }
        }
    }
}

static void print_zsh(void)
{
    puts("#compdef jvmscope\n# jvmscope completion for zsh: save it as _jvmscope in a folder of "
         "$fpath\n"
         "autoload -U +X bashcompinit && bashcompinit");
    print_bash();
}

static int cmd_completion(const struct command *self, int argc, char **argv)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    struct operands operands;
    int status;
    if (!args_parse(self, NULL, argc, argv, &operands, &status))
        return status;
    for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
        if (strcmp(shells[i].shell, operands.list[0]) == 0) {
            shells[i].print();
            return 0;
        }
    }
    complain(operands.list[0], "no such shell", "bash, zsh or fish");
    return 2;
}

const struct command command_completion = {
    .name = "completion",
    .run = cmd_completion,
    .operands = "bash|zsh|fish",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "print the completion of this command for a shell",
    .related = "manual",
    .description =
        "Prints a script that makes the shell complete commands, options and process ids.",
    .examples = "  . <(jvmscope completion bash)                    for this shell\n",
};

const struct command command_manual = {
    .name = "manual",
    .run = cmd_manual,
    .operands = "[COMMAND [TRANSCRIPT]]",
    .max_operands = 2,
    .summary = "print the scdoc source of a manual page",
    .related = "completion",
    .description =
        "Prints the source of a manual page; the build makes the pages from it. The page shows the "
        "contents of the file TRANSCRIPT, which are a command and its output, as its example.",
    .examples = "  jvmscope manual report | scdoc | man -l -        read one without installing\n",
};
