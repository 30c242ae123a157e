/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a recording for tests:
 *
 *     jfr_dump FILE                  a line for each type with events, "name count"; then totals
 *                                    and damage
 *     jfr_dump FILE TYPE...          a line for each event with every field by name, constants and
 *                                    structs unfolded, stacks as frames
 *     jfr_dump --time FILE TYPE...   the same in order of time
 *     jfr_dump --get=PATH,PATH... FILE TYPE...
 *                                    these fields of each event, separated by tabs; of a stack its
 *                                    depth and outermost frame
 */
#include "base/buf.h"
#include "jfr/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t counts[65536];
static const char *type_names[65536];

static void show(const struct rec_object *o, int depth);

static void show_plain(const struct rec_object *o, const struct rec_value *v)
{
    switch (v->field->type->kind) {
    case REC_FLOAT:
    case REC_DOUBLE:
        printf("%.9g", v->real);
        break;
    case REC_STRING:
        printf("\"%s\"", v->string.data);
        break;
    case REC_STRUCT:
        printf("{");
        show(&v->object, 1);
        printf("}");
        break;
    default:
        if (v->field->unit == REC_PLAIN)
            printf("%" PRId64, v->number);
        else
            printf("%" PRId64 "(%" PRId64 ")", v->number, rec_value_ns(o, v));
    }
}

static void show(const struct rec_object *o, int depth)
{
    static int nested;
    uint32_t i = 0;
    const uint8_t *at = NULL;
    struct rec_value v;
    if (++nested > 8) {
        printf("...");
        nested--;
        return;
    }
    while (rec_fields(o, &i, &at, &v) > 0) {
        printf("%s%s=", i > 1 || !depth ? " " : "", v.field->name);
        if (v.is_null) {
            printf("null");
        } else if (v.field->array) {
            struct rec_value element;
            printf("[");
            for (uint64_t n = v.count; rec_elements(&v, &element) > 0;) {
                show_plain(o, &element);
                printf("%s", v.count && v.count < n ? " " : "");
            }
            printf("]");
        } else {
            show_plain(o, &v);
        }
    }
    nested--;
}

static void show_usual(const struct rec_event *e)
{
    const struct rec_type *t = e->object.type;
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const char *name = t->fields[i].name, *type = t->fields[i].type->name;
        if (!strcmp(type, "jdk.types.StackTrace")) {
            const struct rec_stack *s = rec_stack(&e->object, name);
            printf(" | %s:", name);
            for (uint32_t k = 0; s && k < s->n; k++)
                printf(" %s:%d", s->frames[k].method->full, s->frames[k].line);
            printf("%s", s && s->truncated ? " ..." : "");
        } else if (!strcmp(type, "java.lang.Thread")) {
            const struct rec_thread *thread = rec_thread(&e->object, name);
            printf(" | %s: %s", name, thread ? thread->name : "null");
        } else if (!strcmp(type, "java.lang.Class")) {
            const struct rec_class *class = rec_class(&e->object, name);
            printf(" | %s: %s", name, class ? class->name : "null");
        }
    }
}

static char *paths[16];
static int n_paths;

static void show_path(const struct rec_event *e, const char *path)
{
    struct rec_value v;
    int ret = rec_get(&e->object, path, &v);
    if (ret || v.is_null) {
        printf("%s", ret == -ENOENT ? "none" : ret ? "damaged" : "null");
    } else if (!strcmp(v.field->type->name, "jdk.types.StackTrace")) {
        const struct rec_stack *s = rec_stack(&e->object, path);
        printf("%u:%s", s ? s->n : 0, s && s->n ? s->frames[s->n - 1].method->full : "");
    } else {
        const char *s = rec_string(&e->object, path, NULL);
        if (s)
            printf("%s", s);
        else
            show_plain(&e->object, &v);
    }
}

static void show_event(const struct rec_event *e)
{
    for (int i = 0; i < n_paths; i++) {
        show_path(e, paths[i]);
        printf("%c", i + 1 < n_paths ? '\t' : '\n');
    }
    if (n_paths)
        return;
    printf("%s %" PRId64 " %" PRId64, e->object.type->name, e->start_ns, e->duration_ns);
    show(&e->object, 0);
    show_usual(e);
    printf("\n");
}

int main(int argc, char **argv)
{
    bool by_time = argc > 1 && !strcmp(argv[1], "--time");
    argv += by_time;
    argc -= by_time;
    if (argc > 1 && !strncmp(argv[1], "--get=", 6)) {
        for (char *p = strtok(argv[1] + 6, ","); p && n_paths < 16; p = strtok(NULL, ","))
            paths[n_paths++] = p;
        argv++;
        argc--;
    }
    struct recording *r;
    const char *why;
    if (argc < 2)
        return 2;
    int ret = recording_open(&r, argv[1], &why);
    if (ret) {
        printf("error: %s\n", why);
        return 1;
    }
    struct rec_select rows[64] = {0};
    for (int i = 2; i < argc && i < 65; i++)
        rows[i - 2] = (struct rec_select){argv[i], i};
    ret = argc > 2 ? recording_select(r, rows) : 0;
    struct rec_event e;
    if (!ret && by_time) {
        struct rec_mark *marks;
        size_t n;
        ret = recording_by_time(r, &marks, &n);
        for (size_t i = 0; !ret && i < n; i++)
            if (!recording_at(r, marks[i].offset, &e))
                show_event(&e);
        if (!ret)
            free(marks);
    } else if (!ret) {
        while ((ret = recording_next(r, &e)) > 0) {
            if (argc > 2) {
                show_event(&e);
            } else if (e.object.type->number < ARRAY_SIZE(counts)) {
                counts[e.object.type->number]++;
                type_names[e.object.type->number] = e.object.type->name;
            }
        }
    }
    struct rec_info info;
    recording_info(r, &info);
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        if (counts[i])
            printf("%s %" PRIu64 "\n", type_names[i], counts[i]);
    if (argc == 2)
        printf("chunks %" PRIu64 "\nduration_ns %" PRId64 "\nunresolved %" PRIu64 "\n", info.chunks,
               info.end_ns - info.start_ns, info.unresolved);
    if (info.truncated)
        printf("truncated: %s at %" PRIu64 "\n", info.why, info.at);
    recording_close(r);
    return ret < 0;
}
