/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace/moments.h"

#include "base/pattern.h"

#include <stdio.h>
#include <string.h>

bool text_matches(const char *pattern, const char *text)
{
    return !pattern || (text && pattern_match(pattern, text, strlen(text)));
}

bool moment_wanted(const struct rec_event *e, const char *thread_pattern)
{
    return text_matches(thread_pattern, rec_string(&e->object, "thread", NULL));
}

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

void print_value(struct str json)
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

static void print_value_of(const char *json)
{
    print_value((struct str){json, strlen(json)});
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
        print_string(message);
    }
    fputs("  at ", stdout);
    print_string(rec_string(o, "place", "?"));
    if (caught) {
        printf(", out of %lld calls, caught at ", (long long)rec_long(o, "unwound", 0));
        print_string(caught);
    } else {
        fputs(", caught nowhere", stdout);
    }
}

void moment_print(const struct rec_event *e, int64_t start)
{
    const struct rec_object *o = &e->object;
    printf("%12.6f  %10s  %-16.16s  ", (double)(e->start_ns - start) / 1e9, "",
           rec_string(o, "thread", ""));
    switch (e->tag) {
    case SHOWN_LOG:
        print_string(rec_string(o, "place", "?"));
        putchar(' ');
        print_string(rec_string(o, "text", ""));
        break;
    case SHOWN_THROWN:
        print_thrown(o);
        break;
    case SHOWN_VM:
        print_string(rec_string(o, "what", "?"));
        putchar(' ');
        print_string(rec_string(o, "text", ""));
        break;
    default:
        print_access(o);
    }
    putchar('\n');
}

static void put_string(struct json *j, const char *key, const char *s)
{
    json_key_string(j, key, s);
}

/* Writes a field that contains JSON itself. */
static void put_raw(struct json *j, const char *key, const char *s)
{
    if (!s)
        return;
    json_key(j, key);
    buf_string(j->out, s);
    j->comma = true;
}

static void put_access(struct json *j, const struct rec_object *o)
{
    put_string(j, "field", rec_string(o, "field", NULL));
    put_string(j, "place", rec_string(o, "place", NULL));
    put_string(j, "object", rec_string(o, "object", NULL));
    json_key_bool(j, "write", rec_long(o, "write", 0) != 0);
    put_raw(j, "before", rec_string(o, "before", NULL));
    put_raw(j, "after", rec_string(o, "after", NULL));
}

static void put_stack(struct json *j, const struct rec_stack *stack)
{
    json_key_array(j, "stack");
    for (uint32_t i = 0; stack && i < stack->n; i++) {
        char text[1024];
        snprintf(text, sizeof(text), "%s:%d", stack->frames[i].method->full,
                 (int)stack->frames[i].line);
        json_string(j, text);
    }
    json_end_array(j);
}

void moment_json(struct json *j, const struct rec_event *e)
{
    static const char *const kinds[] = {[SHOWN_LOG] = "log",
                                        [SHOWN_ACCESS] = "access",
                                        [SHOWN_THROWN] = "exception",
                                        [SHOWN_VM] = "vm"};
    const struct rec_object *o = &e->object;
    json_begin_object(j);
    put_string(j, "kind", kinds[e->tag]);
    json_key_i64(j, "start_ns", e->start_ns);
    put_string(j, "thread", rec_string(o, "thread", NULL));
    switch (e->tag) {
    case SHOWN_LOG:
        put_string(j, "place", rec_string(o, "place", NULL));
        put_string(j, "text", rec_string(o, "text", NULL));
        break;
    case SHOWN_THROWN:
        put_string(j, "exception", rec_string(o, "className", NULL));
        put_string(j, "message", rec_string(o, "message", NULL));
        put_string(j, "place", rec_string(o, "place", NULL));
        put_string(j, "caught", rec_string(o, "caught", NULL));
        json_key_i64(j, "unwound", rec_long(o, "unwound", 0));
        put_stack(j, rec_stack(o, "stackTrace"));
        break;
    case SHOWN_VM:
        put_string(j, "what", rec_string(o, "what", NULL));
        put_string(j, "text", rec_string(o, "text", NULL));
        break;
    default:
        put_access(j, o);
    }
    json_end_object(j);
}
