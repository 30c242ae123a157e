/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/push.h"

#include "base/file.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/convert.h"
#include "export/batch.h"
#include "export/export.h"
#include "wire/http.h"
#include "wire/otlp.h"
#include "wire/resource.h"
#include "wire/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const struct arg push_args[] = {
    {"--push", 0, ARG_TEXT, offsetof(struct push_options, url), "URL",
     "send the profile to this URL: as OTLP if its path is /v1development/profiles, to Pyroscope "
     "if it is /ingest"},
    {"--label", 0, ARG_LIST, offsetof(struct push_options, labels), "KEY=VALUE",
     "add this label to those from OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES"},
    {"--token-file", 0, ARG_TEXT, offsetof(struct push_options, token_file), "FILE",
     "read the token for --push from this file (default: the variable JVMSCOPE_TOKEN)"},
    {0},
};

const struct arg_set push_set = {"Where it is sent", push_args};

enum { RETRIES = 5, TOKEN_MAX = 1 << 14, HEADERS_MAX = 32 };

/* ---- the protocol of a URL ---- */

enum speech { OTLP, PYROSCOPE_JFR_UPLOAD, PYROSCOPE_PPROF_UPLOAD };

/* URL schemes that name the protocol where the path does not, and the path that is then added. */
static const struct {
    const char *scheme, *real, *path;
} schemes[] = {
    {"otlp+http://", "http://", OTLP_PATH},
    {"otlp+https://", "https://", OTLP_PATH},
    {"pyroscope+http://", "http://", "/ingest"},
    {"pyroscope+https://", "https://", "/ingest"},
    {"http://", "http://", ""},
    {"https://", "https://", ""},
};

/*
 * Determines the protocol of a URL, and writes the URL for libcurl. Returns false with the reason
 * in why.
 */
static bool understand(const char *url, enum speech *ret, struct buf *real, struct buf *why)
{
    size_t k = 0;
    while (k < ARRAY_SIZE(schemes) && strncmp(url, schemes[k].scheme, strlen(schemes[k].scheme)))
        k++;
    if (k == ARRAY_SIZE(schemes)) {
        buf_string(why, "not a URL of http or https");
        return false;
    }
    const char *host = url + strlen(schemes[k].scheme);
    size_t host_len = strcspn(host, "/?#");
    const char *path = host + host_len;
    size_t path_len = strcspn(path, "?#");
    if (!host_len || memchr(host, '@', host_len)) {
        buf_string(why, host_len ? "names and passwords do not belong on a command line; "
                                   "use JVMSCOPE_TOKEN or --token-file"
                                 : "names no host");
        return false;
    }
    bool bare = path_len == 0 || (path_len == 1 && *path == '/');
    buf_printf(real, "%s%.*s%s%s", schemes[k].real, (int)host_len, host,
               bare && *schemes[k].path ? schemes[k].path : "",
               bare && *schemes[k].path ? path + path_len : path);
    struct str at = {path, path_len};
    if (bare)
        at = (struct str){schemes[k].path, strlen(schemes[k].path)};
    if (str_ends_in(at, OTLP_PATH)) {
        *ret = OTLP;
    } else if (str_ends_in(at, "/ingest")) {
        bool pprof = strstr(path + path_len, "format=pprof") != NULL;
        *ret = pprof ? PYROSCOPE_PPROF_UPLOAD : PYROSCOPE_JFR_UPLOAD;
    } else {
        buf_string(why,
                   "its path names no known protocol: " OTLP_PATH " is OTLP, /ingest is Pyroscope");
        return false;
    }
    return true;
}

/* ---- headers ---- */

struct headers {
    struct buf text; /* all of them, each terminated */
    const char *list[HEADERS_MAX + 1];
    size_t at[HEADERS_MAX], n;
};

static void headers_release(struct headers *h)
{
    buf_release(&h->text);
}

static void begin_header(struct headers *h)
{
    h->at[h->n++] = h->text.len;
}

/* A token on the command line could be read by everybody on the machine. */
static int read_token(const char *path, struct buf *ret, struct buf *why)
{
    const char *set = getenv("JVMSCOPE_TOKEN");
    if (!path) {
        buf_string(ret, set ? set : "");
        return buf_error(ret);
    }
    _cleanup_free_ uint8_t *text = NULL;
    size_t len = 0;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : file_read_all(fd, TOKEN_MAX, &text, &len);
    if (r < 0) {
        buf_printf(why, "--token-file %s: %s", path, strerror(-r));
        return r;
    }
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' '))
        len--;
    buf_bytes(ret, text, len);
    return buf_error(ret);
}

