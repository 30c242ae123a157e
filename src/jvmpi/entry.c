/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the agent, provides the interface, enables and disables events, and handles start and end.
 */
#include "base/macro.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/classes.h"
#include "jvmpi/dumps.h"
#include "jvmpi/heap_walks.h"
#include "jvmpi/interface.h"
#include "jvmpi/layer.h"
#include "jvmpi/memory.h"
#include "jvmpi/monitors.h"
#include "jvmpi/natives.h"
#include "jvmpi/objects.h"
#include "jvmpi/probes.h"
#include "jvmpi/references.h"
#include "jvmpi/settle.h"
#include "jvmpi/sources.h"
#include "jvmpi/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EXPORT jint JNICALL Agent_OnLoad(JavaVM *java, char *text, void *reserved);

struct layer layer;
__thread struct my my;

/* Inline, because every event runs through it. */
static inline __attribute__((always_inline)) void notify(struct my *own, JNIEnv *env,
                                                         JVMPI_Event *event)
{
    void (*send)(JVMPI_Event *) = jvmpi_interface.NotifyEvent;
    if (!send || atomic_load_explicit(&layer.down, memory_order_acquire) ||
        layer_mutation_of_event(event->event_type))
        return;
    if (event->event_type != JVMPI_EVENT_CLASS_LOAD_HOOK && !thread_ready(own, env))
        return;
    event->env_id = layer_mutation_eighth("other-env") ? NULL : env;
    /* what the agent does is reported, even if the layer leaves out events around the call */
    int before = own->quiet;
    own->quiet = 0;
    own->notifying++;
    if (layer_report_begin(own)) {
        send(event);
        layer_report_end(own);
    }
    own->notifying--;
    own->quiet = before;
}

void layer_notify_as(struct my *own, JNIEnv *env, JVMPI_Event *event)
{
    notify(own, env, event);
}

void layer_notify(JNIEnv *env, JVMPI_Event *event)
{
    layer_notify_as(my_own(), env, event);
}

struct named {
    jobjectID id;
    jobject object;
    const struct named *before;
};

void layer_notify_naming_as(struct my *own, JNIEnv *env, JVMPI_Event *event, jobjectID id,
                            jobject object)
{
    const struct named this = {id, object, own->named};
    own->named = &this;
    notify(own, env, event);
    own->named = this.before;
}

void layer_notify_naming(JNIEnv *env, JVMPI_Event *event, jobjectID id, jobject object)
{
    layer_notify_naming_as(my_own(), env, event, id, object);
}

jobject layer_named(jobjectID id)
{
    for (const struct named *n = my.named; n; n = n->before)
        if (n->id == id)
            return n->object;
    return NULL;
}

/* ---- events on and off ---- */

enum {
    E_ALWAYS = 1,  /* needs nothing from JVM TI: a wrapper of our own, or never sent */
    E_REQUEST = 2, /* only for RequestEvent */
};

