/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/coverage.h"

#include "base/buf.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads the numbers of a point: LINE:HIT, or LINE:PC:EDGE:HIT with - for the fall-through. */
static bool next_number(const char **at, uint32_t *ret)
{
    if (**at == '-') {
        ++*at;
        *ret = COVER_FALL_THROUGH;
        return true;
    }
    uint64_t v = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9' && v < UINT32_MAX; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == *at || v >= UINT32_MAX)
        return false;
    *at = p;
    *ret = (uint32_t)v;
    return true;
}

/* Reads n numbers separated by colons, then a space or the end. */
static bool next_point(const char **at, uint32_t *numbers, int n)
{
    for (int i = 0; i < n; i++) {
        if ((i && *(*at)++ != ':') || !next_number(at, &numbers[i]))
            return false;
    }
    if (**at && **at != ' ')
        return false;
    *at += **at == ' ';
    return numbers[n - 1] <= 1;
}

static int parse_starts(const char *text, struct cover_body *b)
{
    while (*text) {
        uint32_t n[2], nth = 0;
        if (!next_point(&text, n, 2))
            return -EBADMSG;
        for (size_t i = 0; i < b->starts.len; i++)
            nth += b->starts.data[i].line == n[0];
        int r = vec_push(&b->starts, ((struct cover_start){n[0], nth, n[1]}));
        if (r < 0)
            return r;
    }
    return 0;
}

static int parse_edges(const char *text, struct cover_body *b)
{
    while (*text) {
        uint32_t n[4];
        if (!next_point(&text, n, 4))
            return -EBADMSG;
        int r = vec_push(&b->edges, ((struct cover_edge){n[0], n[1], n[2], n[3]}));
        if (r < 0)
            return r;
    }
    return 0;
}

static void body_release(struct cover_body *b)
{
    vec_release(&b->starts);
    vec_release(&b->edges);
}

/*
 * Adds the hits of another run of the same body. A body of the same name with different points
 * comes from another build and is left unchanged.
 */
static void merge(struct cover_body *into, const struct cover_body *b)
{
    for (size_t i = 0; i < b->starts.len && i < into->starts.len; i++)
        into->starts.data[i].hit |=
            b->starts.data[i].hit && b->starts.data[i].line == into->starts.data[i].line;
    for (size_t i = 0; i < b->edges.len && i < into->edges.len; i++)
        into->edges.data[i].hit |=
            b->edges.data[i].hit && b->edges.data[i].pc == into->edges.data[i].pc;
}

/*
 * Returns the index stored under a key, or -ENOENT; *ret_number is the key's number, for map_put.
 */
static int64_t find(struct coverage *c, const struct map *index, const char *text, size_t len,
                    int64_t *ret_number)
{
    int64_t number = strpool_add(&c->keys, text, len);
    if (number < 0)
        return number;
    *ret_number = number;
    const uint64_t *at = map_get(index, (uint64_t)number);
    return at ? (int64_t)*at : -ENOENT;
}

static int64_t add_class(struct coverage *c, const char *name, const char *source)
{
    int64_t number = 0, at = find(c, &c->class_index, name, strlen(name), &number);
    if (at != -ENOENT)
        return at;
    struct cover_class class = {.name = arena_copy(&c->arena, name, strlen(name)),
                                .source =
                                    source ? arena_copy(&c->arena, source, strlen(source)) : NULL};
    if (!class.name || vec_push(&c->classes, class) < 0 ||
        map_put(&c->class_index, (uint64_t)number, c->classes.len - 1) < 0)
        return -ENOMEM;
    return (int64_t)c->classes.len - 1;
}

static int add_body(struct coverage *c, struct cover_body *b, int64_t class, const char *method,
                    const char *descriptor)
{
    _cleanup_(buf_release) struct buf key = BUF(1 << 20);
    buf_printf(&key, "%lld %s%s", (long long)class, method, descriptor);
    int64_t number = 0, at = find(c, &c->body_index, (const char *)key.data, key.len, &number);
    if (at >= 0) {
        merge(&c->bodies.data[at], b);
        return 0;
    }
    if (at != -ENOENT || buf_error(&key))
        return -ENOMEM;
    struct cover_body body = *b;
    body.class = (uint32_t) class;
    body.name = arena_copy(&c->arena, method, strlen(method));
    body.descriptor = arena_copy(&c->arena, descriptor, strlen(descriptor));
    if (!body.name || !body.descriptor || vec_push(&c->bodies, body) < 0)
        return -ENOMEM;
    b->starts.data = NULL; /* moved */
    b->edges.data = NULL;
    if (map_put(&c->body_index, (uint64_t)number, c->bodies.len - 1) < 0)
        return -ENOMEM;
    return vec_push(&c->classes.data[class].bodies, (uint32_t)c->bodies.len - 1);
}

