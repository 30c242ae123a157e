/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads to the collector: who sends them, whether they are accepted, and the answer. */
#include "collect/collector.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "fleet/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKEW_FUTURE_S = 120, SKEW_S = 60, KEY_MAX = 128 };

void upload_origin_release(struct upload_origin *o)
{
    vec_release(&o->labels);
    arena_release(&o->arena);
}

int collector_hash(int fd, const char *const *texts, size_t n, struct fleet_hash *ret)
{
    uint8_t piece[1 << 16];
    struct fleet_sha s;
    off_t at = 0;
    fleet_sha_begin(&s);
    for (size_t i = 0; i < n; i++)
        fleet_sha_add_text(&s, texts[i], strlen(texts[i]));
    for (;;) {
        ssize_t got = fd < 0 ? 0 : pread(fd, piece, sizeof(piece), at);
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        fleet_sha_add(&s, piece, (size_t)got);
        at += got;
    }
    *ret = fleet_sha_end(&s);
    return 0;
}

/* ---- the origin */

const char *upload_wrong_characters(struct str s)
{
    enum { UTF8_LONGEST = 4 }; /* modified UTF-8 has longer ones */

    uint32_t v;
    for (size_t at = 0, n; at < s.len; at += n) {
        n = utf8_decode(s.data + at, s.len - at, &v);
        if (!n || n > UTF8_LONGEST)
            return "not UTF-8";
        if (v < 0x20 || v == 0x7f)
            return "control characters";
    }
    return NULL;
}

static int check_text(const struct collector *c, const char *what, const char *text,
                      struct intake_reply *reply)
{
    const char *wrong = upload_wrong_characters((struct str){text, strlen(text)});
    if (strlen(text) > c->limits.text)
        return intake_reply_line(reply, 413, "%s: longer than %llu bytes", what,
                                 (unsigned long long)c->limits.text);
    return wrong ? intake_reply_line(reply, 400, "%s: %s", what, wrong) : 0;
}

static int compare_labels(const void *left, const void *right)
{
    const struct fleet_label *a = left, *b = right;
    return strcmp(a->key, b->key);
}

/* Sorts the labels. Of equal keys one remains. */
static void settle_labels(struct upload_origin *o)
{
    size_t kept = 0;
    vec_sort(&o->labels, compare_labels);
    for (size_t i = 0; i < o->labels.len; i++) {
        if (kept && strcmp(o->labels.data[kept - 1].key, o->labels.data[i].key) == 0)
            kept--;
        o->labels.data[kept++] = o->labels.data[i];
    }
    o->labels.len = kept;
    o->origin.labels = o->labels.data;
    o->origin.n_labels = kept;
}

static int check_origin(const struct collector *c, struct upload_origin *o,
                        struct intake_reply *reply)
{
    const char *const texts[][2] = {{"service", o->origin.service},
                                    {"version", o->origin.version},
                                    {"host", o->origin.host},
                                    {"instance", o->origin.instance}};
    int status = 0;
    for (size_t i = 0; i < ARRAY_SIZE(texts) && status == 0; i++)
        status = check_text(c, texts[i][0], texts[i][1], reply);
    if (status == 0 && !o->origin.service[0])
        return intake_reply_line(reply, 400, "service: missing (?service=NAME)");
    if (status == 0 && o->labels.len > c->limits.labels)
        return intake_reply_line(reply, 413, "%zu labels: at most %llu are accepted", o->labels.len,
                                 (unsigned long long)c->limits.labels);
    for (size_t i = 0; i < o->labels.len && status == 0; i++) {
        status = check_text(c, "label", o->labels.data[i].value, reply);
        if (status == 0 && strlen(o->labels.data[i].key) > KEY_MAX)
            return intake_reply_line(reply, 413, "label: a key longer than %d bytes", KEY_MAX);
        if (status == 0)
            status = check_text(c, "label", o->labels.data[i].key, reply);
    }
    settle_labels(o);
    return status;
}

struct argument_reader {
    struct upload_origin *o;
    struct intake_reply *reply;
};

