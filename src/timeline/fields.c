/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/fields.h"

#include "base/hash.h"
#include "profile/frame_role.h"

#include <stdio.h>
#include <string.h>

const struct rec_column loader_columns[FIELDS] = {
    [EVENT_THREAD] = {"eventThread", true},
    [STACK_TRACE] = {"stackTrace", true},
    [ADDRESS] = {"address", false},
    [MONITOR_CLASS] = {"monitorClass", true},
    [PARKED_CLASS] = {"parkedClass", true},
    [BLOCKER_CLASS] = {"blockerClass", true},
    [THREAD_CLASS] = {"threadClass", true},
    [PREVIOUS_OWNER] = {"previousOwner", true},
    [NOTIFIER] = {"notifier", true},
    [OWNER] = {"owner", true},
    [THREAD] = {"thread", true},
    [PARENT_THREAD] = {"parentThread", true},
    [CARRIER] = {"carrier", true},
    [OCCUPANT] = {"occupant", true},
    [TIMEOUT] = {"timeout", false},
    [UNTIL] = {"until", false},
    [TIMED_OUT] = {"timedOut", false},
    [TIME] = {"time", false},
    [TARGET] = {"target", false},
    [ALL] = {"all", false},
    [DAEMON] = {"daemon", false},
    [THROTTLED_TIME] = {"cpuThrottledTime", false},
};

static uint32_t *numbered(struct loader *l, void *vec, uint32_t number)
{
    VEC(uint32_t) *v = vec;
    if (number >= v->len && vec_extend(v, number + 1 - v->len) < 0) {
        l->error = -ENOMEM;
        return NULL;
    }
    return &v->data[number];
}

/* Returns a number that a function of the builder returned; TL_NONE after a failure. */
static uint32_t checked(struct loader *l, int64_t n)
{
    if (n < 0)
        l->error = (int)n;
    return n < 0 ? TL_NONE : (uint32_t)n;
}

uint32_t loader_string(struct loader *l, const char *s)
{
    return checked(l, timeline_string(l->b, s, strlen(s)));
}

uint32_t loader_thread(struct loader *l, const struct rec_thread *t)
{
    uint32_t *known = t ? numbered(l, &l->threads, t->number) : NULL;
    if (!known)
        return TL_NONE;
    if (*known)
        return *known - 1;
    uint64_t id = t->java_id > 0 ? (uint64_t)t->java_id : UINT64_C(1) << 62 | t->number;
    uint32_t n = checked(l, timeline_thread(l->b, id));
    if (n == TL_NONE)
        return TL_NONE;
    *known = n + 1;
    uint32_t name = loader_string(l, t->name);
    uint32_t group = t->group ? loader_string(l, t->group) : TL_NONE;
    struct tl_thread *to = timeline_thread_at(l->b, n);
    to->name = name;
    to->group = group;
    if (t->is_virtual)
        to->flags |= TL_THREAD_VIRTUAL | TL_THREAD_DAEMON;
    if (!t->java_name || (t->group && strcmp(t->group, "system") == 0) ||
        strcmp(t->name, "DestroyJavaVM") == 0 || strcmp(t->name, "JFR Shutdown Hook") == 0)
        to->flags |= TL_THREAD_SYSTEM;
    return n;
}

static int slot_of(const struct loader *l, enum field f)
{
    int slot = (int)l->row->plan->slot[f];
    return slot >= 0 && l->row->damaged ? REC_BY_NAME : slot;
}

int64_t field_number(const struct loader *l, enum field f)
{
    int slot = slot_of(l, f);
    if (likely(slot >= 0))
        return l->row->values[slot];
    return slot == REC_ABSENT ? 0 : rec_long(&l->e->object, loader_columns[f].name, 0);
}

int64_t field_ns(const struct loader *l, enum field f)
{
    int slot = slot_of(l, f);
    if (slot >= 0)
        return rec_value_ns(&l->e->object, &(struct rec_value){.field = l->row->plan->field[f],
                                                               .number = l->row->values[slot]});
    return slot == REC_ABSENT ? 0 : rec_ns(&l->e->object, loader_columns[f].name, 0);
}

/*
 * Returns the place of the result for an id, and stores in *ret_known whether it contains the
 * result.
 */
static struct field_lookup *answer(struct loader *l, const void *of, uint64_t id,
                                   const struct rec_chunk *chunk, bool *ret_known)
{
    uint64_t hash = (id ^ (uint64_t)(uintptr_t)of * UINT64_C(0x9e3779b97f4a7c15)) *
                    UINT64_C(0x9e3779b97f4a7c15);
    struct field_lookup *a = &l->answers[hash >> 51];
    *ret_known = a->of == of && a->id == id && a->chunk == chunk;
    return a;
}

/* Returns what a constant in a field stands for, which one of the functions below determines. */
static uint32_t constant_field(struct loader *l, enum field f,
                               uint32_t (*find)(struct loader *, enum field, int slot))
{
    int slot = slot_of(l, f);
    if (slot < 0)
        return slot == REC_ABSENT ? TL_NONE : find(l, f, slot);
    bool known;
    const void *of = l->row->plan->field[f]->type;
    uint64_t id = (uint64_t)l->row->values[slot];
    struct field_lookup *a = answer(l, of, id, l->e->object.chunk, &known);
    if (unlikely(!known)) {
        uint32_t number = find(l, f, slot);
        *a = (struct field_lookup){of, l->e->object.chunk, id, number};
    }
    return a->number;
}

#define CONSTANT(what)                                                                    \
    static const struct rec_##what *what##_constant(const struct loader *l, enum field f, \
                                                    int slot)                             \
    {                                                                                     \
        if (slot < 0)                                                                     \
            return rec_##what(&l->e->object, loader_columns[f].name);                     \
        return rec_##what##_of(&l->e->object, l->row->plan->field[f],                     \
                               (uint64_t)l->row->values[slot]);                           \
    }