int coverage_add(struct coverage *c, const char *class_name, const char *source, const char *method,
                 const char *descriptor, const char *lines, const char *branches)
{
    if (!class_name || !method || !descriptor || !lines || !branches)
        return -EBADMSG;
    struct cover_body b = {0};
    int r = parse_starts(lines, &b);
    if (r == 0)
        r = parse_edges(branches, &b);
    int64_t class = r < 0 ? r : add_class(c, class_name, source);
    r = class < 0 ? (int)class : add_body(c, &b, class, method, descriptor);
    body_release(&b);
    return r;
}

bool coverage_has_class(const struct coverage *c, const char *name)
{
    int64_t number = strpool_find(&c->keys, name, strlen(name));
    return number >= 0 && map_get(&c->class_index, (uint64_t)number);
}

uint32_t cover_body_line(const struct cover_body *b)
{
    uint32_t first = UINT32_MAX;
    for (size_t i = 0; i < b->starts.len; i++)
        first = MIN(first, b->starts.data[i].line);
    return first;
}

bool cover_body_hit(const struct cover_body *b)
{
    for (size_t i = 0; i < b->starts.len; i++) {
        if (b->starts.data[i].hit)
            return true;
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cover_class *)a)->name, ((const struct cover_class *)b)->name);
}

static int by_line(const void *a, const void *b, void *of)
{
    const struct coverage *c = of;
    const struct cover_body *x = &c->bodies.data[*(const uint32_t *)a],
                            *y = &c->bodies.data[*(const uint32_t *)b];
    uint32_t i = cover_body_line(x), j = cover_body_line(y);
    if (i != j)
        return i < j ? -1 : 1;
    int names = strcmp(x->name, y->name);
    return names ? names : strcmp(x->descriptor, y->descriptor);
}

void coverage_sort(struct coverage *c)
{
    if (c->classes.len)
        qsort(c->classes.data, c->classes.len, sizeof(struct cover_class), by_name);
    for (size_t i = 0; i < c->classes.len; i++)
        qsort_r(c->classes.data[i].bodies.data, c->classes.data[i].bodies.len, sizeof(uint32_t),
                by_line, c);
    /* the indexes have changed; a class that is added later is looked up by name */
    map_clear(&c->class_index);
    for (size_t i = 0; i < c->classes.len; i++) {
        int64_t number =
            strpool_find(&c->keys, c->classes.data[i].name, strlen(c->classes.data[i].name));
        uint64_t *at = number < 0 ? NULL : map_at(&c->class_index, (uint64_t)number, i, NULL);
        if (at)
            *at = i;
        for (size_t k = 0; k < c->classes.data[i].bodies.len; k++)
            c->bodies.data[c->classes.data[i].bodies.data[k]].class = (uint32_t)i;
    }
}

static uint32_t last_line(const struct cover_body *b)
{
    uint32_t last = 0;
    for (size_t k = 0; k < b->starts.len; k++)
        last = MAX(last, b->starts.data[k].line);
    return last;
}

/* Adds a body's points to lines 0 .. last. */
static void add_to_lines(const struct cover_body *b, struct cover_line *all, uint32_t last)
{
    for (size_t k = 0; k < b->starts.len; k++) {
        all[b->starts.data[k].line].starts++;
        all[b->starts.data[k].line].hit += b->starts.data[k].hit;
    }
    for (size_t k = 0; k < b->edges.len; k++) {
        if (b->edges.data[k].line <= last) {
            all[b->edges.data[k].line].edges++;
            all[b->edges.data[k].line].taken += b->edges.data[k].hit;
        }
    }
}

/* Computes the lines of n bodies of c, or of bodies that are given directly. */
static int lines_of(const struct coverage *c, const uint32_t *bodies, size_t n,
                    const struct cover_body *only, struct cover_line **ret, size_t *ret_n)
{
    uint32_t last = only ? last_line(only) : 0;
    for (size_t i = 0; i < n; i++)
        last = MAX(last, last_line(&c->bodies.data[bodies[i]]));
    if (last > 65535) /* line numbers in a LineNumberTable have 16 bits */
        return -EBADMSG;
    struct cover_line *all = calloc((size_t)last + 1, sizeof(*all));
    if (!all)
        return -ENOMEM;
    if (only)
        add_to_lines(only, all, last);
    for (size_t i = 0; i < n; i++)
        add_to_lines(&c->bodies.data[bodies[i]], all, last);
    *ret_n = 0;
    for (uint32_t line = 0; line <= last; line++) {
        if (!all[line].starts)
            continue;
        all[*ret_n] = all[line];
        all[(*ret_n)++].line = line;
    }
    *ret = all;
    return 0;
}

