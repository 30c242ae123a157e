/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/otlp.h"

#include "base/hash.h"
#include "base/protobuf.h"
#include "wire/otlp_fields.h"

#include <errno.h>
#include <stdlib.h>

enum { LIMIT_PART = 1 << 30 };

/* Numbers of the batch's strings. */
struct function {
    uint32_t name, signature, file;
};

/*
 * Tables of the dictionary. Functions are stored by their bytes in a pool, which stores equal ones
 * once. Attributes are stored in the same way; their bytes are the number of the key in the table
 * and the value's text. Locations are the batch's frames, and links its links; stacks are the nodes
 * of samples. Element 0 of each table is the zero value.
 */
struct writing {
    const struct wire_batch *b;
    struct strpool strings, functions, attributes;
    struct buf attribute;
    VEC(uint32_t) string_of, stack_of; /* by number in the batch: the place + 1; 0: none yet */
    VEC(uint32_t) stacks;              /* nodes */
    struct buf dictionary, part, inner, list;
    int error;
};

static int64_t note(struct writing *w, int64_t n)
{
    if (n < 0)
        w->error = (int)n;
    return MAX(n, 0);
}

static uint64_t add_text(struct writing *w, const char *text, size_t len)
{
    return (uint64_t)note(w, strpool_add(&w->strings, text, len));
}

static uint64_t string_of(struct writing *w, uint32_t number)
{
    uint32_t *known = &w->string_of.data[number];
    struct str s = wire_text(w->b, number);
    if (!*known)
        *known = (uint32_t)add_text(w, s.data, s.len) + 1;
    return *known - 1;
}

static uint64_t attribute_of(struct writing *w, struct str key, struct str value)
{
    uint32_t k = (uint32_t)add_text(w, key.data, key.len);
    buf_clear(&w->attribute);
    buf_bytes(&w->attribute, &k, sizeof(k));
    buf_bytes(&w->attribute, value.data, value.len);
    if (buf_error(&w->attribute))
        w->error = buf_error(&w->attribute);
    return (uint64_t)note(w, strpool_add(&w->attributes, buf_str(&w->attribute), w->attribute.len));
}

static uint64_t stack_of(struct writing *w, uint32_t node)
{
    uint32_t *known = &w->stack_of.data[node];
    if (!*known) {
        if (vec_push(&w->stacks, node) < 0)
            w->error = -ENOMEM;
        *known = (uint32_t)w->stacks.len + 1; /* the first one is the empty stack */
    }
    return *known - 1;
}

/* Writes a list of indices of attributes as a packed field. */
static void put_labels(struct writing *w, struct buf *to, unsigned field, uint32_t set)
{
    struct wire_label_set s = w->b->sets.data[set];
    if (!s.len)
        return;
    for (uint32_t i = 0; i < s.len; i++) {
        struct wire_label l = w->b->labels.data[s.first + i];
        buf_varint(&w->list, attribute_of(w, wire_text(w->b, l.key), wire_text(w->b, l.value)));
    }
    protobuf_put_part(to, field, &w->list);
}

static void put_type(struct writing *w, struct buf *to, unsigned field, struct wire_type type)
{
    protobuf_put_nonzero(&w->list, VALUE_TYPE, string_of(w, type.name));
    protobuf_put_nonzero(&w->list, VALUE_UNIT, string_of(w, type.unit));
    protobuf_put_part(to, field, &w->list);
}

/* ---- samples ---- */

static int compare_samples(const void *a, const void *b)
{
    const struct wire_sample *x = a, *y = b;
#define BY(member)              \
    if (x->member != y->member) \
    return x->member < y->member ? -1 : 1
    BY(type);
    BY(node);
    BY(labels);
    BY(link);
    BY(time_ns);
    BY(value);
#undef BY
    return 0;
}

static bool is_of_one(const struct wire_sample *a, const struct wire_sample *b)
{
    return a->type == b->type && a->node == b->node && a->labels == b->labels &&
           a->link == b->link && !a->time_ns == !b->time_ns;
}

static int64_t sum_of(const struct wire_sample *s, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(sum, s[i].value, &sum))
            return INT64_MAX;
    return sum;
}

