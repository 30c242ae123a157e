/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/command.h"

#include "base/cursor.h"

static bool ratio(struct cursor *b, float *ret)
{
    uint32_t bits = cursor_be32(b);
    memcpy(ret, &bits, sizeof(bits));
    return *ret >= 0 && *ret <= 1; /* also false for NaN */
}

/*
 * Parses the body of CONTROL. Front-ends that know only ids of 4 bytes send 4, whatever the size of
 * the stream's ids.
 */
static bool parse_control(struct cursor *b, unsigned id_size, struct hprof_request *r)
{
    r->control = cursor_be16(b);
    switch (r->control) {
    case HPROF_CONTROL_TRACES_ON:
    case HPROF_CONTROL_TRACES_OFF:
    case HPROF_CONTROL_CLEAR_SAMPLES:
        return true;
    case HPROF_CONTROL_SAMPLING_ON:
    case HPROF_CONTROL_SAMPLING_OFF:
        r->object = id_size == 8 && cursor_left(b) >= 8 ? cursor_be64(b) : cursor_be32(b);
        return true;
    case HPROF_CONTROL_MAX_DEPTH:
        r->depth = cursor_be16(b);
        return true;
    default:
        return false;
    }
}

static bool parse(const struct hprof_commands *c, struct hprof_request *r)
{
    struct cursor b = cursor_of(c->bytes, c->len);
    bool good = true;
    *r = (struct hprof_request){.command = cursor_u8(&b), .serial = cursor_be32(&b)};
    cursor_skip(&b, 4);
    switch (r->command) {
    case HPROF_CMD_ALLOC_SITES:
        r->flags = cursor_be16(&b);
        good = ratio(&b, &r->cutoff);
        break;
    case HPROF_CMD_CPU_SAMPLES:
        cursor_skip(&b, 2);
        good = ratio(&b, &r->cutoff);
        break;
    case HPROF_CMD_CONTROL:
        good = parse_control(&b, c->id_size, r);
        break;
    case HPROF_CMD_FORCE_GC:
    case HPROF_CMD_DUMP_HEAP:
    case HPROF_CMD_HEAP_SUMMARY:
    case HPROF_CMD_EXIT:
    case HPROF_CMD_DUMP_TRACES:
    case HPROF_CMD_EOF:
        break;
    default:
        good = false;
    }
    return good && !b.failed;
}

int hprof_command_next(struct hprof_commands *c, const void *bytes, size_t len, size_t *used,
                       struct hprof_request *ret)
{
    const uint8_t *from = bytes;
    for (*used = 0; *used < len;) {
        if (c->skip) {
            size_t part = MIN(c->skip, len - *used);
            c->skip -= part;
            *used += part;
            continue;
        }
        c->bytes[c->len++] = from[(*used)++];
        if (c->len < HPROF_COMMAND_HEADER)
            continue;
        struct cursor length = cursor_of(c->bytes + 5, 4);
        uint32_t body = cursor_be32(&length);
        if (body > HPROF_COMMAND_BODY) {
            c->skip = body;
            c->refused++;
            c->len = 0;
        } else if (c->len == HPROF_COMMAND_HEADER + body) {
            bool good = parse(c, ret);
            c->len = 0;
            if (good)
                return 1;
            c->refused++;
        }
    }
    return 0;
}
