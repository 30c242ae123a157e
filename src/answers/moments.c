/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/moments.h"

#include "base/map.h"
#include "base/pattern.h"

#include <stdio.h>
#include <string.h>

bool moment_text_matches(const char *pattern, const char *text)
{
    return !pattern || (text && pattern_match(pattern, text, strlen(text)));
}

const char *moment_thread(const struct rec_object *o)
{
    static struct map names;
    const char *name = rec_string(o, "thread", NULL);
    int64_t number = rec_long(o, "javaThreadId", 0);
    if (name && *name)
        return name;
    const struct rec_thread *thread = number <= 0 ? rec_thread(o, "eventThread") : NULL;
    if (number <= 0)
        return thread ? thread->name : name;
    char text[48];
    uint64_t *at = map_at(&names, (uint64_t)number, 0, NULL);
    snprintf(text, sizeof(text), "%s #%lld", name ? "thread" : "virtual", (long long)number);
    if (at && !*at)
        *at = (uint64_t)(uintptr_t)strdup(text);
    return at ? (const char *)(uintptr_t)*at : NULL;
}

const char *moment_place(const struct rec_object *o, size_t *ret_method)
{
    const char *place = rec_string(o, "place", NULL);
    const char *line = place ? strrchr(place, ':') : NULL;
    *ret_method = line ? (size_t)(line - place) : place ? strlen(place) : 0;
    return place;
}

bool moment_wanted(const struct rec_event *e, const char *thread_pattern,
                   const char *method_pattern)
{
    size_t method;
    const char *place = moment_place(&e->object, &method);
    bool matches = moment_text_matches(method_pattern, place) ||
                   (place && pattern_match(method_pattern, place, method));
    return matches && moment_text_matches(thread_pattern, moment_thread(&e->object));
}

static void put_string(struct json *j, const char *key, const char *s)
{
    json_key_string(j, key, s);
}

/* Writes a field whose text is itself JSON. */
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

void moment_json(const struct rec_event *e, struct json *j)
{
    static const char *const kinds[] = {[SHOWN_LOG] = "log",
                                        [SHOWN_NOTE] = "log",
                                        [SHOWN_ACCESS] = "access",
                                        [SHOWN_THROWN] = "exception",
                                        [SHOWN_VM] = "vm"};
    const struct rec_object *o = &e->object;
    json_begin_object(j);
    put_string(j, "kind", kinds[e->tag]);
    json_key_i64(j, "start_ns", e->start_ns);
    put_string(j, "thread", moment_thread(o));
    switch (e->tag) {
    case SHOWN_LOG:
    case SHOWN_NOTE:
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