static int read_label(struct argument_reader *r, const char *value)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return intake_reply_line(r->reply, 400, "label: not KEY=VALUE");
    struct fleet_label l = {arena_copy(&r->o->arena, value, (size_t)(equals - value)), equals + 1};
    for (size_t i = 0; l.key && i < r->o->labels.len; i++)
        if (strcmp(r->o->labels.data[i].key, l.key) == 0)
            return intake_reply_line(r->reply, 400, "label: %.100s: given more than once", l.key);
    if (!l.key || vec_push(&r->o->labels, l) < 0)
        return intake_reply_line(r->reply, 500, "out of memory");
    return 0;
}

static int read_seconds(struct argument_reader *r, const char *key, const char *value, int64_t *ret)
{
    int64_t now_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    return ask_time(value, now_s, ret) < 0 ? intake_reply_line(r->reply, 400, "%s: not a time", key)
                                           : 0;
}

static int read_ns(struct argument_reader *r, const char *key, const char *value, int64_t *ret)
{
    uint64_t n;
    if (parse_u64(value, 0, INT64_MAX, &n) < 0)
        return intake_reply_line(r->reply, 400, "%s: not a number of nanoseconds", key);
    *ret = (int64_t)n;
    return 0;
}

static int on_argument(void *context, const char *key, const char *value)
{
    struct argument_reader *r = context;
    struct fleet_origin *o = &r->o->origin;

    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"service", &o->service},
                 {"version", &o->version},
                 {"host", &o->host},
                 {"instance", &o->instance},
                 {"id", &r->o->id}};

    int64_t from_s = 0;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (strcmp(key, texts[i].key) == 0) {
            *texts[i].to = value;
            return 0;
        }
    }
    if (strcmp(key, "label") == 0)
        return read_label(r, value);
    if (strcmp(key, "sent") == 0)
        return read_seconds(r, key, value, &r->o->sent_s);
    if (strcmp(key, "from") == 0) {
        int status = read_seconds(r, key, value, &from_s);
        r->o->from_ns = from_s * (int64_t)NS_PER_SECOND;
        return status;
    }
    if (strcmp(key, "after_ns") == 0)
        return read_ns(r, key, value, &r->o->after_ns);
    if (strcmp(key, "until_ns") == 0)
        return read_ns(r, key, value, &r->o->until_ns);
    return intake_reply_line(r->reply, 400, "%s: no such argument", key);
}

/* ---- whether it is accepted */

static int status_of_reading(struct collector *c, int error, const struct buf *why,
                             struct intake_reply *reply)
{
    const char *text = why->len ? buf_str(why) : strerror(-error);
    if (error == -E2BIG) {
        atomic_fetch_add(&c->counts.too_large, 1);
        return intake_reply_line(reply, 413, "refused: %s", text);
    }
    if (error == -EPROTO || error == -EBADMSG || error == -ENOTSUP || error == -EINVAL) {
        atomic_fetch_add(&c->counts.damaged, 1);
        return intake_reply_line(reply, 400, "refused: %s", text);
    }
    atomic_fetch_add(&c->counts.failed, 1);
    reply->retry_after_s = 30;
    return intake_reply_line(reply, 503, "cannot read it now: %s", text);
}

static int status_of_store(struct collector *c, int error, const struct buf *why,
                           struct intake_reply *reply)
{
    atomic_fetch_add(&c->counts.failed, 1);
    reply->retry_after_s = error == -ENOSPC ? 60 : 10;
    return intake_reply_line(reply, 503, "the store: %s",
                             why->len ? buf_str(why) : strerror(-error));
}

/*
 * Corrects impossible times. If the sender says what time its clock showed when it sent, its times
 * are shifted by the difference. Nothing can have been recorded in the future.
 */
static void mend_times(struct collector *c, struct batch *b, const struct upload_origin *from,
                       int64_t now_s)
{
    int64_t first, last, shift = 0;
    if (!batch_span(b, &first, &last))
        return;
    if (from->sent_s && llabs(now_s - from->sent_s) > SKEW_S)
        shift = now_s - from->sent_s;
    if (last + shift > now_s + SKEW_FUTURE_S)
        shift = now_s - last;
    if (!shift)
        return;
    batch_shift(b, shift);
    atomic_fetch_add(&c->counts.shifted, 1);
}

