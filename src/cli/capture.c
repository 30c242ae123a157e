/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/capture.h"

#include "base/parse.h"
#include "cli/commands.h"
#include "options/names.h"
#include "options/options.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { OPTIONS_MAX = 1 << 16 };

const struct arg_set capture_set = {"What is recorded", NULL};

/*
 * Returns the i-th row of the agent's table that is a flag of the command; the last one is for the
 * agent's own words.
 */
static const struct option_row *row_at(size_t i)
{
    for (size_t n = 0; n < OPTION_COUNT; n++) {
        if (option_table[n].flag && !option_table[n].hidden && i-- == 0)
            return &option_table[n];
    }
    return NULL;
}

static const struct arg_shown agent_words = {
    "--agent", "WORDS", "the agent's own options, passed on as they are", 0, false, NULL, ""};

/*
 * The value that a row has if it is not given, for the help; NULL if there is none, or if the row's
 * help mentions it.
 */
static const char *standard_of(const struct option_row *row)
{
    const char *value = row->default_record ? row->default_record : row->default_value;
    bool shown = value && strcmp(value, "n") != 0 && row->kind != OPTION_TEXT;
    return shown ? value : NULL;
}

/* Defaults that are times are in ms when they have no unit. */
static const char *unit_of(const struct option_row *row)
{
    const char *value = standard_of(row);
    bool bare = value && !value[strspn(value, "0123456789")];
    return row->kind == OPTION_DURATION && bare ? "ms" : "";
}

bool capture_arg_at(size_t i, struct arg_shown *ret)
{
    const struct option_row *row = row_at(i);
    if (row)
        *ret = (struct arg_shown){row->flag,
                                  row->kind == OPTION_YES_NO && row->bare ? NULL : row->values,
                                  row->flag_help ? row->flag_help : row->help,
                                  row->letter,
                                  row->bare,
                                  standard_of(row),
                                  unit_of(row)};
    else if (row_at(i - 1) && i)
        *ret = agent_words;
    else
        return false;
    return true;
}

bool capture_adds_triggers(const struct capture_options *c)
{
    return c->given >> OPT_ON & 1 && !capture_always(c);
}

bool capture_always(const struct capture_options *c)
{
    return c->given >> OPT_ALWAYS & 1 && !c->always_off;
}

void capture_release(struct capture_options *c)
{
    buf_release(&c->options);
}

static void add_words(struct capture_options *c, const char *name, const char *value)
{
    c->options.limit = OPTIONS_MAX;
    buf_printf(&c->options, "%s%s%s", c->options.len ? "," : "", name, value ? "=" : "");
    while (value && *value) {
        size_t run = strspn(value, "\\");
        bool doubled = value[run] == ',' || !value[run];
        for (size_t i = 0; i < run; i++)
            buf_string(&c->options, doubled ? "\\\\" : "\\");
        value += run;
        if (*value)
            buf_printf(&c->options, *value == ',' ? "\\%c" : "%c", *value);
        value += *value != 0;
    }
}

void capture_add(struct capture_options *c, enum option which, const char *value)
{
    c->given |= UINT64_C(1) << which;
    add_words(c, option_table[which].name, value);
}

/* True for options that may be repeated, because the agent's parser knows how to combine them. */
static bool may_repeat(size_t which)
{
    return option_table[which].separator || which == OPT_CPU || which == OPT_HEAP ||
           which == OPT_IF;
}

/*
 * Adds the pattern of --on-file, to which the VM writes, in front of it the command's working
 * directory, in which % is doubled.
 */
static int add_absolute(struct capture_options *c, const struct option_row *row, const char *value)
{
    char cwd[PATH_MAX];
    _cleanup_(buf_release) struct buf path = BUF(2 * PATH_MAX);
    if (!getcwd(cwd, sizeof(cwd)))
        return -errno;
    for (const char *p = cwd; *p; p++)
        buf_printf(&path, *p == '%' ? "%%%%" : "%c", *p);
    buf_printf(&path, "/%s", value);
    add_words(c, row->name, buf_str(&path));
    return buf_error(&path);
}

/*
 * Adds a file with settings. A relative path refers to the command's working directory, because
 * the VM may have another one. Parameters as in take_value.
 */
