/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's HTTP interface: authorization, rate limits, and the choice of the part that
 * answers.
 */
#include "collect/collector.h"

#include "base/clock.h"
#include "base/file.h"
#include "fleet/ask.h"
#include "fleet/metrics.h"
#include "page/page.h"
#include "wire/otlp.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QUERIER "/querier.v1.QuerierService/" /* queries that are sent by POST */

enum { PARAMS_MAX = 64, TOKEN_MAX = 512 };

/* ---- who sends */

/* Compares in constant time, so that the duration does not reveal how much of a token was right. */
static bool is_token(const char *token, const char *shown)
{
    size_t n = strlen(token), m = strlen(shown);
    unsigned char differs = n != m;
    for (size_t i = 0; i < m; i++)
        differs |= (unsigned char)(shown[i] ^ (n ? token[i % n] : 1));
    return !differs;
}

static int base64_value(char c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

/* The password of "Basic USER:PASSWORD" in base64. */
static const char *password_of(const char *base64, char text[TOKEN_MAX])
{
    unsigned bits = 0, n_bits = 0;
    size_t len = 0;
    for (; *base64 && *base64 != '='; base64++) {
        int v = base64_value(*base64);
        if (v < 0 || len + 2 > TOKEN_MAX)
            return NULL;
        bits = bits << 6 | (unsigned)v;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            text[len++] = (char)(bits >> n_bits);
        }
    }
    text[len] = 0;
    char *colon = memchr(text, ':', len);
    return colon ? colon + 1 : NULL;
}

static const char *token_shown(const struct intake_request *q, char text[TOKEN_MAX])
{
    const char *header = intake_header(q, "Authorization");
    if (!header)
        return NULL;
    if (strncasecmp(header, "Bearer ", 7) == 0)
        return header + 7;
    return strncasecmp(header, "Basic ", 6) == 0 ? password_of(header + 6, text) : NULL;
}

static struct tenant *find_tenant(struct collector *c, const struct intake_request *q)
{
    char text[TOKEN_MAX];
    const char *shown = token_shown(q, text);
    struct tenant *found = NULL;
    for (size_t i = 0; i < c->tenants.len && shown; i++)
        if (c->tenants.data[i].token && is_token(c->tenants.data[i].token, shown))
            found = &c->tenants.data[i];
    return c->open ? &c->tenants.data[0] : found;
}

/*
 * Without tokens every user of this machine may send and query, but pages of other sites in a
 * browser may not: such a page cannot hide its origin, and a host name that it points at this
 * machine (DNS rebinding) is not one of ours.
 */
static bool host_is_local(const char *host)
{
    static const char *const names[] = {"localhost", "127.", "[::1]"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t n = strlen(names[i]);
        if (strncasecmp(host, names[i], n) == 0 &&
            (i == 1 ? strspn(host, "0123456789.:") == strlen(host)
                    : host[n] == 0 || host[n] == ':'))
            return true;
    }
    return false;
}

static bool is_foreign_page(const struct collector *c, const struct intake_request *q)
{
    const char *host = intake_header(q, "Host"), *origin = intake_header(q, "Origin"),
               *site = intake_header(q, "Sec-Fetch-Site");
    if (c->open && (!host || !host_is_local(host)))
        return true;
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return true;
    const char *behind = origin ? strstr(origin, "://") : NULL;
    return origin && (!behind || !host || strcasecmp(behind + 3, host) != 0);
}

/* ---- how often */

/* Returns the seconds until the tenant may send again; 0: now. */
static unsigned take_credit(struct collector *c, struct tenant *t)
{
    unsigned wait = 0;
    pthread_mutex_lock(&c->credit);
    uint64_t now = now_ns();
    double rate = (double)c->limits.rate, most = COLLECTOR_BURST * rate;
    t->credit += (double)(now - t->credit_at_ns) / 1e9 * rate;
    t->credit = MIN(t->credit, most);
    t->credit_at_ns = now;
    if (t->credit >= 1)
        t->credit -= 1;
    else
        wait = 1 + (unsigned)((1 - t->credit) / rate);
    pthread_mutex_unlock(&c->credit);
    return wait;
}

