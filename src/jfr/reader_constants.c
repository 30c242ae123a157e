/* SPDX-License-Identifier: Apache-2.0 */
/* Skips values, reads strings, and finds the constants of a chunk. */
#include "base/json.h"
#include "jfr/reader_internal.h"

static void keep_string(struct recording *r, struct rec_value *ret, const char *s, size_t len)
{
    const char *copy = arena_copy(&r->strings, s, len);
    ret->string.data = copy ? copy : "";
    ret->string.len = copy ? len : 0;
}

/* Stores ASCII bytes as they are, and anything else as valid UTF-8. */
static void set_string(struct recording *r, struct rec_value *ret, const char *s, size_t len)
{
    bool ascii = true;
    for (size_t i = 0; i < len && ascii; i++)
        ascii = !(s[i] & 0x80);
    if (ascii) {
        keep_string(r, ret, s, len);
        return;
    }
    struct buf b = BUF(UINT32_C(1) << 30);
    json_put_utf8(&b, s, len);
    keep_string(r, ret, buf_str(&b), buf_error(&b) ? 0 : b.len);
    buf_release(&b);
}

static void put_utf8(struct buf *b, uint32_t u)
{
    if (u < 0x80) {
        buf_u8(b, (uint8_t)u);
    } else if (u < 0x800) {
        buf_u8(b, (uint8_t)(0xc0 | u >> 6));
        buf_u8(b, (uint8_t)(0x80 | (u & 0x3f)));
    } else {
        /* Halves of surrogate pairs are encoded separately; set_string joins them. */
        buf_u8(b, (uint8_t)(0xe0 | u >> 12));
        buf_u8(b, (uint8_t)(0x80 | (u >> 6 & 0x3f)));
        buf_u8(b, (uint8_t)(0x80 | (u & 0x3f)));
    }
}

/* Reads an array of UTF-16 units, each of which is a number. */
static void read_chars(struct rec_chunk *k, struct cursor *c, struct rec_value *ret)
{
    uint32_t n = (uint32_t)rec_read_int(k, c);
    if (n > cursor_left(c)) {
        c->failed = true;
        return;
    }
    struct buf b = BUF(UINT32_C(1) << 30);
    for (uint32_t i = 0; i < n && !c->failed; i++) {
        uint32_t unit = k->compressed ? (uint32_t)cursor_jfr_long(c) & 0xffff : cursor_be16(c);
        if (ret)
            put_utf8(&b, unit);
    }
    if (ret)
        set_string(k->recording, ret, buf_str(&b), buf_error(&b) ? 0 : b.len);
    buf_release(&b);
}

static void read_latin1(struct rec_chunk *k, struct cursor *c, struct rec_value *ret)
{
    uint32_t n = (uint32_t)rec_read_int(k, c);
    const uint8_t *bytes = cursor_take(c, n);
    if (!bytes || !ret)
        return;
    struct buf b = BUF(UINT32_C(1) << 30);
    for (uint32_t i = 0; i < n; i++)
        put_utf8(&b, bytes[i]);
    set_string(k->recording, ret, buf_str(&b), buf_error(&b) ? 0 : b.len);
    buf_release(&b);
}

static void read_string_constant(struct rec_chunk *k, uint64_t id, struct rec_value *ret)
{
    struct type *t = rec_chunk_type_named(k, TYPE_OF_STRINGS);
    struct rec_chunk *where = k;
    uint64_t place = t ? rec_chunk_constant_place(&where, &t, id) : 0;
    if (!place)
        return;
    struct cursor c = rec_chunk_cursor(where, where->recording->data + (place & ~PLACE_RAW));
    if (c.at < c.end && *c.at != 2) /* a chain of references is not allowed */
        rec_chunk_read_string(where, &c, ret);
}

void rec_chunk_read_string(struct rec_chunk *k, struct cursor *c, struct rec_value *ret)
{
    if (ret) {
        ret->string.data = NULL;
        ret->string.len = 0;
    }
    switch (cursor_u8(c)) {
    case 0:
        break;
    case 1:
        if (ret)
            ret->string.data = "";
        break;
    case 2: {
        uint64_t id = (uint64_t)rec_read_long(k, c);
        if (ret && !c->failed)
            read_string_constant(k, id, ret);
        break;
    }
    case 3: {
        uint32_t n = (uint32_t)rec_read_int(k, c);
        const uint8_t *bytes = cursor_take(c, n);
        if (ret && bytes)
            set_string(k->recording, ret, (const char *)bytes, n);
        break;
    }
    case 4:
        read_chars(k, c, ret);
        break;
    case 5:
        read_latin1(k, c, ret);
        break;
    default:
        c->failed = true;
    }
    if (ret)
        ret->is_null = !ret->string.data;
}

