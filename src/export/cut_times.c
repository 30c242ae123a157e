/* SPDX-License-Identifier: Apache-2.0 */
#include "export/cut_times.h"

#include "base/cursor.h"
#include "profile/vm_time.h"

#include <errno.h>
#include <string.h>

void cut_times_put_padded(struct buf *b, uint64_t v, int width)
{
    for (int i = 0; i < width; i++, v >>= 7)
        buf_u8(b, (uint8_t)((v & 0x7f) | (i + 1 < width ? 0x80 : 0)));
}

int cut_times_note(struct cut_times *c, const struct rec_event *e, int64_t start_ns)
{
    const char *what = rec_string(&e->object, "what", "");
    return vec_push(&c->list,
                    ((struct cut_time){.offset = e->offset,
                                       .time_ns = MAX(e->start_ns - start_ns, 0),
                                       .cpu_ns = (uint64_t)MAX(rec_ns(&e->object, "cpuTime", 0), 0),
                                       .last = strcmp(what, VM_TIME_PROCESS) == 0}));
}

static int by_time(const void *a, const void *b)
{
    const struct cut_time *x = a, *y = b;
    return x->time_ns != y->time_ns ? (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns)
                                    : (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_offset(const void *a, const void *b)
{
    const struct cut_time *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

void cut_times_settle(struct cut_times *c, const struct profile_filter *filter)
{
    uint64_t before = 0;
    size_t n = 0;
    vec_sort(&c->list, by_time);
    for (size_t i = 0; i < c->list.len; i++) {
        struct cut_time t = c->list.data[i];
        t.part_ns = vm_time_selected(t.cpu_ns, before, (uint64_t)t.time_ns, filter);
        if (t.last && t.cpu_ns) /* as profile_cpu_time, which keeps no reading of 0 */
            before = (uint64_t)t.time_ns;
        if (filter->to_ns && (uint64_t)t.time_ns > filter->to_ns)
            t.moved_ns = t.time_ns - (int64_t)filter->to_ns;
        bool inside = (uint64_t)t.time_ns >= filter->from_ns && !t.moved_ns;
        if (t.part_ns || inside)
            c->list.data[n++] = t;
    }
    c->list.len = n;
    vec_sort(&c->list, by_offset);
}

bool cut_times_put(const struct cut_times *c, struct buf *out, uint64_t offset,
                   const uint8_t *event, size_t size, uint64_t hz)
{
    const struct cut_time key = {.offset = offset}, *t = NULL;
    if (c->list.len)
        t = bsearch(&key, c->list.data, c->list.len, sizeof(key), by_offset);
    if (!t || (t->part_ns == t->cpu_ns && !t->moved_ns))
        return false;
    struct cursor cursor = cursor_of(event, size);
    cursor_jfr_long(&cursor);
    uint64_t type = cursor_jfr_long(&cursor), ticks = cursor_jfr_long(&cursor);
    struct buf time = BUF(16), body = BUF(SIZE_MAX / 2);
    buf_jfr_long(&time, t->cpu_ns); /* the last field, as the recorder writes it */
    size_t rest = cursor_left(&cursor);
    bool known = !cursor.failed && buf_error(&time) == 0 && rest >= time.len &&
                 memcmp(event + size - time.len, time.data, time.len) == 0;
    if (known) {
        double moved = (double)t->moved_ns * (hz ? (double)hz / 1e9 : 1);
        buf_jfr_long(&body, type);
        buf_jfr_long(&body, ticks - (uint64_t)moved);
        buf_bytes(&body, cursor.at, rest - time.len);
        buf_jfr_long(&body, t->part_ns);
        cut_times_put_padded(out, 4 + body.len, 4);
        buf_bytes(out, body.data, body.len);
    }
    buf_release(&time);
    buf_release(&body);
    return known;
}

void cut_times_release(struct cut_times *c)
{
    vec_release(&c->list);
}
