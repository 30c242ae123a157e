/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/multipart.h"

#include <stdio.h>
#include <strings.h>

enum { PARTS_MAX = 64 };

/*
 * Stores the value of a parameter such as name="x" of a header, without its quotes. Returns false
 * when the header does not have it.
 */
static bool parameter(struct str header, const char *key, struct str *ret)
{
    size_t n = strlen(key);
    for (size_t i = 0; i + n + 1 <= header.len; i++) {
        const char *at = header.data + i, *end = header.data + header.len;
        bool begins = i > 0 && (at[-1] == ';' || at[-1] == ' ' || at[-1] == '\t');
        if (!begins || strncasecmp(at, key, n) != 0 || at[n] != '=')
            continue;
        at += n + 1;
        bool quoted = at < end && *at == '"';
        at += quoted;
        const char *stop = at;
        while (stop < end && (quoted ? *stop != '"' : *stop != ';' && *stop != ' '))
            stop++;
        *ret = (struct str){at, (size_t)(stop - at)};
        return true;
    }
    return false;
}

bool multipart_begin(struct multipart *m, const char *content_type, const void *body, size_t len)
{
    static const char type[] = "multipart/form-data";
    struct str boundary;
    *m = (struct multipart){.rest = cursor_of(body, len)};
    if (!content_type || strncasecmp(content_type, type, strlen(type)) != 0 ||
        !parameter((struct str){content_type, strlen(content_type)}, "boundary", &boundary) ||
        !boundary.len || boundary.len > 70)
        return false;
    m->boundary_len = (size_t)snprintf(m->boundary, sizeof(m->boundary), "\r\n--%.*s",
                                       (int)boundary.len, boundary.data);
    /* The first boundary need not have a line end before it, and text before it is ignored. */
    const char *first = m->boundary + 2;
    const uint8_t *at = memmem(body, len, first, m->boundary_len - 2);
    m->failed = !at;
    if (at)
        cursor_skip(&m->rest, (size_t)(at - (const uint8_t *)body) + m->boundary_len - 2);
    return true;
}

/*
 * Stores the next line of the headers, an empty one at their end. Returns false at the end of the
 * body.
 */
static bool next_line(struct multipart *m, struct str *ret)
{
    size_t left = cursor_left(&m->rest);
    const uint8_t *start = m->rest.at;
    const uint8_t *end = left ? memmem(start, left, "\r\n", 2) : NULL;
    if (!end)
        return false;
    *ret = (struct str){(const char *)start, (size_t)(end - start)};
    cursor_skip(&m->rest, ret->len + 2);
    return true;
}

static bool header_is(struct str line, const char *name, struct str *ret)
{
    size_t n = strlen(name);
    if (line.len <= n || strncasecmp(line.data, name, n) != 0 || line.data[n] != ':')
        return false;
    *ret = (struct str){line.data + n + 1, line.len - n - 1};
    while (ret->len && *ret->data == ' ') {
        ret->data++;
        ret->len--;
    }
    return true;
}

static bool read_headers(struct multipart *m, struct multipart_part *ret)
{
    struct str line, value;
    while (next_line(m, &line)) {
        if (!line.len)
            return true;
        if (header_is(line, "Content-Disposition", &value)) {
            (void)parameter(value, "name", &ret->name);
            (void)parameter(value, "filename", &ret->file_name);
        } else if (header_is(line, "Content-Type", &value)) {
            ret->type = value;
        }
    }
    return false;
}

bool multipart_next(struct multipart *m, struct multipart_part *ret)
{
    static const struct str none = {"", 0};
    *ret = (struct multipart_part){.name = none, .file_name = none, .type = none};
    const uint8_t *after = m->failed ? NULL : cursor_take(&m->rest, 2);
    if (!after || memcmp(after, "--", 2) == 0) {
        m->failed |= !after;
        return false;
    }
    if (memcmp(after, "\r\n", 2) != 0 || ++m->parts > PARTS_MAX || !read_headers(m, ret)) {
        m->failed = true;
        return false;
    }
    /* An empty part's boundary begins with the line end of its headers. */
    m->rest.at -= 2;
    const uint8_t *end = memmem(m->rest.at, cursor_left(&m->rest), m->boundary, m->boundary_len);
    if (!end) {
        m->failed = true;
        return false;
    }
    ret->data = m->rest.at + 2;
    ret->len = end < ret->data ? 0 : (size_t)(end - ret->data);
    cursor_skip(&m->rest, (size_t)(end - m->rest.at) + m->boundary_len);
    return true;
}
