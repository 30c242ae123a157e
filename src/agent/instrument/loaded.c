/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/loaded.h"

#include "agent/instrument/batches.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/clients.h"
#include "agent/instrument/probe_class.h"
#include "agent/instrument/scan.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/generated_name.h"

#include <errno.h>
#include <string.h>

/*
 * Takes the name of a class, java/lang/String, from its signature. Returns false for arrays and
 * primitive types.
 */
static bool class_signature_name(jclass class, char **ret_signature, struct str *ret_name)
{
    char *signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) != JVMTI_ERROR_NONE ||
        !signature)
        return false;
    size_t len = strlen(signature);
    if (signature[0] != 'L' || len < 3) {
        vm_free(signature);
        return false;
    }
    *ret_signature = signature;
    *ret_name = (struct str){signature + 1, len - 2};
    return true;
}

/* The class that the VM is transforming on this thread. */
static __thread const jclass *batch;
static __thread int batch_size;

static bool in_batch(JNIEnv *jni, jclass class)
{
    for (int i = 0; i < batch_size; i++)
        if ((*jni)->IsSameObject(jni, batch[i], class))
            return true;
    return false;
}

static bool retransform_batch(const jclass *classes, int n)
{
    const jclass *outer = batch;
    int outer_size = batch_size;
    batch = classes;
    batch_size = n;
    bool done = (*vm.ti)->RetransformClasses(vm.ti, n, classes) == JVMTI_ERROR_NONE;
    batch = outer;
    batch_size = outer_size;
    return done;
}

static void retransform_one(jclass class)
{
    if (retransform_batch(&class, 1))
        return;
    char *signature;
    struct str name;
    atomic_fetch_add(&instrument_tally.refused, 1);
    if (!class_signature_name(class, &signature, &name))
        return;
    instrument_set_refused(name);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        if (c && c->refused && (!c->wants || c->wants(name)))
            c->refused(name);
    }
    vm_free(signature);
}

/*
 * JDK 8 reports the classes that it created for lambdas and method handles as modifiable, but
 * crashes when it has to write out their constant pools.
 */
bool loaded_may_change(jclass class, struct str name)
{
    jboolean modifiable = JNI_FALSE;
    (*vm.ti)->IsModifiableClass(vm.ti, class, &modifiable);
    return modifiable && !generated_name_is_anonymous(name.data, name.len);
}

/* Returns whether a client has an on_class function, which is called for every class. */
static bool calls_on_class(void)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        if (c && c->on_class)
            return true;
    }
    return false;
}

static void call_on_class(JNIEnv *jni, jclass class, struct str name)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        if (c && c->on_class && jni)
            c->on_class(jni, class, name);
    }
}

static bool is_linked(jclass class)
{
    jint status = 0;
    return (*vm.ti)->GetClassStatus(vm.ti, class, &status) != JVMTI_ERROR_NONE ||
           status & JVMTI_CLASS_STATUS_PREPARED;
}

/*
 * Returns whether loaded_class_prepared will offer a class to a client. Another thread may be
 * linking the class, so whether it is linked is looked up again after the note is visible. A class
 * that waits is left alone by all clients: the thread that links it holds its initialization lock
 * while it transforms the class there, and would wait for a thread that transforms the class and
 * links it for that. A class of the program is not postponed, because the methods of one that is
 * not linked cannot be compared with the names that the user wrote.
 */
static bool waits_for_link(const struct instrument_client *c, jclass class, struct str name)
{
    if (is_linked(class))
        return false;
    bool noted = c && c->when_linked && choice_is_core(name) ? instrument_postpone(name)
                                                             : instrument_is_postponed(name);
    return noted && !is_linked(class);
}

/*
 * Returns whether a loaded class has to be transformed: because it is offered to a client, because
 * probes have to be removed, or for either reason, as for loaded_transform.
 */
static bool to_retransform(jclass class, const struct instrument_client *c, uint64_t out_of)
{
    char *signature;
    struct str name;
    if (!class_signature_name(class, &signature, &name))
        return false;
    bool back = out_of && instrument_changed_by(name) & out_of, offered = !out_of || c;
    bool shown = offered && calls_on_class(), modifiable = shown && loaded_may_change(class, name);
    if (modifiable)
        call_on_class(vm_jni(), class, name);
    bool wanted = offered && instrument_wants(name, c);
    if (!shown && (back || wanted))
        modifiable = loaded_may_change(class, name);
    if (wanted && !modifiable)
        atomic_fetch_add(&instrument_tally.unmodifiable, 1);
    bool is = (back || (wanted && !waits_for_link(c, class, name))) && modifiable &&
              batches_may_transform(class, name, back);
    vm_free(signature);
    return is;
}

/*
 * Changes java.lang.Thread, if it is time to (thread_last): before any code runs of the class that
 * a client has changed.
 */
static void change_thread(void)
{
    jclass thread = instrument_take_thread();
    if (thread && to_retransform(thread, NULL, 0))
        retransform_one(thread);
}

