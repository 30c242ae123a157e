/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet/send.h"

#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "wire/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 256 << 20, PATH_LEN = 600, ANSWER_MAX = 1 << 30 };

const char *send_first_line(struct buf *text)
{
    const uint8_t *end = text->data ? memchr(text->data, '\n', text->len) : NULL;
    if (end)
        text->len = (size_t)(end - text->data);
    return buf_str(text);
}

bool sender_is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

int sender_open(struct sender *s, const char *url, const char *token)
{
    _cleanup_(buf_release) struct buf why = BUF(4096), header = BUF(1 << 16);
    size_t len = strlen(url);
    *s = (struct sender){.url = NULL};
    if (http_available(&why) < 0)
        return complain(url, "cannot be reached", buf_str(&why));
    while (len && url[len - 1] == '/')
        len--;
    s->url = strndup(url, len);
    if (token && token[0] == '@') {
        _cleanup_free_ uint8_t *text = NULL;
        size_t n;
        int r = file_read_path(token + 1, 4096, &text, &n);
        if (r < 0)
            return complain_errno(token + 1, "cannot read", r);
        text[strcspn((char *)text, "\r\n")] = 0;
        buf_printf(&header, "Authorization: Bearer %s", (char *)text);
    } else if (token) {
        buf_printf(&header, "Authorization: Bearer %s", token);
    }
    s->authorization = token ? strdup(buf_str(&header)) : NULL;
    return s->url && (s->authorization || !token) ? 0
                                                  : complain_errno(url, "cannot start", -ENOMEM);
}

void sender_release(struct sender *s)
{
    free(s->url);
    free(s->authorization);
}

/* What the message adds when the server answers 401. */
static const char *missing_token(const struct sender *s)
{
    return s->authorization ? "this token is not known there (--token TOKEN, or @FILE)"
                            : "a token is needed (--token TOKEN, or @FILE)";
}

/*
 * Returns 0; -EAGAIN when it should be tried again later, or -EACCES when that is because the token
 * is missing or wrong; or -EBADMSG when the server will never accept it.
 */
static int send_one(struct sender *s, const struct spool *spool, uint64_t number, struct buf *why)
{
    _cleanup_(buf_release) struct buf url = BUF(1 << 20);
    _cleanup_free_ char *query = NULL;
    _cleanup_free_ uint8_t *body = NULL;
    char path[PATH_LEN];
    size_t len;
    struct http_answer answer = {.body = BUF(0)};
    const char *const headers[] = {s->authorization, NULL};
    spool_body(spool, number, path);
    int r = spool_query(spool, number, &query);
    if (r == 0)
        r = file_read_path(path, BODY_MAX, &body, &len);
    if (r < 0) {
        buf_string(why, strerror(-r));
        return -EBADMSG;
    }
    buf_printf(&url, "%s/v1/upload?%s&sent=%" PRIu64, s->url, query,
               clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    struct http_request request = {.url = buf_str(&url),
                                   .headers = headers,
                                   .type = "application/octet-stream",
                                   .body = body,
                                   .len = len};
    r = http_send(&request, &answer, why);
    if (r == 0 && answer.status != 200)
        buf_printf(why, "%d %.200s", answer.status, buf_str(&answer.body));
    s->not_before_ns = now_ns() + answer.retry_after_ms * NS_PER_MS;
    buf_release(&answer.body);
    if (r < 0)
        return -EAGAIN;
    /* 401 and 403 may go away when the collector's operator corrects its tokens. */
    bool refused = answer.status == 400 || answer.status == 413 || answer.status == 404;
    return answer.status == 200 ? 0 : refused ? -EBADMSG : answer.status == 401 ? -EACCES : -EAGAIN;
}

void sender_send(struct sender *s, struct spool *spool)
{
    struct spool_list list;
    if (now_ns() < s->not_before_ns || spool_list(spool, &list) < 0)
        return;
    for (size_t i = 0; i < list.numbers.len; i++) {
        _cleanup_(buf_release) struct buf why = BUF(4096);
        int r = send_one(s, spool, list.numbers.data[i], &why);
        const char *text = send_first_line(&why);
        if (r == -EAGAIN || r == -EACCES) {
            if (!s->complained && r == -EACCES)
                complain(s->url, "profiles are kept for now", missing_token(s));
            else if (!s->complained)
                complain(s->url, "cannot be reached; profiles are kept until it can be", text);
            s->complained = true;
            break;
        }
        if (r < 0)
            complain(s->url, "refuses a profile, which is discarded", text);
        else if (s->complained)
            complain(s->url, "accepts profiles again", NULL);
        s->complained = false;
        spool_remove(spool, list.numbers.data[i]);
    }
    vec_release(&list.numbers);
}

int sender_get(const struct sender *s, const char *path, struct buf *answer)
{
    _cleanup_(buf_release) struct buf url = BUF(1 << 20), why = BUF(4096);
    struct http_answer got = {.body = BUF(0)};
    const char *const headers[] = {s->authorization, NULL};
    buf_printf(&url, "%s%s", s->url, path);
    struct http_request request = {
        .url = buf_str(&url), .headers = headers, .retries = 2, .answer_max = ANSWER_MAX};
    int r = http_send(&request, &got, &why), status = 0;
    if (r < 0) {
        status = complain(s->url, "cannot be asked", why.len ? buf_str(&why) : strerror(-r));
    } else if (got.status != 200) {
        const char *text = send_first_line(&got.body);
        text = *text ? text : http_reason(got.status);
        status = got.status == 401 ? complain(s->url, missing_token(s), NULL)
                                   : complain(s->url, "does not answer", text);
    } else {
        buf_bytes(answer, got.body.data, got.body.len);
    }
    buf_release(&got.body);
    return status;
}
