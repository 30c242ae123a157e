/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VM as the whole agent sees it: one JVM TI environment, its phase, capabilities and events.
 * Events are shared: each capture has its own table of callbacks, and vm.c enables an event while
 * at least one active table has it. Every callback is counted in and out, so that a table can be
 * retired once no callback is running (except for the four that start and stop captures themselves:
 * VMStart, VMInit, VMDeath, DataDumpRequest).
 */
#pragma once

#include "base/buf.h"
#include "base/macro.h"

#include <jvmti.h>
#include <stdbool.h>

/*
 * JVM TI's table and the events since JDK 21, VirtualThreadStart and VirtualThreadEnd (87 and 88),
 * which older headers lack.
 */
struct vm_callbacks {
    jvmtiEventCallbacks ti;
#ifdef JNI_VERSION_21
#define VM_VIRTUAL_THREAD_START ti.VirtualThreadStart
#define VM_VIRTUAL_THREAD_END   ti.VirtualThreadEnd
#else
#define VM_VIRTUAL_THREAD_START VirtualThreadStart
#define VM_VIRTUAL_THREAD_END   VirtualThreadEnd
    void(JNICALL *VirtualThreadStart)(jvmtiEnv *, JNIEnv *, jthread);
    void(JNICALL *VirtualThreadEnd)(jvmtiEnv *, JNIEnv *, jthread);
#endif
    /* Its ClassFileLoadHook precedes those of other tables, which receive its result. */
    bool rewrites_first;
};

struct vm {
    JavaVM *java;
    jvmtiEnv *ti;
    int version;   /* 8, 11 ...: the major version of the specification; 0 when unknown */
    bool hotspot;  /* by java.vm.name */
    bool live;     /* after VMInit and before VMDeath */
    bool dying;    /* in VMDeath: nothing needs to be undone */
    bool attached; /* the library was loaded by attach rather than at start-up */
    bool late;     /* the current session began in a running VM, whose threads may be anywhere */
    jvmtiCapabilities have;
};

extern struct vm vm;
/*
 * True while the calling thread begins a session, so that the Java code that it calls is not the
 * program's.
 */
extern __thread bool vm_beginning;

/*
 * Creates the JVM TI environment, once per process. attached: the VM was running already, so its
 * live phase has begun. Returns 0, or -ENOTSUP when the VM has none or refuses the callbacks.
 */
int vm_open(JavaVM *java, bool attached) must_check;

/*
 * Requests capabilities. Stores those that the VM cannot grant (any more) in *ret_missing (may be
 * NULL); these alone are no error, and the caller decides. vm.have contains those that
 * are present. Returns 0, or -EPROTO when the VM refuses the request.
 */
int vm_need(const jvmtiCapabilities *wanted, jvmtiCapabilities *ret_missing) must_check;
/*
 * Stores in *ret_missing which of the capabilities the VM would not grant, without requesting any.
 * Returns 0, or -EPROTO when the VM does not answer.
 */
int vm_could(const jvmtiCapabilities *wanted, jvmtiCapabilities *ret_missing) must_check;
bool vm_capabilities_empty(const jvmtiCapabilities *c);
/* Adds the capability "virtual threads" (JVM TI 21), which older headers lack. */
void vm_capability_virtual_threads(jvmtiCapabilities *c);
/* Appends the names of the capabilities in c. */
void vm_capability_names(const jvmtiCapabilities *c, struct buf *out);
/* Appends what the capabilities in c allow, in words: "exception events, owned monitor info". */
void vm_capability_words(const jvmtiCapabilities *c, struct buf *out);

/*
 * Activate and retire a table of callbacks; both may be called in any phase that allows the events
 * in question. The table must remain valid. vm_events_on returns 0, -ENOSPC when there are too many
 * tables, or -EPROTO when the VM refuses an event. vm_events_off returns when no thread is inside a
 * callback that began before, with 0, or after one or two seconds, with -ETIMEDOUT. It must not be
 * called in a callback.
 */
int vm_events_on(const struct vm_callbacks *table) must_check;
int vm_events_off(const struct vm_callbacks *table);
/* Waits until all callbacks that began before the call have ended. Returns 0, or -ETIMEDOUT. */
int vm_wait_callbacks(void);

/*
 * Returns the calling thread's JNI environment, NULL when the thread is not attached to the VM.
 * Async-signal-safe on HotSpot.
 */
JNIEnv *vm_jni(void);

static inline void vm_free(void *memory) /* memory that JVM TI allocated */
{
    if (memory)
        (*vm.ti)->Deallocate(vm.ti, memory);
}