/*
 * None of the class's code has run yet. If the class has not been linked, transforming it links it
 * first; a transformation inside that one would start from code that is already changed, and change
 * it again.
 */
void JNICALL loaded_class_prepared(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass class)
{
    char *signature;
    struct str name;
    if (!class_signature_name(class, &signature, &name))
        return;
    call_on_class(jni, class, name);
    bool wanted = instrument_is_postponed(name);
    for (int i = 0; i < CLIENTS_MAX && !wanted; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        wanted = c && c->loaded_only && !choice_is_excluded(name) && c->wants && c->wants(name);
    }
    vm_free(signature);
    if (wanted && !in_batch(jni, class) && to_retransform(class, NULL, 0))
        retransform_one(class);
    change_thread();
    vm_clear_exception(jni);
}

/* Returns a probe class, which the agent never changes, or NULL. */
static jclass find_probe(const struct loaded_classes *all)
{
    jclass found = NULL;
    for (int i = 0; i < all->n && !found; i++) {
        char *signature;
        struct str name;
        jboolean modifiable = JNI_FALSE;
        if (!class_signature_name(all->of[i], &signature, &name))
            continue;
        if (probe_is_class(name.data))
            (*vm.ti)->IsModifiableClass(vm.ti, all->of[i], &modifiable);
        if (modifiable)
            found = all->of[i];
        vm_free(signature);
    }
    return found;
}

static bool is_alone(const struct instrument_client *c)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (atomic_load(&instrument_clients[i]) && atomic_load(&instrument_clients[i]) != c)
            return false;
    return true;
}

/* Moves the classes that have to be transformed to the front and returns their number. */
static int choose(struct loaded_classes *all, const struct instrument_client *c, uint64_t out_of)
{
    int chosen = 0;
    for (int i = 0; i < all->n; i++) {
        jclass class = all->of[i];
        if (!to_retransform(class, c, out_of))
            continue;
        all->of[i] = all->of[chosen];
        all->of[chosen++] = class;
    }
    return chosen;
}

/*
 * Moves the classes to the front that the client will probably change, because it did before, and
 * returns their number. They are not inspected first: each inspection leaves an unused version of
 * the class in the VM until a collection, and parts of it for ever on JDK 8.
 */
static int choose_known(jclass *classes, int n, const struct instrument_client *c)
{
    int known = 0;
    for (int i = 0; i < n; i++) {
        jclass class = classes[i];
        char *signature;
        struct str name;
        if (!class_signature_name(class, &signature, &name))
            continue;
        if (instrument_changed_before(name, c)) {
            classes[i] = classes[known];
            classes[known++] = class;
        }
        vm_free(signature);
    }
    return known;
}

void loaded_restore(JNIEnv *jni, uint64_t out_of)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (loaded_classes(vm.ti, jni, &all) < 0)
        return;
    int chosen = choose(&all, NULL, out_of);
    const struct batches b = {retransform_batch, retransform_one, NULL, NULL};
    batches_run(jni, &b, all.of, chosen);
}

/* Lists the loaded ones of the classes of a client that names them, or all loaded classes. */
static int list(JNIEnv *jni, const struct instrument_client *c, struct loaded_classes *ret)
{
    unsigned char *memory = NULL;
    size_t n = 0;
    bool known = c && c->only && !calls_on_class();
    while (known && c->only[n])
        n++;
    *ret = (struct loaded_classes){.ti = vm.ti, .jni = jni};
    if (known &&
        (*vm.ti)->Allocate(vm.ti, (jlong)(n * sizeof(jclass)), &memory) != JVMTI_ERROR_NONE)
        known = false;
    ret->of = (jclass *)(void *)memory;
    for (size_t i = 0; known && i < n; i++) {
        jclass class = vm_loaded_boot_class(jni, c->only[i], &known);
        if (class)
            ret->of[ret->n++] = class;
    }
    if (known)
        return 0;
    loaded_classes_release(ret);
    return loaded_classes(vm.ti, jni, ret);
}

int loaded_transform(JNIEnv *jni, const struct instrument_client *c, uint64_t out_of)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (list(jni, out_of ? NULL : c, &all) < 0)
        return -EPROTO;
    bool scans = vm.attached && c && !out_of && c->seldom && is_alone(c);
    const struct scan scan = {retransform_batch, instrument_pause,
                              scans ? (*jni)->NewLocalRef(jni, find_probe(&all)) : NULL};
    int chosen = choose(&all, c, out_of);
    if (scan.refused) {
        int known = choose_known(all.of, chosen, c);
        chosen = known + scan_loaded(jni, &scan, all.of + known, chosen - known);
        (*jni)->DeleteLocalRef(jni, scan.refused);
    }
    const struct batches b = {retransform_batch, retransform_one, instrument_pause,
                              instrument_progress};
    batches_run(jni, &b, all.of, chosen);
    change_thread();
    return 0;
}
