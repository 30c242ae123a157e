/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_moments.h"

#include "cli/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool text_matches(const char *pattern, const char *text)
{
    return !pattern || (text && fnmatch(pattern, text, 0) == 0);
}

bool moment_wanted(const struct rec_event *e, const char *thread_pattern)
{
    return text_matches(thread_pattern, rec_string(&e->object, "thread", NULL));
}

static void print_string(const char *s)
{
    print_text(stdout, (struct str){s, strlen(s)});
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
    print_string(rec_string(o, "before", "?"));
    if (write) {
        fputs(" -> ", stdout);
        print_string(rec_string(o, "after", "?"));
    }
    fputs("  at ", stdout);
    print_string(rec_string(o, "place", "?"));
}

void moment_print(const struct rec_event *e, int64_t start)
{
    const struct rec_object *o = &e->object;
    printf("%12.6f  %10s  %-16.16s  ", (double)(e->start_ns - start) / 1e9, "", rec_string(o, "thread", ""));
    if (e->tag == SHOWN_LOG) {
        print_string(rec_string(o, "place", "?"));
        putchar(' ');
        print_string(rec_string(o, "text", ""));
    } else {
        print_access(o);
    }
    putchar('\n');
}

static void put_string(struct json *j, const char *key, const char *s)
{
    json_key(j, key);
    json_string(j, s);
}

/* A field that holds JSON itself. */
static void put_raw(struct json *j, const char *key, const char *s)
{
    if (!s)
        return;
    json_key(j, key);
    buf_string(j->out, s);
    j->comma = true;
}

void moment_json(struct json *j, const struct rec_event *e)
{
    static const char *const kinds[] = {[SHOWN_LOG] = "log", [SHOWN_ACCESS] = "access"};
    const struct rec_object *o = &e->object;
    json_object(j);
    put_string(j, "kind", kinds[e->tag]);
    json_key(j, "start_ns");
    json_i64(j, e->start_ns);
    put_string(j, "thread", rec_string(o, "thread", NULL));
    if (e->tag == SHOWN_LOG) {
        put_string(j, "place", rec_string(o, "place", NULL));
        put_string(j, "text", rec_string(o, "text", NULL));
    } else {
        bool write = rec_long(o, "write", 0) != 0;
        put_string(j, "field", rec_string(o, "field", NULL));
        put_string(j, "place", rec_string(o, "place", NULL));
        put_string(j, "object", rec_string(o, "object", NULL));
        json_key(j, "write");
        json_bool(j, write);
        put_raw(j, "before", rec_string(o, "before", NULL));
        put_raw(j, "after", rec_string(o, "after", NULL));
    }
    json_object_end(j);
}