/* What an event needs while it is enabled. Events without a row do not exist. */
static const struct event_row {
    const struct vm_callbacks *callbacks;
    int kind;
    /* Called in the live phase: at EnableEvent, or at VMInit for an earlier EnableEvent. */
    jint (*on)(JNIEnv *env);
    unsigned probes; /* probes that the event needs */
} events[JVMPI_MAX_EVENT_TYPE_VAL + 1] = {
    [JVMPI_EVENT_METHOD_ENTRY] = {.on = methods_enable, .probes = PROBE_METHODS},
    [JVMPI_EVENT_METHOD_ENTRY2] = {.on = methods_enable, .probes = PROBE_METHODS},
    [JVMPI_EVENT_METHOD_EXIT] = {.on = methods_enable, .probes = PROBE_METHODS},
    [JVMPI_EVENT_INSTRUCTION_START] = {.on = layer_instructions_enable,
                                       .probes = PROBE_INSTRUCTIONS},
    [JVMPI_EVENT_OBJECT_ALLOC] = {.kind = E_ALWAYS, .on = allocations_enable},
    [JVMPI_EVENT_OBJECT_FREE] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_OBJECT_MOVE] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_COMPILED_METHOD_LOAD] = {.callbacks = &compiled_load_events,
                                          .on = layer_compiled_enable},
    [JVMPI_EVENT_COMPILED_METHOD_UNLOAD] = {.callbacks = &compiled_unload_events},
    [JVMPI_EVENT_THREAD_START] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_THREAD_END] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_CLASS_LOAD_HOOK] = {.callbacks = &class_hook_events},
    [JVMPI_EVENT_HEAP_DUMP] = {.kind = E_REQUEST},
    [JVMPI_EVENT_JNI_GLOBALREF_ALLOC] = {.on = references_on},
    [JVMPI_EVENT_JNI_GLOBALREF_FREE] = {.on = references_on},
    [JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC] = {.on = references_on},
    [JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE] = {.on = references_on},
    [JVMPI_EVENT_CLASS_LOAD] = {.callbacks = &class_load_events},
    [JVMPI_EVENT_CLASS_UNLOAD] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_DATA_DUMP_REQUEST] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_DATA_RESET_REQUEST] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_JVM_INIT_DONE] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_JVM_SHUT_DOWN] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_ARENA_NEW] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_ARENA_DELETE] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_OBJECT_DUMP] = {.kind = E_REQUEST},
    [JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTERED] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT] = {.kind = E_ALWAYS},
    [JVMPI_EVENT_MONITOR_CONTENDED_ENTER] = {.callbacks = &contention_events},
    [JVMPI_EVENT_MONITOR_CONTENDED_ENTERED] = {.callbacks = &contention_events},
    [JVMPI_EVENT_MONITOR_CONTENDED_EXIT] = {.callbacks = &contention_events,
                                            .on = contended_exit_enable,
                                            .probes = PROBE_MONITORS},
    [JVMPI_EVENT_MONITOR_WAIT] = {.callbacks = &wait_events, .on = sleep_enable},
    [JVMPI_EVENT_MONITOR_WAITED] = {.callbacks = &waited_events, .on = sleep_enable},
    [JVMPI_EVENT_MONITOR_DUMP] = {.kind = E_REQUEST},
    [JVMPI_EVENT_GC_START] = {.callbacks = &gc_events},
    [JVMPI_EVENT_GC_FINISH] = {.kind = E_ALWAYS},
};

static const struct event_row *row_of(jint type)
{
    const struct event_row *row =
        type > 0 && type <= JVMPI_MAX_EVENT_TYPE_VAL ? &events[type] : NULL;
    return row && (row->kind || row->callbacks || row->on) ? row : NULL;
}

static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;

/*
 * Switches shared sources on according to the enabled events. Object tags are watched only if an
 * event reports their end.
 */
static jint follow_up(jint type)
{
    static bool watching_frees, watching_gc;
    uint64_t e = atomic_load(&layer.enabled);
    bool frees =
        e & (UINT64_C(1) << JVMPI_EVENT_OBJECT_FREE | UINT64_C(1) << JVMPI_EVENT_CLASS_UNLOAD);
    bool gc = e & (UINT64_C(1) << JVMPI_EVENT_GC_START | UINT64_C(1) << JVMPI_EVENT_GC_FINISH |
                   UINT64_C(1) << JVMPI_EVENT_OBJECT_ALLOC); /* weak ids are settled then */
    int ret = 0;
    if (type == JVMPI_EVENT_OBJECT_ALLOC && layer_enable_allocations(layer_enabled(type)))
        return JVMPI_NOT_AVAILABLE;
    if (frees != watching_frees)
        /* remains enabled, because objects with existing ids may still end */
        ret = frees ? vm_events_on(&free_events) : 0;
    watching_frees |= frees;
    if (!ret && gc && !watching_gc)
        ret = vm_events_on(&gc_events);
    watching_gc |= gc;
    return ret ? JVMPI_FAIL : JVMPI_SUCCESS;
}

/*
 * Events that were enabled in a phase in which JVM TI does not allow switching them; -Xrun
 * libraries are loaded in it.
 */
static uint64_t pending;

static bool may_switch(void)
{
    jvmtiPhase phase = JVMTI_PHASE_ONLOAD;
    (void)(*vm.ti)->GetPhase(vm.ti, &phase);
    return phase == JVMTI_PHASE_ONLOAD || phase == JVMTI_PHASE_LIVE;
}

static uint64_t on; /* protected by the switching lock */

static bool are_on(const struct vm_callbacks *callbacks)
{
    bool are = false;
    for (jint i = 1; i <= JVMPI_MAX_EVENT_TYPE_VAL; i++)
        are |= on >> i & 1 && events[i].callbacks == callbacks;
    return are;
}

/* Requires the switching lock. What has been enabled once remains so: see layer_disable_event. */
static jint switch_on(jint type)
{
    const struct event_row *row = &events[type];
    if (row->callbacks && row->callbacks != &gc_events && !are_on(row->callbacks) &&
        vm_events_on(row->callbacks))
        return JVMPI_FAIL;
    on |= UINT64_C(1) << type;
    return follow_up(type);
}