static int check_age(const struct collector *c, const struct batch *b, int64_t now_s,
                     struct intake_reply *reply)
{
    int64_t first, last, kept = c->keep.seconds[STORE_RESOLUTIONS - 1];
    if (!batch_span(b, &first, &last) || first >= now_s - kept + store_resolution_s[2])
        return 0;
    return intake_reply_line(reply, 400, "refused: it is older than the store keeps (%lld days)",
                             (long long)(kept / 86400));
}

static void put_taken(struct intake_reply *reply, const struct fleet_hash *id, uint64_t samples,
                      bool is_new)
{
    struct json j = {&reply->body, false};
    char hex[KEPT_ID_LEN + 1];
    kept_id(id, hex);
    reply->type = "application/json";
    json_begin_object(&j);
    json_key_string(&j, "upload", hex);
    json_key_bool(&j, "new", is_new);
    json_key_u64(&j, "samples", samples);
    json_end_object(&j);
    buf_u8(&reply->body, '\n');
}

int upload_origin_set(struct upload_origin *o, const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **to;
    } own[] = {{"service.name", &o->origin.service},
               {"service_name", &o->origin.service},
               {"service.version", &o->origin.version},
               {"service_version", &o->origin.version},
               {"version", &o->origin.version},
               {"host.name", &o->origin.host},
               {"hostname", &o->origin.host},
               {"host", &o->origin.host},
               {"service.instance.id", &o->origin.instance},
               {"instance", &o->origin.instance}};

    key = arena_copy(&o->arena, key, strlen(key));
    value = arena_copy(&o->arena, value, strlen(value));
    if (!key || !value)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        if (strcmp(key, own[i].key) == 0) {
            *own[i].to = value;
            return 0;
        }
    }
    /* Pyroscope's own labels. */
    if (strncmp(key, "__", 2) == 0)
        return 0;
    return vec_push(&o->labels, ((struct fleet_label){key, value}));
}

/* An upload whose last batch is being stored. */
struct storing {
    struct store_adding *adding; /* NULL: the batch is in the store already */
    bool is_new;                 /* is_new: that batch is new */
    bool any_new;                /* a batch before it was new */
    uint64_t samples, last;      /* samples: of all batches; last: of the last one */
};

/*
 * Each batch of an upload is stored only once, so that a repeated upload adds the batches that are
 * missing. Returns 0 or the status of an error.
 */
static int store_batch(struct collector *c, const struct upload_origin *from, struct batch *b,
                       const struct fleet_hash *upload, uint64_t number, struct storing *to,
                       struct intake_reply *reply)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int64_t now_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    struct upload_origin own = {.origin = from->origin};
    struct fleet_hash id = *upload;
    int status = 0, r = 0;
    for (size_t i = 0; i < from->labels.len && r == 0; i++)
        r = vec_push(&own.labels, from->labels.data[i]);
    for (size_t i = 0; i < b->origin.len && r == 0 && status == 0; i++) {
        struct str key = strpool_get(&b->strings, b->origin.data[i].key),
                   value = strpool_get(&b->strings, b->origin.data[i].value);
        /* Here and not only in check_origin, because a NUL would cut off what follows it. */
        const char *wrong = upload_wrong_characters(key);
        wrong = wrong ? wrong : upload_wrong_characters(value);
        if (wrong)
            status = intake_reply_line(reply, 400, "label: %s", wrong);
        else
            r = upload_origin_set(&own, key.data, value.data);
    }
    if (status == 0)
        status =
            r < 0 ? intake_reply_line(reply, 500, "out of memory") : check_origin(c, &own, reply);
    mend_times(c, b, from, now_s);
    if (status == 0)
        status = check_age(c, b, now_s, reply);
    if (number) {
        id.bytes[0] ^= (uint8_t)number;
        id.bytes[1] ^= (uint8_t)(number >> 8);
    }
    r = status ? 0 : collector_admit_series(c, &own.origin, &why);
    if (r == -E2BIG)
        status = status_of_reading(c, r, &why, reply);
    if (status == 0 && r == 0)
        r = store_add_begin(c->store, &own.origin, &id, b, &to->adding, &to->is_new, &why);
    upload_origin_release(&own);
    return status ? status : r < 0 ? status_of_store(c, r, &why, reply) : 0;
}