/*
 * Adds headers from the environment, "key=value,key=value", which exporters of OTLP use, for
 * instance to name a tenant.
 */
static void add_environment(struct headers *h)
{
    const char *list = getenv("OTEL_EXPORTER_OTLP_HEADERS");
    for (size_t n; list && *list && h->n < HEADERS_MAX - 1; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        size_t key = strcspn(list, "=,");
        if (key == 0 || key >= n)
            continue;
        begin_header(h);
        buf_printf(&h->text, "%.*s: %.*s", (int)key, list, (int)(n - key - 1), list + key + 1);
        buf_u8(&h->text, 0);
    }
}

static int make_headers(struct headers *h, const struct push_options *o, struct buf *why)
{
    _cleanup_(buf_release) struct buf token = BUF(TOKEN_MAX);
    h->text = (struct buf)BUF(1 << 16);
    int r = read_token(o->token_file, &token, why);
    if (r < 0)
        return r;
    if (memchr(buf_str(&token), '\n', token.len) || strlen(buf_str(&token)) != token.len) {
        buf_string(why, "the token is not one line of text");
        return -EINVAL;
    }
    add_environment(h);
    if (token.len) {
        begin_header(h);
        buf_printf(&h->text, "Authorization: Bearer %s", buf_str(&token));
        buf_u8(&h->text, 0);
    }
    for (size_t i = 0; i < h->n; i++)
        h->list[i] = buf_str(&h->text) + h->at[i];
    h->list[h->n] = NULL;
    return buf_error(&h->text);
}

bool push_check(const char *command, const struct push_options *o)
{
    _cleanup_(buf_release) struct buf why = BUF(4096), url = BUF(1 << 16);
    _cleanup_(wire_batch_release) struct wire_batch b = {0};
    _cleanup_(headers_release) struct headers h = {0};
    enum speech speech;
    if (!o->url && (o->token_file || o->labels)) {
        complain(command, o->token_file ? "--token-file" : "--label",
                 "nothing is sent without --push");
        return false;
    }
    if (!o->url)
        return true;
    if (!understand(o->url, &speech, &url, &why)) {
        complain(command, "--push", buf_str(&why));
        return false;
    }
    bool can = http_available(&why) == 0 && make_headers(&h, o, &why) == 0 &&
               wire_resource(&b, NULL, o->labels, &why) >= 0;
    if (!can)
        complain(command, "cannot push", why.len ? buf_str(&why) : "out of memory");
    return can;
}

bool push_check_capture(const char *command, const struct push_options *o,
                        const struct capture_options *c, const char *output)
{
    const char *why = !o->url ? NULL
                      : capture_always(c)
                          ? "a recording of --always has no end; send what `dump` takes out of it "
                            "with `convert --push`"
                      : !file_name_ends_in(output, ".jfr")
                          ? "what is sent is the recording, so -o must be a .jfr"
                          : NULL;
    if (why)
        complain(command, "--push", why);
    return !why && push_check(command, o);
}

/* ---- sending ---- */

struct pushing {
    const struct push_options *options;
    const struct selection *selection;
    const char *path, *shown, *url;
    const struct headers *headers;
    size_t requests, bytes;
};

/*
 * Appends the first line of a server's answer, without characters that a terminal would interpret.
 */
static void put_answer(struct buf *why, const struct buf *body)
{
    size_t n = 0;
    while (n < body->len && n < 200 && body->data[n] >= ' ' && body->data[n] < 0x7f)
        n++;
    if (n)
        buf_printf(why, ": %.*s", (int)n, (const char *)body->data);
}

static int send_one(struct pushing *p, const char *url, const char *type, const struct buf *body,
                    struct buf *why)
{
    struct http_request request = {.url = url,
                                   .headers = p->headers->list,
                                   .type = type,
                                   .body = buf_str(body),
                                   .len = body->len,
                                   .retries = RETRIES};
    struct http_answer answer;
    int r = http_send(&request, &answer, why);
    if (r == 0 && (answer.status < 200 || answer.status >= 300)) {
        buf_printf(why, "HTTP %d %s", answer.status, http_reason(answer.status));
        put_answer(why, &answer.body);
        r = -EIO;
    }
    buf_release(&answer.body);
    p->requests++;
    p->bytes += body->len;
    return r;
}