jint layer_enable_event(jint type, void *arg)
{
    const struct event_row *row = row_of(type);
    if (!row || row->kind == E_REQUEST)
        return JVMPI_NOT_AVAILABLE;
    JNIEnv *env = vm_jni();
    jint ret = JVMPI_SUCCESS;
    pthread_mutex_lock(&switching);
    uint64_t bit = UINT64_C(1) << type;
    bool was = atomic_fetch_or(&layer.enabled, bit) & bit;
    if (!was && !may_switch())
        pending |= bit;
    else if (!was)
        ret = switch_on(type);
    if (ret != JVMPI_SUCCESS)
        atomic_fetch_and(&layer.enabled, ~bit);
    pthread_mutex_unlock(&switching);
    if (!was && ret == JVMPI_SUCCESS && row->on && atomic_load(&layer.live) && env)
        ret = row->on(env);
    probes_flags();
    return ret;
}

jint layer_disable_event(jint type, void *arg)
{
    const struct event_row *row = row_of(type);
    if (!row || row->kind == E_REQUEST)
        return JVMPI_NOT_AVAILABLE;
    pthread_mutex_lock(&switching);
    /*
     * JVM TI continues to send the events, and the layer drops them. Disabling them would wait for
     * running callbacks, possibly the caller's own.
     */
    atomic_fetch_and(&layer.enabled, ~(UINT64_C(1) << type));
    if (type == JVMPI_EVENT_OBJECT_ALLOC)
        layer_enable_allocations(false);
    probes_flags();
    pthread_mutex_unlock(&switching);
    return JVMPI_SUCCESS;
}

static jint request(JNIEnv *env, jint type, void *arg)
{
    switch (type) {
    case JVMPI_EVENT_CLASS_LOAD:
        return layer_request_class_load(env, arg);
    case JVMPI_EVENT_THREAD_START:
        return layer_request_thread_start(env, arg);
    case JVMPI_EVENT_OBJECT_ALLOC:
        return layer_request_object_alloc(env, arg);
    case JVMPI_EVENT_OBJECT_DUMP:
        return layer_request_object_dump(env, arg);
    case JVMPI_EVENT_MONITOR_DUMP:
        return layer_request_monitor_dump(env);
    case JVMPI_EVENT_HEAP_DUMP: {
        jint level = arg ? ((const JVMPI_HeapDumpArg *)arg)->heap_dump_level : JVMPI_DUMP_LEVEL_2;
        return level >= JVMPI_DUMP_LEVEL_0 && level <= JVMPI_DUMP_LEVEL_2
                   ? layer_request_heap_dump(env, level)
                   : JVMPI_FAIL;
    }
    default:
        return JVMPI_NOT_AVAILABLE;
    }
}

jint layer_request_event(jint type, void *arg)
{
    JNIEnv *env = vm_jni();
    if (!env || !atomic_load(&layer.live))
        return JVMPI_FAIL;
    layer_request_begin();
    vm_expect_references(env);
    layer_hold(); /* the VM may have ended while the request waited */
    jint ret = request(env, type, arg);
    layer_request_end();
    return ret;
}

/* ---- the interface ---- */

static jint(JNICALL *vm_get_env)(JavaVM *, void **, jint);
static struct JNIInvokeInterface_ functions; /* the VM's own table, with our GetEnv */

/*
 * Agents are libraries with a JVM_OnLoad, and the first one that requests the interface is the VM's
 * only agent. JNI libraries of the program and other parts of the agent may request it as well.
 */
static bool is_second_agent(const void *caller)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const void *agent;
    static char *agent_name;
    Dl_info library, entry;
    void *handle =
        dladdr(caller, &library) ? dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    const void *on_load = handle ? dlsym(handle, "JVM_OnLoad") : NULL;
    bool is_agent = on_load && dladdr(on_load, &entry) && entry.dli_fbase == library.dli_fbase;
    if (handle)
        dlclose(handle);
    if (!is_agent)
        return false;
    pthread_mutex_lock(&mutex);
    if (!agent) {
        agent = library.dli_fbase;
        agent_name = strdup(library.dli_fname);
    }
    bool second = agent != library.dli_fbase;
    if (second)
        fprintf(stderr, "jvmpi: %s: JVMPI knows one agent for each VM, and that is %s\n",
                library.dli_fname, agent_name ? agent_name : "another");
    pthread_mutex_unlock(&mutex);
    return second;
}

