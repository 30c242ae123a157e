/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes stacks. */
#include "base/hash.h"
#include "jfr/reader_usual.h"

/* Reads which ids of methods correspond to the writer's own numbers. */
static void read_method_keys(struct rec_chunk *k)
{
    struct type *t = rec_chunk_type_named(k, TYPE_OF_METHOD_KEYS);
    uint64_t id, place;
    for (size_t i = 0; t && rec_chunk_constant_next(t, &i, &id, &place);) {
        struct rec_object o = {k->recording, k, &t->pub, k->recording->data + (place & ~PLACE_RAW),
                               k->end};
        struct reference method;
        if (usual_reference(&o, "method", USUAL_METHOD, &method) &&
            map_put(&k->method_of_key, (uint64_t)rec_long(&o, "key", 0), method.id))
            break;
    }
}

/*
 * Returns the id of a method, given the number that the writer's owner uses for it, as it appears
 * in stacks of a killed process.
 */
static uint64_t method_of_key(struct rec_chunk *chunk, uint64_t key)
{
    for (size_t i = chunk->index + 1; i-- > 0;) {
        struct rec_chunk *k = chunk->recording->chunks.data[i];
        if (k->state != CHUNK_READY && rec_chunk_prepare(k))
            continue;
        if (!k->method_of_key.len) {
            struct type *t = rec_chunk_type_named(k, TYPE_OF_METHODS);
            if (t)
                /* for its side effect: it reads the pools */
                (void)rec_chunk_constant_place(&(struct rec_chunk *){k}, &t, 0);
            read_method_keys(k);
        }
        const uint64_t *id = map_get(&k->method_of_key, key);
        if (id)
            return *id;
    }
    return 0;
}

static const char *frame_type(struct reference ref)
{
    const char *s = usual_decoded(ref.type, USUAL_FRAME_TYPE, ref.id);
    struct rec_object o;
    bool raw;
    struct type *type = ref.type;
    uint64_t id = ref.id;
    if (s || type->usual != USUAL_FRAME_TYPE || !usual_resolve(&ref, &o, &raw) || !o.type->n_fields)
        return s;
    s = usual_text_at(&o, o.type->fields[0].name);
    if (s)
        usual_remember(type, id, s);
    return s;
}

/* The values of the fields of a frame that are ids or numbers, by role. */
struct raw_frame {
    const struct rec_field *field[ROLES]; /* NULL: the frame has none */
    uint64_t number[ROLES];
};

static bool is_read(const struct type *t, uint32_t i)
{
    const struct rec_field *f = &t->fields[i];
    return t->roles[i] != ROLE_NONE && !f->array && (f->constant || f->type->kind == REC_INT);
}

/* Reads a frame's fields, whose roles are known, one by one. */
static void read_fields(struct rec_chunk *k, const struct type *t, struct cursor *c,
                        struct raw_frame *ret)
{
    for (uint32_t i = 0; i < t->pub.n_fields && !c->failed; i++) {
        const struct rec_field *f = &t->fields[i];
        if (!is_read(t, i)) {
            rec_chunk_skip_value(k, f, c, 1);
            continue;
        }
        ret->field[t->roles[i]] = f;
        ret->number[t->roles[i]] =
            (uint64_t)(f->constant ? rec_read_long(k, c) : rec_read_int(k, c));
    }
}

/*
 * Reads the fields of a frame that are all compressed numbers. Enough bytes must follow for any of
 * them.
 */
static void read_longs(const struct type *t, struct cursor *c, struct raw_frame *ret)
{
    for (uint32_t i = 0; i < t->n_longs; i++)
        ret->number[t->roles[i]] = varint_jfr(&c->at);
}

/* How the frames of a stack are read: what they all have in common. */
struct frame_reader {
    struct rec_chunk *k;
    bool is_raw, has_line, has_bci;
    struct type *method, *frame_type; /* of these ids; NULL where frames have none */
};

static const struct rec_method *frame_method(const struct frame_reader *f, uint64_t id)
{
    if (f->method) {
        id = f->is_raw ? method_of_key(f->k, id) : id;
        const struct rec_method *known = usual_decoded(f->method, USUAL_METHOD, id);
        if (likely(known != NULL))
            return known;
        return usual_method((struct reference){f->k, f->method, id});
    }
    return usual_method((struct reference){f->k, rec_chunk_type_named(f->k, TYPE_OF_METHODS), 0});
}

