/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
};

const char *http_reason(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

int http_multipart(const struct http_part *parts, size_t n, struct buf *type, struct buf *body)
{
    uint64_t random[2];
    char boundary[64];
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return -errno;
    snprintf(boundary, sizeof(boundary), "jvmscope-%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    buf_printf(type, "multipart/form-data; boundary=%s", boundary);
    for (size_t i = 0; i < n; i++) {
        const struct http_part *p = &parts[i];
        buf_printf(body, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", boundary, p->name);
        if (p->file_name)
            buf_printf(body, "; filename=\"%s\"", p->file_name);
        if (p->type)
            buf_printf(body, "\r\nContent-Type: %s", p->type);
        buf_string(body, "\r\n\r\n");
        buf_bytes(body, p->data, p->len);
        buf_string(body, "\r\n");
    }
    buf_printf(body, "--%s--\r\n", boundary);
    return buf_error(body) ? buf_error(body) : buf_error(type);
}

#if defined(COMMAND_IS_STATIC)

int http_available(struct buf *why)
{
    buf_string(why, "this command is linked statically and has no HTTP client; one that is built "
                    "without -Dstatic=true has");
    return -ENOTSUP;
}

int http_send(const struct http_request *r, struct http_answer *ret, struct buf *why)
{
    *ret = (struct http_answer){0};
    return http_available(why);
}

#else

#include "base/clock.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

enum { CONNECT_MS = 10000, TOTAL_MS = 60000, ANSWER_MAX = 1 << 16, PAUSE_MAX_S = 30 };

/* The functions of libcurl that are used. */
static struct {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*easy_perform)(CURL *curl);
    CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
    void (*easy_cleanup)(CURL *curl);
    const char *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
} curl;

static const struct {
    const char *name;
    void **place;
} functions[] = {
    {"curl_global_init", (void **)&curl.global_init},
    {"curl_easy_init", (void **)&curl.easy_init},
    {"curl_easy_setopt", (void **)&curl.easy_setopt},
    {"curl_easy_perform", (void **)&curl.easy_perform},
    {"curl_easy_getinfo", (void **)&curl.easy_getinfo},
    {"curl_easy_cleanup", (void **)&curl.easy_cleanup},
    {"curl_easy_strerror", (void **)&curl.easy_strerror},
    {"curl_slist_append", (void **)&curl.slist_append},
    {"curl_slist_free_all", (void **)&curl.slist_free_all},
};

static bool available;

/* Debian's two libraries, and the name that other systems use. */
static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};

static void load(void)
{
    void *library = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(libraries) && !library; i++)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        *functions[i].place = dlsym(library, functions[i].name);
        if (!*functions[i].place)
            return;
    }
    available = curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

int http_available(struct buf *why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (available)
        return 0;
    buf_string(why, "libcurl.so.4 is not installed (Debian: libcurl4)");
    return -ENOTSUP;
}

static size_t take_body(char *data, size_t size, size_t n, void *context)
{
    struct buf *body = context;
    buf_bytes(body, data, MIN(size * n, body->limit - body->len));
    return size * n;
}

/* Makes one attempt. Returns 0 or a negative errno with the reason in why. */
static int perform(CURL *c, struct http_answer *ret, struct buf *why)
{
    char error[CURL_ERROR_SIZE] = "";
    long status = 0;
    curl_off_t after_s = 0;
    buf_clear(&ret->body);
    buf_clear(why);
    curl.easy_setopt(c, CURLOPT_ERRORBUFFER, error);
    CURLcode code = curl.easy_perform(c);
    if (code != CURLE_OK) {
        buf_string(why, error[0] ? error : curl.easy_strerror(code));
        return code == CURLE_OPERATION_TIMEDOUT                                    ? -ETIMEDOUT
               : code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ? -EINVAL
               : code == CURLE_OUT_OF_MEMORY                                       ? -ENOMEM
                                                                                   : -EIO;
    }
    curl.easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    curl.easy_getinfo(c, CURLINFO_RETRY_AFTER, &after_s);
    ret->status = (int)status;
    ret->retry_after_ms = after_s > 0 ? (uint64_t)after_s * 1000 : 0;
    return 0;
}

static bool may_be_tried_again(int r, int status)
{
    return r == -EIO || r == -ETIMEDOUT ||
           (r == 0 && (status == 429 || status == 502 || status == 503 || status == 504));
}

static void pause_before(unsigned try, uint64_t requested_ms)
{
    uint64_t ms = requested_ms ? requested_ms : UINT64_C(1000) << MIN(try, 5U);
    ms = MIN(ms, PAUSE_MAX_S * UINT64_C(1000));
    struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000 * NS_PER_MS)};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        continue;
}

/* Adds a header. Returns false when out of memory. */
static bool add_header(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl.slist_append(*list, text);
    *list = longer ? longer : *list;
    return longer != NULL;
}

static bool add_headers(struct curl_slist **list, const struct http_request *r)
{
    char type[256];
    snprintf(type, sizeof(type), "Content-Type: %s", r->type ? r->type : "");
    /* Otherwise curl first asks whether it may send a large body, and few servers answer that. */
    bool added = add_header(list, "Expect:") && (!r->type || add_header(list, type));
    for (size_t i = 0; added && r->headers && r->headers[i]; i++)
        added = add_header(list, r->headers[i]);
    return added;
}

static void prepare(CURL *c, const struct http_request *r, struct http_answer *ret,
                    struct curl_slist *headers)
{
    curl.easy_setopt(c, CURLOPT_URL, r->url);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl.easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(c, CURLOPT_USERAGENT, "jvmscope/" JVMSCOPE_VERSION);
    curl.easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl.easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(r->connect_ms ? r->connect_ms : CONNECT_MS));
    curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(r->total_ms ? r->total_ms : TOTAL_MS));
    curl.easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
    curl.easy_setopt(c, CURLOPT_WRITEDATA, &ret->body);
    if (r->body) {
        curl.easy_setopt(c, CURLOPT_POST, 1L);
        curl.easy_setopt(c, CURLOPT_POSTFIELDS, r->body);
        curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->len);
    }
}

int http_send(const struct http_request *r, struct http_answer *ret, struct buf *why)
{
    *ret = (struct http_answer){.body = BUF(r->answer_max ? r->answer_max : (size_t)ANSWER_MAX)};
    int e = http_available(why);
    if (e < 0)
        return e;
    struct curl_slist *headers = NULL;
    CURL *c = curl.easy_init();
    e = c && add_headers(&headers, r) ? 0 : -ENOMEM;
    if (e == 0) {
        prepare(c, r, ret, headers);
        e = perform(c, ret, why);
    }
    for (unsigned try = 0; try < r->retries && may_be_tried_again(e, ret->status); try++) {
        pause_before(try, e == 0 ? ret->retry_after_ms : 0);
        e = perform(c, ret, why);
    }
    curl.slist_free_all(headers);
    if (c)
        curl.easy_cleanup(c);
    return e;
}

#endif
