/* SPDX-License-Identifier: Apache-2.0 */
#include "options/value.h"

#include "base/file.h"
#include "base/parse.h"
#include "options/log_spec.h"
#include "options/names.h"
#include "options/trace_condition.h"
#include "options/trigger_condition.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

#define LEAST_SHARE 0.0001 /* the smallest value of an OPTION_SHARE */

/* The number of bytes of a value that messages show. */
#define SHOWN_MAX ((size_t)200)

static bool flags;

void options_speak_of_flags(void)
{
    flags = true;
}

void option_put_part(struct buf *message, enum option which, const char *part, size_t len)
{
    const struct option_row *row = &option_table[which];
    size_t n = MIN(len, SHOWN_MAX);
    while (n < len && n > 0 && ((uint8_t)part[n] & 0xc0) == 0x80) /* not within a character */
        n--;
    buf_printf(message, "%s=", flags && row->flag ? row->flag : row->name);
    /* the help of the command separates the elements of a list with a comma */
    for (size_t i = 0; i < n; i++)
        buf_u8(message, flags && row->separator == ':' && part[i] == ':' ? ',' : (uint8_t)part[i]);
    buf_string(message, n < len ? "..." : "");
}

void option_put_refusal(struct buf *message, enum option which, const char *value,
                        const char *letter)
{
    if (flags)
        buf_printf(message,
                   "%s%s cannot be recorded into a .hprof; write a .hprof.txt or a .jfr instead",
                   option_table[which].flag, which == OPT_CPU ? "=times" : "");
    else
        buf_printf(message, "format=%s cannot be used with %s=%s", letter, option_table[which].name,
                   value);
}

void option_put(struct buf *message, enum option which, const char *value)
{
    const struct option_row *row = &option_table[which];
    if (value)
        option_put_part(message, which, value, strlen(value));
    else
        buf_string(message, flags && row->flag ? row->flag : row->name);
}

/*
 * Sets the value of an option from its text. Returns 0, -ERANGE for a number outside the option's
 * range, or -EINVAL for a text that is no value of the option.
 */
static int set_value(struct option_value *v, const struct option_row *row, const char *text)
{
    int r = 0;
    char *end;
    switch (row->kind) {
    case OPTION_YES_NO:
        r = strcmp(text, "y") == 0 || strcmp(text, "n") == 0 ? 0 : -EINVAL;
        v->number = text[0] == 'y';
        break;
    case OPTION_WORD:
        r = option_has_word(row->values, text, strlen(text)) ? 0 : -EINVAL;
        break;
    case OPTION_NUMBER:
        r = parse_u64(text, row->min, row->max, &v->number);
        break;
    case OPTION_DURATION:
        r = parse_duration(text, MS, &v->number);
        break;
    case OPTION_SIZE:
        r = parse_size(text, &v->number);
        break;
    case OPTION_FRACTION:
        v->fraction = strtod(text, &end);
        r = *text && !*end && isfinite(v->fraction) && v->fraction >= 0 ? 0 : -EINVAL;
        break;
    case OPTION_SHARE:
        v->fraction = strtod(text, &end) / 100;
        r = *text >= '0' && *text <= '9' && strcmp(end, "%") == 0 && v->fraction >= LEAST_SHARE &&
                    v->fraction <= 1
                ? 0
                : -EINVAL;
        break;
    case OPTION_TEXT:
        r = text[strspn(text, (char[]){' ', row->separator ? ',' : ' ', row->separator, 0})]
                ? 0
                : -EINVAL;
        break;
    }
    if (r == 0 && (row->kind == OPTION_DURATION || row->kind == OPTION_SIZE) &&
        (v->number < row->min || v->number > row->max))
        r = -ERANGE;
    v->text = text;
    return r;
}