static int take_settings(struct capture_options *c, const struct option_row *row,
                         const char *command, const char *value)
{
    char path[PATH_MAX];
    /* An absolute path may be one in the container of a VM that is attached to. */
    bool ours = value[0] != '/' || strcmp(command, "run") == 0;
    if (ours && access(value, R_OK) < 0)
        return complain_errno(value, "cannot be read for --jfr", -errno), -EINVAL;
    if (value[0] == '/')
        add_words(c, row->name, value);
    else if (realpath(value, path))
        add_words(c, row->name, path);
    else
        return complain_errno(value, "cannot be read for --jfr", -errno), -EINVAL;
    return 1;
}

/*
 * Reports that a duration lacks its unit, with the units that would make it a value of the option.
 * Returns false if there are none.
 */
static bool suggest_unit(struct buf *why, const struct option_row *row, const char *value)
{
    static const char *const units[] = {"s", "ms", "us"};
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        char text[64];
        uint64_t ns;
        int len = snprintf(text, sizeof(text), "%s%s", value, units[i]);
        if (len < (int)sizeof(text) && parse_duration(text, 0, &ns) == 0 && ns >= row->min &&
            ns <= row->max) {
            buf_printf(why, "%s%s%s", any ? "" : value, any ? ", " : " needs a unit: ", text);
            any = true;
        }
    }
    return any;
}

/* Returns whether a share that lacks its percent sign would be in range with it. */
static bool lacks_percent(enum option which, const char *value)
{
    char text[64];
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int len = snprintf(text, sizeof(text), "%s%%", value);
    return *value && !value[strspn(value, "0123456789.")] && len < (int)sizeof(text) &&
           option_check(which, text, &why) == 0;
}

/*
 * Takes the value of a row. Those that concern the command itself are stored; the others are added
 * to the agent's words.
 */
static int take_value(struct capture_options *c, const struct option_row *row, const char *command,
                      const char *value)
{
    size_t which = (size_t)(row - option_table);
    _cleanup_(buf_release) struct buf why = BUF(4096);
    bool no_unit = row->kind == OPTION_DURATION && *value && !value[strspn(value, "0123456789.")];
    if (no_unit && suggest_unit(&why, row, value)) {
        /* refused below */
    } else if (row->kind == OPTION_SHARE && lacks_percent((enum option)which, value)) {
        buf_printf(&why, "%s needs a percent sign: %s%%", value, value);
    } else if (c->given >> which & 1 && !may_repeat(which)) {
        buf_string(&why, "given twice");
    } else {
        c->given |= UINT64_C(1) << which;
        if (option_check((enum option)which, value, &why) == 0) {
            if (which == OPT_FILE)
                c->output = value;
            else if (which == OPT_ALWAYS && strcmp(value, "n") == 0)
                c->always_off = true;
            else if (which == OPT_ON_FILE && value[0] != '/' && add_absolute(c, row, value) < 0)
                return complain_errno(value, "cannot write", -ENAMETOOLONG), -EINVAL;
            else if (which == OPT_ON_FILE && value[0] != '/')
                return 1;
            else if (which == OPT_JFR && option_is_settings_file(value))
                return take_settings(c, row, command, value);
            else if (which == OPT_DURATION)
                (void)!parse_duration(value, 0, &c->time_ns); /* it has just been parsed */
            else
                add_words(c, row->name, value);
            return 1;
        }
    }
    /* Messages about a value begin with the flag. */
    bool named = strncmp(buf_str(&why), row->flag, strlen(row->flag)) == 0;
    complain(command, named ? buf_str(&why) : row->flag, named ? NULL : buf_str(&why));
    return -EINVAL;
}

/*
 * Takes the value of a row. An option whose words are combined may have several, with commas
 * between them.
 */
static int take_values(struct capture_options *c, const struct option_row *row, const char *command,
                       const char *value)
{
    size_t which = (size_t)(row - option_table);
    bool several = (which == OPT_CPU || which == OPT_HEAP) && strchr(value, ',');
    _cleanup_free_ char *copy = several ? strdup(value) : NULL;
    int r = copy || !several ? 1 : -ENOMEM;
    if (!several)
        return take_value(c, row, command, value);
    for (char *word, *rest = copy; r > 0 && (word = strsep(&rest, ","));)
        r = take_value(c, row, command, word);
    return r;
}

