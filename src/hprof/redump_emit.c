/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass: writes classes, traces and frames before the dump, then the sub-records of the
 * dump, with the ids, threads and traces that the agent knows.
 */
#include "hprof/redump_private.h"

#include "base/hash.h"

#include <errno.h>
#include <stdio.h>

uint32_t redump_thread(const struct redump *r, uint32_t serial)
{
    const uint64_t *index = map_get(&r->thread_serials, serial);
    return index ? r->threads.data[*index].our_serial : r->how->unknown_thread;
}

uint32_t redump_trace(const struct redump *r, uint32_t serial)
{
    const uint64_t *other = map_get(&r->traces, serial);
    return other ? (uint32_t)*other : r->how->empty_trace;
}

uint32_t redump_root_frame(const struct redump *r, uint32_t thread_serial, uint32_t frame)
{
    const uint64_t *index = map_get(&r->thread_serials, thread_serial);
    return index ? left_out_shown(&r->left_out, r->threads.data[*index].trace, frame) : frame;
}

uint32_t redump_object_trace(const struct redump *r, const uint8_t *at)
{
    uint32_t trace = r->how->allocated ? r->how->allocated(r->how->ctx, redump_id_at(at + 1)) : 0;
    return trace ? trace : r->how->empty_trace;
}

static void emit_class_name(struct redump *r, uint64_t dump_serial, const struct class *c)
{
    uint32_t serial = (*r->how->next_class)++;
    uint64_t name = *r->how->next_string;
    *r->how->next_string += 2;
    if (map_put(&r->serials, dump_serial, serial) < 0)
        redump_fail(r, -ENOMEM);
    hprof_utf8(r->how->binary, name, c->source_name, strlen(c->source_name));
    hprof_load_class(r->how->binary, serial, c->id, r->how->empty_trace, name);
}

static void emit_names(struct redump *r)
{
    uint64_t id, value;
    for (size_t i = 0; map_next(&r->strings, &i, &id, &value);) {
        struct str s = redump_string(r, id);
        hprof_utf8(r->how->binary, id, s.data, s.len);
    }
    for (size_t i = 0; map_next(&r->by_serial, &i, &id, &value);)
        if (!r->classes.data[value].agents)
            emit_class_name(r, id, &r->classes.data[value]);
}

static void emit_frame(struct redump *r, const uint8_t *frame, uint64_t our_id)
{
    uint64_t method = redump_id_at(frame + ID), signature = redump_id_at(frame + 2 * ID),
             source = redump_id_at(frame + 3 * ID);
    uint32_t serial = redump_u4_at(frame + 4 * ID);
    int32_t line = (int32_t)redump_u4_at(frame + 4 * ID + 4);
    if (r->how->binary) {
        const uint64_t *our_class = map_get(&r->serials, serial);
        hprof_frame(r->how->binary, our_id, method, signature, source,
                    our_class ? (uint32_t)*our_class : 0, line);
        return;
    }
    const uint64_t *index = map_get(&r->by_serial, serial);
    struct str m = redump_string(r, method), s = redump_string(r, source);
    struct buf name = BUF(1 << 17);
    buf_printf(&name, "%s.%.*s", index ? r->classes.data[*index].source_name : "", (int)m.len,
               m.data);
    char *file = arena_copy(&r->arena, s.data, s.len);
    hprof_text_frame(r->how->text, buf_str(&name), file && *file ? file : NULL, line);
    buf_release(&name);
}

static bool is_agents_frame(const struct redump *r, const uint8_t *frame)
{
    const uint64_t *index = map_get(&r->by_serial, redump_u4_at(frame + 4 * ID));
    return index && r->classes.data[*index].agents;
}

/* A STACK TRACE holds the stack of a thread; an empty one is a placeholder of the VM. */
static void emit_record(struct redump *r, unsigned tag, struct cursor b)
{
    if (tag != HPROF_TRACE || cursor_left(&b) < 12)
        return;
    uint32_t serial = cursor_be32(&b), thread = redump_thread(r, cursor_be32(&b)),
             n = cursor_be32(&b);
    if (!n || cursor_left(&b) / ID < n)
        return;
    uint32_t our_serial = (*r->how->next_trace)++;
    uint64_t *ids = calloc(n, sizeof(*ids));
    if (!ids || map_put(&r->traces, serial, our_serial) < 0)
        redump_fail(r, -ENOMEM);
    if (r->how->text)
        hprof_text_trace(r->how->text, our_serial, r->how->thread_in_trace ? thread : 0);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n && !r->error; i++) {
        const uint64_t *at = map_get(&r->frames, cursor_be64(&b));
        const uint8_t *frame =
            at ? (const uint8_t *)(uintptr_t)*at : NULL; /* NOLINT: the map holds addresses */
        if (frame && !is_agents_frame(r, frame)) {
            ids[kept] = *r->how->next_frame;
            *r->how->next_frame += 2;
            emit_frame(r, frame, ids[kept++]);
        } else if (left_out_add(&r->left_out, serial, n, i) < 0) {
            redump_fail(r, -ENOMEM);
        }
    }
    if (r->how->binary && !r->error)
        hprof_trace(r->how->binary, our_serial, thread, ids, kept);
    free(ids);
}

