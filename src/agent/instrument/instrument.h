/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruments classes when they are loaded and, at start and stop, those that are already loaded.
 * Clients edit methods; this module chooses the classes, runs all clients on a class in one
 * rewriting, and passes the result to the VM. In case of doubt a class or method is left unchanged
 * and counted.
 *
 * Never instrumented: native methods; java.lang.Object and Thread (except for clients that ask for
 * them), Thread's nested classes, the virtual thread machinery, Unsafe, our probes; methods that
 * the JIT replaces as a whole (intrinsics), because their code does not run; classes that the VM
 * does not allow anyone to change (hidden classes, lambda proxies).
 */
#pragma once

#include "base/buf.h"
#include "classfile/rewrite.h"

#include <jni.h>

struct instrument_class {
    const struct class_file *file;
    struct rewrite *rewrite;
    struct str name;     /* java/lang/String */
    struct str source;   /* the SourceFile attribute; empty when there is none */
    bool virtual_thread; /* java.lang.VirtualThread, which is offered only for its mount hooks */
    bool loaded;         /* the class is already loaded; otherwise it is being loaded */
    /* java.lang.Object and Thread, which are offered only to clients that ask for them */
    bool object, thread;
    bool scanned;     /* the result is discarded: nothing must be counted or kept */
    uint64_t clients; /* to which the class may be offered, as bits; for instrumentation itself */
};

/* Why methods and classes were left alone. */
enum instrument_reason {
    LEFT_MALFORMED,
    LEFT_TOO_LONG, /* 64 KiB */
    LEFT_HUGE,     /* the JIT's 8,000 bytes */
    LEFT_POOL,     /* constant pool full */
    LEFT_TABLE,    /* a client's table is full: -ENOBUFS */
    LEFT_UNKNOWN_CODE,
    LEFT_MEMORY,
    LEFT_INTRINSIC,
    LEFT_NATIVE, /* it has no bytecode */
    LEFT_REASONS
};

struct instrument_client {
    const char *name;
    /*
     * Inserts this client's probes into a method. Returns 1 if it did, 0 if there is nothing to
     * insert, or a negative errno: then the method is left unchanged for all clients and counted.
     * Runs on any thread, also concurrently; no JNI.
     */
    int (*edit)(const struct instrument_class *c, struct edit *e);
    /*
     * Called once before the first class that the client wants is offered to it, on the thread that
     * loads the class; the threads that load others wait. If it fails, no class is offered to the
     * client. May be NULL.
     */
    int (*prepare)(JNIEnv *jni);
    bool virtual_threads; /* wants to be offered java.lang.VirtualThread */
    bool intrinsics;      /* wants to be offered methods that the JIT may replace by intrinsics */
    /*
     * This client's own selection of classes, which replaces the patterns of instrument_choose; any
     * thread.
     */
    bool (*wants)(struct str class_name);
    /*
     * The only classes that `wants` and `virtual_threads` can mean, all of the boot loader, ending
     * with NULL; they are looked up instead of going through all loaded classes. May be NULL.
     */
    const char *const *only;
    /*
     * Classes that the patterns of instrument_choose select and this client never changes: they are
     * not offered to it, and not transformed for it. May be NULL; any thread.
     */
    bool (*skips)(struct str class_name);
    /*
     * Is offered only loaded classes: those that instrument_on finds, and others when they are
     * prepared. If the verifier rejects a class's new code, the class keeps its old code.
     */
    bool loaded_only;
    /*
     * Loaded classes that have not been linked are offered to this client when they are. The VM
     * would have to link them in order to change them, which delays the start of a program.
     */
    bool when_linked;
    /* Called with each class after it was loaded, before `wants` is called for it. May be NULL. */
    void (*on_class)(JNIEnv *jni, jclass class, struct str class_name);
    /* The VM has refused the class with code of this client (and possibly others). May be NULL. */
    void (*refused)(struct str class_name);
    bool object, thread; /* wants to be offered java.lang.Object; java.lang.Thread */
    /*
     * When the VM starts, java.lang.Thread is offered to this client only once it has changed
     * another class. Changing it takes the VM 2 to 4 ms, for which the program would have to wait.
     */
    bool thread_last;
    /*
     * Leaves many of the classes that it is offered unchanged. When attaching to a VM, loaded
     * classes are then edited twice, and only those that the first edit changes are transformed.
     * Those that it changed for an earlier recording are edited once.
     */
    bool seldom;
    /* Called for native methods that the JIT may replace. May be NULL. */
    void (*intrinsic)(struct str class_name, struct str method);
    /*
     * A method that was offered to the client, or would have been if not for `why`, was left
     * unchanged. Any thread; no JNI. May be NULL.
     */
    void (*left)(const struct instrument_class *c, const struct class_method *m,
                 enum instrument_reason why);
};

extern const char *const instrument_reasons[LEFT_REASONS];

/*
 * Sets the selection of classes and methods: patterns separated by ':' (NULL or "": include
 * everything, exclude nothing). `*` stands for any characters. A pattern matches if what it covers
 * ends at a '.', a '$' or the end of package.Class.method. Returns 0 or -ENOMEM.
 */
int instrument_choose(const char *include, const char *exclude) must_check;

/* Returns whether a class belongs to the JDK, judged by its package. */
bool instrument_is_jdk(struct str class_name);

/* Returns whether instrument_choose selects a method. */
bool instrument_chosen(struct str class_name, struct str method, struct str descriptor);
/*
 * Adds a client and applies it to all loaded classes. To be called in the live phase; in a VM that
 * was already running it may take half a minute. Returns 0 or a negative errno; with a sentence in
 * why except for -ENOSPC, when too many clients exist.
 */
int instrument_on(const struct instrument_client *c, JNIEnv *jni, struct buf *why) must_check;
/*
 * Applies a client again that was added before, because it wants other classes or edits them in
 * another way. Meanwhile each class has either the old probes or the new ones. Returns 0, -ENOENT
 * if the client was not added, or -EPROTO when the VM does not list its classes.
 */
int instrument_change(const struct instrument_client *c, JNIEnv *jni) must_check;
/*
 * Called between two batches while loaded classes are transformed, by the thread that does it. May
 * be NULL.
 */
extern void (*instrument_pause)(JNIEnv *jni);
/* Called after each batch with the number of classes done and in total. May be NULL. */
extern void (*instrument_progress)(int done, int of);
/*
 * Removes a client and its probes from all classes, if it was added and unless the VM is ending. No
 * new call of its edit function begins after this returns.
 */
void instrument_off(const struct instrument_client *c, JNIEnv *jni);
/*
 * Like instrument_off, but in a VM that was running before the agent came, the probes stay in the
 * classes until instrument_restore removes them. Until then they may still run in any thread.
 */
void instrument_off_later(const struct instrument_client *c, JNIEnv *jni);
/*
 * Removes the probes that instrument_off_later left. This may take half a minute; an instrument_on
 * that is called meanwhile waits for it and makes it continue without pauses. Returns at once when
 * there is nothing to do or another thread is doing it.
 */
void instrument_restore(JNIEnv *jni);
/* Returns whether a thread is in instrument_restore, or probes wait for it. Any thread. */
bool instrument_restoring(void);

/*
 * Appends status lines "instrument.classes N" ...; none when nothing is instrumented. While
 * instrument_restore is at work, "restoring N of M classes".
 */
void instrument_status(struct buf *out);