int coverage_lines(const struct coverage *c, const struct cover_class *of, struct cover_line **ret,
                   size_t *ret_n)
{
    return lines_of(c, of->bodies.data, of->bodies.len, NULL, ret, ret_n);
}

int coverage_body_lines(const struct cover_body *b, struct cover_line **ret, size_t *ret_n)
{
    return lines_of(NULL, NULL, 0, b, ret, ret_n);
}

static bool add_lines(const struct cover_line *lines, size_t n, struct cover_sum *s)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        s->lines++;
        s->lines_hit += lines[i].hit > 0;
        any |= lines[i].hit > 0;
    }
    return any;
}

static void add_edges(const struct cover_body *b, struct cover_sum *s)
{
    s->methods++;
    s->methods_hit += cover_body_hit(b);
    for (size_t k = 0; k < b->edges.len; k++) {
        s->branches++;
        s->branches_hit += b->edges.data[k].hit;
    }
}

int coverage_add_body_sum(const struct cover_body *b, struct cover_sum *sum)
{
    _cleanup_free_ struct cover_line *lines = NULL;
    size_t n;
    int r = coverage_body_lines(b, &lines, &n);
    if (r < 0)
        return r;
    add_lines(lines, n, sum);
    add_edges(b, sum);
    return 0;
}

int coverage_add_sum(const struct coverage *c, const struct cover_class *of, struct cover_sum *sum)
{
    _cleanup_free_ struct cover_line *lines = NULL;
    size_t n;
    int r = coverage_lines(c, of, &lines, &n);
    if (r < 0)
        return r;
    sum->classes_hit += add_lines(lines, n, sum);
    sum->classes++;
    for (size_t i = 0; i < of->bodies.len; i++)
        add_edges(&c->bodies.data[of->bodies.data[i]], sum);
    return 0;
}

int coverage_sum(const struct coverage *c, const struct cover_class *of, struct cover_sum *ret)
{
    struct cover_sum s = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < c->classes.len; i++) {
        if (!of || of == &c->classes.data[i])
            r = coverage_add_sum(c, &c->classes.data[i], &s);
    }
    if (r == 0)
        *ret = s;
    return r;
}

void coverage_release(struct coverage *c)
{
    for (size_t i = 0; i < c->bodies.len; i++)
        body_release(&c->bodies.data[i]);
    for (size_t i = 0; i < c->classes.len; i++)
        vec_release(&c->classes.data[i].bodies);
    vec_release(&c->bodies);
    vec_release(&c->classes);
    map_release(&c->class_index);
    map_release(&c->body_index);
    strpool_release(&c->keys);
    arena_release(&c->arena);
    *c = (struct coverage){0};
}

void cover_source_name(const struct cover_class *c, struct buf *b)
{
    const char *dot = strrchr(c->name, '.');
    for (const char *p = c->name; dot && p <= dot; p++)
        buf_u8(b, *p == '.' ? '/' : (uint8_t)*p);
    if (c->source) {
        buf_string(b, c->source);
        return;
    }
    const char *simple = dot ? dot + 1 : c->name;
    buf_printf(b, "%.*s.java", (int)strcspn(simple, "$"), simple);
}

/* Like cover_source_path, for one folder. */
static char *path_in(const char *folder, const struct cover_class *c)
{
    _cleanup_(buf_release) struct buf path = BUF(8192);
    if (folder)
        buf_printf(&path, "%s/", folder);
    cover_source_name(c, &path);
    /*
     * A class file may contain any source name, so make sure that it does not lead out of the
     * folder.
     */
    if (strstr(buf_str(&path), "/../") || buf_error(&path) ||
        (folder && access(buf_str(&path), R_OK) < 0))
        return NULL;
    return strdup(buf_str(&path));
}

char *cover_source_path(const char *sources, const struct cover_class *c)
{
    char folder[PATH_MAX], *path = sources ? NULL : path_in(NULL, c);
    for (const char *rest = sources; rest && !path && file_list_next(&rest, folder);)
        path = path_in(folder, c);
    return path;
}
