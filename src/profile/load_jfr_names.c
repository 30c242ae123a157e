/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/load_jfr_names.h"

#include "base/generated_name.h"
#include "base/pattern.h"
#include "profile/frame_role.h"

enum { ANSWERS_MAX = 1 << 22 };

#define TRUNCATED "[truncated]"

/* Names of frame types in JFR; the last ones occur only in recordings of jvmscope. */
static const struct {
    const char *name;
    enum frame_kind kind;
} kinds[] = {
    {"Interpreted", FRAME_INTERPRETED},
    {"JIT compiled", FRAME_COMPILED},
    {"C1 compiled", FRAME_COMPILED},
    {"Inlined", FRAME_INLINED},
    {"Native", FRAME_NATIVE},
    {"C++", FRAME_NATIVE},
    {"Kernel", FRAME_KERNEL},
    {"Stub", FRAME_STUB},
    {"VM", FRAME_NATIVE},
};

/* ---- cached results ---- */

/* Drops the results of another chunk. */
static void answers_begin(struct answers *all, const struct rec_chunk *chunk,
                          const struct rec_type *type)
{
    if (all->chunk == chunk && all->type == type)
        return;
    all->chunk = chunk;
    all->type = type;
    all->round++;
    map_clear(&all->far);
}

static int answers_put(struct answers *all, uint64_t id, uint32_t number)
{
    if (id >= ANSWERS_MAX)
        return map_put(&all->far, id, number);
    if (id >= all->of_id.len && vec_extend(&all->of_id, id + 1 - all->of_id.len) < 0)
        return -ENOMEM;
    all->of_id.data[id] = (struct name_lookup){all->round, number};
    return 0;
}

/* ---- methods and frames ---- */

/* Returns whether a method is a mark: a text in brackets, as in the other formats. */
static bool is_mark(const struct rec_method *m)
{
    size_t len = strlen(m->name);
    return (!m->class || !*m->class->name) && len > 1 && m->name[0] == '[' &&
           m->name[len - 1] == ']';
}

static int64_t add_method(struct names *n, const struct rec_method *m)
{
    if (m->number >= n->methods.len && vec_extend(&n->methods, m->number + 1 - n->methods.len) < 0)
        return -ENOMEM;
    struct name_method *known = &n->methods.data[m->number];
    const char *class_text = m->class ? m->class->name : "";
    const char *signature_text = m->descriptor ? m->descriptor : "";
    int64_t class_name = profile_string(n->p, class_text, strlen(class_text));
    int64_t name = profile_string(n->p, m->name, strlen(m->name));
    int64_t signature = profile_string(n->p, signature_text, strlen(signature_text));
    if (class_name < 0 || name < 0 || signature < 0)
        return -ENOMEM;
    int64_t number =
        profile_method(n->p, (uint32_t)class_name, (uint32_t)name, (uint32_t)signature, 0);
    if (number >= 0)
        *known = (struct name_method){
            (uint32_t)number + 1, is_mark(m), generated_name_is_agents(m->full, strlen(m->full)),
            frame_role_is_of_agent(m), generated_name_is_vms_library(m->full, strlen(m->full))};
    return number;
}

static inline int64_t method_of(struct names *n, const struct rec_method *m)
{
    if (likely(m->number < n->methods.len && n->methods.data[m->number].number))
        return n->methods.data[m->number].number - 1;
    return add_method(n, m);
}

static enum frame_kind kind_named(const char *type)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(type, kinds[i].name) == 0)
            return kinds[i].kind;
    return FRAME_JAVA;
}

/*
 * Returns the kind of a frame type. Each text is compared only once, unless the recording has more
 * texts than the table has entries.
 */
static enum frame_kind kind_of_type(struct names *n, const char *type)
{
    if (!type)
        return FRAME_JAVA;
    for (size_t i = 0; i < ARRAY_SIZE(n->types); i++) {
        struct frame_type *known = &n->types[((uintptr_t)type / 8 + i) % ARRAY_SIZE(n->types)];
        if (likely(known->text == type))
            return known->kind;
        if (!known->text) {
            *known = (struct frame_type){type, kind_named(type)};
            return known->kind;
        }
    }
    return kind_named(type);
}

/*
 * Collects the methods and lines of a stack down to the first frame of our agent's classes, which
 * no stack shows, or to a function of its library that the VM called for an event; and without the
 * other functions of the library, which stand in front of natives and JNI functions. The outermost
 * frame is the first. *ret_left is the number of innermost frames that belong to the agent;
 * *ret_callback, whether the VM called them. Returns 0 or an error.
 */