static jint JNICALL get_env(JavaVM *java, void **ret, jint version)
{
    if ((version & 0x70000000) != 0x10000000)
        return vm_get_env(java, ret, version);
    if (version < JVMPI_VERSION_1 || version > JVMPI_VERSION_1_2) {
        *ret = NULL;
        return JNI_EVERSION;
    }
    if (is_second_agent(__builtin_return_address(0))) {
        *ret = NULL;
        return JNI_ERR;
    }
    *ret = &jvmpi_interface;
    return JNI_OK;
}

/* ---- start and end ---- */

static void JNICALL on_vm_init(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    JVMPI_Event done = {.event_type = JVMPI_EVENT_JVM_INIT_DONE};
    JVMPI_Event arena = {.event_type = JVMPI_EVENT_ARENA_NEW,
                         .u.new_arena = {LAYER_ARENA, (char *)"Java heap"}};
    pthread_mutex_lock(&switching);
    for (jint i = 1; i <= JVMPI_MAX_EVENT_TYPE_VAL; i++)
        if (pending >> i & 1 && layer_enabled(i) && switch_on(i) != JVMPI_SUCCESS)
            fprintf(stderr, "jvmpi: the VM refuses event %d\n", (int)i);
    pending = 0;
    pthread_mutex_unlock(&switching);
    if (layer_enabled(JVMPI_EVENT_OBJECT_ALLOC))
        layer_allocations_see_all();
    boot_classes_find(env);
    my.replayer = true;
    atomic_store(&layer.replaying, true);
    atomic_store(&layer.live, true);
    /*
     * Report what exists before anything names it. Each of these functions reports what it needs
     * itself.
     */
    my.known_env = env;
    if (layer_mutation("early-done"))
        layer_notify(env, &done);
    if (layer_enabled(JVMPI_EVENT_ARENA_NEW) && !layer_mutation("no-arena"))
        layer_notify(env, &arena);
    thread_begin(env, thread);
    if (memory_start(env))
        fprintf(stderr, "jvmpi: the VM gives no thread for GC events\n");
    classes_replay(env);
    threads_replay(env);
    layer_memory_replay(env);
    /*
     * From here on other threads report as well. Afterwards, what has been added since is reported.
     */
    atomic_store(&layer.replaying, false);
    classes_replay(env);
    threads_replay(env);
    unsigned probes = 0;
    for (jint i = 1; i <= JVMPI_MAX_EVENT_TYPE_VAL; i++)
        probes |= layer_enabled(i) ? events[i].probes : 0;
    probes_expect(probes); /* in a single pass over the classes */
    for (jint i = 1; i <= JVMPI_MAX_EVENT_TYPE_VAL; i++)
        if (events[i].on && layer_enabled(i) && events[i].on(env) != JVMPI_SUCCESS)
            fprintf(stderr, "jvmpi: the VM refuses event %d\n", (int)i);
    if (layer_enabled(JVMPI_EVENT_JVM_INIT_DONE))
        layer_notify(env, &done);
    my.replayer = false;
}

static bool exits; /* with exit_code */
static jint exit_code;

void layer_exit_with(jint code)
{
    exits = true;
    exit_code = code;
}

void layer_close(JNIEnv *env)
{
    jthread thread = NULL;
    if (atomic_load(&layer.stage) != STAGE_OPEN)
        return;
    memory_stop();
    /*
     * The VM may have reported the thread's end already, but the agent must know the thread to
     * which this event belongs.
     */
    if (!thread_known(env) && !(*vm.ti)->GetCurrentThread(vm.ti, &thread) && thread)
        thread_begin(env, thread);
    my.ending = true; /* only now, because the start of a thread waits for dumps */
    layer_requests_close();
    atomic_store(&layer.stage, STAGE_CLOSING);
    layer_reports_close();
    atomic_store(&layer.stage, STAGE_CLOSED);
}

void layer_end(JNIEnv *env)
{
    JVMPI_Event end = {.event_type = JVMPI_EVENT_JVM_SHUT_DOWN};
    layer_close(env);
    if (layer_enabled(JVMPI_EVENT_JVM_SHUT_DOWN))
        layer_notify(env, &end);
    if (layer_mutation("after-the-end"))
        layer_notify(env, &(JVMPI_Event){.event_type = JVMPI_EVENT_DATA_RESET_REQUEST});
    atomic_store(&layer.down, true);
    layer_requests_release();
    threads_resume_all();
    if (exits)
        exit(exit_code);
}

static void JNICALL on_vm_death(jvmtiEnv *ti, JNIEnv *env)
{
    heap_walks_release();
    if (!atomic_load(&layer.down))
        layer_end(env);
}