/* Skips n compressed numbers, each of which is at most nine bytes long. */
static void skip_longs(struct cursor *c, uint64_t n)
{
    while (n && cursor_left(c) > sizeof(uint64_t)) {
        uint64_t x;
        memcpy(&x, c->at, sizeof(x));
        uint64_t ends = ~le64toh(x) & UINT64_C(0x8080808080808080);
        unsigned count = (unsigned)((ends >> 7) * UINT64_C(0x0101010101010101) >> 56);
        for (; count > n; count--) /* the last number is read by the caller */
            ends &= ~(UINT64_C(1) << (63 - __builtin_clzll(ends)));
        c->at += ends ? 8 - (unsigned)__builtin_clzll(ends) / 8 : sizeof(x) + 1;
        n -= ends ? count : 1;
    }
    for (; n && !c->failed; n--)
        cursor_jfr_long(c);
}

static void skip_one(const struct rec_chunk *k, const struct rec_field *f, struct cursor *c,
                     int depth)
{
    if (f->constant) {
        rec_read_long(k, c);
        return;
    }
    switch (f->type->kind) {
    case REC_BOOLEAN:
    case REC_BYTE:
        cursor_skip(c, 1);
        return;
    case REC_CHAR:
    case REC_SHORT:
        if (k->compressed)
            cursor_jfr_long(c);
        else
            cursor_skip(c, 2);
        return;
    case REC_INT:
        rec_read_int(k, c);
        return;
    case REC_LONG:
        rec_read_long(k, c);
        return;
    case REC_FLOAT:
        cursor_skip(c, 4);
        return;
    case REC_DOUBLE:
        cursor_skip(c, 8);
        return;
    case REC_STRING:
        rec_chunk_read_string((struct rec_chunk *)k, c, NULL);
        return;
    case REC_STRUCT:
        /* Values that take no bytes could be repeated endlessly. */
        if (depth > MAX_NESTING || !f->type->n_fields)
            c->failed = true;
        for (uint32_t i = 0; i < f->type->n_fields && !c->failed; i++)
            rec_chunk_skip_value(k, &f->type->fields[i], c, depth + 1);
    }
}

void rec_chunk_skip_value(const struct rec_chunk *k, const struct rec_field *f, struct cursor *c,
                          int depth)
{
    uint32_t n = 1;
    if (f->array) {
        n = (uint32_t)rec_read_int(k, c);
        if (n > cursor_left(c))
            c->failed = true;
    }
    uint32_t longs = ((const struct type *)(const void *)f->type)->n_longs;
    if (longs && !f->constant && !c->failed) {
        skip_longs(c, (uint64_t)n * longs);
        return;
    }
    for (; n && !c->failed; n--)
        skip_one(k, f, c, depth);
}

/* ---- checkpoints ---- */

/*
 * Makes room in the array for `more` constants of a pool. If the ids in a file are not dense, this
 * takes no more memory than the constants do.
 */
static int pool_reserve(struct type *t, uint64_t more)
{
    uint64_t n = MIN(DENSE + 4 * (t->n_constants + more), (uint64_t)DIRECT_IDS);
    t->n_constants += more;
    size_t before = t->constants.len;
    if (n <= before)
        return 0;
    if (vec_extend(&t->constants, n - before) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < t->far.len; i++) {
        const struct far_constant *c = &t->far.data[i];
        if (c->id >= before && c->id < n)
            t->constants.data[c->id] = c->of;
    }
    return 0;
}

struct constant *constant_far(struct type *t, uint64_t id)
{
    bool added;
    uint64_t *at = map_at(&t->far_index, id, t->far.len, &added);
    if (at && added && vec_push(&t->far, ((struct far_constant){.id = id})) < 0) {
        map_remove(&t->far_index, id);
        return NULL;
    }
    return at ? &t->far.data[*at].of : NULL;
}

/* Adds a constant unless there is one with its id. */
static int constant_add(struct type *t, uint64_t id, uint64_t place)
{
    struct constant *c = id < t->constants.len ? &t->constants.data[id] : constant_far(t, id);
    if (!c)
        return -ENOMEM;
    if (c->placed != t->round) {
        c->placed = t->round;
        c->place = place;
    }
    return 0;
}

bool rec_chunk_constant_next(const struct type *t, size_t *i, uint64_t *ret_id, uint64_t *ret_place)
{
    for (; *i < t->constants.len; ++*i) {
        const struct constant *c = &t->constants.data[*i];
        if (c->placed != t->round)
            continue;
        *ret_id = (*i)++;
        *ret_place = c->place;
        return true;
    }
    for (; *i - t->constants.len < t->far.len; ++*i) {
        const struct far_constant *c = &t->far.data[*i - t->constants.len];
        /* it has been moved to the array */
        if (c->of.placed != t->round || c->id < t->constants.len)
            continue;
        *ret_id = c->id;
        *ret_place = c->of.place;
        ++*i;
        return true;
    }
    return false;
}

/*
 * Records where the entries of one type are. Later checkpoints are read first and take precedence.
 */
