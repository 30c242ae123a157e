/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi_contract.h"

enum { REQUESTS_DEEP = 24 };

struct table objects, classes, threads, references, arenas;

/*
 * Each entry and exit looks up its method, so this works without the monitor. Methods of unloaded
 * classes stay, marked as such.
 */
enum { METHODS = 1 << 21 };

static struct {
    _Atomic(jmethodID) id;
    _Atomic(struct class_record *) class;
} methods[METHODS];

static size_t method_place(jmethodID method)
{
    size_t i = table_hash(method) & (METHODS - 1);
    jmethodID there;
    while ((there = atomic_load(&methods[i].id)) && there != method)
        i = (i + 1) & (METHODS - 1);
    return i;
}

struct class_record *class_of_known_method(jmethodID method)
{
    struct class_record *c = atomic_load(&methods[method_place(method)].class);
    return c && !c->unloaded ? c : NULL;
}

static void define_method(jmethodID method, struct class_record *class)
{
    struct class_record *of = class_of_known_method(method);
    size_t i = method_place(method);
    if (!method)
        breach("a method without an id", "in %s", class->name);
    else if (of && of != class)
        breach("a method id in use", "of %s and %s", of->name, class->name);
    else {
        atomic_store(&methods[i].class, class);
        atomic_store(&methods[i].id, method);
    }
}

/* ---- ids that are looked up and requested ---- */

__thread int strict;
static __thread int asking;
static __thread bool asking_excused;
static __thread const char *asking_for = ""; /* where the requested id was found */

