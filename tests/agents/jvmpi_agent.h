/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of the checking agent. jvmpi_agent.c counts events; each of the
 * other files has one topic.
 */
#include "jvmpi.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- jvmpi_agent.c ---- */
extern JVMPI_Interface *jvmpi;
extern JavaVM *java_vm;
extern pthread_mutex_t lock;
extern long counts[64], requested[64];
extern long init_order; /* digits in the order of the events: 1 allocations, 2 classes, 4 threads */

void fault(const char *what);
void pause_ms(long ms);
long now_ms(void);

/* ---- jvmpi_agent_known.c: identities ---- */
struct known_thread {
    JNIEnv *env;
    jobjectID id;
    char name[64];
};

struct known_class {
    jobjectID id;
    char name[128];
    JVMPI_Method *methods;
    int n_methods, n_statics, n_instances, n_interfaces, unloaded;
};

extern struct known_thread threads[4096];
extern struct known_class classes[20000];
extern int n_threads, n_classes;
extern jobjectID marker_class;

struct known_thread *thread_by_name(const char *name);
struct known_class *class_by_name(const char *name);
jmethodID method_named(const char *class_name, const char *name);
void on_class_load(JVMPI_Event *e);
void on_class_unload(JVMPI_Event *e);
void on_thread_start(JVMPI_Event *e);
void on_thread_end(JVMPI_Event *e);

/* ---- jvmpi_agent_methods.c: entries, exits, instructions ---- */
extern long entries_of_leaf, exits_of_leaf, entries_of_thrower, exits_of_thrower,
    entries_with_object;
extern jobjectID wanted_receiver;
extern long total_entries, total_exits, n_steps, plain_offsets;
extern char steps[400];

void on_method(JVMPI_Event *e, int type);
void on_instruction(JVMPI_Event *e);
/*
 * From now on counts the entries and exits of "JvmpiWork.leaf" in this thread only. Returns 0, or
 * -1 when there is no such method.
 */
long count_calls(JNIEnv *env, const char *what);
/* Returns entries * 1,000,000 + exits. */
long counted_calls(void);

/* ---- jvmpi_agent_objects.c: allocations, their end, collections, dumps ---- */
extern long allocated_markers, allocated_ints, frees_outside_gc;
extern JVMPI_RawMonitor gc_monitor;
extern jlong last_used_objects;
extern long dump_bytes, dump_records, object_dump_type, object_dump_len;
extern jobjectID dump_wanted;
extern unsigned char object_dump[4096];

void on_object(JVMPI_Event *e, int type);
void on_gc(JVMPI_Event *e, int type);
void on_heap_dump(JVMPI_Event *e);
void on_object_dump(JVMPI_Event *e);
long all_marker_frees(void);
jobjectID marker_reported(long i);

/* ---- jvmpi_agent_monitors.c ---- */
extern long last_wait_timeout, last_waited, sleeps, slept;
/* The events of one monitor are counted separately. */
extern jobjectID last_contended, last_waited_on, watched;
extern long watched_counts[64];
extern long monitor_owner_found, monitor_traces;
/*
 * The sum for the wanted monitor: a million for each entry, a thousand for each entrant, and the
 * number of waiters.
 */
extern long monitor_parties;
extern JNIEnv *monitor_wanted_owner;

void on_monitor(JVMPI_Event *e, int type);
void on_monitor_dump(JVMPI_Event *e);
long raw_monitors(const char *name);
long raw_dump(int waits);
long raw_rules(void);

/* ---- jvmpi_agent_ask.c: questions ---- */
extern jobject last_ref;
extern jobjectID last_ref_object;
extern jint last_exit_code; /* of a ProfilerExit in JVM_SHUT_DOWN, or 0 */
extern long leaf_compiled, hook_seen_magic, hook_patched;

/* ---- jvmpi_agent_rules.c: section 1.5 of the specification ---- */
void rules_event(JVMPI_Event *e, int type);
long rules_ask(JNIEnv *env, const char *what, jobject o);
