/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/hub.h"

#include "agent/capture/trace/objects.h"
#include "agent/instrument/probe_class.h"
#include "agent/thread_table.h"
#include "agent/virtual_threads.h"
#include "agent/vm.h"
#include "base/map.h"
#include "base/vec.h"
#include "classfile/classfile.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PROBE "java/lang/JvmscopeTrace"

enum { RINGS_MAX = 1024, CLASSES_MAX = (1 << 14) + 2, READERS_MAX = 2 };

static struct {
    pthread_mutex_t lock;                          /* all but what the probes touch */
    const struct hub_reader *readers[READERS_MAX]; /* calls, sites; NULL: none */
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
    bool active, follows; /* virtual threads */
    uint64_t without_ring;
    struct map names; /* java thread id -> char *, of threads that have or had a ring */
} hub = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the probe's native methods, found by name in the library ---- */

#define NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeTrace_##name
NATIVE(jlong, constant)(JNIEnv *, jclass, jint);
NATIVE(jlong, newRing)(JNIEnv *, jclass, jlong);
NATIVE(void, newClass)(JNIEnv *, jclass, jclass, jint);

NATIVE(jlong, constant)(JNIEnv *jni, jclass class, jint which)
{
    const int64_t values[] = {(int64_t)(uintptr_t)hub.slots, hub.eetop, hub.carrier, hub.tid};
    return which >= 0 && which < (jint)ARRAY_SIZE(values) ? values[which] : 0;
}

/* A ring that nobody owns any more and that is empty, or a new one. */
static int free_ring(void)
{
    for (unsigned i = 0; i < hub.n_rings; i++) {
        if (!hub.owners[i].eetop && !trace_ring_peek(hub.rings[i]))
            return (int)i;
    }
    if (hub.n_rings == RINGS_MAX)
        return -ENOSPC;
    struct trace_ring *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r == MAP_FAILED)
        return -ENOMEM;
    r->calls = (uint64_t)(hub.n_rings + 1) << 40;
    hub.rings[hub.n_rings] = r;
    return (int)hub.n_rings++;
}

static void keep_name(const struct thread *t)
{
    uint64_t *at = t && t->name && t->java_id ? map_at(&hub.names, t->java_id, 0, NULL) : NULL;
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
    pthread_mutex_lock(&hub.lock);
    keep_name(thread);
    struct trace_slot *slot = hub.active ? trace_slot_find(hub.slots, (uint64_t)eetop) : NULL;
    if (slot && atomic_load(&slot->eetop) == (uint64_t)eetop) {
        ring = slot->ring;
    } else {
        int i = slot ? free_ring() : -ENOSPC;
        if (i >= 0) {
            ring = hub.rings[i];
            hub.owners[i].eetop = (uint64_t)eetop;
            hub.owners[i].env = jni;
            slot->ring = ring;
            atomic_store(&slot->eetop, (uint64_t)eetop);
        }
        hub.without_ring += i < 0;
    }
    pthread_mutex_unlock(&hub.lock);
    return (jlong)(uintptr_t)ring;
}

