/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/instrument.h"

#include "agent/instrument/batches.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/guards.h"
#include "agent/instrument/scan.h"
#include "agent/session/fault.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/map.h"
#include "classfile/debug.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 8 };

void (*instrument_pause)(JNIEnv *jni);
void (*instrument_progress)(int done, int of);

const char *const instrument_reasons[LEFT_REASONS] = {
    [LEFT_MALFORMED] = "malformed",   [LEFT_TOO_LONG] = "too_long",
    [LEFT_HUGE] = "too_long_for_jit", [LEFT_POOL] = "constant_pool_full",
    [LEFT_TABLE] = "table_full",      [LEFT_DOUBT] = "unclear",
    [LEFT_MEMORY] = "out_of_memory",  [LEFT_INTRINSIC] = "intrinsic",
    [LEFT_NATIVE] = "native",
};

static _Atomic(const struct instrument_client *) clients[CLIENTS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects everything below */
static char *include_patterns, *exclude_patterns;
/* hash of a class's name -> the clients whose probes it contains, as bits */
static struct map changed;
static struct map refused; /* the same for those that the VM refused */

static struct worker {
    struct worker *next;
    struct class_file class;
    struct rewrite rewrite;
} * idle_workers;

static _Atomic uint64_t n_classes, n_methods, n_left[LEFT_REASONS], n_refused, n_unmodifiable,
    n_nameless;

static uint64_t name_key(struct str name)
{
    return hash_bytes(name.data, name.len);
}

int instrument_choose(const char *include, const char *exclude)
{
    if (fault_here())
        return -ENOMEM;
    char *in = include && *include ? strdup(include) : NULL,
         *ex = exclude && *exclude ? strdup(exclude) : NULL;
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
    if (choice_never(name))
        return false;
    return (!include_patterns || choice_may_match(include_patterns, name)) &&
           !choice_matches(exclude_patterns, name, (struct str){"", 0});
}

bool instrument_chosen(struct str class_name, struct str method)
{
    return !choice_never(class_name) &&
           (!include_patterns || choice_matches(include_patterns, class_name, method)) &&
           !choice_matches(exclude_patterns, class_name, method);
}

static bool any_intrinsics(void)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&clients[i]);
        if (c && c->intrinsics)
            return true;
    }
    return false;
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

/* Whether a class has been refused for a client. With the lock. */
static bool client_wants(const struct instrument_client *c, struct str name)
{
    if (str_is(name, "java/lang/Object"))
        return c->object;
    if (str_is(name, "java/lang/Thread"))
        return c->thread;
    return c->wants ? !choice_never(name) && c->wants(name) : class_chosen(name);
}

static bool any_client(void)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&clients[i]);
        if (c)
            return true;
    }
    return false;
}

static struct worker *take_worker(void)
{
    pthread_mutex_lock(&lock);
    struct worker *w = idle_workers;
    if (w)
        idle_workers = w->next;
    pthread_mutex_unlock(&lock);
    return w ? w : calloc(1, sizeof(*w));
}

static void give_worker(struct worker *w)
{
    pthread_mutex_lock(&lock);
    w->next = idle_workers;
    idle_workers = w;
    pthread_mutex_unlock(&lock);
}

static void release_workers(void)
{
    pthread_mutex_lock(&lock);
    while (idle_workers) {
        struct worker *w = idle_workers;
        idle_workers = w->next;
        rewrite_release(&w->rewrite);
        class_release(&w->class);
        free(w);
    }
    pthread_mutex_unlock(&lock);
}

static enum instrument_reason reason_of(int error)
{
    return error == -EBADMSG   ? LEFT_MALFORMED
           : error == -E2BIG   ? LEFT_TOO_LONG
           : error == -EFBIG   ? LEFT_HUGE
           : error == -ENOSPC  ? LEFT_POOL
           : error == -ENOBUFS ? LEFT_TABLE
           : error == -ENOMEM  ? LEFT_MEMORY
                               : LEFT_DOUBT;
}

