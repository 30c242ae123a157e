/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of a recording as tables: a new event is a new row. The built-in rows are in types.c.
 * The jdk.* rows have the JDK's fields in the JDK's order. The jvmscope.* rows are described in
 * doc/format.md, which a test compares.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum jfr_frame_type {
    JFR_FRAME_INTERPRETED = 1,
    JFR_FRAME_JIT = 2,
    JFR_FRAME_INLINED = 3,
    JFR_FRAME_NATIVE = 4, /* a Java native method or a function of a library */
    JFR_FRAME_CPP = 5,    /* a function of the VM itself */
    JFR_FRAME_KERNEL = 6,
    JFR_FRAME_STUB = 7, /* code that the VM generated and that is not a method */
    JFR_FRAME_C1 = 8,   /* compiled by the first compiler, where that is known */
    JFR_FRAME_JAVA = 9, /* how it was compiled is not known */
};

/*
 * Constants of the pool jdk.types.ThreadState. The numbers are those of JVM TI; the names are those
 * of HotSpot's JFR.
 */
enum jfr_thread_state {
    JFR_STATE_NEW = 0,
    JFR_STATE_TERMINATED = 2,
    JFR_STATE_RUNNABLE = 5,
    JFR_STATE_SLEEPING = 225,
    JFR_STATE_IN_OBJECT_WAIT = 401,
    JFR_STATE_IN_OBJECT_WAIT_TIMED = 417,
    JFR_STATE_PARKED = 657,
    JFR_STATE_PARKED_TIMED = 673,
    JFR_STATE_BLOCKED_ON_MONITOR_ENTER = 1025,
};

enum jfr_unit {
    JFR_PLAIN,
    JFR_TICKS_STAMP, /* a point in time in ticks, written by jfr_put_time */
    JFR_TICKS,       /* a duration in ticks; in files that we write a tick is a nanosecond */
    JFR_NANOS,
    JFR_MICROS,
    JFR_MILLIS,
    JFR_MILLIS_STAMP, /* milliseconds since 1970 */
    JFR_BYTES,
    JFR_ADDRESS,
    JFR_PERCENTAGE, /* float or double from 0 to 1 */
    JFR_UNSIGNED,
    JFR_HERTZ,
    JFR_CONTEXTUAL, /* a text that describes all events of the same thread during the event */
    JFR_UNITS,
};

struct jfr_field {
    const char *name, *label;
    /*
     * boolean byte char short int long float double java.lang.String, or the name of a type. If
     * that type is a pool, the field holds an id.
     */
    const char *type;
    enum jfr_unit unit;
    /*
     * An int count followed by the elements. Not for events: `jfr print` of JDK 17 to 25 fails on
     * them.
     */
    bool array;
    const char *description;
    /* Since JDK 25 `jfr print` shows the field with all events of the same thread and time. */
    bool contextual;
};

enum jfr_kind { JFR_EVENT, JFR_POOL, JFR_STRUCT };

/* The fields that an event has before its own ones, in addition to startTime. */
#define JFR_DURATION   1u /* duration: long, JFR_TICKS */
#define JFR_HAS_THREAD 2u /* eventThread: java.lang.Thread */
#define JFR_HAS_STACK  4u /* stackTrace: jdk.types.StackTrace */

struct jfr_type {
    const char *name, *label;
    const char *category; /* "Java Virtual Machine|Profiling"; events only */
    const char *description;
    enum jfr_kind kind;
    unsigned has;
    const struct jfr_field *fields; /* ended by a row without a name; NULL if there are none */
};

#define JFR_FIELDS(...) ((const struct jfr_field[]){__VA_ARGS__, {0}})

/*
 * The built-in types, in the order of the table in types.c. A pool holds the constants that fields
 * of its type refer to by id. Its entries come from jfr_define_*, from the resolver, or, if fixed,
 * from types.c.
 */
enum jfr_builtin {
    JFR_POOL_STRING, /* strings of jfr_define_string */
    JFR_POOL_THREAD_GROUP,
    JFR_POOL_THREAD,
    JFR_POOL_SYMBOL,
    JFR_POOL_MODULE,
    JFR_POOL_PACKAGE,
    JFR_POOL_CLASS_LOADER,
    JFR_POOL_CLASS,
    JFR_POOL_METHOD,
    JFR_POOL_FRAME_TYPE,
    JFR_STRUCT_FRAME,
    JFR_POOL_STACK_TRACE,
    JFR_POOL_THREAD_STATE,
    JFR_POOL_GC_CAUSE,
    JFR_POOL_GC_NAME,
    JFR_POOL_VM_OPERATION,
    JFR_POOL_GC_WHEN,
    JFR_STRUCT_VIRTUAL_SPACE,
    JFR_POOL_METHOD_KEY,

    JFR_JVM_INFORMATION,
    JFR_OS_INFORMATION,
    JFR_CPU_INFORMATION,
    JFR_INITIAL_SYSTEM_PROPERTY,
    JFR_NATIVE_LIBRARY,
    JFR_ACTIVE_RECORDING,
    JFR_ACTIVE_SETTING,
    JFR_DATA_LOSS,
    JFR_SHUTDOWN,
    JFR_THREAD_START,
    JFR_THREAD_END,
    JFR_EXECUTION_SAMPLE,
    JFR_NATIVE_METHOD_SAMPLE,
    JFR_CPU_LOAD,
    JFR_THREAD_CPU_LOAD,
    JFR_JAVA_THREAD_STATISTICS,
    JFR_GARBAGE_COLLECTION,
    JFR_GC_PHASE_PAUSE,
    JFR_GC_PHASE_PAUSE_LEVEL_1,
    JFR_GC_PHASE_CONCURRENT,
    JFR_GC_HEAP_SUMMARY,
    JFR_SAFEPOINT_BEGIN,
    JFR_SAFEPOINT_END,
    JFR_EXECUTE_VM_OPERATION,
    JFR_CLASS_LOADING_STATISTICS,
    JFR_COMPILER_STATISTICS,
    JFR_RESIDENT_SET_SIZE,
    JFR_CONTAINER_CONFIGURATION,
    JFR_CONTAINER_CPU_THROTTLING,
    JFR_CONTAINER_MEMORY_USAGE,
    JFR_OBJECT_ALLOCATION_SAMPLE,
    JFR_OBJECT_ALLOCATION_IN_NEW_TLAB,
    JFR_OBJECT_ALLOCATION_OUTSIDE_TLAB,
    JFR_JAVA_MONITOR_ENTER,
    JFR_JAVA_MONITOR_WAIT,
    JFR_THREAD_PARK,
    JFR_THREAD_SLEEP,
    JFR_FILE_READ,
    JFR_FILE_WRITE,
    JFR_SOCKET_READ,
    JFR_SOCKET_WRITE,
    JFR_JAVA_EXCEPTION_THROW,
    JFR_JAVA_ERROR_THROW,
    JFR_CLASS_LOAD,
    JFR_CLASS_UNLOAD,
    JFR_PHYSICAL_MEMORY,
    JFR_THREAD_DUMP,

    JFR_LOST,
    JFR_WALL_SAMPLE,

    JFR_BUILTINS
};

extern const struct jfr_type jfr_builtin_types[JFR_BUILTINS];