/* Writes the samples of a stack as one sample; those without a time are added up. */
static void put_sample(struct writing *w, struct buf *to, const struct wire_sample *s, size_t n)
{
    bool counts = s->time_ns != 0;
    for (size_t i = 0; i < n; i++)
        counts &= s[i].value == 1;
    protobuf_put_nonzero(&w->inner, SAMPLE_STACK, s->node ? stack_of(w, s->node) : 0);
    put_labels(w, &w->inner, SAMPLE_ATTRIBUTES, s->labels);
    protobuf_put_nonzero(&w->inner, SAMPLE_LINK, s->link);
    if (!s->time_ns)
        buf_varint(&w->list, (uint64_t)sum_of(s, n));
    for (size_t i = 0; i < n && s->time_ns && !counts; i++)
        buf_varint(&w->list, (uint64_t)s[i].value);
    if (w->list.len)
        protobuf_put_part(&w->inner, SAMPLE_VALUES, &w->list);
    for (size_t i = 0; i < n && s->time_ns; i++)
        protobuf_put_le64(&w->list, s[i].time_ns);
    if (w->list.len)
        protobuf_put_part(&w->inner, SAMPLE_TIMES, &w->list);
    protobuf_put_part(to, PROFILE_SAMPLES, &w->inner);
}

/*
 * Computes an id from the contents of a profile, so that a receiver recognizes a profile that it
 * gets twice. The same recording gives the same numbers of stacks and labels.
 */
static void make_id(const struct wire_batch *b, const struct wire_profile *p,
                    const struct wire_sample *s, size_t n, uint8_t ret[16])
{
    struct str type = wire_text(b, p->types.data[s->type].name);
    struct wire_label_set resource = b->sets.data[p->resource];
    uint64_t h[2] = {hash_bytes(type.data, type.len) ^ p->start_ns,
                     hash_u64(p->duration_ns ^ n << 40)};
    for (uint32_t i = 0; i < resource.len; i++) {
        struct str value = wire_text(b, b->labels.data[resource.first + i].value);
        h[0] = hash_u64(h[0] ^ hash_bytes(value.data, value.len));
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t x = hash_bytes(&s[i], sizeof(s[i]));
        h[0] = hash_u64(h[0] ^ x);
        h[1] = hash_u64(h[1] + x);
    }
    memcpy(ret, h, 16);
}

static void put_id(struct writing *w, const struct wire_profile *p, const struct wire_sample *s,
                   size_t n)
{
    static const uint8_t none[sizeof(p->id)];
    uint8_t id[sizeof(p->id)];
    memcpy(id, p->id, sizeof(id));
    if (memcmp(id, none, sizeof(id)) == 0 || p->types.len > 1)
        make_id(w->b, p, s, n, id);
    protobuf_put_bytes(&w->part, PROFILE_ID, id, sizeof(id));
}

/* Writes the profile of one type. */
static void put_profile(struct writing *w, struct buf *to, const struct wire_profile *p,
                        const struct wire_sample *s, size_t n)
{
    put_type(w, &w->part, PROFILE_SAMPLE_TYPE, p->types.data[s->type]);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && is_of_one(&s[i], &s[end]);)
            end++;
        put_sample(w, &w->part, s + i, end - i);
    }
    protobuf_put_fixed64(&w->part, PROFILE_TIME, p->start_ns);
    protobuf_put_nonzero(&w->part, PROFILE_DURATION, p->duration_ns);
    if (p->period) {
        put_type(w, &w->part, PROFILE_PERIOD_TYPE, p->period_type);
        protobuf_put_number(&w->part, PROFILE_PERIOD, p->period);
    }
    put_id(w, p, s, n);
    put_labels(w, &w->part, PROFILE_ATTRIBUTES, p->labels);
    protobuf_put_part(to, SCOPE_PROFILES_PROFILES, &w->part);
}

/* OTLP has a profile for each type. */
static int put_types(struct writing *w, struct buf *to, const struct wire_profile *p)
{
    if (!p->samples.len)
        return 0;
    struct wire_sample *s = malloc(p->samples.len * sizeof(*s));
    if (!s)
        return -ENOMEM;
    memcpy(s, p->samples.data, p->samples.len * sizeof(*s));
    qsort(s, p->samples.len, sizeof(*s), compare_samples);
    for (size_t i = 0, end; i < p->samples.len; i = end) {
        for (end = i + 1; end < p->samples.len && s[end].type == s[i].type;)
            end++;
        put_profile(w, to, p, s + i, end - i);
    }
    free(s);
    return w->error;
}

/* ---- resources ---- */

static void put_text_value(struct buf *to, unsigned field, struct str text, struct buf *scratch)
{
    protobuf_put_bytes(scratch, VALUE_STRING, text.data, text.len);
    protobuf_put_part(to, field, scratch);
}

static void put_resource(struct writing *w, struct buf *to, uint32_t set)
{
    struct wire_label_set s = w->b->sets.data[set];
    for (uint32_t i = 0; i < s.len; i++) {
        struct wire_label l = w->b->labels.data[s.first + i];
        struct str key = wire_text(w->b, l.key);
        protobuf_put_bytes(&w->inner, PAIR_KEY, key.data, key.len);
        put_text_value(&w->inner, PAIR_VALUE, wire_text(w->b, l.value), &w->list);
        protobuf_put_part(&w->part, RESOURCE_ATTRIBUTES, &w->inner);
    }
    protobuf_put_part(to, RESOURCE_PROFILES_RESOURCE, &w->part);
}

