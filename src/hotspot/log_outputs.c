/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/log_outputs.h"

#include <string.h>

static const char *const words[] = {"trace", "debug", "info", "warning", "error", "off"};

const char *log_level_word(enum log_level level)
{
    return words[level];
}

/* Takes the text up to a character, or all of it; what follows the character is left. */
static struct log_text take(struct log_text *from, char stop)
{
    const char *p = from->len ? memchr(from->data, stop, from->len) : NULL;
    struct log_text taken = {from->data, p ? (size_t)(p - from->data) : from->len};
    size_t skipped = MIN(taken.len + 1, from->len);
    *from = (struct log_text){from->data + skipped, from->len - skipped};
    return taken;
}

bool log_output_read(struct log_text line, struct log_output *ret)
{
    static const char all[] = " all="; /* the first selection, which is always there */
    struct log_output o = {0};
    while (log_text_starts(line, " "))
        take(&line, ' ');
    if (!log_text_starts(line, "#"))
        return false;
    struct log_text number = take(&line, ':');
    for (size_t i = 1; i < number.len; i++) {
        if (number.data[i] < '0' || number.data[i] > '9' || o.number > 9999)
            return false;
        o.number = 10 * o.number + (uint32_t)(number.data[i] - '0');
    }
    const char *from = line.len ? memmem(line.data, line.len, all, strlen(all)) : NULL;
    if (number.len < 2 || !from || from == line.data)
        return false;
    o.name = (struct log_text){line.data + 1, (size_t)(from - line.data - 1)};
    line = (struct log_text){from + 1, (size_t)(line.data + line.len - from - 1)};
    o.selections = take(&line, ' ');
    o.decorators = take(&line, ' ');
    if (!o.decorators.len)
        return false;
    *ret = o;
    return true;
}

enum log_level log_output_level(const struct log_output *o, const char *tag, bool *ret_named)
{
    enum log_level level = LOG_OFF;
    struct log_text rest = o->selections;
    *ret_named = false;
    while (rest.len) {
        struct log_text word = take(&rest, ','), tags = take(&word, '=');
        bool every = log_text_is(tags, "all");
        if (tags.len && tags.data[tags.len - 1] == '*')
            tags.len--;
        if (!every && !log_text_is(tags, tag))
            continue;
        *ret_named = !every;
        level = LOG_INFO; /* where there is no word for it */
        for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
            level = log_text_is(word, words[i]) ? (enum log_level)i : level;
    }
    return level;
}