CONSTANT(thread)
CONSTANT(class)
CONSTANT(stack)
#undef CONSTANT

static uint32_t find_thread(struct loader *l, enum field f, int slot)
{
    return loader_thread(l, thread_constant(l, f, slot));
}

uint32_t field_thread(struct loader *l, enum field f)
{
    return constant_field(l, f, find_thread);
}

uint32_t field_thread_by_id(struct loader *l, enum field f)
{
    int64_t id = field_number(l, f);
    bool known;
    struct field_lookup *a = answer(l, l, (uint64_t)id, NULL, &known);
    if (!known) {
        uint32_t number = id > 0 ? checked(l, timeline_thread(l->b, (uint64_t)id)) : TL_NONE;
        *a = (struct field_lookup){l, NULL, (uint64_t)id, number};
    }
    return a->number;
}

static uint32_t find_class(struct loader *l, enum field f, int slot)
{
    const struct rec_class *c = class_constant(l, f, slot);
    uint32_t *known = c ? numbered(l, &l->classes, c->number) : NULL;
    if (!known)
        return TL_NONE;
    if (*known == 0)
        *known = loader_string(l, c->name) + 1;
    return *known - 1;
}

/*
 * Returns a text that names a condition by its owner, which is the class whose method awaits it;
 * for other objects returns `class`. java.util.concurrent uses the same classes of conditions in
 * all queues, pools and other classes.
 */
static uint32_t class_of_condition(struct loader *l, enum field f, uint64_t address, uint32_t class)
{
    static const char await[] = "Synchronizer$ConditionObject.await";
    const struct rec_class *c = rec_class(&l->e->object, loader_columns[f].name);
    if (!c || !strstr(c->name, "Synchronizer$ConditionObject"))
        return class;
    const uint64_t *known = map_get(&l->conditions, address);
    if (known)
        return (uint32_t)*known;
    const struct rec_stack *s = rec_stack(&l->e->object, loader_columns[STACK_TRACE].name);
    const char *owner = NULL, *dot = NULL;
    for (uint32_t i = 0; s && i + 1 < s->n; i++)
        if (strstr(s->frames[i].method->full, await))
            owner = s->frames[i + 1].method->full;
    if (owner)
        dot = strrchr(owner, '.');
    if (!dot)
        return class;
    char label[512];
    snprintf(label, sizeof(label), "condition of %.*s", (int)(dot - owner), owner);
    uint32_t number = loader_string(l, label);
    if (number != TL_NONE && map_put(&l->conditions, address, number) < 0)
        l->error = -ENOMEM;
    return number == TL_NONE ? class : number;
}

uint32_t field_object(struct loader *l, enum field class_field)
{
    uint32_t class = constant_field(l, class_field, find_class);
    uint64_t address = (uint64_t)field_number(l, ADDRESS);
    if (class == TL_NONE)
        return TL_NONE;
    bool known;
    const void *of = (const void *)((uintptr_t) class + 1);
    struct field_lookup *a = answer(l, of, address, NULL, &known);
    if (!known) {
        uint32_t called = class_of_condition(l, class_field, address, class);
        uint32_t number = checked(l, timeline_object(l->b, address, called));
        *a = (struct field_lookup){of, NULL, address, number};
    }
    return a->number;
}

static uint32_t method_of(struct loader *l, const struct rec_method *m)
{
    uint32_t *known = numbered(l, &l->methods, m->number);
    if (!known)
        return TL_NONE;
    if (*known == 0)
        *known = loader_string(l, m->full) + 1;
    return *known - 1;
}

static uint32_t find_stack(struct loader *l, enum field f, int slot)
{
    const struct rec_stack *s = stack_constant(l, f, slot);
    if (!s || s->n == 0)
        return TL_NONE;
    uint64_t key = hash_u64((uint64_t)(uintptr_t)l->e->object.chunk ^ hash_u64(s->id));
    const uint64_t *known = map_get(&l->stacks, key);
    if (known)
        return (uint32_t)*known;
    struct tl_frame frames[1024];
    uint32_t n = 0;
    for (uint32_t i = frame_role_probe_frames(s); i < s->n && n < ARRAY_SIZE(frames); i++) {
        const struct rec_frame *at = &s->frames[i];
        if (frame_role_is_of_agent(at->method))
            continue;
        memset(&frames[n], 0, sizeof(frames[n]));
        frames[n].method = method_of(l, at->method);
        frames[n++].line = at->line > 0 ? (uint32_t)at->line : 0;
    }
    if (!n)
        return TL_NONE;
    uint32_t stack = checked(l, timeline_stack(l->b, frames, n));
    if (stack != TL_NONE && map_put(&l->stacks, key, stack) < 0)
        l->error = -ENOMEM;
    return stack;
}

uint32_t field_stack(struct loader *l)
{
    return constant_field(l, STACK_TRACE, find_stack);
}

uint32_t field_stack_answer(struct loader *l, enum stack_question question,
                            uint32_t (*decide)(const struct rec_stack *))
{
    int slot = slot_of(l, STACK_TRACE);
    if (slot < 0)
        return decide(stack_constant(l, STACK_TRACE, slot));
    const struct rec_field *f = l->row->plan->field[STACK_TRACE];
    const void *of = (const char *)f->type + question;
    uint64_t id = (uint64_t)l->row->values[slot];
    bool known;
    struct field_lookup *a = answer(l, of, id, l->e->object.chunk, &known);
    if (unlikely(!known))
        *a = (struct field_lookup){of, l->e->object.chunk, id,
                                   decide(stack_constant(l, STACK_TRACE, slot))};
    return a->number;
}
