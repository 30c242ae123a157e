/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VM, as all of the agent sees it: one JVM TI environment, its phase, capabilities and events.
 * Events are shared: each capture has its own table of callbacks, and vm.c enables an event while
 * at least one active table has it. Every callback is counted in and out, so that whoever retires a
 * table knows that nobody is inside any more (the four that start and stop captures themselves are
 * not: VMStart, VMInit, VMDeath, DataDumpRequest).
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
    /* Its ClassFileLoadHook comes before those of other tables, which get what it has made. */
    bool rewrites_first;
};

struct vm {
    JavaVM *java;
    jvmtiEnv *ti;
    int version;   /* 8, 11 ...: the specification's major version; 0 when unknown */
    bool hotspot;  /* by java.vm.name */
    bool live;     /* VMInit has passed and VMDeath has not */
    bool dying;    /* VMDeath: nothing needs to be taken back */
    bool attached; /* the library came by attach, not at start-up */
    bool late; /* the session that is on began in a VM that ran: its threads may be at anything */
    jvmtiCapabilities have;
};

extern struct vm vm;

/* Opens the JVM TI environment; -ENOTSUP when the VM has none. Once per process. */
int vm_open(JavaVM *java, bool attached) must_check;

/*
 * Asks for capabilities. Those that the VM cannot give (any more) are left in *ret_missing (may be
 * NULL) and are no error by themselves; the caller decides. vm.have tells what is there.
 */
int vm_need(const jvmtiCapabilities *wanted, jvmtiCapabilities *ret_missing) must_check;
/* The same without asking for any: which of them the VM would not give. */
int vm_could(const jvmtiCapabilities *wanted, jvmtiCapabilities *ret_missing) must_check;
bool vm_capabilities_empty(const jvmtiCapabilities *c);
/* Capability "virtual threads" (JVM TI 21), which older headers lack. */
void vm_capability_virtual_threads(jvmtiCapabilities *c);
/* Appends the names of the capabilities in c. */
void vm_capability_names(const jvmtiCapabilities *c, struct buf *out);

/*
 * Activates and retires a table of callbacks; both may be called in any phase that allows the
 * events in question. retire returns when no thread is inside a callback that began before (or
 * after two seconds, with -ETIMEDOUT), so it must not be called inside one. The table must stay.
 * -ENOSPC when there are too many, -EPROTO when the VM refuses an event.
 */
int vm_events_on(const struct vm_callbacks *table) must_check;
int vm_events_off(const struct vm_callbacks *table);
/* Waits until nobody is inside a callback that began before the call. 0 or -ETIMEDOUT. */
int vm_wait_callbacks(void);

/*
 * The calling thread's JNI environment, NULL when it is not attached to the VM. Async-signal-safe
 * on HotSpot.
 */
JNIEnv *vm_jni(void);

static inline void vm_free(void *memory) /* memory that JVM TI allocated */
{
    if (memory)
        (*vm.ti)->Deallocate(vm.ti, memory);
}

/* Clears a pending exception; true when there was one. */
bool vm_clear_exception(JNIEnv *jni);

/*
 * An instance method of a class of the JDK ("java/lang/Thread"), NULL when there is none; no
 * exception is left behind.
 */
jmethodID vm_method(JNIEnv *jni, const char *class_name, const char *name, const char *descriptor);

/* Whether the VM is past its start: an agent that is loaded with it begins before. */
bool vm_is_live(void);

/*
 * Bytes of an object that was just made to be measured, and gives its local reference back; 0 when
 * it could not be made, whose exception is cleared.
 */
jlong vm_size_of_new(JNIEnv *jni, jobject o);

/*
 * The JDK's Unsafe object and its class, two local references; NULL, and no class, when it cannot
 * be had.
 */
jobject vm_unsafe(JNIEnv *jni, jclass *ret_class);
/* The same of its class, which may be NULL. */
jobject vm_unsafe_of(JNIEnv *jni, jclass class);

/* A function that libjvm exports, by its symbol; NULL when there is none. */
void *vm_libjvm_function(const char *symbol);