static bool read_pool(struct rec_chunk *k, struct type *t, struct cursor *c, uint64_t flags)
{
    uint32_t count = (uint32_t)rec_read_int(k, c);
    if (pool_reserve(t, MIN(count, cursor_left(c))) < 0)
        return false;
    for (uint32_t i = 0; i < count && !c->failed; i++) {
        uint64_t id = (uint64_t)rec_read_long(k, c);
        uint64_t place = (uint64_t)(c->at - k->recording->data) | flags;
        if (t->pub.kind == REC_STRING)
            rec_chunk_read_string(k, c, NULL);
        else if (t->pub.kind != REC_STRUCT || !t->pub.n_fields)
            c->failed = true;
        for (uint32_t f = 0; f < t->pub.n_fields && !c->failed; f++)
            rec_chunk_skip_value(k, &t->fields[f], c, 0);
        if (!c->failed && constant_add(t, id, place) < 0)
            return false;
    }
    return true;
}

static void chain_damaged(struct rec_chunk *k, const uint8_t *at, const char *why)
{
    if (k->chain_why)
        return;
    k->chain_damage = at;
    k->chain_why = why;
}

/*
 * Reads the checkpoint event at `at` and stores its distance to the previous one, or 0. Returns
 * false when the chain must not be followed further.
 */
static bool read_checkpoint(struct rec_chunk *k, const uint8_t *at, int64_t *ret_back, bool chained)
{
    struct cursor c = rec_chunk_cursor(k, at);
    uint32_t size = (uint32_t)rec_read_int(k, &c);
    if (c.failed || size < (size_t)(c.at - at) || size > (size_t)(k->end - at))
        return false;
    c.end = at + size;
    if (rec_read_long(k, &c) != TYPE_CHECKPOINT)
        return false;
    rec_read_long(k, &c);
    rec_read_long(k, &c);
    int64_t back = rec_read_long(k, &c);
    uint8_t flags = cursor_u8(&c);
    bool raw = !chained && flags == 0x40;
    uint32_t pools = (uint32_t)rec_read_int(k, &c);
    for (uint32_t i = 0; i < pools && !c.failed; i++) {
        struct type *t = rec_chunk_type(k, (uint64_t)rec_read_long(k, &c));
        if (!t)
            c.failed = true;
        else if (!read_pool(k, t, &c, raw ? PLACE_RAW : 0))
            return false;
    }
    if (c.failed && chained)
        chain_damaged(k, at, "a checkpoint is damaged");
    *ret_back = back;
    return true;
}

static void read_chain(struct rec_chunk *k)
{
    const uint8_t *at =
        k->constants < (size_t)(k->end - k->start) ? k->start + k->constants : k->end;
    if (!k->constants)
        return;
    for (;;) {
        int64_t back = 0;
        if (!read_checkpoint(k, at, &back, true)) {
            chain_damaged(k, at, "a checkpoint is damaged or missing");
            return;
        }
        /*
         * Each checkpoint must lie before the one that refers to it, so that damage cannot cause an
         * endless loop.
         */
        if (back >= 0 || back < k->start - at)
            return;
        at += back;
    }
}

void rec_chunk_read_constants_early(struct rec_chunk *k)
{
    if (k->constants_read || k->constants_early)
        return;
    read_chain(k);
    k->constants_early = true;
}

/* Makes sure that the constants were read. */
static void need_constants(struct rec_chunk *k)
{
    if (k->constants_read)
        return;
    rec_chunk_read_constants_early(k);
    k->constants_read = true;
    if (k->chain_why)
        recording_damage(k->recording, k->chain_damage, k->chain_why);
}

/*
 * Searches all events for checkpoints outside the chain; the recording of a killed process may have
 * some.
 */
static void search_checkpoints(struct rec_chunk *k)
{
    k->searched = true;
    for (const uint8_t *at = k->start + JFR_CHUNK_HEAD; at < k->end;) {
        struct cursor c = rec_chunk_cursor(k, at);
        uint32_t size = (uint32_t)rec_read_int(k, &c);
        int64_t type = rec_read_long(k, &c), back;
        if (c.failed || size < 2 || size > (size_t)(k->end - at))
            return;
        if (type == TYPE_CHECKPOINT)
            (void)read_checkpoint(k, at, &back, false);
        at += size;
    }
}

uint64_t rec_chunk_constant_place(struct rec_chunk **chunk, struct type **type, uint64_t id)
{
    struct rec_chunk *k = *chunk;
    need_constants(k);
    uint64_t place;
    if (constant_placed(*type, id, &place))
        return place;
    if (!id)
        return 0;
    if (!k->searched)
        search_checkpoints(k);
    if (constant_placed(*type, id, &place))
        return place;
    /*
     * The ids of our writer are valid in all chunks, and a killed process may not have repeated one
     * in its last chunk.
     */
    if (k->index + 1 == k->recording->chunks.len && rec_chunk_type_named(k, TYPE_OF_METHOD_KEYS)) {
        for (size_t i = k->index; i-- > 0;) {
            struct rec_chunk *before = k->recording->chunks.data[i];
            struct type *t =
                rec_chunk_prepare(before) ? NULL : rec_chunk_type_called(before, (*type)->pub.name);
            if (t)
                need_constants(before);
            if (t && constant_placed(t, id, &place)) {
                *chunk = before;
                *type = t;
                return place;
            }
        }
    }
    k->recording->info.unresolved++;
    return 0;
}