static void resolve_frame(const struct frame_reader *f, const struct raw_frame *raw,
                          struct rec_frame *ret)
{
    ret->method = frame_method(f, raw->number[ROLE_METHOD]);
    ret->line = f->has_line ? (int32_t)raw->number[ROLE_LINE] : -1;
    ret->bci = f->has_bci ? (int32_t)raw->number[ROLE_BCI] : -1;
    ret->type = f->frame_type
                    ? frame_type((struct reference){f->k, f->frame_type, raw->number[ROLE_TYPE]})
                    : NULL;
}

static int read_frames(struct rec_chunk *k, const struct type *t, struct cursor *c, bool is_raw,
                       struct rec_stack *to, uint64_t n)
{
    struct raw_frame raw = {0};
    bool longs = t->n_longs > 0;
    for (uint32_t i = 0; i < t->pub.n_fields; i++) {
        if (is_read(t, i))
            raw.field[t->roles[i]] = &t->fields[i];
        /* Two fields with one role, or a field that is not read, require read_fields. */
        else if (t->roles[i] != ROLE_NONE)
            longs = false;
    }
    const struct rec_field *method = raw.field[ROLE_METHOD], *line = raw.field[ROLE_LINE],
                           *bci = raw.field[ROLE_BCI], *type = raw.field[ROLE_TYPE];
    const struct frame_reader reader = {
        .k = k,
        .is_raw = is_raw,
        .has_line = line && !line->constant && !is_raw,
        .has_bci = bci && !bci->constant,
        .method = method && method->constant ? (struct type *)(void *)method->type : NULL,
        .frame_type = type && type->constant ? (struct type *)(void *)type->type : NULL};
    for (uint64_t i = 0; i < n; i++) {
        if (likely(longs && cursor_left(c) >= (size_t)t->n_longs * VARINT_JFR_MAX))
            read_longs(t, c, &raw);
        else
            read_fields(k, t, c, &raw);
        if (c->failed)
            return -EBADMSG;
        resolve_frame(&reader, &raw, &to->frames[to->n++]);
    }
    return 0;
}

static int room_for(struct rec_stack_room *room, uint64_t n)
{
    if (room->stack && room->cap >= n)
        return 0;
    size_t cap = MAX(n, 2 * room->cap);
    struct rec_stack *s = realloc(room->stack, sizeof(*s) + cap * sizeof(s->frames[0]));
    if (!s)
        return -ENOMEM;
    *room = (struct rec_stack_room){s, cap};
    return 0;
}

static bool has_frames(const struct rec_chunk *k, const struct rec_field *f)
{
    return f->array && !f->constant && f->type->kind == REC_STRUCT &&
           rec_chunk_type_named(k, TYPE_OF_METHODS);
}

/* Decodes a stack. Returns 0, -ENOENT if the object is not a stack, -EBADMSG or -ENOMEM. */
static int decode_stack(const struct rec_object *o, uint64_t id, bool raw,
                        struct rec_stack_room *room)
{
    struct rec_chunk *k = o->chunk;
    const struct type *t = (const struct type *)(const void *)o->type;
    struct cursor c = cursor_of(o->at, (size_t)(o->end - o->at));
    bool truncated = false;
    int error = -ENOENT;
    for (uint32_t i = 0; i < t->pub.n_fields && !c.failed; i++) {
        const struct rec_field *f = &t->fields[i];
        if (t->roles[i] == ROLE_TRUNCATED && !f->array && !f->constant &&
            f->type->kind == REC_BOOLEAN) {
            truncated = cursor_u8(&c) != 0;
        } else if (t->roles[i] == ROLE_FRAMES && has_frames(k, f)) {
            uint64_t n = (uint32_t)rec_read_int(k, &c);
            if (n > cursor_left(&c))
                c.failed = true;
            error = c.failed ? -EBADMSG : room_for(room, n);
            if (error)
                break;
            room->stack->n = 0;
            error =
                read_frames(k, (const struct type *)(const void *)f->type, &c, raw, room->stack, n);
        } else {
            rec_chunk_skip_value(k, f, &c, 0);
        }
    }
    if (c.failed || error == -EBADMSG) {
        recording_damage(o->recording, o->at, "an event's contents are damaged");
        return -EBADMSG;
    }
    if (error == 0) {
        room->stack->id = id;
        room->stack->truncated = truncated;
    }
    return error;
}

static bool read_stack(struct reference ref, struct rec_stack_room *room)
{
    struct rec_object stack;
    bool raw;
    uint64_t id = ref.id;
    return id && usual_resolve(&ref, &stack, &raw) && decode_stack(&stack, id, raw, room) == 0;
}