static void JNICALL on_data_dump(jvmtiEnv *ti)
{
    JVMPI_Event dump = {.event_type = JVMPI_EVENT_DATA_DUMP_REQUEST},
                reset = {.event_type = JVMPI_EVENT_DATA_RESET_REQUEST};
    if (layer_enabled(JVMPI_EVENT_DATA_DUMP_REQUEST))
        layer_notify(vm_jni(), &dump);
    if (layer_enabled(JVMPI_EVENT_DATA_RESET_REQUEST))
        layer_notify(vm_jni(), &reset);
}

static const struct vm_callbacks life_events = {
    .ti = {.VMInit = on_vm_init, .VMDeath = on_vm_death, .DataDumpRequest = on_data_dump}};

/* Loads an agent given as "lib=/path/libprofiler.so[,opts=...]", for VMs without -Xrun. */
static int load_agent(JavaVM *java, const char *text)
{
    char *path = strdup(text + 4);
    char *options = path ? strstr(path, ",opts=") : NULL;
    if (options) {
        *options = 0;
        options += 6;
    }
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    jint(JNICALL * on_load)(JavaVM *, char *, void *) =
        library ? (jint(JNICALL *)(JavaVM *, char *, void *))dlsym(library, "JVM_OnLoad") : NULL;
    jint ret = JNI_ERR;
    if (!library)
        fprintf(stderr, "jvmpi: %s\n", dlerror());
    else if (!on_load)
        fprintf(stderr, "jvmpi: %s: the library has no JVM_OnLoad\n", path);
    else if ((ret = on_load(java, options, NULL)) != JNI_OK)
        fprintf(stderr, "jvmpi: %s: JVM_OnLoad returned %d\n", path, (int)ret);
    free(path);
    return ret;
}

/* Requests the capabilities that cost little. */
static void ask_capabilities(void)
{
    static const jvmtiCapabilities wanted = {
        .can_tag_objects = 1,
        .can_generate_garbage_collection_events = 1,
        .can_generate_object_free_events = 1,
        .can_generate_all_class_hook_events = 1,
        .can_generate_compiled_method_load_events = 1,
        .can_generate_monitor_events = 1,
        .can_generate_vm_object_alloc_events = 1,
        .can_get_line_numbers = 1,
        .can_get_source_file_name = 1,
        .can_get_owned_monitor_info = 1,
        .can_get_current_contended_monitor = 1,
        .can_get_monitor_info = 1,
        .can_get_current_thread_cpu_time = 1,
        .can_get_thread_cpu_time = 1,
        .can_suspend = 1,
        .can_retransform_classes = 1,
        .can_retransform_any_class = 1,
        .can_access_local_variables = 1,
    };
    jvmtiCapabilities one = wanted;
    if (vm_need(&one, NULL))
        fprintf(stderr, "jvmpi: the VM does not report its capabilities\n");
    if (vm.version >= 11) {
        jvmtiCapabilities sampled = {0};
        sampled.can_generate_sampled_object_alloc_events = 1;
        if (vm_need(&sampled, NULL))
            return; /* OBJECT_ALLOC will not be available */
        /*
         * Sample every allocation. Set this now, because a thread keeps counting with the interval
         * it began with.
         */
        if (vm.have.can_generate_sampled_object_alloc_events)
            (void)(*vm.ti)->SetHeapSamplingInterval(vm.ti, 0);
    }
}

jint JNICALL Agent_OnLoad(JavaVM *java, char *text, void *reserved)
{
    static bool loaded;
    if (loaded) {
        fprintf(stderr, "jvmpi: the layer is loaded already; JVMPI knows one agent for each VM\n");
        return JNI_ERR;
    }
    loaded = true;
    if (vm_open(java, false)) {
        fprintf(stderr, "jvmpi: the VM has no JVM TI\n");
        return JNI_ERR;
    }
    ask_capabilities();
    (void)!natives_watch(); /* methods_enable reports it if this is needed and missing */
    layer_mutate();
    vm_get_env = (*java)->GetEnv;
    functions = **java;
    functions.GetEnv = get_env;
    *(const struct JNIInvokeInterface_ **)java = &functions;
    if (memory_open() || vm_events_on(&life_events) || vm_events_on(&thread_events) ||
        vm_events_on(&class_watch_events) || layer_waits_watch()) {
        fprintf(stderr, "jvmpi: the VM refuses events\n");
        return JNI_ERR;
    }
    if (text && !strncmp(text, "lib=", 4))
        return load_agent(java, text);
    if (text && *text) {
        fprintf(stderr, "jvmpi: unknown option %s (lib=PATH[,opts=TEXT])\n", text);
        return JNI_ERR;
    }
    return JNI_OK;
}
