/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of querier.v1.QuerierService. */
#include "base/protobuf.h"
#include "wire/connect.h"
#include "wire/pyroscope.h"

#include <errno.h>

enum { MATCHERS_MAX = 64, FORMAT_TREE = 2, AVERAGE = 1 };

/* What a field of a request says. */
enum meaning {
    START,
    END,
    TYPE,
    SELECTOR, /* a selector, or a list of them */
    GROUP,    /* a list of names */
    NAME,
    MAX_NODES,
    STEP,
    AGGREGATION,
    FORMAT
};

struct field {
    enum pyroscope_query_kind kind;
    unsigned number;
    const char *json, *other;
    enum meaning meaning;
};

static const struct field fields[] = {
    {PYROSCOPE_PROFILE_TYPES, 1, "start", NULL, START},
    {PYROSCOPE_PROFILE_TYPES, 2, "end", NULL, END},
    {PYROSCOPE_LABEL_NAMES, 1, "matchers", NULL, SELECTOR},
    {PYROSCOPE_LABEL_NAMES, 2, "start", NULL, START},
    {PYROSCOPE_LABEL_NAMES, 3, "end", NULL, END},
    {PYROSCOPE_LABEL_VALUES, 1, "name", NULL, NAME},
    {PYROSCOPE_LABEL_VALUES, 2, "matchers", NULL, SELECTOR},
    {PYROSCOPE_LABEL_VALUES, 3, "start", NULL, START},
    {PYROSCOPE_LABEL_VALUES, 4, "end", NULL, END},
    {PYROSCOPE_SERIES, 1, "matchers", NULL, SELECTOR},
    {PYROSCOPE_SERIES, 2, "labelNames", "label_names", GROUP},
    {PYROSCOPE_SERIES, 3, "start", NULL, START},
    {PYROSCOPE_SERIES, 4, "end", NULL, END},
    {PYROSCOPE_SELECT_MERGE_STACKTRACES, 1, "profileTypeID", "profile_typeID", TYPE},
    {PYROSCOPE_SELECT_MERGE_STACKTRACES, 2, "labelSelector", "label_selector", SELECTOR},
    {PYROSCOPE_SELECT_MERGE_STACKTRACES, 3, "start", NULL, START},
    {PYROSCOPE_SELECT_MERGE_STACKTRACES, 4, "end", NULL, END},
    {PYROSCOPE_SELECT_MERGE_STACKTRACES, 5, "maxNodes", "max_nodes", MAX_NODES},
    {PYROSCOPE_SELECT_MERGE_STACKTRACES, 6, "format", NULL, FORMAT},
    {PYROSCOPE_SELECT_SERIES, 1, "profileTypeID", "profile_typeID", TYPE},
    {PYROSCOPE_SELECT_SERIES, 2, "labelSelector", "label_selector", SELECTOR},
    {PYROSCOPE_SELECT_SERIES, 3, "start", NULL, START},
    {PYROSCOPE_SELECT_SERIES, 4, "end", NULL, END},
    {PYROSCOPE_SELECT_SERIES, 5, "groupBy", "group_by", GROUP},
    {PYROSCOPE_SELECT_SERIES, 6, "step", NULL, STEP},
    {PYROSCOPE_SELECT_SERIES, 7, "aggregation", NULL, AGGREGATION},
};

static const char *const methods[PYROSCOPE_QUERIES] = {
    [PYROSCOPE_PROFILE_TYPES] = "ProfileTypes",
    [PYROSCOPE_LABEL_NAMES] = "LabelNames",
    [PYROSCOPE_LABEL_VALUES] = "LabelValues",
    [PYROSCOPE_SERIES] = "Series",
    [PYROSCOPE_SELECT_MERGE_STACKTRACES] = "SelectMergeStacktraces",
    [PYROSCOPE_SELECT_SERIES] = "SelectSeries",
};