/* Formats a limit of a time or a size, in its unit. */
static const char *format_bound(char text[24], const struct option_row *row, uint64_t bound)
{
    return row->kind == OPTION_SIZE ? format_size(text, MIN(bound, PARSE_SIZE_MAX))
                                    : format_limit(text, MIN(bound, PARSE_TIME_MAX_NS));
}

bool option_is_settings_file(const char *text)
{
    return strchr(text, '/') || file_name_ends_in(text, ".jfc");
}

/* Checks values that have their own grammar, before anything is changed. */
static int check_text(enum option which, const char *text, struct buf *message)
{
    struct trigger_condition *c = NULL;
    if (which == OPT_ON && strcmp(text, TRIGGERS_NONE) != 0) {
        int r = trigger_condition_parse(&c, text, message);
        free(c);
        return r;
    }
    if (which == OPT_THEN && strcmp(text, "dump") != 0 && strcmp(text, "heap-dump") != 0 &&
        (strncmp(text, ACTION_EXEC, strlen(ACTION_EXEC)) != 0 || !text[strlen(ACTION_EXEC)])) {
        option_put(message, which, text);
        buf_string(message, ": allowed: dump, heap-dump, exec:COMMAND");
        return -EINVAL;
    }
    if (which == OPT_ON_FILE)
        return trigger_file_check(text, message);
    if (which == OPT_JFR && !option_is_settings_file(text) && strcmp(text, "default") != 0 &&
        strcmp(text, "profile") != 0) {
        option_put(message, which, text);
        buf_string(message,
                   ": allowed: default, profile, a file with a slash or the extension .jfc");
        return -EINVAL;
    }
    if (which == OPT_IF) {
        struct condition *condition = NULL;
        int r = condition_parse(&condition, text, message);
        condition_free(condition);
        return r;
    }
    if (which == OPT_LOG) {
        struct log_spec *specs = NULL;
        int r = log_specs_parse(&specs, text, message);
        log_specs_free(specs);
        return r;
    }
    return option_names_check(which, text, message);
}

/* How messages describe the values that the agent's help shows as a placeholder, such as TIME. */
static const char *const placeholders[] = {[OPTION_NUMBER] = "a whole number",
                                           [OPTION_DURATION] = "a time such as 30s or 500ms",
                                           [OPTION_SIZE] = "a size such as 64m",
                                           [OPTION_SHARE] = "a share, 0.01% to 100%",
                                           [OPTION_TEXT] = "any text but the empty one"};

/* Writes "0 to 16384". exceeds: as in format_numbers */
static void put_range(struct buf *to, const struct option_row *row, bool exceeds)
{
    char low[24], high[24], numbers[48];
    uint64_t least = flags ? MAX(row->min, row->min_record) : row->min;
    if (row->kind == OPTION_NUMBER)
        buf_string(to, format_numbers(numbers, least, row->max, exceeds));
    else
        buf_printf(to, "%s to %s", format_bound(low, row, least),
                   format_bound(high, row, row->max));
}

int option_value_set(struct option_value *v, enum option which, const char *text,
                     struct buf *message)
{
    const struct option_row *row = &option_table[which];
    int r = set_value(v, row, text);
    if (r == -ERANGE) {
        option_put(message, which, text);
        buf_string(message, ": out of range: ");
        put_range(message, row, strtod(text, NULL) > (double)row->min);
        return -EINVAL;
    }
    if (r < 0 && row->kind == OPTION_TEXT && *text) {
        option_put(message, which, text);
        buf_string(message, ": contains only separators");
        return -EINVAL;
    }
    if (r < 0) {
        const char *what = placeholders[row->kind];
        option_put(message, which, text);
        buf_printf(message, ": not a value of this option; allowed: %s",
                   flags && what ? what : row->values);
        if (flags && what && row->max) {
            buf_string(message, ", ");
            put_range(message, row, false);
        }
        return -EINVAL;
    }
    return check_text(which, text, message);
}

int option_check(enum option which, const char *text, struct buf *message)
{
    struct option_value v = {0};
    return option_value_set(&v, which, text, message);
}
