/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/transform.h"

#include "agent/instrument/choice.h"
#include "agent/instrument/clients.h"
#include "agent/instrument/guards.h"
#include "agent/instrument/scan.h"
#include "agent/vm/vm.h"
#include "base/cursor.h"
#include "classfile/debug.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects idle_workers */

static struct worker {
    struct worker *next;
    uint64_t clients; /* to which the class may be offered (instrument_prepare) */
    struct class_file class;
    struct rewrite rewrite;
} * idle_workers;

static bool any_intrinsics(void)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        const struct instrument_client *c = atomic_load(&instrument_clients[i]);
        if (c && c->intrinsics)
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

void transform_release(void)
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
                               : LEFT_UNKNOWN_CODE;
}

/*
 * Returns the constant pool index of the annotation by which the JDK marks intrinsics, or 0 when
 * the class has none.
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
        return choice_intrinsic_8(class_name, class_utf8(c, m->name), class_utf8(c, m->descriptor));
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

/* Returns client k if the class may be offered to it, and otherwise NULL. */
static const struct instrument_client *client_at(const struct instrument_class *c, int k)
{
    return c->clients >> k & 1 ? atomic_load(&instrument_clients[k]) : NULL;
}

/* Returns whether a method is offered to a client. */
static bool is_offered(const struct instrument_client *client, const struct instrument_class *c,
                       const struct class_method *m)
{
    if (c->virtual_thread)
        return client->virtual_threads;
    if (c->object || c->thread)
        return c->object ? client->object : client->thread;
    if (client->loaded_only && !c->loaded)
        return false;
    if (client->wants)
        return client->wants(c->name);
    return instrument_chosen(c->name, class_utf8(c->file, m->name),
                             class_utf8(c->file, m->descriptor)) &&
           !(client->skips && client->skips(c->name));
}

static bool any_offered(const struct instrument_class *c, const struct class_method *m)
{
    for (int k = 0; k < CLIENTS_MAX; k++) {
        const struct instrument_client *client = client_at(c, k);
        if (client && is_offered(client, c, m))
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
    if (c->scanned)
        return;
    atomic_fetch_add(&instrument_tally.left[why], 1);
    for (int k = 0; k < CLIENTS_MAX; k++) {
        const struct instrument_client *client = client_at(c, k);
        if (client && client->left && is_offered(client, c, m))
            client->left(c, m, why);
    }
}

/* Runs the clients on one method. Returns those that changed it, as bits. */
static uint64_t edit_method(const struct instrument_class *c, size_t i, bool intrinsic)
{
    const struct class_method *m = &c->file->methods.data[i];
    struct edit *e;
    int r = edit_begin(c->rewrite, i, &e);
    if (r == -ENODATA)
        return 0;
    uint64_t by = 0;
    for (int k = 0; k < CLIENTS_MAX && r >= 0; k++) {
        const struct instrument_client *client = client_at(c, k);
        if (!client || !is_offered(client, c, m))
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
        const struct instrument_client *client = atomic_load(&instrument_clients[k]);
        if (client && client->intrinsic)
            client->intrinsic(class_name, method);
    }
}

/*
 * Writes the changed class to `out`, if a client changed it, and returns these clients as bits.
 * Without `out` it only computes the result.
 */
static uint64_t transform(struct worker *w, bool loaded, struct buf *out)
{
    const struct class_file *file = &w->class;
    struct instrument_class c = {
        .file = file, .rewrite = &w->rewrite, .name = class_name_at(file, file->this_class)};
    c.virtual_thread = str_is(c.name, "java/lang/VirtualThread");
    c.loaded = loaded;
    c.scanned = !out;
    c.clients = w->clients;
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
        if ((!m->code && !native) || !any_offered(&c, m))
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
    atomic_fetch_add(&instrument_tally.classes, 1);
    atomic_fetch_add(&instrument_tally.methods, methods);
    return all;
}

/*
 * Returns whether the VM is creating a class of Unsafe.defineAnonymousClass, for which only JDK 8
 * posts the hook. Such a class is left unchanged, because the VM patches its constants, and the
 * name in it is not its real name. Later versions post the hook neither for these nor for hidden
 * classes.
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
    if (given && !instrument_wants(name, NULL))
        return 0;
    if (class_parse(&w->class, (const uint8_t *)data.data, data.len) < 0) {
        atomic_fetch_add(&instrument_tally.refused, out != NULL);
        return 0;
    }
    *ret_name = given ? name : class_name_at(&w->class, w->class.this_class);
    return given || instrument_wants(*ret_name, NULL) ? transform(w, loaded, out) : 0;
}

/*
 * Returns whether the clients change a class. If they do not, methods that they leave alone are
 * counted now.
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
 * Stores a copy of a class file with different modifiers, which the VM rejects as a new version of
 * a loaded class. Stores nothing when memory runs out.
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

/*
 * Returns whether the class has this name. When a class is redefined, the VM may first run Java
 * code that loads other classes (in JDK 17, to let the class's module read another one), and it
 * posts the hook for these as if they were the class that is redefined.
 */
static bool is_named(jvmtiEnv *ti, jclass class, const char *name)
{
    char *signature = NULL;
    if (!name || (*ti)->GetClassSignature(ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return true;
    size_t len = strlen(name);
    bool is = signature[0] == 'L' && strncmp(signature + 1, name, len) == 0 &&
              strcmp(signature + 1 + len, ";") == 0;
    vm_free(signature);
    return is;
}

void JNICALL transform_class_file(jvmtiEnv *ti, JNIEnv *jni, jclass redefined, jobject loader,
                                  const char *name, jobject domain, jint len,
                                  const unsigned char *data, jint *new_len,
                                  unsigned char **new_data)
{
    if (!instrument_any_client())
        return;
    if (!name && is_being_made_anonymous(ti)) {
        atomic_fetch_add(&instrument_tally.nameless, 1);
        return;
    }
    if (redefined && !is_named(ti, redefined, name))
        redefined = NULL;
    struct worker *w = take_worker();
    if (!w) {
        atomic_fetch_add(&instrument_tally.left[LEFT_MEMORY], 1);
        return;
    }
    struct str code = {(const char *)data, (size_t)len};
    w->clients = instrument_prepare(jni, (struct str){name, name ? strlen(name) : 0});
    enum scan_kind at = scan_kind(jni, redefined);
    if (at != SCAN_NONE) {
        if (at == SCAN_CODE)
            scan_report(changes(w, name, code));
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
        instrument_set_changed(class_name, by);
    }
    buf_release(&out);
    give_worker(w);
}
