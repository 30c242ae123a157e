/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace=PATTERN: calls with their arguments and results. Threads write into rings (trace_ring.h); ten times a second the
 * agent's thread pairs entries with exits, applies the condition, and writes each call as one jvmscope.Call event
 * (doc/format.md).
 */
#include "agent/capture/method_trace.h"

#include "agent/capture/trace_condition.h"
#include "agent/capture/trace_methods.h"
#include "agent/capture/trace_ring.h"
#include "agent/instrument.h"
#include "agent/probe_class.h"
#include "agent/session.h"
#include "agent/thread_table.h"
#include "base/json.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PROBE "java/lang/JvmscopeTrace"

enum { RINGS_MAX = 1024, PENDING_MAX = 1 << 18, CLASSES_MAX = (1 << 14) + 2, VALUES_MAX = 16 << 10 };

static const struct jfr_type call_type = {
    .name = "jvmscope.Call",
    .label = "Method Call",
    .category = "jvmscope|Trace",
    .description = "A traced call, from entry to exit",
    .kind = JFR_EVENT,
    .has = JFR_DURATION,
    .fields = JFR_FIELDS(
        {"method", "Method", "java.lang.String", .description = "package.Class.name(signature)"},
        {"javaThreadId", "Java Thread Id", "long"}, {"thread", "Thread", "java.lang.String"},
        {"depth", "Depth", "int", .description = "Traced calls of the thread that this one is inside of"},
        {"caller", "Caller", "java.lang.String", .description = "The innermost of these, null when there is none"},
        {"arguments", "Arguments", "java.lang.String", .description = "JSON array; `this` comes first where there is one"},
        {"hasThis", "Has This", "boolean"},
        {"returned", "Returned", "java.lang.String", .description = "JSON; null for void and when it threw"},
        {"exception", "Exception", "java.lang.String", .description = "Its class, null when it returned"}),
};

/* A call that has begun: its record, copied. */
struct pending {
    struct trace_record *entry;
    struct pending *parent; /* valid while parent_call is pending */
    uint64_t parent_call;
    unsigned depth;
};

static struct {
    pthread_mutex_t lock; /* all but what the probes touch */
    struct traced_methods methods;
    struct trace_slot *slots;
    struct trace_ring *rings[RINGS_MAX];

    struct {
        uint64_t eetop;
        JNIEnv *env;
    } owners[RINGS_MAX]; /* of rings; eetop 0: nobody's */

    unsigned n_rings;
    char *classes[CLASSES_MAX];
    int64_t eetop, carrier, tid;
    jclass probe;
    uint32_t type;
    char *patterns;
    struct condition *condition;
    bool active;
    uint64_t limit, written, over_limit, without_entry, without_ring, dropped, false_condition;
    struct map pending; /* call -> struct pending * */
    struct map current; /* java thread id -> call */
    struct map names;   /* java thread id -> char *, of threads that have or had a ring */
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the probe's native methods, found by name in the library ---- */

#define NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeTrace_##name
NATIVE(jlong, constant)(JNIEnv *, jclass, jint);
NATIVE(jlong, newRing)(JNIEnv *, jclass, jlong);
NATIVE(void, newClass)(JNIEnv *, jclass, jclass, jint);

NATIVE(jlong, constant)(JNIEnv *jni, jclass class, jint which)
{
    const int64_t values[] = {(int64_t)(uintptr_t)trace.slots, trace.eetop, trace.carrier, trace.tid};
    return which >= 0 && which < (jint)ARRAY_SIZE(values) ? values[which] : 0;
}

/* A ring that nobody owns any more and that is empty, or a new one. */
static int free_ring(void)
{
    for (unsigned i = 0; i < trace.n_rings; i++) {
        if (!trace.owners[i].eetop && !trace_ring_peek(trace.rings[i]))
            return (int)i;
    }
    if (trace.n_rings == RINGS_MAX)
        return -ENOSPC;
    struct trace_ring *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r == MAP_FAILED)
        return -ENOMEM;
    r->calls = (uint64_t)(trace.n_rings + 1) << 40;
    trace.rings[trace.n_rings] = r;
    return (int)trace.n_rings++;
}

static void keep_name(const struct thread *t)
{
    uint64_t *at = t && t->name && t->java_id ? map_at(&trace.names, t->java_id, 0, NULL) : NULL;
    if (at) {
        free((char *)(uintptr_t)*at);
        *at = (uintptr_t)strdup(t->name);
    }
}