static int put_resource_profiles(struct writing *w, struct buf *to, uint32_t resource)
{
    struct buf scope = BUF(LIMIT_PART), all = BUF(LIMIT_PART);
    int r = 0;
    put_resource(w, &all, resource);
    protobuf_put_bytes(&w->inner, SCOPE_NAME, "jvmscope", strlen("jvmscope"));
    protobuf_put_bytes(&w->inner, SCOPE_VERSION, JVMSCOPE_VERSION, strlen(JVMSCOPE_VERSION));
    protobuf_put_part(&scope, SCOPE_PROFILES_SCOPE, &w->inner);
    for (size_t i = 0; r == 0 && i < w->b->profiles.len; i++)
        if (w->b->profiles.data[i].resource == resource)
            r = put_types(w, &scope, &w->b->profiles.data[i]);
    protobuf_put_part(&all, RESOURCE_PROFILES_SCOPE_PROFILES, &scope);
    protobuf_put_part(to, DATA_RESOURCE_PROFILES, &all);
    buf_release(&scope);
    buf_release(&all);
    return r;
}

/* ---- the dictionary ---- */

/* OpenTelemetry's names for kinds of frames, of which jvmscope has more. */
static const struct {
    const char *kind, *type;
} kinds[] = {
    {"java", "jvm"},    {"interpreted", "jvm"}, {"compiled", "jvm"},
    {"inlined", "jvm"}, {"stub", "jvm"},        {"mark", ""},
};

static void put_kind(struct writing *w, struct str kind)
{
    const char *type = NULL;
    if (!kind.len)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(kinds) && !type; i++)
        type = str_is(kind, kinds[i].kind) ? kinds[i].type : NULL;
    struct str name = type ? (struct str){type, strlen(type)} : kind;
    if (name.len)
        buf_varint(&w->list, attribute_of(w, (struct str){FRAME_TYPE, strlen(FRAME_TYPE)}, name));
    if (type)
        buf_varint(&w->list, attribute_of(w, (struct str){FRAME_KIND, strlen(FRAME_KIND)}, kind));
    protobuf_put_part(&w->part, LOCATION_ATTRIBUTES, &w->list);
}

static void put_locations(struct writing *w)
{
    const struct wire_batch *b = w->b;
    protobuf_put_bytes(&w->dictionary, DICTIONARY_LOCATION, NULL, 0);
    for (size_t i = 0; i < b->frames.len; i++) {
        const struct wire_frame *f = &b->frames.data[i];
        struct function function = {f->name, f->signature, f->file};
        int64_t n = strpool_add(&w->functions, (const char *)&function, sizeof(function));
        protobuf_put_nonzero(&w->inner, LINE_FUNCTION, (uint64_t)note(w, n));
        protobuf_put_nonzero(&w->inner, LINE_LINE, (uint64_t)f->line);
        protobuf_put_part(&w->part, LOCATION_LINES, &w->inner);
        put_kind(w, wire_text(b, f->kind));
        protobuf_put_part(&w->dictionary, DICTIONARY_LOCATION, &w->part);
    }
}

static void put_functions(struct writing *w)
{
    const struct wire_batch *b = w->b;
    for (size_t i = 0; i < w->functions.strings.len; i++) {
        struct function f;
        memcpy(&f, strpool_get(&w->functions, i).data, sizeof(f));
        struct str name = wire_text(b, f.name), signature = wire_text(b, f.signature);
        buf_bytes(&w->list, name.data, name.len);
        buf_bytes(&w->list, signature.data, signature.len);
        protobuf_put_nonzero(&w->part, FUNCTION_NAME, string_of(w, f.name));
        if (signature.len)
            protobuf_put_number(&w->part, FUNCTION_SYSTEM_NAME,
                                add_text(w, buf_str(&w->list), w->list.len));
        protobuf_put_nonzero(&w->part, FUNCTION_FILE, string_of(w, f.file));
        buf_clear(&w->list);
        protobuf_put_part(&w->dictionary, DICTIONARY_FUNCTION, &w->part);
    }
}

static void put_links(struct writing *w)
{
    protobuf_put_bytes(&w->dictionary, DICTIONARY_LINK, NULL, 0);
    for (size_t i = 1; i < w->b->links.len; i++) {
        const struct wire_link *l = &w->b->links.data[i];
        protobuf_put_bytes(&w->part, LINK_TRACE, l->trace, sizeof(l->trace));
        protobuf_put_bytes(&w->part, LINK_SPAN, l->span, sizeof(l->span));
        protobuf_put_part(&w->dictionary, DICTIONARY_LINK, &w->part);
    }
}

