/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/resource.h"

#include "base/hex.h"
#include "wire/decode.h"

#include <errno.h>
#include <stdlib.h>

static struct str trimmed(const char *at, size_t len)
{
    while (len && (*at == ' ' || *at == '\t')) {
        at++;
        len--;
    }
    while (len && (at[len - 1] == ' ' || at[len - 1] == '\t'))
        len--;
    return (struct str){at, len};
}

static void put_decoded(struct buf *to, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        int high = s.data[i] == '%' && i + 2 < s.len ? hex_digit(s.data[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(s.data[i + 2]) : -1;
        buf_u8(to, (uint8_t)(low >= 0 ? high << 4 | low : s.data[i]));
        i += low >= 0 ? 2 : 0;
    }
}

static int add_pair(struct wire_batch *b, struct str pair, struct decode_labels *to)
{
    const char *equals = memchr(pair.data, '=', pair.len);
    if (!equals || equals == pair.data)
        return -EINVAL;
    struct buf key = BUF(1 << 16), value = BUF(1 << 16);
    put_decoded(&key, trimmed(pair.data, (size_t)(equals - pair.data)));
    put_decoded(&value, trimmed(equals + 1, pair.len - (size_t)(equals + 1 - pair.data)));
    int r = buf_error(&key) ? buf_error(&key) : buf_error(&value);
    if (r == 0)
        r = decode_label(b, (struct str){buf_str(&key), key.len},
                         (struct str){buf_str(&value), value.len}, to);
    buf_release(&key);
    buf_release(&value);
    return r;
}

/* Returns whether the last label has the key of another one from `first` on. */
static bool repeats_key(const struct decode_labels *labels, size_t first)
{
    for (size_t i = first; i + 1 < labels->len; i++)
        if (labels->data[i].key == labels->data[labels->len - 1].key)
            return true;
    return false;
}

/* once: a key that comes twice is refused; otherwise its last value counts. */
static int add_list(struct wire_batch *b, const char *list, const char *what, bool once,
                    struct decode_labels *to, struct buf *why)
{
    size_t first = to->len;
    int r = 0;
    for (size_t n; r == 0 && list && *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        struct str pair = trimmed(list, n);
        size_t before = to->len;
        r = pair.len ? add_pair(b, pair, to) : 0;
        if (r == 0 && once && to->len > before && repeats_key(to, first)) {
            buf_printf(why, "%s=%.*s: the key is given twice", what, (int)pair.len, pair.data);
            return -EEXIST;
        }
    }
    if (r == -EINVAL)
        buf_printf(why, "%s is not a list like key=value,key=value", what);
    return r;
}

static int add_service(struct wire_batch *b, const char *name, struct decode_labels *to)
{
    return name && *name ? decode_label(b, (struct str){WIRE_SERVICE, strlen(WIRE_SERVICE)},
                                        (struct str){name, strlen(name)}, to)
                         : 0;
}

int64_t wire_resource(struct wire_batch *b, const char *service, const char *labels,
                      struct buf *why)
{
    struct decode_labels all = {0};
    int r = add_service(b, service && *service ? service : "unknown_service:java", &all);
    if (r == 0)
        r = add_list(b, getenv("OTEL_RESOURCE_ATTRIBUTES"), "OTEL_RESOURCE_ATTRIBUTES", false, &all,
                     why);
    if (r == 0)
        r = add_service(b, getenv("OTEL_SERVICE_NAME"), &all);
    if (r == 0)
        r = add_list(b, labels, "--label", true, &all, why);
    int64_t set = r < 0 ? r : wire_labels(b, all.data, all.len);
    vec_release(&all);
    if (set == -E2BIG)
        buf_string(why, "the labels are too long, or too many");
    return set;
}