/* Waits until the batch that is being stored is there. Returns 0 or the status of an error. */
static int finish_batch(struct collector *c, struct storing *to, struct intake_reply *reply)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int r = store_add_end(c->store, to->adding, &to->is_new, &why);
    to->adding = NULL;
    if (r < 0)
        return status_of_store(c, r, &why, reply);
    to->any_new = to->any_new || to->is_new;
    if (to->is_new)
        atomic_fetch_add(&c->counts.samples, to->last);
    return 0;
}

/* Stores the batches of an upload. For the last one the caller must call finish_batch. */
static int store_batches(struct collector *c, const struct upload_origin *from,
                         struct fleet_batches *b, const struct fleet_hash *upload,
                         struct storing *to, struct intake_reply *reply)
{
    int status = 0;
    for (size_t i = 0; i < b->list.len && status == 0; i++) {
        struct batch *one = &b->list.data[i];
        status = i ? finish_batch(c, to, reply) : 0;
        if (status == 0)
            status = store_batch(c, from, one, upload, i, to, reply);
        to->last = 0;
        for (size_t k = 0; k < one->samples.len; k++)
            to->last += one->samples.data[k].count;
        to->samples += to->last;
    }
    return status;
}

/* ---- reading, and the memory for it */

static void enter_room(struct reading_room *room, unsigned shares)
{
    bool all = shares == COLLECTOR_SHARES;
    pthread_mutex_lock(&room->lock);
    room->want_all += all;
    while (room->taken + shares > COLLECTOR_SHARES || (!all && room->want_all))
        pthread_cond_wait(&room->freed, &room->lock);
    room->want_all -= all;
    room->taken += shares;
    pthread_mutex_unlock(&room->lock);
}

static void leave_room(struct reading_room *room, unsigned shares)
{
    pthread_mutex_lock(&room->lock);
    room->taken -= shares;
    pthread_cond_broadcast(&room->freed);
    pthread_mutex_unlock(&room->lock);
}

/*
 * Reads an upload within one share of the memory, while another one may be read. An upload that
 * needs more is read again with all of the memory. *ret_shares have to be returned when the batches
 * are released.
 */
static int read_upload(struct collector *c, struct fleet_batches *ret,
                       const struct fleet_reading *upload, unsigned *ret_shares, struct buf *why)
{
    struct reading_limits share = *upload->limits;
    struct fleet_reading how = *upload;
    share.memory /= COLLECTOR_SHARES;
    share.unpacked /= COLLECTOR_SHARES;
    share.cpu_s /= 4; /* it is spent again if the share is too small */
    how.limits = &share;
    *ret_shares = 1;
    enter_room(&c->room, 1);
    int r = fleet_read_in_process(ret, &how, why);
    if (r != -E2BIG)
        return r;
    leave_room(&c->room, 1);
    buf_clear(why);
    *ret_shares = COLLECTOR_SHARES;
    enter_room(&c->room, COLLECTOR_SHARES);
    how = *upload;
    how.alone = true;
    return fleet_read_in_process(ret, &how, why);
}

static bool points_to_recording(const struct batch *b, size_t finding)
{
    return str_is(strpool_get(&b->strings, b->findings.data[finding].kind), FLEET_SLOW_REQUEST);
}

/*
 * A recording to which slow requests refer is kept before they are stored. If that fails, the
 * upload is accepted anyway, and no request refers to a recording.
 */
static void keep_recording(struct collector *c, const struct upload_origin *from,
                           struct fleet_batches *b, const struct fleet_hash *id, const char *path)
{
    struct batch *one = b->list.len ? &b->list.data[0] : NULL;
    size_t kept = 0;
    size_t n = one ? one->findings.len : 0;
    size_t first = 0;
    while (first < n && !points_to_recording(one, first))
        first++;
    if (first == n)
        return;
    int r = kept_put(&c->kept, from->origin.tenant, id, path);
    if (r == 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!points_to_recording(one, i))
            one->findings.data[kept++] = one->findings.data[i];
    one->findings.len = kept;
    if (atomic_fetch_add(&c->counts.not_kept, 1) == 0)
        c->not_kept(c->kept.folder, r);
}

