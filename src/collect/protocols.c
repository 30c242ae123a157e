/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads in the protocols of Pyroscope's and OpenTelemetry's agents. */
#include "base/clock.h"
#include "collect/collector.h"
#include "wire/otlp.h"
#include "wire/pyroscope.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *get_argument(const void *request, const char *key)
{
    return intake_argument(request, key);
}

static struct upload_origin origin_of(const struct tenant *t, const struct intake_request *q,
                                      enum fleet_format format)
{
    return (struct upload_origin){
        .origin = {.tenant = t->name, .service = "", .version = "", .host = "", .instance = ""},
        .format = format,
        .content_type = intake_header(q, "Content-Type")};
}

/*
 * Names the upload by its bytes and the given texts. For a form, collector_take adds its contents,
 * because the bytes of a form differ each time it is sent.
 */
static int take(struct collector *c, struct upload_origin *o, const struct intake_request *q,
                const char *const *texts, size_t n, struct intake_reply *reply)
{
    struct fleet_hash content;
    char path[64];
    if (q->body < 0)
        return intake_reply_line(reply, 400, "no body");
    bool form = fleet_reading_is_form(o->format, o->content_type);
    if (collector_hash(form ? -1 : q->body, texts, n, &content) < 0)
        return intake_reply_line(reply, 500, "cannot read the body");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", q->body);
    return collector_take(c, o, path, &content, reply);
}

static int set_labels(struct upload_origin *o, const struct wire_batch *w, uint32_t set)
{
    const struct wire_label_set *s = &w->sets.data[set];
    int r = 0;
    for (uint32_t i = 0; set && i < s->len && r == 0; i++) {
        const struct wire_label *l = &w->labels.data[s->first + i];
        r = upload_origin_set(o, wire_text(w, l->key).data, wire_text(w, l->value).data);
    }
    return r;
}

int collector_ingest(struct collector *c, const struct tenant *t, const struct intake_request *q,
                     struct intake_reply *reply)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    _cleanup_(upload_origin_release) struct upload_origin o = origin_of(t, q, FLEET_INGEST);
    struct pyroscope_ingest ingest = {.from_ns = 0};
    struct wire_batch w = {.used = 0};
    const char *name = intake_argument(q, "name");
    const char *wrong = name ? upload_wrong_characters((struct str){name, strlen(name)}) : NULL;
    if (wrong)
        return intake_reply_line(reply, 400, "name: %s", wrong);
    int status = 0, r = pyroscope_ingest(&ingest, &w, get_argument, q, &why);
    if (r < 0) {
        status = intake_reply_line(reply,
                                   r == -E2BIG    ? 413
                                   : r == -ENOMEM ? 500
                                                  : 400,
                                   "%s", why.len ? buf_str(&why) : strerror(-r));
    } else {
        const char *from = intake_argument(q, "from"), *until = intake_argument(q, "until"),
                   *format = intake_argument(q, "format");
        const char *const texts[] = {"ingest",           t->name,
                                     name ? name : "",   from ? from : "",
                                     until ? until : "", format ? format : ""};
        bool form = fleet_reading_is_form(o.format, o.content_type);
        /*
         * Names of other bodies do not depend on the format, so that uploads of earlier versions
         * keep their names.
         */
        size_t n_texts = ARRAY_SIZE(texts) - !form;
        o.origin.service = buf_str(&ingest.service);
        o.from_ns = (int64_t)ingest.from_ns;
        o.interval_ns = ingest.sample_rate ? NS_PER_SECOND / ingest.sample_rate : 0;
        r = set_labels(&o, &w, ingest.labels);
        status = r < 0 ? intake_reply_line(reply, 500, "out of memory")
                       : take(c, &o, q, texts, n_texts, reply);
    }
    pyroscope_ingest_release(&ingest);
    wire_batch_release(&w);
    return status;
}

static bool is_json(const struct intake_request *q)
{
    const char *type = intake_header(q, "Content-Type");
    return type && strncasecmp(type, "application/json", strlen("application/json")) == 0;
}

/* The names that Connect has for a status. */
static const char *code_of(int status)
{
    return status == 400   ? "invalid_argument"
           : status == 413 ? "resource_exhausted"
           : status == 503 ? "unavailable"
                           : "internal";
}

int collector_push(struct collector *c, const struct tenant *t, const struct intake_request *q,
                   struct intake_reply *reply)
{
    _cleanup_(buf_release) struct buf text = BUF(4096);
    _cleanup_(upload_origin_release) struct upload_origin o =
        origin_of(t, q, is_json(q) ? FLEET_PUSH_JSON : FLEET_PUSH);
    const char *const texts[] = {"push", t->name};
    int status = take(c, &o, q, texts, ARRAY_SIZE(texts), reply);
    if (status == 200) {
        buf_clear(&reply->body);
        reply->type = is_json(q) ? "application/json" : "application/proto";
        buf_string(&reply->body, is_json(q) ? "{}" : "");
        return 200;
    }
    while (reply->body.len && reply->body.data[reply->body.len - 1] == '\n')
        reply->body.len--;
    buf_string(&text, buf_str(&reply->body));
    buf_clear(&reply->body);
    reply->type = "application/json";
    pyroscope_put_error(code_of(status), buf_str(&text), &reply->body);
    return status;
}

int collector_otlp(struct collector *c, const struct tenant *t, const struct intake_request *q,
                   struct intake_reply *reply)
{
    _cleanup_(upload_origin_release) struct upload_origin o = origin_of(t, q, FLEET_OTLP);
    const char *const texts[] = {"otlp", t->name};
    if (is_json(q))
        return intake_reply_line(reply, 415, "OTLP is accepted as " OTLP_TYPE);
    o.origin.service = "unknown_service"; /* as OpenTelemetry says when a resource has no name */
    int status = take(c, &o, q, texts, ARRAY_SIZE(texts), reply);
    if (status == 200) {
        buf_clear(&reply->body);
        reply->type = OTLP_TYPE;
        otlp_encode_answer(0, NULL, &reply->body);
    }
    return status;
}
