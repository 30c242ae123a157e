/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/instrument.h"

#include "agent/common/fault.h"
#include "agent/instrument/batches.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/clients.h"
#include "agent/instrument/loaded.h"
#include "agent/instrument/transform.h"
#include "agent/vm/vm.h"
#include "base/hash.h"
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void (*instrument_pause)(JNIEnv *jni);
void (*instrument_progress)(int done, int of);

const char *const instrument_reasons[LEFT_REASONS] = {
    [LEFT_MALFORMED] = "malformed",   [LEFT_TOO_LONG] = "too_long",
    [LEFT_HUGE] = "too_long_for_jit", [LEFT_POOL] = "constant_pool_full",
    [LEFT_TABLE] = "table_full",      [LEFT_UNKNOWN_CODE] = "unclear",
    [LEFT_MEMORY] = "out_of_memory",  [LEFT_INTRINSIC] = "intrinsic",
    [LEFT_NATIVE] = "native",
};

_Atomic(const struct instrument_client *) instrument_clients[CLIENTS_MAX];
struct instrument_tally instrument_tally;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects everything below */
static char *include_patterns, *exclude_patterns;
/* hash of a class's name -> the clients whose probes it contains, as bits */
static struct map changed;
static struct map refused;   /* the same for those that the VM refused */
static struct map postponed; /* the same for those that are changed when they are linked */
/*
 * keys of before_key for the classes that a client with `seldom` has ever changed; the values are 1
 */
static struct map changed_before;

/*
 * Whether java.lang.Thread may be offered to clients with `thread_last`: FREE, or it waits until
 * such a client has changed another class, or that is so and loaded.c has not taken it yet.
 */
enum thread_state { THREAD_FREE, THREAD_WAITS, THREAD_DUE };
static _Atomic enum thread_state thread_state;
static jclass thread_class; /* a global reference, from the first wait on */

/* held by a thread while it removes probes */
static pthread_mutex_t restore_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t to_restore; /* the clients that have gone, as bits in `changed` */

static uint64_t name_key(struct str name)
{
    return hash_bytes(name.data, name.len);
}

int instrument_choose(const char *include, const char *exclude)
{
    if (fault_here())
        return -ENOMEM;
    char *in = include && *include ? strdup(include) : NULL;
    char *ex = exclude && *exclude ? strdup(exclude) : NULL;
    if ((include && *include && !in) || (exclude && *exclude && !ex)) {
        free(in);
        free(ex);
        return -ENOMEM;
    }
    pthread_mutex_lock(&lock);
    free(include_patterns);
    free(exclude_patterns);
    include_patterns = in;
    exclude_patterns = ex;
    pthread_mutex_unlock(&lock);
    return 0;
}

static bool class_chosen(struct str name)
{
    if (choice_is_excluded(name))
        return false;
    return (!include_patterns || choice_may_match(include_patterns, name)) &&
           !choice_matches_class(exclude_patterns, name);
}

bool instrument_chosen(struct str class_name, struct str method, struct str descriptor)
{
    return !choice_is_excluded(class_name) &&
           (!include_patterns ||
            choice_matches(include_patterns, class_name, method, descriptor)) &&
           !choice_matches(exclude_patterns, class_name, method, descriptor);
}

bool instrument_is_jdk(struct str name)
{
    static const char *const packages[] = {"java/", "javax/", "jdk/", "sun/", "com/sun/"};
    for (size_t i = 0; i < ARRAY_SIZE(packages); i++) {
        size_t n = strlen(packages[i]);
        if (name.len > n && memcmp(name.data, packages[i], n) == 0)
            return true;
    }
    return false;
}

/* Returns whether a client wants a class. Requires the lock. */
static bool client_wants(const struct instrument_client *c, struct str name)
{
    if (str_is(name, "java/lang/Object"))
        return c->object;
    if (str_is(name, "java/lang/Thread"))
        return c->thread && (!c->thread_last || atomic_load(&thread_state) == THREAD_FREE);
    if (c->wants)
        return !choice_is_excluded(name) && c->wants(name);
    return class_chosen(name) && !(c->skips && c->skips(name));
}

bool instrument_any_client(void)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        if (c)
            return true;
    }
    return false;
}

bool instrument_wants(struct str name, const struct instrument_client *one)
{
    pthread_mutex_lock(&lock);
    bool virtual_thread = str_is(name, "java/lang/VirtualThread"), is = false;
    for (int i = 0; i < CLIENTS_MAX && !is; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        is = c && (!one || c == one) &&
             (virtual_thread ? c->virtual_threads : client_wants(c, name));
    }
    is = is && !map_get(&refused, name_key(name));
    pthread_mutex_unlock(&lock);
    return is;
}

/* The clients that must be prepared, and those that are prepared or need not be, as bits. */
static _Atomic uint64_t unprepared, usable;