int collector_admit(void *context, const struct intake_request *q, struct intake_reply *reply,
                    const void **ret_tenant)
{
    struct collector *c = context;
    if (is_foreign_page(c, q))
        return intake_reply_line(reply, 403,
                                 "the request comes from another site, or names another host");
    struct tenant *t = find_tenant(c, q);
    if (!t) {
        reply->ask_password = true;
        return intake_reply_line(reply, 401, "a token is needed (Authorization: Bearer TOKEN)");
    }
    bool sends = (strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0) &&
                 strncmp(q->path, QUERIER, strlen(QUERIER)) != 0;
    unsigned wait = sends ? take_credit(c, t) : 0;
    if (wait) {
        atomic_fetch_add(&c->counts.limited, 1);
        reply->retry_after_s = wait;
        return intake_reply_line(reply, 429, "more than %llu uploads per second: try again in %u s",
                                 (unsigned long long)c->limits.rate, wait);
    }
    *ret_tenant = t;
    return 0;
}

/* ---- queries */

struct params {
    struct ask_param list[PARAMS_MAX];
    size_t n;
};

static int on_param(void *context, const char *key, const char *value)
{
    struct params *p = context;
    if (p->n == PARAMS_MAX)
        return -E2BIG;
    p->list[p->n++] = (struct ask_param){key, value};
    return 0;
}

static bool is_kept(void *context, const char *tenant, const char *upload)
{
    _cleanup_close_ int fd = kept_get(context, tenant, upload);
    return fd >= 0;
}

static int answer_question(struct collector *c, const struct tenant *t,
                           const struct intake_request *q, const char *verb,
                           struct intake_reply *reply)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct params p = {.n = 0};
    if (intake_each_argument(q, on_param, &p) < 0)
        return intake_reply_line(reply, 400, "more than %d parameters", PARAMS_MAX);
    reply->body = BUF(64 << 20);
    pthread_mutex_lock(&c->asking);
    const struct ask_kept kept = {is_kept, &c->kept};
    int r = ask_answer(c->store, verb, c->open ? NULL : t->name, p.list, p.n, &kept, &reply->body,
                       &why);
    pthread_mutex_unlock(&c->asking);
    const char *text = why.len ? buf_str(&why) : strerror(-r);
    if (r < 0)
        return intake_reply_line(reply, r == -ENOENT ? 404 : r == -EINVAL ? 400 : 500, "%s", text);
    reply->type = "application/json";
    buf_u8(&reply->body, '\n');
    return 200;
}

/* ---- figures for Prometheus */

/*
 * The figures of the VMs come from the store. If it cannot be read, the collector still reports its
 * own figures.
 */
static void put_vm_metrics(struct collector *c, const struct tenant *t, struct buf *to)
{
    _cleanup_(buf_release) struct buf out = BUF(16 << 20), why = BUF(4096);
    pthread_mutex_lock(&c->asking);
    int r = fleet_metrics(c->store, c->open ? NULL : t->name,
                          (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND), &out, &why);
    pthread_mutex_unlock(&c->asking);
    bool read = r == 0 && !buf_error(&out);
    if (read)
        buf_bytes(to, out.data, out.len);
    buf_printf(to,
               "# HELP jvmscope_vm_read Whether the figures of the VMs could be read.\n"
               "# TYPE jvmscope_vm_read gauge\njvmscope_vm_read %d\n",
               read);
}

