/* SPDX-License-Identifier: Apache-2.0 */
#include "options/log_spec.h"

#include "options/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(struct buf *why, const char *text, const char *what)
{
    option_put(why, OPT_LOG, NULL);
    buf_printf(why, ": %s at \"%.30s\"", what, text);
    return -EINVAL;
}

static bool is_file_name(const char *name)
{
    static const char *const extensions[] = {"java", "kt",   "kts",  "scala", "groovy", "clj",
                                             "jsp",  "jspx", "jspf", "tag",   "tagx"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < ARRAY_SIZE(extensions); i++)
        if (strcmp(dot + 1, extensions[i]) == 0)
            return true;
    return strchr(name, '/') != NULL;
}

static int parse_place(struct log_spec *s, const char *text, size_t len, struct buf *why)
{
    const char *colon = memrchr(text, ':', len);
    char *end = NULL;
    unsigned long line = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || colon == text || line == 0 || line > 65535 || end != text + len)
        return refuse(why, text, "a place such as pkg.Class:12 is missing");
    s->line = (unsigned)line;
    s->place = strndup(text, (size_t)(colon - text));
    if (!s->place)
        return -ENOMEM;
    s->is_file = is_file_name(s->place);
    const char *dot = s->is_file ? NULL : strrchr(s->place, '.');
    s->class_of_method = dot ? strndup(s->place, (size_t)(dot - s->place)) : NULL;
    return dot && !s->class_of_method ? -ENOMEM : 0;
}

static int add_part(struct log_spec *s, int kind, const char *text, size_t len, struct buf *why)
{
    if (s->n_parts == LOG_PARTS_MAX)
        return refuse(why, text, "more than 32 texts and values");
    _Static_assert(LOG_PARTS_MAX == 32, "the message says so");
    struct log_part *p = &s->parts[s->n_parts];
    p->kind = kind;
    p->text = strndup(text, len);
    if (!p->text)
        return -ENOMEM;
    s->n_parts++;
    return 0;
}

/* Returns whether a text is one name, or several joined by dots. */
static bool is_name(const char *s)
{
    /* Java permits any letter; every non-ASCII character is accepted as one. */
    if (!*s || *s == '.' || (*s >= '0' && *s <= '9'))
        return false;
    for (; *s; s++)
        if (*s == '.')
            return is_name(s + 1);
        else if (!strchr("_$", *s) && !((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z') &&
                 !(*s >= '0' && *s <= '9') && !(*s & 0x80))
            return false;
    return true;
}

/* Parses what is in braces. */
static int parse_value(struct log_spec *s, const char *text, size_t len, struct buf *why)
{
    int n = 0;
    int r = len && len < LOG_NAME_MAX ? add_part(s, LOG_NAME, text, len, why)
                                      : refuse(why, text, "a name is missing or too long");
    if (r < 0)
        return r;
    struct log_part *p = &s->parts[s->n_parts - 1];
    if (strcmp(p->text, "this") == 0) {
        p->kind = LOG_THIS;
    } else if (strncmp(p->text, "this.", 5) == 0 && is_name(p->text + 5)) {
        p->kind = LOG_FIELD;
    } else if (p->text[0] == '#') {
        p->kind = LOG_SLOT;
        if (sscanf(p->text, "#%5u:%c%n", &p->slot, &p->type, &n) != 2 || p->text[n] ||
            !strchr("ZBCSIJFDL", p->type))
            return refuse(why, text, "not a slot with its type, such as #3:I (Z B C S I J F D L),");
    } else if (!is_name(p->text)) {
        return refuse(
            why, text,
            "not a local, a field (this.f, local.f.g, pkg.Class.f), thread or #SLOT:TYPE");
    }
    return 0;
}

static int parse_text(struct log_spec *s, const char *text, size_t len, struct buf *why)
{
    for (size_t i = 0; i < len;) {
        const char *open = memchr(text + i, '{', len - i);
        size_t until = open ? (size_t)(open - text) : len;
        int r = until > i ? add_part(s, LOG_TEXT, text + i, until - i, why) : 0;
        if (r < 0 || !open)
            return r;
        const char *close = memchr(open, '}', len - until);
        if (!close)
            return refuse(why, open, "} is missing");
        if ((r = parse_value(s, open + 1, (size_t)(close - open - 1), why)) < 0)
            return r;
        i = (size_t)(close - text) + 1;
    }
    return 0;
}

/* Returns whether a place of a class begins here: pkg.Class:12, and then a blank or the end. */
static bool begins_place(const char *text)
{
    size_t name = strcspn(text, " :;,{}");
    const char *last = memrchr(text, '.', name);
    const char *simple = last ? last + 1 : text;
    bool class = (*simple >= 'A' && *simple <= 'Z') || memchr(text, '.', name);
    if (!class || text[name] != ':')
        return false;
    size_t digits = strspn(text + name + 1, "0123456789");
    return digits && strchr(" ;,", text[name + 1 + digits]);
}

/*
 * Returns the length of the first logpoint of a list: up to a semicolon, or up to a comma that is
 * followed by a place. Other commas are part of the text.
 */
static size_t spec_length(const char *text)
{
    size_t len = strcspn(text, ",;");
    while (text[len] == ',' && !begins_place(text + len + 1 + strspn(text + len + 1, " ")))
        len += 1 + strcspn(text + len + 1, ",;");
    return len;
}

int log_specs_parse(struct log_spec **ret, const char *text, struct buf *why)
{
    struct log_spec *first = NULL, **to = &first;
    int r = 0;
    while (*text && r == 0) {
        text += strspn(text, " ");
        size_t len = spec_length(text), place = MIN(strcspn(text, " "), len);
        struct log_spec *s = calloc(1, sizeof(*s));
        if (!s) {
            r = -ENOMEM;
            break;
        }
        *to = s;
        to = &s->next;
        r = parse_place(s, text, place, why);
        size_t skip = place + strspn(text + place, " ");
        if (r == 0 && skip < len)
            r = parse_text(s, text + skip, len - skip, why);
        text += len + (text[len] != 0);
    }
    if (r == 0 && !first)
        r = refuse(why, text, "a place such as pkg.Class:12 is missing");
    if (r < 0) {
        log_specs_free(first);
        return r;
    }
    *ret = first;
    return 0;
}

void log_specs_free(struct log_spec *s)
{
    while (s) {
        struct log_spec *next = s->next;
        for (unsigned i = 0; i < s->n_parts; i++)
            free(s->parts[i].text);
        free(s->place);
        free(s->class_of_method);
        free(s);
        s = next;
    }
}