static bool on_jdk_21(void)
{
    JNIEnv *env = NULL;
    (void)(*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    return env && (*env)->GetVersion(env) == 0x00150000;
}

static bool ask(jint type, void *arg, const char *where)
{
    if (asking >= REQUESTS_DEEP) {
        breach("requests without end", "%s", where);
        return false;
    }
    const char *before = asking_for;
    bool excused = asking_excused;
    asking++;
    asking_for = where;
    /*
     * An answer is not an event, and not everything has been reported yet. JDK 21 never reports the
     * classes that a virtual thread links while it has its carrier's identity.
     */
    asking_excused |=
        (!init_done || on_jdk_21()) && (strstr(where, "trace of") || strstr(where, "a sample"));
    jint r = vm->RequestEvent(type, arg);
    asking--;
    asking_for = before;
    asking_excused = excused;
    return r == JVMPI_SUCCESS;
}

struct object_record *object_of(jobjectID id, const char *where)
{
    struct object_record *o = table_get(&objects, id);
    if (o || !id)
        return o;
    if (strict && asking == 0 && is_enabled(JVMPI_EVENT_OBJECT_ALLOC))
        breach("an object in a dump before its OBJECT_ALLOC", "%p in %s", (void *)id, where);
    bool answered = ask(JVMPI_EVENT_OBJECT_ALLOC, id, where);
    o = table_get(&objects, id);
    if (!o)
        breach("an object that nothing defines", "%p in %s, request %s", (void *)id, where,
               answered ? "answered" : "refused");
    return o;
}

struct class_record *class_of(jobjectID id, const char *where)
{
    struct class_record *c = table_get(&classes, id);
    if (c || !id)
        return c;
    if (strict && asking == 0 && is_enabled(JVMPI_EVENT_CLASS_LOAD) && !strstr(where, "trace"))
        breach("a class in a dump before its CLASS_LOAD", "%p in %s", (void *)id, where);
    bool answered = ask(JVMPI_EVENT_CLASS_LOAD, id, where);
    c = table_get(&classes, id);
    if (!c)
        breach("a class that nothing defines", "%p in %s, request %s", (void *)id, where,
               answered ? "answered" : "refused");
    return c;
}

struct thread_record *thread_of(JNIEnv *env, const char *where)
{
    struct thread_record *t = table_get(&threads, env);
    if (t || !env)
        return t;
    if (strict && asking == 0 && is_enabled(JVMPI_EVENT_THREAD_START))
        breach("a thread in a dump before its THREAD_START", "%p in %s", (void *)env, where);
    jobjectID id = vm->GetThreadObject(env);
    bool answered = id && ask(JVMPI_EVENT_THREAD_START, id, where);
    t = table_get(&threads, env);
    if (!t)
        breach("a thread that nothing defines", "%p in %s, %s", (void *)env, where,
               !id        ? "no object"
               : answered ? "request answered"
                          : "request refused");
    return t;
}

void define_thread(JNIEnv *env, const char *where)
{
    bool excused = asking_excused;
    asking_excused = true;
    (void)thread_of(env, where);
    asking_excused = excused;
}

struct class_record *class_of_method(jmethodID method, const char *where)
{
    struct class_record *c = class_of_known_method(method);
    if (c && c->asked)
        return c;
    jobjectID id = vm->GetMethodClass(method);
    if (c) {
        c->asked = true;
        if (id != c->id)
            breach("GetMethodClass answers another class", "%p for %s in %s", (void *)id, c->name,
                   where);
        return c;
    }
    if (!id) {
        breach("a method without a class", "%p in %s", (void *)method, where);
        return NULL;
    }
    c = class_of(id, where);
    if (c && !class_of_known_method(method)) {
        (void)ask(JVMPI_EVENT_CLASS_LOAD, id, where);
        breach("a method that its class's CLASS_LOAD did not have", "of %s in %s, %s", c->name,
               where, class_of_known_method(method) ? "a request has it" : "nor has a request");
    }
    return c;
}

void check_trace(const JVMPI_CallTrace *trace, const char *where)
{
    for (jint i = 0; i < trace->num_frames; i++) {
        const JVMPI_CallFrame *f = &trace->frames[i];
        (void)class_of_method(f->method_id, where);
        if (f->lineno < -3 || f->lineno == 0)
            breach("a strange line number", "%d in %s", (int)f->lineno, where);
    }
}

/* ---- defining and undefining events ---- */

static const char *name_of(jobjectID class_id)
{
    const struct class_record *c = table_get(&classes, class_id);
    return c ? c->name : "no known class";
}

static bool is_primitive(jint type)
{
    return type >= JVMPI_BOOLEAN && type <= JVMPI_LONG;
}

static struct object_record *java_lang_class; /* the only object without a class */

void on_object_alloc(const JVMPI_Event *e, bool requested)
{
    jobjectID id = e->u.obj_alloc.obj_id, class_id = e->u.obj_alloc.class_id;
    jint is_array = e->u.obj_alloc.is_array;
    struct object_record *o = table_get(&objects, id);
    if (!id || e->u.obj_alloc.size <= 0 ||
        (!table_get(&arenas, (void *)(intptr_t)e->u.obj_alloc.arena_id) &&
         is_enabled(JVMPI_EVENT_ARENA_NEW)))
        breach("OBJECT_ALLOC without id, size or known arena", "id %p, size %d, arena %d",
               (void *)id, (int)e->u.obj_alloc.size, (int)e->u.obj_alloc.arena_id);
    if (is_array != JVMPI_NORMAL_OBJECT && is_array != JVMPI_CLASS && !is_primitive(is_array))
        breach("OBJECT_ALLOC of a strange type", "%d", (int)is_array);
    if (is_primitive(is_array) && class_id)
        breach("OBJECT_ALLOC of primitives with a class", "%p", (void *)class_id);
    if (o) {
        if (!requested && !o->by_request)
            breach("OBJECT_ALLOC of an object that is there", "%p", (void *)id);
        if (o->is_array != is_array || o->size != e->u.obj_alloc.size ||
            (o->class_id != class_id && !(is_array == JVMPI_CLASS && !o->class_id)))
            breach("OBJECT_ALLOC differs from the one before",
                   "%p%s%s of %s: type %d and %d, class %p and %p, size %d and %d, "
                   "found in '%s' and '%s', requested %d",
                   (void *)id, table_get(&classes, id) ? ", the class " : "",
                   table_get(&classes, id) ? name_of(id) : "", name_of(class_id), (int)o->is_array,
                   (int)is_array, (void *)o->class_id, (void *)class_id, (int)o->size,
                   (int)e->u.obj_alloc.size, o->where, asking_for, requested);
        o->by_request &= requested;
        return;
    }
    o = calloc(1, sizeof(*o));
    *o = (struct object_record){id,
                                NULL,
                                is_array,
                                e->u.obj_alloc.size,
                                e->u.obj_alloc.arena_id,
                                NULL,
                                requested && !asking_excused &&
                                    is_enabled(JVMPI_EVENT_OBJECT_ALLOC)};
    o->where = asking_for;
    table_put(&objects, id, o);
    if (class_id == id)
        breach("OBJECT_ALLOC of an object that is its own class", "%p", (void *)id);
    if (!class_id && is_array == JVMPI_NORMAL_OBJECT) {
        if (java_lang_class)
            breach("OBJECT_ALLOC without a class", "%p", (void *)id);
        else
            java_lang_class = o;
    }
    o->class_id = class_id;
    struct class_record *c = class_of(class_id, "OBJECT_ALLOC's class");
    if (c)
        c->living++;
}

void on_object_free(jobjectID id)
{
    struct object_record *o = table_remove(&objects, id);
    struct class_record *c = table_get(&classes, id);
    if (!o) {
        breach("OBJECT_FREE of an unknown object", "%p", (void *)id);
        return;
    }
    if (o->by_request)
        breach("an object that only a request has defined", "%p of %p, found in %s", (void *)id,
               (void *)o->class_id, o->where);
    if (c)
        breach("OBJECT_FREE of a class that is not unloaded", "%s", c->name);
    struct class_record *of = table_get(&classes, o->class_id);
    if (of)
        of->living--;
    else if (o->class_id)
        breach("an object that outlives its class", "%p of %p", (void *)id, (void *)o->class_id);
    free(o);
}

static char *first_letters(const JVMPI_Field *fields, jint n, const char *class_name)
{
    char *letters = calloc((size_t)n + 1, 1);
    for (jint i = 0; i < n; i++) {
        if (!fields[i].field_name || !fields[i].field_signature ||
            !strchr("ZBCSIJFDL[", fields[i].field_signature[0]))
            breach("a field without name or signature", "%s", class_name);
        else
            letters[i] = fields[i].field_signature[0];
    }
    return letters;
}

static struct class_record *new_class(const JVMPI_Event *e)
{
    struct class_record *c = calloc(1, sizeof(*c));
    c->id = e->u.class_load.class_id;
    c->name = strdup(e->u.class_load.class_name);
    c->n_interfaces = e->u.class_load.num_interfaces;
    c->n_statics = e->u.class_load.num_static_fields;
    c->n_instances = e->u.class_load.num_instance_fields;
    c->n_methods = e->u.class_load.num_methods;
    c->statics = first_letters(e->u.class_load.statics, c->n_statics, c->name);
    c->instances = first_letters(e->u.class_load.instances, c->n_instances, c->name);
    c->methods = calloc((size_t)c->n_methods + 1, sizeof(*c->methods));
    for (jint i = 0; i < c->n_methods; i++) {
        const JVMPI_Method *m = &e->u.class_load.methods[i];
        if (!m->method_name || !m->method_signature || m->start_lineno > m->end_lineno)
            breach("a method without name, signature or lines", "%s", c->name);
        c->methods[i] = m->method_id;
        define_method(m->method_id, c);
    }
    return c;
}

void on_class_load(const JVMPI_Event *e, bool requested)
{
    jobjectID id = e->u.class_load.class_id;
    const char *name = e->u.class_load.class_name;
    size_t len = name ? strlen(name) : 0;
    if (len == 1 && strchr("BCDFIJSVZ", *name) && !e->u.class_load.num_methods)
        breach("a primitive type by the letter of its signature", "%s", name);
    if (!id || !len || strchr(name, '/') || (name[0] == 'L' && name[len - 1] == ';')) {
        breach("CLASS_LOAD without id or name", "%p %s", (void *)id, name ? name : "NULL");
        return;
    }
    if (init_done && !table_get(&objects, id) && is_enabled(JVMPI_EVENT_OBJECT_ALLOC))
        breach("CLASS_LOAD before the OBJECT_ALLOC of the class's object", "%s, requested %d", name,
               requested);
    struct object_record *o = object_of(id, "CLASS_LOAD");
    struct class_record *c = table_get(&classes, id);
    if (o && java_lang_class && o->class_id != java_lang_class->id && o != java_lang_class)
        breach("CLASS_LOAD of an object that is not a class", "%s", name);
    if (c) {
        if (!requested && !c->by_request)
            breach("CLASS_LOAD of a class that is there", "%s", name);
        if (strcmp(c->name, name) != 0 || c->n_interfaces != e->u.class_load.num_interfaces ||
            c->n_methods != e->u.class_load.num_methods ||
            c->n_statics != e->u.class_load.num_static_fields ||
            c->n_instances != e->u.class_load.num_instance_fields)
            breach("CLASS_LOAD differs from the one before", "%s and %s", c->name, name);
        c->by_request &= requested;
        return;
    }
    c = new_class(e);
    c->by_request = requested && !asking_excused && is_enabled(JVMPI_EVENT_CLASS_LOAD);
    c->where = asking_for;
    table_put(&classes, id, c);
    if (java_lang_class && java_lang_class->id == id && strcmp(name, "java.lang.Class") != 0)
        breach("OBJECT_ALLOC without a class", "%s", name);
}

void on_class_unload(jobjectID id)
{
    struct class_record *c = table_get(&classes, id);
    if (!c) {
        breach("CLASS_UNLOAD of an unknown class", "%p", (void *)id);
        return;
    }
    if (!ask(JVMPI_EVENT_CLASS_LOAD, id, "CLASS_UNLOAD"))
        breach("no CLASS_LOAD on request within CLASS_UNLOAD", "%s", c->name);
    if (c->living)
        breach("CLASS_UNLOAD before the end of what is of it", "%ld of %s", c->living, c->name);
    if (c->by_request)
        breach("a class that only a request has defined", "%s, found in %s", c->name, c->where);
    c->unloaded = true;
    (void)table_remove(&classes, id);
}

void on_thread_start(const JVMPI_Event *e, bool requested)
{
    JNIEnv *env = e->u.thread_start.thread_env_id;
    struct thread_record *t = table_get(&threads, env);
    if (!env || !e->u.thread_start.thread_id || !e->u.thread_start.thread_name ||
        !e->u.thread_start.group_name || !e->u.thread_start.parent_name) {
        breach("THREAD_START without env, id or names", "%p", (void *)env);
        return;
    }
    if (!e->u.thread_start.thread_name[0])
        breach("THREAD_START of a thread whose name is not there yet", "%p", (void *)env);
    (void)object_of(e->u.thread_start.thread_id, "THREAD_START");
    if (vm->GetThreadObject(env) != e->u.thread_start.thread_id)
        breach("GetThreadObject differs from THREAD_START", "%s", e->u.thread_start.thread_name);
    t = table_get(&threads, env);
    if (t) {
        if (!requested && !t->by_request)
            breach("THREAD_START of a thread that is there", "%s and %s", t->name,
                   e->u.thread_start.thread_name);
        if (t->id != e->u.thread_start.thread_id)
            breach("THREAD_START differs from the one before", "%s and %s", t->name,
                   e->u.thread_start.thread_name);
        t->by_request &= requested;
        return;
    }
    t = calloc(1, sizeof(*t));
    t->env = env;
    t->id = e->u.thread_start.thread_id;
    t->by_request = requested && !asking_excused && is_enabled(JVMPI_EVENT_THREAD_START);
    t->where = asking_for;
    t->early = env != e->env_id;
    snprintf(t->name, sizeof(t->name), "%s", e->u.thread_start.thread_name);
    table_put(&threads, env, t);
    vm->SetThreadLocalStorage(env, t);
    if (vm->GetThreadLocalStorage(env) != t)
        breach("no thread-local storage within THREAD_START", "%s", t->name);
}

void on_thread_end(JNIEnv *env)
{
    struct thread_record *t = table_remove(&threads, env);
    if (!t) {
        breach("THREAD_END of an unknown thread", "%p", (void *)env);
        return;
    }
    if (t->by_request)
        breach("a thread that only a request has defined", "%s, found in %s", t->name, t->where);
    if (t->in_contended || t->in_wait)
        breach("THREAD_END of a thread that contends or waits", "%s", t->name);
    free(t);
}

void request_known(void)
{
    enum { MOST = 20000 };

    static jobjectID ids[MOST];
    size_t n = 0;
    struct class_record *c;
    struct object_record *o;
    vm->RawMonitorEnter(tables);
    for (size_t i = 0; n < MOST / 2 && (c = table_next(&classes, &i));)
        ids[n++] = c->id;
    /* Classes that are not linked first, which few dumps have. */
    for (int others = 0; others < 2; others++)
        for (size_t i = 0; n < MOST && (o = table_next(&objects, &i));)
            if (others != (java_lang_class && o->class_id == java_lang_class->id))
                ids[n++] = o->id;
    vm->RawMonitorExit(tables);
    for (size_t i = 0; i < n; i++)
        (void)vm->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, ids[i]);
}

void check_tables_at_end(void)
{
    struct object_record *o;
    struct class_record *c;
    struct thread_record *t;
    for (size_t i = 0; (o = table_next(&objects, &i));)
        if (o->by_request)
            breach("an object that only a request has defined", "%p of %p, found in %s",
                   (void *)o->id, (void *)o->class_id, o->where);
    for (size_t i = 0; (c = table_next(&classes, &i));)
        /* A sample may have a class whose CLASS_LOAD would have come after JVM_SHUT_DOWN. */
        if (c->by_request && strcmp(c->where, "a sample") != 0)
            breach("a class that only a request has defined", "%s, found in %s", c->name, c->where);
    for (size_t i = 0; (t = table_next(&threads, &i));)
        if (t->by_request)
            breach("a thread that only a request has defined", "%s, found in %s", t->name,
                   t->where);
    if (!java_lang_class && is_enabled(JVMPI_EVENT_OBJECT_ALLOC))
        breach("no OBJECT_ALLOC of java.lang.Class", "%s", "");
}