static int answer_metrics(struct collector *c, const struct tenant *t, struct intake_reply *reply)
{
    const struct {
        const char *name, *help;
        unsigned long long value;
    } rows[] = {
        {"uploads", "Uploads that were accepted", atomic_load(&c->counts.uploads)},
        {"uploads_repeated", "Uploads that were sent again", atomic_load(&c->counts.repeated)},
        {"uploads_damaged", "Uploads that are not profiles", atomic_load(&c->counts.damaged)},
        {"uploads_too_large", "Uploads beyond a limit", atomic_load(&c->counts.too_large)},
        {"uploads_limited", "Uploads that came too fast", atomic_load(&c->counts.limited)},
        {"uploads_failed", "Uploads that could not be stored", atomic_load(&c->counts.failed)},
        {"uploads_shifted", "Uploads whose clock was wrong", atomic_load(&c->counts.shifted)},
        {"samples", "Samples that were accepted", atomic_load(&c->counts.samples)},
        {"recordings_not_kept", "Recordings with slow requests that could not be kept",
         atomic_load(&c->counts.not_kept)},
    };

    reply->body = BUF(17 << 20);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(&reply->body,
                   "# HELP jvmscope_%s_total %s.\n# TYPE jvmscope_%s_total counter\n"
                   "jvmscope_%s_total %llu\n",
                   rows[i].name, rows[i].help, rows[i].name, rows[i].name, rows[i].value);
    put_vm_metrics(c, t, &reply->body);
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    return 200;
}

/* ---- the page */

static int answer_page(struct intake_reply *reply)
{
    if (!page_of_fleet[0])
        return intake_reply_line(reply, 404,
                                 "this jvmscope was built without npm, and so without a page");
    reply->body = BUF(4 << 20);
    buf_string(&reply->body, page_of_fleet);
    reply->type = "text/html; charset=utf-8";
    reply->policy = page_policy_of_fleet;
    return 200;
}

/* ---- recordings that were kept */

static int answer_recording(struct collector *c, const struct tenant *t, const char *id,
                            struct intake_reply *reply)
{
    _cleanup_close_ int fd = kept_get(&c->kept, t->name, id);
    struct file_map map = {0};
    int r = fd < 0 ? fd : file_map_fd(&map, fd);
    if (r == -ENOENT)
        return intake_reply_line(reply, 404,
                                 c->kept.folder ? "no such recording, or it has been removed"
                                                : "this collector keeps no recordings "
                                                  "(--recordings)");
    if (r < 0)
        return intake_reply_line(reply, 500, "%s", strerror(-r));
    reply->body = BUF(map.len + 1);
    buf_bytes(&reply->body, map.data, map.len);
    file_map_release(&map);
    if (buf_error(&reply->body))
        return intake_reply_line(reply, 500, "out of memory");
    reply->type = "application/octet-stream";
    return 200;
}

int collector_answer(void *context, const struct intake_request *q, struct intake_reply *reply)
{
    static const char questions[] = "/v1/fleet/", recordings[] = "/v1/recordings/";
    struct collector *c = context;
    const struct tenant *t = q->admitted;
    bool sends = strcmp(q->method, "POST") == 0;
    _cleanup_(buf_release) struct buf why = BUF(1 << 10);
    /* Each of these may have several, of different keys. */
    if (intake_repeats(q, (const char *const[]){"label", "base", NULL}, &why))
        return intake_reply_line(reply, 400, "%s", buf_str(&why));
    if (sends && strcmp(q->path, "/v1/upload") == 0)
        return collector_upload(c, t, q, reply);
    if (sends && strcmp(q->path, "/ingest") == 0)
        return collector_ingest(c, t, q, reply);
    if (sends && strcmp(q->path, "/push.v1.PusherService/Push") == 0)
        return collector_push(c, t, q, reply);
    if (sends && strcmp(q->path, OTLP_PATH) == 0)
        return collector_otlp(c, t, q, reply);
    if (sends && strncmp(q->path, QUERIER, strlen(QUERIER)) == 0)
        return collector_query(c, t, q, q->path + strlen(QUERIER), reply);
    if (!sends && strncmp(q->path, questions, strlen(questions)) == 0)
        return answer_question(c, t, q, q->path + strlen(questions), reply);
    if (!sends && strncmp(q->path, recordings, strlen(recordings)) == 0)
        return answer_recording(c, t, q->path + strlen(recordings), reply);
    if (!sends && strcmp(q->path, "/") == 0)
        return answer_page(reply);
    if (!sends && strcmp(q->path, "/metrics") == 0)
        return answer_metrics(c, t, reply);
    return intake_reply_line(reply, 404, "no such path (doc/fleet.md lists them)");
}
