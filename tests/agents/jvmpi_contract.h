/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract agent: an agent in the style of JDK 1.2 that trusts nothing. It enables every event,
 * keeps the tables that such agents keep, looks up each id in each event, trace, dump and answer,
 * requests what it lacks, and records each breach of the specification. The main rule is that of
 * section 1.4: when the defining events are enabled from the start, an id is defined exactly once,
 * before any event names it.
 *
 * All tables are read and written under one raw monitor, which is also held from GC_START to
 * GC_FINISH.
 */
#include "jvmpi.h"
#include "jvmpi_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct class_record {
    jobjectID id;
    char *name;
    jint n_methods, n_interfaces, n_statics, n_instances;
    jmethodID *methods;
    char *statics, *instances; /* the first letter of each field's signature */
    long living;               /* live instances, and arrays of it */
    struct class_record *super;
    bool super_known, by_request, unloaded;
    bool asked; /* GetMethodClass was called, once */
    const char *where;
};

struct object_record {
    jobjectID id, class_id;
    jint is_array, size, arena;
    const char *where; /* defined by a request: where the id was found */
    bool by_request;   /* its own event has not arrived yet */
    int contenders;    /* threads between CONTENDED_ENTER and CONTENDED_ENTERED */
};

enum { STACK = 4096 };

struct thread_record {
    JNIEnv *env;
    jobjectID id;
    char name[64];
    const char *where;
    bool by_request, early; /* early: it ran before the events were enabled */
    jobjectID contended, waiting;
    bool in_contended, in_wait, in_raw;
    jint depth;
    jmethodID stack[STACK];
};

/* ---- jvmpi_contract.c ---- */
extern JVMPI_Interface *vm;
extern JavaVM *java_vm;
extern JVMPI_RawMonitor tables;
/* all_defined: the main thread's THREAD_START has arrived. */
extern bool all_defined, init_done, shut_down;
extern long n_gc, n_dumps[3], n_monitor_dumps, n_object_dumps;

/* Records a breach. `what` is its kind, for which the first details are kept. */
void breach(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
void request_dumps(void);
long now_ms(void);

/* ---- jvmpi_contract_tables.c; requires the monitor ---- */
extern struct table objects, classes, threads, references, arenas;

/*
 * Each returns NULL for NULL, and NULL with a breach when neither an event nor a request defines
 * the id.
 */
struct object_record *object_of(jobjectID id, const char *where);
struct class_record *class_of(jobjectID id, const char *where);
struct thread_record *thread_of(JNIEnv *env, const char *where);
/*
 * Requests the THREAD_START of a thread that may be unannounced for now; its own event must not
 * follow.
 */
void define_thread(JNIEnv *env, const char *where);
/* Returns true when the event is enabled, so that it defines ids before anything names them. */
bool is_enabled(jint type);
/*
 * Positive while a dump is read that was requested without a lock of ours: each id in it must have
 * been defined by its event.
 */
extern __thread int strict;
/* Returns the class of a method. Does not need the monitor. */
struct class_record *class_of_known_method(jmethodID method);
struct class_record *class_of_method(jmethodID method, const char *where);
void check_trace(const JVMPI_CallTrace *trace, const char *where);

void on_object_alloc(const JVMPI_Event *e, bool requested);
void on_object_free(jobjectID id);
void on_class_load(const JVMPI_Event *e, bool requested);
void on_class_unload(jobjectID id);
void on_thread_start(const JVMPI_Event *e, bool requested);
void on_thread_end(JNIEnv *env);
/* Requests what the tables have; each answer must be that of the event. */
void request_known(void);
/* Reports what only requests have defined although its own event should have arrived. */
void check_tables_at_end(void);

/* ---- jvmpi_contract_dumps.c ---- */
void on_heap_dump(const JVMPI_Event *e);
void on_object_dump(const JVMPI_Event *e);
void on_monitor_dump(const JVMPI_Event *e);