static int add_recording(struct pushing *p, struct wire_batch *b, const struct profile *profile,
                         enum profile_metric metric, struct buf *why)
{
    int64_t resource = wire_resource(b, NULL, p->options->labels, why);
    if (resource < 0)
        return (int)resource;
    struct batch_source source = {.path = p->path,
                                  .profile = profile,
                                  .filter = p->selection->filter,
                                  .only_metric = p->selection->metric != NULL,
                                  .metric = metric,
                                  .resource = (uint32_t)resource};
    return batch_add(b, &source, why);
}

static int push_otlp(struct pushing *p, const struct profile *profile, enum profile_metric metric,
                     struct buf *why)
{
    _cleanup_(wire_batch_release) struct wire_batch b = {.limits = wire_limits_wide};
    _cleanup_(buf_release) struct buf message = BUF(SIZE_MAX / 2);
    int r = add_recording(p, &b, profile, metric, why);
    if (r == 0)
        r = otlp_encode(&b, &message);
    return r < 0 ? r : send_one(p, p->url, OTLP_TYPE, &message, why);
}

/* Writes, as %XX, the characters that the query of a URL must not contain. */
static void put_escaped(struct buf *b, struct str s)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        buf_printf(b, c && strchr(plain, c) ? "%c" : "%%%02X", (uint8_t)c);
    }
}

/* Pyroscope's labels take letters, digits, '_' and '.'; a value ends at a comma or a brace. */
static void put_label(struct buf *b, struct str key, struct str value, bool first)
{
    struct buf text = BUF(1 << 16);
    buf_printf(&text, "%s%.*s=%.*s", first ? "" : ",", (int)key.len, key.data, (int)value.len,
               value.data);
    for (size_t i = !first; i < text.len; i++)
        if (strchr(",{}\"", text.data[i]))
            text.data[i] = '_';
    put_escaped(b, (struct str){buf_str(&text), text.len});
    buf_release(&text);
}

/* url?name=service{key=value}&from=...&until=...&format=jfr */
static int put_ingest_url(struct pushing *p, const struct profile *profile, const char *format,
                          struct buf *to, struct buf *why)
{
    _cleanup_(wire_batch_release) struct wire_batch b = {0};
    int64_t set = wire_resource(&b, NULL, p->options->labels, why);
    if (set < 0)
        return (int)set;
    struct wire_label_set labels = b.sets.data[set];
    bool first = true;
    buf_printf(to, "%s%cname=", p->url, strchr(p->url, '?') ? '&' : '?');
    put_escaped(to, wire_label(&b, (uint32_t)set, WIRE_SERVICE));
    buf_string(to, "%7B");
    for (uint32_t i = 0; i < labels.len; i++) {
        const struct wire_label *l = &b.labels.data[labels.first + i];
        struct str key = wire_text(&b, l->key);
        if (str_is(key, WIRE_SERVICE))
            continue;
        put_label(to, key, wire_text(&b, l->value), first);
        first = false;
    }
    uint64_t from_s = profile->start_epoch_ns / 1000000000,
             until_s = (profile->start_epoch_ns + profile->duration_ns) / 1000000000;
    buf_printf(to, "%%7D&from=%llu&until=%llu&spyName=jvmscope", (unsigned long long)from_s,
               (unsigned long long)MAX(until_s, from_s + 1));
    if (!strstr(p->url, "format="))
        buf_printf(to, "&format=%s", format);
    if (profile->series[PROFILE_CPU].interval_ns)
        buf_printf(to, "&sampleRate=%llu",
                   (unsigned long long)(1000000000 / profile->series[PROFILE_CPU].interval_ns));
    return buf_error(to);
}

/* Writes with one of the formats into memory. */
static int write_format(const struct export_source *source, const struct export_format *format,
                        struct buf *to, struct buf *why)
{
    char *data = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&data, &len);
    if (!out)
        return -ENOMEM;
    int r = format->write(source, out, why);
    r = fclose(out) != 0 && r == 0 ? -ENOMEM : r;
    if (r == 0)
        buf_bytes(to, data, len);
    free(data);
    return r < 0 ? r : buf_error(to);
}

