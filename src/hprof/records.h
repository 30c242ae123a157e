/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants of HPROF's binary format (HPROF Agent, "Binary Dump Format"). All numbers in a file
 * are big-endian. An ID has the size given in the header, 4 or 8 bytes.
 */
#pragma once

#include <stdint.h>

#define HPROF_MAGIC_1_0_1 "JAVA PROFILE 1.0.1" /* heap dumps are HEAP DUMP records */
#define HPROF_MAGIC_1_0_2 "JAVA PROFILE 1.0.2" /* heap dumps are HEAP DUMP SEGMENT records */

/*
 * A record: u1 tag, u4 microseconds since the header's time (wraps after 71.6 minutes), u4 length
 * of the body.
 */
enum { HPROF_RECORD_HEADER = 9 };

enum hprof_tag {
    HPROF_UTF8 = 0x01,
    HPROF_LOAD_CLASS = 0x02,
    HPROF_UNLOAD_CLASS = 0x03,
    HPROF_FRAME = 0x04,
    HPROF_TRACE = 0x05,
    HPROF_ALLOC_SITES = 0x06,
    HPROF_HEAP_SUMMARY = 0x07,
    HPROF_START_THREAD = 0x0a,
    HPROF_END_THREAD = 0x0b,
    HPROF_HEAP_DUMP = 0x0c,
    HPROF_CPU_SAMPLES = 0x0d,
    HPROF_CONTROL_SETTINGS = 0x0e,
    HPROF_HEAP_DUMP_SEGMENT = 0x1c,
    HPROF_HEAP_DUMP_END = 0x2c,
};

/* The sub-records of a heap dump: u1 tag, then a body that has no length field. */
enum hprof_sub_tag {
    HPROF_ROOT_JNI_GLOBAL = 0x01,
    HPROF_ROOT_JNI_LOCAL = 0x02,
    HPROF_ROOT_JAVA_FRAME = 0x03,
    HPROF_ROOT_NATIVE_STACK = 0x04,
    HPROF_ROOT_STICKY_CLASS = 0x05,
    HPROF_ROOT_THREAD_BLOCK = 0x06,
    HPROF_ROOT_MONITOR_USED = 0x07,
    HPROF_ROOT_THREAD_OBJECT = 0x08,
    HPROF_CLASS_DUMP = 0x20,
    HPROF_INSTANCE_DUMP = 0x21,
    HPROF_OBJECT_ARRAY_DUMP = 0x22,
    HPROF_PRIMITIVE_ARRAY_DUMP = 0x23,
    HPROF_ROOT_UNKNOWN = 0xff,
};

enum hprof_type {
    HPROF_OBJECT = 2,
    HPROF_BOOLEAN = 4,
    HPROF_CHAR = 5,
    HPROF_FLOAT = 6,
    HPROF_DOUBLE = 7,
    HPROF_BYTE = 8,
    HPROF_SHORT = 9,
    HPROF_INT = 10,
    HPROF_LONG = 11,
};

/* Special line numbers in FRAME; a positive number is a line. */
enum {
    HPROF_LINE_NONE = 0,
    HPROF_LINE_UNKNOWN = -1,
    HPROF_LINE_COMPILED = -2,
    HPROF_LINE_NATIVE = -3
};

/* Flags of ALLOC SITES, both in the record and in the command. */
enum { HPROF_SITES_INCREMENTAL = 1, HPROF_SITES_BY_ALLOCATION = 2, HPROF_SITES_FORCE_GC = 4 };

/* Flags of CONTROL SETTINGS. */
enum {
    HPROF_CONTROL_ALLOC_TRACES = 1,
    HPROF_CONTROL_CPU_SAMPLING = 2,
    /* Ours: the samples of CPU SAMPLES are of elapsed time. */
    HPROF_CONTROL_WALL_SAMPLING = 0x8000
};

/*
 * Commands of a front-end over the socket: u1 command, u4 serial number, u4 length, body ("Socket
 * Connection").
 */
enum hprof_command {
    HPROF_CMD_FORCE_GC = 0x01,
    HPROF_CMD_DUMP_HEAP = 0x02,
    HPROF_CMD_ALLOC_SITES = 0x03,
    HPROF_CMD_HEAP_SUMMARY = 0x04,
    HPROF_CMD_EXIT = 0x05,
    HPROF_CMD_DUMP_TRACES = 0x06,
    HPROF_CMD_CPU_SAMPLES = 0x07,
    HPROF_CMD_CONTROL = 0x08,
    HPROF_CMD_EOF = 0xff,
};

enum hprof_control {
    HPROF_CONTROL_TRACES_ON = 1,
    HPROF_CONTROL_TRACES_OFF = 2,
    HPROF_CONTROL_SAMPLING_ON = 3,
    HPROF_CONTROL_SAMPLING_OFF = 4,
    HPROF_CONTROL_CLEAR_SAMPLES = 5,
    HPROF_CONTROL_MAX_DEPTH = 6,
};

/* Returns the number of bytes of a value in a file, or 0 for an invalid type. id_size is 4 or 8. */
static inline unsigned hprof_type_size(unsigned type, unsigned id_size)
{
    static const uint8_t sizes[] = {
        [HPROF_BOOLEAN] = 1, [HPROF_CHAR] = 2,  [HPROF_FLOAT] = 4, [HPROF_DOUBLE] = 8,
        [HPROF_BYTE] = 1,    [HPROF_SHORT] = 2, [HPROF_INT] = 4,   [HPROF_LONG] = 8};
    return type == HPROF_OBJECT ? id_size : type < sizeof(sizes) ? sizes[type] : 0;
}

/* Returns the name of a type, "object" for a reference, or "?" for an invalid one. */
static inline const char *hprof_type_name(unsigned type)
{
    static const char *const names[16] = {
        [HPROF_OBJECT] = "object", [HPROF_BOOLEAN] = "boolean", [HPROF_CHAR] = "char",
        [HPROF_FLOAT] = "float",   [HPROF_DOUBLE] = "double",   [HPROF_BYTE] = "byte",
        [HPROF_SHORT] = "short",   [HPROF_INT] = "int",         [HPROF_LONG] = "long"};
    return type < 16 && names[type] ? names[type] : "?";
}

/*
 * Returns the basic type for the first letter of a JVM descriptor ('L' and '[' are objects), or 0
 * for another letter.
 */
static inline unsigned hprof_type_of_descriptor(char letter)
{
    static const uint8_t types[] = {
        ['L'] = HPROF_OBJECT, ['['] = HPROF_OBJECT, ['Z'] = HPROF_BOOLEAN, ['C'] = HPROF_CHAR,
        ['F'] = HPROF_FLOAT,  ['D'] = HPROF_DOUBLE, ['B'] = HPROF_BYTE,    ['S'] = HPROF_SHORT,
        ['I'] = HPROF_INT,    ['J'] = HPROF_LONG};
    return (unsigned char)letter < sizeof(types) ? types[(unsigned char)letter] : 0;
}
