/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of querier.v1.QuerierService. In JSON an int64 is a text, as in protobuf's JSON mapping.
 */
#include "base/json.h"
#include "base/protobuf.h"
#include "wire/pyroscope.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIMIT_PART = 1 << 30 };

enum { LABELS_LABELS = 1 };

enum { LABEL_NAME = 1, LABEL_VALUE };

enum { SERIES_LABELS = 1, SERIES_POINTS };

enum { POINT_VALUE = 1, POINT_TIME };

enum { FLAME_NAMES = 1, FLAME_LEVELS, FLAME_TOTAL, FLAME_MAX_SELF };

/* Fields of the answers themselves. */
enum {
    TYPES_TYPES = 1,
    NAMES_NAMES = 1,
    SETS_SETS = 2,
    SELECTED_SERIES = 1,
    STACKTRACES_FLAME = 1
};

enum { LEVEL_VALUES = 1 };

enum { TYPE_ID = 1, TYPE_NAME, TYPE_TYPE = 4, TYPE_UNIT, TYPE_PERIOD_TYPE, TYPE_PERIOD_UNIT };

static void put_text(struct buf *b, unsigned field, const char *text)
{
    if (*text)
        protobuf_put_bytes(b, field, text, strlen(text));
}

static void json_int64(struct json *j, int64_t v)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, v);
    json_string(j, text);
}

/* ---- names and labels ---- */

int pyroscope_put_names(const char *const *names, size_t n, bool json, struct buf *to)
{
    struct json j = {.out = to};
    if (!json) {
        for (size_t i = 0; i < n; i++)
            protobuf_put_bytes(to, NAMES_NAMES, names[i], strlen(names[i]));
        return buf_error(to);
    }
    json_begin_object(&j);
    json_key_array(&j, "names");
    for (size_t i = 0; i < n; i++)
        json_string(&j, names[i]);
    json_end_array(&j);
    json_end_object(&j);
    return buf_error(to);
}

/* The five parts of "name:type:unit:period type:period unit". */
static void split_id(const char *id, struct str ret[5])
{
    for (int i = 0; i < 5; i++) {
        size_t n = strcspn(id, ":");
        ret[i] = (struct str){id, n};
        id += n + (id[n] == ':');
    }
}

static const struct {
    unsigned number;
    const char *json;
} type_parts[5] = {
    {TYPE_NAME, "name"},
    {TYPE_TYPE, "sampleType"},
    {TYPE_UNIT, "sampleUnit"},
    {TYPE_PERIOD_TYPE, "periodType"},
    {TYPE_PERIOD_UNIT, "periodUnit"},
};

int pyroscope_put_profile_types(const struct pyroscope_profile_type *types, size_t n, bool json,
                                struct buf *to)
{
    struct json j = {.out = to};
    struct buf part = BUF(1 << 16);
    if (json) {
        json_begin_object(&j);
        json_key_array(&j, "profileTypes");
    }
    for (size_t i = 0; i < n; i++) {
        struct str parts[5];
        split_id(types[i].id, parts);
        put_text(&part, TYPE_ID, types[i].id);
        if (json) {
            json_begin_object(&j);
            json_key_string(&j, "ID", types[i].id);
        }
        for (int k = 0; k < 5; k++) {
            if (json) {
                json_key_string_n(&j, type_parts[k].json, parts[k].data, parts[k].len);
            } else if (parts[k].len) {
                protobuf_put_bytes(&part, type_parts[k].number, parts[k].data, parts[k].len);
            }
        }
        if (json)
            json_end_object(&j);
        else
            protobuf_put_part(to, TYPES_TYPES, &part);
    }
    if (json) {
        json_end_array(&j);
        json_end_object(&j);
    }
    buf_release(&part);
    return buf_error(to);
}

static void put_labels(struct buf *to, unsigned field, const struct pyroscope_labels *labels)
{
    struct buf part = BUF(1 << 20);
    for (size_t i = 0; i < labels->len; i++) {
        put_text(&part, LABEL_NAME, labels->list[i].name);
        put_text(&part, LABEL_VALUE, labels->list[i].value);
        protobuf_put_part(to, field, &part);
    }
    buf_release(&part);
}

static void json_labels(struct json *j, const struct pyroscope_labels *labels)
{
    json_key_array(j, "labels");
    for (size_t i = 0; i < labels->len; i++) {
        json_begin_object(j);
        json_key_string(j, "name", labels->list[i].name);
        json_key_string(j, "value", labels->list[i].value);
        json_end_object(j);
    }
    json_end_array(j);
}

int pyroscope_put_label_sets(const struct pyroscope_labels *sets, size_t n, bool json,
                             struct buf *to)
{
    struct json j = {.out = to};
    struct buf part = BUF(LIMIT_PART);
    if (json) {
        json_begin_object(&j);
        json_key_array(&j, "labelsSet");
    }
    for (size_t i = 0; i < n; i++) {
        if (json) {
            json_begin_object(&j);
            json_labels(&j, &sets[i]);
            json_end_object(&j);
        } else {
            put_labels(&part, LABELS_LABELS, &sets[i]);
            protobuf_put_part(to, SETS_SETS, &part);
        }
    }
    if (json) {
        json_end_array(&j);
        json_end_object(&j);
    }
    buf_release(&part);
    return buf_error(to);
}

