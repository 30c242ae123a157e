/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profiler as they were written for JDK 1.2. It keeps tables, requests what it lacks, and relies
 * on what the specification promises. If it cannot make sense of something it ends the VM with
 * status 9 and a line of text. Options, separated by commas: heap=sites, heap=dump, heap=all,
 * cpu=samples, cpu=times, monitor=y, depth=N.
 */
#include "jvmpi.h"
#include "jvmpi_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct class_info {
    jobjectID id;
    char *name;
    jint n_interfaces, n_statics, n_instances;
    char *statics, *instances;
    struct class_info *super;
    bool linked; /* the super class is known */
};

struct site { /* where allocations happen: a class and the innermost frame */
    struct class_info *class;
    jmethodID method;
    long n_alive, n_all;
};

struct object_info {
    jobjectID id;
    struct site *site;
    jint size, is_array;
    bool requested;
};

enum { FRAMES = 2048 };

struct thread_info {
    JNIEnv *env;
    char *name;
    jobjectID monitor; /* the monitor that the thread contends for */
    jint depth;
    jmethodID stack[FRAMES];
    jlong entered_ns[FRAMES];
    bool early;
};

extern JVMPI_Interface *vm;

/* Ends the VM with a message. */
void fatal(const char *what, const void *id) __attribute__((noreturn));
/*
 * Each requests what is not in its table, and calls fatal() when that does not help. They return
 * NULL for NULL and require the data monitor.
 */
struct object_info *object_info(jobjectID id);
struct class_info *class_info(jobjectID id);
struct thread_info *thread_info(JNIEnv *env);
struct class_info *method_info(jmethodID method);
/* Returns the super class, taken from the class's own dump. */
struct class_info *super_class(struct class_info *c);

/* ---- jvmpi_classic_dump.c ---- */
extern long n_records;
void read_heap_dump(const JVMPI_Event *e);
void read_object_dump(const JVMPI_Event *e);
void read_monitor_dump(const JVMPI_Event *e);