const struct rec_stack *usual_stack(struct reference ref)
{
    if (!ref.id)
        return NULL;
    const struct rec_stack *known = usual_decoded(ref.type, USUAL_STACK, ref.id);
    struct rec_stack_room room = {0};
    if (known || !read_stack(ref, &room)) {
        rec_stack_room_release(&room);
        return known;
    }
    size_t bytes = sizeof(*known) + room.stack->n * sizeof(known->frames[0]);
    struct rec_stack *copy = arena_alloc(&ref.chunk->decoded, bytes);
    if (copy)
        usual_remember(ref.type, ref.id, memcpy(copy, room.stack, bytes));
    rec_stack_room_release(&room);
    return copy;
}

const struct rec_stack *rec_stack_read(const struct rec_object *o, const struct rec_field *f,
                                       uint64_t id, struct rec_stack_room *room)
{
    struct reference ref = {o->chunk, (struct type *)(void *)f->type, id};
    return f->constant && ref.type->usual == USUAL_STACK && read_stack(ref, room) ? room->stack
                                                                                  : NULL;
}

void rec_stack_room_release(struct rec_stack_room *room)
{
    free(room->stack);
    *room = (struct rec_stack_room){0};
}

/* ---- stacks of several chunks ---- */

/* Stores what an id stands for. Returns whether that is the same as in all earlier chunks. */
static bool same_id(struct map *ids, uint64_t id, uint64_t what)
{
    uint64_t *known = map_at(ids, id, what, NULL);
    return known && *known == what;
}

/* Compares with earlier chunks what the chunk's ids of methods and frame types stand for. */
static void compare_ids(struct rec_chunk *k, struct type *methods, struct type *frame_types)
{
    struct recording *r = k->recording;
    uint64_t id, place;
    k->ids_known = true;
    for (size_t i = 0; !r->ids_differ && rec_chunk_constant_next(methods, &i, &id, &place);) {
        const struct rec_method *m = usual_method((struct reference){k, methods, id});
        r->ids_differ = !same_id(&r->method_ids, id, m->number);
    }
    for (size_t i = 0; !r->ids_differ && rec_chunk_constant_next(frame_types, &i, &id, &place);) {
        const char *text = frame_type((struct reference){k, frame_types, id});
        r->ids_differ = !same_id(&r->frame_type_ids, id, (uintptr_t)text);
    }
}

/* Returns the type of the constants that a field of frames refers to, or NULL. */
static struct type *constants_of(const struct type *frames, enum role role, enum usual usual)
{
    struct type *found = NULL;
    for (uint32_t i = 0; i < frames->pub.n_fields; i++)
        if (frames->roles[i] == role && frames->fields[i].constant)
            found = (struct type *)(void *)frames->fields[i].type;
    return found && found->usual == usual ? found : NULL;
}

/* Returns the type of the frames in a stack, or NULL. */
static const struct type *frames_of(const struct type *stack)
{
    for (uint32_t i = 0; i < stack->pub.n_fields; i++)
        if (stack->roles[i] == ROLE_FRAMES && stack->fields[i].array)
            return (const struct type *)(const void *)stack->fields[i].type;
    return NULL;
}

uint64_t rec_stack_key(const struct rec_object *o, const struct rec_field *f, uint64_t id)
{
    enum { METHODS_A_STACK = 20 }; /* comparing these takes less than decoding a stack */

    struct rec_chunk *k = o->chunk;
    struct recording *r = k->recording;
    struct type *t = (struct type *)(void *)f->type;
    uint64_t place;
    if (r->ids_differ || r->chunks.len == 1 || t->usual != USUAL_STACK || !k->constants_read ||
        k->searched)
        return 0;
    const struct type *frames = frames_of(t);
    if (!frames)
        return 0;
    if (!k->ids_known) {
        struct type *methods = constants_of(frames, ROLE_METHOD, USUAL_METHOD),
                    *types = constants_of(frames, ROLE_TYPE, USUAL_FRAME_TYPE);
        if (!methods || !types || t->n_constants * METHODS_A_STACK < methods->n_constants)
            return 0;
        compare_ids(k, methods, types);
    }
    if (r->ids_differ || !constant_placed(t, id, &place) || place & PLACE_RAW)
        return 0;
    struct cursor c = rec_chunk_cursor(k, r->data + place);
    const uint8_t *begin = c.at;
    for (uint32_t i = 0; i < t->pub.n_fields && !c.failed; i++)
        rec_chunk_skip_value(k, &t->fields[i], &c, 0);
    return c.failed ? 0 : hash_u64(hash_bytes(begin, (size_t)(c.at - begin)) ^ k->types.text_hash);
}