static int push_parts(struct pushing *p, const struct profile *profile, const char *format,
                      const struct http_part *parts, size_t n, struct buf *why)
{
    _cleanup_(buf_release) struct buf url = BUF(1 << 16), type = BUF(256), body = BUF(SIZE_MAX / 2);
    int r = put_ingest_url(p, profile, format, &url, why);
    if (r == 0)
        r = http_multipart(parts, n, &type, &body);
    return r < 0 ? r : send_one(p, buf_str(&url), buf_str(&type), &body, why);
}

static int push_jfr(struct pushing *p, const struct profile *profile, struct buf *why)
{
    _cleanup_(buf_release) struct buf jfr = BUF(SIZE_MAX / 2), packed = BUF(SIZE_MAX / 2);
    struct export_source source = {
        .path = p->path, .profile = profile, .filter = p->selection->filter};
    int r = write_format(&source, &export_format_jfr, &jfr, why);
    if (r == 0)
        r = wire_pack_gzip(jfr.data, jfr.len, &packed);
    /* No event has a context, so the snapshot of their labels, a protobuf message, is empty. */
    struct http_part parts[] = {{"jfr", "jfr", "application/octet-stream", packed.data, packed.len},
                                {"labels", "labels", "application/octet-stream", "", 0}};
    return r < 0 ? r : push_parts(p, profile, "jfr", parts, ARRAY_SIZE(parts), why);
}

/* Our pprof profiles hold one metric each. */
static int push_pprof(struct pushing *p, const struct profile *profile, enum profile_metric metric,
                      struct buf *why)
{
    int r = 0;
    for (int m = 0; r == 0 && m < PROFILE_METRICS; m++) {
        if (!profile->series[m].samples.len ||
            (p->selection->metric && metric != (enum profile_metric)m))
            continue;
        _cleanup_(buf_release) struct buf pprof = BUF(SIZE_MAX / 2);
        struct export_source source = {.path = p->path,
                                       .profile = profile,
                                       .metric = (enum profile_metric)m,
                                       .filter = p->selection->filter};
        r = write_format(&source, &export_format_pprof, &pprof, why);
        struct http_part part = {"profile", "profile.pprof", "application/octet-stream", pprof.data,
                                 pprof.len};
        if (r == 0)
            r = push_parts(p, profile, "pprof", &part, 1, why);
    }
    return r;
}

int push_file(const struct push_options *o, const struct selection *selection, const char *path,
              const char *shown)
{
    _cleanup_(profile_freep) struct profile *profile = NULL;
    _cleanup_(buf_release) struct buf url = BUF(1 << 16), why = BUF(1 << 14);
    _cleanup_(headers_release) struct headers headers = {0};
    enum profile_metric metric = PROFILE_CPU;
    enum speech speech = OTLP;
    bool understood = understand(o->url, &speech, &url, &why);
    if (understood && speech == PYROSCOPE_JFR_UPLOAD &&
        !convert_follows(&export_format_jfr, selection, buf_str(&url)))
        return 2;
    int status = reading_open(&profile, path, LOAD_SAMPLES, selection, NULL, NULL);
    if (status == 0 && !reading_check(selection, profile, path, false))
        status = 1;
    if (status == 0)
        status = reading_metric(selection, profile, path, &metric);
    if (status == 0)
        status = reading_check_metric(selection, profile, path, metric);
    if (status)
        return status;
    if (!selection->metric && speech != PYROSCOPE_JFR_UPLOAD)
        reading_note_left_out(&selection->filter, profile, path);
    struct pushing p = {
        .options = o, .selection = selection, .path = path, .shown = shown, .headers = &headers};
    int r = understood ? make_headers(&headers, o, &why) : -EINVAL;
    p.url = buf_str(&url);
    if (r == 0)
        r = speech == OTLP                   ? push_otlp(&p, profile, metric, &why)
            : speech == PYROSCOPE_JFR_UPLOAD ? push_jfr(&p, profile, &why)
                                             : push_pprof(&p, profile, metric, &why);
    if (r < 0) {
        _cleanup_(buf_release) struct buf what = BUF(1 << 14);
        buf_printf(&what, "cannot push %s, which is kept", shown);
        return complain(p.url, buf_str(&what), why.len ? buf_str(&why) : strerror(-r));
    }
    char size[24];
    fprintf(stderr, "jvmscope: pushed %s to %s (%s)\n", shown, p.url, format_size(size, p.bytes));
    return 0;
}