static int collect_places(struct names *n, const struct rec_stack *s, uint32_t *ret_left,
                          bool *ret_callback)
{
    bool by_vm = false; /* whether the VM called the frame */
    *ret_left = 0;
    *ret_callback = false;
    vec_clear(&n->places);
    if (vec_reserve(&n->places, s->n) < 0)
        return -ENOMEM;
    for (uint32_t i = s->n; i-- > 0;) {
        const struct rec_frame *f = &s->frames[i];
        int64_t method = method_of(n, f->method);
        if (method < 0)
            return (int)method;
        const struct name_method *m = &n->methods.data[f->method->number];
        bool callback = m->is_library && by_vm;
        if (m->is_agents || callback) {
            *ret_left = i + 1;
            *ret_callback = callback;
            break;
        }
        by_vm = m->is_vms;
        if (m->is_library)
            continue;
        struct name_place place = {(uint32_t)method, f->line,
                                   m->is_mark ? FRAME_MARK : kind_of_type(n, f->type)};
        profile_frame_soon(n->p, place.method, place.line, place.kind);
        n->places.data[n->places.len++] = place;
    }
    return 0;
}

/*
 * Returns whether a thread runs or waits for toString(), or ends the recording, by its n innermost
 * frames. That takes much longer than other probes, so it does not count as the time of the method
 * that was changed.
 */
static bool is_profilers(const struct rec_stack *s, uint32_t n)
{
    bool is = false;
    for (uint32_t i = 0; i < n && !is; i++) {
        const char *name = s->frames[i].method->full;
        is = generated_name_is_profilers(name, strlen(name));
    }
    return is;
}

/*
 * Finds the profile's frames for a stack. Their places in the index are fetched into the cache
 * first.
 */
static int collect_frames(struct names *n, const struct rec_stack *s)
{
    uint32_t left;
    bool callback;
    int r = collect_places(n, s, &left, &callback);
    vec_clear(&n->frames);
    if (r == 0)
        r = vec_reserve(&n->frames, n->places.len + 1);
    for (size_t i = 0; r == 0 && i < n->places.len; i++) {
        const struct name_place *at = &n->places.data[i];
        int64_t frame = profile_frame(n->p, at->method, at->line, at->kind);
        if (frame < 0)
            return (int)frame;
        n->frames.data[n->frames.len++] = (uint32_t)frame;
    }
    if (r < 0 || (!callback && !is_profilers(s, left)))
        return r;
    int64_t own = profile_own_frame(n->p);
    if (own < 0)
        return (int)own;
    n->frames.data[n->frames.len++] = (uint32_t)own;
    return 0;
}

/* ---- stacks ---- */

/* Returns whether a node's stack consists of the frames that were collected. */
static bool is_node_of(const struct names *n, uint32_t node, bool truncated)
{
    const struct profile *p = n->p;
    for (size_t i = n->frames.len; i-- > 0; node = p->nodes.data[node].parent)
        if (!node || p->nodes.data[node].frame != n->frames.data[i])
            return false;
    if (truncated && node) {
        const struct profile_frame *f = profile_node_frame(p, node);
        return f->kind == FRAME_MARK && p->nodes.data[node].parent == 0 &&
               str_is(profile_text(p, p->methods.data[f->method].label), TRUNCATED);
    }
    return !node && !truncated;
}