static void put_attributes(struct writing *w)
{
    protobuf_put_bytes(&w->dictionary, DICTIONARY_ATTRIBUTE, NULL, 0);
    for (size_t i = 1; i < w->attributes.strings.len; i++) {
        struct str s = strpool_get(&w->attributes, i);
        uint32_t key;
        memcpy(&key, s.data, sizeof(key));
        protobuf_put_nonzero(&w->part, ATTRIBUTE_KEY, key);
        put_text_value(&w->part, ATTRIBUTE_VALUE,
                       (struct str){s.data + sizeof(key), s.len - sizeof(key)}, &w->list);
        protobuf_put_part(&w->dictionary, DICTIONARY_ATTRIBUTE, &w->part);
    }
}

static void put_stacks(struct writing *w)
{
    const struct wire_batch *b = w->b;
    protobuf_put_bytes(&w->dictionary, DICTIONARY_STACK, NULL, 0);
    for (size_t i = 0; i < w->stacks.len; i++) {
        for (uint32_t n = w->stacks.data[i]; n; n = b->nodes.data[n].parent)
            buf_varint(&w->list, (uint64_t)b->nodes.data[n].frame + 1);
        protobuf_put_part(&w->part, STACK_LOCATIONS, &w->list);
        protobuf_put_part(&w->dictionary, DICTIONARY_STACK, &w->part);
    }
}

/* Written after the profiles, because these determine which elements are needed. */
static void put_dictionary(struct writing *w, struct buf *to)
{
    protobuf_put_bytes(&w->dictionary, DICTIONARY_MAPPING, NULL, 0);
    put_locations(w);
    put_functions(w);
    put_links(w);
    put_attributes(w);
    put_stacks(w);
    for (size_t i = 0; i < w->strings.strings.len; i++) {
        struct str s = strpool_get(&w->strings, i);
        protobuf_put_bytes(&w->dictionary, DICTIONARY_STRING, s.data, s.len);
    }
    protobuf_put_part(to, DATA_DICTIONARY, &w->dictionary);
}

/* Adds element 0 of the tables that are pools. */
static int begin(struct writing *w)
{
    static const struct function none;
    static const uint32_t no_key;
    note(w, strpool_add(&w->strings, "", 0));
    note(w, strpool_add(&w->functions, (const char *)&none, sizeof(none)));
    note(w, strpool_add(&w->attributes, (const char *)&no_key, sizeof(no_key)));
    if (vec_extend(&w->string_of, w->b->strings.strings.len + 1) < 0 ||
        vec_extend(&w->stack_of, w->b->nodes.len + 1) < 0)
        w->error = -ENOMEM;
    return w->error;
}

/* Returns whether no earlier profile has the same resource. */
static bool is_first_of_resource(const struct wire_batch *b, size_t profile)
{
    for (size_t i = 0; i < profile; i++)
        if (b->profiles.data[i].resource == b->profiles.data[profile].resource)
            return false;
    return true;
}

int otlp_encode(const struct wire_batch *b, struct buf *to)
{
    struct writing w = {.b = b,
                        .attribute = BUF(LIMIT_PART),
                        .dictionary = BUF(LIMIT_PART),
                        .part = BUF(LIMIT_PART),
                        .inner = BUF(LIMIT_PART),
                        .list = BUF(LIMIT_PART)};
    int r = begin(&w);
    for (size_t i = 0; r == 0 && i < b->profiles.len; i++)
        if (is_first_of_resource(b, i))
            r = put_resource_profiles(&w, to, b->profiles.data[i].resource);
    if (r == 0)
        put_dictionary(&w, to);
    if (r == 0)
        r = w.error ? w.error : buf_error(to);
    strpool_release(&w.strings);
    strpool_release(&w.functions);
    strpool_release(&w.attributes);
    vec_release(&w.string_of);
    vec_release(&w.stack_of);
    vec_release(&w.stacks);
    buf_release(&w.attribute);
    buf_release(&w.dictionary);
    buf_release(&w.part);
    buf_release(&w.inner);
    buf_release(&w.list);
    return r;
}

enum { ANSWER_PARTIAL_SUCCESS = 1 };

enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE };

void otlp_encode_answer(uint64_t rejected, const char *why, struct buf *to)
{
    struct buf part = BUF(1 << 16);
    protobuf_put_nonzero(&part, PARTIAL_REJECTED, rejected);
    if (why)
        protobuf_put_bytes(&part, PARTIAL_MESSAGE, why, strlen(why));
    if (part.len)
        protobuf_put_part(to, ANSWER_PARTIAL_SUCCESS, &part);
    buf_release(&part);
}