/*
 * The constant pool index of the annotation by which the JDK marks intrinsics; 0 when the class has
 * none.
 */
static uint16_t intrinsic_mark(const struct class_file *c)
{
    if (vm.version < 9)
        return 0;
    const char *mark = vm.version < 16 ? "Ljdk/internal/HotSpotIntrinsicCandidate;"
                                       : "Ljdk/internal/vm/annotation/IntrinsicCandidate;";
    for (size_t i = 1; i < c->pool.len; i++)
        if (str_is(class_utf8(c, (uint16_t)i), mark))
            return (uint16_t)i;
    return 0;
}

static bool is_intrinsic(const struct class_file *c, const struct class_method *m,
                         struct str class_name, uint16_t mark)
{
    if (vm.version < 9)
        return choice_intrinsic_8(class_name, class_utf8(c, m->name));
    if (!mark ||
        (str_is(class_name, "java/lang/Object") && str_is(class_utf8(c, m->name), "<init>")))
        return false; /* the JIT recognizes this constructor, but runs its code */
    struct cursor in = class_attribute(c, m->start + 6, "RuntimeVisibleAnnotations");
    /*
     * The annotation has no elements: its index is followed by a zero. If other data looked the
     * same, the only effect would be that a method is not instrumented.
     */
    const uint8_t want[] = {(uint8_t)(mark >> 8), (uint8_t)mark, 0, 0};
    return cursor_left(&in) >= 6 && memmem(in.at, cursor_left(&in), want, sizeof(want));
}

/* Whether a method is offered to a client. */
static bool is_offered(const struct instrument_client *client, const struct instrument_class *c,
                       struct str method)
{
    if (c->virtual_thread)
        return client->virtual_threads;
    if (c->object || c->thread)
        return c->object ? client->object : client->thread;
    if (client->loaded_only && !c->loaded)
        return false;
    return client->wants ? client->wants(c->name) : instrument_chosen(c->name, method);
}

static bool any_offered(const struct instrument_class *c, struct str method)
{
    for (int k = 0; k < CLIENTS_MAX; k++) {
        const struct instrument_client *client = atomic_load(&clients[k]);
        if (client && is_offered(client, c, method))
            return true;
    }
    return false;
}

/*
 * Counts a method that is left unchanged, and notifies the clients to which it would have been
 * offered.
 */
static void leave(const struct instrument_class *c, const struct class_method *m,
                  enum instrument_reason why)
{
    struct str name = class_utf8(c->file, m->name);
    if (c->scanned)
        return;
    atomic_fetch_add(&n_left[why], 1);
    for (int k = 0; k < CLIENTS_MAX; k++) {
        const struct instrument_client *client = atomic_load(&clients[k]);
        if (client && client->left && is_offered(client, c, name))
            client->left(c, m, why);
    }
}

/* Runs the clients on one method. Returns those that changed it, as bits. */
static uint64_t edit_method(const struct instrument_class *c, size_t i, bool intrinsic)
{
    const struct class_method *m = &c->file->methods.data[i];
    struct str name = class_utf8(c->file, m->name);
    struct edit *e;
    int r = edit_begin(c->rewrite, i, &e);
    if (r == -ENODATA)
        return 0;
    uint64_t by = 0;
    for (int k = 0; k < CLIENTS_MAX && r >= 0; k++) {
        const struct instrument_client *client = atomic_load(&clients[k]);
        if (!client || !is_offered(client, c, name))
            continue;
        if (intrinsic && !client->intrinsics) {
            if (client->left && !c->scanned)
                client->left(c, m, LEFT_INTRINSIC);
            continue;
        }
        r = client->edit(c, e);
        by |= (uint64_t)(r > 0) << k;
    }
    if (r >= 0 && by)
        r = edit_commit(e);
    if (r >= 0 && by && !c->scanned)
        guards_add(c->name, e);
    if (r < 0)
        leave(c, m, reason_of(r));
    return r < 0 ? 0 : by;
}