static void emit_text_root(struct redump *r, const uint8_t *at, size_t n)
{
    uint64_t object = redump_object(r, redump_id_at(at + 1)), a = 0;
    uint32_t b = 0;
    const char *name = "";
    const struct class *c;
    switch (*at) {
    case HPROF_ROOT_THREAD_OBJECT:
        a = redump_thread(r, redump_u4_at(at + ROOT_THREAD));
        b = redump_trace(r, redump_u4_at(at + ROOT_THREAD + 4));
        break;
    case HPROF_ROOT_JNI_GLOBAL:
        a = redump_id_at(at + 1 + ID);
        b = r->how->empty_trace;
        break;
    case HPROF_ROOT_JNI_LOCAL:
    case HPROF_ROOT_JAVA_FRAME:
        b = redump_root_frame(r, redump_u4_at(at + ROOT_THREAD),
                              redump_u4_at(at + ROOT_THREAD + 4));
        a = redump_thread(r, redump_u4_at(at + ROOT_THREAD));
        break;
    case HPROF_ROOT_NATIVE_STACK:
    case HPROF_ROOT_THREAD_BLOCK:
        a = redump_thread(r, redump_u4_at(at + ROOT_THREAD));
        break;
    case HPROF_ROOT_STICKY_CLASS:
        c = redump_class_of(r, redump_id_at(at + 1));
        name = c ? c->source_name : "";
        break;
    default:
        break;
    }
    hprof_text_root(r->how->text, *at, object, a, b, name);
}

static void emit_text_class(struct redump *r, const uint8_t *at, size_t n)
{
    static const char *const links[] = {"super", "loader", "signers", "domain"};
    const struct class *c = redump_class_of(r, redump_id_at(at + 1));
    struct hprof_text *t = r->how->text;
    struct cursor b = cursor_of(at, n);
    hprof_text_class(t, redump_id_at(at + 1), c ? c->source_name : "", r->how->empty_trace);
    for (unsigned i = 0; i < ARRAY_SIZE(links); i++)
        hprof_text_class_link(t, links[i],
                              redump_object(r, redump_id_at(at + INSTANCE_CLASS + (size_t)i * ID)));
    cursor_skip(&b, CLASS_FIXED);
    for (unsigned statics = 0; statics < 2; statics++) {
        unsigned count = cursor_be16(&b);
        while (count-- && !b.failed) {
            uint64_t name = statics ? cursor_be64(&b) : cursor_be16(&b);
            unsigned type = cursor_u8(&b);
            const uint8_t *value = cursor_take(&b, hprof_type_size(type, ID));
            if (type != HPROF_OBJECT || !value)
                continue;
            if (!statics) {
                hprof_text_constant(t, (uint32_t)name, redump_object(r, redump_id_at(value)));
                continue;
            }
            struct str s = redump_string(r, name);
            char *text = arena_copy(&r->arena, s.data, s.len);
            hprof_text_static(t, text ? text : "", redump_object(r, redump_id_at(value)));
        }
    }
}

static void emit_text_instance(struct redump *r, const uint8_t *at, size_t n)
{
    const struct class *c = redump_class_of(r, redump_id_at(at + INSTANCE_CLASS));
    hprof_text_object(r->how->text, redump_object(r, redump_id_at(at + 1)), c->size,
                      redump_object_trace(r, at), c->source_name, c->id);
    for (uint32_t i = 0; i < c->n_references; i++) {
        size_t o = INSTANCE_BYTES + (size_t)c->references[i].offset;
        if (o + ID > n)
            break;
        hprof_text_field(r->how->text, c->references[i].name,
                         redump_object(r, redump_id_at(at + o)));
    }
}

static void emit_text_object_array(struct redump *r, const uint8_t *at, size_t n)
{
    const struct class *c = redump_class_of(r, redump_id_at(at + ARRAY_CLASS));
    uint32_t len = redump_u4_at(at + ARRAY_LENGTH);
    hprof_text_array(r->how->text, redump_object(r, redump_id_at(at + 1)),
                     redump_array_size(r, HPROF_OBJECT, len), redump_object_trace(r, at), len,
                     c ? c->source_name : "java.lang.Object[]", redump_id_at(at + ARRAY_CLASS));
    for (uint32_t i = 0; i < len; i++)
        hprof_text_element(r->how->text, i,
                           redump_object(r, redump_id_at(at + ARRAY_CLASS + ID + (size_t)i * ID)));
}

static void emit_text_primitive_array(struct redump *r, const uint8_t *at, size_t n)
{
    uint32_t len = redump_u4_at(at + ARRAY_LENGTH);
    unsigned type = at[ARRAY_TYPE];
    char name[16];
    snprintf(name, sizeof(name), "%s[]", hprof_type_name(type));
    hprof_text_array(r->how->text, redump_id_at(at + 1), redump_array_size(r, type, len),
                     redump_object_trace(r, at), len, name, 0);
}

static const struct visitor emit_text = {emit_text_root, emit_text_class, emit_text_instance,
                                         emit_text_object_array, emit_text_primitive_array};

void redump_emit(struct redump *r, struct cursor file)
{
    const struct hprof_redump *how = r->how;
    if (how->binary)
        emit_names(r);
    redump_visit(r, file, NULL, emit_record);
    if (how->binary) {
        if (!r->error)
            redump_emit_binary(r);
        hprof_dump_end(how->binary);
        redump_fail(r, hprof_error(how->binary));
    } else {
        hprof_text_heap_begin(how->text, r->totals.objects, r->totals.bytes, how->when);
        redump_visit(r, file, &emit_text, NULL);
        hprof_text_heap_end(how->text);
        redump_fail(r, how->text->error);
    }
}