enum pyroscope_query_kind pyroscope_query_kind(const char *method)
{
    int k = 0;
    while (k < PYROSCOPE_QUERIES && strcmp(method, methods[k]) != 0)
        k++;
    return (enum pyroscope_query_kind)k;
}

/* ---- selectors: {label="value", other=~"pattern"} ---- */

struct selector {
    struct pyroscope_query *q;
    const char *at, *end;
};

static void skip_space(struct selector *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n'))
        s->at++;
}

static bool take(struct selector *s, const char *text)
{
    size_t n = strlen(text);
    skip_space(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0)
        return false;
    s->at += n;
    return true;
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '-' || c == '/';
}

static const char *take_name(struct selector *s)
{
    skip_space(s);
    const char *start = s->at;
    while (s->at < s->end && is_of_name(*s->at))
        s->at++;
    return s->at > start ? arena_copy(&s->q->arena, start, (size_t)(s->at - start)) : NULL;
}

/* A text in double quotes, with escapes, or in backquotes, without them. */
static const char *take_quoted(struct selector *s)
{
    skip_space(s);
    if (s->at >= s->end || (*s->at != '"' && *s->at != '`'))
        return NULL;
    char quote = *s->at++;
    char *text = arena_alloc(&s->q->arena, (size_t)(s->end - s->at) + 1);
    size_t n = 0;
    for (; text && s->at < s->end && *s->at != quote; s->at++) {
        bool escaped = quote == '"' && *s->at == '\\' && s->at + 1 < s->end;
        s->at += escaped;
        text[n++] = !escaped ? *s->at : *s->at == 'n' ? '\n' : *s->at == 't' ? '\t' : *s->at;
    }
    if (!text || s->at >= s->end)
        return NULL;
    s->at++;
    text[n] = 0;
    return text;
}

static bool take_matcher(struct selector *s, struct pyroscope_matcher *ret)
{
    static const struct {
        const char *sign;
        enum pyroscope_match how;
    } signs[] = {
        {"=~", MATCH_REGEX}, {"!~", MATCH_NOT_REGEX}, {"!=", MATCH_NOT_EQUAL}, {"=", MATCH_EQUAL}};

    ret->label = take_name(s);
    size_t i = 0;
    while (ret->label && i < ARRAY_SIZE(signs) && !take(s, signs[i].sign))
        i++;
    if (!ret->label || i == ARRAY_SIZE(signs))
        return false;
    ret->how = signs[i].how;
    ret->value = take_quoted(s);
    return ret->value != NULL;
}

static int read_selector(struct pyroscope_query *q, struct str text, struct buf *why)
{
    struct selector s = {q, text.data, text.data + text.len};
    bool braces = take(&s, "{"), good = true;
    for (bool more = true; good && more && q->matchers.len < MATCHERS_MAX;) {
        struct pyroscope_matcher m;
        skip_space(&s);
        if (s.at >= s.end || *s.at == '}')
            break;
        good = take_matcher(&s, &m) && vec_push(&q->matchers, m) == 0;
        more = take(&s, ",");
    }
    good &= !braces || take(&s, "}");
    skip_space(&s);
    if (good && s.at == s.end)
        return 0;
    buf_printf(why, "not a selector of labels: %.*s", (int)MIN(text.len, (size_t)200), text.data);
    return -EINVAL;
}

/* ---- members ---- */

static const char *copy(struct pyroscope_query *q, struct str text)
{
    return arena_copy(&q->arena, text.data, text.len);
}

static int set_text(struct pyroscope_query *q, enum meaning meaning, struct str text,
                    struct buf *why)
{
    const char *copied = NULL;
    if (meaning == SELECTOR)
        return read_selector(q, text, why);
    copied = copy(q, text);
    if (!copied)
        return -ENOMEM;
    if (meaning == TYPE)
        q->profile_type = copied;
    else if (meaning == NAME)
        q->name = copied;
    else if (meaning == GROUP)
        return q->group_by.len < MATCHERS_MAX ? vec_push(&q->group_by, copied) : -E2BIG;
    return 0;
}