static void report_intrinsic(struct str class_name, struct str method)
{
    for (int k = 0; k < CLIENTS_MAX; k++) {
        const struct instrument_client *client = atomic_load(&clients[k]);
        if (client && client->intrinsic)
            client->intrinsic(class_name, method);
    }
}

/*
 * Writes the changed class to out, or nothing; returns the clients that changed it, as bits.
 * Without out the result is only computed.
 */
static uint64_t transform(struct worker *w, bool loaded, struct buf *out)
{
    const struct class_file *file = &w->class;
    struct instrument_class c = {
        .file = file, .rewrite = &w->rewrite, .name = class_name_at(file, file->this_class)};
    c.virtual_thread = str_is(c.name, "java/lang/VirtualThread");
    c.loaded = loaded;
    c.scanned = !out;
    c.object = str_is(c.name, "java/lang/Object");
    c.thread = str_is(c.name, "java/lang/Thread");
    struct cursor source = class_attribute(file, file->attributes_start, "SourceFile");
    c.source = class_utf8(file, cursor_be16(&source));
    if (rewrite_begin(&w->rewrite, file) < 0)
        return 0;
    uint16_t mark = intrinsic_mark(file);
    unsigned methods = 0;
    uint64_t all = 0;
    for (size_t i = 0; i < file->methods.len; i++) {
        const struct class_method *m = &file->methods.data[i];
        bool native = m->access & ACC_NATIVE;
        if (native && out && is_intrinsic(file, m, c.name, mark))
            report_intrinsic(c.name, class_utf8(file, m->name));
        if ((!m->code && !native) || !any_offered(&c, class_utf8(file, m->name)))
            continue;
        bool intrinsic = is_intrinsic(file, m, c.name, mark);
        if (native || (intrinsic && !any_intrinsics())) {
            leave(&c, m, native ? LEFT_NATIVE : LEFT_INTRINSIC);
            continue;
        }
        uint64_t by = edit_method(&c, i, intrinsic);
        methods += by != 0;
        all |= by;
    }
    if (!methods || !out)
        return all;
    if (rewrite_finish(&w->rewrite, out) < 0) {
        buf_clear(out);
        return 0;
    }
    atomic_fetch_add(&n_classes, 1);
    atomic_fetch_add(&n_methods, methods);
    return all;
}

/* Whether a class is offered to one of the clients; `one`: to this one. */
static bool is_worth_editing(struct str name, const struct instrument_client *one)
{
    pthread_mutex_lock(&lock);
    bool virtual_thread = str_is(name, "java/lang/VirtualThread"), is = false;
    for (int i = 0; i < CLIENTS_MAX && !is; i++) {
        const struct instrument_client *c = atomic_load(&clients[i]);
        is = c && (!one || c == one) &&
             (virtual_thread ? c->virtual_threads : client_wants(c, name));
    }
    is = is && !map_get(&refused, name_key(name));
    pthread_mutex_unlock(&lock);
    return is;
}

/*
 * JDK 8 also posts the hook for classes of Unsafe.defineAnonymousClass. The VM patches the
 * constants of such a class, and the name in it is not its real name, so it is left alone. Later
 * versions do not post the hook for these, nor for hidden classes.
 */
static bool is_being_made_anonymous(jvmtiEnv *ti)
{
    jvmtiFrameInfo top;
    jint n = 0;
    char *name = NULL;
    if (vm.version > 8)
        return false;
    /* before the live phase */
    if ((*ti)->GetStackTrace(ti, NULL, 0, 1, &top, &n) != JVMTI_ERROR_NONE)
        return true;
    if (n == 0 || (*ti)->GetMethodName(ti, top.method, &name, NULL, NULL) != JVMTI_ERROR_NONE)
        return false;
    bool is = strcmp(name, "defineAnonymousClass") == 0;
    (*ti)->Deallocate(ti, (unsigned char *)name);
    return is;
}

/*
 * Parses a class and instruments it if one of the clients wants it; *ret_name is its name, owned by
 * w. For a class that is defined without a name, by defineClass(null, ...), `given` is NULL and
 * only the class file contains the name. Returns the clients that changed it, as bits.
 */