/* True for pkg.Class.method(..) or pkg.Class.method(int), which are not operands of a command. */
static bool is_method_pattern(const char *word)
{
    const char *open = strchr(word, '(');
    return open && open > word && word[0] != '-' && word[strlen(word) - 1] == ')' &&
           memchr(word, '.', (size_t)(open - word));
}

/* True for the name of a program that execvp would find. */
static bool is_program(const char *word)
{
    char path[PATH_MAX];
    const char *at = getenv("PATH");
    for (; at && *at; at += strcspn(at, ":"), at += *at == ':') {
        int n = snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(at, ":"), at, word);
        if (n < PATH_MAX && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/*
 * True for pkg.Class.method or Class::method, or a pattern of such names, where no program has this
 * name.
 */
static bool is_method_alone(const char *word)
{
    const char *dot = strchr(word, '.'), *colons = strstr(word, "::");
    bool parts = (dot && dot > word && dot[1]) || (colons && colons > word && colons[2]);
    return parts && word[0] != '-' && !strchr(word, '/') && access(word, F_OK) < 0 &&
           !is_program(word);
}

/*
 * Returns whether a word after an option with an optional value is one of its values: it was
 * probably meant as such, although the command would take it for a program.
 */
static bool is_forgotten_value(const struct option_row *row, const char *word)
{
    return row->kind == OPTION_WORD && option_has_word(row->values, word, strcspn(word, ","));
}

static int take_row(struct capture_options *c, const struct option_row *row,
                    const struct command *command, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    size_t n = strlen(row->flag);
    const char *value = NULL;
    if (strncmp(word, row->flag, n) == 0 && (word[n] == 0 || word[n] == '='))
        value = word[n] ? word + n + 1 : row->bare;
    else if (row->letter && word[0] == '-' && word[1] == row->letter)
        value = word[2] ? word + 2 : row->bare;
    else
        return 0;
    /* The value of --requests is optional, but may also be the next word. */
    if (value == row->bare && value && row->kind == OPTION_TEXT && *i + 1 < argc &&
        is_method_pattern(argv[*i + 1]))
        value = argv[++*i];
    else if (value == row->bare && value && row->kind == OPTION_TEXT && *i + 1 < argc &&
             is_method_alone(argv[*i + 1])) {
        _cleanup_(buf_release) struct buf hint = BUF(1 << 20);
        buf_printf(&hint, "is not a program; for requests to this method: %s=%s", row->flag,
                   argv[*i + 1]);
        complain(command->name, argv[*i + 1], buf_str(&hint));
        return -EINVAL;
    }
    if (value == row->bare && value && *i + 1 < argc && is_forgotten_value(row, argv[*i + 1])) {
        char hint[200];
        snprintf(hint, sizeof(hint),
                 "as a value of %s: %s=%.40s; as a program or another operand: -- %.40s", row->flag,
                 row->flag, argv[*i + 1], argv[*i + 1]);
        complain(command->name, argv[*i + 1], hint);
        return -EINVAL;
    }
    if (!value) {
        value = args_next_value(command, row->flag, argc, argv, i);
        if (!value)
            return -EINVAL;
    }
    if (value != row->bare && (row->separator == ':' || row->separator == ','))
        option_list_normalize((char *)(uintptr_t)value, row->separator); /* of argv */
    return take_values(c, row, command->name, value);
}

int capture_parse(struct capture_options *c, const struct command *command, int argc, char **argv,
                  int *i)
{
    const struct option_row *row;
    int r = 0;
    for (size_t n = 0; r == 0 && (row = row_at(n)); n++)
        r = take_row(c, row, command, argc, argv, i);
    if (r != 0 || strncmp(argv[*i], agent_words.name, strlen(agent_words.name)) != 0)
        return r;
    const char *rest = argv[*i] + strlen(agent_words.name);
    if (*rest && *rest != '=')
        return 0;
    const char *words =
        *rest ? rest + 1 : args_next_value(command, agent_words.name, argc, argv, i);
    if (!words)
        return -EINVAL;
    if (!*words) {
        complain(command->name, agent_words.name, "empty");
        return -EINVAL;
    }
    add_words(c, words, NULL);
    return 1;
}