NATIVE(void, newClass)(JNIEnv *jni, jclass class, jclass c, jint number)
{
    char *signature = NULL;
    if (number <= 0 || number >= CLASSES_MAX || (*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    pthread_mutex_lock(&hub.lock);
    free(hub.classes[number]);
    hub.classes[number] = strdup(signature);
    pthread_mutex_unlock(&hub.lock);
    vm_free(signature);
}

/* A thread that ends: its ring, once it is empty, and its slot may serve another one. */
static void thread_ended(struct thread *t, JNIEnv *jni)
{
    pthread_mutex_lock(&hub.lock);
    for (unsigned i = 0; i < hub.n_rings; i++) {
        if (hub.owners[i].env != jni || !hub.owners[i].eetop)
            continue;
        struct trace_slot *slot = trace_slot_find(hub.slots, hub.owners[i].eetop);
        if (slot && slot->ring == hub.rings[i])
            atomic_store(&slot->eetop, RING_VACATED);
        hub.owners[i].eetop = 0;
    }
    pthread_mutex_unlock(&hub.lock);
}

static const struct thread_listener listener = {.ended = thread_ended};

bool hub_is_used(struct str name)
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

const char *hub_class(uint32_t number)
{
    return number < CLASSES_MAX ? hub.classes[number] : NULL;
}

const char *hub_thread_name(int64_t java_id)
{
    static char virtual_name[128]; /* until the next question */
    const uint64_t *at = map_get(&hub.names, (uint64_t)java_id);
    if (at)
        return (const char *)(uintptr_t)*at;
    return hub.follows && virtual_thread_name((uint64_t)java_id, virtual_name, sizeof(virtual_name)) ? virtual_name : NULL;
}

jclass hub_probe(void)
{
    return hub.probe;
}

/* With the lock. What toString() calls on the agent's own thread is not the program's. */
static bool hand_over(struct jfr_writer *w, const struct trace_record *r)
{
    const struct hub_reader *reader = hub.readers[r->kind >= HUB_SITE];
    return !reader || trace_objects_is_own(r->thread) || reader->record(w, r);
}

/* An exit may lie in another ring than its entry, when a virtual thread has moved: such are tried again behind all others. */
static void drain(struct jfr_writer *w)
{
    VEC(struct trace_record *) later = {0};
    unsigned handled = 0;
    for (unsigned i = 0; i < hub.n_rings; i++) {
        const struct trace_record *r;
        /* What comes while this runs is for the next time: a busy thread must not hold us here. */
        int64_t until = atomic_load(&hub.rings[i]->head);
        while (atomic_load(&hub.rings[i]->tail) != until && (r = trace_ring_peek(hub.rings[i]))) {
            if (!hand_over(w, r)) {
                struct trace_record *copy = malloc(r->size);
                if (copy)
                    memcpy(copy, r, r->size);
                if (!copy || vec_push(&later, copy) < 0) {
                    free(copy);
                    hub.readers[0]->unmatched();
                }
            }
            trace_ring_pass(hub.rings[i], r);
            if (++handled % 256 == 0)
                (void)jfr_writer_work(w); /* room in the file for what follows */
        }
    }
    for (size_t i = 0; i < later.len; i++) {
        if (!hand_over(w, later.data[i]))
            hub.readers[0]->unmatched();
        free(later.data[i]);
    }
    vec_release(&later);
}

void hub_drain(struct session *s, JNIEnv *jni)
{
    struct jfr_writer *w = s->out.jfr;
    trace_objects_work(s, jni);
    pthread_mutex_lock(&hub.lock);
    drain(w);
    pthread_mutex_unlock(&hub.lock);
}

/* For the first user: offsets, slots, empty rings. */
static int begin(JNIEnv *jni, struct buf *why)
{
    hub.eetop = probe_field_offset(jni, "java/lang/Thread", "eetop", "J");
    hub.tid = probe_field_offset(jni, "java/lang/Thread", "tid", "J");
    hub.carrier = 0;
    if (vm.version >= 19)
        hub.carrier = MAX(probe_field_offset(jni, "java/lang/VirtualThread", "carrierThread", "Ljava/lang/Thread;"), 0);
    if (hub.eetop < 0 || hub.tid < 0) {
        buf_string(why, "trace: the layout of java.lang.Thread is not known");
        return -ENOTSUP;
    }
    if (!hub.slots) {
        void *p = mmap(NULL, RING_SLOTS * sizeof(struct trace_slot), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            buf_string(why, "trace: no memory");
            return -ENOMEM;
        }
        hub.slots = p;
    }
    pthread_mutex_lock(&hub.lock);
    hub.active = true;
    hub.without_ring = 0;
    /* Each thread comes for its ring again, and with it for its name. */
    memset(hub.slots, 0, RING_SLOTS * sizeof(struct trace_slot));
    memset(hub.owners, 0, sizeof(hub.owners));
    for (unsigned i = 0; i < hub.n_rings; i++) { /* exits of calls that began in an earlier recording */
        atomic_store(&hub.rings[i]->tail, atomic_load(&hub.rings[i]->head));
        atomic_store(&hub.rings[i]->lost, 0);
    }
    pthread_mutex_unlock(&hub.lock);
    hub.follows = virtual_threads_on(jni); /* for their names */
    int r = probe_define(jni, PROBE, &hub.probe, why);
    return r < 0 ? r : threads_listen(&listener);
}

int hub_open(const struct hub_reader *reader, struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = hub.readers[!reader->sites] ? 0 : begin(jni, why);
    if (r == 0)
        r = trace_objects_begin(s, jni, why);
    if (r == 0) {
        pthread_mutex_lock(&hub.lock);
        hub.readers[reader->sites] = reader;
        pthread_mutex_unlock(&hub.lock);
    }
    return r;
}

static void forget(JNIEnv *jni)
{
    jmethodID m = hub.probe ? (*jni)->GetStaticMethodID(jni, hub.probe, "forget", "()V") : NULL;
    if (m)
        (*jni)->CallStaticVoidMethod(jni, hub.probe, m);
    vm_clear_exception(jni);
}

void hub_close(const struct hub_reader *reader, struct jfr_writer *w, JNIEnv *jni)
{
    if (hub.readers[reader->sites] != reader)
        return;
    pthread_mutex_lock(&hub.lock);
    drain(w);
    hub.readers[reader->sites] = NULL;
    bool last = !hub.readers[!reader->sites];
    hub.active = !last;
    pthread_mutex_unlock(&hub.lock);
    if (!last)
        return;
    threads_unlisten(&listener);
    if (hub.follows)
        virtual_threads_off();
    hub.follows = false;
    pthread_mutex_lock(&hub.lock);
    uint64_t key, value;
    for (size_t i = 0; map_next(&hub.names, &i, &key, &value);)
        free((char *)(uintptr_t)value);
    map_release(&hub.names);
    pthread_mutex_unlock(&hub.lock);
    forget(jni);
    trace_objects_end(jni);
}

void hub_status(const char *name, struct buf *out)
{
    uint64_t lost = 0;
    pthread_mutex_lock(&hub.lock);
    for (unsigned i = 0; i < hub.n_rings; i++)
        lost += atomic_load(&hub.rings[i]->lost);
    buf_printf(out, "%s.lost_ring_full %llu\n%s.lost_no_ring %llu\n", name, (unsigned long long)lost, name,
               (unsigned long long)hub.without_ring);
    pthread_mutex_unlock(&hub.lock);
}