/* The name of a form: of its query and its parts. */
static struct fleet_hash hash_form(const struct fleet_hash *query, const struct fleet_hash *parts)
{
    struct fleet_sha s;
    fleet_sha_begin(&s);
    fleet_sha_add_text(&s, "form", strlen("form"));
    fleet_sha_add(&s, query->bytes, FLEET_HASH_BYTES);
    fleet_sha_add(&s, parts->bytes, FLEET_HASH_BYTES);
    return fleet_sha_end(&s);
}

int collector_take(struct collector *c, struct upload_origin *from, const char *path,
                   const struct fleet_hash *content, struct intake_reply *reply)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct fleet_batches b = {0};
    struct fleet_hash id = *content;
    bool has_origin = from->format != FLEET_FILE && from->format != FLEET_INGEST;
    int status = has_origin ? 0 : check_origin(c, from, reply);
    if (status)
        return status;
    if (from->id) {
        const char *const texts[] = {"id", from->origin.tenant, from->id};
        if (collector_hash(-1, texts, ARRAY_SIZE(texts), &id) < 0)
            return intake_reply_line(reply, 500, "cannot read the body");
    }
    struct fleet_reading how = {.path = path,
                                .format = from->format,
                                .content_type = from->content_type,
                                .limits = &c->limits.reading,
                                .from_ns = from->from_ns ? from->from_ns
                                                         : (int64_t)clock_ns(CLOCK_REALTIME),
                                .interval_ns = from->interval_ns,
                                .after_ns = from->after_ns,
                                .until_ns = from->until_ns};
    struct storing to = {0};
    char kept[KEPT_ID_LEN + 1];
    unsigned shares;
    kept_id(&id, kept);
    if (c->kept.folder && from->format == FLEET_FILE)
        how.kept = kept;
    int r = read_upload(c, &b, &how, &shares, &why);
    if (r < 0) {
        status = status_of_reading(c, r, &why, reply);
    } else {
        if (fleet_reading_is_form(from->format, from->content_type))
            id = hash_form(&id, &b.parts);
        keep_recording(c, from, &b, &id, path);
        status = store_batches(c, from, &b, &id, &to, reply);
    }
    /* An upload that waits for the store needs no more memory for reading. */
    fleet_batches_release(&b);
    leave_room(&c->room, shares);
    if (status == 0)
        status = finish_batch(c, &to, reply);
    if (status)
        return status;
    atomic_fetch_add(to.any_new ? &c->counts.uploads : &c->counts.repeated, 1);
    put_taken(reply, &id, to.samples, to.any_new);
    return 200;
}

/*
 * Names an upload by its contents, its origin, and `from`, because two uploads that contain no
 * times may be equal.
 */
static int hash_upload(const struct intake_request *q, const struct upload_origin *o,
                       struct fleet_hash *ret)
{
    const char *from = intake_argument(q, "from");
    const struct fleet_origin *own = &o->origin;
    const char *const first[] = {own->tenant, own->service,  own->version,
                                 own->host,   own->instance, from ? from : ""};
    VEC(const char *) texts = {0};
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(first) && r == 0; i++)
        r = vec_push(&texts, first[i]);
    for (size_t i = 0; i < o->labels.len && r == 0; i++) {
        r = vec_push(&texts, o->labels.data[i].key);
        if (r == 0)
            r = vec_push(&texts, o->labels.data[i].value);
    }
    if (r == 0)
        r = collector_hash(q->body, texts.data, texts.len, ret);
    vec_release(&texts);
    return r;
}

int collector_upload(struct collector *c, const struct tenant *t, const struct intake_request *q,
                     struct intake_reply *reply)
{
    _cleanup_(upload_origin_release) struct upload_origin o = {
        .origin = {.tenant = t->name, .service = "", .version = "", .host = "", .instance = ""}};
    struct argument_reader r = {&o, reply};
    struct fleet_hash content = {{0}};
    char path[64];
    int status = intake_each_argument(q, on_argument, &r);
    if (status)
        return status;
    if (q->body < 0)
        return intake_reply_line(reply, 400, "no body: send a recording (.jfr, .pb.gz ...)");
    /* A name that the sender gave is used instead of one made from the contents. */
    if (!o.id && hash_upload(q, &o, &content) < 0)
        return intake_reply_line(reply, 500, "cannot read the body");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", q->body);
    return collector_take(c, &o, path, &content, reply);
}
