/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/reader_plan.h"

enum {
    OP_LONG,
    OP_INT,
    OP_UNSIGNED,
    OP_SHORT,
    OP_CHAR,
    OP_BYTE,
    OP_UNSIGNED_BYTE,
    OP_BOOLEAN,
    OP_SKIP_LONG,
    OP_SKIP,
    OP_FIELD
};

struct op {
    uint8_t op, slot; /* for OP_SKIP: the number of bytes */
    uint16_t field;
};

static uint8_t number_op(const struct rec_field *f)
{
    switch (f->type->kind) {
    case REC_BOOLEAN:
        return OP_BOOLEAN;
    case REC_BYTE:
        return f->is_unsigned ? OP_UNSIGNED_BYTE : OP_BYTE;
    case REC_CHAR:
        return OP_CHAR;
    case REC_SHORT:
        return f->is_unsigned ? OP_CHAR : OP_SHORT;
    case REC_INT:
        return f->is_unsigned ? OP_UNSIGNED : OP_INT;
    case REC_LONG:
        return OP_LONG;
    default:
        return OP_FIELD;
    }
}

static uint8_t skip_op(const struct rec_field *f, uint8_t *ret_bytes)
{
    *ret_bytes = 0;
    if (f->array)
        return OP_FIELD;
    if (f->constant)
        return OP_SKIP_LONG;
    switch (f->type->kind) {
    case REC_BOOLEAN:
    case REC_BYTE:
        *ret_bytes = 1;
        return OP_SKIP;
    case REC_FLOAT:
        *ret_bytes = 4;
        return OP_SKIP;
    case REC_DOUBLE:
        *ret_bytes = 8;
        return OP_SKIP;
    case REC_STRING:
    case REC_STRUCT:
        return OP_FIELD;
    default:
        return OP_SKIP_LONG;
    }
}

static void plan_field(const struct wanted *w, struct plan *p, uint32_t i, uint8_t *slots)
{
    const struct rec_field *f = &p->pub.type->fields[i];
    struct op op = {.field = (uint16_t)i};
    op.op = skip_op(f, &op.slot);
    for (size_t j = 0; j < w->n_columns; j++) {
        if (strcmp(w->columns[j].name, f->name) != 0 || p->pub.field[j])
            continue;
        p->pub.slot[j] = REC_BY_NAME;
        p->pub.field[j] = f;
        bool fits = !f->array && f->constant == w->columns[j].constant && *slots < REC_ROW_VALUES;
        uint8_t read = f->constant ? OP_LONG : number_op(f);
        if (fits && read != OP_FIELD && !p->by_name) {
            op.op = read;
            op.slot = *slots;
            p->pub.slot[j] = (int8_t)(*slots)++;
        }
    }
    if (i >= 2 || (i == 1 && !((const struct type *)(const void *)p->pub.type)->lasts))
        p->ops[p->n_ops++] = op;
}

/* Determines whether the type's events can be read as samples. */
static void plan_sampling(const struct wanted *w, struct plan *p)
{
    const int8_t *slot = p->pub.slot;
    for (size_t i = 0; i < w->n_samplings; i++) {
        const struct rec_sampling *s = &w->samplings[i];
        /* If an event has both thread fields, the second one is used if the first is null. */
        int8_t first = slot[s->thread];
        int8_t second = slot[s->or_thread];
        int8_t thread = first == REC_ABSENT ? second : first;
        int8_t weight = s->weight < REC_COLUMNS ? slot[s->weight] : REC_ABSENT;
        if (s->tag != p->pub.type->tag || p->by_name || slot[s->stack] < 0 || thread < 0 ||
            (first != REC_ABSENT && second != REC_ABSENT) || weight == REC_BY_NAME)
            continue;
        p->sampling = s;
        p->stack = (uint8_t)slot[s->stack];
        p->thread = (uint8_t)thread;
        p->weight = weight;
        p->pub.thread = first == REC_ABSENT ? s->or_thread : s->thread;
    }
}

static struct plan *plan_of(const struct wanted *w, struct rec_chunk *k, const struct type *t)
{
    struct plan *p = arena_zalloc(&k->types.arena, sizeof(*p));
    struct op *ops = arena_alloc(&k->types.arena, (t->pub.n_fields + 1) * sizeof(*ops));
    if (!p || !ops)
        return NULL;
    *p = (struct plan){.pub = {.type = &t->pub, .chunk = k, .columns = w->columns}, .ops = ops};
    p->what = w->what ? w->what(t->pub.tag) : REC_ROW;
    p->by_name = !k->compressed || !t->starts || t->pub.n_fields > UINT16_MAX;
    memset(p->pub.slot, REC_ABSENT, sizeof(p->pub.slot));
    uint8_t slots = 0;
    for (uint32_t i = 0; i < t->pub.n_fields; i++)
        plan_field(w, p, i, &slots);
    while (p->n_ops && p->ops[p->n_ops - 1].op >= OP_SKIP_LONG)
        p->n_ops--;
    plan_sampling(w, p);
    return p;
}