static uint64_t instrument_class(struct worker *w, const char *given, bool loaded, struct str data,
                                 struct buf *out, struct str *ret_name)
{
    struct str name = {given, given ? strlen(given) : 0};
    if (given && !is_worth_editing(name, NULL))
        return 0;
    if (class_parse(&w->class, (const uint8_t *)data.data, data.len) < 0) {
        atomic_fetch_add(&n_refused, out != NULL);
        return 0;
    }
    *ret_name = given ? name : class_name_at(&w->class, w->class.this_class);
    return given || is_worth_editing(*ret_name, NULL) ? transform(w, loaded, out) : 0;
}

/*
 * Whether the clients change a class. If they do not, methods that they leave alone are counted
 * now.
 */
static bool changes(struct worker *w, const char *name, struct str data)
{
    struct buf out = BUF(64u << 20);
    struct str class_name;
    bool does = instrument_class(w, name, true, data, NULL, &class_name) != 0;
    if (!does)
        instrument_class(w, name, true, data, &out, &class_name);
    buf_release(&out);
    return does;
}

/*
 * Returns a class file with different modifiers, which the VM rejects as a new version of a loaded
 * class.
 */
static void make_refused(struct worker *w, struct str data, jint *new_len, unsigned char **new_data)
{
    unsigned char *memory = NULL;
    if (class_parse(&w->class, (const uint8_t *)data.data, data.len) < 0 ||
        (*vm.ti)->Allocate(vm.ti, (jlong)data.len, &memory) != JVMTI_ERROR_NONE)
        return;
    memcpy(memory, data.data, data.len);
    memory[w->class.pool_end + 1] ^= ACC_FINAL;
    *new_data = memory;
    *new_len = (jint)data.len;
}

static void JNICALL on_class_file(jvmtiEnv *ti, JNIEnv *jni, jclass redefined, jobject loader,
                                  const char *name, jobject domain, jint len,
                                  const unsigned char *data, jint *new_len,
                                  unsigned char **new_data)
{
    if (!any_client())
        return;
    if (!name && is_being_made_anonymous(ti)) {
        atomic_fetch_add(&n_nameless, 1);
        return;
    }
    struct worker *w = take_worker();
    if (!w) {
        atomic_fetch_add(&n_left[LEFT_MEMORY], 1);
        return;
    }
    struct str code = {(const char *)data, (size_t)len};
    enum scan_kind at = scan_kind(jni, redefined);
    if (at != SCAN_NONE) {
        if (at == SCAN_CODE)
            scan_saw(changes(w, name, code));
        else
            make_refused(w, code, new_len, new_data);
        give_worker(w);
        return;
    }
    struct buf out = BUF(64u << 20);
    struct str class_name = {"", 0};
    uint64_t by = instrument_class(w, name, redefined != NULL, code, &out, &class_name);
    unsigned char *memory = NULL;
    if (out.len && (*ti)->Allocate(ti, (jlong)out.len, &memory) == JVMTI_ERROR_NONE) {
        memcpy(memory, out.data, out.len);
        *new_data = memory;
        *new_len = (jint)out.len;
        pthread_mutex_lock(&lock);
        uint64_t *carried = map_at(&changed, name_key(class_name), 0, NULL);
        if (carried)
            *carried |= by;
        pthread_mutex_unlock(&lock);
    }
    buf_release(&out);
    give_worker(w);
}

static void JNICALL on_class_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass class);
static const struct vm_callbacks events = {.ti = {.ClassFileLoadHook = on_class_file}};
static const struct vm_callbacks prepare_events = {.ti = {.ClassPrepare = on_class_prepare}};
static bool prepares; /* prepare_events are enabled */