static int set_number(struct pyroscope_query *q, enum meaning meaning, int64_t v, struct buf *why)
{
    if (meaning == START)
        q->start_ms = v;
    else if (meaning == END)
        q->end_ms = v;
    else if (meaning == MAX_NODES)
        q->max_nodes = v;
    else if (meaning == AGGREGATION)
        q->average = v == AVERAGE;
    if (meaning != FORMAT || v != FORMAT_TREE)
        return 0;
    buf_string(why, "only flame graphs are supported, not Pyroscope's own tree format");
    return -EINVAL;
}

static bool is_text(enum meaning m)
{
    return m == TYPE || m == SELECTOR || m == GROUP || m == NAME;
}

/* ---- the two forms ---- */

static int read_protobuf(struct pyroscope_query *q, struct cursor c, struct buf *why)
{
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f)) {
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fields); i++) {
            if (fields[i].kind != q->kind || fields[i].number != f.number)
                continue;
            if (fields[i].meaning == STEP)
                memcpy(&q->step_s, &f.value, sizeof(q->step_s));
            else if (!is_text(fields[i].meaning))
                r = set_number(q, fields[i].meaning, (int64_t)f.value, why);
            else if (f.type == PROTOBUF_BYTES)
                r = set_text(q, fields[i].meaning,
                             (struct str){protobuf_text(&f), cursor_left(&f.bytes)}, why);
        }
    }
    return r < 0 ? r : c.failed ? -EPROTO : 0;
}

static int set_json(struct pyroscope_query *q, enum meaning meaning, json_object *o,
                    struct buf *why)
{
    int r = 0;
    if (meaning == STEP) {
        q->step_s = json_object_get_double(o);
    } else if (is_text(meaning)) {
        if (json_object_is_type(o, json_type_string))
            return set_text(q, meaning, connect_text(o), why);
        for (size_t i = 0; r == 0 && i < connect_length(o); i++)
            r = set_text(q, meaning, connect_text(json_object_array_get_idx(o, i)), why);
    } else if (meaning == AGGREGATION || meaning == FORMAT) {
        struct str name = connect_text(o);
        int64_t v = str_is(name, "TIME_SERIES_AGGREGATION_TYPE_AVERAGE") ? AVERAGE
                    : str_is(name, "PROFILE_FORMAT_TREE")                ? FORMAT_TREE
                                                                         : connect_integer(o);
        r = set_number(q, meaning, v, why);
    } else {
        r = set_number(q, meaning, connect_integer(o), why);
    }
    return r;
}

static int read_json(struct pyroscope_query *q, const void *data, size_t len, struct buf *why)
{
    json_object *o = NULL;
    int r = connect_parse(data, len, &o);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fields); i++) {
        json_object *member =
            fields[i].kind == q->kind ? connect_member(o, fields[i].json, fields[i].other) : NULL;
        if (member)
            r = set_json(q, fields[i].meaning, member, why);
    }
    json_object_put(o);
    return r;
}

int pyroscope_query(struct pyroscope_query *ret, enum pyroscope_query_kind kind, bool json,
                    const void *data, size_t len, struct buf *why)
{
    *ret = (struct pyroscope_query){.kind = kind, .profile_type = "", .name = ""};
    int r = json ? read_json(ret, data, len, why) : read_protobuf(ret, cursor_of(data, len), why);
    if (r == 0 && !(ret->step_s >= 0 && ret->step_s < 1e9))
        ret->step_s = 0;
    if (r == -EPROTO && !why->len)
        buf_printf(why, "not a valid request of %s", methods[kind]);
    if (r < 0)
        pyroscope_query_release(ret);
    return r;
}

void pyroscope_query_release(struct pyroscope_query *q)
{
    vec_release(&q->matchers);
    vec_release(&q->group_by);
    arena_release(&q->arena);
    *q = (struct pyroscope_query){0};
}