/* ---- series ---- */

static void json_series(struct json *j, const struct pyroscope_series *s)
{
    json_begin_object(j);
    json_labels(j, &s->labels);
    json_key_array(j, "points");
    for (size_t i = 0; i < s->len; i++) {
        json_begin_object(j);
        json_key_double(j, "value", s->points[i].value);
        json_key(j, "timestamp");
        json_int64(j, s->points[i].time_ms);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_series(struct buf *to, const struct pyroscope_series *s)
{
    struct buf part = BUF(LIMIT_PART), point = BUF(64);
    put_labels(&part, SERIES_LABELS, &s->labels);
    for (size_t i = 0; i < s->len; i++) {
        protobuf_put_double(&point, POINT_VALUE, s->points[i].value);
        protobuf_put_nonzero(&point, POINT_TIME, (uint64_t)s->points[i].time_ms);
        protobuf_put_part(&part, SERIES_POINTS, &point);
    }
    protobuf_put_part(to, SELECTED_SERIES, &part);
    buf_release(&part);
    buf_release(&point);
}

int pyroscope_put_series(const struct pyroscope_series *series, size_t n, bool json, struct buf *to)
{
    struct json j = {.out = to};
    if (json) {
        json_begin_object(&j);
        json_key_array(&j, "series");
    }
    for (size_t i = 0; i < n; i++) {
        if (json)
            json_series(&j, &series[i]);
        else
            put_series(to, &series[i]);
    }
    if (json) {
        json_end_array(&j);
        json_end_object(&j);
    }
    return buf_error(to);
}

/* ---- flame graphs ---- */

/*
 * Writes a row of bars per depth, from left to right: the distance of the bar from the end of the
 * previous one, its total, its own part, and the number of its name. A bar's own part is to the
 * left of its children.
 */
struct bar {
    uint32_t node;
    int64_t at;
};

#define NO_NODE UINT32_MAX

struct flame {
    const struct pyroscope_flame *f;
    int64_t *total;
    uint32_t *child, *sibling; /* the first child and the next sibling; NO_NODE: none */
    int64_t least;             /* of a total that is shown; lighter ones are "other" */
    uint32_t other;            /* the number of that name */
    VEC(struct bar) row, next;
    VEC(int64_t) values; /* of the current row */
};

static int by_weight(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Returns the least total among the max_nodes heaviest nodes. */
static int find_least(struct flame *f, int64_t max_nodes)
{
    size_t n = f->f->len;
    f->least = 0;
    if (max_nodes <= 0 || (uint64_t)max_nodes >= n)
        return 0;
    int64_t *sorted = malloc(n * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, f->total, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_weight);
    f->least = sorted[max_nodes - 1];
    free(sorted);
    return 0;
}

static int add_up(struct flame *f)
{
    size_t n = f->f->len;
    f->total = calloc(n + 1, sizeof(*f->total));
    f->child = malloc((n + 1) * sizeof(*f->child));
    f->sibling = malloc((n + 1) * sizeof(*f->sibling));
    if (!f->total || !f->child || !f->sibling)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        f->child[i] = f->sibling[i] = NO_NODE;
    for (size_t i = n; i-- > 0;) {
        const struct pyroscope_node *node = &f->f->nodes[i];
        f->total[i] += node->self;
        if (i == 0)
            break;
        f->total[node->parent] += f->total[i];
        f->sibling[i] = f->child[node->parent];
        f->child[node->parent] = (uint32_t)i;
    }
    return 0;
}

static int add_bar(struct flame *f, int64_t *end, int64_t at, int64_t total, int64_t self,
                   uint32_t name)
{
    int64_t bar[] = {at - *end, total, self, name};
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(bar); i++)
        r = vec_push(&f->values, bar[i]);
    *end = at + total;
    return r;
}

/* Adds the children of a bar to the next row, and a single bar for those that are too light. */
static int add_children(struct flame *f, const struct bar *bar, struct buf *others)
{
    int64_t at = bar->at + f->f->nodes[bar->node].self, light = 0;
    int r = 0;
    for (uint32_t c = f->child[bar->node]; r == 0 && c != NO_NODE; c = f->sibling[c]) {
        if (f->total[c] < f->least) {
            light += f->total[c];
            continue;
        }
        r = vec_push(&f->next, ((struct bar){c, at}));
        at += f->total[c];
    }
    if (r == 0 && light) {
        r = vec_push(&f->next, ((struct bar){NO_NODE, at}));
        buf_bytes(others, &light, sizeof(light));
    }
    return r < 0 ? r : buf_error(others);
}

static void put_row(struct flame *f, struct json *j, struct buf *part)
{
    struct buf list = BUF(LIMIT_PART), level = BUF(LIMIT_PART);
    if (j) {
        json_begin_object(j);
        json_key_array(j, "values");
        for (size_t i = 0; i < f->values.len; i++)
            json_int64(j, f->values.data[i]);
        json_end_array(j);
        json_end_object(j);
        return;
    }
    for (size_t i = 0; i < f->values.len; i++)
        buf_varint(&list, (uint64_t)f->values.data[i]);
    protobuf_put_part(&level, LEVEL_VALUES, &list);
    protobuf_put_part(part, FLAME_LEVELS, &level);
    buf_release(&list);
    buf_release(&level);
}

/* Writes row after row. */
static int put_rows(struct flame *f, struct json *j, struct buf *part, int64_t *max_self)
{
    struct buf light = BUF(LIMIT_PART), next_light = BUF(LIMIT_PART);
    int r = f->f->len ? vec_push(&f->row, ((struct bar){0, 0})) : 0;
    while (r == 0 && f->row.len) {
        int64_t end = 0;
        size_t lights = 0;
        vec_clear(&f->values);
        vec_clear(&f->next);
        for (size_t i = 0; r == 0 && i < f->row.len; i++) {
            const struct bar *b = &f->row.data[i];
            int64_t self, total;
            if (b->node == NO_NODE) {
                memcpy(&total, light.data + sizeof(total) * lights++, sizeof(total));
                self = total;
            } else {
                self = f->f->nodes[b->node].self;
                total = f->total[b->node];
            }
            *max_self = MAX(*max_self, self);
            r = add_bar(f, &end, b->at, total, self,
                        b->node == NO_NODE ? f->other : f->f->nodes[b->node].name);
            if (r == 0 && b->node != NO_NODE)
                r = add_children(f, b, &next_light);
        }
        if (r == 0)
            put_row(f, j, part);
        __typeof__(f->row) row = {f->row.data, f->row.len, f->row.cap};
        memcpy(&f->row, &f->next, sizeof(f->row));
        memcpy(&f->next, &row, sizeof(f->next));
        buf_clear(&light);
        buf_bytes(&light, next_light.data, next_light.len);
        buf_clear(&next_light);
        r = r < 0 ? r : buf_error(&light);
    }
    buf_release(&light);
    buf_release(&next_light);
    return r;
}

static int put_json(struct flame *f, struct buf *to)
{
    struct json j = {.out = to};
    int64_t max_self = 0;
    json_begin_object(&j);
    json_key_object(&j, "flamegraph");
    json_key_array(&j, "names");
    for (size_t i = 0; i < f->f->names_len; i++)
        json_string(&j, f->f->names[i]);
    if (f->least)
        json_string(&j, "other");
    json_end_array(&j);
    json_key_array(&j, "levels");
    int r = put_rows(f, &j, NULL, &max_self);
    json_end_array(&j);
    json_key(&j, "total");
    json_int64(&j, f->f->len ? f->total[0] : 0);
    json_key(&j, "maxSelf");
    json_int64(&j, max_self);
    json_end_object(&j);
    json_end_object(&j);
    return r;
}

static int put_protobuf(struct flame *f, struct buf *to)
{
    struct buf part = BUF(LIMIT_PART);
    int64_t max_self = 0;
    for (size_t i = 0; i < f->f->names_len; i++)
        protobuf_put_bytes(&part, FLAME_NAMES, f->f->names[i], strlen(f->f->names[i]));
    if (f->least)
        protobuf_put_bytes(&part, FLAME_NAMES, "other", strlen("other"));
    int r = put_rows(f, NULL, &part, &max_self);
    protobuf_put_nonzero(&part, FLAME_TOTAL, f->f->len ? (uint64_t)f->total[0] : 0);
    protobuf_put_nonzero(&part, FLAME_MAX_SELF, (uint64_t)max_self);
    protobuf_put_part(to, STACKTRACES_FLAME, &part);
    buf_release(&part);
    return r;
}

int pyroscope_put_flame(const struct pyroscope_flame *f, int64_t max_nodes, bool json,
                        struct buf *to)
{
    struct flame flame = {.f = f, .other = (uint32_t)f->names_len};
    int r = add_up(&flame);
    if (r == 0)
        r = find_least(&flame, max_nodes);
    if (r == 0)
        r = json ? put_json(&flame, to) : put_protobuf(&flame, to);
    free(flame.total);
    free(flame.child);
    free(flame.sibling);
    vec_release(&flame.row);
    vec_release(&flame.next);
    vec_release(&flame.values);
    return r < 0 ? r : buf_error(to);
}

void pyroscope_put_error(const char *code, const char *message, struct buf *to)
{
    struct json j = {.out = to};
    json_begin_object(&j);
    json_key_string(&j, "code", code);
    json_key_string(&j, "message", message);
    json_end_object(&j);
}