/*
 * The name of a class, java/lang/String, from its signature; false for arrays and primitive types.
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
    atomic_fetch_add(&n_refused, 1);
    if (!class_signature_name(class, &signature, &name))
        return;
    pthread_mutex_lock(&lock);
    (void)!map_put(&refused, name_key(name), 1);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&clients[i]);
        if (c && c->refused && (!c->wants || c->wants(name)))
            c->refused(name);
    }
    vm_free(signature);
}

/*
 * Classes that the VM created for lambdas and method handles before hidden classes existed. JDK 8
 * reports them as modifiable, but crashes when it has to write out their constant pools. Unlike all
 * other names, theirs end in '/' and a number.
 */
static bool is_vm_anonymous(struct str name)
{
    size_t digits = 0;
    while (digits < name.len && name.data[name.len - 1 - digits] >= '0' &&
           name.data[name.len - 1 - digits] <= '9')
        digits++;
    return digits && digits < name.len && name.data[name.len - 1 - digits] == '/';
}

static void call_on_class(JNIEnv *jni, jclass class, struct str name)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&clients[i]);
        if (c && c->on_class && jni)
            c->on_class(jni, class, name);
    }
}

/* The clients whose probes a class contains, as bits. */
static uint64_t carried_by(struct str name)
{
    pthread_mutex_lock(&lock);
    const uint64_t *carried = map_get(&changed, name_key(name));
    uint64_t by = carried ? *carried : 0;
    pthread_mutex_unlock(&lock);
    return by;
}

/*
 * Whether a loaded class has to be transformed: because it is offered to a client, or to remove
 * probes.
 */
static bool to_retransform(jclass class, const struct instrument_client *c, uint64_t out_of)
{
    char *signature;
    struct str name;
    if (!class_signature_name(class, &signature, &name))
        return false;
    jboolean modifiable = JNI_FALSE;
    (*vm.ti)->IsModifiableClass(vm.ti, class, &modifiable);
    modifiable = modifiable && !is_vm_anonymous(name);
    bool is;
    if (out_of) {
        is = carried_by(name) & out_of;
    } else {
        if (modifiable)
            call_on_class(vm_jni(), class, name);
        is = is_worth_editing(name, c);
        if (is && !modifiable)
            atomic_fetch_add(&n_unmodifiable, 1);
    }
    is = is && modifiable && batches_may_transform(class, name, out_of != 0);
    vm_free(signature);
    return is;
}

/*
 * Offers a new class to clients of loaded classes before any of its code has run. If the class has
 * not been linked, transforming it links it first; a transformation within that would use code that
 * is already changed, and change it again.
 */
static void JNICALL on_class_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass class)
{
    char *signature;
    struct str name;
    bool wanted = false;
    if (!class_signature_name(class, &signature, &name))
        return;
    call_on_class(jni, class, name);
    for (int i = 0; i < CLIENTS_MAX && !wanted; i++) {
        const struct instrument_client *c = atomic_load(&clients[i]);
        wanted = c && c->loaded_only && !choice_never(name) && c->wants && c->wants(name);
    }
    vm_free(signature);
    if (wanted && !in_batch(jni, class) && to_retransform(class, NULL, 0))
        retransform_one(class);
    vm_clear_exception(jni);
}

