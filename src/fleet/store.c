/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/store.h"

#include "base/pattern.h"

#include <errno.h>
#include <string.h>

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

const int64_t store_resolution_s[STORE_RESOLUTIONS] = {FLEET_BUCKET_S, 5 * MINUTE, HOUR};
const struct store_keep store_keep_default = {{2 * DAY, 30 * DAY, 400 * DAY}};

int store_open(struct store **ret, const char *url, bool create, struct buf *why)
{
    static const char sqlite[] = "sqlite:", clickhouse[] = "clickhouse://";
    if (strncmp(url, sqlite, strlen(sqlite)) == 0 && url[strlen(sqlite)])
        return store_sqlite_open(ret, url + strlen(sqlite), create, why);
    if (strncmp(url, clickhouse, strlen(clickhouse)) == 0)
        return store_clickhouse_open(ret, url + strlen(clickhouse), create, why);
    buf_string(why, "a store is sqlite:FILE or clickhouse://HOST:PORT/DATABASE");
    return -EINVAL;
}

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

int store_add_begin(struct store *s, const struct fleet_origin *origin,
                    const struct fleet_hash *upload, const struct batch *b,
                    struct store_adding **ret, bool *ret_new, struct buf *why)
{
    *ret = NULL;
    return s->ops->add_begin(s, origin, upload, b, ret, ret_new, why);
}

int store_add_end(struct store *s, struct store_adding *a, bool *ret_new, struct buf *why)
{
    return a ? s->ops->add_end(s, a, ret_new, why) : 0;
}

int store_tidy(struct store *s, const struct store_keep *keep, int64_t now_s, struct buf *why)
{
    return s->ops->tidy(s, keep, now_s, why);
}

int store_merge(struct store *s, struct buf *why)
{
    return s->ops->merge ? s->ops->merge(s, why) : 0;
}

int store_begin(struct store *s, const struct fleet_choice *choice, struct store_read **ret,
                struct buf *why)
{
    return s->ops->begin(s, choice, ret, why);
}

void store_end(struct store *s, struct store_read *r)
{
    if (r)
        s->ops->end(r);
}

static int64_t up(int64_t seconds, int64_t step)
{
    return fleet_floor(seconds + step - 1, step);
}

static int add_span(struct store_span *to, int n, int resolution, int64_t from_s, int64_t to_s)
{
    if (from_s < to_s)
        to[n++] = (struct store_span){resolution, from_s, to_s};
    return n;
}

/* Finds the spans of a range in which resolutions from `finest` to `coarsest` are to be used. */
static int spans_between(int finest, int coarsest, int64_t from, int64_t to, struct store_span *ret)
{
    struct store_span right[STORE_RESOLUTIONS];
    int n = 0, n_right = 0;
    from = fleet_floor(from, store_resolution_s[finest]);
    to = up(to, store_resolution_s[finest]);
    for (int r = finest; r < coarsest; r++) {
        int64_t next = store_resolution_s[r + 1];
        int64_t first = MIN(up(from, next), to), last = MAX(fleet_floor(to, next), first);
        n = add_span(ret, n, r, from, first);
        n_right = add_span(right, n_right, r, last, to);
        from = first;
        to = last;
    }
    n = add_span(ret, n, coarsest, from, to);
    while (n_right)
        ret[n++] = right[--n_right];
    return n;
}

int store_spans(const struct fleet_choice *choice, const int64_t removed_until_s[STORE_RESOLUTIONS],
                struct store_span ret[STORE_SPANS])
{
    /* Later than every time that a store holds, and a multiple of all resolutions. */
    const int64_t end = fleet_floor(INT64_MAX / 4, HOUR);
    int64_t from = MAX(choice->from_s, -end);
    int64_t to = choice->to_s ? MIN(choice->to_s, end) : end;
    int coarsest = STORE_RESOLUTIONS - 1, n = 0;
    while (coarsest && choice->step_s && store_resolution_s[coarsest] > choice->step_s)
        coarsest--;
    for (int finest = STORE_RESOLUTIONS; finest-- > 0;) {
        int64_t begin = finest == STORE_RESOLUTIONS - 1 ? from : MAX(from, removed_until_s[finest]);
        int64_t stop = finest ? MIN(to, removed_until_s[finest - 1]) : to;
        if (begin < stop)
            n += spans_between(finest, MAX(finest, coarsest), begin, stop, ret + n);
    }
    return n;
}

int store_spans_kept(const struct fleet_choice *choice, int64_t removed_until_s[STORE_RESOLUTIONS],
                     struct store_span ret[STORE_SPANS])
{
    /* A coarser resolution is kept for at least as long. */
    for (int i = STORE_RESOLUTIONS - 2; i >= 0; i--)
        removed_until_s[i] = MAX(removed_until_s[i], removed_until_s[i + 1]);
    return store_spans(choice, removed_until_s, ret);
}

static bool matches_part(const char *wanted, size_t n, const char *text)
{
    bool is_pattern = n && (*wanted == '=' || strcspn(wanted, "*?") < n);
    return is_pattern ? pattern_match_part(wanted, n, text, strlen(text))
                      : strlen(text) == n && memcmp(wanted, text, n) == 0;
}

bool store_matches(const char *wanted, const char *text)
{
    if (!wanted || matches_part(wanted, strlen(wanted), text))
        return true;
    for (const char *at = wanted; strchr(wanted, ',') && *at; at += *at == ',') {
        at += strspn(at, " ");
        size_t n = strcspn(at, ",");
        if (n && matches_part(at, n, text))
            return true;
        at += n;
    }
    return false;
}

static const char *label_of(const struct store_series *s, const char *key)
{
    for (size_t i = 0; i < s->n_labels; i++)
        if (strcmp(s->labels[i].key, key) == 0)
            return s->labels[i].value;
    return "";
}

bool store_chooses(const struct fleet_choice *c, const struct store_series *s)
{
    if (!store_matches(c->tenant, s->tenant) || !store_matches(c->service, s->service) ||
        !store_matches(c->version, s->version) || !store_matches(c->host, s->host) ||
        !store_matches(c->instance, s->instance))
        return false;
    for (size_t i = 0; i < c->n_labels; i++)
        if (!store_matches(c->labels[i].value, label_of(s, c->labels[i].key)))
            return false;
    return true;
}

struct fleet_hash store_hash_origin(const struct fleet_origin *o)
{
    const char *const own[] = {o->tenant, o->service, o->version, o->host, o->instance};
    struct fleet_sha s;
    fleet_sha_begin(&s);
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        fleet_sha_add_text(&s, own[i], strlen(own[i]));
    for (size_t i = 0; i < o->n_labels; i++) {
        fleet_sha_add_text(&s, o->labels[i].key, strlen(o->labels[i].key));
        fleet_sha_add_text(&s, o->labels[i].value, strlen(o->labels[i].value));
    }
    return fleet_sha_end(&s);
}