uint64_t instrument_prepare(JNIEnv *jni, struct str name)
{
    static pthread_mutex_t preparing = PTHREAD_MUTEX_INITIALIZER;
    static __thread bool within;
    if (likely(!atomic_load(&unprepared)) || within || !jni)
        return atomic_load(&usable);
    pthread_mutex_lock(&preparing);
    within = true;
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        const uint64_t bit = UINT64_C(1) << i;
        if (!c || !(atomic_load(&unprepared) & bit) || (name.len && !instrument_wants(name, c)))
            continue;
        if (c->prepare(jni) == 0)
            atomic_fetch_or(&usable, bit);
        atomic_fetch_and(&unprepared, ~bit);
    }
    within = false;
    pthread_mutex_unlock(&preparing);
    return atomic_load(&usable);
}

void instrument_set_refused(struct str name)
{
    pthread_mutex_lock(&lock);
    (void)!map_put(&refused, name_key(name), 1);
    pthread_mutex_unlock(&lock);
}

bool instrument_is_postponed(struct str name)
{
    pthread_mutex_lock(&lock);
    bool is = map_get(&postponed, name_key(name)) != NULL;
    pthread_mutex_unlock(&lock);
    return is;
}

uint64_t instrument_changed_by(struct str name)
{
    pthread_mutex_lock(&lock);
    const uint64_t *carried = map_get(&changed, name_key(name));
    uint64_t by = carried ? *carried : 0;
    pthread_mutex_unlock(&lock);
    return by;
}

static uint64_t before_key(struct str name, const struct instrument_client *c)
{
    return name_key(name) ^ hash_bytes(c->name, strlen(c->name));
}

bool instrument_changed_before(struct str name, const struct instrument_client *c)
{
    pthread_mutex_lock(&lock);
    bool is = map_get(&changed_before, before_key(name, c)) != NULL;
    pthread_mutex_unlock(&lock);
    return is;
}

/* Notes that the clients `by` have changed a class: Thread, or one after which it is its turn. */
static void note_changed(struct str name, uint64_t by)
{
    bool is_thread = str_is(name, "java/lang/Thread");
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        enum thread_state waits = THREAD_WAITS;
        if (c && c->thread_last && by >> i & 1)
            atomic_compare_exchange_strong(&thread_state, &waits,
                                           is_thread ? THREAD_FREE : THREAD_DUE);
    }
}

jclass instrument_take_thread(void)
{
    enum thread_state due = THREAD_DUE;
    return atomic_compare_exchange_strong(&thread_state, &due, THREAD_FREE) ? thread_class : NULL;
}

void instrument_set_changed(struct str name, uint64_t by)
{
    note_changed(name, by);
    pthread_mutex_lock(&lock);
    uint64_t *carried = map_at(&changed, name_key(name), 0, NULL);
    if (carried)
        *carried |= by;
    for (int i = 0; i < CLIENTS_MAX && vm.attached; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        if (c && c->seldom && by >> i & 1)
            (void)!map_put(&changed_before, before_key(name, c), 1);
    }
    pthread_mutex_unlock(&lock);
}

static const struct vm_callbacks events = {.ti = {.ClassFileLoadHook = transform_class_file}};
static const struct vm_callbacks prepare_events = {.ti = {.ClassPrepare = loaded_class_prepared}};
static bool prepares; /* prepare_events are enabled */

bool instrument_postpone(struct str name)
{
    pthread_mutex_lock(&lock);
    bool done = prepares && map_put(&postponed, name_key(name), 1) == 0;
    pthread_mutex_unlock(&lock);
    return done;
}

/* Removes the bits of clients that have gone, and everything when there is no client any more. */
static void forget_clients(uint64_t slots)
{
    uint64_t key, value;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; map_next(&changed, &i, &key, &value);)
        *map_get(&changed, key) &= ~slots;
    pthread_mutex_unlock(&lock);
    if (instrument_any_client() || to_restore)
        return;
    if (prepares)
        vm_events_off(&prepare_events);
    prepares = false;
    vm_events_off(&events);
    transform_release();
    pthread_mutex_lock(&lock);
    map_release(&changed);
    map_release(&refused);
    map_release(&postponed);
    pthread_mutex_unlock(&lock);
}

/* Restores the classes of clients that have gone. Requires restore_lock. */
static void restore(JNIEnv *jni)
{
    uint64_t slots = to_restore;
    if (!slots)
        return;
    if (!vm.dying)
        loaded_restore(jni, slots);
    to_restore &= ~slots;
    forget_clients(slots);
}

void instrument_restore(JNIEnv *jni)
{
    if (pthread_mutex_trylock(&restore_lock) != 0)
        return;
    restore(jni);
    pthread_mutex_unlock(&restore_lock);
}

bool instrument_restoring(void)
{
    return to_restore != 0;
}

/*
 * Finishes restoring classes at once: the thread that is already doing it no longer pauses, or this
 * thread does it.
 */
static void restore_now(JNIEnv *jni)
{
    batches_skip_pauses(true);
    pthread_mutex_lock(&restore_lock);
    restore(jni);
    pthread_mutex_unlock(&restore_lock);
    batches_skip_pauses(false);
}