/* A probe class, which is never changed. */
static jclass find_probe(const struct loaded_classes *all)
{
    static const char probe[] = "java/lang/Jvmscope";
    jclass found = NULL;
    for (int i = 0; i < all->n && !found; i++) {
        char *signature;
        struct str name;
        jboolean modifiable = JNI_FALSE;
        if (!class_signature_name(all->of[i], &signature, &name))
            continue;
        if (name.len >= sizeof(probe) - 1 && memcmp(name.data, probe, sizeof(probe) - 1) == 0)
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
        if (atomic_load(&clients[i]) && atomic_load(&clients[i]) != c)
            return false;
    return true;
}

static int retransform_loaded(JNIEnv *jni, const struct instrument_client *c, uint64_t out_of)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    int chosen = 0;
    if (loaded_classes(vm.ti, jni, &all) < 0)
        return -EPROTO;
    bool scans = vm.attached && c && c->seldom && is_alone(c);
    const struct scan scan = {retransform_batch, instrument_pause,
                              scans ? (*jni)->NewLocalRef(jni, find_probe(&all)) : NULL};
    for (int i = 0; i < all.n; i++) {
        jclass class = all.of[i];
        if (!to_retransform(class, c, out_of))
            continue;
        all.of[i] = all.of[chosen];
        all.of[chosen++] = class;
    }
    if (scan.refused) {
        chosen = scan_loaded(jni, &scan, all.of, chosen);
        (*jni)->DeleteLocalRef(jni, scan.refused);
    }
    const struct batches b = {retransform_batch, retransform_one, instrument_pause,
                              instrument_progress};
    batches_run(jni, &b, all.of, chosen);
    return 0;
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
    bool first = !any_client();
    while (i < CLIENTS_MAX && atomic_load(&clients[i]))
        i++;
    if (i == CLIENTS_MAX)
        return -ENOSPC;
    if (first) {
        atomic_store(&n_classes, 0);
        atomic_store(&n_methods, 0);
        atomic_store(&n_refused, 0);
        atomic_store(&n_unmodifiable, 0);
        atomic_store(&n_nameless, 0);
        for (int k = 0; k < LEFT_REASONS; k++)
            atomic_store(&n_left[k], 0);
        if ((r = vm_events_on(&events)) < 0) {
            buf_printf(why, "the VM refuses the class file hook");
            return r;
        }
    }
    atomic_store(&clients[i], c);
    if (c->loaded_only && !prepares)
        prepares = vm_events_on(&prepare_events) == 0;
    if ((r = retransform_loaded(jni, c, 0)) < 0) {
        buf_printf(why, "the VM does not list its classes");
        instrument_off(c, jni);
    }
    return r;
}

int instrument_again(JNIEnv *jni)
{
    return retransform_loaded(jni, NULL, 0);
}

void instrument_off(const struct instrument_client *c, JNIEnv *jni)
{
    uint64_t slot = 0, key, value;
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (atomic_load(&clients[i]) != c)
            continue;
        atomic_store(&clients[i], NULL);
        slot = UINT64_C(1) << i;
    }
    if (!slot)
        return;
    vm_wait_callbacks();
    if (!vm.dying) /* in either case, probes may still run in frames that no thread has left */
        retransform_loaded(jni, NULL, slot);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; map_next(&changed, &i, &key, &value);)
        *map_get(&changed, key) &= ~slot;
    pthread_mutex_unlock(&lock);
    if (any_client())
        return;
    if (prepares)
        vm_events_off(&prepare_events);
    prepares = false;
    vm_events_off(&events);
    release_workers();
    pthread_mutex_lock(&lock);
    map_release(&changed);
    map_release(&refused);
    pthread_mutex_unlock(&lock);
}

struct instrument_counts instrument_counts(void)
{
    struct instrument_counts n = {
        .classes = atomic_load(&n_classes),
        .methods = atomic_load(&n_methods),
        .refused_classes = atomic_load(&n_refused),
        .unmodifiable = atomic_load(&n_unmodifiable),
        .nameless = atomic_load(&n_nameless),
    };
    for (int i = 0; i < LEFT_REASONS; i++)
        n.left[i] = atomic_load(&n_left[i]);
    return n;
}

void instrument_status(struct buf *out)
{
    struct instrument_counts n = instrument_counts();
    if (!any_client())
        return;
    buf_printf(out, "instrument.classes %llu\ninstrument.methods %llu\n",
               (unsigned long long)n.classes, (unsigned long long)n.methods);
    for (int i = 0; i < LEFT_REASONS; i++)
        if (n.left[i])
            buf_printf(out, "instrument.left.%s %llu\n", instrument_reasons[i],
                       (unsigned long long)n.left[i]);
    buf_printf(out,
               "instrument.full_pool_classes %llu\ninstrument.refused_classes "
               "%llu\ninstrument.unmodifiable_classes %llu\ninstrument.nameless_classes %llu\n",
               (unsigned long long)batches_left(), (unsigned long long)n.refused_classes,
               (unsigned long long)n.unmodifiable, (unsigned long long)n.nameless);
}