int plan_chunk(const struct wanted *w, struct rec_chunk *k)
{
    /* An earlier chunk may have passed on its plans. */
    bool made = k->types.plans == w->number;
    for (size_t i = 0; i < k->types.list.len; i++) {
        struct type *t = k->types.list.data[i];
        if (made && t->plan)
            t->plan->pub.chunk = k;
        if (made)
            continue;
        t->plan = t->pub.tag >= 0 && t->pub.id > TYPE_CHECKPOINT ? plan_of(w, k, t) : NULL;
        if (!t->plan && t->pub.tag >= 0 && t->pub.id > TYPE_CHECKPOINT)
            return -ENOMEM;
    }
    k->types.plans = w->number;
    return 0;
}

void plan_by_name(const struct plan *p, struct rec_row *row)
{
    row->damaged = true;
    const struct type *t = (const struct type *)(const void *)p->pub.type;
    struct rec_event e;
    rec_chunk_fill_event(p->pub.chunk, t, row->at, row->body, row->at + row->size, &e);
    row->start_ns = e.start_ns;
    row->duration_ns = e.duration_ns;
}

static bool run_ops(const struct plan *p, const uint8_t *at, const uint8_t *end,
                    const uint8_t *limit, int64_t *values)
{
    for (const struct op *op = p->ops, *last = op + p->n_ops; op < last; op++) {
        if (unlikely(at > end || limit - at < VARINT_JFR_MAX))
            return false;
        switch (op->op) {
        case OP_LONG:
            values[op->slot] = (int64_t)varint_jfr(&at);
            break;
        case OP_INT:
            values[op->slot] = (int32_t)varint_jfr(&at);
            break;
        case OP_UNSIGNED:
            values[op->slot] = (uint32_t)varint_jfr(&at);
            break;
        case OP_SHORT:
            values[op->slot] = (int16_t)varint_jfr(&at);
            break;
        case OP_CHAR:
            values[op->slot] = (uint16_t)varint_jfr(&at);
            break;
        case OP_BYTE:
            values[op->slot] = (int64_t)(int8_t)*at++;
            break;
        case OP_UNSIGNED_BYTE:
            values[op->slot] = *at++;
            break;
        case OP_BOOLEAN:
            values[op->slot] = *at++ != 0;
            break;
        case OP_SKIP_LONG:
            varint_jfr(&at);
            break;
        case OP_SKIP:
            at += op->slot;
            break;
        default: {
            struct cursor c = cursor_of(at, (size_t)(end - at));
            rec_chunk_skip_value(p->pub.chunk, &p->pub.type->fields[op->field], &c, 0);
            if (c.failed)
                return false;
            at = c.at;
        }
        }
    }
    return at <= end;
}

int64_t plan_start_ns(const struct rec_chunk *k, int64_t ticks)
{
    return (int64_t)((uint64_t)k->start_ns +
                     (uint64_t)rec_ticks_to_ns(
                         k, (int64_t)((uint64_t)ticks - (uint64_t)k->start_ticks)));
}

int64_t plan_start_ticks(const struct plan *p, const uint8_t *body, const uint8_t *limit)
{
    if (p->by_name)
        return INT64_MIN;
    if (likely(limit - body >= VARINT_JFR_MAX))
        return (int64_t)varint_jfr(&body);
    struct cursor c = cursor_of(body, (size_t)(limit - body));
    int64_t ticks = rec_read_long(p->pub.chunk, &c);
    return c.failed ? INT64_MIN : ticks;
}

bool plan_read_row(const struct plan *p, const uint8_t *limit, struct rec_row *row)
{
    const uint8_t *at = row->body, *end = row->at + row->size;
    const struct rec_chunk *k = p->pub.chunk;
    if (p->by_name || limit - at < 2 * VARINT_JFR_MAX)
        return false;
    row->start_ns = plan_start_ns(k, (int64_t)varint_jfr(&at));
    row->duration_ns = ((const struct type *)(const void *)p->pub.type)->lasts
                           ? rec_ticks_to_ns(k, (int64_t)varint_jfr(&at))
                           : 0;
    return run_ops(p, at, end, limit, row->values);
}

bool plan_read_sample(const struct plan *p, const uint8_t *body, const uint8_t *end,
                      const uint8_t *limit, struct rec_sample *ret)
{
    const struct rec_chunk *k = p->pub.chunk;
    int64_t values[REC_ROW_VALUES], duration_ns = 0;
    if (limit - body < 2 * VARINT_JFR_MAX)
        return false;
    ret->start_ns = plan_start_ns(k, (int64_t)varint_jfr(&body));
    if (((const struct type *)(const void *)p->pub.type)->lasts)
        duration_ns = rec_ticks_to_ns(k, (int64_t)varint_jfr(&body));
    if (!run_ops(p, body, end, limit, values))
        return false;
    uint64_t stack = (uint64_t)values[p->stack], thread = (uint64_t)values[p->thread];
    if (unlikely(stack > UINT32_MAX || thread > UINT32_MAX))
        return false;
    ret->plan = &p->pub;
    ret->stack = (uint32_t)stack;
    ret->thread = (uint32_t)thread;
    ret->weight = p->weight >= 0                        ? (uint64_t)values[p->weight]
                  : p->sampling->weight == REC_DURATION ? (uint64_t)duration_ns
                                                        : p->sampling->otherwise;
    return true;
}