static uint64_t hash_of(const struct names *n, bool truncated)
{
    uint64_t hash = truncated;
    for (size_t i = 0; i < n->frames.len; i++) {
        hash = (hash ^ n->frames.data[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static int64_t mark_below(struct names *n, int64_t node, const char *text)
{
    int64_t frame = node < 0 ? node : profile_mark(n->p, text);
    return frame < 0 ? frame : profile_node(n->p, (uint32_t)node, (uint32_t)frame);
}

static int64_t add_frames(struct names *n, const struct rec_stack *s)
{
    int64_t node = s->truncated ? mark_below(n, 0, TRUNCATED) : 0;
    if (s->n && !n->frames.len && node >= 0)
        node = profile_own_node(n->p, (uint32_t)node);
    for (size_t i = 0; i < n->frames.len && node >= 0; i++)
        node = profile_node(n->p, (uint32_t)node, n->frames.data[i]);
    return node;
}

/*
 * Returns the node of a stack. Each chunk repeats the stacks that it needs, so most of them have a
 * node from an earlier chunk.
 */
static int64_t node_of_frames(struct names *n, const struct rec_stack *s)
{
    int r = collect_frames(n, s);
    if (r < 0)
        return r;
    if (!n->frames.len)
        return add_frames(n, s);
    uint64_t *known = map_at(&n->nodes, hash_of(n, s->truncated), 0, NULL);
    if (!known)
        return -ENOMEM;
    if (*known && is_node_of(n, (uint32_t)*known, s->truncated))
        return (int64_t)*known;
    int64_t node = add_frames(n, s);
    if (node > 0)
        *known = (uint64_t)node;
    return node;
}

int64_t names_stack(struct names *n, const struct rec_object *o, const struct rec_field *f,
                    uint64_t id)
{
    uint32_t number;
    if (likely(answers_have(&n->stacks, o->chunk, f->type, id, &number)))
        return number;
    answers_begin(&n->stacks, o->chunk, f->type);
    const uint64_t *far = id >= ANSWERS_MAX ? map_get(&n->stacks.far, id) : NULL;
    if (far)
        return (int64_t)*far;
    uint64_t key = rec_stack_key(o, f, id);
    const uint64_t *same = key ? map_get(&n->by_key, key) : NULL;
    const struct rec_stack *s = same ? NULL : rec_stack_read(o, f, id, &n->room);
    int64_t node = same ? (int64_t)*same : s ? node_of_frames(n, s) : 0;
    if (key && s && node >= 0 && map_put(&n->by_key, key, (uint64_t)node) < 0)
        return -ENOMEM;
    return node >= 0 && answers_put(&n->stacks, id, (uint32_t)node) < 0 ? -ENOMEM : node;
}

int64_t names_stack_by_name(struct names *n, const struct rec_object *o, const char *name)
{
    const struct rec_stack *s = rec_stack(o, name);
    if (!s)
        return 0;
    if (n->chunk != o->chunk) {
        map_clear(&n->stack_nodes);
        n->chunk = o->chunk;
    }
    uint64_t *known = map_get(&n->stack_nodes, s->id);
    if (known)
        return (int64_t)*known;
    int64_t node = node_of_frames(n, s);
    return node >= 0 && map_put(&n->stack_nodes, s->id, (uint64_t)node) < 0 ? -ENOMEM : node;
}

/* ---- threads ---- */

/* Stores what sums must know of a thread. */
static int describe_thread(struct names *n, uint32_t number)
{
    while (n->of_thread.len <= number) {
        uint32_t i = (uint32_t)n->of_thread.len;
        struct str name = profile_text(n->p, n->p->threads.data[i].name);
        const char *pattern = n->filter ? n->filter->thread : NULL;
        struct sum_thread t = {.counts = !pattern || pattern_match(pattern, name.data, name.len)};
        uint32_t *stand_in = &n->stand_ins[frame_role_is_vm_thread(name.data)];
        if (t.counts && !*stand_in)
            *stand_in = i + 1;
        t.stand_in = *stand_in - 1;
        if (vec_push(&n->of_thread, t) < 0)
            return -ENOMEM;
    }
    return 0;
}

int64_t names_thread_of(struct names *n, const struct rec_thread *t)
{
    if (!t) {
        int64_t number = profile_thread(n->p, UINT64_MAX, "", 0);
        return number >= 0 && describe_thread(n, (uint32_t)number) < 0 ? -ENOMEM : number;
    }
    if (t->number >= n->thread_numbers.len &&
        vec_extend(&n->thread_numbers, t->number + 1 - n->thread_numbers.len) < 0)
        return -ENOMEM;
    uint32_t *known = &n->thread_numbers.data[t->number];
    if (*known)
        return *known - 1;
    int64_t number = profile_thread(n->p, t->number, t->name, strlen(t->name));
    if (number < 0)
        return number;
    n->p->threads.data[number].id = t->java_id > 0 ? (uint64_t)t->java_id : (uint64_t)t->os_id;
    *known = (uint32_t)number + 1;
    return describe_thread(n, (uint32_t)number) < 0 ? -ENOMEM : number;
}

int64_t names_thread(struct names *n, const struct rec_object *o, const struct rec_field *f,
                     uint64_t id)
{
    uint32_t number;
    if (likely(answers_have(&n->threads, o->chunk, f->type, id, &number)))
        return number;
    answers_begin(&n->threads, o->chunk, f->type);
    int64_t thread = names_thread_of(n, rec_thread_of(o, f, id));
    if (thread >= 0 && id < ANSWERS_MAX && answers_put(&n->threads, id, (uint32_t)thread) < 0)
        return -ENOMEM;
    return thread;
}

static void answers_release(struct answers *a)
{
    vec_release(&a->of_id);
    map_release(&a->far);
}

void load_names_release(struct names *n)
{
    answers_release(&n->stacks);
    answers_release(&n->threads);
    map_release(&n->nodes);
    map_release(&n->by_key);
    map_release(&n->stack_nodes);
    vec_release(&n->methods);
    vec_release(&n->thread_numbers);
    vec_release(&n->of_thread);
    rec_stack_room_release(&n->room);
    vec_release(&n->places);
    vec_release(&n->frames);
}