NATIVE(jlong, newRing)(JNIEnv *jni, jclass class, jlong eetop)
{
    struct trace_ring *ring = NULL;
    if (!eetop)
        return 0;
    struct thread *thread = threads_self(jni);
    pthread_mutex_lock(&trace.lock);
    keep_name(thread);
    struct trace_slot *slot = trace.active ? trace_slot_find(trace.slots, (uint64_t)eetop) : NULL;
    if (slot && atomic_load(&slot->eetop) == (uint64_t)eetop) {
        ring = slot->ring;
    } else {
        int i = slot ? free_ring() : -ENOSPC;
        if (i >= 0) {
            ring = trace.rings[i];
            trace.owners[i].eetop = (uint64_t)eetop;
            trace.owners[i].env = jni;
            slot->ring = ring;
            atomic_store(&slot->eetop, (uint64_t)eetop);
        }
        trace.without_ring += i < 0;
    }
    pthread_mutex_unlock(&trace.lock);
    return (jlong)(uintptr_t)ring;
}

NATIVE(void, newClass)(JNIEnv *jni, jclass class, jclass c, jint number)
{
    char *signature = NULL;
    if (number <= 0 || number >= CLASSES_MAX || (*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    pthread_mutex_lock(&trace.lock);
    free(trace.classes[number]);
    trace.classes[number] = strdup(signature);
    pthread_mutex_unlock(&trace.lock);
    vm_free(signature);
}

/* A thread that ends: its ring, once it is empty, and its slot may serve another one. */
static void thread_ended(struct thread *t, JNIEnv *jni)
{
    pthread_mutex_lock(&trace.lock);
    for (unsigned i = 0; i < trace.n_rings; i++) {
        if (trace.owners[i].env != jni || !trace.owners[i].eetop)
            continue;
        struct trace_slot *slot = trace_slot_find(trace.slots, trace.owners[i].eetop);
        if (slot && slot->ring == trace.rings[i])
            atomic_store(&slot->eetop, RING_VACATED);
        trace.owners[i].eetop = 0;
    }
    pthread_mutex_unlock(&trace.lock);
}

static const struct thread_listener listener = {.ended = thread_ended};

/* ---- values ---- */

/* "java.lang.String" or "int[]" of a class number into b. */
static void put_class(struct buf *b, uint32_t number)
{
    const char *s = number < CLASSES_MAX ? trace.classes[number] : NULL;
    static const char codes[] = "ZBCSIJFD";
    static const char *const names[] = {"boolean", "byte", "char", "short", "int", "long", "float", "double"};
    size_t dims = s ? strspn(s, "[") : 0;
    if (!s) {
        buf_string(b, "?");
        return;
    }
    const char *code = s[dims] ? strchr(codes, s[dims]) : NULL;
    if (dims && code)
        buf_string(b, names[code - codes]);
    else
        for (const char *p = s + dims + 1; *p && *p != ';'; p++)
            buf_u8(b, *p == '/' ? '.' : (uint8_t)*p);
    for (; dims; dims--)
        buf_string(b, "[]");
}

static void put_utf16(struct buf *b, const uint16_t *chars, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint16_t c = chars[i];
        /* Modified UTF-8, which the JSON writer understands. */
        if (c && c < 0x80) {
            buf_u8(b, (uint8_t)c);
        } else if (c < 0x800) {
            buf_u8(b, (uint8_t)(0xc0 | c >> 6));
            buf_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
        } else {
            buf_u8(b, (uint8_t)(0xe0 | c >> 12));
            buf_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
            buf_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
        }
    }
}

/* A value of a record taken apart. */
struct value {
    char type; /* of the descriptor; L for references */

    union {
        int64_t number;
        double real;
    };
    uint32_t hash, class;
    int64_t length; /* of a string or an array */
    const uint16_t *chars;
    uint32_t n_chars;
};

static bool is_class(uint32_t number, const char *signature)
{
    return number < CLASSES_MAX && trace.classes[number] && strcmp(trace.classes[number], signature) == 0;
}

/* Reads the value at *at of a type and passes it. False when the record ends before. */
static bool take_value(const uint8_t **at, const uint8_t *end, char type, struct value *ret)
{
    struct value v = {.type = type == '[' ? 'L' : type};
    if (end - *at < 8)
        return false;
    int64_t raw;
    memcpy(&raw, *at, 8);
    *at += 8;
    v.number = raw;
    if (type == 'F') {
        int32_t bits = (int32_t)raw;
        float f;
        memcpy(&f, &bits, 4);
        v.real = (double)f;
    } else if (v.type == 'L') {
        v.hash = (uint32_t)raw;
        v.class = (uint32_t)((uint64_t)raw >> 32);
        bool text = is_class(v.class, "Ljava/lang/String;");
        if (text || (v.class < CLASSES_MAX && trace.classes[v.class] && trace.classes[v.class][0] == '[')) {
            if (end - *at < 8)
                return false;
            memcpy(&raw, *at, 8);
            *at += 8;
            v.length = text ? (int32_t)raw : raw;
            v.n_chars = text ? (uint32_t)((uint64_t)raw >> 32) : 0;
            v.chars = (const uint16_t *)*at;
            uint32_t bytes = (v.n_chars + 3) / 4 * 8;
            if (v.n_chars > RING_TEXT_MAX || end - *at < (int64_t)bytes)
                return false;
            *at += bytes;
        }
    }
    *ret = v;
    return true;
}

static void put_reference(struct json *j, const struct value *v)
{
    _cleanup_(buf_release) struct buf text = BUF(4096);
    if (v->class == 0) {
        json_null(j);
        return;
    }
    if (is_class(v->class, "Ljava/lang/String;")) {
        put_utf16(&text, v->chars, v->n_chars);
        if (v->length > v->n_chars)
            buf_printf(&text, "... (%lld)", (long long)v->length);
    } else {
        size_t brackets;
        put_class(&text, v->class);
        /* The length goes into the first brackets: int[3][]. */
        char *open = trace.classes[v->class] && trace.classes[v->class][0] == '[' ? strchr(buf_str(&text), '[') : NULL;
        brackets = open ? (size_t)(open - (char *)text.data) : 0;
        if (open) {
            _cleanup_free_ char *rest = strdup(open + 1);
            text.len = brackets;
            buf_printf(&text, "[%lld%s", (long long)v->length, rest ? rest : "]");
        }
        buf_printf(&text, "@%x", v->hash);
    }
    json_string_n(j, (const char *)text.data, text.len);
}

static void put_value(struct json *j, const struct value *v)
{
    char text[48];
    switch (v->type) {
    case 'Z':
        json_bool(j, v->number != 0);
        break;
    case 'C': {
        _cleanup_(buf_release) struct buf b = BUF(16);
        uint16_t c = (uint16_t)v->number;
        put_utf16(&b, &c, 1);
        json_string_n(j, (const char *)b.data, b.len);
        break;
    }
    case 'F':
    case 'D':
        if (v->real - v->real == 0)
            json_double(j, v->real);
        else
            json_string(j, v->real != v->real ? "NaN" : v->real > 0 ? "Infinity" : "-Infinity");
        break;
    case 'L':
        put_reference(j, v);
        break;
    default:
        snprintf(text, sizeof(text), "%lld", (long long)v->number);
        if (v->number > (INT64_C(1) << 53) || v->number < -(INT64_C(1) << 53))
            json_string(j, text);
        else
            json_i64(j, v->number);
    }
}

/* ---- calls ---- */

/* A call that has ended, for the condition. */
struct ended {
    const struct traced_method *method;
    const struct trace_record *entry, *exit;
    unsigned depth;
    char text[RING_TEXT_MAX * 3 + 1];
};

static char return_type(const struct traced_method *m)
{
    return strchr(m->descriptor, ')')[1];
}

static bool argument(const struct ended *c, unsigned nth, struct value *ret)
{
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    struct value v;
    unsigned slots;
    if (c->method->has_this && !take_value(&at, end, 'L', &v))
        return false;
    for (size_t p = 1, len; (len = descriptor_next(d, p, &slots)); p += len) {
        if (!take_value(&at, end, d.data[p], &v))
            return false;
        if (--nth == 0) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool result(const struct ended *c, struct value *ret)
{
    const uint8_t *at = c->exit->values;
    char type = c->exit->kind == RECORD_THROWN ? 'L' : return_type(c->method);
    return type != 'V' && take_value(&at, (const uint8_t *)c->exit + c->exit->size, type, ret);
}

static void condition_value(void *context, const struct cond_test *t, struct cond_value *ret)
{
    struct ended *c = context;
    struct value v;
    ret->there = true;
    switch (t->what) {
    case COND_TIME:
        ret->number = (double)(c->exit->time_ns - c->entry->time_ns);
        return;
    case COND_DEPTH:
        ret->number = c->depth;
        return;
    case COND_THROWN:
        ret->number = c->exit->kind == RECORD_THROWN;
        return;
    case COND_RETURN:
        ret->there = c->exit->kind == RECORD_EXIT && result(c, &v);
        break;
    case COND_ARG:
        ret->there = argument(c, t->arg, &v);
        break;
    }
    if (!ret->there)
        return;
    ret->null = v.type == 'L' && v.class == 0;
    if (v.type == 'L' && is_class(v.class, "Ljava/lang/String;")) {
        struct buf b = BUF(sizeof(c->text) - 1);
        put_utf16(&b, v.chars, v.n_chars);
        snprintf(c->text, sizeof(c->text), "%s", buf_str(&b));
        buf_release(&b);
        ret->text = c->text;
    } else if (v.type == 'L') {
        ret->number = v.class != 0;
        ret->text = v.class ? "" : NULL;
    } else {
        ret->number = v.type == 'F' || v.type == 'D' ? v.real : (double)v.number;
    }
}

static const char *thread_name(int64_t java_id)
{
    const uint64_t *at = map_get(&trace.names, (uint64_t)java_id);
    return at ? (const char *)(uintptr_t)*at : NULL;
}

static void write_call(struct jfr_writer *w, const struct ended *c, const char *caller)
{
    _cleanup_(buf_release) struct buf args = BUF(VALUES_MAX), back = BUF(VALUES_MAX), thrown = BUF(4096);
    struct json j = {.out = &args};
    struct value v;
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    unsigned slots;
    json_array(&j);
    if (c->method->has_this && take_value(&at, end, 'L', &v))
        put_value(&j, &v);
    for (size_t p = 1, len; (len = descriptor_next(d, p, &slots)) && take_value(&at, end, d.data[p], &v); p += len)
        put_value(&j, &v);
    json_array_end(&j);
    if (result(c, &v) && c->exit->kind == RECORD_EXIT)
        put_value(&(struct json){.out = &back}, &v);
    else if (c->exit->kind == RECORD_THROWN && result(c, &v))
        put_class(&thrown, v.class);
    const char *name = thread_name(c->entry->thread);
    size_t room = args.len + back.len + thrown.len + strlen(c->method->text) + (caller ? strlen(caller) : 0) +
                  (name ? strlen(name) : 0) + 256;
    struct jfr_event e;
    if (buf_error(&args) || room > VALUES_MAX * 2 || !jfr_begin(w, trace.type, room, &e)) {
        trace.dropped++;
        return;
    }
    jfr_put_time(&e, c->entry->time_ns);
    jfr_put_long(&e, (int64_t)(c->exit->time_ns - c->entry->time_ns));
    jfr_put_string(&e, c->method->text);
    jfr_put_long(&e, c->entry->thread);
    jfr_put_string(&e, name);
    jfr_put_int(&e, (int32_t)c->depth);
    jfr_put_string(&e, caller);
    jfr_put_string(&e, buf_str(&args));
    jfr_put_byte(&e, c->method->has_this);
    jfr_put_string(&e, back.len ? buf_str(&back) : NULL);
    jfr_put_string(&e, thrown.len ? buf_str(&thrown) : NULL);
    jfr_commit(&e);
    trace.written++;
}

static struct pending *pending_of(uint64_t call)
{
    const uint64_t *at = map_get(&trace.pending, call);
    return at ? (struct pending *)(uintptr_t)*at : NULL;
}

static void call_began(const struct trace_record *r)
{
    struct pending *p = trace.pending.len < PENDING_MAX ? calloc(1, sizeof(*p)) : NULL;
    uint64_t *current = map_at(&trace.current, (uint64_t)r->thread, 0, NULL);
    if (p)
        p->entry = malloc(r->size);
    if (!p || !p->entry || !current || map_put(&trace.pending, r->call, (uintptr_t)p) < 0) {
        if (p)
            free(p->entry);
        free(p);
        trace.dropped++;
        return;
    }
    memcpy(p->entry, r, r->size);
    struct pending *parent = *current ? pending_of(*current) : NULL;
    p->parent_call = parent ? *current : 0;
    p->depth = parent ? parent->depth + 1 : 0;
    *current = r->call;
}

static bool call_ended(struct jfr_writer *w, const struct trace_record *r)
{
    struct pending *p = pending_of(r->call);
    if (!p)
        return false;
    map_remove(&trace.pending, r->call);
    uint64_t *current = map_get(&trace.current, (uint64_t)p->entry->thread);
    if (current)
        *current = p->parent_call;
    if (current && !*current)
        map_remove(&trace.current, (uint64_t)p->entry->thread);
    struct pending *parent = p->parent_call ? pending_of(p->parent_call) : NULL;
    struct ended c = {.method = &trace.methods.methods.data[p->entry->kind], .entry = p->entry, .exit = r, .depth = p->depth};
    if (!condition_holds(trace.condition, condition_value, &c))
        trace.false_condition++;
    else if (trace.written >= trace.limit)
        trace.over_limit++;
    else
        write_call(w, &c, parent ? trace.methods.methods.data[parent->entry->kind].text : NULL);
    free(p->entry);
    free(p);
    return true;
}

/* An exit may lie in another ring than its entry, when a virtual thread has moved: such are tried again behind all others. */
static void drain(struct jfr_writer *w)
{
    VEC(struct trace_record *) later = {0};
    unsigned handled = 0;
    for (unsigned i = 0; i < trace.n_rings; i++) {
        const struct trace_record *r;
        /* What comes while this runs is for the next time: a busy thread must not hold us here. */
        int64_t until = atomic_load(&trace.rings[i]->head);
        while (atomic_load(&trace.rings[i]->tail) != until && (r = trace_ring_peek(trace.rings[i]))) {
            if (r->kind >= 0) {
                call_began(r);
            } else if (!call_ended(w, r)) {
                struct trace_record *copy = malloc(r->size);
                if (copy)
                    memcpy(copy, r, r->size);
                if (!copy || vec_push(&later, copy) < 0) {
                    free(copy);
                    trace.without_entry++;
                }
            }
            trace_ring_pass(trace.rings[i], r);
            if (++handled % 256 == 0)
                (void)jfr_writer_work(w); /* room in the file for what follows */
        }
    }
    for (size_t i = 0; i < later.len; i++) {
        trace.without_entry += !call_ended(w, later.data[i]);
        free(later.data[i]);
    }
    vec_release(&later);
}

/* ---- the capture ---- */

static bool is_ours(struct str name)
{
    /* What the probes call themselves. */
    static const char *const never[] = {"java/lang/String", "java/lang/System",       "java/lang/Float",
                                        "java/lang/Double", "java/lang/StringLatin1", "java/lang/StringUTF16"};
    for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
        if (str_is(name, never[i]))
            return true;
    }
    return false;
}

static int trace_edit(const struct instrument_class *c, struct edit *e)
{
    struct str name = class_utf8(c->file, e->method->name), descriptor = class_utf8(c->file, e->method->descriptor);
    bool has_this = !(e->method->access & ACC_STATIC) && !str_is(name, "<init>");
    pthread_mutex_lock(&trace.lock);
    bool wanted = !is_ours(c->name) && trace_matches(trace.patterns, c->name, name, descriptor);
    int number = wanted ? trace_method_add(&trace.methods, c->name, name, descriptor, has_this) : 0;
    pthread_mutex_unlock(&trace.lock);
    if (!wanted || number < 0)
        return wanted ? number : 0;
    return trace_insert(e, number, has_this, trace.condition);
}

static const struct instrument_client client = {.name = "trace", .edit = trace_edit};

static bool trace_wanted(const struct options *o)
{
    return o->v[OPT_TRACE].text != NULL;
}

static int trace_load(struct session *s, struct buf *why)
{
    if (!s->out.jfr) {
        buf_string(why, "trace goes into a recording: add format=r");
        return -ENOTSUP;
    }
    const char *condition = s->options.v[OPT_IF].text;
    int r = condition ? condition_parse(&trace.condition, condition, why) : 0;
    if (r < 0)
        return -ENOTSUP;
    if (!trace.slots) {
        void *p = mmap(NULL, RING_SLOTS * sizeof(struct trace_slot), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            buf_string(why, "trace: no memory");
            return -ENOMEM;
        }
        trace.slots = p;
    }
    trace.limit = s->options.v[OPT_LIMIT].number;
    trace.written = trace.over_limit = trace.without_entry = trace.without_ring = trace.dropped = trace.false_condition = 0;
    trace.patterns = strdup(s->options.v[OPT_TRACE].text);
    return trace.patterns ? jfr_declare(s->out.jfr, &call_type, 1, &trace.type) : -ENOMEM;
}

/* The classes that the patterns may match, as instrument_choose takes them: without descriptors. */
static char *class_patterns(const char *patterns)
{
    char *copy = strdup(patterns), *to = copy;
    bool inside = false;
    for (const char *p = patterns; copy && *p; p++) {
        inside = *p == '(' || (inside && *p != ':');
        if (!inside)
            *to++ = *p;
    }
    if (copy)
        *to = 0;
    return copy;
}

/* Puts the probes into what the patterns match now. */
static int apply(const char *exclude, JNIEnv *jni, struct buf *why)
{
    _cleanup_free_ char *choice = class_patterns(trace.patterns);
    int r = choice ? instrument_choose(choice, exclude) : -ENOMEM;
    return r < 0 ? r : instrument_on(&client, jni, why);
}

static int trace_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    trace.eetop = probe_field_offset(jni, "java/lang/Thread", "eetop", "J");
    trace.tid = probe_field_offset(jni, "java/lang/Thread", "tid", "J");
    trace.carrier = 0;
    if (vm.version >= 19)
        trace.carrier = MAX(probe_field_offset(jni, "java/lang/VirtualThread", "carrierThread", "Ljava/lang/Thread;"), 0);
    if (trace.eetop < 0 || trace.tid < 0) {
        buf_string(why, "trace: the layout of java.lang.Thread is not known");
        return -ENOTSUP;
    }
    pthread_mutex_lock(&trace.lock);
    trace.active = true;
    /* Each thread comes for its ring again, and with it for its name. */
    memset(trace.slots, 0, RING_SLOTS * sizeof(struct trace_slot));
    memset(trace.owners, 0, sizeof(trace.owners));
    for (unsigned i = 0; i < trace.n_rings; i++) /* exits of calls that began in an earlier recording */
        atomic_store(&trace.rings[i]->tail, atomic_load(&trace.rings[i]->head));
    pthread_mutex_unlock(&trace.lock);
    int r = probe_define(jni, PROBE, &trace.probe, why);
    if (r == 0)
        r = threads_listen(&listener);
    return r < 0 ? r : apply(s->options.v[OPT_EXCLUDE].text, jni, why);
}

/* The patterns without `pattern`, malloc'ed; *ret_had tells whether it was among them. */
static char *without(const char *patterns, const char *pattern, bool *ret_had)
{
    _cleanup_(buf_release) struct buf b = BUF(1 << 16);
    *ret_had = false;
    for (const char *p = patterns; *p;) {
        size_t n = strcspn(p, ":");
        bool is = n == strlen(pattern) && strncmp(p, pattern, n) == 0;
        *ret_had |= is;
        if (!is)
            buf_printf(&b, "%s%.*s", b.len ? ":" : "", (int)n, p);
        p += n + (p[n] == ':');
    }
    return buf_error(&b) ? NULL : strdup(buf_str(&b));
}

static void put_state(struct buf *out)
{
    struct json j = {.out = out};
    json_object(&j);
    json_key(&j, "patterns");
    json_array(&j);
    for (const char *p = trace.patterns; *p;) {
        size_t n = strcspn(p, ":");
        json_string_n(&j, p, n);
        p += n + (p[n] == ':');
    }
    json_array_end(&j);
    json_key(&j, "methods");
    json_array(&j);
    for (size_t i = 0; i < trace.methods.methods.len; i++)
        json_string(&j, trace.methods.methods.data[i].text);
    json_array_end(&j);
    json_object_end(&j);
}

int method_trace_switch(struct session *s, JNIEnv *jni, const char *request, struct buf *out, struct buf *why)
{
    bool add = strncmp(request, "add ", 4) == 0, remove = strncmp(request, "remove ", 7) == 0, had = false;
    const char *pattern = add ? request + 4 : remove ? request + 7 : "";
    if (!trace.patterns) {
        buf_string(why, "no calls are being traced; begin with --trace");
        return -ESRCH;
    }
    if ((add || remove) ? !*pattern || strchr(pattern, ':') : strcmp(request, "list") != 0) {
        buf_string(why, "trace: add PATTERN, remove PATTERN or list");
        return -EINVAL;
    }
    int r = 0;
    if (add || remove) {
        _cleanup_(buf_release) struct buf b = BUF(1 << 16);
        _cleanup_free_ char *rest = without(trace.patterns, pattern, &had);
        if (remove && !had) {
            buf_printf(why, "%s: not among the patterns", pattern);
            return -ESRCH;
        }
        if (rest)
            buf_printf(&b, "%s%s%s", rest, add && *rest ? ":" : "", add ? pattern : "");
        char *patterns = rest && !buf_error(&b) ? strdup(buf_str(&b)) : NULL;
        if (!patterns)
            return -ENOMEM;
        instrument_off(&client, jni);
        pthread_mutex_lock(&trace.lock);
        free(trace.patterns);
        trace.patterns = patterns;
        pthread_mutex_unlock(&trace.lock);
        /* Without a pattern nothing is chosen; an empty choice would mean all. */
        r = *patterns ? apply(s->options.v[OPT_EXCLUDE].text, jni, why) : 0;
    }
    pthread_mutex_lock(&trace.lock);
    put_state(out);
    pthread_mutex_unlock(&trace.lock);
    return r;
}

static void forget(JNIEnv *jni)
{
    jmethodID m = trace.probe ? (*jni)->GetStaticMethodID(jni, trace.probe, "forget", "()V") : NULL;
    if (m)
        (*jni)->CallStaticVoidMethod(jni, trace.probe, m);
    vm_clear_exception(jni);
}

static void trace_stop(struct session *s, JNIEnv *jni)
{
    instrument_off(&client, jni);
    threads_unlisten(&listener);
    pthread_mutex_lock(&trace.lock);
    trace.active = false;
    drain(s->out.jfr);
    uint64_t key, value;
    for (size_t i = 0; map_next(&trace.pending, &i, &key, &value);) {
        struct pending *p = (struct pending *)(uintptr_t)value;
        free(p->entry);
        free(p);
    }
    for (size_t i = 0; map_next(&trace.names, &i, &key, &value);)
        free((char *)(uintptr_t)value);
    map_release(&trace.pending);
    map_release(&trace.current);
    map_release(&trace.names);
    pthread_mutex_unlock(&trace.lock);
    forget(jni);
}

static void trace_release(struct session *s)
{
    condition_free(trace.condition);
    trace.condition = NULL;
    free(trace.patterns);
    trace.patterns = NULL;
}

static void trace_flush(struct session *s, JNIEnv *jni)
{
    pthread_mutex_lock(&trace.lock);
    drain(s->out.jfr);
    pthread_mutex_unlock(&trace.lock);
}

static void trace_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    trace_flush(s, jni);
}

static void trace_status(struct session *s, struct buf *out)
{
    uint64_t lost = 0;
    pthread_mutex_lock(&trace.lock);
    for (unsigned i = 0; i < trace.n_rings; i++)
        lost += atomic_load(&trace.rings[i]->lost);

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"calls", trace.written},
                {"methods", trace.methods.methods.len},
                {"condition_false", trace.false_condition},
                {"over_limit", trace.over_limit},
                {"lost_ring_full", lost},
                {"lost_no_ring", trace.without_ring},
                {"lost_no_entry", trace.without_entry},
                {"lost_no_room", trace.dropped},
                {"open", trace.pending.len}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(out, "trace.%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    pthread_mutex_unlock(&trace.lock);
    instrument_status(out);
}

extern const struct capture capture_method_trace;
const struct capture capture_method_trace = {
    .name = "trace",
    .options = OPTION_BIT(OPT_TRACE) | OPTION_BIT(OPT_IF),
    .needs = {.can_retransform_classes = 1},
    .wanted = trace_wanted,
    .load = trace_load,
    .start = trace_start,
    .stop = trace_stop,
    .release = trace_release,
    .flush = trace_flush,
    .dump = trace_dump,
    .status = trace_status,
};
