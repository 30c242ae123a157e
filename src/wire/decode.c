/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/decode.h"

#include "base/hex.h"

#include <errno.h>

size_t decode_entries(const struct wire_batch *b)
{
    return b->limits.entries ? b->limits.entries : 1000000;
}

int decode_frames(struct wire_batch *b, size_t *count, size_t more)
{
    *count += more;
    bool many = *count > (b->limits.frames ? b->limits.frames : (size_t)32000000);
    return many ? wire_beyond(b, "too many frames in all stacks") : 0;
}

int decode_strings_add(struct decode_strings *s, struct wire_batch *b, struct cursor text)
{
    return DECODE_PUSH(b, &s->texts, ((struct str){(const char *)text.at, cursor_left(&text)}));
}

void decode_strings_release(struct decode_strings *s)
{
    vec_release(&s->texts);
    vec_release(&s->numbers);
}

struct str decode_text(const struct decode_strings *s, uint64_t number)
{
    return number < s->texts.len ? s->texts.data[number] : (struct str){"", 0};
}

int64_t decode_string(struct decode_strings *s, struct wire_batch *b, uint64_t number)
{
    if (number >= s->texts.len)
        return wire_string(b, "", 0);
    int r =
        s->numbers.len < s->texts.len ? vec_extend(&s->numbers, s->texts.len - s->numbers.len) : 0;
    if (r < 0)
        return r;
    uint32_t *known = &s->numbers.data[number];
    if (*known)
        return *known - 1;
    int64_t n = wire_string(b, s->texts.data[number].data, s->texts.data[number].len);
    if (n >= 0)
        *known = (uint32_t)n + 1;
    return n;
}

int64_t decode_frame(struct wire_batch *b, struct str name, struct str system_name, struct str file,
                     uint32_t kind, int64_t line)
{
    struct str signature = {"", 0};
    if (system_name.len > name.len && system_name.data[name.len] == '(' &&
        memcmp(system_name.data, name.data, name.len) == 0)
        signature = (struct str){system_name.data + name.len, system_name.len - name.len};
    if (!name.len)
        name = system_name;
    int64_t n = wire_string(b, name.data, name.len);
    int64_t s = n < 0 ? n : wire_string(b, signature.data, signature.len);
    int64_t f = s < 0 ? s : wire_string(b, file.data, file.len);
    if (f < 0)
        return f;
    struct wire_frame frame = {.name = (uint32_t)n,
                               .signature = (uint32_t)s,
                               .file = (uint32_t)f,
                               .kind = kind,
                               .line = line > 0 && line <= INT32_MAX ? (int32_t)line : 0};
    return wire_frame(b, &frame);
}

int decode_label(struct wire_batch *b, struct str key, struct str value, struct decode_labels *to)
{
    int64_t k = wire_string(b, key.data, key.len);
    int64_t v = k < 0 ? k : wire_string(b, value.data, value.len);
    return v < 0 ? (int)v : DECODE_PUSH(b, to, ((struct wire_label){(uint32_t)k, (uint32_t)v}));
}

bool decode_link_label(struct str key, struct str value, struct wire_link *link)
{
    return (str_is(key, "trace_id") &&
            hex_read(value.data, value.len, link->trace, sizeof(link->trace))) ||
           (str_is(key, "span_id") &&
            hex_read(value.data, value.len, link->span, sizeof(link->span)));
}

void decode_reason(const struct wire_batch *b, int r, const char *what, struct buf *why)
{
    if (why->len)
        return;
    if (r == -EPROTO)
        buf_printf(why, "not %s, or damaged", what);
    else if (r == -E2BIG)
        buf_printf(why, "%s beyond the limits: %s", what, b->beyond ? b->beyond : "too long");
}
