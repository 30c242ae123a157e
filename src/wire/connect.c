/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/connect.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

int connect_parse(const void *data, size_t len, json_object **ret)
{
    if (!len || len > INT_MAX)
        return -EPROTO;
    json_tokener *t = json_tokener_new_ex(DEPTH_MAX);
    if (!t)
        return -ENOMEM;
    json_object *o = json_tokener_parse_ex(t, data, (int)len);
    bool good = json_tokener_get_error(t) == json_tokener_success &&
                json_object_is_type(o, json_type_object);
    json_tokener_free(t);
    if (!good) {
        json_object_put(o);
        return -EPROTO;
    }
    *ret = o;
    return 0;
}

json_object *connect_member(json_object *o, const char *name, const char *other)
{
    json_object *member = NULL;
    if (!json_object_is_type(o, json_type_object))
        return NULL;
    if (!json_object_object_get_ex(o, name, &member) && other)
        json_object_object_get_ex(o, other, &member);
    return member;
}

struct str connect_text(json_object *o)
{
    if (!json_object_is_type(o, json_type_string))
        return (struct str){"", 0};
    return (struct str){json_object_get_string(o), (size_t)json_object_get_string_len(o)};
}

size_t connect_length(json_object *o)
{
    return json_object_is_type(o, json_type_array) ? json_object_array_length(o) : 0;
}

int64_t connect_integer(json_object *o)
{
    if (json_object_is_type(o, json_type_string))
        return strtoll(json_object_get_string(o), NULL, 10);
    return json_object_is_type(o, json_type_int) || json_object_is_type(o, json_type_double)
               ? json_object_get_int64(o)
               : 0;
}

static int value_of(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : -1;
}

int connect_base64(struct str text, struct buf *to)
{
    uint32_t bits = 0;
    unsigned n = 0;
    while (text.len && text.data[text.len - 1] == '=')
        text.len--;
    uint8_t *out = buf_add(to, text.len / 4 * 3 + 3);
    if (!out)
        return buf_error(to);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int v = value_of(text.data[i]);
        if (v < 0)
            return -EPROTO;
        bits = bits << 6 | (uint32_t)v;
        n += 6;
        if (n >= 8)
            out[len++] = (uint8_t)(bits >> (n -= 8));
    }
    to->len -= text.len / 4 * 3 + 3 - len;
    return 0;
}