/* Frees what GetThreadInfo has returned: the name and the local references. */
static inline void vm_free_thread_info(JNIEnv *jni, const jvmtiThreadInfo *info)
{
    vm_free(info->name);
    if (info->thread_group)
        (*jni)->DeleteLocalRef(jni, info->thread_group);
    if (info->context_class_loader)
        (*jni)->DeleteLocalRef(jni, info->context_class_loader);
}

/* Clears a pending exception. Returns whether there was one. */
static inline bool vm_clear_exception(JNIEnv *jni)
{
    bool pending = (*jni)->ExceptionCheck(jni);
    if (pending)
        (*jni)->ExceptionClear(jni);
    return pending;
}

/*
 * These call a method without arguments; after an exception, which is cleared, the result is NULL
 * or 0. When another function of JNI follows a call directly, -Xcheck:jni prints a warning on the
 * program's standard output.
 */
static inline jobject vm_call_object(JNIEnv *jni, jobject o, jmethodID m)
{
    jobject result = o && m ? (*jni)->CallObjectMethod(jni, o, m) : NULL;
    return vm_clear_exception(jni) ? NULL : result;
}

static inline jlong vm_call_long(JNIEnv *jni, jobject o, jmethodID m)
{
    jlong result = (*jni)->CallLongMethod(jni, o, m);
    return vm_clear_exception(jni) ? 0 : result;
}

static inline jint vm_call_int(JNIEnv *jni, jobject o, jmethodID m)
{
    jint result = (*jni)->CallIntMethod(jni, o, m);
    return vm_clear_exception(jni) ? 0 : result;
}

/*
 * Returns the address of HotSpot's own structure of a platform thread (NULL: the calling one), from
 * the field where java.lang.Thread keeps it; 0 when there is none.
 */
uint64_t vm_thread_address(JNIEnv *jni, jthread thread);
/* Appends a string in modified UTF-8. Returns false when `text` is NULL or memory runs out. */
bool vm_put_string(JNIEnv *jni, jstring text, struct buf *out);

/*
 * Announces to the VM any number of local references, up to the end of the current frame or native
 * method. Without that -Xcheck:jni of JDK 8 and 11 prints a warning on the program's standard
 * output when there are more than 32.
 */
void vm_expect_references(JNIEnv *jni);

/*
 * Store JVM TI's lists of threads, with their references announced. The caller frees the lists with
 * vm_free and deletes the references.
 */
jvmtiError vm_all_threads(jint *ret_n, jthread **ret_threads) must_check;
jvmtiError vm_all_stacks(jint depth, jint *ret_n, jvmtiStackInfo **ret_infos) must_check;

/*
 * Returns an instance method of a class of the JDK ("java/lang/Thread"), or NULL when there is
 * none; no exception is left behind.
 */
jmethodID vm_method(JNIEnv *jni, const char *class_name, const char *name, const char *descriptor);
/*
 * Returns an instance field of a class of the JDK, or NULL when there is none; no exception is left
 * behind.
 */
jfieldID vm_field(JNIEnv *jni, const char *class_name, const char *name, const char *descriptor);
/*
 * Returns a class of the JDK as a local reference, or NULL when there is none; no exception is left
 * behind. A class of the boot loader is taken from there: where no Java code is running, FindClass
 * asks the application's loader, which runs Java code for a third of a millisecond. Unlike
 * FindClass, this does not prepare a class of the boot loader, of which JVM TI then lists no
 * fields; JNI's functions for fields and methods prepare it.
 */
jclass vm_find_class(JNIEnv *jni, const char *name);
/*
 * Returns a class of the boot loader as a local reference if the class is loaded, and otherwise
 * NULL. *ret_known is false if the VM does not say whether the class is loaded.
 */
jclass vm_loaded_boot_class(JNIEnv *jni, const char *name, bool *ret_known);
/* Returns a class of the JDK as a global reference; NULL when there is none. */
jclass vm_class(JNIEnv *jni, const char *name);

/*
 * Returns whether the VM is in JVM TI's live phase: it has finished starting and has not ended. An
 * agent that is loaded at start-up is initialized before it.
 */
bool vm_is_live(void);

/*
 * Returns the size in bytes of an object that was created only to be measured; releases its local
 * reference. Returns 0 when it could not be created; the exception is cleared.
 */
jlong vm_size_of_new(JNIEnv *jni, jobject o);

/*
 * Returns the JDK's Unsafe object and its class, as two local references; NULL, and no class, on
 * failure.
 */
jobject vm_unsafe(JNIEnv *jni, jclass *ret_class);
/*
 * Returns the JDK's Unsafe object, given its class, which may be NULL, as a local reference; NULL
 * on failure.
 */
jobject vm_unsafe_of(JNIEnv *jni, jclass class);

/* Returns a function that libjvm exports, by its symbol; NULL when there is none. */
void *vm_libjvm_function(const char *symbol);