static void reset_tally(void)
{
    atomic_store(&instrument_tally.classes, 0);
    atomic_store(&instrument_tally.methods, 0);
    atomic_store(&instrument_tally.refused, 0);
    atomic_store(&instrument_tally.unmodifiable, 0);
    atomic_store(&instrument_tally.nameless, 0);
    for (int k = 0; k < LEFT_REASONS; k++)
        atomic_store(&instrument_tally.left[k], 0);
}

int instrument_on(const struct instrument_client *c, JNIEnv *jni, struct buf *why)
{
    jvmtiCapabilities needs = {.can_retransform_classes = 1}, missing = {0};
    static const jvmtiCapabilities likes = {.can_get_constant_pool = 1};
    int r = vm_need(&needs, &missing), i = 0;
    r = r < 0 ? r : vm_need(&likes, NULL);
    if (r < 0 || !vm_capabilities_empty(&missing)) {
        buf_printf(why, "this VM cannot change classes that are loaded");
        return r < 0 ? r : -ENOTSUP;
    }
    if (fault_here())
        return -EPROTO;
    restore_now(jni);
    bool first = !instrument_any_client();
    while (i < CLIENTS_MAX && atomic_load(&instrument_clients[i]))
        i++;
    if (i == CLIENTS_MAX)
        return -ENOSPC;
    if (first) {
        reset_tally();
        if ((r = vm_events_on(&events)) < 0) {
            buf_printf(why, "the VM refuses the class file hook");
            return r;
        }
    }
    atomic_fetch_or(c->prepare ? &unprepared : &usable, UINT64_C(1) << i);
    atomic_store(&instrument_clients[i], c);
    bool last = c->thread_last && vm_beginning && !vm.late;
    if ((c->loaded_only || c->when_linked || last) && !prepares)
        prepares = vm_events_on(&prepare_events) == 0;
    if (last && prepares && !thread_class)
        thread_class = vm_class(jni, "java/lang/Thread");
    if (last && prepares && thread_class)
        atomic_store(&thread_state, THREAD_WAITS);
    if ((r = loaded_transform(jni, c, 0)) < 0) {
        buf_printf(why, "the VM does not list its classes");
        instrument_off(c, jni);
    }
    return r;
}

int instrument_change(const struct instrument_client *c, JNIEnv *jni)
{
    uint64_t slot = 0;
    int others = 0;
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *present = atomic_load(&instrument_clients[i]);
        slot |= present == c ? UINT64_C(1) << i : 0;
        others += present && present != c;
    }
    if (!slot)
        return -ENOENT;
    if (!others)
        reset_tally();
    restore_now(jni);
    return loaded_transform(jni, c, slot);
}

/* Removes a client from the table. Returns its bit, or 0 when it was not there. */
static uint64_t remove_client(const struct instrument_client *c)
{
    uint64_t slot = 0;
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (atomic_load(&instrument_clients[i]) != c)
            continue;
        atomic_store(&instrument_clients[i], NULL);
        slot = UINT64_C(1) << i;
        atomic_fetch_and(&unprepared, ~slot);
        atomic_fetch_and(&usable, ~slot);
        if (c->thread_last)
            atomic_store(&thread_state, THREAD_FREE);
    }
    if (slot)
        vm_wait_callbacks();
    return slot;
}

void instrument_off(const struct instrument_client *c, JNIEnv *jni)
{
    uint64_t slot = remove_client(c);
    if (!slot)
        return;
    if (vm.dying) { /* probes may still run in frames that threads have not left */
        forget_clients(slot);
        return;
    }
    /* A thread that restores the classes of others makes no more pauses. */
    batches_skip_pauses(true);
    pthread_mutex_lock(&restore_lock);
    batches_skip_pauses(false);
    loaded_transform(jni, NULL, slot);
    forget_clients(slot);
    pthread_mutex_unlock(&restore_lock);
}

void instrument_off_later(const struct instrument_client *c, JNIEnv *jni)
{
    if (vm.attached && !vm.dying)
        to_restore |= remove_client(c);
    else
        instrument_off(c, jni);
}

static unsigned long long tallied(atomic_uint_fast64_t *count)
{
    return atomic_load(count);
}

void instrument_status(struct buf *out)
{
    int done, of;
    if (instrument_restoring() && batches_progress(&done, &of))
        buf_printf(out, "restoring %d of %d classes\n", done, of);
    else if (instrument_restoring())
        buf_string(out, "restoring classes\n");
    if (!instrument_any_client())
        return;
    buf_printf(out, "instrument.classes %llu\ninstrument.methods %llu\n",
               tallied(&instrument_tally.classes), tallied(&instrument_tally.methods));
    for (int i = 0; i < LEFT_REASONS; i++)
        if (tallied(&instrument_tally.left[i]))
            buf_printf(out, "instrument.left.%s %llu\n", instrument_reasons[i],
                       tallied(&instrument_tally.left[i]));
    buf_printf(out,
               "instrument.full_pool_classes %llu\ninstrument.refused_classes "
               "%llu\ninstrument.unmodifiable_classes %llu\ninstrument.nameless_classes %llu\n",
               (unsigned long long)batches_left(), tallied(&instrument_tally.refused),
               tallied(&instrument_tally.unmodifiable), tallied(&instrument_tally.nameless));
}
