/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace/moments.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>

static void print_string(const char *s)
{
    print_text(stdout, (struct str){s, strlen(s)});
}

/* Returns what follows {"object":" or {"number":" at p, or NULL if p starts with neither. */
static const char *after_text_key(const char *p, const char *end)
{
    static const char *const keys[] = {"{\"object\":\"", "{\"number\":\""};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        size_t n = strlen(keys[i]);
        if ((size_t)(end - p) > n && memcmp(p, keys[i], n) == 0)
            return p + n;
    }
    return NULL;
}

void moment_print_value(struct str json)
{
    _cleanup_(buf_release) struct buf text = BUF(SIZE_MAX / 4);
    bool quoted = false;
    const char *end = json.data + json.len, *inner;
    for (const char *p = json.data; p < end; p++) {
        if (!quoted && (inner = after_text_key(p, end))) {
            for (p = inner; p < end && *p != '"'; p++) {
                /* A control character stays escaped. */
                p += *p == '\\' && p + 1 < end && (p[1] == '"' || p[1] == '\\');
                buf_u8(&text, (uint8_t)*p);
            }
            p++; /* the brace */
            continue;
        }
        buf_u8(&text, (uint8_t)*p);
        if (quoted && *p == '\\' && p + 1 < end)
            buf_u8(&text, (uint8_t) * ++p);
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && *p == ',')
            buf_u8(&text, ' ');
    }
    print_text(stdout, (struct str){(const char *)text.data, text.len});
}

void moment_print_quoted(const char *s)
{
    _cleanup_(buf_release) struct buf text = BUF(SIZE_MAX / 4);
    json_string(&(struct json){.out = &text}, s);
    print_text(stdout, (struct str){(const char *)text.data, text.len});
}

static void print_value_of(const char *json)
{
    moment_print_value((struct str){json, strlen(json)});
}

static void print_access(const struct rec_object *o)
{
    const char *object = rec_string(o, "object", NULL);
    bool write = rec_long(o, "write", 0) != 0;
    fputs(write ? "write " : "read ", stdout);
    print_string(rec_string(o, "field", "?"));
    if (object) {
        fputs(" of ", stdout);
        print_string(object);
    }
    fputs(write ? ": " : " = ", stdout);
    print_value_of(rec_string(o, "before", "?"));
    if (write) {
        fputs(" -> ", stdout);
        print_value_of(rec_string(o, "after", "?"));
    }
    fputs("  at ", stdout);
    print_string(rec_string(o, "place", "?"));
}

static void print_thrown(const struct rec_object *o)
{
    const char *message = rec_string(o, "message", NULL), *caught = rec_string(o, "caught", NULL);
    fputs("throw ", stdout);
    print_string(rec_string(o, "className", "?"));
    if (message) {
        fputs(": ", stdout);
        moment_print_quoted(message);
    }
    fputs("  at ", stdout);
    print_string(rec_string(o, "place", "?"));
    if (caught) {
        printf(", out of %s, caught at ", COUNT_TEXT((uint64_t)rec_long(o, "unwound", 0), "calls"));
        print_string(caught);
    } else {
        fputs(", caught nowhere", stdout);
    }
}

static void print_after_blank(const char *s)
{
    if (*s)
        putchar(' ');
    print_string(s);
}

void moment_print(const struct rec_event *e, int64_t start)
{
    const struct rec_object *o = &e->object;
    const char *thread = moment_thread(o);
    bool is_note = e->tag == SHOWN_NOTE;
    if (is_note && e->start_ns < start)
        printf("%12s", "-");
    else
        printf("%12.6f", (double)(e->start_ns - start) / 1e9);
    printf("  %10s  ", "");
    print_column(stdout, thread ? thread : is_note ? "-" : "", THREAD_COLUMNS, false);
    fputs("  ", stdout);
    switch (e->tag) {
    case SHOWN_LOG:
    case SHOWN_NOTE:
        print_string(rec_string(o, "place", "?"));
        print_after_blank(rec_string(o, "text", ""));
        break;
    case SHOWN_THROWN:
        print_thrown(o);
        break;
    case SHOWN_VM:
        print_string(rec_string(o, "what", "?"));
        print_after_blank(rec_string(o, "text", ""));
        break;
    default:
        print_access(o);
    }
    putchar('\n');
}
