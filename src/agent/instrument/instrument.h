/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instrumentation of classes as they are loaded and, at start and stop, of those that are there.
 * Clients edit methods; this module chooses the classes, runs the clients over them in one
 * rewriting, and hands the result to the VM. On any doubt a class or method stays as it was and is
 * counted.
 *
 * Never instrumented: native methods; java.lang.Object and Thread (but for clients that ask for
 * them), Thread's nested classes, the virtual thread machinery, Unsafe, our probes; methods that
 * the JIT replaces as a whole (intrinsics), since their code does not run; classes that the VM does
 * not let anybody change (hidden classes, lambda proxies).
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
    bool virtual_thread; /* java.lang.VirtualThread, which is offered for mount hooks alone */
    bool loaded;         /* the class is there already; else it is being loaded */
    bool object, thread; /* java.lang.Object and Thread, which are offered to who asks for them */
    bool looked_at;      /* what comes of it is thrown away: nothing is to be counted or kept */
};

/* Why methods and classes were left alone. */
enum instrument_reason {
    LEFT_MALFORMED,
    LEFT_TOO_LONG, /* 64 KiB */
    LEFT_HUGE,     /* the JIT's 8,000 bytes */
    LEFT_POOL,     /* constant pool full */
    LEFT_TABLE,    /* a client's own table is full: -ENOBUFS */
    LEFT_DOUBT,
    LEFT_MEMORY,
    LEFT_INTRINSIC,
    LEFT_NATIVE, /* there is no bytecode */
    LEFT_REASONS
};

struct instrument_client {
    const char *name;
    /*
     * Inserts this client's probes into a method. 1: done; 0: nothing to do here; negative errno:
     * the method is to stay as it was, for all clients, and is counted. Runs on any thread, several
     * at once; no JNI.
     */
    int (*edit)(const struct instrument_class *c, struct edit *e);
    bool virtual_threads; /* wants to be offered java.lang.VirtualThread */
    bool intrinsics;      /* wants to be offered methods that the JIT may replace */
    /*
     * This client's own choice of classes, instead of the patterns of instrument_choose; any
     * thread.
     */
    bool (*wants)(struct str class_name);
    /*
     * Offered classes that are loaded alone: such as instrument_on finds, and others when they are
     * prepared. A class whose new code the verifier does not take then stays as it was.
     */
    bool loaded_only;
    /*
     * Called for each class before `wants` is asked on behalf of it once it is loaded. May be NULL.
     */
    void (*look)(JNIEnv *jni, jclass class, struct str class_name);
    /* The VM did not take the class with this client's code (among others'). May be NULL. */
    void (*refused)(struct str class_name);
    bool object, thread; /* wants to be offered java.lang.Object; java.lang.Thread */
    /*
     * Leaves many of the classes that it is offered as they are: in a VM that was attached to,
     * loaded ones are edited twice, and only those that it changes the first time are transformed.
     */
    bool seldom;
    /* Told of native methods that the JIT may replace. May be NULL. */
    void (*intrinsic)(struct str class_name, struct str method);
    /*
     * A method that was offered to it, or would have been but for `why`, stays as it was. Any
     * thread; no JNI. May be NULL.
     */
    void (*left)(const struct instrument_class *c, const struct class_method *m,
                 enum instrument_reason why);
};

extern const char *const instrument_reasons[LEFT_REASONS];

struct instrument_counts {
    uint64_t classes, methods;   /* changed */
    uint64_t left[LEFT_REASONS]; /* methods */
    uint64_t refused_classes;    /* by the VM, or malformed */
    /* classes: seen among the loaded ones; JDK 8's anonymous ones */
    uint64_t unmodifiable, nameless;
};

/*
 * Sets the choice of classes and methods: patterns separated by ':' (or NULL for all and none). `*`
 * stands for any characters; a pattern that matches up to a '.', '$' or the end of
 * package.Class.method matches.
 */
int instrument_choose(const char *include, const char *exclude) must_check;

/* Whether a class is of the JDK, by its package. */
bool instrument_is_jdk(struct str class_name);

/*
 * Adds a client and applies it to all loaded classes. The live phase; may take half a minute in a
 * VM that was attached to.
 */
int instrument_on(const struct instrument_client *c, JNIEnv *jni, struct buf *why) must_check;
/* Applies all clients once more: one of them edits otherwise now. */
int instrument_again(JNIEnv *jni) must_check;
/*
 * Called while loaded classes are transformed, between two batches, by the thread that does it. May
 * be NULL.
 */
extern void (*instrument_pause)(JNIEnv *jni);
/* Called after each batch, so many classes of so many. May be NULL. */
extern void (*instrument_progress)(int done, int of);
/*
 * Takes it back out of all classes, if it is in them and unless the VM is dying; when it returns no
 * new call of its edit begins.
 */
void instrument_off(const struct instrument_client *c, JNIEnv *jni);

struct instrument_counts instrument_counts(void);
/* Appends status lines "instrument.classes N" ...; none when nothing is instrumented. */
void instrument_status(struct buf *out);
