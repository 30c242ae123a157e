/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the values of each loaded class lie in a heap dump's records, read before the walk: its callbacks may ask nothing. The
 * values of a class come in the order of its CLASS_LOAD, those of its superclass behind them (specification, section 4.2).
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jvmpi/layer.h"

struct layout_field {
    uint32_t offset; /* among the class's own values of its sort, static or not */
    char type;       /* 'I', 'J' ..., 'L' for references */
    bool is_static;
};

struct layout {
    jlong id;
    jint kind; /* of its instances: JVMPI_NORMAL_OBJECT, _CLASS for arrays of objects, _INT ... */
    jlong super, loader, element;
    jlong *interfaces;
    jint n_interfaces;
    struct layout_field *fields;
    jint n_fields;
    uint32_t own_bytes, all_bytes, static_bytes; /* all: with those of its superclasses */
    jint fields_above, fields_of_interfaces;     /* what JVM TI's field indices count before its own */
    jlong size;                                  /* of an instance, in memory; 0: none was met */
};

struct layouts {
    VEC(struct layout) rows;
    struct map by_id; /* class id -> index into rows */
    jlong class_id;   /* of java.lang.Class */
    bool references;  /* values of references alone: level 1 */
};

/* Reads all loaded classes; false when the VM or memory fails. Local references are given back. */
bool layouts_read(JNIEnv *env, struct layouts *l, bool references) must_check;
void layouts_release(struct layouts *l);
/* NULL: no such class. */
struct layout *layout_of(const struct layouts *l, jlong class_id);
/* Where the value of JVM TI's field index lies among the values of an instance, or of a class; NULL: there is none. */
const struct layout_field *layout_place(const struct layouts *l, const struct layout *of, jint index, uint32_t *ret_offset);
/* Fills in the sizes of classes that have no instance, from where their fields lie. Calls Java. */
void layouts_sizes(JNIEnv *env, struct layouts *l);

/* The size of an instance of one class; 0: not known. Calls Java. */
jlong instance_size(JNIEnv *env, jclass class);

/* Bytes of a value in a dump; by the first letter of its signature. */
unsigned value_width(char type);
/* What a class's instances are, by its signature: JVMPI_NORMAL_OBJECT, JVMPI_CLASS, JVMPI_INT ... */
jint kind_of_signature(const char *signature);
